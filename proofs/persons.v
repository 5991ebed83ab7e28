(** persons.md, "Boosting: clip the sum, not the records", and a step of DP-SGD after clipping
    (clipped_sums.md).

    T: all records of a person (for DP-SGD: the record that joins); V t: the sum over them, over all outputs
    and cells, fixed by what was released before. The person adds c(V), which is V if |V|^2 <= B, and else
    V scaled to the squared norm B and truncated towards zero, or 0. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import bounded_sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Persons.
Variables (R : realFieldType) (I J : finType) (T : Type) (B : R) (V c : T -> I -> R).
Hypotheses (B_ge0 : 0 <= B) (c_clipped : forall t, clipped B (V t) (c t)).
Implicit Types x : data J T.
Definition moved (a : T -> I -> R) x x' := sq (fun i => total a x i - total a x' i).

(** "So each release moves by the root of B at most." *)
Theorem persons_zero_out x x' : zero_out x x' -> moved c x x' <= B.
Proof. by apply: zero_out_moves => // t; apply: clipped_le (c_clipped t). Qed.

(** "Two persons' vectors are at most twice that apart." *)
Theorem persons_replace_one x x' : replace_one x x' -> moved c x x' <= 4%:R * B.
Proof. by apply: replace_one_moves => t t'; apply: sq_sub_le4; apply: clipped_le (c_clipped _). Qed.
End Persons.

(** The constants of the page: B = 1 + b/(16 u^2). *)
Corollary persons_boosting (R : realFieldType) (I J : finType) (T : Type) (b u : R) (V c : T -> I -> R) :
  0 <= b -> (forall t, clipped (1 + b / (16%:R * u ^+ 2)) (V t) (c t)) -> forall x x' : data J T,
  (zero_out x x' -> moved c x x' <= 1 + b / (16%:R * u ^+ 2)) /\
  (replace_one x x' -> moved c x x' <= 4%:R * (1 + b / (16%:R * u ^+ 2))).
Proof.
move=> b0 cl x x'; split; last exact: persons_replace_one cl x x'.
apply: persons_zero_out cl x x'; rewrite addr_ge0 ?ler01 //.
by rewrite divr_ge0 // mulr_ge0 ?ler0n ?sqr_ge0.
Qed.

(** DP-SGD: gradients are clipped to the norm C. A record moves the sum of a step by C, and by 2C if it is
    replaced. *)
Corollary clipped_step (R : realFieldType) (I J : finType) (T : Type) (C : R) (g c : T -> I -> R) :
  (forall t, clipped (C ^+ 2) (g t) (c t)) -> forall x x' : data J T,
  (zero_out x x' -> moved c x x' <= C ^+ 2) /\ (replace_one x x' -> moved c x x' <= (2%:R * C) ^+ 2).
Proof.
move=> cl x x'; split; first exact: persons_zero_out (sqr_ge0 C) cl x x'.
have -> : (2%:R * C) ^+ 2 = 4%:R * C ^+ 2 by ring.
exact: persons_replace_one cl x x'.
Qed.
Print Assumptions persons_zero_out.
Print Assumptions persons_replace_one.
Print Assumptions persons_boosting.
Print Assumptions clipped_step.
