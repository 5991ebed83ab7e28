(** docs/theory/best_of.md, "Statement": what the best of K runs releases is a distribution; K = 0
    included, and given K >= 1. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions best_of_release best_of_density best_of.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Distribution.
Variables (R : rcfType) (T : finType) (score : T -> nat) (tie : tie_rule R).
Hypotheses (tieP : fair_ties tie) (tie0 : forall k (B : {set 'I_k}) i, 0 <= tie B i).
Variables (f : {poly R}) (Q : T -> R).
Hypotheses (fP : law_of_runs f) (dQ : dist Q).

Lemma best_of_ge0 y : 0 <= best_of score tie f Q y.
Proof.
apply: sumr_ge0 => k _; rewrite mulr_ge0 ?fP.1 //; apply: sumr_ge0 => d _.
rewrite mulr_ge0 ?sumr_ge0 //; apply: prodr_ge0 => i _; exact: dQ.1.
Qed.

(* The outcomes of one score share f(F) - f(F without the score). *)
Lemma score_share s : \sum_(y | score y == s) best_of score tie f Q y =
  f.[up_to score Q s] - f.[below score Q s].
Proof.
case: (eqVneq (at_ score Q s) 0) => [a0|a0].
  rewrite up_toE a0 addr0 subrr big1 // => y /eqP ys; apply: best_of_zero.
  by apply: (at_zero (score := score) dQ.1); rewrite ys.
apply: (mulfI a0); rewrite mulr_sumr {2}/at_ mulr_suml; apply: eq_bigr => y /eqP ys.
by have := best_of_law score tieP f Q y; rewrite /= ys.
Qed.

Lemma below_share m : \sum_(y | (score y < m)%N) best_of score tie f Q y = f.[below score Q m] - f.[0].
Proof.
elim: m => [|m ih].
  have -> : below score Q 0 = 0 by apply: big_pred0 => y; rewrite ltn0.
  by rewrite subrr big_pred0 // => y; rewrite ltn0.
rewrite (bigID (fun y => (score y < m)%N)) /= (eq_bigl (fun y => (score y < m)%N)); last first.
  by move=> y; rewrite ltnS andb_idl // => /ltnW.
rewrite ih (eq_bigl (fun y => score y == m)); last by move=> y; rewrite ltnS -leqNgt eqn_leq.
have -> : below score Q m.+1 = up_to score Q m by apply: eq_bigl => y; rewrite ltnS.
by rewrite score_share addrC addrA subrK.
Qed.

Lemma runs_share : \sum_y best_of score tie f Q y = 1 - f`_0.
Proof.
pose m := (\max_y score y).+1; have hm y : (score y < m)%N by rewrite ltnS leq_bigmax.
rewrite -horner_coef0 -fP.2 -dQ.2.
have -> : \sum_y Q y = below score Q m by apply: eq_bigl => y; rewrite hm.
by rewrite -below_share; apply: eq_bigl => y; rewrite hm.
Qed.

Theorem release_dist : dist (release score tie f Q).
Proof.
split=> [[y|]|]; [exact: best_of_ge0 | exact: fP.1 |].
rewrite (bigD1 None) //= (reindex_omap Some id) => [|[y|]] //=.
rewrite (eq_bigl predT) => [|y]; last by rewrite eqxx.
by rewrite runs_share addrC subrK.
Qed.

Theorem release_given_a_run_dist : f`_0 < 1 -> dist (release_given_a_run score tie f Q).
Proof.
move=> f1; have d0 : 0 < 1 - f`_0 by rewrite subr_gt0.
split=> [y|]; first by rewrite divr_ge0 ?best_of_ge0 // ltW.
by rewrite /release_given_a_run -mulr_suml runs_share divff // gt_eqF.
Qed.
End Distribution.

Print Assumptions release_dist.
Print Assumptions release_given_a_run_dist.
