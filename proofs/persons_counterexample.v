(** persons.md, "One record of a person": in whole numbers one record can move a clipped person's sum by more
    than the root of B, if a loss has three outputs or more.

    Three classes: 1 is the whole number U = 2^20, B is the largest whole number up to (1 + 1/18) U^2. A person
    has two records in one cell, whose sum V is in the ball; one record more, g, leads out of it. Every record
    passes what the library checks: scores of norm at most U, Hessians that are not negative and of squared
    norm at most U^2/18. Truncation then moves two scores away from V: by 562573 more than B, five parts in
    ten millions. (The library's own losses do not make this g: there the largest score is all others together.) *)
From Coq Require Import ZArith List.
Import ListNotations.
Local Open Scope Z_scope.

Definition U := 2 ^ 20.
Definition hessian_bound := U ^ 2 / 18.
Definition B := 19 * U ^ 2 / 18.

(** A record: three scores, then three Hessians. *)
Definition sq (v : list Z) := fold_right Z.add 0 (map (fun a => a ^ 2) v).
Definition plus (v w : list Z) := map (fun p => fst p + snd p) (combine v w).
Definition minus (v w : list Z) := map (fun p => fst p - snd p) (combine v w).
Definition accepted (v : list Z) := length v = 6%nat /\ sq (firstn 3 v) <= U ^ 2 /\
  Forall (fun h => 0 <= h) (skipn 3 v) /\ sq (skipn 3 v) <= hessian_bound.

(** t is root(B)/|v| a, truncated towards zero: |t| is the largest whole number with t^2 |v|^2 <= B a^2. *)
Definition truncated (v : list Z) (a t : Z) :=
  0 <= t * a /\ t ^ 2 * sq v <= B * a ^ 2 < (Z.abs t + 1) ^ 2 * sq v.
Definition clipped (v t : list Z) := sq v <= B /\ t = v \/
  B < sq v /\ length t = length v /\ Forall (fun p => truncated v (fst p) (snd p)) (combine v t).

Definition first := [262144; 321060; 321060; 0; 0; 0].
Definition second := [262145; 321060; 321060; 0; 0; 0].
Definition g := [524288; -642119; -642119; 247151; 0; 0].
Definition V := plus first second.
Definition with_g := [1048576; 0; 0; 247150; 0; 0].

Theorem one_record_moves_farther :
  accepted first /\ accepted second /\ accepted g /\
  clipped V V /\ clipped (plus V g) with_g /\ sq (minus with_g V) = B + 562573.
Proof.
  unfold accepted, clipped.
  repeat match goal with |- _ /\ _ => split end;
    try (left; split; [now vm_compute|reflexivity]);
    try (right; repeat split; [now vm_compute | repeat constructor; now vm_compute]);
    try (now vm_compute); repeat constructor; now vm_compute.
Qed.
Print Assumptions one_record_moves_farther.
