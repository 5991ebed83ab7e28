(** clipped_sums.md, end of the proof of Lemma 3: what holds given the draws (T, rho).

    [sampled q A B] is (1 - q) B + q A: the record is drawn with probability q. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Sampling.
Variables (R : realFieldType) (T U : finType).
Implicit Types (A B : T -> R) (P Q : U -> R) (c q : R).

Definition sampled (T : finType) q (A B : T -> R) : T -> R := fun x => (1 - q) * B x + q * A x.

Lemma sampled_dist q A B : 0 <= q <= 1 -> dist A -> dist B -> dist (sampled q A B).
Proof.
move=> /andP[q0 q1] [A0 A1] [B0 B1]; split=> [x|].
  by rewrite addr_ge0 // mulr_ge0 // subr_ge0.
by rewrite /sampled big_split /= -!mulr_sumr A1 B1; ring.
Qed.

(** H_c(A || A) is the least that two distributions can have. *)
Lemma same_dominated A P Q : dist A -> dist P -> dist Q -> dominates P Q A A.
Proof.
move=> [A0 A1] [P0 P1] [Q0 Q1] c c0; have -> : hockey c A A = pos (1 - c).
  transitivity ((\sum_x A x) * pos (1 - c)); last by rewrite A1 mul1r.
  rewrite mulr_suml; apply: eq_bigr => x _; rewrite -posM //; congr pos; ring.
have -> : 1 - c = \sum_x (P x - c * Q x) by rewrite sumrB -mulr_sumr P1 Q1 mulr1.
exact: pos_sum.
Qed.

(** The Poisson-sampled pair grows with the pair: ((1-q) B + q A, B) is dominated by ((1-q) Q + q P, Q). *)
Lemma sampled_dominated q A B P Q : dist A -> dist B -> dist P -> dist Q ->
  dominates P Q A B -> dominates (sampled q P Q) Q (sampled q A B) B.
Proof.
move=> dA dB dP dQ dom c c0.
have line (V : finType) (F G : V -> R) :
    hockey c (sampled q F G) G = \sum_x pos (q * F x + (1 - q - c) * G x).
  by apply: eq_bigr => x _; congr pos; rewrite /sampled; ring.
by rewrite !line; apply: any_line.
Qed.

End Sampling.

(** It grows with q, too: a record that is drawn with probability q' <= q is one that is drawn with q. *)
Lemma sampled_less (R : realFieldType) (U : finType) (q q' : R) (P Q : U -> R) : 0 <= q' <= q -> q <= 1 -> dist P -> dist Q ->
  dominates (sampled q P Q) Q (sampled q' P Q) Q.
Proof.
move=> /andP[q0 qq] q1 dP dQ c c0; have [q_0|q_neq] := eqVneq q 0.
  suff -> : q' = q by []; by apply/eqP; rewrite eq_le qq q_0 q0.
have qp : 0 < q by rewrite lt_def q_neq (le_trans q0 qq).
pose w (b : bool) := if b then q' / q else 1 - q' / q.
have w1 : q' / q <= 1 by rewrite ler_pdivr_mulr ?mul1r.
have w0 : measure w by case; rewrite /w ?subr_ge0 // divr_ge0 // ltW.
pose F (b : bool) := if b then sampled q P Q else Q.
have e : sampled q' P Q =1 mixed w F.
  by move=> x; rewrite /mixed big_bool /w /F /sampled /=; field; exact: q_neq.
have e' : Q =1 mixed w (fun=> Q) by move=> x; rewrite /mixed big_bool /w /=; ring.
rewrite (hockey_ext c e e').
apply: le_trans (joint_convexity _ _ _ w0) _.
apply: (@le_trans _ _ (\sum_b w b * hockey c (sampled q P Q) Q)).
  apply: ler_sum => b _; rewrite ler_wpmul2l //; case: b => //=.
  by apply: (same_dominated dQ) => //; apply: sampled_dist => //; rewrite (le_trans q0 qq).
by rewrite -mulr_suml big_bool /w /=; have -> : q' / q + (1 - q' / q) = 1; rewrite ?mul1r //; ring.
Qed.
Print Assumptions sampled_dominated.
Print Assumptions sampled_less.
