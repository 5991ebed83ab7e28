(** docs/theory/subset_rest.md: the release of Theorem 4 over all coins, and a record's own coins. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset subset_rest_fixed.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Coins.
Variable R : realFieldType.
Implicit Types (a b c : R).

(** "Every record draws its role by coins of its own. With probability q it joins the subset X1 and
    trains the candidates. Otherwise it validates with probability v." X1 are the records of the first
    coin, W those of the second one, and W \ X1 validate. Tuning sees both sets, training sees t and the
    rest, or all. *)
Variables (I : finType) (r : I) (q v : R) (T S : finType).
Variables (tune : {set I} -> {set I} -> T -> R) (train : {set I} -> T -> S -> R).
Hypotheses (q01 : 0 <= q <= 1) (v01 : 0 <= v <= 1).
Hypotheses (dtune : forall C W, dist (tune C W)) (dtrain : forall X, kernel (train X)).

Definition one_rest (present C W : {set I}) : T * S -> R := fun z =>
  tune (C :&: present) ((W :\: C) :&: present) z.1 * train (present :\: C) z.1 z.2.
Definition one_all (present C W : {set I}) : T * S -> R := fun z =>
  tune (C :&: present) ((W :\: C) :&: present) z.1 * train present z.1 z.2.
Definition released4 (one : {set I} -> {set I} -> {set I} -> T * S -> R) (present : {set I}) z :=
  \sum_C coins q C * (\sum_W coins v W * one present C W z).

Lemma own_role one present z : released4 one present z =
  \sum_(C : {set I} | r \notin C) other_coins r q C * \sum_(W : {set I} | r \notin W) other_coins r v W *
   (q * (v * one present (r |: C) (r |: W) z + (1 - v) * one present (r |: C) W z) +
    (1 - q) * (v * one present C (r |: W) z + (1 - v) * one present C W z)).
Proof.
rewrite /released4 (own_coin r); apply: eq_bigr => C rC; congr (_ * _).
rewrite !(own_coin r) !mulr_sumr -big_split; apply: eq_bigr => W rW /=; ring.
Qed.

Lemma average2 (F : {set I} -> {set I} -> T * S -> R) d :
  (forall C W : {set I}, r \notin C -> r \notin W -> \sum_z pos (F C W z) <= d) ->
  \sum_z pos (\sum_(C : {set I} | r \notin C) other_coins r q C *
              \sum_(W : {set I} | r \notin W) other_coins r v W * F C W z) <= d.
Proof.
by move=> h; apply: (average q01) => C rC; apply: (average v01) => W rW; apply: h.
Qed.

(* The sets of trainers and of validators in each of the four cases, with the record and without it. *)
Lemma blank_set (C : {set I}) : r \notin C -> C :&: ~: [set r] = C.
Proof. by move=> rC; apply/setIidPl; rewrite subsetC sub1set inE. Qed.

Section Sets.
Variables (C W : {set I}).
Hypotheses (rC : r \notin C) (rW : r \notin W).
Let D := W :\: C.
Let rD : r \notin D. Proof. by rewrite inE (negbTE rW) andbF. Qed.

Lemma D_trains : (r |: W) :\: (r |: C) = D /\ W :\: (r |: C) = D.
Proof. by split; apply/setP => i; rewrite !inE; case: eqP => [->|]; rewrite ?(negbTE rW) ?andbF. Qed.
Lemma D_validates : (r |: W) :\: C = r |: D.
Proof. by apply/setP => i; rewrite !inE; case: eqP => [->|]; rewrite ?(negbTE rC). Qed.
Lemma C_blank : (r |: C) :&: ~: [set r] = C /\ (r |: D) :&: ~: [set r] = D.
Proof. by split; rewrite setIUl setICr set0U blank_set. Qed.
Lemma X_blank : ~: [set r] :\: C = ~: C :\ r /\ ~: [set r] :\: (r |: C) = ~: C :\ r.
Proof. by split; apply/setP => i; rewrite !inE ?negb_or; case: (i == r); rewrite ?andbF ?andbT. Qed.

Let Pw := tune (r |: C) D.
Let Pv := tune C (r |: D).
Let P := tune C D.

Lemma rest_cases z :
  q * (v * one_rest setT (r |: C) (r |: W) z + (1 - v) * one_rest setT (r |: C) W z) +
  (1 - q) * (v * one_rest setT C (r |: W) z + (1 - v) * one_rest setT C W z) =
    with_rest4 q v Pw Pv P (train (~: C)) (train (~: C :\ r)) z /\
  q * (v * one_rest (~: [set r]) (r |: C) (r |: W) z + (1 - v) * one_rest (~: [set r]) (r |: C) W z) +
  (1 - q) * (v * one_rest (~: [set r]) C (r |: W) z + (1 - v) * one_rest (~: [set r]) C W z) =
    P z.1 * train (~: C :\ r) z.1 z.2.
Proof.
rewrite /one_rest !setIT !setTD D_validates !D_trains.1 !D_trains.2 !C_blank.1 !C_blank.2 !X_blank.1 !X_blank.2.
rewrite !blank_set // -/D -/Pw -/Pv -/P; split; last by ring.
have -> : ~: (r |: C) = ~: C :\ r by rewrite setCU setIC -setDE.
by rewrite /with_rest4; ring.
Qed.

Lemma all_cases z :
  q * (v * one_all setT (r |: C) (r |: W) z + (1 - v) * one_all setT (r |: C) W z) +
  (1 - q) * (v * one_all setT C (r |: W) z + (1 - v) * one_all setT C W z) =
    with_all4 q v Pw Pv P (train setT) z /\
  q * (v * one_all (~: [set r]) (r |: C) (r |: W) z + (1 - v) * one_all (~: [set r]) (r |: C) W z) +
  (1 - q) * (v * one_all (~: [set r]) C (r |: W) z + (1 - v) * one_all (~: [set r]) C W z) =
    P z.1 * train (setT :\ r) z.1 z.2.
Proof.
rewrite /one_all !setIT !setTD D_validates !D_trains.1 !D_trains.2 !C_blank.1 !C_blank.2.
rewrite !blank_set // -/D -/Pw -/Pv -/P; split; last by ring.
by rewrite /with_all4; ring.
Qed.
End Sets.
End Coins.
