(** boosting.md, Lemma (Hessians): with K classes and k = min(K, 4) the Hessians
    h_i = a(p) p_i (1 - p_i) have |h|^2 <= lambda = (k - 1)/k^2.

    a enters by its square alone: a^2 (1 - 2 min p + |p|^2) = 1. Here s = 1/k, so lambda = s (1 - s). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import bounded_sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Hessians.
Variables (R : realFieldType) (K : finType) (p : K -> R) (least : K).
Hypotheses (p_ge0 : forall i, 0 <= p i) (p_sum : \sum_i p i = 1).
Hypothesis p_least : forall i, p least <= p i.
Hypothesis two_classes : (2 <= #|K|)%N.

Let k := minn #|K| 4.
Definition lambda : R := (k%:R - 1) / k%:R ^+ 2.
Let s : R := k%:R^-1.

Let k_gt0 : 0 < k%:R :> R. Proof. by rewrite ltr0n /k leq_min (leq_trans _ two_classes). Qed.
Let sk : s * k%:R = 1. Proof. by rewrite /s mulVf ?gt_eqF. Qed.
Let s_gt0 : 0 < s. Proof. by rewrite invr_gt0. Qed.

Lemma lambdaE : lambda = s * (1 - s).
Proof. by rewrite /lambda /s; field; rewrite gt_eqF. Qed.

Lemma s_le_half : 2%:R * s <= 1.
Proof. by rewrite -[X in _ <= X]sk mulrC ler_pmul2l // ler_nat /k leq_min two_classes. Qed.

Lemma s_ge_quarter : 1 <= 4%:R * s.
Proof. by rewrite -[X in X <= _]sk mulrC ler_pmul2r // ler_nat /k geq_minr. Qed.

Lemma lambda_le1 : lambda <= 1.
Proof.
rewrite lambdaE; apply: (@le_trans _ _ (1 * 1)); last by rewrite mulr1.
have s1 : s <= 1 by apply: le_trans s_le_half; rewrite ler_pmull // ler1n.
by apply: ler_pmul; rewrite ?(ltW s_gt0) ?subr_ge0 ?ler_subl_addr ?ler_addl ?(ltW s_gt0).
Qed.

Lemma p_le1 i : p i <= 1.
Proof. by rewrite -p_sum (bigD1 i) //= ler_addl sumr_ge0. Qed.

(** min p <= 1/K <= 1/k. *)
Lemma least_le : p least <= s.
Proof.
rewrite -(ler_pmul2r k_gt0) sk -[X in _ <= X]p_sum; apply: (@le_trans _ _ (p least * #|K|%:R)).
  by rewrite ler_wpmul2l // ler_nat geq_minl.
by rewrite mulr_natr -sumr_const; apply: ler_sum => i _.
Qed.

Let psi (x : R) := x ^+ 2 * ((1 - x) ^+ 2 - lambda).
Let tangent (x : R) := s ^+ 2 * (1 - s) * (4%:R * s - 1) + 2%:R * s * (1 - s) * (1 - 3%:R * s) * x.
Let factor (x : R) := x ^+ 2 - 2%:R * (1 - s) * x + (1 - s) * (1 - 4%:R * s).

Lemma psi_minus_tangent x : psi x - tangent x = (x - s) ^+ 2 * factor x.
Proof. by rewrite /psi /tangent /factor lambdaE; ring. Qed.

(** The factor is convex, and at most 0 at 0 and at 1. *)
Lemma factor_le0 x : 0 <= x -> x <= 1 -> factor x <= 0.
Proof.
move=> x0 x1; have s1 : 0 <= 1 - s.
  by rewrite subr_ge0; apply: le_trans s_le_half; rewrite ler_pmull // ler1n.
have -> : factor x = - ((1 - x) * ((1 - s) * (4%:R * s - 1)) + x * (s * (1 + 2%:R * (1 - 2%:R * s)))
                       + x * (1 - x)) by rewrite /factor; ring.
rewrite oppr_le0; have x1' : 0 <= 1 - x by rewrite subr_ge0.
have h : 0 <= 1 - 2%:R * s by rewrite subr_ge0 s_le_half.
have q : 0 <= 4%:R * s - 1 by rewrite subr_ge0 s_ge_quarter.
have two : 0 <= 2%:R :> R by apply: ler0n.
have [A B] := (mulr_ge0 x1' (mulr_ge0 s1 q), mulr_ge0 two h).
exact: addr_ge0 (addr_ge0 A (mulr_ge0 x0 (mulr_ge0 (ltW s_gt0) (addr_ge0 ler01 B)))) (mulr_ge0 x0 x1').
Qed.

Lemma psi_le x : 0 <= x -> x <= 1 -> psi x <= tangent x.
Proof.
by move=> x0 x1; rewrite -subr_le0 psi_minus_tangent mulr_ge0_le0 ?sqr_ge0 ?factor_le0.
Qed.

(** For K = k the tangents sum to K psi(1/k); for K > 4 the tangent is 3x/32. *)
Lemma sum_tangent : \sum_i tangent (p i) = lambda * (1 - 2%:R * s).
Proof.
rewrite /tangent big_split /= sumr_const -mulr_sumr p_sum mulr1 lambdaE -[X in X + _]mulr_natl.
have [small|/ltnW large] := leqP #|K| 4.
  have n1 : #|K|%:R * s = 1 by rewrite mulrC -[RHS]sk /k (minn_idPl small).
  have -> : #|K|%:R * (s ^+ 2 * (1 - s) * (4%:R * s - 1)) = #|K|%:R * s * (s * (1 - s) * (4%:R * s - 1)).
    by ring.
  by rewrite n1; ring.
have s4 : 4%:R * s = 1 by rewrite mulrC -[RHS]sk /k (minn_idPr large).
rewrite s4 subrr !mulr0 add0r.
have -> : 1 - 3%:R * s = s by rewrite -[X in X - _]s4; ring.
have -> : 1 - 2%:R * s = 2%:R * s by rewrite -[X in X - _]s4; ring.
by ring.
Qed.

(** "It follows from sum psi(p_i) <= lambda (1 - 2/k)". *)
Lemma hessians_sum :
  \sum_i (p i * (1 - p i)) ^+ 2 <= lambda * (1 - 2%:R * p least + sq p).
Proof.
have -> : \sum_i (p i * (1 - p i)) ^+ 2 = \sum_i psi (p i) + lambda * sq p.
  by rewrite /sq mulr_sumr -big_split; apply: eq_bigr => i _; rewrite /psi /=; ring.
have -> : lambda * (1 - 2%:R * p least + sq p) = lambda * (1 - 2%:R * p least) + lambda * sq p by ring.
rewrite ler_add2r; apply: (@le_trans _ _ (lambda * (1 - 2%:R * s))).
  by rewrite -sum_tangent; apply: ler_sum => i _; rewrite psi_le ?p_le1.
have l0 : 0 <= lambda.
  by rewrite divr_ge0 ?sqr_ge0 // subr_ge0 ler1n /k leq_min (leq_trans _ two_classes).
by rewrite ler_wpmul2l // ler_add2l ler_opp2 ler_wpmul2l ?ler0n ?least_le.
Qed.

Theorem hessians (a : R) : a ^+ 2 * (1 - 2%:R * p least + sq p) = 1 ->
  sq (fun i => a * p i * (1 - p i)) <= lambda.
Proof.
move=> a1; have -> : sq (fun i => a * p i * (1 - p i)) = a ^+ 2 * \sum_i (p i * (1 - p i)) ^+ 2.
  by rewrite /sq mulr_sumr; apply: eq_bigr => i _; ring.
apply: le_trans (ler_wpmul2l (sqr_ge0 a) hessians_sum) _.
by rewrite mulrCA a1 mulr1.
Qed.

(** For K <= 4 even probabilities reach it. *)
Theorem hessians_reached (a : R) : (#|K| <= 4)%N -> (forall i, p i = s) ->
  a ^+ 2 * (1 - 2%:R * p least + sq p) = 1 -> sq (fun i => a * p i * (1 - p i)) = lambda.
Proof.
move=> small even; have n1 : #|K|%:R * s = 1 by rewrite mulrC -[RHS]sk /k (minn_idPl small).
have constant (x : R) : \sum_(i : K) x = #|K|%:R * x by rewrite sumr_const mulr_natl.
have -> : sq p = s by rewrite /sq (eq_bigr (fun=> s * s)) ?constant ?mulrA ?n1 ?mul1r // => i _; rewrite even.
have -> : sq (fun i => a * p i * (1 - p i)) = #|K|%:R * (s * (a ^+ 2 * (1 - s) * (s * (1 - s)))).
  by rewrite -constant; apply: eq_bigr => i _; rewrite even; ring.
rewrite even mulrA n1 mul1r lambdaE.
have -> : a ^+ 2 * (1 - 2%:R * s + s) = a ^+ 2 * (1 - s) by ring.
by move=> ->; rewrite mul1r.
Qed.
End Hessians.
Print Assumptions hessians.
Print Assumptions hessians_reached.
