(** docs/theory/subset.md: Theorem 2, tune on a random subset, then train. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset_fixed.
From Proofs Require Export subset_coins.
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

Definition released_rest (present : {set I}) : T * S -> R := fun z =>
  \sum_C coins q C * (tune (C :&: present) z.1 * train (present :\: C) z.1 z.2).
Definition released_all (present : {set I}) : T * S -> R := fun z =>
  \sum_C coins q C * (tune (C :&: present) z.1 * train present z.1 z.2).

Lemma restE z : released_rest setT z = \sum_(C : {set I} | r \notin C) other_coins r q C *
  with_rest q (tune (r |: C)) (tune C) (train (~: C)) (train (~: C :\ r)) z.
Proof.
rewrite /released_rest (own_coin r); apply: eq_bigr => C rC; congr (_ * _); rewrite /with_rest.
by rewrite !setIT !setTD setCU setIC -setDE.
Qed.

Lemma rest0E z : released_rest (~: [set r]) z = \sum_(C : {set I} | r \notin C) other_coins r q C *
  (tune C z.1 * train (~: C :\ r) z.1 z.2).
Proof.
rewrite /released_rest (own_coin r); apply: eq_bigr => C rC; congr (_ * _).
have e : C :&: ~: [set r] = C by apply/setIidPl; rewrite subsetC sub1set inE.
have -> : (r |: C) :&: ~: [set r] = C by rewrite setIUl setICr set0U.
have d : ~: [set r] :\: C = ~: C :\ r by rewrite setDE setIC -setDE.
have -> : ~: [set r] :\: (r |: C) = ~: C :\ r.
  by apply/setP => i; rewrite !inE negb_or; case: (i == r); rewrite ?andbF ?andbT.
rewrite e d; ring.
Qed.

Lemma all0E (b : bool) z : released_all (if b then setT else ~: [set r]) z =
  \sum_(C : {set I} | r \notin C) other_coins r q C *
    (if b then with_all q (tune (r |: C)) (tune C) (train setT) z
     else tune C z.1 * train (setT :\ r) z.1 z.2).
Proof.
rewrite /released_all (own_coin r); apply: eq_bigr => C rC; congr (_ * _); rewrite /with_all; case: b.
  by rewrite !setIT; ring.
have e : C :&: ~: [set r] = C by apply/setIidPl; rewrite subsetC sub1set inE.
have -> : (r |: C) :&: ~: [set r] = C by rewrite setIUl setICr set0U.
by rewrite e setTD; ring.
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
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr.
by apply: (average q01) => C rC; apply: fixed_rest => //; [exact: domA | move=> t; apply: domB; rewrite !inE].
Qed.

Lemma lines_all a b :
  \sum_z pos (a * released_all setT z + b * released_all (~: [set r]) z) <=
  \sum_z pos (a * pair_all q A A' B z + b * product A' B' z).
Proof.
under eq_bigr do rewrite (all0E true) (all0E false) !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr.
by apply: (average q01) => C rC; apply: fixed_all => //; [exact: domA | move=> t; apply: domB; rewrite !inE].
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
