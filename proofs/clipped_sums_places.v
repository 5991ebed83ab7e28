(** clipped_sums.md, "Subsets": a record outside the subset is a blank record inside.

    A net on a secret subset draws its batches from n public places. The members take the first ones, in order;
    the others are blank. A blank member in the middle gives the same releases as if he were no member at all,
    though those behind him take other places: a record counts for what it is, and not for its place. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm zify.
From Proofs Require Import definitions clipped_sums_batches clipped_sums_law clipped_sums_rows.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Any_places.
Variables (R : realFieldType) (J O : finType) (M : nat) (T : Type) (V : zmodType) (q : R).
Variables (p : {perm J}).
Implicit Types (x : J -> option T) (b : batch J M) (S : {set J}).

Definition moved b : batch J M := [ffun r => omap p (b r)].
Lemma moved_inj : injective moved.
Proof.
move=> b b' /ffunP e; apply/ffunP => r; move: (e r); rewrite !ffunE.
by case: (b r) (b' r) => [i|] [i'|] //= [/perm_inj ->].
Qed.

Lemma members_moved b : members (moved b) = p @: members b.
Proof.
apply/setP => j; apply/in_members/imsetP => [[r]|[i /in_members[r e] ->]].
  by rewrite ffunE; case e: (b r) => [i|] //= [<-]; exists i => //; apply/in_members; exists r.
by exists r; rewrite ffunE e.
Qed.

Lemma valid_moved b : valid (moved b) = valid b.
Proof.
apply/validP/validP => v r r' j; first by move=> e e'; apply: (v r r' (p j)); rewrite ffunE ?e ?e'.
rewrite !ffunE; case e: (b r) => [i|] //= [<-]; case e': (b r') => [i'|] //= [/perm_inj ii].
by apply: (v r r' i) => //; rewrite e' ii.
Qed.

Lemma coins_moved S : coins q (p @: S) = coins q S.
Proof.
rewrite /coins (reindex_inj (@perm_inj _ p)); apply: eq_bigr => j _.
by rewrite mem_imset //; apply: perm_inj.
Qed.

(** All places are equal: a step of the records in other places has the same distribution. *)
Lemma step_any_places (f : 'I_M -> T -> V) (N : V -> O -> R) x : step q f N (x \o p) =1 step q f N x.
Proof.
move=> o; rewrite /step /mixed [RHS](reindex_inj moved_inj); apply: eq_bigr => b _.
congr (_ * _); first by rewrite /law valid_moved members_moved coins_moved card_imset //; apply: perm_inj.
by congr N; apply: eq_bigr => r _; rewrite ffunE; case: (b r).
Qed.

(** A training: in each step what a row adds, and the noise, may depend on all that was released before. *)
Variables (f : seq O -> 'I_M -> T -> V) (N : seq O -> V -> O -> R).
Fixpoint training x (before released : seq O) : R :=
  if released is o :: later then step q (f before) (N before) x o * training x (rcons before o) later else 1.

Corollary training_any_places x before released : training (x \o p) before released = training x before released.
Proof. by elim: released before => //= o later IH before; rewrite step_any_places IH. Qed.
End Any_places.

Section Subset.
Variables (R : realFieldType) (O : finType) (M n : nat) (T : Type) (V : zmodType) (q : R).
Variables (f : seq O -> 'I_M -> T -> V) (N : seq O -> V -> O -> R).

(** Members in the first places, in order. *)
Definition in_places (members : seq (option T)) (i : 'I_n) := nth None members i.

(** The blank member's place goes to the end, and those behind him move up by one. *)
Lemma blank_moves (s s' : seq (option T)) : (size s + size s' < n)%N ->
  exists p : {perm 'I_n}, in_places (s ++ None :: s') =1 in_places (s ++ s') \o p.
Proof.
move=> le; pose up (i : nat) := if (i < size s)%N then i else if i == size s then n.-1 else i.-1.
have lt (i : 'I_n) : (up i < n)%N by have := ltn_ord i; rewrite /up; case: ifP => _; [|case: ifP => _]; lia.
have g_inj : injective (fun i => Ordinal (lt i)).
  move=> i i' /(congr1 val) /= e; apply: val_inj => /=; move: e (ltn_ord i) (ltn_ord i'); rewrite /up.
  by do 2![case: ifP => ?; [|case: ifP => ?]]; lia.
exists (perm g_inj) => i; rewrite /in_places /= permE /= /up !nth_cat; case: ifP => [->|ge] //.
case: eqP => [->|ne].
  by rewrite subnn /= ifF ?nth_default //; lia.
have -> : (i - size s = (i.-1 - size s).+1)%N by lia.
by rewrite ifF //; lia.
Qed.

Lemma training_eq (x x' : 'I_n -> option T) before released : x =1 x' ->
  training q f N x before released = training q f N x' before released.
Proof.
move=> e; elim: released before => //= o l IH before; rewrite IH; congr (_ * _).
apply: eq_bigr => b _; congr (_ * N _ _ _); apply: eq_bigr => r _.
by case: (b r) => [i|] //; rewrite e.
Qed.

Theorem outside_is_blank s s' before released : (size s + size s' < n)%N ->
  training q f N (in_places (s ++ None :: s')) before released = training q f N (in_places (s ++ s')) before released.
Proof. by case/blank_moves => p e; rewrite (training_eq _ _ e) training_any_places. Qed.
End Subset.
Print Assumptions training_any_places.
Print Assumptions outside_is_blank.
