(** docs/theory/subset.md, what stands beside Theorem 2: the expectations that its pair amounts to, pure
    parts, known membership; and docs/theory/subset_costs.md, "What is attainable". *)
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
Hypothesis q01 : 0 <= q <= 1.
Let q0 : 0 <= q. Proof. by case/andP: q01. Qed.
Let r0 : 0 <= 1 - q. Proof. by rewrite subr_ge0; case/andP: q01. Qed.

(** "Pure parts": tuning is a-DP and training b-DP, with a and b for e^a and e^b. *)
Definition pure (T : finType) a (P P' : T -> R) := forall x, P x <= a * P' x /\ P' x <= a * P x.

(* "-log E e^-L <= E L <= log E e^L." *)
Lemma jensen a b : 0 < a -> 0 < b -> 1 <= (q * a + (1 - q) * b) * (q / a + (1 - q) / b).
Proof.
move=> a0 b0; have ab : 0 < a * b by rewrite mulr_gt0.
rewrite -(ler_pmul2r ab) mul1r.
have -> : (q * a + (1 - q) * b) * (q / a + (1 - q) / b) * (a * b) =
  a * b + q * (1 - q) * (a - b) ^+ 2 by field; rewrite !gt_eqF.
by rewrite ler_addl; exact: mulr_ge0 (mulr_ge0 q0 r0) (sqr_ge0 _).
Qed.

Theorem pure_rest (T S : finType) a b (Pw P : T -> R) (Qw Q : T -> S -> R) : 0 < a -> 0 < b ->
  measure P -> (forall t, measure (Q t)) -> pure a Pw P -> (forall t, pure b (Qw t) (Q t)) ->
  pure (q * a + (1 - q) * b) (with_rest q Pw P Qw Q) (fun z => P z.1 * Q z.1 z.2).
Proof.
move=> a0 b0 P0 Q0 pP pQ [t s]; rewrite /with_rest /=; case: (pP t) => h1 h2; case: (pQ t s) => h3 h4.
have PQ0 : 0 <= P t * Q t s by rewrite mulr_ge0 ?Q0.
split.
  apply: (@le_trans _ _ (q * (a * P t * Q t s) + (1 - q) * (P t * (b * Q t s)))).
    by apply: ler_add; apply: ler_wpmul2l => //; [apply: ler_wpmul2r; rewrite ?Q0 | apply: ler_wpmul2l].
  by apply: le_of_eq; ring.
have c0 : 0 <= q * a + (1 - q) * b by rewrite addr_ge0 ?mulr_ge0 // ltW.
apply: (@le_trans _ _ ((q * a + (1 - q) * b) * ((q / a + (1 - q) / b) * (P t * Q t s)))).
  by rewrite mulrA -{1}[P t * _]mul1r ler_wpmul2r // jensen.
rewrite ler_wpmul2l // mulrDl; apply: ler_add; rewrite -mulrA ler_wpmul2l //.
  by rewrite mulrA ler_wpmul2r ?Q0 // mulrC ler_pdivr_mulr // mulrC.
by rewrite mulrCA ler_wpmul2l // mulrC ler_pdivr_mulr // mulrC.
Qed.

(** "Known membership": the parts may use who is in the subset. [coins] are those of all records. *)
Theorem known_membership (O T S : finType) (w : bool * O -> R) (tune : bool * O -> bool -> T -> R)
    (train : bool * O -> bool -> T -> S -> R) dtune dtrain : dist w ->
  (forall o x, dist (tune o x)) -> (forall o x, kernel (train o x)) ->
  (forall o, hockey c (tune (true, o) true) (tune (true, o) false) <= dtune) ->
  (forall o t, hockey c (train (false, o) true t) (train (false, o) false t) <= dtrain) ->
  (* a record in the subset changes tuning alone, one outside of it training alone *)
  (forall o t, train (true, o) true t =1 train (true, o) false t) ->
  (forall o, tune (false, o) true =1 tune (false, o) false) ->
  \sum_o w (true, o) = q -> \sum_o w (false, o) = 1 - q ->
  hockey c (mixed w (fun o => both (tune o true) (train o true)))
           (mixed w (fun o => both (tune o false) (train o false))) <= q * dtune + (1 - q) * dtrain.
Proof.
move=> dw dt dn h1 h2 e1 e2 <- <-; apply: le_trans (joint_convexity _ _ _ dw.1) _.
rewrite sum_pair big_bool; apply: ler_add; rewrite mulr_suml; apply: ler_sum => o _;
  apply: ler_wpmul2l; rewrite ?dw.1 //.
  apply: le_trans (h1 o).
  pose K t (z : T * S) := (t == z.1)%:R * train (true, o) true t z.2 : R.
  have kK : kernel K.
    move=> t; split=> [z|]; first by rewrite mulr_ge0 ?ler0n // (dn _ _ _).1.
    rewrite sum_pair (bigD1 t) //= [X in _ + X]big1 ?addr0 => [|u /negbTE ut]; last first.
      by apply: big1 => s _; rewrite /K /= eq_sym ut mul0r.
    by under eq_bigr do rewrite /K /= eqxx mul1r; rewrite (dn _ _ _).2.
  have e (F : T -> R) : both F (train (true, o) true) =1 post F K.
    move=> [t s]; rewrite /both /post (bigD1 t) //= big1 ?addr0 => [|u /negbTE ut].
      by rewrite /K /= eqxx mul1r.
    by rewrite /K /= ut mul0r mulr0.
  rewrite (hockey_ext c (e _) (Q1 := post (tune (true, o) false) K)); last first.
    by move=> [t s]; rewrite -e /both /= e1.
  exact: post_processing.
rewrite (hockey_ext c (P1 := both (tune (false, o) false) (train (false, o) true)) (Q1 :=
  both (tune (false, o) false) (train (false, o) false))) => [|[t s]|//]; last by rewrite /both /= e2.
rewrite mixture_released; last exact: (dt _ _).1.
rewrite -[dtrain]mul1r -(dt (false, o) false).2 mulr_suml; apply: ler_sum => t _.
by rewrite ler_wpmul2l ?(dt _ _).1.
Qed.

(** subset_costs.md: "H_c(q A + (1-q) A' || A') = q H_{1 + (c-1)/q}(A || A')". *)
Theorem attainable (T : finType) (A A' : T -> R) : 0 < q ->
  hockey c (fun x => q * A x + (1 - q) * A' x) A' = q * hockey (1 + (c - 1) / q) A A'.
Proof.
move=> qp; rewrite mulr_sumr; apply: eq_bigr => x _; rewrite -posM //; congr pos.
by field; rewrite gt_eqF.
Qed.
End Beside.

Print Assumptions expectation_rest.
Print Assumptions expectation_all.
Print Assumptions pure_rest.
Print Assumptions known_membership.
Print Assumptions attainable.
