(** right_guesses.md: how many coins an attack may guess right under claims (c = e^eps, d = delta). f is the minimum
    of lines; the theorem holds for each of them, and so for f.

    s: the fair coins of the canaries I; M s: the release if they are s; guess o i: what the attack says of canary i
    when it sees the release o, or None; it guesses r of them. *)
From mathcomp Require Import all_ssreflect all_algebra zify.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Guesses.
Variables (R : realFieldType) (I O : finType) (M : {ffun I -> bool} -> O -> R).
Variables (guess : O -> I -> option bool) (r : nat).
Hypothesis guesses : forall o, #|[pred i | guess o i != None]| = r.
Implicit Types (s : {ffun I -> bool}) (o : O) (i : I) (a b c d : R) (j : nat).

Definition flip i s : {ffun I -> bool} := [ffun l => if l == i then ~~ s l else s l].
Definition right_at s o i := guess o i == Some (s i).
Definition wrong_at s o i := guess o i == Some (~~ s i).
Definition right s o : nat := #|[pred i | right_at s o i]|.
Definition right_others s o i : nat := #|[pred l | (l != i) && right_at s o l]|.

(** A line of f: for each canary, whatever the other coins are, in both orders, every event has P <= a + b Q. *)
Definition line a b := forall s i (S : pred O), \sum_(o | S o) M s o <= a + b * \sum_(o | S o) M (flip i s) o.

Lemma flipK i : involutive (flip i).
Proof. by move=> s; apply/ffunP => l; rewrite !ffunE; case: eqP => // _; rewrite negbK. Qed.

Lemma right_split s o i : right s o = (right_at s o i + right_others s o i)%N.
Proof. by rewrite /right (cardD1 i) inE; congr (_ + _)%N; apply: eq_card => l; rewrite !inE. Qed.

(** W_i "depends on the release and the other coins". *)
Lemma right_others_flip s o i : right_others (flip i s) o i = right_others s o i.
Proof. by apply: eq_card => l; rewrite !inE /right_at ffunE; case: eqP. Qed.

Lemma right_at_flip s o i : right_at s o i = wrong_at (flip i s) o i.
Proof. by rewrite /right_at /wrong_at ffunE eqxx negbK. Qed.

Lemma wrong_guesses s o : #|[pred i | wrong_at s o i]| = (r - right s o)%N.
Proof.
rewrite -(guesses o) /right -(cardID [pred i | right_at s o i] [pred i | guess o i != None]).
have -> : #|[predI [pred i | guess o i != None] & [pred i | right_at s o i]]| = #|[pred i | right_at s o i]|.
  by apply: eq_card => i; rewrite !inE /right_at; case: (guess o i).
rewrite addKn; apply: eq_card => i; rewrite !inE /right_at /wrong_at; case: (guess o i) => [b|] //=.
by rewrite andbT /eq_op /=; case: b (s i) => -[].
Qed.

(** The sum over the coins of an expectation: 2^m times E. *)
Definition total (F : {ffun I -> bool} -> O -> R) := \sum_s \sum_o M s o * F s o.

(** The event E of canary i and its side s i. *)
Definition event j s i o := right_at s o i && (j.-1 <= right_others s o i)%N.

Theorem right_guesses a b j : line a b -> (0 < j)%N ->
  total (fun s o => (right s o)%:R * (j <= right s o)%:R) <=
  (2 ^ #|I| * #|I|)%:R * a + b * total (fun s o => (r - right s o)%:R * (j.-1 <= right s o)%:R).
Proof.
move=> cl j0.
have lhs : total (fun s o => (right s o)%:R * (j <= right s o)%:R) = \sum_s \sum_i \sum_(o | event j s i o) M s o.
  apply: eq_bigr => s _; transitivity (\sum_o \sum_(i | event j s i o) M s o); last first.
    rewrite (exchange_big_dep xpredT) //=; by [].
  apply: eq_bigr => o _; rewrite sumr_const -[RHS]mulr_natr; congr (_ * _).
  rewrite -natrM; congr (_%:R); case: leqP => [le|lt]; rewrite ?muln1 ?muln0.
    by apply: eq_card => i; rewrite !inE /event; case e: (right_at s o i) => //=; move: le; rewrite (right_split s o i) e; lia.
  by apply/esym/eq_card0 => i; rewrite !inE /event; case e: (right_at s o i) => //=; move: lt; rewrite (right_split s o i) e; lia.
have rhs : total (fun s o => (r - right s o)%:R * (j.-1 <= right s o)%:R) = \sum_s \sum_i \sum_(o | event j s i o) M (flip i s) o.
  have turned s i o : event j (flip i s) i o = wrong_at s o i && (j.-1 <= right s o)%N.
    rewrite /event right_at_flip flipK right_others_flip (right_split s o i); case w: (wrong_at s o i) => //=.
    by suff -> : right_at s o i = false by []; move: w; rewrite /right_at /wrong_at => /eqP ->; case: (s i).
  transitivity (\sum_s \sum_i \sum_(o | event j (flip i s) i o) M s o); last first.
    rewrite exchange_big [RHS]exchange_big; apply: eq_bigr => i _ /=.
    by rewrite (reindex_inj (inv_inj (flipK i))); apply: eq_bigr => s _; rewrite flipK.
  apply: eq_bigr => s _; transitivity (\sum_o \sum_(i | event j (flip i s) i o) M s o); last first.
    by rewrite (exchange_big_dep xpredT).
  apply: eq_bigr => o _; rewrite sumr_const -[RHS]mulr_natr; congr (_ * _); rewrite -natrM -wrong_guesses; congr (_%:R).
  case: leqP => [le|lt]; rewrite ?muln1 ?muln0.
    by apply: eq_card => i; rewrite -[RHS]/(event j (flip i s) i o) turned le andbT inE.
  by apply/esym/eq_card0 => i; rewrite -[LHS]/(event j (flip i s) i o) turned leqNgt lt andbF.
have number : (2 ^ #|I| * #|I|)%:R * a = \sum_(s : {ffun I -> bool}) \sum_(i : I) a.
  by rewrite !sumr_const card_ffun card_bool -mulrnA mulnC mulr_natl.
rewrite lhs rhs number mulr_sumr -big_split; apply: ler_sum => s _ /=.
rewrite mulr_sumr -big_split; by apply: ler_sum => i _ /=; apply: cl.
Qed.

(** The lines of a claim (eps, delta). *)
Theorem claim_lines c d : 0 < c -> (forall s, dist (M s)) -> (forall s i, hockey c (M s) (M (flip i s)) <= d) ->
  line d c /\ line (1 - c^-1 * (1 - d)) c^-1.
Proof.
move=> c0 dM h; split=> s i S.
  by rewrite -ler_subl_addr; apply: le_trans (hockey_event _ _ _ _) (h s i).
have := le_trans (hockey_event c (M (flip i s)) (M (flip i (flip i s))) (predC S)) (h _ _); rewrite flipK.
have out t : \sum_(o | predC S o) M t o = 1 - \sum_(o | S o) M t o.
  by have [_ <-] := dM t; rewrite [X in X - _](bigID S) /= addrC addKr.
rewrite !out; set P := \sum_(o | S o) M s o; set Q := \sum_(o | S o) M (flip i s) o => le.
rewrite -subr_ge0; have -> : 1 - c^-1 * (1 - d) + c^-1 * Q - P = c^-1 * (d - (1 - Q - c * (1 - P))).
  by field; rewrite gt_eqF.
by rewrite mulr_ge0 ?invr_ge0 ?(ltW c0) // subr_ge0.
Qed.
End Guesses.
Print Assumptions right_guesses.
Print Assumptions claim_lines.
