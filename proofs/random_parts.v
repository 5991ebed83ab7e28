(** random_parts.md: one record moves the mean score over k random parts by at most 1/k.

    W: all draws, those of records' parts and the models' own randomness; given w, the record at place j is in
    part [part w j]. score w i t x: candidate t's score on part i, in [0, 1], which depends on the records of its
    part alone. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Random_parts.
Variables (R : realFieldType) (W J O : finType) (k : nat) (T C : Type).
Variables (law : W -> R) (part : W -> J -> 'I_k) (score : W -> 'I_k -> C -> (J -> option T) -> R).
Hypotheses (law_dist : dist law) (score01 : forall w i t x, 0 <= score w i t x <= 1).
Hypothesis its_part_alone : forall w i t x x',
  (forall j, part w j = i -> x j = x' j) -> score w i t x = score w i t x'.
Implicit Types x : J -> option T.

Definition utility w x t := (\sum_i score w i t x) / k%:R.

(** x and x' differ in place j: a record is blank there, or another one. *)
Theorem one_record_moves_one_part w t x x' j : (forall i, i != j -> x i = x' i) ->
  `|utility w x t - utility w x' t| <= k%:R^-1.
Proof.
move=> d; have k0 : 0 <= k%:R^-1 :> R by rewrite invr_ge0 ler0n.
have same i : i != part w j -> score w i t x = score w i t x'.
  by move=> ne; apply: its_part_alone => l e; apply: d; apply: contraNneq ne => <-; rewrite e.
rewrite /utility -mulrBl (bigD1 (part w j)) //= [X in _ - X](bigD1 (part w j)) //= opprD addrACA.
rewrite (eq_bigr _ same) subrr addr0 normrM (ger0_norm k0) -[X in _ <= X]mul1r ler_wpmul2r //.
have [/andP[a0 a1] /andP[b0 b1]] := (score01 w (part w j) t x, score01 w (part w j) t x').
rewrite ler_norml ler_subl_addr ler_subr_addr; apply/andP; split.
  by apply: le_trans a0; rewrite addrC subr_le0.
by apply: le_trans a1 _; rewrite ler_addl.
Qed.

(** "For every fixed draw the guarantee of the choice holds. A mixture over draws keeps it." *)
Corollary choice (choose : (C -> R) -> O -> R) c delta x x' j :
  (forall u u', (forall t, `|u t - u' t| <= k%:R^-1) -> hockey c (choose u) (choose u') <= delta) ->
  (forall i, i != j -> x i = x' i) ->
  hockey c (mixed law (fun w => choose (utility w x))) (mixed law (fun w => choose (utility w x'))) <= delta.
Proof.
move=> private d; have [l0 l1] := law_dist.
apply: le_trans (mixture_bound (d := fun=> delta) l0 _) _; last by rewrite -mulr_suml l1 mul1r.
by move=> w; apply: private => t; apply: one_record_moves_one_part d.
Qed.
End Random_parts.
Print Assumptions one_record_moves_one_part.
Print Assumptions choice.
