(** witness.md: what the best of K runs certainly loses, a bound from below.

    Q and Q' are the pair itself (any mechanism that someone may run); the score cuts its outcomes into groups, and
    those that count are the groups S. Of one group the release has f(up to it) - f(below it). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions best_of_release best_of_density.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Witness.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Implicit Types (Q : T -> R) (f : {poly R}) (c : R) (s : nat).

Lemma group_mass f Q s : measure Q ->
  \sum_(y | score y == s) best_of score tie f Q y = f.[up_to score Q s] - f.[below score Q s].
Proof.
move=> Q0; have [a0|a0] := eqVneq (at_ score Q s) 0.
  rewrite up_toE a0 addr0 subrr big1 // => y /eqP ys; apply: best_of_zero.
  by apply: (at_zero (score := score) Q0); rewrite ys.
apply: (mulfI a0); rewrite mulr_sumr -[RHS]/(at_ score Q s * (_ - _)) [X in _ = X * _]/at_ mulr_suml.
by apply: eq_bigr => y /eqP ys; have := best_of_law score tieP f Q y; rewrite /= ys.
Qed.

(** "Many groups": whatever groups count. Three groups B < S < C: s = 1 alone. *)
Theorem witness f Q Q' c (counts : seq nat) : measure Q -> measure Q' -> uniq counts ->
  \sum_(s <- counts) (f.[up_to score Q s] - f.[below score Q s] - c * (f.[up_to score Q' s] - f.[below score Q' s]))
  <= hockey c (best_of score tie f Q) (best_of score tie f Q').
Proof.
move=> Q0 Q'0 u; apply: le_trans (hockey_event c _ _ (fun y => score y \in counts)).
have groups (F : T -> R) : \sum_(y | score y \in counts) F y = \sum_(s <- counts) \sum_(y | score y == s) F y.
  elim: counts u => [|s l IH] /= => [_|/andP[sl u]]; first by rewrite big_nil big_pred0.
  rewrite big_cons -(IH u) (bigID (fun y => score y == s)) /=; congr (_ + _); apply: eq_bigl => y.
    by rewrite inE; case: eqP; rewrite ?andbF.
  by rewrite inE; case: eqP => [->|]; rewrite ?(negPf sl) ?andbT ?andbF.
rewrite !groups mulr_sumr -sumrB; apply: ler_sum => s _.
by rewrite !group_mass.
Qed.
End Witness.
Print Assumptions witness.
