(** docs/theory/doubling.md, "The whole walk": its pure cost, and its profile at delta > 0. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions doubling_walk.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Profile.
Variables (R : realFieldType) (n : nat) (h : R).
Hypothesis h1 : 1 < h. (* e^(eps/2) *)
Implicit Types (c d p : R) (o : bool).

(** Losses of an accept stay within +-eps, those of a reject within +-eps/2. *)
Definition e o : R := if o then h ^+ 2 else h.

(** p e^-eps_o + (1 - p) e^eps_o' = 1. *)
Definition share o o' : R := (e o' - 1) / (e o' - (e o)^-1).
Definition two_atoms (K : bool -> R -> R) c o o' : R :=
  share o o' * K o (c / e o) + (1 - share o o') * K o' (c * e o').
Definition worst_atoms K c : R := Num.max (Num.max (two_atoms K c true true) (two_atoms K c true false))
  (Num.max (two_atoms K c false true) (two_atoms K c false false)).

(** H_s(c), for m more rounds from t rounds with r rejects; at the end H = (1 - c)_+. *)
Fixpoint curve (m t r : nat) c : R :=
  if m is m'.+1 then
    if lowest n t r == None then pos (1 - c)
    else worst_atoms (fun o => curve m' t.+1 (r + ~~ o)%N) c
  else pos (1 - c).

Definition convex (K : R -> R) := forall s x y, 0 <= s <= 1 -> 0 <= x -> 0 <= y ->
  K (s * x + (1 - s) * y) <= s * K x + (1 - s) * K y.

Let e1 o : 1 < e o. Proof. by case: o; rewrite /e ?h1 // exprn_egt1. Qed.
Let e0 o : 0 < e o. Proof. exact: lt_trans ltr01 (e1 o). Qed.
Let inv1 o : 0 < (e o)^-1 < 1. Proof. by rewrite invr_gt0 e0 invf_lt1 ?e1 ?e0. Qed.
Let gap o o' : 0 < e o' - (e o)^-1.
Proof. by rewrite subr_gt0; apply: lt_trans (e1 o'); case/andP: (inv1 o). Qed.

Lemma share_01 o o' : 0 <= share o o' <= 1.
Proof.
have g := gap o o'; rewrite /share; apply/andP; split; first by apply: divr_ge0 (ltW g); rewrite subr_ge0 ltW ?e1.
rewrite ler_pdivr_mulr // mul1r.
by rewrite ler_add2l ler_opp2; case/andP: (inv1 o) => _ /ltW.
Qed.

Lemma two_le_worst K c o o' : two_atoms K c o o' <= worst_atoms K c.
Proof. by rewrite /worst_atoms !le_maxr; case: o; case: o'; rewrite lexx ?orbT. Qed.

Lemma worst_le K c d : (forall o o', two_atoms K c o o' <= d) -> worst_atoms K c <= d.
Proof. by move=> k; rewrite /worst_atoms !le_maxl !k. Qed.

Lemma pos_convex : convex (fun c => pos (1 - c)).
Proof.
move=> s x y /andP[s0 s1] _ _; have r0 : 0 <= 1 - s by rewrite subr_ge0.
rewrite -!posM //; apply: le_trans (posD _ _); apply/pos_mono/le_of_eq; ring.
Qed.

(* "Each z -> H(c z) is convex." *)
Lemma curve_convex m t r : convex (curve m t r).
Proof.
elim: m t r => [|m ih] t r; first exact: pos_convex.
rewrite /=; case: eqP => _; first exact: pos_convex.
move=> s x y s01 x0 y0; apply: worst_le => o o'; case/andP: (s01) => s0 s1; case/andP: (share_01 o o') => w0 w1.
have [r0 v0] : 0 <= 1 - s /\ 0 <= 1 - share o o' by rewrite !subr_ge0.
have i0 : 0 <= (e o)^-1 by rewrite invr_ge0 ltW.
have step (K : R -> R) k : convex K -> 0 <= k ->
    K ((s * x + (1 - s) * y) * k) <= s * K (x * k) + (1 - s) * K (y * k).
  move=> cK k0; have -> : (s * x + (1 - s) * y) * k = s * (x * k) + (1 - s) * (y * k) by ring.
  by apply: cK; rewrite ?mulr_ge0.
have a1 := ler_wpmul2l w0 (step _ _ (ih t.+1 (r + ~~ o)%N) i0).
have a2 := ler_wpmul2l v0 (step _ _ (ih t.+1 (r + ~~ o')%N) (ltW (e0 o'))).
apply: le_trans (ler_add (ler_wpmul2l s0 (two_le_worst _ x o o')) (ler_wpmul2l r0 (two_le_worst _ y o o'))).
apply: le_trans (ler_add a1 a2) (le_of_eq _); rewrite /two_atoms /=.
move: (curve _ _ _ (y * _)) (curve _ _ _ (x * _)) (curve _ _ _ (y / _)) (curve _ _ _ (x / _)) (share _ _).
by move=> k1 k2 k3 k4 w; ring.
Qed.

(* A walk that is over has lost least. *)
Lemma curve_end m t r c : 0 <= c -> pos (1 - c) <= curve m t r c.
Proof.
elim: m t r c => [//|m ih] t r c c0 /=; case: eqP => _ //.
apply: le_trans (two_le_worst _ c true true); rewrite /two_atoms.
case/andP: (share_01 true true) => w0 w1; have v0 : 0 <= 1 - share true true by rewrite subr_ge0.
apply: (@le_trans _ _ (share true true * pos (1 - c / e true) + (1 - share true true) * pos (1 - c * e true))).
  rewrite -!posM //; apply: le_trans (posD _ _); apply/pos_mono/le_of_eq.
  have g := gap true true; have n0 := e0 true; rewrite /share.
  have g2 : e true ^+ 2 - 1 != 0.
    by rewrite gt_eqF // subr_gt0 exprn_egt1 // e1.
  field; rewrite gt_eqF //=; apply: contraNneq g2 => k; rewrite -k; ring.
have e00 := ltW (e0 true); apply: ler_add; apply: ler_wpmul2l => //; apply: ih.
  exact: divr_ge0.
exact: mulr_ge0.
Qed.

(** One round: a chord, then two atoms. V o bounds the rest's curve after outcome o. *)
Lemma one_round_bound (X : finType) (acc : X -> bool) (P Q : X -> R) (V : bool -> R -> R) c : 0 <= c ->
  dist P -> dist Q -> (forall o, convex (V o)) ->
  (forall x, Q x <= e (acc x) * P x /\ P x <= e (acc x) * Q x) ->
  \sum_x P x * V (acc x) (c * (Q x / P x)) <= worst_atoms V c.
Proof.
move=> c0 [P0 P1] [_ Q1] cV near; set d := worst_atoms V c.
(* a line d + l (z - 1) above the four atoms *)
pose up o := (V o (c * e o) - d) / (e o - 1); pose l := Num.max (up true) (up false).
have upl o : up o <= l by rewrite /l le_maxr; case: o; rewrite lexx ?orbT.
have l_low o : l * (1 - (e o)^-1) <= d - V o (c / e o).
  have [_ i1] := andP (inv1 o); have g0 : 0 < 1 - (e o)^-1 by rewrite subr_gt0.
  rewrite -ler_pdivl_mulr // /l le_maxl.
  have main o' : up o' * (1 - (e o)^-1) <= d - V o (c / e o).
    have w := two_le_worst V c o o'; rewrite -/d /two_atoms in w.
    have q1 : 0 < e o' - 1 by rewrite subr_gt0.
    rewrite /up mulrAC ler_pdivr_mulr //.
    have g := gap o o'; have := ler_wpmul2r (ltW g) w.
    have -> : (share o o' * V o (c / e o) + (1 - share o o') * V o' (c * e o')) * (e o' - (e o)^-1) =
        (e o' - 1) * V o (c / e o) + (1 - (e o)^-1) * V o' (c * e o').
      have k : share o o' * (e o' - (e o)^-1) = e o' - 1 by rewrite /share divfK // gt_eqF.
      transitivity (share o o' * (e o' - (e o)^-1) * V o (c / e o) +
        (e o' - (e o)^-1 - share o o' * (e o' - (e o)^-1)) * V o' (c * e o')); first by ring.
      by rewrite k; ring.
    by move=> w1; apply: (le_by w1); ring.
  by rewrite !ler_pdivl_mulr // !main.
have l_up o : V o (c * e o) <= d + l * (e o - 1).
  have q1 : 0 < e o - 1 by rewrite subr_gt0.
  by rewrite addrC -ler_subl_addr -ler_pdivr_mulr // upl.
have line o z : (e o)^-1 <= z -> z <= e o -> V o (c * z) <= d + l * (z - 1).
  move=> z1 z2; have g := gap o o; have gn := lt0r_neq0 g.
  pose s := (e o - z) / (e o - (e o)^-1).
  have sg : s * (e o - (e o)^-1) = e o - z by rewrite /s divfK.
  have s01 : 0 <= s <= 1.
    rewrite /s; apply/andP; split; first by apply: divr_ge0 (ltW g); rewrite subr_ge0.
    by rewrite ler_pdivr_mulr // mul1r ler_add2l ler_opp2.
  have zE : c * z = s * (c / e o) + (1 - s) * (c * e o).
    have -> : z = e o - s * (e o - (e o)^-1) by rewrite sg; ring.
    by ring.
  have e00 := ltW (e0 o); rewrite zE; apply: le_trans (cV o _ _ _ s01 (divr_ge0 c0 e00) (mulr_ge0 c0 e00)) _.
  have [s0 s1] := andP s01; have r0 : 0 <= 1 - s by rewrite subr_ge0.
  have low : V o (c / e o) <= d + l * ((e o)^-1 - 1) by apply: (le_by (l_low o)); ring.
  apply: le_trans (ler_add (ler_wpmul2l s0 low) (ler_wpmul2l r0 (l_up o))) (le_of_eq _).
  have -> : z = e o - s * (e o - (e o)^-1) by rewrite sg; ring.
  by ring.
apply: (@le_trans _ _ (\sum_x (d * P x + l * (Q x - P x)))); last first.
  by rewrite big_split /= -!mulr_sumr sumrB P1 Q1 subrr mulr0 addr0 mulr1.
apply: ler_sum => x _; case: (near x) => n1 n2; have := P0 x; rewrite le_eqVlt => /orP[/eqP px|px].
  have q0 : Q x = 0.
    apply/eqP; rewrite eq_le; move: n1 n2; rewrite -px mulr0 => -> n2 /=.
    by rewrite -(pmulr_rge0 _ (e0 (acc x))).
  by rewrite -px q0 mul0r mulr0 subrr mulr0 addr0.
have -> : d * P x + l * (Q x - P x) = P x * (d + l * (Q x / P x - 1)) by field; rewrite gt_eqF.
rewrite ler_wpmul2l ?(ltW px) // line //; last by rewrite ler_pdivr_mulr.
by rewrite ler_pdivl_mulr // mulrC ler_pdivr_mulr // mulrC.
Qed.
End Profile.
