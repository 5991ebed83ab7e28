(** docs/theory/subset.md, what stands beside Theorem 2: the expectations that its pair amounts
    to; and docs/theory/subset_costs.md, "What is attainable". *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset_fixed.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Expectations.
Variables (R : realFieldType) (q c : R) (U V : finType) (A A' : U -> R) (B B' : V -> R).
Hypotheses (q01 : 0 <= q <= 1) (c0 : 0 <= c).
Hypotheses (dA : dist A) (dA' : dist A') (dB : dist B) (dB' : dist B').

(** The ratios X*, Y* and their masses at infinity. *)
Let X u := A u / A' u.
Let Y v := B v / B' v.
Definition at_infinity (T : finType) (P P' : T -> R) := \sum_(x | P' x == 0) P x.
Definition finite (T : finType) (P' : T -> R) : pred T := fun x => P' x != 0.

Let XE u : finite A' u -> A u = A' u * X u. Proof. by move=> h; rewrite /X mulrC divfK. Qed.
Let YE v : finite B' v -> B v = B' v * Y v. Proof. by move=> h; rewrite /Y mulrC divfK. Qed.

Lemma split_sum (F G : U -> V -> R) :
  (forall u v, finite A' u -> finite B' v -> F u v = G u v) ->
  \sum_u \sum_v F u v = (\sum_(u | finite A' u) \sum_(v | finite B' v) G u v) +
    (\sum_(u | A' u == 0) \sum_v F u v) + \sum_(u | finite A' u) \sum_(v | B' v == 0) F u v.
Proof.
move=> h; rewrite (bigID (finite A')) /= addrAC -big_split /=; congr (_ + _); last first.
  by apply: eq_bigl => u; rewrite /finite negbK.
apply: eq_bigr => u hu; rewrite (bigID (finite B')) /=; congr (_ + _).
  by apply: eq_bigr => v hv; exact: h.
by apply: eq_bigl => v; rewrite /finite negbK.
Qed.

(** E (Z* - c)_+ + mass at infinity, Z* = q X* + (1 - q) Y* (on the rest). *)
Theorem expectation_rest : hockey c (pair_rest q A A' B B') (product A' B') =
  (\sum_(u | finite A' u) \sum_(v | finite B' v) A' u * B' v * pos (q * X u + (1 - q) * Y v - c)) +
  (q * at_infinity A A' + (1 - q) * at_infinity B B').
Proof.
have [q0 q1] := andP q01; have r0 : 0 <= 1 - q by rewrite subr_ge0.
rewrite /hockey sum_pair (split_sum (G := fun u v => A' u * B' v * pos (q * X u + (1 - q) * Y v - c))); last first.
  move=> u v hu hv; rewrite -posM ?mulr_ge0 ?dA'.1 ?dB'.1 //; congr pos.
  by rewrite /pair_rest /with_rest /product /= (XE hu) (YE hv); ring.
rewrite -addrA; congr (_ + (_ + _)); rewrite /pair_rest /with_rest /product /=.
  rewrite mulr_sumr; apply: eq_bigr => u /eqP ->.
  rewrite -[RHS]mulr1 -dB'.2 mulr_sumr; apply: eq_bigr => v _.
  rewrite !mul0r !mulr0 addr0 subr0 pos_id; first by ring.
  by rewrite !mulr_ge0 ?dA.1 ?dB'.1.
transitivity (\sum_(u | finite A' u) A' u * ((1 - q) * at_infinity B B')).
  apply: eq_bigr => u _; rewrite !mulr_sumr; apply: eq_bigr => v /eqP ->.
  rewrite !mulr0 add0r subr0 pos_id; first by ring.
  by rewrite !mulr_ge0 ?dA'.1 ?dB.1.
rewrite -mulr_suml; suff -> : \sum_(u | finite A' u) A' u = 1 by rewrite mul1r.
by rewrite -dA'.2 [RHS](bigID (finite A')) /= [X in _ + X]big1 ?addr0 // => u /negPn /eqP.
Qed.

(** Z* = (1 - q + q X* ) Y* (on all): the mass at infinity is that of the product. *)
Theorem expectation_all : hockey c (pair_all q A A' B) (product A' B') =
  (\sum_(u | finite A' u) \sum_(v | finite B' v) A' u * B' v * pos ((1 - q + q * X u) * Y v - c)) +
  q * at_infinity A A' + (\sum_(u | finite A' u) A' u * (1 - q + q * X u)) * at_infinity B B'.
Proof.
have [q0 q1] := andP q01; have r0 : 0 <= 1 - q by rewrite subr_ge0.
rewrite /hockey sum_pair (split_sum (G := fun u v => A' u * B' v * pos ((1 - q + q * X u) * Y v - c))); last first.
  move=> u v hu hv; rewrite -posM ?mulr_ge0 ?dA'.1 ?dB'.1 //; congr pos.
  by rewrite /pair_all /with_all /product /= (XE hu) (YE hv); ring.
congr (_ + _ + _); rewrite /pair_all /with_all /product /=.
  rewrite mulr_sumr; apply: eq_bigr => u /eqP ->.
  rewrite -[RHS]mulr1 -dB.2 mulr_sumr; apply: eq_bigr => v _.
  rewrite !mul0r !mulr0 addr0 subr0 pos_id; first by ring.
  by rewrite !mulr_ge0 ?dA.1 ?dB.1.
rewrite mulr_suml; apply: eq_bigr => u hu; rewrite !mulr_sumr; apply: eq_bigr => v /eqP ->.
rewrite !mulr0 subr0 pos_id; first by rewrite {1}(XE hu); ring.
by rewrite mulr_ge0 ?addr_ge0 ?mulr_ge0 ?dA.1 ?dA'.1 ?dB.1.
Qed.
End Expectations.

Section Beside.
Variables (R : realFieldType) (q c : R).
(** subset_costs.md: "H_c(q A + (1-q) A' || A') = q H_{1 + (c-1)/q}(A || A')". *)
Theorem attainable (T : finType) (A A' : T -> R) : 0 < q ->
  hockey c (fun x => q * A x + (1 - q) * A' x) A' = q * hockey (1 + (c - 1) / q) A A'.
Proof.
move=> qp; rewrite mulr_sumr; apply: eq_bigr => x _; rewrite -posM ?ltW //; congr pos.
by field; rewrite gt_eqF.
Qed.
End Beside.

Print Assumptions expectation_rest.
Print Assumptions expectation_all.
Print Assumptions attainable.
