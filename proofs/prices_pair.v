(** docs/theory/prices.md, proof of Theorem 6, "One pair is enough": the search releases a part of what it
    would release if every run also gave the pair's outcome z. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions best_of_release best_of_density.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Merge.
Variables (R : rcfType) (Z T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Variables (f : {poly R}) (K : Z -> T -> R).
Hypothesis kK : kernel K.
Let S : Z * T -> nat := score \o snd.

Lemma merge (F : Z -> R) y : measure F ->
  best_of score tie f (post F K) y = \sum_z best_of S tie f (both F K) (z, y).
Proof.
move=> F0; have J0 : measure (both F K) by move=> z; rewrite mulr_ge0 // (kK _).1.
have pull (p : pred nat) : \sum_(x | p (S x)) both F K x = \sum_(x | p (score x)) post F K x.
  rewrite big_mkcond sum_pair exchange_big [RHS]big_mkcond /=; apply: eq_bigr => x _.
  by case: (p (score x)); last exact: big1.
have eat : at_ S (both F K) (score y) = at_ score (post F K) (score y) := pull (fun i => i == score y).
have Q0 : measure (post F K) by move=> x; apply: sumr_ge0 => z _; rewrite mulr_ge0 // (kK _).1.
case: (eqVneq (at_ score (post F K) (score y)) 0) => [a0|a0].
  rewrite best_of_zero ?(at_zero Q0 a0) // big1 // => z _; rewrite best_of_zero //.
  by apply: (@at_zero R _ S _ (z, y) J0); rewrite /= eat.
apply: (mulfI a0); rewrite best_of_law // mulr_sumr mulr_suml; apply: eq_bigr => z _.
have := best_of_law S tieP f (both F K) (z, y); rewrite /= eat => ->.
have -> : up_to S (both F K) (score y) = up_to score (post F K) (score y) := pull (fun i => (i <= score y)%N).
by have -> : below S (both F K) (score y) = below score (post F K) (score y) := pull (fun i => (i < score y)%N).
Qed.

Lemma hockey_merge c (P P' : Z -> R) : measure P -> measure P' ->
  \sum_y pos (best_of score tie f (post P K) y - c * best_of score tie f (post P' K) y) <=
  \sum_x pos (best_of S tie f (both P K) x - c * best_of S tie f (both P' K) x).
Proof.
move=> P0 P'0; rewrite sum_pair exchange_big; apply: ler_sum => y _ /=.
by rewrite !merge // mulr_sumr -sumrB; exact: pos_sum.
Qed.
End Merge.
