(** clipped_sums.md, Lemma 3: how a batch is drawn.

    A batch b gives each of M rows a record, or none. It is a Poisson sample of rate q of the records J, drawn
    again above M, in a uniformly random choice of rows: [law b]. ([law_of_members] says that this is so; the
    loop that draws again is not modelled, its result is.) *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Batches.
Variables (J : finType) (M : nat).
Definition batch := {ffun 'I_M -> option J}.
Implicit Types (b : batch) (r : 'I_M) (j : J) (S : {set J}).

(** The records that are drawn; each of them has one row. *)
Definition members b := [set j | [exists r, b r == Some j]].
Definition valid b := [forall r, forall r', (b r == b r') ==> (b r == None) || (r == r')].
Definition put b r (v : option J) : batch := [ffun r' => if r' == r then v else b r'].
Definition free b := [pred r | b r == None].

Lemma validP b : reflect (forall r r' j, b r = Some j -> b r' = Some j -> r = r') (valid b).
Proof.
apply: (iffP forallP) => [h r r' j e e'|h r].
  by move/forallP/(_ r')/implyP: (h r); rewrite e e' eqxx => /(_ isT)/eqP.
apply/forallP => r'; apply/implyP => /eqP e; case e1: (b r) => [j|] //=.
by apply/eqP; apply: (h _ _ j e1); rewrite -e.
Qed.

Lemma in_members b j : reflect (exists r, b r = Some j) (j \in members b).
Proof. by rewrite inE; apply: (iffP existsP) => -[r /eqP]; exists r => //; apply/eqP. Qed.

Lemma members_put b r j : b r = None -> members (put b r (Some j)) = j |: members b.
Proof.
move=> br; apply/setP => i; rewrite !inE; apply/existsP/idP => [[r']|].
  rewrite ffunE; case: (r' =P r) => [_ /eqP[->]|_ e]; first by rewrite eqxx.
  by apply/orP; right; apply/existsP; exists r'.
case/orP => [/eqP ->|/existsP[r' e]]; first by exists r; rewrite ffunE eqxx.
by exists r'; rewrite ffunE; case: (r' =P r) e => [->|//]; rewrite br.
Qed.

(** Rows that are taken are as many as the records that are drawn. *)
Lemma card_free b : valid b -> (#|free b| + #|members b| = M)%N.
Proof.
move/validP => v; rewrite -[RHS]card_ord -(cardC (free b)); congr (_ + _)%N.
have si : injective (@Some J) by move=> ? ? [].
rewrite -(card_imset (mem (members b)) si).
have -> : Some @: members b = b @: [set r | r \notin free b].
  apply/setP => o; apply/imsetP/imsetP => [[j /in_members[r e] ->]|[r]].
    by exists r; rewrite ?e // !inE e.
  by rewrite !inE; case e: (b r) => [j|] // _ ->; exists j => //; apply/in_members; exists r.
rewrite card_in_imset; first by apply: eq_card => r; rewrite !inE.
by move=> r r'; rewrite !inE; case e: (b r) => [j|] // _ _ e'; apply: (v _ _ j e); rewrite -e'.
Qed.

(** Batches with a record j are batches without it, and j in one of the free rows. *)
Lemma sum_with (W : zmodType) j (F : batch -> W) :
  \sum_(b | valid b && (j \in members b)) F b =
  \sum_(b | valid b && (j \notin members b)) \sum_(r | b r == None) F (put b r (Some j)).
Proof.
transitivity (\sum_(b | valid b && (j \in members b)) \sum_(r | b r == Some j) F b).
  apply: eq_bigr => b /andP[/validP v /in_members[r e]].
  rewrite (big_pred1 r) // => r' /=; apply/eqP/eqP => [e'|->] //; exact: (v _ _ j).
rewrite (exchange_big_dep xpredT) //= [RHS](exchange_big_dep xpredT) //=; apply: eq_bigr => r _.
rewrite (reindex_onto (fun b => put b r (Some j)) (fun b => put b r None)) => [|b /andP[_ /eqP e]].
  2: by apply/ffunP => r'; rewrite !ffunE; case: eqP => [->|].
apply: eq_bigl => b; rewrite !ffunE eqxx eqxx andbT -andbA.
have -> : (put (put b r (Some j)) r None == b) = (b r == None).
  apply/eqP/eqP => [<-|e]; first by rewrite !ffunE eqxx.
  by apply/ffunP => r'; rewrite !ffunE; case: eqP => [->|].
have [/= e|] := eqVneq (b r) None; rewrite ?andbF ?andbT //.
rewrite members_put // setU11 andbT.
apply/validP/andP => [v|[/validP v jb]].
  split; first apply/validP => r1 r2 i e1 e2.
    by apply: (v r1 r2 i); rewrite ffunE; case: eqP => // er; move: e1 e2; rewrite er ?e //; rewrite -er e.
  apply/in_members => -[r' e']; move: (v r r' j); rewrite !ffunE eqxx; case: eqP => [er|ne /(_ erefl e') /esym/ne] //.
  by move: e'; rewrite er e.
have other r' : b r' <> Some j by move=> e'; move/in_members: jb; apply; exists r'.
move=> r1 r2 i; rewrite !ffunE; case: eqP => [->|_]; case: eqP => [->|_] //.
- by move=> [<-] /other.
- by move=> + [ei]; rewrite -ei => /other.
exact: v.
Qed.

(** Coins of probability q, one for each record: S is the set of those that are drawn. *)
Variables (R : realFieldType) (q : R).
Hypotheses (q_ge0 : 0 <= q) (q_lt1 : q < 1).
Definition coins S := \prod_j (if j \in S then q else 1 - q).
Definition not_above := \sum_(S : {set J} | (#|S| <= M)%N) coins S.
Definition law b := if valid b then coins (members b) / (M ^_ #|members b|)%:R / not_above else 0.

Lemma coins_ge0 S : 0 <= coins S.
Proof. by apply: prodr_ge0 => j _; case: ifP; rewrite // subr_ge0 ltW. Qed.

Lemma not_above_gt0 : 0 < not_above.
Proof.
rewrite /not_above (bigD1 set0) ?cards0 //= ltr_spaddl ?sumr_ge0 // => [|S _]; last exact: coins_ge0.
by apply: prodr_gt0 => j _; rewrite inE subr_gt0.
Qed.

Lemma card_members b : valid b -> (#|members b| <= M)%N.
Proof. by move/card_free => <-; apply: leq_addl. Qed.

(** A set of k records has M (M - 1) ... (M - k + 1) choices of rows. *)
Lemma rows_of S : \sum_(b | valid b && (members b == S)) (1 : R) = (M ^_ #|S|)%:R.
Proof.
have [k] := ubnP #|S|; elim: k S => // k IH S; have [->|[j jS]] := set_0Vmem S.
  rewrite cards0 ffactn0 (big_pred1 [ffun=> None]) // => b /=; apply/andP/eqP => [[_ /eqP e]|->].
    apply/ffunP => r; rewrite ffunE; case e1: (b r) => [j|] //.
    by have : j \in members b; [apply/in_members; exists r | rewrite e inE].
  split; first by apply/validP => r r' j; rewrite ffunE.
  by apply/eqP/setP => j; rewrite [RHS]inE; apply/in_members => -[r]; rewrite ffunE.
rewrite (cardsD1 j) jS ltnS => /IH count; rewrite ffactnSr natrM -count mulr_suml.
transitivity (\sum_(b | valid b && (j \in members b)) if members b == S then 1 else 0 : R).
  rewrite -big_mkcondr; apply: eq_bigl => b; case: eqP => [->|]; rewrite ?jS ?andbF ?andbT //.
rewrite sum_with [RHS](eq_bigl (fun b => valid b && (j \notin members b) && (members b == S :\ j))); last first.
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
  \sum_(b | members b == S) law b = if (#|S| <= M)%N then coins S / not_above else 0.
Proof.
rewrite (bigID valid) /= [X in _ + X]big1 ?addr0; last by move=> b /andP[_ /negPf v]; rewrite /law v.
rewrite (eq_bigr (fun=> coins S / (M ^_ #|S|)%:R / not_above * 1)); last first.
  by move=> b /andP[/eqP e v]; rewrite /law v e mulr1.
rewrite (eq_bigl (fun b => valid b && (members b == S))) => [|b]; last exact: andbC.
rewrite -mulr_sumr rows_of; case: leqP => [le|lt]; last by rewrite ffact_small // mulr0.
by rewrite mulrAC divfK // pnatr_eq0 -lt0n ffact_gt0.
Qed.

Theorem law_dist : dist law.
Proof.
split=> [b|]; rewrite /law.
  by case: ifP => // _; rewrite !divr_ge0 ?coins_ge0 ?ler0n // ltW ?not_above_gt0.
rewrite (partition_big members xpredT) //= (eq_bigr _ (fun S _ => law_of_members S)) -big_mkcond /=.
by rewrite -mulr_suml divff // gt_eqF // not_above_gt0.
Qed.
End Batches.
Print Assumptions law_of_members.
Print Assumptions law_dist.
