(** docs/theory/best_of.md: Theorem 1, best of K runs. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions loss_distributions testing_region best_of_release best_of_density.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem1.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Implicit Types (Q : T -> R) (f : {poly R}) (y : T) (c q u : R).

(** The law of K: f`_k = P(K = k), f(z) = E z^K. *)
Definition law_of_runs f := (forall k, 0 <= f`_k) /\ f.[1] = 1.

(** What is released: "no run" if K = 0, else the best outcome. *)
Definition release f Q : option T -> R := fun o => if o is Some y then best_of score tie f Q y else f`_0.

(** The same given K >= 1. *)
Definition release_given_a_run f Q : T -> R := fun y => best_of score tie f Q y / (1 - f`_0).

(** Theorem 1. (P, P') dominates one run, qmin is the lower edge of its testing region (or below it),
    and phi(z) is the least upper bound of 0 and all f'(q) - z f'(qmin(q)), q in [0, 1]. *)
Definition least_bound f (qmin phi : R -> R) := forall z, 0 <= z ->
  [/\ 0 <= phi z, forall q, 0 <= q <= 1 -> f^`().[q] - z * f^`().[qmin q] <= phi z
    & forall b, 0 <= b -> (forall q, 0 <= q <= 1 -> f^`().[q] - z * f^`().[qmin q] <= b) -> phi z <= b].

(* The bound by any sublinear H above the lines; h(t) = H(t, 1). *)
Lemma best_of_sublinear f c qmin (H : R -> R -> R) (U : finType) (P P' : U -> R) Q Q' :
  law_of_runs f -> 1 <= c -> dist P -> dist P' -> dist Q -> dist Q' -> dominates P P' Q Q' ->
  lower_edge P P' qmin -> sublinear H ->
  (forall q a b, 0 <= q <= 1 -> 0 <= a -> 0 <= b -> f^`().[q] * a - c * f^`().[qmin q] * b <= H a b) ->
  (forall a b, 0 <= a -> 0 <= b -> 0 <= H a b) ->
  \sum_y pos (best_of score tie f Q y - c * best_of score tie f Q' y) <= \sum_z H (P z) (P' z).
Proof.
move=> [f0 _] c1 dP dP' dQ dQ' dom edge sH lines H0.
apply: (@le_trans _ _ (\sum_y H (Q y) (Q' y))); last exact: lemma0.
apply: ler_sum => y _; apply: pos_le; last by rewrite H0 ?(dQ.1 y) ?(dQ'.1 y).
case: (release_density score tieP f c y dQ.1 dQ'.1) => u u01 ->; have tt := event_test score (score y) u01.
have q01 := prob_01 tt dQ; apply: le_trans (lines _ _ _ q01 (dQ.1 y) (dQ'.1 y)).
rewrite ler_add2l ler_opp2 -mulrA ler_wpmul2l ?(le_trans ler01) // ler_wpmul2r ?(dQ'.1 y) //.
apply: horner_mono; [exact: deriv_ge0 | exact: (edge _ q01).1 |].
exact: lower_edge_bounds edge dom dQ dQ'.1 tt.
Qed.

(* "No run" has probability f(0) on both data sets and contributes (1 - c)_+ f(0) = 0. *)
Lemma release_runs f c Q Q' : law_of_runs f -> 1 <= c ->
  hockey c (release f Q) (release f Q') = \sum_y pos (best_of score tie f Q y - c * best_of score tie f Q' y).
Proof.
move=> fP c1; rewrite /hockey (bigD1 None) //= pos_0 ?add0r; last first.
  by rewrite -{1}[f`_0]mul1r -mulrBl mulr_le0_ge0 ?subr_le0 // fP.1.
by rewrite (reindex_omap Some id) => [|[y|]] //=; apply: eq_bigl => y; rewrite eqxx.
Qed.

Section Phi.
Variables (f : {poly R}) (c : R) (qmin phi : R -> R) (U : finType) (P P' : U -> R) (Q Q' : T -> R).
Hypotheses (fP : law_of_runs f) (c1 : 1 <= c).
Hypotheses (dP : dist P) (dP' : dist P') (dQ : dist Q) (dQ' : dist Q') (dom : dominates P P' Q Q').
Hypotheses (edge : lower_edge P P' qmin) (lub : least_bound f qmin phi).

(* "h is a maximum of lines in t. So it is convex": a phi(c b / a) is the least upper bound of lines. *)
Let H a b := a * phi (c * b / a).
Let c0 : 0 <= c := le_trans ler01 c1.
Let z0 a b : 0 <= a -> 0 <= b -> 0 <= c * b / a.
Proof. by move=> a0 b0; rewrite divr_ge0 ?mulr_ge0. Qed.
Let H0 a b : 0 <= a -> 0 <= b -> 0 <= H a b.
Proof. by move=> a0 b0; case: (lub (z0 a0 b0)) => p0 _ _; rewrite mulr_ge0. Qed.
Let G0 q : 0 <= q <= 1 -> 0 <= f^`().[qmin q].
Proof. by move=> q01; apply: horner_ge0 (edge q01).1; exact: deriv_ge0 fP.1. Qed.

Let lines q a b : 0 <= q <= 1 -> 0 <= a -> 0 <= b -> f^`().[q] * a - c * f^`().[qmin q] * b <= H a b.
Proof.
move=> q01 a0 b0; case: (eqVneq a 0) => [->|an].
  by rewrite /H mulr0 mul0r sub0r oppr_le0 !mulr_ge0 ?G0.
case: (lub (z0 a0 b0)) => _ /(_ _ q01) h _; apply: le_trans (ler_wpmul2l a0 h).
by apply: le_of_eq; field.
Qed.

(* H is below every bound of the lines. *)
Let least a b d : 0 <= a -> 0 <= b -> 0 <= d ->
  (forall q, 0 <= q <= 1 -> f^`().[q] * a - c * f^`().[qmin q] * b <= d) -> H a b <= d.
Proof.
move=> a0 b0 d0 h; case: (eqVneq a 0) => [->|an]; first by rewrite /H mul0r.
have ap : 0 < a by rewrite lt_neqAle eq_sym an.
rewrite /H mulrC -ler_pdivl_mulr //; case: (lub (z0 a0 b0)) => _ _; apply; first by rewrite divr_ge0.
by move=> q q01; rewrite ler_pdivl_mulr //; apply: le_trans (h q q01); apply: le_of_eq; field.
Qed.

Let sH : sublinear H.
Proof.
split=> [k a b k0 a0 b0|a b a1 b1 a0 b0 a10 b10].
  case: (eqVneq k 0) => [->|kn]; first by rewrite /H !mul0r.
  case: (eqVneq a 0) => [->|an]; first by rewrite /H mulr0 !mul0r mulr0.
  have e : c * (k * b) / (k * a) = c * b / a by field; rewrite kn an.
  by rewrite /H e [RHS]mulrA.
apply: least; rewrite ?addr_ge0 ?H0 // => q q01.
by apply: le_by (ler_add (lines q01 a0 b0) (lines q01 a10 b10)) _; ring.
Qed.

(** delta_A(eps) <= E_{L ~ P} phi(e^(eps - L)), where e^(eps - L) = c P'/P. *)
Theorem best_of_bounded :
  hockey c (release f Q) (release f Q') <= \sum_z P z * phi (c * P' z / P z).
Proof.
rewrite release_runs //; exact: best_of_sublinear fP c1 dP dP' dQ dQ' dom edge sH lines H0.
Qed.

(** "Given K >= 1, f' and with it phi is divided by 1 - f(0)." *)
Theorem best_of_given_a_run : f`_0 < 1 ->
  hockey c (release_given_a_run f Q) (release_given_a_run f Q') <=
  (\sum_z P z * phi (c * P' z / P z)) / (1 - f`_0).
Proof.
move=> f1; have d0 : 0 <= (1 - f`_0)^-1 by rewrite invr_ge0 subr_ge0 ltW.
apply: le_trans (ler_wpmul2r d0 (best_of_sublinear fP c1 dP dP' dQ dQ' dom edge sH lines H0)).
rewrite mulr_suml; apply: ler_sum => y _; rewrite [X in _ <= X]mulrC -posM //.
by rewrite /release_given_a_run mulrBr ![_^-1 * _]mulrC mulrA.
Qed.
End Phi.

(** "Numerics, Hinges": any sum of hinges w_k (1 - z t_k)_+ above the lines gives the bound
    sum_k w_k H_{c t_k}(P || P'), with t_k = 1/z_k. *)
Theorem best_of_hinges f c qmin ws (U : finType) (P P' : U -> R) Q Q' :
  law_of_runs f -> 1 <= c -> dist P -> dist P' -> dist Q -> dist Q' -> dominates P P' Q Q' ->
  lower_edge P P' qmin -> weights ws ->
  (forall q z, 0 <= q <= 1 -> 0 <= z ->
    f^`().[q] - z * f^`().[qmin q] <= \sum_(k <- ws) k.1 * pos (1 - z * k.2)) ->
  hockey c (release f Q) (release f Q') <= \sum_(k <- ws) k.1 * hockey (c * k.2) P P'.
Proof.
move=> fP c1 dP dP' dQ dQ' dom edge w0 lines; have c0 : 0 <= c := le_trans ler01 c1.
pose vs := [seq (k.1, c * k.2) | k <- ws].
have v0 : weights vs.
  by apply/allP => _ /mapP[k /(allP w0)/andP[k1 k2] ->] /=; rewrite k1 mulr_ge0.
have sH := sublinear_hinges 0 0 v0.
have E a b : hinges 0 0 vs a b = \sum_(k <- ws) k.1 * pos (a - c * k.2 * b).
  by rewrite /hinges !mul0r !add0r big_map.
have H0 a b : 0 <= hinges 0 0 vs a b.
  by rewrite E big_seq; apply: sumr_ge0 => k /(allP w0)/andP[k1 _]; rewrite mulr_ge0 ?pos_ge0.
rewrite (release_runs _ _ fP c1); apply: le_trans (best_of_sublinear fP c1 dP dP' dQ dQ' dom edge sH _ _) _.
- move=> q a b q01 a0 b0; case: (eqVneq a 0) => [->|an].
    apply: le_trans (H0 0 b); rewrite mulr0 sub0r oppr_le0 !mulr_ge0 //.
    by apply: horner_ge0 (edge q q01).1; exact: deriv_ge0 fP.1.
  have z0 : 0 <= c * b / a by rewrite divr_ge0 ?mulr_ge0.
  apply: le_trans (le_trans (ler_wpmul2l a0 (lines q _ q01 z0)) _).
    by apply: le_of_eq; field.
  rewrite E mulr_sumr; apply: ler_sum => k _; rewrite mulrCA -(posM _ a0).
  by apply: le_of_eq; congr (_ * pos _); field.
- by move=> a b _ _; exact: H0.
under eq_bigr do rewrite E.
by rewrite exchange_big; apply: ler_sum => k _; rewrite -mulr_sumr.
Qed.

(** "The larger value of both orders of the neighbours counts." *)
Theorem best_of_private (X : Type) (nb : X -> X -> Prop) (M : X -> T -> R) f c qmin qmin1 phi phi1
    (U V : finType) (P P' : U -> R) (S S' : V -> R) :
  law_of_runs f -> 1 <= c -> dist P -> dist P' -> dist S -> dist S' -> (forall x, dist (M x)) ->
  (forall x x', nb x x' -> dominates P P' (M x) (M x')) ->
  (forall x x', nb x x' -> dominates S S' (M x') (M x)) ->
  lower_edge P P' qmin -> least_bound f qmin phi -> lower_edge S S' qmin1 -> least_bound f qmin1 phi1 ->
  private (fun x x' => nb x x' \/ nb x' x) (fun x => release f (M x)) c
    (Num.max (\sum_z P z * phi (c * P' z / P z)) (\sum_z S z * phi1 (c * S' z / S z))).
Proof.
move=> fP c1 dP dP' dS dS' dM d1 d2 e1 l1 e2 l2 x x' [|] h; rewrite le_maxr; apply/orP.
  by left; apply: best_of_bounded (d1 _ _ h) e1 l1.
by right; apply: best_of_bounded (d2 _ _ h) e2 l2.
Qed.
End Theorem1.

Print Assumptions best_of_bounded.
Print Assumptions best_of_given_a_run.
Print Assumptions best_of_hinges.
Print Assumptions best_of_private.
