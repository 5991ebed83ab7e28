(** docs/theory/best_of.md, first steps of the proof: the density of the best of K runs. *)
From mathcomp Require Import all_ssreflect all_algebra polyrcf.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Density.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Implicit Types (Q : T -> R) (f : {poly R}) (y : T) (c q u : R).

(* "f' is nondecreasing, because its power series has no negative coefficient." *)
Lemma horner_mono f q q1 : (forall k, 0 <= f`_k) -> 0 <= q -> q <= q1 -> f.[q] <= f.[q1].
Proof.
move=> f0 q0 qq; rewrite !horner_coef; apply: ler_sum => k _; rewrite ler_wpmul2l //.
by rewrite ler_expn2r // ?nnegrE // (le_trans q0).
Qed.

Lemma deriv_ge0 f : (forall k, 0 <= f`_k) -> forall k, 0 <= f^`()`_k.
Proof. by move=> f0 k; rewrite coef_deriv mulrn_wge0. Qed.

Lemma horner_ge0 f q : (forall k, 0 <= f`_k) -> 0 <= q -> 0 <= f.[q].
Proof.
by move=> f0 q0; rewrite horner_coef; apply: sumr_ge0 => k _; rewrite mulr_ge0 ?exprn_ge0.
Qed.

(** "The event {score <= score of y}" with a coin u for its ties. *)
Definition event s u : T -> R := fun z => if (score z < s)%N then 1 else if score z == s then u else 0.

Lemma event_test s u : 0 <= u <= 1 -> test (event s u).
Proof. by move=> u01 z; rewrite /event; case: ifP; [|case: ifP]; rewrite ?lexx ?ler01. Qed.

Lemma prob_event Q s u : prob (event s u) Q = below score Q s + u * at_ score Q s.
Proof.
rewrite /prob /below /at_ (bigID (fun z => (score z < s)%N)) /=; congr (_ + _).
  by apply: eq_bigr => z h; rewrite /event h mul1r.
rewrite mulr_sumr (bigID (fun z => score z == s)) /= [X in _ + X]big1 ?addr0.
  by apply: eq_big => z; rewrite /event ?ltnNge; case: eqP => [->|]; rewrite ?leqnn ?andbF ?ltnn.
by move=> z /andP[/negbTE h /negbTE h1]; rewrite /event h h1 mul0r.
Qed.

(* Part of the release's probability of y as its place moves through the ties of its score. *)
Definition share f Q y : {poly R} :=
  (Q y / at_ score Q (score y)) *:
  (f \Po ((below score Q (score y))%:P + (at_ score Q (score y)) *: 'X)).

Lemma at_zero Q y : measure Q -> at_ score Q (score y) = 0 -> Q y = 0.
Proof.
move=> Q0 a0; apply/eqP; rewrite eq_le Q0 andbT -a0 /at_ (bigD1 y) //= ler_addl.
by apply: sumr_ge0 => z _.
Qed.

Lemma share_increment f Q y : measure Q -> (share f Q y).[1] - (share f Q y).[0] = best_of score tie f Q y.
Proof.
move=> Q0; rewrite /share !hornerE !horner_comp !hornerE -mulrBr -up_toE.
case: (eqVneq (at_ score Q (score y)) 0) => [a0|a0].
  by rewrite (at_zero Q0 a0) !mul0r best_of_zero // (at_zero Q0 a0).
apply: (mulfI a0); rewrite best_of_law // mulrA [_ * (Q y / _)]mulrC divfK //.
Qed.

Lemma share_deriv f Q y u : measure Q ->
  ((share f Q y)^`()).[u] = Q y * f^`().[prob (event (score y) u) Q].
Proof.
move=> Q0; rewrite prob_event /share derivZ deriv_comp derivD derivC add0r derivZ derivX.
rewrite !hornerE horner_comp !hornerE /= [u * _]mulrC.
case: (eqVneq (at_ score Q (score y)) 0) => [a0|a0]; first by rewrite (at_zero Q0 a0) !mul0r.
by rewrite mulrAC divfK.
Qed.

(** "The release has density A(y) = f'(F(y)) Q(y), and likewise A'(y)": the coin is the place between
    the ties that the mean value theorem finds. *)
Theorem release_density f Q Q' c y : measure Q -> measure Q' -> exists2 u, 0 <= u <= 1 &
  best_of score tie f Q y - c * best_of score tie f Q' y =
  f^`().[prob (event (score y) u) Q] * Q y - c * (f^`().[prob (event (score y) u) Q'] * Q' y).
Proof.
move=> Q0 Q'0; case: (mvt (share f Q y - c *: share f Q' y) (@ltr01 R)) => u u01 e; exists u.
  by move: u01; rewrite in_itv /= => /andP[/ltW -> /ltW ->].
have -> : best_of score tie f Q y - c * best_of score tie f Q' y =
   (share f Q y - c *: share f Q' y).[1] - (share f Q y - c *: share f Q' y).[0].
  by rewrite -!share_increment // !hornerE /=; ring.
rewrite e subr0 mulr1 derivB derivZ !hornerE /= !share_deriv //; ring.
Qed.
End Density.
Print Assumptions release_density.
