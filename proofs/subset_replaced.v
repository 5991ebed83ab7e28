(** docs/theory/subset_replaced.md: the chain for a replaced record in a subset search. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition subset_fixed subset.
From Proofs Require Import comonotone subset_rest_fixed subset_rest_release subset_rest.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Replaced.
Variables (R : realFieldType) (I : finType) (r : I) (q v : R) (T S X : finType).
Hypotheses (q01 : 0 <= q <= 1) (v01 : 0 <= v <= 1).

(** What the parts do may depend on the value x : X that stands in place r, if record r is among those
    that they are given, and not otherwise: "the release is one function of a data set with or without a
    record in a place". *)
Section Theorem2.
Variables (tune : X -> {set I} -> T -> R) (train : X -> {set I} -> T -> S -> R).
Hypotheses (dtune : forall x, kernel (tune x)) (dtrain : forall x Y, kernel (train x Y)).
Hypothesis tune_blank : forall x x' (C : {set I}), r \notin C -> tune x C =1 tune x' C.
Hypothesis train_blank : forall x x' (Y : {set I}) t, r \notin Y -> train x Y t =1 train x' Y t.
Variables (U V : finType) (A A' : U -> R) (B B' : V -> R).
Hypotheses (dA : dist A) (dA' : dist A') (dB : dist B) (dB' : dist B').
(* The parts' guarantees for the presence of a record, whatever its value. *)
Hypothesis domA : forall x (C : {set I}), r \notin C -> dominates A A' (tune x (r |: C)) (tune x C).
Hypothesis domB : forall x (Y : {set I}) t, r \in Y -> dominates B B' (train x Y t) (train x (Y :\ r) t).

Lemma not_blank (C : {set I}) : r \notin C :&: ~: [set r]. Proof. by rewrite !inE eqxx andbF. Qed.
Lemma not_rest (C : {set I}) : r \notin ~: [set r] :\: C. Proof. by rewrite !inE eqxx andbF. Qed.
Lemma not_all : r \notin ~: [set r]. Proof. by rewrite !inE eqxx. Qed.

(** delta_replaced(eps) <= delta_removed(eps1) + e^eps1 delta_added(eps2), eps1 + eps2 = eps. *)
Theorem replaced_in_rest c1 c2 x x' : 0 <= c1 -> 0 <= c2 ->
  hockey (c1 * c2) (released_rest q (tune x) (train x) setT) (released_rest q (tune x') (train x') setT) <=
  hockey c1 (pair_rest q A A' B B') (product A' B') + c1 * hockey c2 (product A' B') (pair_rest q A A' B B').
Proof.
move=> c10 c20; apply: le_trans (two_steps c2 _ (released_rest q (tune x) (train x) (~: [set r])) _ c10) _.
apply: ler_add; first exact: (subset_rest q01 _ _ dA dA' dB dB' (domA x) (domB x)).
rewrite ler_wpmul2l // (hockey_ext c2 (P1 := released_rest q (tune x') (train x') (~: [set r]))
  (Q1 := released_rest q (tune x') (train x') setT)) => [|z|//]; last first.
  by apply: eq_bigr => C _; rewrite (tune_blank x x') ?(train_blank x x') ?not_blank ?not_rest.
exact: (subset_rest_without q01 _ _ dA dA' dB dB' (domA x') (domB x')).
Qed.

Theorem replaced_in_all c1 c2 x x' : 0 <= c1 -> 0 <= c2 ->
  hockey (c1 * c2) (released_all q (tune x) (train x) setT) (released_all q (tune x') (train x') setT) <=
  hockey c1 (pair_all q A A' B) (product A' B') + c1 * hockey c2 (product A' B') (pair_all q A A' B).
Proof.
move=> c10 c20; apply: le_trans (two_steps c2 _ (released_all q (tune x) (train x) (~: [set r])) _ c10) _.
apply: ler_add; first exact: (subset_all q01 _ _ dA dA' dB dB' (domA x) (domB x)).
rewrite ler_wpmul2l // (hockey_ext c2 (P1 := released_all q (tune x') (train x') (~: [set r]))
  (Q1 := released_all q (tune x') (train x') setT)) => [|z|//]; last first.
  by apply: eq_bigr => C _; rewrite (tune_blank x x') ?(train_blank x x') ?not_blank ?not_all.
exact: (subset_all_without q01 _ _ dA dA' dB dB' (domA x') (domB x')).
Qed.
End Theorem2.

Section Theorem4.
Variables (tune : X -> {set I} -> {set I} -> T -> R) (train : X -> {set I} -> T -> S -> R).
Hypotheses (dtune : forall x C W, dist (tune x C W)) (dtrain : forall x Y, kernel (train x Y)).
Hypothesis tune_blank : forall x x' (C W : {set I}), r \notin C -> r \notin W -> tune x C W =1 tune x' C W.
Hypothesis train_blank : forall x x' (Y : {set I}) t, r \notin Y -> train x Y t =1 train x' Y t.
Variables (n : nat) (g xs ys : nat -> R) (oox oov : R) (V : finType) (B B' : V -> R).
Hypotheses (x_rises : rising n xs) (y_rises : rising n ys).
Hypotheses (dX : dist (@quantile_pair R n g xs oox)) (dV : dist (@quantile_pair R n g ys oov)).
Hypotheses (dU : dist (@uniform R n g)) (dB : dist B) (dB' : dist B').
Hypothesis trains : forall x (C W : {set I}), r \notin C -> r \notin W -> C :&: W = set0 ->
  dominates (@quantile_pair R n g xs oox) (@uniform R n g) (tune x (r |: C) W) (tune x C W).
Hypothesis validates : forall x (C W : {set I}), r \notin C -> r \notin W -> C :&: W = set0 ->
  dominates (@quantile_pair R n g ys oov) (@uniform R n g) (tune x C (r |: W)) (tune x C W).
Hypothesis finally : forall x (Y : {set I}) t, r \in Y -> dominates B B' (train x Y t) (train x (Y :\ r) t).

Let M (one : ({set I} -> {set I} -> T -> R) -> ({set I} -> T -> S -> R) ->
    {set I} -> {set I} -> {set I} -> T * S -> R) x := released4 q v (one (tune x) (train x)).

Lemma chain4 (one : ({set I} -> {set I} -> T -> R) -> ({set I} -> T -> S -> R) ->
    {set I} -> {set I} -> {set I} -> T * S -> R) c1 c2 x x' d1 d2 :
  0 <= c1 -> M one x (~: [set r]) =1 M one x' (~: [set r]) ->
  hockey c1 (M one x setT) (M one x (~: [set r])) <= d1 ->
  hockey c2 (M one x' (~: [set r])) (M one x' setT) <= d2 ->
  hockey (c1 * c2) (M one x setT) (M one x' setT) <= d1 + c1 * d2.
Proof.
move=> c10 e h1 h2; apply: le_trans (two_steps c2 _ (M one x (~: [set r])) _ c10) _.
by apply: ler_add h1 _; rewrite ler_wpmul2l // (hockey_ext c2 e (Q1 := M one x' setT)).
Qed.

Lemma blank4 x x' : M (@one_rest R I T S) x (~: [set r]) =1 M (@one_rest R I T S) x' (~: [set r]) /\
  M (@one_all R I T S) x (~: [set r]) =1 M (@one_all R I T S) x' (~: [set r]).
Proof.
split=> z; apply: eq_bigr => C _; congr (_ * _); apply: eq_bigr => W _; congr (_ * _);
  rewrite /one_rest /one_all (tune_blank x x') ?(train_blank x x') ?not_blank ?not_rest ?not_all //.
Qed.

Theorem replaced_validate_rest c1 c2 x x' : 0 <= c1 -> 0 <= c2 ->
  hockey (c1 * c2) (M (@one_rest R I T S) x setT) (M (@one_rest R I T S) x' setT) <=
  ((\sum_(i < n) \sum_w g i * pos (q * xs i * B' w + (1 - q) * (1 - v + v * ys i) * B w - c1 * B' w)) +
   (q * oox + (1 - q) * v * oov)) +
  c1 * \sum_(i < n) \sum_w g i * pos (B' w - c2 * (q * xs i * B' w + (1 - q) * (1 - v + v * ys i) * B w)).
Proof.
move=> c10 c20; apply: chain4 => //; first exact: (blank4 x x').1.
  exact: (validate_rest q01 v01 (dtune x) (dtrain x) x_rises y_rises dX dV dU dB dB' (trains x) (validates x) (finally x)).
exact: (validate_rest_without q01 v01 (dtune x') (dtrain x') x_rises y_rises dX dV dU dB dB' (trains x') (validates x') (finally x')).
Qed.

Theorem replaced_validate_all c1 c2 x x' : 0 <= c1 -> 0 <= c2 ->
  hockey (c1 * c2) (M (@one_all R I T S) x setT) (M (@one_all R I T S) x' setT) <=
  ((\sum_(i < n) \sum_w g i * pos ((q * xs i + (1 - q) * (1 - v + v * ys i)) * B w - c1 * B' w)) +
   (q * oox + (1 - q) * v * oov)) +
  c1 * \sum_(i < n) \sum_w g i * pos (B' w - c2 * ((q * xs i + (1 - q) * (1 - v + v * ys i)) * B w)).
Proof.
move=> c10 c20; apply: chain4 => //; first exact: (blank4 x x').2.
  exact: (validate_all q01 v01 (dtune x) (dtrain x) x_rises y_rises dX dV dU dB dB' (trains x) (validates x) (finally x)).
exact: (validate_all_without q01 v01 (dtune x') (dtrain x') x_rises y_rises dX dV dU dB dB' (trains x') (validates x') (finally x')).
Qed.
End Theorem4.
End Replaced.

Print Assumptions replaced_in_rest.
Print Assumptions replaced_in_all.
Print Assumptions replaced_validate_rest.
Print Assumptions replaced_validate_all.
