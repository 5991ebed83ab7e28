(** docs/theory/loss_distributions.md, Lemma 0: convex functions of a likelihood ratio, and "write h(t) =
    h(0) + h'(0) t + integral of hinges" at finitely many points. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Convex_functions.
Variable R : realFieldType.
Implicit Types (a b c t w : R) (T U : finType).

(** E h(X), "where the mass at infinity counts with h's slope at infinity", for a convex h on
    [0, oo): sum_x H(Q x, Q' x), where H(a, b) = b h(a / b) and H(a, 0) = a times the slope. Such an H
    is positively homogeneous and subadditive. *)
Record sublinear (H : R -> R -> R) : Prop := Sublinear {
  homogeneous : forall k a b, 0 <= k -> 0 <= a -> 0 <= b -> H (k * a) (k * b) = k * H a b;
  subadditive : forall a b a1 b1, 0 <= a -> 0 <= b -> 0 <= a1 -> 0 <= b1 ->
    H (a + a1) (b + b1) <= H a b + H a1 b1 }.

(** What the code computes: a line and finitely many hinges. *)
Definition hinges (l m : R) (ws : seq (R * R)) a b :=
  l * a + m * b + \sum_(z <- ws) z.1 * pos (a - z.2 * b).
Definition weights (ws : seq (R * R)) := all (fun z => (0 <= z.1) && (0 <= z.2)) ws.

Lemma sublinear_hinges l m ws : weights ws -> sublinear (hinges l m ws).
Proof.
move=> w0; split=> [k a b k0 _ _|a b a1 b1 _ _ _ _]; rewrite /hinges.
  rewrite !mulrDr mulr_sumr; congr (_ + _ + _); [exact: mulrCA | exact: mulrCA | apply: eq_bigr => z _].
  by rewrite [z.2 * _]mulrCA -mulrBr posM // mulrCA.
rewrite !mulrDr [X in _ <= X]addrACA -big_split /=; apply: ler_add; first by rewrite addrACA.
rewrite !big_seq; apply: ler_sum => z /(allP w0)/andP[z1 z2]; rewrite -mulrDr ler_wpmul2l //.
by apply: le_trans (posD _ _); apply/pos_mono/le_of_eq; ring.
Qed.

(** A pointwise least upper bound of sublinear functions, e.g. of lines in t, is sublinear. *)
Lemma sublinear_lub (I : Type) (F : I -> R -> R -> R) (H : R -> R -> R) : (forall i, sublinear (F i)) ->
  (forall a b, 0 <= a -> 0 <= b -> (forall i, F i a b <= H a b) /\
     forall d, (forall i, F i a b <= d) -> H a b <= d) -> sublinear H.
Proof.
move=> sF lub; split=> [k a b k0 a0 b0|a b a1 b1 a0 b0 a10 b10]; last first.
  apply: (lub _ _ (addr_ge0 a0 a10) (addr_ge0 b0 b10)).2 => i.
  by apply: le_trans (subadditive (sF i) a0 b0 a10 b10) _; rewrite ler_add ?(lub _ _ _ _).1.
have [up low] := lub a b a0 b0; have [upk lowk] := lub _ _ (mulr_ge0 k0 a0) (mulr_ge0 k0 b0).
apply/eqP; rewrite eq_le; apply/andP; split.
  by apply: lowk => i; rewrite (homogeneous (sF i)) // ler_wpmul2l.
move: k0; rewrite le_eqVlt => /orP[/eqP k0|k0].
  rewrite -k0 !mul0r leNgt; apply/negP => neg; have [up0 low0] := lub 0 0 (lexx 0) (lexx 0).
  have none (i : I) : False.
    have := up0 i; have := homogeneous (sF i) (lexx 0) (lexx 0) (lexx 0); rewrite !mul0r => ->.
    by rewrite leNgt neg.
  by have := low0 (H 0 0 - 1) (fun i => False_ind _ (none i)); rewrite ler_subr_addl ger_addr ler10.
rewrite mulrC -ler_pdivl_mulr //; apply: low => i; rewrite ler_pdivl_mulr // mulrC.
by rewrite -(homogeneous (sF i)) // ltW.
Qed.

Section Interpolation.
Variable H : R -> R -> R.
Hypothesis sH : sublinear H.
Let h t := H t 1.

(* H(a, b) is below every combination of values at two points. *)
Lemma below_chord t t1 a b : 0 <= t -> t < t1 -> 0 <= b -> t * b <= a -> a <= t1 * b ->
  (t1 - t) * H a b <= (t1 * b - a) * h t + (a - t * b) * h t1.
Proof.
move=> t0 tt b0 ta at1; have t10 : 0 <= t1 by apply: le_trans (ltW tt).
have a0 : 0 <= a by apply: le_trans ta; rewrite mulr_ge0.
have d0 : 0 <= t1 - t by rewrite subr_ge0 ltW.
have l0 : 0 <= t1 * b - a by rewrite subr_ge0.
have m0 : 0 <= a - t * b by rewrite subr_ge0.
rewrite -!(homogeneous sH) ?ler01 //.
have -> : (t1 - t) * a = (t1 * b - a) * t + (a - t * b) * t1 by ring.
have -> : (t1 - t) * b = (t1 * b - a) * 1 + (a - t * b) * 1 by ring.
by apply: (subadditive sH); rewrite ?mulr_ge0 ?ler01.
Qed.

Lemma below_ray t a b : 0 <= t -> 0 <= b -> t * b <= a -> H a b <= h t * b + H 1 0 * (a - t * b).
Proof.
move=> t0 b0 ta; have m0 : 0 <= a - t * b by rewrite subr_ge0.
rewrite [h t * b]mulrC [H 1 0 * _]mulrC -!(homogeneous sH) ?ler01 ?lexx // mulr0 !mulr1.
have {1}-> : a = b * t + (a - t * b) by ring.
by rewrite -{3}(addr0 b); apply: (subadditive sH); rewrite ?mulr_ge0.
Qed.

(* "Write h(t) = h(0) + h'(0) t + integral of hinges", at the points t0 < ts, and above h elsewhere. *)
Definition above t0 l (ws : seq (R * R)) a b := hinges l (h t0 - l * t0) ws a b.

Lemma interpolation ts t0 : 0 <= t0 -> path <%R t0 ts -> exists l ws,
  [/\ all (fun z => (0 <= z.1) && (t0 <= z.2)) ws,
      forall t, 0 <= t -> t <= t0 -> h t0 - h t <= l * (t0 - t),
      forall a b, 0 <= b -> t0 * b <= a -> H a b <= above t0 l ws a b,
      {in t0 :: ts, forall t, above t0 l ws t 1 = h t} & above t0 l ws 1 0 = H 1 0].
Proof.
elim: ts t0 => [|t1 ts ih] t0 t00 /=.
  move=> _; exists (H 1 0), [::]; rewrite /above /hinges; split => //.
  - move=> t p0 pt; rewrite ler_subl_addr addrC; have := @below_ray t t0 1 p0 ler01.
    by rewrite !mulr1 => /(_ pt).
  - move=> a b b0 ab; rewrite big_nil addr0; apply: le_trans (below_ray t00 b0 ab) _.
    by apply: le_of_eq; ring.
  - by move=> t; rewrite inE => /eqP ->; rewrite big_nil; ring.
  - by rewrite big_nil; ring.
case/andP => t01 pts; have t10 : 0 <= t1 by apply: le_trans (ltW t01).
case: (ih _ t10 pts) => l1 [ws [w0 chord up at_ts at_oo]].
have d0 : 0 < t1 - t0 by rewrite subr_gt0.
pose l := (h t1 - h t0) / (t1 - t0); have lE : l * (t1 - t0) = h t1 - h t0 by rewrite divfK ?gt_eqF.
have l01 : l <= l1 by rewrite -(ler_pmul2r d0) lE chord // ltW.
have same a b : t1 * b <= a -> above t0 l ((l1 - l, t1) :: ws) a b = above t1 l1 ws a b.
  move=> ab; rewrite /above /hinges big_cons /= pos_id ?subr_ge0 //.
  have -> : h t0 = h t1 - l * (t1 - t0) by rewrite lE; ring.
  by ring.
have low a b : 0 <= b -> a <= t1 * b -> above t0 l ((l1 - l, t1) :: ws) a b = l * a + (h t0 - l * t0) * b.
  move=> b0 ab; rewrite /above /hinges big_seq big1 ?addr0 // => z; rewrite inE.
  case/orP => [/eqP ->|/(allP w0)/andP[_ zt]] /=; rewrite pos_0 ?mulr0 ?subr_le0 //.
  by apply: le_trans ab _; rewrite ler_wpmul2r.
exists l, ((l1 - l, t1) :: ws); split.
- rewrite /= subr_ge0 l01 (ltW t01) /=; apply/allP => z /(allP w0)/andP[-> zt] /=.
  by apply: le_trans zt; exact: ltW.
- move=> t p0; rewrite le_eqVlt => /orP[/eqP -> |pt]; first by rewrite !subrr mulr0.
  have := @below_chord t t1 t0 1 p0 (lt_trans pt t01) ler01; rewrite !mulr1.
  move=> /(_ (ltW pt) (ltW t01)); rewrite -/(h t0) => c0; rewrite -(ler_pmul2l d0) mulrA [_ * l]mulrC lE.
  by apply: (le_by c0); ring.
- move=> a b b0 ab; case: (leP (t1 * b) a) => [h1|/ltW h1]; first by rewrite same // up.
  rewrite low // -(ler_pmul2l d0); apply: le_trans (below_chord t00 t01 b0 ab h1) _.
  apply: le_of_eq.
  have -> : h t1 = h t0 + l * (t1 - t0) by rewrite lE; ring.
  by ring.
- move=> t; rewrite inE => /orP[/eqP ->|tin]; first by rewrite low ?mulr1 ?ler01 ?(ltW t01) //; ring.
  rewrite same ?at_ts // mulr1; move: tin; rewrite inE => /orP[/eqP -> //|tin].
  by apply: ltW; move: pts; rewrite (path_sortedE lt_trans) => /andP[/allP/(_ _ tin)].
- by rewrite same ?at_oo // mulr0 ler01.
Qed.
End Interpolation.
End Convex_functions.
