(** clipped_sums.md, "Subsets": a subset of more than n records is drawn again.

    Every record joins the subset S with probability q, and S is drawn again above n. A S x is all that is released
    if S is the subset: of a search on it, and of the final training. Given the others, a record joins with
    probability q, or never, if they take all places; the latter has the probability [w]. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions clipped_sums_sampling clipped_sums_batches clipped_sums_law.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Subsets.
Variables (R : realFieldType) (J O : finType) (n : nat) (T : Type) (q : R).
Variable A : {set J} -> (J -> option T) -> O -> R.
Hypotheses (q_ge0 : 0 <= q) (q_le1 : q <= 1) (ends : 0 < not_above J n q).
Implicit Types (S : {set J}) (x : J -> option T).

Definition subset S := if (#|S| <= n)%N then coins q S / not_above J n q else 0.
Definition search x : O -> R := mixed subset (A ^~ x).

Lemma subset_dist : dist subset.
Proof.
split=> [S|]; first by rewrite /subset; case: ifP => // _; rewrite divr_ge0 ?coins_ge0 // ltW.
by rewrite -big_mkcond -mulr_suml divff // gt_eqF.
Qed.

Variable j : J.
(** The others, and what is released given them. *)
Definition others_drawn S := if j \in S then 0
  else if (#|S| < n)%N then coins_of_others q j S / not_above J n q else subset S.
Definition given x S : O -> R := if (#|S| < n)%N then sampled q (A (j |: S) x) (A S x) else A S x.
Definition w := \sum_(S : {set J} | (j \notin S) && (#|S| == n)) subset S.

(** Sets with j are sets without it, and j. *)
Lemma sum_sets (W : zmodType) (F : {set J} -> W) :
  \sum_S F S = \sum_(S : {set J} | j \notin S) (F (j |: S) + F S).
Proof.
rewrite big_split (bigID (fun S : {set J} => j \in S)) /=; congr (_ + _).
rewrite (reindex_onto (fun S => j |: S) (fun S => S :\ j)) => [|S jS]; last exact: setD1K.
apply: eq_bigl => S; rewrite setU11; apply/eqP/idP => [<-|jS]; first by rewrite !inE eqxx.
by rewrite setU1K.
Qed.

Lemma search_given x : search x =1 mixed others_drawn (given x).
Proof.
move=> o; rewrite /search /mixed sum_sets [RHS](bigID (fun S : {set J} => j \in S)) /=.
rewrite [X in _ = X + _]big1 ?add0r => [|S jS]; last by rewrite /others_drawn jS mul0r.
apply: eq_bigr => S jS; rewrite /others_drawn (negPf jS) /given /subset cardsU1 jS add1n.
case: ltnP => [lt|ge]; last by rewrite mul0r add0r.
by rewrite (ltnW lt) (coins_with q jS) (coins_without q jS) /sampled; ring.
Qed.

Lemma others_dist : dist others_drawn.
Proof.
split=> [S|].
  rewrite /others_drawn; case: ifP => // _; case: ifP => _; last by case: subset_dist.
  by rewrite divr_ge0 ?(ltW ends) ?prodr_ge0 // => i _; case: ifP; rewrite // subr_ge0.
have [_ <-] := subset_dist; rewrite [RHS]sum_sets [LHS](bigID (fun S : {set J} => j \in S)) /= big1 ?add0r => [|S jS].
  apply: eq_bigr => S jS; rewrite /others_drawn (negPf jS) /subset cardsU1 jS add1n.
  case: ltnP => [lt|ge]; last by rewrite add0r.
  by rewrite (ltnW lt) (coins_with q jS) (coins_without q jS); ring.
by rewrite /others_drawn jS.
Qed.

(** d bounds what both amplifications give, d_full what the final training alone costs. *)
Theorem subsets x x' c d d_full :
  (forall S, j \notin S -> (#|S| < n)%N -> hockey c (given x S) (given x' S) <= d) ->
  (forall S, j \notin S -> #|S| = n -> hockey c (A S x) (A S x') <= d_full) ->
  hockey c (search x) (search x') <= (1 - w) * d + w * d_full.
Proof.
move=> some none; rewrite (hockey_ext c (search_given x) (search_given x')).
have [w0 w1] := others_dist; apply: le_trans (joint_convexity _ _ _ w0) _.
pose full S := (j \notin S) && (#|S| == n).
have wE : w = \sum_(S | full S) others_drawn S.
  by apply: eq_bigr => S /andP[/negPf jS /eqP e]; rewrite /others_drawn jS e ltnn.
have -> : 1 - w = \sum_(S | ~~ full S) others_drawn S by rewrite wE -w1 (bigID full) /= addrC addKr.
rewrite wE !mulr_suml (bigID full) /= addrC; apply: ler_add; apply: ler_sum => S fS.
  rewrite /others_drawn; case: ifP => [_|/negbT jS]; first by rewrite !mul0r.
  case: ltnP => [lt|ge].
    rewrite ler_wpmul2l ?some // divr_ge0 ?(ltW ends) ?prodr_ge0 // => i _.
    by case: ifP; rewrite // subr_ge0.
  suff -> : subset S = 0 by rewrite !mul0r.
  by rewrite /subset leqNgt ltn_neqAle ge andbT eq_sym; move: fS; rewrite /full jS /= => ->.
case/andP: fS => jS /eqP e; rewrite ler_wpmul2l // /given e ltnn; exact: none.
Qed.

(** Where the record is blank, and a blank record inside is a record outside (clipped_sums_places.v), what is
    released given the others does not depend on the record. *)
Lemma given_blank x S : A (j |: S) x =1 A S x -> given x S =1 A S x.
Proof. by move=> e o; rewrite /given; case: ifP => // _; rewrite /sampled e; ring. Qed.
End Subsets.
Print Assumptions subsets.
