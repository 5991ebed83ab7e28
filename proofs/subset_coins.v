(** docs/theory/subset.md, proof of Theorem 2: "Fix the coins of all other records. They have the same
    distribution on both data sets, and H_c is jointly convex. What is left is the record's own coin." *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Coins.
Variables (R : realFieldType) (I : finType) (r : I) (q : R) (T S : finType).
Hypothesis q01 : 0 <= q <= 1.

(** Every record is in the set C by an independent coin with probability q. *)
Definition coins (C : {set I}) : R := \prod_i (if i \in C then q else 1 - q).

(* The coins of all other records have the same law on both data sets. *)
Definition other_coins (C : {set I}) : R := \prod_(i | i != r) (if i \in C then q else 1 - q).

Lemma other_coins_ge0 C : 0 <= other_coins C.
Proof. by apply: prodr_ge0 => i _; case: ifP; rewrite ?subr_ge0; case/andP: q01. Qed.

Lemma own_coin (F : {set I} -> R) : \sum_C coins C * F C =
  \sum_(C : {set I} | r \notin C) other_coins C * (q * F (r |: C) + (1 - q) * F C).
Proof.
rewrite (bigID (fun C : {set I} => r \notin C)) /= addrC.
rewrite (reindex_onto (fun C : {set I} => r |: C) (fun C => C :\ r)) /=; last first.
  by move=> C; rewrite negbK => rC; rewrite setD1K.
rewrite (eq_bigl (fun C : {set I} => r \notin C)) => [|C]; last first.
  rewrite negbK setU11 /=; apply/eqP/idP => [<-|rC]; first by rewrite !inE eqxx.
  by rewrite setU1K.
rewrite -big_split /=; apply: eq_bigr => C rC; rewrite mulrDr /coins !(bigD1 (P := predT) r) //=.
rewrite setU11 (negbTE rC) /other_coins.
have -> : \prod_(i | i != r) (if i \in r |: C then q else 1 - q) = other_coins C.
  by apply: eq_bigr => i ir; rewrite in_setU1 (negbTE ir).
by rewrite /other_coins; move: (\prod_(i | i != r) _) => p; ring.
Qed.

Lemma other_coins_sum : \sum_(C : {set I} | r \notin C) other_coins C = 1.
Proof.
have : \sum_C coins C * 1 = 1.
  under eq_bigr do rewrite mulr1.
  transitivity (\prod_(i : I) \sum_(b : bool) (if b then q else 1 - q)); last first.
    by rewrite big1 // => i _; rewrite big_bool /= addrC subrK.
  rewrite bigA_distr_bigA /= (reindex (fun C : {set I} => [ffun i => i \in C])) /=.
    by apply: eq_bigr => C _; apply: eq_bigr => i _; rewrite ffunE.
  exists (fun d => [set i | d i]) => [C _|d _]; first by apply/setP => i; rewrite inE ffunE.
  by apply/ffunP => i; rewrite ffunE inE.
by rewrite own_coin => <-; apply: eq_bigr => C _; rewrite !mulr1 addrC subrK mulr1.
Qed.

(* "H_c is jointly convex." *)
Lemma average (F : {set I} -> T * S -> R) d :
  (forall C : {set I}, r \notin C -> \sum_z pos (F C z) <= d) ->
  \sum_z pos (\sum_(C : {set I} | r \notin C) other_coins C * F C z) <= d.
Proof.
move=> h; apply: (@le_trans _ _ (\sum_z \sum_(C : {set I} | r \notin C) other_coins C * pos (F C z))).
  apply: ler_sum => z _; apply: le_trans (pos_sum _ _) _.
  by apply: ler_sum => C _; rewrite posM ?other_coins_ge0.
rewrite exchange_big -[d]mul1r -other_coins_sum mulr_suml; apply: ler_sum => C rC /=.
by rewrite -mulr_sumr ler_wpmul2l ?other_coins_ge0 ?h.
Qed.
End Coins.
