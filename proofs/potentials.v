(** docs/theory/potentials.md: Theorem 5, potentials. *)
From mathcomp Require Import all_ssreflect all_algebra polyrcf.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions loss_distributions testing_region best_of_release best_of_density.
From Proofs Require Import best_of potentials_cut.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem5.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Local Notation cell := (seq (R * R * R) * (R * R * R))%type.

Variables (f : {poly R}) (c : R) (U : finType) (P P' : U -> R) (Q Q' : T -> R).
Hypotheses (fP : law_of_runs f) (c1 : 1 <= c).
Hypotheses (dP : dist P) (dP' : dist P') (dQ : dist Q) (dQ' : dist Q') (dom : dominates P P' Q Q').

(** W is linear on each of finitely many cells, which cover the region. *)
Variables (W : R -> R -> R) (cells : seq cell).
Hypothesis linW : piecewise_linear cells W.
Hypothesis cover : forall q q', in_region P P' q q' -> exists2 k, k \in cells & inside k q q'.

(** h(t) = max over (q, q') of (t f'(q) - c f'(q'))_+ - t W_q - W_q', as a function of two numbers with
    h(t) = H(t, 1); "where W has a kink, both sides count". *)
Definition gain (k : cell) q q' a b := pos (f^`().[q] * a - c * f^`().[q'] * b) - Wq k * a - Wq' k * b.
Definition above_gains (H : R -> R -> R) := forall (k : cell) q q' a b,
  k \in cells -> in_region P P' q q' -> inside k q q' -> 0 <= a -> 0 <= b -> gain k q q' a b <= H a b.

Lemma event_in_region s u : 0 <= u <= 1 ->
  in_region P P' (prob (event score s u) Q) (prob (event score s u) Q').
Proof.
move=> u01; have tt := event_test score s u01; have dom1 := dominates_sym dP dP' dQ dQ' dom.
have [/andP[q0 _] /andP[q0' _]] := (prob_01 tt dQ, prob_01 tt dQ'); split=> // d d0; split.
  exact: le_trans (hockey_test _ _ _ tt) (dom d0).
exact: le_trans (hockey_test _ _ _ tt) (dom1 d d0).
Qed.

(* The outcomes of one score, as the coin for their ties runs from 0 to 1. *)
Lemma one_score (H : R -> R -> R) s : above_gains H ->
  \sum_(y | score y == s) pos (best_of score tie f Q y - c * best_of score tie f Q' y) <=
  \sum_(y | score y == s) H (Q y) (Q' y) +
  (W (up_to score Q s) (up_to score Q' s) - W (below score Q s) (below score Q' s)).
Proof.
move=> hH; pose wins y := 0 < best_of score tie f Q y - c * best_of score tie f Q' y.
pose A : {poly R} := \sum_(y | (score y == s) && wins y) (share score f Q y - c *: share score f Q' y).
pose G u := A.[u] - W (below score Q s + u * at_ score Q s) (below score Q' s + u * at_ score Q' s).
pose B := \sum_(y | score y == s) H (Q y) (Q' y).
have A10 : A.[1] - A.[0] =
    \sum_(y | score y == s) pos (best_of score tie f Q y - c * best_of score tie f Q' y).
  rewrite /A !horner_sum -sumrB big_mkcondr /=; apply: eq_bigr => y _; rewrite /wins; case: ltP => h.
    rewrite pos_id ?ltW // -(share_increment score tieP f y dQ.1) -(share_increment score tieP f y dQ'.1).
    by rewrite !hornerE /=; ring.
  by rewrite pos_0.
suff : G 1 - G 0 <= B.
  rewrite /G !mul1r !mul0r !addr0 -!up_toE => g; rewrite -A10 -ler_subl_addr -/B.
  by apply: (le_by g); ring.
apply: (@pieces R (below score Q s) (at_ score Q s) (below score Q' s) (at_ score Q' s) G B cells) => [w w01|u v k u0 uv v1 kin ink].
  by rewrite -!prob_event; apply: cover; exact: event_in_region.
pose L : {poly R} := (Wq k * at_ score Q s + Wq' k * at_ score Q' s) *: 'X +
  ((linear k).2 + Wq k * below score Q s + Wq' k * below score Q' s)%:P.
have GE w : u <= w <= v -> G w = (A - L).[w].
  move=> wuv; rewrite /G (linW kin (ink w wuv)) hornerD hornerN /L !hornerE /= /value /Wq /Wq' /linear.
  by case: (k) => ss [[l1 l2] l3] /=; move: A.[w] => z; ring.
rewrite !GE ?lexx ?(ltW uv) //; case: (mvt (A - L) uv) => x; rewrite in_itv /= => /andP[ux xv] ->.
apply: ler_wpmul2r; first by rewrite subr_ge0 ltW.
have x01 : 0 <= x <= 1 by rewrite (le_trans u0 (ltW ux)) (le_trans (ltW xv) v1).
have inx := ink x; rewrite -!prob_event in inx; have {}inx := inx _.
rewrite derivB /L derivD derivC addr0 derivZ derivX !hornerE /= /A raddf_sum horner_sum.
rewrite {1 2}/at_ !mulr_sumr -big_split /= big_mkcondr -sumrB; apply: ler_sum => y /eqP ys.
have hy : gain k (prob (event score s x) Q) (prob (event score s x) Q') (Q y) (Q' y) <= H (Q y) (Q' y).
  apply: hH => //; [exact: event_in_region | by apply: inx; rewrite !ltW | exact: dQ.1 | exact: dQ'.1].
apply: le_trans hy; rewrite /gain -addrA -opprD ler_add2r; case: ifP => _; last exact: pos_ge0.
apply: le_trans (le_pos _); apply: le_of_eq; rewrite derivB derivZ !hornerE /=.
by rewrite !share_deriv ?ys; [ring | exact: dQ'.1 | exact: dQ.1].
Qed.

(* The path from (0, 0) to (1, 1), by rising score. *)
Lemma path_ends (F : T -> R) : dist F -> below score F 0 = 0 /\
  forall m, (forall y, (score y < m)%N) -> below score F m = 1.
Proof.
move=> [F0 F1]; split; first by apply: big_pred0 => y; rewrite ltn0.
by move=> m hm; rewrite /below -F1; apply: eq_bigl => y; exact: hm.
Qed.

Lemma all_scores (H : R -> R -> R) m : above_gains H -> 
  \sum_(y | (score y < m)%N) pos (best_of score tie f Q y - c * best_of score tie f Q' y) <=
  \sum_(y | (score y < m)%N) H (Q y) (Q' y) +
  (W (below score Q m) (below score Q' m) - W (below score Q 0) (below score Q' 0)).
Proof.
move=> hH; elim: m => [|m ih]; first by rewrite !big_pred0 ?subrr ?addr0 // => y; rewrite ltn0.
have split (F : T -> R) : \sum_(y | (score y < m.+1)%N) F y =
    \sum_(y | (score y < m)%N) F y + \sum_(y | score y == m) F y.
  rewrite (bigID (fun y => (score y < m)%N)) /=; congr (_ + _); apply: eq_bigl => y.
    by rewrite ltnS andb_idl // => /ltnW.
  by rewrite ltnS -leqNgt eqn_leq.
have step (F : T -> R) : below score F m.+1 = up_to score F m by apply: eq_bigl => y; rewrite ltnS.
rewrite !split !step; apply: le_trans (ler_add ih (one_score m hH)) (le_of_eq _).
by rewrite [LHS]addrACA; congr (_ + _); rewrite [LHS]addrC addrA subrK.
Qed.

Lemma gain_sublinear k q q' : sublinear (gain k q q').
Proof.
rewrite /gain; move: f^`().[q] (c * f^`().[q']) (Wq k) (Wq' k) => x x' l l'.
split=> [z a b z0 _ _|a b a1 b1 _ _ _ _].
  by rewrite !mulrBr -posM // mulrBr ![z * (_ * _)]mulrCA.
have -> : x * (a + a1) - x' * (b + b1) = x * a - x' * b + (x * a1 - x' * b1) by ring.
have := posD (x * a - x' * b) (x * a1 - x' * b1).
move: (pos (_ + _)) (pos (x * a - _)) (pos (x * a1 - _)) => p1 p2 p3 h.
by apply: (le_by h); ring.
Qed.

(* The bound by any sublinear H above the gains. *)
Lemma potential_sublinear H : sublinear H -> above_gains H ->
  hockey c (release score tie f Q) (release score tie f Q') <= W 1 1 - W 0 0 + \sum_z H (P z) (P' z).
Proof.
move=> sH hH; rewrite (release_runs score tie Q Q' fP c1).
pose m := (\max_y score y).+1; have hm y : (score y < m)%N by rewrite ltnS leq_bigmax.
have := all_scores m hH.
rewrite (path_ends dQ).1 (path_ends dQ').1 (path_ends dQ).2 // (path_ends dQ').2 //.
have all_y (F : T -> R) : \sum_(y | (score y < m)%N) F y = \sum_y F y by apply: eq_bigl => y; rewrite hm.
rewrite !all_y => h; by apply: le_trans h _; rewrite addrC ler_add2l; exact: lemma0.
Qed.

(** Theorem 5: delta(eps) <= W(1, 1) - W(0, 0) + E h(X* ), counting the mass of P at infinity with the
    slope of h there. *)
Theorem potential_bounded H :
  (forall a b, 0 <= a -> 0 <= b ->
    (forall k q q', k \in cells -> in_region P P' q q' -> inside k q q' -> gain k q q' a b <= H a b) /\
    forall d, (forall k q q', k \in cells -> in_region P P' q q' -> inside k q q' -> gain k q q' a b <= d) ->
      H a b <= d) ->
  hockey c (release score tie f Q) (release score tie f Q') <= W 1 1 - W 0 0 + \sum_z H (P z) (P' z).
Proof.
move=> lub; apply: potential_sublinear; last first.
  by move=> k q q' a b kin reg ink a0 b0; apply: (lub a b a0 b0).1.
pose I := {x : cell * R * R | [/\ x.1.1 \in cells, in_region P P' x.1.2 x.2 & inside x.1.1 x.1.2 x.2]}.
apply: (@sublinear_lub R I (fun x => gain (sval x).1.1 (sval x).1.2 (sval x).2)) => [x|a b a0 b0].
  exact: gain_sublinear.
split=> [[[[k q] q'] [kin reg ink]]|d h] /=; first exact: (lub a b a0 b0).1.
apply: (lub a b a0 b0).2 => k q q' kin reg ink.
by apply: (h (exist _ (k, q, q') (And3 kin reg ink))).
Qed.
End Theorem5.

Print Assumptions potential_sublinear.
Print Assumptions potential_bounded.
