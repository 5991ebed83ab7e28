(** docs/theory/threshold.md: Theorem 3, stop at the first good candidate. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem3.
Variables (R : realFieldType) (T : finType) (good : pred T) (p : R).
Hypotheses (p0 : 0 < p) (p1 : p <= 1).
Implicit Types (Q : T -> R) (c : R).

(** "Before each run a coin with probability p ends the search without a result. Otherwise Q runs. If its
    score reaches a threshold, its outcome is released; if not, it is forgotten." After m rounds: *)
Fixpoint rounds Q m (o : option T) : R :=
  if m is m'.+1 then
    (if o is Some y then (1 - p) * (if good y then Q y else 0) else p) +
    (1 - p) * (\sum_(y | ~~ good y) Q y) * rounds Q m' o
  else 0.

(** t = Q(S), s = p + (1-p) t, and the release: "none" with p/s, y in S with (1-p) Q(y)/s. *)
Definition accept Q := \sum_(y | good y) Q y.
Definition ends Q := p + (1 - p) * accept Q.
Definition released Q (o : option T) : R :=
  if o is Some y then (1 - p) * (if good y then Q y else 0) / ends Q else p / ends Q.

Lemma accept_01 Q : dist Q -> 0 <= accept Q <= 1.
Proof.
case=> Q0 Q1; rewrite sumr_ge0 //= -Q1 [X in _ <= X](bigID good) /= ler_addl; exact: sumr_ge0.
Qed.

Lemma ends_gt0 Q : dist Q -> 0 < ends Q.
Proof.
move=> dQ; case/andP: (accept_01 dQ) => t0 _.
by rewrite ltr_spaddl // mulr_ge0 // subr_ge0.
Qed.

(* After m rounds a share (1 - s)^m of the release is missing: it is the limit of [rounds]. *)
Lemma rounds_released Q m o : dist Q -> rounds Q m o = released Q o * (1 - (1 - ends Q) ^+ m).
Proof.
move=> dQ; have s0 := ends_gt0 dQ.
have bad : \sum_(y | ~~ good y) Q y = 1 - accept Q.
  by rewrite -dQ.2 [X in X - _](bigID good) /= addrC addKr.
have e : (1 - p) * (1 - accept Q) = 1 - ends Q by rewrite /ends; ring.
elim: m => [|m ih] /=; first by rewrite expr0 subrr mulr0.
rewrite ih bad e exprS; case: o {ih} => [y|] /=; field; exact: lt0r_neq0.
Qed.

(** A and B of the theorem. *)
Definition A_ (e r stop : R) := (p * stop + (1 - p) * e) /
  ((p * stop + (1 - p) * e) + (p * (1 - stop) + (1 - p) * r)).
Definition B_ (qmin qmax : R -> R) (e r stop : R) := (p * stop + (1 - p) * qmin e) /
  ((p * stop + (1 - p) * qmin e) + (p * (1 - stop) + (1 - p) * qmax r)).

(* "A'(E) grows with e' and falls with r'." *)
Lemma share_mono (x y x1 y1 : R) : 0 <= x -> x <= x1 -> 0 <= y1 -> y1 <= y -> 0 < x + y -> 0 < x1 + y1 ->
  x / (x + y) <= x1 / (x1 + y1).
Proof.
move=> x0 xx y10 yy d0 d1; rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
by rewrite !mulrDr [x1 * x]mulrC ler_add2l ler_pmul.
Qed.

Section Bound.
Variables (Q Q' : T -> R) (c d : R) (U : finType) (P P' : U -> R) (qmin qmax : R -> R).
Hypotheses (dQ : dist Q) (dQ' : dist Q') (c0 : 0 <= c).
Hypotheses (dom : dominates P P' Q Q') (lo : lower_edge P P' qmin) (up : upper_edge P P' qmax).

(** Theorem 3: delta(eps) <= sup over e, r in [0, 1] and stop in {0, 1} of A - c B, here any upper
    bound d of these numbers. *)
Theorem threshold_bounded :
  (forall e r (stop : bool), 0 <= e <= 1 -> 0 <= r <= 1 ->
     A_ e r stop%:R - c * B_ qmin qmax e r stop%:R <= d) ->
  hockey c (released Q) (released Q') <= d.
Proof.
move=> bound; apply: hockey_bounded => E.
pose e (F : T -> R) := \sum_(y | good y && E (Some y)) F y.
pose r (F : T -> R) := \sum_(y | good y && ~~ E (Some y)) F y.
have split (F : T -> R) : accept F = e F + r F by rewrite /accept (bigID (fun y => E (Some y))).
have event (F : T -> R) : \sum_(o | E o) released F o = A_ (e F) (r F) (E None)%:R.
  have -> : A_ (e F) (r F) (E None)%:R = (p * (E None)%:R + (1 - p) * e F) / ends F.
    by rewrite /A_ /ends split; congr (_ / _); ring.
  rewrite big_mkcond (bigD1 None) //= mulrDl; congr (_ + _).
    by case: (E None); rewrite ?mulr1 ?mulr0 ?mul0r.
  rewrite (reindex_omap Some id) => [|[y|]] //=.
  rewrite (eq_bigl predT) => [|y]; last by rewrite eqxx.
  rewrite /e mulr_sumr mulr_suml [RHS]big_mkcond /=; apply: eq_bigr => y _.
  by case: (good y); case: (E (Some y)); rewrite /= ?mulr0 ?mul0r.
have test_of (S : pred T) : test (fun y => (S y)%:R : R) by move=> y; case: (S y); rewrite ?lexx ler01.
have prob_of (S : pred T) (F : T -> R) : \sum_(y | S y) F y = prob (fun y => (S y)%:R) F.
  by rewrite big_mkcond /=; apply: eq_bigr => y _; case: (S y); rewrite ?mul1r ?mul0r.
have [te tr] := (test_of (fun y => good y && E (Some y)), test_of (fun y => good y && ~~ E (Some y))).
have [e01 r01] : 0 <= e Q <= 1 /\ 0 <= r Q <= 1 by rewrite /e /r !prob_of !prob_01.
have [e01' r01'] : 0 <= e Q' <= 1 /\ 0 <= r Q' <= 1 by rewrite /e /r !prob_of !prob_01.
have e_lo : qmin (e Q) <= e Q' by rewrite /e !prob_of; exact: lower_edge_bounds lo dom dQ dQ'.1 te.
have r_up : r Q' <= qmax (r Q) by rewrite /r !prob_of; exact: upper_edge_bounds up dom dQ dQ' tr.
apply: le_trans (bound _ _ (E None) e01 r01).
rewrite !event ler_add2l ler_opp2 ler_wpmul2l //.
have qmin0 := (lo e01).1; case/andP: e01' => e0' _; case/andP: r01' => r0' _.
have np : 0 <= 1 - p by rewrite subr_ge0.
have [s0 s1] : 0 <= p * (E None)%:R /\ 0 <= p * (1 - (E None)%:R).
  by case: (E None); rewrite ?subrr ?subr0 ?mulr0 ?mulr1 ?lexx ltW.
have pE : p * (E None)%:R + p * (1 - (E None)%:R) = p by ring.
apply: share_mono.
- by rewrite addr_ge0 // mulr_ge0.
- by rewrite ler_add2l ler_wpmul2l.
- by rewrite addr_ge0 // mulr_ge0.
- by rewrite ler_add2l ler_wpmul2l.
- by rewrite addrACA pE ltr_spaddl // addr_ge0 // mulr_ge0 // (le_trans r0').
- by rewrite addrACA pE ltr_spaddl // addr_ge0 // mulr_ge0.
Qed.
End Bound.

(** "Exact form for pure bases", a = e^eps0: the search is a (a + p) / (1 + p a)-DP. *)
Theorem threshold_pure Q Q' a : dist Q -> dist Q' -> 1 <= a ->
  (forall y, Q y <= a * Q' y) -> (forall y, Q' y <= a * Q y) ->
  forall o, released Q o <= a * ((a + p) / (1 + p * a)) * released Q' o.
Proof.
move=> dQ dQ' a1 h h' o; have a0 : 0 <= a := le_trans ler01 a1.
have [s0 s0'] := (ends_gt0 dQ, ends_gt0 dQ'); have np : 0 <= 1 - p by rewrite subr_ge0.
have d0 : 0 < 1 + p * a by rewrite ltr_spaddl ?ltr01 // mulr_ge0 // ltW.
(* "s'/s is largest at the corner t = 1/(1 + a), t' = a t of the testing region" *)
have tt' : accept Q' <= a * accept Q by rewrite mulr_sumr; apply: ler_sum => y _.
have rest (F : T -> R) : dist F -> \sum_(y | ~~ good y) F y = 1 - accept F.
  by case=> _ <-; rewrite [X in X - _](bigID good) /= addrC addKr.
have tt : a * accept Q' <= a - 1 + accept Q.
  have : \sum_(y | ~~ good y) Q y <= a * \sum_(y | ~~ good y) Q' y.
    by rewrite mulr_sumr; apply: ler_sum => y _.
  by rewrite !rest // => h0; apply: (le_by h0); ring.
have corner : ends Q' * (1 + p * a) <= (a + p) * ends Q.
  have h0 := ler_add tt' (ler_wpmul2l (ltW p0) tt).
  have h1 : 0 <= (1 - p) * (a * accept Q + p * (a - 1 + accept Q) - (accept Q' + p * (a * accept Q'))).
    by rewrite mulr_ge0 // subr_ge0.
  by rewrite -subr_ge0; apply: le_trans h1 (le_of_eq _); rewrite /ends; ring.
have ratio : ends Q' / ends Q <= (a + p) / (1 + p * a).
  by rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr.
have k0 : 0 <= (a + p) / (1 + p * a) := divr_ge0 (addr_ge0 a0 (ltW p0)) (ltW d0).
have main u u' : 0 <= u' -> u <= a * u' ->
    u / ends Q <= a * ((a + p) / (1 + p * a)) * (u' / ends Q').
  move=> u0 uu; have -> : u / ends Q = u * (ends Q' / ends Q) * (ends Q')^-1 by field; rewrite !gt_eqF.
  rewrite [X in _ <= X]mulrA ler_wpmul2r ?invr_ge0 ?(ltW s0') //.
  apply: le_trans (ler_wpmul2r _ uu) _; first by rewrite divr_ge0 // ltW.
  by rewrite -[X in _ <= X]mulrA -[X in X <= _]mulrA ler_wpmul2l // [X in _ <= X]mulrC ler_wpmul2l.
case: o => [y|] /=; apply: main.
- by rewrite mulr_ge0 //; case: ifP => // _; exact: dQ'.1.
- by rewrite mulrCA ler_wpmul2l //; case: ifP => // _; rewrite mulr0.
- exact: ltW.
- by rewrite ler_pemull // ltW.
Qed.
End Theorem3.

Print Assumptions threshold_bounded.
Print Assumptions threshold_pure.
Print Assumptions rounds_released.
