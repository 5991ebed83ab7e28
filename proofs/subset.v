(** docs/theory/subset.md: Theorem 2, tune on a random subset, then train. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset_fixed.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem2.
Variable R : realFieldType.

(** "Every record joins the subset X1 by an independent coin with probability q. Tuning sees X1 alone;
    training sees t and the rest, or all." I are the records, r is the record in question; a blank record
    keeps its coin. [present] are the records that are there. *)
Section Release.
Variables (I : finType) (r : I) (q : R) (T S : finType).
Variables (tune : {set I} -> T -> R) (train : {set I} -> T -> S -> R).
Hypotheses (q01 : 0 <= q <= 1) (dtune : kernel tune) (dtrain : forall X, kernel (train X)).

Definition coins (C : {set I}) : R := \prod_i (if i \in C then q else 1 - q).
Definition released_rest (present : {set I}) : T * S -> R := fun z =>
  \sum_C coins C * (tune (C :&: present) z.1 * train (present :\: C) z.1 z.2).
Definition released_all (present : {set I}) : T * S -> R := fun z =>
  \sum_C coins C * (tune (C :&: present) z.1 * train present z.1 z.2).

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

Lemma restE z : released_rest setT z = \sum_(C : {set I} | r \notin C) other_coins C *
  with_rest q (tune (r |: C)) (tune C) (train (~: C)) (train (~: C :\ r)) z.
Proof.
rewrite /released_rest own_coin; apply: eq_bigr => C rC; congr (_ * _); rewrite /with_rest.
by rewrite !setIT !setTD setCU setIC -setDE.
Qed.

Lemma rest0E z : released_rest (~: [set r]) z = \sum_(C : {set I} | r \notin C) other_coins C *
  (tune C z.1 * train (~: C :\ r) z.1 z.2).
Proof.
rewrite /released_rest own_coin; apply: eq_bigr => C rC; congr (_ * _).
have e : C :&: ~: [set r] = C by apply/setIidPl; rewrite subsetC sub1set inE.
have -> : (r |: C) :&: ~: [set r] = C by rewrite setIUl setICr set0U.
have d : ~: [set r] :\: C = ~: C :\ r by rewrite setDE setIC -setDE.
have -> : ~: [set r] :\: (r |: C) = ~: C :\ r.
  by apply/setP => i; rewrite !inE negb_or; case: (i == r); rewrite ?andbF ?andbT.
rewrite e d; ring.
Qed.

Lemma all0E (b : bool) z : released_all (if b then setT else ~: [set r]) z =
  \sum_(C : {set I} | r \notin C) other_coins C *
    (if b then with_all q (tune (r |: C)) (tune C) (train setT) z
     else tune C z.1 * train (setT :\ r) z.1 z.2).
Proof.
rewrite /released_all own_coin; apply: eq_bigr => C rC; congr (_ * _); rewrite /with_all; case: b.
  by rewrite !setIT; ring.
have e : C :&: ~: [set r] = C by apply/setIidPl; rewrite subsetC sub1set inE.
have -> : (r |: C) :&: ~: [set r] = C by rewrite setIUl setICr set0U.
by rewrite e setTD; ring.
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

Section Pair.
Variables (U V : finType) (A A' : U -> R) (B B' : V -> R).
Hypotheses (dA : dist A) (dA' : dist A') (dB : dist B) (dB' : dist B').
(* The pair of tuning, and one that dominates training for every fixed t. *)
Hypothesis domA : forall C : {set I}, r \notin C -> dominates A A' (tune (r |: C)) (tune C).
Hypothesis domB : forall (X : {set I}) t, r \in X -> dominates B B' (train X t) (train (X :\ r) t).

Lemma lines_rest a b :
  \sum_z pos (a * released_rest setT z + b * released_rest (~: [set r]) z) <=
  \sum_z pos (a * pair_rest q A A' B B' z + b * product A' B' z).
Proof.
under eq_bigr do rewrite restE rest0E !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _)) -mulrDr.
by apply: average => C rC; apply: fixed_rest => //; [exact: domA | move=> t; apply: domB; rewrite !inE].
Qed.

Lemma lines_all a b :
  \sum_z pos (a * released_all setT z + b * released_all (~: [set r]) z) <=
  \sum_z pos (a * pair_all q A A' B z + b * product A' B' z).
Proof.
under eq_bigr do rewrite (all0E true) (all0E false) !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _)) -mulrDr.
by apply: average => C rC; apply: fixed_all => //; [exact: domA | move=> t; apply: domB; rewrite !inE].
Qed.

(** Theorem 2, "with the record against without". *)
Theorem subset_rest : dominates (pair_rest q A A' B B') (product A' B')
  (released_rest setT) (released_rest (~: [set r])).
Proof.
move=> c c0; have := lines_rest 1 (- c); rewrite /hockey.
by under eq_bigr do rewrite mul1r mulNr; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr.
Qed.

Theorem subset_all : dominates (pair_all q A A' B) (product A' B')
  (released_all setT) (released_all (~: [set r])).
Proof.
move=> c c0; have := lines_all 1 (- c); rewrite /hockey.
by under eq_bigr do rewrite mul1r mulNr; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr.
Qed.

(** Theorem 2, "without the record against with". (A', A) and (B', B) dominate the parts
    in this order; pairs of this order serve as well, turned around (definitions.v, dominates_sym). *)
Theorem subset_rest_without : dominates (product A' B') (pair_rest q A A' B B')
  (released_rest (~: [set r])) (released_rest setT).
Proof.
move=> c c0; have := lines_rest (- c) 1; rewrite /hockey.
by under eq_bigr do rewrite mul1r mulNr addrC; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr addrC.
Qed.

Theorem subset_all_without : dominates (product A' B') (pair_all q A A' B)
  (released_all (~: [set r])) (released_all setT).
Proof.
move=> c c0; have := lines_all (- c) 1; rewrite /hockey.
by under eq_bigr do rewrite mul1r mulNr addrC; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr addrC.
Qed.
End Pair.
End Release.
End Theorem2.

Print Assumptions subset_rest.
Print Assumptions subset_all.
Print Assumptions subset_rest_without.
Print Assumptions subset_all_without.
