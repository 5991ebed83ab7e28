(** docs/theory/subset.md, proof of Theorem 2, first part: what is left if the coins of all other records
    are fixed. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Fixed.
Variable R : realFieldType.
Implicit Types (q c a b : R) (T S U V O : finType).

(** Without the record t has law P and s, given t, law Q t. With it in the data that a part is given the
    laws are Pw and Qw t. The record's own coin gives it to tuning with probability q. *)
Definition with_rest q T S (Pw P : T -> R) (Qw Q : T -> S -> R) : T * S -> R :=
  fun z => q * (Pw z.1 * Q z.1 z.2) + (1 - q) * (P z.1 * Qw z.1 z.2).
Definition with_all q T S (Pw P : T -> R) (Qw : T -> S -> R) : T * S -> R :=
  fun z => (q * Pw z.1 + (1 - q) * P z.1) * Qw z.1 z.2.

(** "The right-hand sides are themselves the curves of one pair of distributions": the same formulas of
    the dominating pairs (A, A') of tuning and (B, B') of training, independent of each other. *)
Definition pair_rest q U V (A A' : U -> R) (B B' : V -> R) := with_rest q A A' (fun _ => B) (fun _ => B').
Definition pair_all q U V (A A' : U -> R) (B : V -> R) := with_all q A A' (fun (_ : U) => B).

Section Fixed_coins. (* "Fix the coins of all other records." *)
Variables (q : R) (T S U V : finType) (Pw P : T -> R) (Qw Q : T -> S -> R).
Variables (A A' : U -> R) (B B' : V -> R).
Hypotheses (q01 : 0 <= q <= 1) (dPw : dist Pw) (dP : dist P) (dQw : kernel Qw) (dQ : kernel Q).
Hypotheses (dA : dist A) (dA' : dist A') (dB : dist B) (dB' : dist B').
Hypotheses (domA : dominates A A' Pw P) (domB : forall t, dominates B B' (Qw t) (Q t)).

(* Lines in both densities: (1, -c) is with against without, (-c, 1) without against with. *)
Lemma fixed_rest a b :
  \sum_z pos (a * with_rest q Pw P Qw Q z + b * (P z.1 * Q z.1 z.2)) <=
  \sum_z pos (a * pair_rest q A A' B B' z + b * (A' z.1 * B' z.2)).
Proof.
rewrite !sum_pair.
apply: (@le_trans _ _ (\sum_t \sum_v pos (a * with_rest q Pw P (fun=> B) (fun=> B') (t, v) + b * (P t * B' v)))).
  apply: ler_sum => t _ /=; rewrite /with_rest /=.
  have e (X : finType) (F F' : X -> R) x :
      a * (q * (Pw t * F' x) + (1 - q) * (P t * F x)) + b * (P t * F' x) =
      a * (1 - q) * P t * F x + (a * q * Pw t + b * P t) * F' x by ring.
  under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
  exact: any_line.
rewrite exchange_big [X in _ <= X]exchange_big; apply: ler_sum => v _ /=; rewrite /pair_rest /with_rest /=.
have e (X : finType) (F F' : X -> R) x :
    a * (q * (F x * B' v) + (1 - q) * (F' x * B v)) + b * (F' x * B' v) =
    a * q * B' v * F x + (a * (1 - q) * B v + b * B' v) * F' x by ring.
under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
exact: any_line.
Qed.

Lemma fixed_all a b :
  \sum_z pos (a * with_all q Pw P Qw z + b * (P z.1 * Q z.1 z.2)) <=
  \sum_z pos (a * pair_all q A A' B z + b * (A' z.1 * B' z.2)).
Proof.
rewrite !sum_pair.
apply: (@le_trans _ _ (\sum_t \sum_v pos (a * with_all q Pw P (fun=> B) (t, v) + b * (P t * B' v)))).
  apply: ler_sum => t _ /=; rewrite /with_all /=.
  have e (X : finType) (F F' : X -> R) x :
      a * ((q * Pw t + (1 - q) * P t) * F x) + b * (P t * F' x) =
      a * (q * Pw t + (1 - q) * P t) * F x + b * P t * F' x by ring.
  under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
  exact: any_line.
rewrite exchange_big [X in _ <= X]exchange_big; apply: ler_sum => v _ /=; rewrite /pair_all /with_all /=.
have e (X : finType) (F F' : X -> R) x :
    a * ((q * F x + (1 - q) * F' x) * B v) + b * (F' x * B' v) =
    a * q * B v * F x + (a * (1 - q) * B v + b * B' v) * F' x by ring.
under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
exact: any_line.
Qed.
End Fixed_coins.
End Fixed.
