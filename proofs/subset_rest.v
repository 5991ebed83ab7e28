(** docs/theory/subset_rest.md: Theorem 4, validate on the rest. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset comonotone subset_rest_fixed subset_rest_release.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem4.
Variable R : realFieldType.
Implicit Types (a b c : R).

(** The records I, the record r in question, and the parts, as in subset_rest_release.v. *)
Variables (I : finType) (r : I) (q v : R) (T S : finType).
Variables (tune : {set I} -> {set I} -> T -> R) (train : {set I} -> T -> S -> R).
Hypotheses (q01 : 0 <= q <= 1) (v01 : 0 <= v <= 1).
Hypotheses (dtune : forall C W, dist (tune C W)) (dtrain : forall X, kernel (train X)).

(** The pairs: (X* with infinity, U) of tuning for a record that trains, (V*, U) for one that validates,
    (B, B') of training for every fixed t. *)
Variables (n : nat) (g x y : nat -> R) (oox oov : R) (V : finType) (B B' : V -> R).
Hypotheses (x_rises : rising n x) (y_rises : rising n y).
Hypotheses (dX : dist (@quantile_pair R n g x oox)) (dV : dist (@quantile_pair R n g y oov)).
Hypotheses (dU : dist (@uniform R n g)) (dB : dist B) (dB' : dist B').
Hypothesis trains : forall C W : {set I}, r \notin C -> r \notin W -> C :&: W = set0 ->
  dominates (@quantile_pair R n g x oox) (@uniform R n g) (tune (r |: C) W) (tune C W).
Hypothesis validates : forall C W : {set I}, r \notin C -> r \notin W -> C :&: W = set0 ->
  dominates (@quantile_pair R n g y oov) (@uniform R n g) (tune C (r |: W)) (tune C W).
Hypothesis finally : forall (X : {set I}) t, r \in X -> dominates B B' (train X t) (train (X :\ r) t).

Lemma lines_rest4 a b : \sum_z pos (a * released4 q v (one_rest tune train) setT z + b * released4 q v (one_rest tune train) (~: [set r]) z) <=
  bound_rest n g x y oox oov q v B B' a b.
Proof.
under eq_bigr do rewrite !(own_role r) !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr.
apply: (average2 q01 v01) => C W rC rW; under eq_bigr do rewrite (rest_cases q v tune train rC rW _).1 (rest_cases q v tune train rC rW _).2.
have rD : r \notin W :\: C by rewrite inE (negbTE rW) andbF.
have CD : C :&: (W :\: C) = set0 by apply/setP => i; rewrite !inE; case: (i \in C).
apply: fixed_rest4 => //; [exact: trains | exact: validates | by move=> t; apply: finally; rewrite inE].
Qed.

Lemma lines_all4 a b : \sum_z pos (a * released4 q v (one_all tune train) setT z + b * released4 q v (one_all tune train) (~: [set r]) z) <=
  bound_all n g x y oox oov q v B B' a b.
Proof.
under eq_bigr do rewrite !(own_role r) !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr !mulr_sumr -big_split.
under eq_bigr do under eq_bigr do under eq_bigr do rewrite /= !(mulrCA _ (other_coins _ _ _)) -mulrDr.
apply: (average2 q01 v01) => C W rC rW; under eq_bigr do rewrite (all_cases q v tune train rC rW _).1 (all_cases q v tune train rC rW _).2.
have rD : r \notin W :\: C by rewrite inE (negbTE rW) andbF.
have CD : C :&: (W :\: C) = set0 by apply/setP => i; rewrite !inE; case: (i \in C).
apply: fixed_all4 => //; [exact: trains | exact: validates | by move=> t; apply: finally; rewrite inE].
Qed.

(** Theorem 4, "with the record against without": E (Z* - c)_+ + mass at infinity, with
    Z* = q X*(U) + (1-q) (1 - v + v V*(U)) Y* (rest), (q X*(U) + (1-q) (1 - v + v V*(U))) Y* (all). *)
Theorem validate_rest c : 0 <= c ->
  hockey c (released4 q v (one_rest tune train) setT) (released4 q v (one_rest tune train) (~: [set r])) <=
  (\sum_(i < n) \sum_w g i * pos (q * x i * B' w + (1 - q) * (1 - v + v * y i) * B w - c * B' w)) +
  (q * oox + (1 - q) * v * oov).
Proof.
move=> c0; rewrite /hockey; under eq_bigr do rewrite -[released4 _ _ _ setT _]mul1r -mulNr.
apply: le_trans (lines_rest4 1 (- c)) _; rewrite /bound_rest (pos_id ler01) mul1r ler_add2r.
by apply: ler_sum => i _; apply: ler_sum => w _; rewrite mul1r mulNr.
Qed.

Theorem validate_all c : 0 <= c ->
  hockey c (released4 q v (one_all tune train) setT) (released4 q v (one_all tune train) (~: [set r])) <=
  (\sum_(i < n) \sum_w g i * pos ((q * x i + (1 - q) * (1 - v + v * y i)) * B w - c * B' w)) +
  (q * oox + (1 - q) * v * oov).
Proof.
move=> c0; rewrite /hockey; under eq_bigr do rewrite -[released4 _ _ _ setT _]mul1r -mulNr.
apply: le_trans (lines_all4 1 (- c)) _; rewrite /bound_all (pos_id ler01) mul1r ler_add2r.
by apply: ler_sum => i _; apply: ler_sum => w _; rewrite mul1r mulNr.
Qed.

(** "Without the record against with": E (1 - c Z* )_+. *)
Theorem validate_rest_without c : 0 <= c ->
  hockey c (released4 q v (one_rest tune train) (~: [set r])) (released4 q v (one_rest tune train) setT) <=
  \sum_(i < n) \sum_w g i * pos (B' w - c * (q * x i * B' w + (1 - q) * (1 - v + v * y i) * B w)).
Proof.
move=> c0; have nc : - c <= 0 by rewrite oppr_le0.
rewrite /hockey; under eq_bigr do rewrite addrC -[released4 _ _ _ (~: _) _]mul1r -mulNr.
apply: le_trans (lines_rest4 (- c) 1) _; rewrite /bound_rest (pos_0 nc) mul0r addr0.
by apply: ler_sum => i _; apply: ler_sum => w _; rewrite mul1r mulNr addrC.
Qed.

Theorem validate_all_without c : 0 <= c ->
  hockey c (released4 q v (one_all tune train) (~: [set r])) (released4 q v (one_all tune train) setT) <=
  \sum_(i < n) \sum_w g i * pos (B' w - c * ((q * x i + (1 - q) * (1 - v + v * y i)) * B w)).
Proof.
move=> c0; have nc : - c <= 0 by rewrite oppr_le0.
rewrite /hockey; under eq_bigr do rewrite addrC -[released4 _ _ _ (~: _) _]mul1r -mulNr.
apply: le_trans (lines_all4 (- c) 1) _; rewrite /bound_all (pos_0 nc) mul0r addr0.
by apply: ler_sum => i _; apply: ler_sum => w _; rewrite mul1r mulNr addrC.
Qed.
End Theorem4.

Print Assumptions validate_rest.
Print Assumptions validate_all.
Print Assumptions validate_rest_without.
Print Assumptions validate_all_without.
