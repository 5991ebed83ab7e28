(** docs/theory/loss_distributions.md: Lemma 0 (convex order). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
From Proofs Require Export convex_functions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lemma0.
Variable R : realFieldType.
Implicit Types (T U : finType).

(** Lemma 0 for hinges: "the first two terms have equal expectations, because both sides have total
    mass 1. The hinges are ordered by domination." *)
Lemma lemma0_hinges T U l m ws (P P' : T -> R) (Q Q' : U -> R) : weights ws ->
  dist P -> dist P' -> dist Q -> dist Q' -> dominates P P' Q Q' ->
  \sum_x hinges l m ws (Q x) (Q' x) <= \sum_x hinges l m ws (P x) (P' x).
Proof.
move=> w0 [_ P1] [_ P'1] [_ Q1] [_ Q'1] dom; rewrite !big_split /= -!mulr_sumr P1 P'1 Q1 Q'1 ler_add2l.
rewrite exchange_big [X in _ <= X]exchange_big !big_seq; apply: ler_sum => z /(allP w0)/andP[z1 z2] /=.
by rewrite -!mulr_sumr ler_wpmul2l // dom.
Qed.

(** Lemma 0. E h(X) <= E h(X* ) for every convex h with bounded slope. *)
Theorem lemma0 T U H (P P' : T -> R) (Q Q' : U -> R) : sublinear H ->
  dist P -> dist P' -> dist Q -> dist Q' -> dominates P P' Q Q' ->
  \sum_x H (Q x) (Q' x) <= \sum_x H (P x) (P' x).
Proof.
move=> sH dP dP' dQ dQ' dom.
pose ts := sort <=%R (undup [seq P x / P' x | x <- enum T & 0 < P x / P' x]).
have mem t : t \in ts = (t \in [seq P x / P' x | x <- enum T & 0 < P x / P' x]).
  by rewrite mem_sort mem_undup.
have pts : path <%R 0 ts.
  rewrite (path_sortedE lt_trans) lt_sorted_uniq_le sort_uniq undup_uniq sort_le_sorted !andbT.
  by apply/allP => t; rewrite mem => /mapP[x]; rewrite mem_filter => /andP[? _] ->.
case: (interpolation sH (lexx 0) pts) => l [ws [w0 _ up at_ts at_oo]].
have -> : \sum_x H (P x) (P' x) = \sum_x hinges l (H 0 1 - l * 0) ws (P x) (P' x).
  have hom := sublinear_hinges l (H 0 1 - l * 0) w0.
  apply: eq_bigr => x _; have [p0 p'0] := (dP.1 x, dP'.1 x).
  move: p'0; rewrite le_eqVlt => /orP[/eqP <-|p'0].
    have z : 0 = P x * 0 by rewrite mulr0.
    rewrite -[P x]mulr1 [X in H _ X]z [X in hinges _ _ _ _ X]z (homogeneous hom) ?(homogeneous sH) ?ler01 //.
    by rewrite -at_oo.
  have e : P x = P' x * (P x / P' x) by rewrite mulrC divfK ?gt_eqF.
  have r0 : 0 <= P x / P' x by rewrite divr_ge0 // ltW.
  have rin : P x / P' x \in 0 :: ts.
    case: (eqVneq (P x / P' x) 0) => [->|r1]; first by rewrite inE eqxx.
    rewrite inE mem; apply/orP; right; apply/mapP; exists x => //.
    by rewrite mem_filter mem_enum andbT lt_neqAle eq_sym r1.
  rewrite e; move: (P x / P' x) r0 rin => r r0 rin; rewrite -[X in H _ X]mulr1.
  rewrite -[X in hinges _ _ _ _ X]mulr1 (homogeneous hom) ?(homogeneous sH) ?ler01 ?(ltW p'0) //.
  by congr (_ * _); rewrite -at_ts.
apply: (@le_trans _ _ (\sum_x hinges l (H 0 1 - l * 0) ws (Q x) (Q' x))).
  by apply: ler_sum => x _; apply: up; rewrite ?mul0r ?(dQ.1 x) ?(dQ'.1 x).
exact: lemma0_hinges.
Qed.
End Lemma0.

Print Assumptions lemma0_hinges.
Print Assumptions lemma0.
