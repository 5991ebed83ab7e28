(** best_of_pure.md: Theorem 1 where every run is pure: P[y] is at most c0 = e^eps0 times its probability on the
    neighbour. "At most" of both statements; r is at least f'(q) / f'(qmin q) for all q. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release best_of_density.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Pure.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Implicit Types (Q : T -> R) (f : {poly R}) (c r : R).

(** "Several eps": qmin is the lower edge of the average (or below it), c0 the largest ratio of all. *)
Theorem largest_loss f Q Q' (c0 r : R) qmin y : (forall k, 0 <= f`_k) -> dist Q -> dist Q' -> 0 <= r ->
  (forall t : T -> R, test t -> 0 <= qmin (prob t Q) <= prob t Q') ->
  (forall q, 0 <= q <= 1 -> f^`().[q] <= r * f^`().[qmin q]) -> (forall y, Q y <= c0 * Q' y) ->
  best_of score tie f Q y <= c0 * r * best_of score tie f Q' y.
Proof.
move=> f0 dQ dQ' r0 edge ratio pure; rewrite -subr_le0.
have [u u01 ->] := release_density score tieP f (c0 * r) y dQ.1 dQ'.1.
have tt := event_test score (score y) u01; set q := prob _ Q; set q' := prob _ Q'.
have /andP[m0 mq] := edge _ tt; have d0 := deriv_ge0 f0; have q01 := prob_01 tt dQ.
rewrite subr_le0; apply: (@le_trans _ _ (r * f^`().[qmin q] * (c0 * Q' y))).
  by apply: ler_pmul => //; rewrite ?(dQ.1 y) ?ratio ?pure // horner_ge0 //; case/andP: q01.
have -> : c0 * r * (f^`().[q'] * Q' y) = r * f^`().[q'] * (c0 * Q' y) by ring.
by rewrite ler_wpmul2r ?(le_trans (dQ.1 y)) // ler_wpmul2l // horner_mono.
Qed.

(** "One eps": qmin(q) = max(q / c0, 1 - c0 (1 - q)). *)
Definition qmin (c0 q : R) := Num.max (q / c0) (1 - c0 * (1 - q)).

Theorem pure f Q Q' (c0 r : R) y : (forall k, 0 <= f`_k) -> dist Q -> dist Q' -> 1 <= c0 -> 0 <= r ->
  (forall y, Q y <= c0 * Q' y) -> (forall y, Q' y <= c0 * Q y) ->
  (forall q, 0 <= q <= 1 -> f^`().[q] <= r * f^`().[qmin c0 q]) ->
  best_of score tie f Q y <= c0 * r * best_of score tie f Q' y.
Proof.
move=> f0 dQ dQ' c1 r0 h h' ratio; apply: (largest_loss y f0 dQ dQ' r0 _ ratio h) => t tt.
have c0p : 0 < c0 by apply: lt_le_trans c1.
have bound (F G s : T -> R) : (forall z, F z <= c0 * G z) -> test s -> prob s F <= c0 * prob s G.
  move=> FG ss; rewrite /prob mulr_sumr; apply: ler_sum => z _; case/andP: (ss z) => s0 _.
  by apply: le_trans (ler_wpmul2l s0 (FG z)) _; rewrite mulrCA.
have /andP[q0 q1] := prob_01 tt dQ; rewrite /qmin le_maxr divr_ge0 ?(ltW c0p) //= le_maxl.
rewrite ler_pdivr_mulr // mulrC bound //=.
have := bound _ _ _ h' (test_compl tt); rewrite !prob_compl // => le.
by rewrite ler_subl_addr addrC -ler_subl_addr.
Qed.
End Pure.
Print Assumptions largest_loss.
Print Assumptions pure.
