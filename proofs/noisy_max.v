(** docs/theory/noisy_max.md: the exponential mechanism, its bounded range, and its exact draws. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Exponential_mechanism.
Variables (R : realFieldType) (T : finType).
Implicit Types (w : T -> R) (a c e t : R).

(** Candidate i has weight w i = e^(u_i / b), and wins with probability w i / Z, Z the sum of weights. *)
Definition winner w i : R := w i / \sum_j w j.

(** "Exact draws: a fair candidate is kept with probability exp((u_i - max u)/b), otherwise drawn again":
    k i is that probability. After m tries: *)
Fixpoint tries (k : T -> R) m i : R :=
  if m is m'.+1 then k i / #|T|%:R + (1 - (\sum_j k j) / #|T|%:R) * tries k m' i else 0.

(* What is missing after m tries is a share (1 - Z/n)^m of the winner's law. *)
Theorem tries_winner k m i : (0 < #|T|)%N -> 0 < \sum_j k j ->
  tries k m i = winner k i * (1 - (1 - (\sum_j k j) / #|T|%:R) ^+ m).
Proof.
move=> n0 Z0; have n1 : #|T|%:R != 0 :> R by rewrite pnatr_eq0 -lt0n.
elim: m => [|m ih] /=; first by rewrite expr0 subrr mulr0.
rewrite ih exprS /winner; move: (\sum_j k j) Z0 ((1 - _) ^+ m) => Z Z0 z.
by field; rewrite n1 gt_eqF.
Qed.

Lemma winner_scale w i a : a != 0 -> winner (fun j => a * w j) i = winner w i.
Proof.
move=> a0; rewrite /winner -mulr_sumr; move: (\sum_j w j) => Z; case: (eqVneq Z 0) => [->|Z0].
  by rewrite mulr0 invr0 !mulr0.
by field; rewrite Z0 a0.
Qed.

(** "log P[i]/P'[i] = (u_i - u'_i)/b + log(Z'/Z). The first term lies in +-Delta/b and the second does not
    depend on i: all losses lie in an interval of length 2 Delta/b." Here a = e^(Delta/b). *)
Definition bounded_range e (P P' : T -> R) := exists2 t, 0 < t &
  forall i, P i <= t * P' i /\ t * P' i <= e * P i.

Theorem exponential_bounded_range w w' a : (0 < #|T|)%N -> 0 < a ->
  (forall i, 0 < w i) -> (forall i, 0 < w' i) ->
  (forall i, w i <= a * w' i /\ w' i <= a * w i) -> bounded_range (a ^+ 2) (winner w) (winner w').
Proof.
move=> n0 a0 w0 w'0 near; have pos_sum_ (v : T -> R) : (forall i, 0 < v i) -> 0 < \sum_j v j.
  move=> v0; case/card_gt0P: n0 => i _; rewrite (bigD1 i) //=.
  by apply: ltr_spaddl => //; apply: sumr_ge0 => j _; exact: ltW.
have [Z0 Z0'] := (pos_sum_ _ w0, pos_sum_ _ w'0); rewrite /winner.
move: (\sum_j w j) (\sum_j w' j) Z0 Z0' => Z Z' Z0 Z0'.
exists (a * Z' / Z); first by rewrite divr_gt0 // mulr_gt0.
move=> i; case: (near i) => h1 h2; have e0 : a * Z' / Z * (w' i / Z') = a * w' i / Z.
  by field; rewrite !gt_eqF.
rewrite e0; split; first by rewrite ler_wpmul2r // invr_ge0 ltW.
by rewrite mulrA ler_wpmul2r ?invr_ge0 ?(ltW Z0) // expr2 -mulrA ler_wpmul2l // ltW.
Qed.

(** "Bounded range": delta(eps') <= (e^(eps/2) - e^(eps'/2))^2 / (e^eps - 1) for |eps'| <= eps. Here e and c
    are the square roots of e^eps and of e^eps'; it holds for every eps'. *)
Theorem bounded_range_profile e c (P P' : T -> R) : dist P -> dist P' -> 1 < e -> 0 <= c ->
  bounded_range (e ^+ 2) P P' -> hockey (c ^+ 2) P P' <= (e - c) ^+ 2 / (e ^+ 2 - 1).
Proof.
move=> [P0 P1] [P'0 P'1] e1 c0 [t t0 h]; have e0 : 0 < e := lt_trans ltr01 e1.
have d0 : 0 < e ^+ 2 - 1 by rewrite subr_gt0 exprn_egt1.
have E0 : 0 <= (e - c) ^+ 2 / (e ^+ 2 - 1) by rewrite divr_ge0 ?sqr_ge0 ?ltW.
have t_e : t <= e ^+ 2.
  have : \sum_i t * P' i <= \sum_i e ^+ 2 * P i by apply: ler_sum => i _; case: (h i).
  by rewrite -!mulr_sumr P1 P'1 !mulr1.
case: (leP t (c ^+ 2)) => tc.
  rewrite /hockey big1 // => i _; rewrite pos_0 // subr_le0.
  by case: (h i) => h1 _; apply: le_trans h1 _; rewrite ler_wpmul2r.
case: (leP (c ^+ 2 * e ^+ 2) t) => ct.
  have -> : hockey (c ^+ 2) P P' = 1 - c ^+ 2.
    transitivity (\sum_i (P i - c ^+ 2 * P' i)); last by rewrite sumrB -mulr_sumr P1 P'1 mulr1.
    apply: eq_bigr => i _; rewrite pos_id // subr_ge0.
    case: (h i) => _ h2; rewrite -(ler_pmul2l (exprn_gt0 2 e0)); apply: le_trans h2.
    by rewrite mulrA [e ^+ 2 * _]mulrC ler_wpmul2r.
  rewrite ler_pdivl_mulr // -subr_ge0.
  have -> : (e - c) ^+ 2 - (1 - c ^+ 2) * (e ^+ 2 - 1) = (1 - c * e) ^+ 2 by ring.
  exact: sqr_ge0.
(* "moving mass to both ends keeps both totals and raises the convex (1 - c e^-L)_+" *)
have te : 0 < t * (e ^+ 2 - 1) by rewrite mulr_gt0.
have k0 : 0 <= (t - c ^+ 2) / (t * (e ^+ 2 - 1)) by rewrite divr_ge0 ?subr_ge0 // ltW.
apply: (@le_trans _ _ (\sum_i (t - c ^+ 2) / (t * (e ^+ 2 - 1)) * (e ^+ 2 * P i - t * P' i))).
  apply: ler_sum => i _; case: (h i) => h1 h2; apply: pos_le; last by rewrite mulr_ge0 // subr_ge0.
  rewrite [X in _ <= X]mulrAC ler_pdivl_mulr // -subr_ge0.
  have -> : (t - c ^+ 2) * (e ^+ 2 * P i - t * P' i) - (P i - c ^+ 2 * P' i) * (t * (e ^+ 2 - 1)) =
     (c ^+ 2 * e ^+ 2 - t) * (t * P' i - P i) by ring.
  by rewrite mulr_ge0 // subr_ge0 // ltW.
rewrite -mulr_sumr sumrB -!mulr_sumr P1 P'1 !mulr1 ler_pdivl_mulr //.
have -> : (t - c ^+ 2) / (t * (e ^+ 2 - 1)) * (e ^+ 2 - t) * (e ^+ 2 - 1) = (t - c ^+ 2) * (e ^+ 2 - t) / t.
  by field; rewrite !gt_eqF.
rewrite ler_pdivr_mulr // -subr_ge0.
have -> : (e - c) ^+ 2 * t - (t - c ^+ 2) * (e ^+ 2 - t) = (t - e * c) ^+ 2 by ring.
exact: sqr_ge0.
Qed.
End Exponential_mechanism.

Print Assumptions tries_winner.
Print Assumptions exponential_bounded_range.
Print Assumptions bounded_range_profile.
