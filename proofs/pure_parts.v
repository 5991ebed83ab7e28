(** docs/theory/subset.md and subset_rest.md, "Pure parts". *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions subset_fixed subset_rest_fixed.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Pure.
Variable R : realFieldType.
Implicit Types (a b d q v : R) (T S : finType).

(** a-DP in both directions, with a for e^a. *)
Definition pure T a (P P' : T -> R) := forall x, P x <= a * P' x /\ P' x <= a * P x.

(* "-log E e^-L <= E L <= log E e^L." *)
Lemma jensen q a b : 0 <= q <= 1 -> 0 < a -> 0 < b -> 1 <= (q * a + (1 - q) * b) * (q / a + (1 - q) / b).
Proof.
case/andP=> q0 q1 a0 b0; have r0 : 0 <= 1 - q by rewrite subr_ge0.
have ab : 0 < a * b by rewrite mulr_gt0.
rewrite -(ler_pmul2r ab) mul1r.
have -> : (q * a + (1 - q) * b) * (q / a + (1 - q) / b) * (a * b) =
  a * b + q * (1 - q) * (a - b) ^+ 2 by field; rewrite !gt_eqF.
by rewrite ler_addl; exact: mulr_ge0 (mulr_ge0 q0 r0) (sqr_ge0 _).
Qed.

Lemma pure_mix T q a b (F G P : T -> R) : 0 <= q <= 1 -> 0 < a -> 0 < b -> measure P ->
  pure a F P -> pure b G P -> pure (q * a + (1 - q) * b) (fun x => q * F x + (1 - q) * G x) P.
Proof.
move=> q01 a0 b0 P0 hF hG x; have [q0 q1] := andP q01; have r0 : 0 <= 1 - q by rewrite subr_ge0.
have [[f1 f2] [g1 g2]] := (hF x, hG x); split.
  by rewrite [X in _ <= X]mulrDl -!mulrA; apply: ler_add; apply: ler_wpmul2l.
have k0 : 0 <= q * a + (1 - q) * b by rewrite addr_ge0 ?mulr_ge0 // ltW.
apply: (@le_trans _ _ ((q * a + (1 - q) * b) * (q / a + (1 - q) / b) * P x)).
  by rewrite -{1}[P x]mul1r ler_wpmul2r // jensen.
rewrite -mulrA ler_wpmul2l // mulrDl; apply: ler_add; rewrite -mulrA ler_wpmul2l // mulrC ler_pdivr_mulr //.
  by rewrite mulrC.
by rewrite mulrC.
Qed.

Lemma pure_refl T (P : T -> R) : pure 1 P P. Proof. by move=> x; rewrite mul1r. Qed.

Lemma pure_product T S a b (F P : T -> R) (G Q : T -> S -> R) : measure F -> measure P ->
  (forall t, measure (G t)) -> (forall t, measure (Q t)) -> pure a F P -> (forall t, pure b (G t) (Q t)) ->
  pure (a * b) (both F G) (both P Q).
Proof.
move=> F0 P0 G0 Q0 hF hG [t s]; have [[f1 f2] [g1 g2]] := (hF t, hG t s).
by rewrite /both /= ![a * b * _]mulrACA !ler_pmul ?G0 ?Q0.
Qed.

Variables (q v : R) (T S : finType) (Pw Pv P : T -> R) (Qw Q : T -> S -> R) (a b d : R).
Hypotheses (q01 : 0 <= q <= 1) (v01 : 0 <= v <= 1).
Hypotheses (dPw : measure Pw) (dPv : measure Pv) (dP : measure P).
Hypotheses (dQw : forall t, measure (Qw t)) (dQ : forall t, measure (Q t)).
Hypotheses (a0 : 1 <= a) (b0 : 1 <= b) (d0 : 1 <= d).
(* Tuning is a-DP for a record that trains, b-DP for one that validates; training is d-DP. *)
Hypotheses (tunes : pure a Pw P) (validates : pure b Pv P) (trains : forall t, pure d (Qw t) (Q t)).
Let pos1 (x : R) : 1 <= x -> 0 < x. Proof. exact: lt_le_trans ltr01. Qed.
Let ap := pos1 a0.
Let bp := pos1 b0.
Let dp := pos1 d0.
Let q0 : 0 <= q. Proof. by case/andP: q01. Qed.
Let r0 : 0 <= 1 - q. Proof. by rewrite subr_ge0; case/andP: q01. Qed.
Let v0 : 0 <= v. Proof. by case/andP: v01. Qed.
Let u0 : 0 <= 1 - v. Proof. by rewrite subr_ge0; case/andP: v01. Qed.

(** Theorem 2: q e^a + (1-q) e^d on the rest, (1 - q + q e^a) e^d on all. *)
Theorem pure_rest : pure (q * a + (1 - q) * d) (with_rest q Pw P Qw Q) (both P Q).
Proof.
apply: (pure_mix (F := both Pw Q) (G := both P Qw) q01 ap dp) => [x||].
- by rewrite mulr_ge0 // dQ.
- have := pure_product dPw dP dQ dQ tunes (fun t => @pure_refl S (Q t)); by rewrite mulr1; apply.
- have := pure_product dP dP dQw dQ (@pure_refl T P) trains; by rewrite mul1r; apply.
Qed.

Let mix_tune : pure (q * a + (1 - q) * 1) (fun t => q * Pw t + (1 - q) * P t) P.
Proof. exact: (pure_mix q01 ap ltr01 dP tunes (@pure_refl T P)). Qed.

Theorem pure_all : pure ((1 - q + q * a) * d) (with_all q Pw P Qw) (both P Q).
Proof.
have -> : 1 - q + q * a = q * a + (1 - q) * 1 by ring.
have m0 : measure (fun t => q * Pw t + (1 - q) * P t) by move=> t; rewrite addr_ge0 // mulr_ge0.
exact: (pure_product m0 dP dQw dQ mix_tune trains).
Qed.

(** Theorem 4: q e^a + (1-q) (1 - v + v e^b) e^d on the rest, (q e^a + (1-q) (1 - v + v e^b)) e^d on all. *)
Let val t := v * Pv t + (1 - v) * P t.
Let val0 : measure val. Proof. by move=> t; rewrite addr_ge0 // mulr_ge0. Qed.
Let mix_val : pure (1 - v + v * b) val P.
Proof.
have -> : 1 - v + v * b = v * b + (1 - v) * 1 by ring.
exact: (pure_mix v01 bp ltr01 dP validates (@pure_refl T P)).
Qed.
Let k1 : 0 < 1 - v + v * b.
Proof.
apply: pos1; rewrite -subr_ge0; have -> : 1 - v + v * b - 1 = v * (b - 1) by ring.
by rewrite mulr_ge0 // subr_ge0.
Qed.

Theorem pure_validate_rest : pure (q * a + (1 - q) * ((1 - v + v * b) * d))
  (with_rest4 q v Pw Pv P Qw Q) (both P Q).
Proof.
apply: (pure_mix (F := both Pw Q) (G := both val Qw) q01 ap (mulr_gt0 k1 dp)) => [x||].
- by rewrite mulr_ge0 // dQ.
- have := pure_product dPw dP dQ dQ tunes (fun t => @pure_refl S (Q t)); by rewrite mulr1; apply.
- exact: (pure_product val0 dP dQw dQ mix_val trains).
Qed.

Theorem pure_validate_all : pure ((q * a + (1 - q) * (1 - v + v * b)) * d)
  (with_all4 q v Pw Pv P Qw) (both P Q).
Proof.
have m0 : measure (fun t => q * Pw t + (1 - q) * val t) by move=> t; rewrite addr_ge0 // mulr_ge0 // val0.
exact: (pure_product m0 dP dQw dQ (pure_mix q01 ap k1 dP tunes mix_val) trains).
Qed.
End Pure.

Print Assumptions pure_rest.
Print Assumptions pure_all.
Print Assumptions pure_validate_rest.
Print Assumptions pure_validate_all.
