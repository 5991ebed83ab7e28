(** clipped_sums.md, Lemma 3: what a batch is.

    A batch b gives each of M rows a record, or none; each record that is drawn has one row. *)
From mathcomp Require Import all_ssreflect all_algebra.
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

Lemma valid_put b r j : valid b -> j \notin members b -> b r = None -> valid (put b r (Some j)).
Proof.
move=> /validP v jb e; apply/validP => r1 r2 i.
have other r' : b r' <> Some j by move=> e'; move/in_members: jb; apply; exists r'.
rewrite !ffunE; case: eqP => [->|_]; case: eqP => [->|_] //.
- by move=> [<-] /other.
- by move=> + [ei]; rewrite -ei => /other.
exact: v.
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
apply/idP/andP => [/validP v|[v jb]]; last exact: valid_put.
split; first apply/validP => r1 r2 i e1 e2.
  by apply: (v r1 r2 i); rewrite ffunE; case: eqP => // er; move: e1 e2; rewrite er ?e //; rewrite -er e.
apply/in_members => -[r' e']; move: (v r r' j); rewrite !ffunE eqxx; case: eqP => [er|ne /(_ erefl e') /esym/ne] //.
by move: e'; rewrite er e.
Qed.
End Batches.
