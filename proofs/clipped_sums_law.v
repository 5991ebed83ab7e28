(** clipped_sums.md, Lemma 3: how a batch is drawn.

    It is a Poisson sample of rate q of the records J, drawn again above M, in a uniformly random choice of M
    rows: [law b]. ([law_of_members] says that this is so; the loop that draws again is not modelled, its result
    is.) Where one record is in it, and where it is not: [law_with], [law_without]. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions clipped_sums_batches.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Law.
Variables (J : finType) (M : nat).
Implicit Types (b : batch J M) (r : 'I_M) (j : J) (S : {set J}).

(** Coins of probability q, one for each record: S is the set of those that are drawn. *)
Variables (R : realFieldType) (q : R).
Hypotheses (q_ge0 : 0 <= q) (q_le1 : q <= 1).
Definition coins S := \prod_j (if j \in S then q else 1 - q).
Definition not_above := \sum_(S : {set J} | (#|S| <= M)%N) coins S.
Definition law b := if valid b then coins (members b) / (M ^_ #|members b|)%:R / not_above else 0.

Lemma coins_ge0 S : 0 <= coins S.
Proof. by apply: prodr_ge0 => j _; case: ifP; rewrite // subr_ge0. Qed.

(** The loop ends: with q < 1, and if all records have room. *)
Lemma some_set S : (#|S| <= M)%N -> 0 < coins S -> 0 < not_above.
Proof.
move=> le lt; rewrite /not_above (bigD1 S) //= ltr_spaddl ?sumr_ge0 // => S' _; exact: coins_ge0.
Qed.

Lemma ends_if : q < 1 \/ (#|J| <= M)%N -> 0 < not_above.
Proof.
have [q1|q_neq] := eqVneq q 1; last first.
  move=> _; apply: (@some_set set0); rewrite ?cards0 //; apply: prodr_gt0 => j _.
  by rewrite inE subr_gt0 lt_neqAle q_neq.
rewrite {1}q1 ltxx => -[//|room]; apply: (@some_set setT); rewrite ?cardsT //.
by apply: prodr_gt0 => j _; rewrite inE q1 ltr01.
Qed.
Hypothesis ends : 0 < not_above.

Lemma card_members b : valid b -> (#|members b| <= M)%N.
Proof. by move=> v; rewrite -[X in (_ <= X)%N](card_free v) leq_addl. Qed.

(** A set of k records has M (M - 1) ... (M - k + 1) choices of rows. *)
Lemma rows_of S : \sum_(b : batch J M | valid b && (members b == S)) (1 : R) = (M ^_ #|S|)%:R.
Proof.
have [k] := ubnP #|S|; elim: k S => // k IH S; have [->|[j jS]] := set_0Vmem S.
  rewrite cards0 ffactn0 (big_pred1 [ffun=> None]) // => b /=; apply/andP/eqP => [[_ /eqP e]|->].
    apply/ffunP => r; rewrite ffunE; case e1: (b r) => [j|] //.
    by have : j \in members b; [apply/in_members; exists r | rewrite e inE].
  split; first by apply/validP => r r' j; rewrite ffunE.
  by apply/eqP/setP => j; rewrite [RHS]inE; apply/in_members => -[r]; rewrite ffunE.
rewrite (cardsD1 j) jS ltnS => /IH count; rewrite ffactnSr natrM -count mulr_suml.
transitivity (\sum_(b : batch J M | valid b && (j \in members b)) if members b == S then 1 else 0 : R).
  rewrite -big_mkcondr; apply: eq_bigl => b; case: eqP => [->|]; rewrite ?jS ?andbF ?andbT //.
rewrite sum_with [RHS](eq_bigl (fun b : batch J M => valid b && (j \notin members b) && (members b == S :\ j))); last first.
  by move=> b; case: eqP => [->|]; rewrite ?andbF // setD11 !andbT.
rewrite [RHS]big_mkcondr; apply: eq_bigr => b /andP[v jb].
rewrite (eq_bigr (fun=> if members b == S :\ j then 1 else 0)) => [|r /eqP e]; last first.
  rewrite members_put //; congr (if _ then _ else _); apply/eqP/eqP => [<-|->]; last exact: setD1K.
  by rewrite setU1K.
case: eqP => [e|]; last by rewrite big1.
rewrite sumr_const -e; have -> : (M - #|members b|)%N = #|free b|; last by rewrite mul1r.
by rewrite -[X in (X - _)%N](card_free v) addnK.
Qed.

(** The law of the set that is drawn is that of the coins, given that they are not above M. Given the set, all
    choices of rows are equally likely, since [law b] depends on it alone. *)
Theorem law_of_members S :
  \sum_(b : batch J M | members b == S) law b = if (#|S| <= M)%N then coins S / not_above else 0.
Proof.
rewrite (bigID (@valid J M)) /= [X in _ + X]big1 ?addr0; last by move=> b /andP[_ /negPf v]; rewrite /law v.
rewrite (eq_bigr (fun=> coins S / (M ^_ #|S|)%:R / not_above * 1)); last first.
  by move=> b /andP[/eqP e v]; rewrite /law v e mulr1.
rewrite (eq_bigl (fun b : batch J M => valid b && (members b == S))) => [|b]; last exact: andbC.
rewrite -mulr_sumr rows_of; case: leqP => [le|lt]; last by rewrite ffact_small // mulr0.
by rewrite mulrAC divfK // pnatr_eq0 -lt0n ffact_gt0.
Qed.

Theorem law_dist : dist law.
Proof.
split=> [b|]; rewrite /law.
  by case: ifP => // _; rewrite !divr_ge0 ?coins_ge0 ?ler0n // ltW.
rewrite (partition_big (@members J M) xpredT) //= (eq_bigr _ (fun S _ => law_of_members S)) -big_mkcond /=.
by rewrite -mulr_suml divff // gt_eqF.
Qed.

(** Lemma 3, (1) and (2). *)
Section One_record.
Variable j : J.

(** (1) and (2): the weight of the others, who are drawn into rows, and of a row that is left for the record. *)
Definition others b := valid b && (j \notin members b).
Definition coins_of_others (S : {set J}) := \prod_(i | i != j) (if i \in S then q else 1 - q).
Definition weight b := coins_of_others (members b) / (M ^_ #|members b|.+1)%:R / not_above.
Definition full b := if #|members b| == M then law b else 0.

Lemma coins_without S : j \notin S -> coins S = (1 - q) * coins_of_others S.
Proof. by move=> jS; rewrite /coins (bigD1 j) //= (negPf jS). Qed.

Lemma coins_with S : j \notin S -> coins (j |: S) = q * coins_of_others S.
Proof.
move=> jS; rewrite /coins (bigD1 j) //= setU11; congr (_ * _); apply: eq_bigr => i ij.
by rewrite in_setU1 (negPf ij).
Qed.

(** The record is drawn into a free row with probability q of the weight, *)
Lemma law_with b r : others b -> b r = None -> law (put b r (Some j)) = q * weight b.
Proof.
case/andP=> v jb e; rewrite /law valid_put // members_put //.
by rewrite coins_with // cardsU1 jb add1n /weight !mulrA.
Qed.

(** and not with 1 - q of it. Where the others fill the batch, it is never drawn. *)
Lemma law_without b : others b -> law b = (1 - q) * (\sum_(r | b r == None) weight b) + full b.
Proof.
case/andP=> v jb; rewrite /full; case: eqP => [e|ne].
  rewrite big1 ?mulr0 ?add0r // => r /eqP br; have := card_free v; rewrite e -[X in _ = X]add0n => /addIn.
  by move/card0_eq/(_ r); rewrite !inE br.
have lt : (#|members b| < M)%N by rewrite ltn_neqAle card_members // andbT; apply/eqP.
rewrite addr0 sumr_const; have -> : #|[pred r | b r == None]| = (M - #|members b|)%N.
  by rewrite -[X in (X - _)%N](card_free v) addnK.
rewrite -mulr_natr /law v coins_without // /weight ffactnSr natrM.
have f0 : (M ^_ #|members b|)%:R != 0 :> R by rewrite pnatr_eq0 -lt0n ffact_gt0 ltnW.
have m0 : (M - #|members b|)%:R != 0 :> R by rewrite pnatr_eq0 subn_eq0 -ltnNge.
have z0 : not_above != 0 by rewrite gt_eqF.
by field; rewrite f0 m0 z0.
Qed.
End One_record.
End Law.
Print Assumptions law_of_members.
Print Assumptions law_dist.
