(** boosting.md, the table of d^2: two classes, numbers, and several classes.

    Outputs, and so probabilities p, are fixed by what was released before. A record t has a cell, a
    label or a residual, and adds its scores g and its Hessians h / (4u) in this cell. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions bounded_sums boosting_hessians boosting.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Losses.
Variables (R : realFieldType) (C J : finType) (T : Type) (cell : T -> C).
Implicit Types x : data J T.

(** d^2 of two data sets: how far apart are the sums of a round? *)
Definition distance (K : finType) (g h : T -> K -> R) u x x' :=
  sq (fun i => total (adds cell g h u) x i - total (adds cell g h u) x' i).

Let half : R := 2%:R^-1.
Let half2 : 2%:R * half = 1. Proof. by rewrite mulfV ?pnatr_eq0. Qed.
Let half_gt0 : 0 < half. Proof. by rewrite invr_gt0 ltr0n. Qed.
Let unit_half : 16%:R * half ^+ 2 = 4%:R :> R.
Proof.
have -> : 16%:R * half ^+ 2 = 4%:R * (2%:R * half) ^+ 2 by ring.
by rewrite half2; ring.
Qed.

(** Two classes, one output: g = (y - p)/max(p, 1 - p), h = p (1 - p)/max(p, 1 - p), u = 1/2. *)
Section Two_classes.
Variables (p : T -> R) (y : T -> bool).
Hypothesis p01 : forall t, 0 <= p t <= 1.
Definition g2 t (_ : unit) := ((y t)%:R - p t) / Num.max (p t) (1 - p t).
Definition h2 t (_ : unit) := p t * (1 - p t) / Num.max (p t) (1 - p t).

Lemma two_classes_le t : g2 t tt ^+ 2 <= 1 /\ 0 <= h2 t tt <= half.
Proof.
have /andP[p0 p1] := p01 t; rewrite /g2 /h2.
have q0 : 0 <= 1 - p t by rewrite subr_ge0.
have small a c : 0 <= a -> a <= c -> a + c = 1 -> [/\ 0 < c, a <= half & (a / c) ^+ 2 <= 1].
  move=> a0 ac e; have c0 : 0 < c.
    rewrite lt_def (le_trans a0 ac) andbT; apply/eqP => c0; move: e ac; rewrite c0 addr0 => ->.
    by rewrite ler10.
  split=> //; last by rewrite expr_le1 ?divr_ge0 // ?(ltW c0) // ler_pdivr_mulr ?mul1r.
  rewrite -(ler_pmul2l (ltr0n R 2)) half2 -[X in _ <= X]e.
  have -> : 2%:R * a = a + a by ring.
  by rewrite ler_add2l.
have [le|/ltW le] := lerP (p t) (1 - p t).
  have [c0 ah s] := small _ _ p0 le (etrans (addrC _ _) (subrK _ _)).
  by rewrite mulfK ?gt_eqF // p0 ah; case: (y t); rewrite ?divff ?gt_eqF ?expr1n ?sub0r ?mulNr ?sqrrN.
have [c0 ah s] := small _ _ q0 le (subrK _ _).
rewrite mulrAC divff ?gt_eqF // mul1r q0 ah; case: (y t) => //.
by rewrite sub0r mulNr divff ?gt_eqF // sqrrN expr1n.
Qed.

Theorem two_classes x x' :
  (zero_out x x' -> distance g2 h2 half x x' <= 1 + 16%:R^-1) /\
  (replace_one x x' -> distance g2 h2 half x x' <= 4%:R + 16%:R^-1).
Proof.
have h_le t : h2 t tt ^+ 2 <= half ^+ 2.
  by have [_ /andP[h0 hh]] := two_classes_le t; rewrite ler_sqr ?nnegrE // ltW.
have bE : half ^+ 2 / (16%:R * half ^+ 2) = 16%:R^-1.
  by rewrite invfM mulrC mulfVK // expf_neq0 // gt_eqF.
have sg t : sq (g2 t) <= 1 by rewrite sq_unit; have [] := two_classes_le t.
have sh t : sq (h2 t) <= half ^+ 2 by rewrite sq_unit.
have apart t t' : sq (fun k => h2 t k - h2 t' k) <= half ^+ 2.
  have [_ /andP[h0 _]] := two_classes_le t; have [_ /andP[h0' _]] := two_classes_le t'.
  by rewrite sq_unit; apply: sub_nonneg.
rewrite -bE; split; first by apply: boosting_zero_out; rewrite ?sqr_ge0.
apply: boosting_replace_one => //.
by rewrite ler_pmull ?exprn_gt0 // ler1n.
Qed.
End Two_classes.

(** Numbers: g is a residual in [-1, 1], h = 1, u = 1. *)
Theorem numbers (g : T -> unit -> R) x x' : (forall t, -1 <= g t tt <= 1) ->
  (zero_out x x' -> distance g (fun _ _ => 1) 1 x x' <= 1 + 16%:R^-1) /\
  (replace_one x x' -> distance g (fun _ _ => 1) 1 x x' <= 4%:R).
Proof.
move=> g1; have g_le t : sq (g t) <= 1.
  by rewrite sq_unit -real_normK ?num_real // expr_le1 ?normr_ge0 // ler_norml.
have bE : 1 / (16%:R * 1 ^+ 2) = 16%:R^-1 :> R by rewrite expr1n mulr1 mul1r.
have h_le (t : T) : sq (fun _ : unit => 1 : R) <= 1 by rewrite sq_unit expr1n.
have apart (t t' : T) : sq (fun _ : unit => 1 - 1 : R) <= 0 by rewrite sq_unit subrr expr0n.
split=> nb; first by rewrite -bE; apply: boosting_zero_out nb; rewrite ?ler01.
rewrite -[4%:R]addr0 -(mul0r (16%:R * 1 ^+ 2)^-1).
apply: (boosting_replace_one cell (b := 1)); rewrite ?ltr01 //.
by rewrite expr1n mulr1 ler1n.
Qed.

(** Several classes: g_i = a(p) ([i = y] - p_i), h_i = a(p) p_i (1 - p_i), a(p)^2 (1 - 2 min p + |p|^2) = 1
    and u = 1/2; lambda = (k - 1)/k^2 with k = min(K, 4). *)
Section Several_classes.
Variables (K : finType) (p : T -> K -> R) (y least : T -> K) (a : T -> R).
Hypotheses (p_ge0 : forall t i, 0 <= p t i) (p_sum : forall t, \sum_i p t i = 1).
Hypotheses (p_least : forall t i, p t (least t) <= p t i) (classes : (2 <= #|K|)%N).
Hypotheses (a_ge0 : forall t, 0 <= a t).
Hypothesis a_norm : forall t, a t ^+ 2 * (1 - 2%:R * p t (least t) + sq (p t)) = 1.
Definition gK t i := a t * ((i == y t)%:R - p t i).
Definition hK t i := a t * p t i * (1 - p t i).

Lemma gK_le t : sq (gK t) <= 1.
Proof.
have -> : sq (gK t) = a t ^+ 2 * (1 - 2%:R * p t (y t) + sq (p t)).
  have -> : sq (gK t) = a t ^+ 2 * sq (fun i => (i == y t)%:R - p t i).
    by rewrite /sq mulr_sumr; apply: eq_bigr => i _; rewrite exprMn.
  congr (_ * _); rewrite sq_sub; congr (_ - _ * _ + _).
    by rewrite /sq (bigD1 (y t)) //= eqxx expr1n big1 ?addr0 // => i /negPf ->; rewrite expr0n.
  by rewrite /dot (bigD1 (y t)) //= eqxx mul1r big1 ?addr0 // => i /negPf ->; rewrite mul0r.
by rewrite -[X in _ <= X](a_norm t) ler_wpmul2l ?sqr_ge0 // ler_add2r ler_add2l ler_opp2 ler_wpmul2l ?ler0n.
Qed.

Lemma hK_ge0 t i : 0 <= hK t i.
Proof. by rewrite !mulr_ge0 // subr_ge0; apply: p_le1. Qed.

Theorem several_classes x x' :
  (zero_out x x' -> distance gK hK half x x' <= 1 + lambda R K / 4%:R) /\
  (replace_one x x' -> distance gK hK half x x' <= 4%:R + 2%:R * lambda R K / 4%:R).
Proof.
have h_le t : sq (hK t) <= lambda R K by exact: hessians (a_norm t).
have l0 : 0 <= lambda R K.
  by rewrite divr_ge0 ?sqr_ge0 // subr_ge0 ler1n leq_min (leq_trans _ classes).
have apart t t' : sq (fun i => hK t i - hK t' i) <= 2%:R * lambda R K.
  by apply: apart_several => // i; apply: hK_ge0.
have l4 : lambda R K <= 16%:R * half ^+ 2 by rewrite unit_half; apply: le_trans (lambda_le1 R classes) _; rewrite ?ler1n.
split=> nb.
  by have := boosting_zero_out cell half gK_le h_le l0 nb; rewrite unit_half.
by have := boosting_replace_one cell gK_le h_le apart l4 half_gt0 nb; rewrite unit_half.
Qed.

(** The table's numbers. *)
Corollary three_classes x x' : #|K| = 3%N ->
  (zero_out x x' -> distance gK hK half x x' <= 19%:R / 18%:R) /\
  (replace_one x x' -> distance gK hK half x x' <= 4%:R + 9%:R^-1).
Proof.
move=> K3; have [z r] := several_classes x x'; move: z r; rewrite /lambda K3 /minn /= => z r.
split=> [/z|/r]; congr (_ <= _); field; exact: erefl.
Qed.

Corollary four_or_more_classes x x' : (4 <= #|K|)%N ->
  (zero_out x x' -> distance gK hK half x x' <= 67%:R / 64%:R) /\
  (replace_one x x' -> distance gK hK half x x' <= 4%:R + 3%:R / 32%:R).
Proof.
move=> K4; have [z r] := several_classes x x'; move: z r; rewrite /lambda (minn_idPr K4) => z r.
split=> [/z|/r]; congr (_ <= _); field; exact: erefl.
Qed.
End Several_classes.
End Losses.
Print Assumptions two_classes.
Print Assumptions numbers.
Print Assumptions several_classes.
Print Assumptions three_classes.
Print Assumptions four_or_more_classes.
