(** Definitions of docs/theory, for finitely many outcomes.

    Outcomes are a [finType]; numbers are a real (closed) field R; c stands for e^eps.
    A distribution is a function T -> R that is [dist]; a mechanism on data sets D is a
    function D -> T -> R that is [dist] at every data set. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Positive_part.
Variable R : realFieldType.
Implicit Types x y c : R.

Definition pos x : R := Num.max x 0.

Lemma pos_ge0 x : 0 <= pos x. Proof. by rewrite le_maxr lexx orbT. Qed.
Lemma le_pos x : x <= pos x. Proof. by rewrite le_maxr lexx. Qed.
Lemma pos_le x y : x <= y -> 0 <= y -> pos x <= y. Proof. by rewrite le_maxl => -> ->. Qed.
Lemma pos_mono x y : x <= y -> pos x <= pos y.
Proof. by move=> xy; apply: pos_le (pos_ge0 _); apply: le_trans xy (le_pos _). Qed.
Lemma pos_id x : 0 <= x -> pos x = x. Proof. exact: max_idPl. Qed.
Lemma pos_0 x : x <= 0 -> pos x = 0. Proof. exact: max_idPr. Qed.
Lemma posD x y : pos (x + y) <= pos x + pos y.
Proof. by apply: pos_le; rewrite ?addr_ge0 ?pos_ge0 // ler_add ?le_pos. Qed.
Lemma posM c x : 0 <= c -> pos (c * x) = c * pos x.
Proof. by move=> c0; rewrite /pos -{2}(mulr0 c) maxr_pmulr ?mulr0. Qed.
Lemma posN x : pos (- x) = pos x - x.
Proof.
case: (leP 0 x) => x0; first by rewrite (pos_id x0) subrr pos_0 // oppr_le0.
by rewrite (pos_0 (ltW x0)) sub0r pos_id // oppr_ge0 ltW.
Qed.
Lemma pos_sum (I : finType) (S : pred I) (F : I -> R) :
  pos (\sum_(i | S i) F i) <= \sum_(i | S i) pos (F i).
Proof. by apply: pos_le; [apply: ler_sum => i _; exact: le_pos
                         | apply: sumr_ge0 => i _; exact: pos_ge0]. Qed.

(* Steps of ordered reasoning. *)
Lemma le_of_eq x y : x = y -> x <= y. Proof. by move=> ->. Qed.
Lemma le_by x y x1 y1 : x <= y -> y - x = y1 - x1 -> x1 <= y1.
Proof. by rewrite -subr_ge0 => h e; rewrite -subr_ge0 -e. Qed.
Lemma lt_by x y x1 y1 : x < y -> y - x = y1 - x1 -> x1 < y1.
Proof. by rewrite -subr_gt0 => h e; rewrite -subr_gt0 -e. Qed.
End Positive_part.

Section Distributions.
Variable R : realFieldType.
Implicit Types (c : R) (T U I D : finType).

(** Measures, distributions, kernels (a random function from T to U), tests (randomised events). *)
Definition measure T (P : T -> R) := forall x, 0 <= P x.
Definition dist T (P : T -> R) := measure P /\ \sum_x P x = 1.
Definition kernel T U (K : T -> U -> R) := forall x, dist (K x).
Definition test T (t : T -> R) := forall x, 0 <= t x <= 1.

(** H_c(P || Q), the hockey-stick divergence; (P, P') dominates (Q, Q'). *)
Definition hockey T c (P Q : T -> R) : R := \sum_x pos (P x - c * Q x).
Definition dominates T U (P P' : T -> R) (Q Q' : U -> R) :=
  forall c, 0 <= c -> hockey c Q Q' <= hockey c P P'.

(** (eps, delta) for all neighbours [nb], with c = e^eps. *)
Definition private (X : Type) T (nb : X -> X -> Prop) (M : X -> T -> R) c (delta : R) :=
  forall x x', nb x x' -> hockey c (M x) (M x') <= delta.

(** Post-processing, mixtures, and everything released of two mechanisms of which the second sees
    the first's result. *)
Definition post T U (P : T -> R) (K : T -> U -> R) : U -> R := fun u => \sum_x P x * K x u.
Definition mixed I T (w : I -> R) (P : I -> T -> R) : T -> R := fun x => \sum_i w i * P i x.
Definition both T U (P : T -> R) (K : T -> U -> R) : T * U -> R := fun z => P z.1 * K z.1 z.2.
Definition product T U (P : T -> R) (Q : U -> R) : T * U -> R := fun z => P z.1 * Q z.2.

Lemma sum_pair T U (F : T * U -> R) : \sum_z F z = \sum_x \sum_u F (x, u).
Proof. by rewrite pair_bigA; apply: eq_bigr => -[]. Qed.

Lemma dist_le1 T (P : T -> R) x : dist P -> P x <= 1.
Proof. by case=> P0 <-; rewrite (bigD1 x) //= ler_addl sumr_ge0. Qed.

Lemma both_dist T U (P : T -> R) (K : T -> U -> R) : dist P -> kernel K -> dist (both P K).
Proof.
move=> [P0 P1] k; split=> [z|]; first by rewrite mulr_ge0 // (k z.1).1.
by rewrite sum_pair -[RHS]P1; apply: eq_bigr => x _; rewrite /both /= -mulr_sumr (k x).2 mulr1.
Qed.

Lemma post_dist T U (P : T -> R) (K : T -> U -> R) : dist P -> kernel K -> dist (post P K).
Proof.
move=> [P0 P1] k; split=> [u|]; first by apply: sumr_ge0 => x _; rewrite mulr_ge0 // (k x).1.
by rewrite exchange_big -[RHS]P1; apply: eq_bigr => x _; rewrite -mulr_sumr (k x).2 mulr1.
Qed.

Lemma mixed_dist I T (w : I -> R) (P : I -> T -> R) : dist w -> kernel P -> dist (mixed w P).
Proof. exact: post_dist. Qed.

Lemma product_dist T U (P : T -> R) (Q : U -> R) : dist P -> dist Q -> dist (product P Q).
Proof. by move=> dP dQ; exact: (both_dist dP (K := fun=> Q) (fun=> dQ)). Qed.

Lemma hockey_ge0 T c (P Q : T -> R) : 0 <= hockey c P Q.
Proof. by apply: sumr_ge0 => x _; exact: pos_ge0. Qed.

Lemma hockey_ext T c (P P1 Q Q1 : T -> R) : P =1 P1 -> Q =1 Q1 -> hockey c P Q = hockey c P1 Q1.
Proof. by move=> eP eQ; apply: eq_bigr => x _; rewrite eP eQ. Qed.

(** An event, or a test, says no more than H_c; and the event {P > c Q} says as much. *)
Lemma hockey_test T c (P Q t : T -> R) : test t ->
  \sum_x t x * P x - c * (\sum_x t x * Q x) <= hockey c P Q.
Proof.
move=> tt; rewrite mulr_sumr -sumrB; apply: ler_sum => x _.
have -> : t x * P x - c * (t x * Q x) = t x * (P x - c * Q x) by ring.
case/andP: (tt x) => t0 t1; apply: le_trans (ler_wpmul2l t0 (le_pos _)) _.
by apply: ler_pimull => //; exact: pos_ge0.
Qed.

Lemma hockey_event T c (P Q : T -> R) (S : pred T) :
  \sum_(x | S x) P x - c * (\sum_(x | S x) Q x) <= hockey c P Q.
Proof.
pose t x : R := (S x)%:R; have tt : test t by move=> x; rewrite /t; case: (S x); rewrite ?lexx ler01.
have e (F : T -> R) : \sum_(x | S x) F x = \sum_x t x * F x.
  by rewrite big_mkcond /=; apply: eq_bigr => x _; rewrite /t; case: (S x); rewrite ?mul1r ?mul0r.
by rewrite !e; exact: hockey_test.
Qed.

Lemma hockey_reached T c (P Q : T -> R) :
  hockey c P Q = \sum_(x | c * Q x < P x) P x - c * (\sum_(x | c * Q x < P x) Q x).
Proof.
rewrite mulr_sumr -sumrB [RHS]big_mkcond /=; apply: eq_bigr => x _.
by case: ltP => h; [apply/pos_id/ltW | apply: pos_0]; rewrite ?subr_gt0 ?subr_le0.
Qed.

Lemma hockey_bounded T c (P Q : T -> R) d :
  (forall S : pred T, \sum_(x | S x) P x - c * (\sum_(x | S x) Q x) <= d) -> hockey c P Q <= d.
Proof. by move=> h; rewrite hockey_reached. Qed.

Lemma hockey0 T (P Q : T -> R) : dist P -> hockey 0 P Q = 1.
Proof. by case=> P0 <-; apply: eq_bigr => x _; rewrite mul0r subr0 pos_id. Qed.

Lemma hockey_self T c (P : T -> R) : measure P -> 1 <= c -> hockey c P P = 0.
Proof.
move=> P0 c1; apply: big1 => x _; apply: pos_0.
by rewrite -{1}(mul1r (P x)) -mulrBl mulr_le0_ge0 // subr_le0.
Qed.

(** The curve falls, and is at most the mass of P. *)
Lemma hockey_mono T c c1 (P Q : T -> R) : measure Q -> c <= c1 -> hockey c1 P Q <= hockey c P Q.
Proof. by move=> Q0 cc; apply: ler_sum => x _; rewrite pos_mono // ler_add2l ler_opp2 ler_wpmul2r.
Qed.

Lemma hockey_le_mass T c (P Q : T -> R) : 0 <= c -> measure P -> measure Q ->
  hockey c P Q <= \sum_x P x.
Proof.
by move=> c0 P0 Q0; apply: ler_sum => x _; apply: pos_le => //; rewrite ler_subl_addr ler_addl mulr_ge0.
Qed.

(** Duality, loss_distributions.md: c H_{1/c}(P || Q) = c - 1 + H_c(Q || P). *)
Lemma duality T c (P Q : T -> R) : 0 < c -> dist P -> dist Q ->
  hockey c Q P = 1 - c + c * hockey c^-1 P Q.
Proof.
move=> c0 [_ P1] [_ Q1]; have -> : 1 - c = \sum_x (Q x - c * P x) by rewrite sumrB -mulr_sumr P1 Q1 mulr1.
rewrite mulr_sumr -big_split /=; apply: eq_bigr => x _; rewrite -posM ?ltW // mulrBr mulrA.
by rewrite divff ?gt_eqF // mul1r -[c * P x - _]opprB posN [RHS]addrC subrK.
Qed.

(** Domination at c > 0 ("every real eps") is enough for distributions. *)
Lemma dominates_pos T U (P P' : T -> R) (Q Q' : U -> R) : dist P -> dist Q ->
  (forall c, 0 < c -> hockey c Q Q' <= hockey c P P') -> dominates P P' Q Q'.
Proof.
by move=> dP dQ h c; rewrite le_eqVlt => /orP[/eqP <-|/h //]; rewrite !hockey0.
Qed.

(** A pair that dominates one order, turned around, dominates the other one. *)
Lemma dominates_sym T U (P P' : T -> R) (Q Q' : U -> R) : dist P -> dist P' -> dist Q -> dist Q' ->
  dominates P P' Q Q' -> dominates P' P Q' Q.
Proof.
move=> dP dP' dQ dQ' h; apply: dominates_pos => // c c0; rewrite !(duality c0) //.
by rewrite ler_add2l ler_pmul2l // h // invr_ge0 ltW.
Qed.

(** Post-processing. *)
Lemma post_processing T U c (P Q : T -> R) (K : T -> U -> R) : kernel K ->
  hockey c (post P K) (post Q K) <= hockey c P Q.
Proof.
move=> k; apply: (@le_trans _ _ (\sum_u \sum_x K x u * pos (P x - c * Q x))).
  apply: ler_sum => u _; rewrite /post mulr_sumr -sumrB; apply: le_trans (pos_sum _ _) _.
  apply: ler_sum => x _; rewrite -posM ?(k x).1 //.
  by have -> : P x * K x u - c * (Q x * K x u) = K x u * (P x - c * Q x) by ring.
by rewrite exchange_big; apply: ler_sum => x _; rewrite -mulr_suml (k x).2 mul1r.
Qed.

Lemma post_dominates T U (P Q : T -> R) (K : T -> U -> R) : kernel K ->
  dominates P Q (post P K) (post Q K).
Proof. by move=> k c _; exact: post_processing. Qed.

(** Joint convexity; equality if the draw is released too (composition.md, "Mixture"). *)
Lemma joint_convexity I T c (w : I -> R) (P Q : I -> T -> R) : measure w ->
  hockey c (mixed w P) (mixed w Q) <= \sum_i w i * hockey c (P i) (Q i).
Proof.
move=> w0; apply: (@le_trans _ _ (\sum_x \sum_i w i * pos (P i x - c * Q i x))); last first.
  by rewrite exchange_big; apply: ler_sum => i _; rewrite mulr_sumr.
apply: ler_sum => x _; rewrite /mixed mulr_sumr -sumrB; apply: le_trans (pos_sum _ _) _.
by apply: ler_sum => i _; rewrite -(posM _ (w0 i)) mulrBr mulrCA.
Qed.

Lemma mixture_released I T c (w : I -> R) (P Q : I -> T -> R) : measure w ->
  hockey c (both w P) (both w Q) = \sum_i w i * hockey c (P i) (Q i).
Proof.
move=> w0; rewrite /hockey sum_pair; apply: eq_bigr => i _; rewrite mulr_sumr.
by apply: eq_bigr => x _; rewrite -(posM _ (w0 i)) mulrBr /both /= mulrCA.
Qed.

Lemma mixture_bound I T c (w d : I -> R) (P Q : I -> T -> R) : measure w ->
  (forall i, hockey c (P i) (Q i) <= d i) ->
  hockey c (mixed w P) (mixed w Q) <= \sum_i w i * d i.
Proof.
move=> w0 h; apply: le_trans (joint_convexity _ _ _ w0) _.
by apply: ler_sum => i _; apply: ler_wpmul2l.
Qed.

End Distributions.

Print Assumptions mixture_released.
Print Assumptions mixture_bound.
