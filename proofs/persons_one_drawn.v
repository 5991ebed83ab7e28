(** persons.md, "One record of each", and nets: one record of each person, drawn without a look at any value.

    W: all draws (for a net those of all steps); pick w j takes one of the records P of the person at place j.
    M: a mechanism on records that is private under a relation of bounded_sums.v. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import definitions bounded_sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section One_of_each.
Variables (R : realFieldType) (W J O : finType) (T P : Type) (law : W -> R) (pick : W -> J -> P -> T).
Variables (M : W -> data J T -> O -> R) (c delta : R).
Hypothesis law_dist : dist law.
Implicit Types x : data J P.

(** Fix the draws: blanking a person blanks the record that was drawn of him, replacing him replaces it. *)
Definition drawn w x : data J T := fun j => omap (pick w j) (x j).

Lemma zero_out_drawn w x x' : zero_out x x' -> zero_out (drawn w x) (drawn w x').
Proof.
case=> j d b; exists j => [i /d e|]; first by rewrite /drawn e.
by rewrite /drawn; case: b => ->; [left | right].
Qed.

Lemma replace_one_drawn w x x' : replace_one x x' -> replace_one (drawn w x) (drawn w x').
Proof.
case=> j d [t [t' [e e']]]; exists j => [i /d ei|]; first by rewrite /drawn ei.
by exists (pick w j t), (pick w j t'); rewrite /drawn e e'.
Qed.

Definition one_of_each x : O -> R := mixed law (fun w => M w (drawn w x)).

Lemma mixture_of_draws x x' : (forall w, hockey c (M w (drawn w x)) (M w (drawn w x')) <= delta) ->
  hockey c (one_of_each x) (one_of_each x') <= delta.
Proof.
move=> h; have [l0 l1] := law_dist; apply: le_trans (mixture_bound (d := fun=> delta) l0 h) _.
by rewrite -mulr_suml l1 mul1r.
Qed.

Theorem as_private_in_persons :
  ((forall w, private (@zero_out J T) (M w) c delta) -> private (@zero_out J P) one_of_each c delta) /\
  ((forall w, private (@replace_one J T) (M w) c delta) -> private (@replace_one J P) one_of_each c delta).
Proof.
split=> h x x' nb; apply: mixture_of_draws => w; apply: h.
  exact: zero_out_drawn.
exact: replace_one_drawn.
Qed.
End One_of_each.

(** One record of a person. x j k is the record at place k of the person at place j, or None where it is blank;
    a place is drawn whether or not it is blank. *)
Section One_record.
Variables (R : realFieldType) (W J K O : finType) (T : Type) (law : W -> R) (place : W -> J -> K).
Variables (M : W -> data J T -> O -> R) (c delta : R).
Hypotheses (law_dist : dist law) (M_dist : forall w y, dist (M w y)) (c_ge1 : 1 <= c) (delta_ge0 : 0 <= delta).
Hypothesis M_ext : forall w y y', y =1 y' -> M w y =1 M w y'.
Implicit Types x : J -> K -> option T.

Definition blanked_record x x' := exists j k,
  (forall i l, (i, l) != (j, k) -> x i l = x' i l) /\ (x j k = None \/ x' j k = None).
Definition drawn_records w x : data J T := fun j => x j (place w j).

Lemma drawn_neighbours w x x' : blanked_record x x' ->
  drawn_records w x =1 drawn_records w x' \/ zero_out (drawn_records w x) (drawn_records w x').
Proof.
case=> j [k [d b]]; have [e|ne] := eqVneq (place w j) k; last first.
  by left=> i; apply: d; rewrite xpair_eqE; case: eqP => [->|] //=.
right; exists j => [i ij|]; rewrite /drawn_records ?e //.
by apply: d; rewrite xpair_eqE (negPf ij).
Qed.

(** Blanking one record costs no more than blanking the person. *)
Theorem as_private_in_records : (forall w, private (@zero_out J T) (M w) c delta) ->
  private blanked_record (fun x => mixed law (fun w => M w (drawn_records w x))) c delta.
Proof.
move=> h x x' nb; have [l0 l1] := law_dist.
apply: le_trans (mixture_bound (d := fun=> delta) l0 _) _; last by rewrite -mulr_suml l1 mul1r.
move=> w; case: (drawn_neighbours w nb) => [e|]; last exact: h.
rewrite -(hockey_ext c (frefl _) (M_ext w e)) hockey_self //; exact: (M_dist _ _).1.
Qed.
End One_record.
Print Assumptions as_private_in_persons.
Print Assumptions as_private_in_records.
