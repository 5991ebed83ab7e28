(** docs/theory/subset.md and subset_rest.md, "Known membership": the parts may use who is in the subset,
    in whatever way, if their guarantees hold for every fixed subset. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Known_membership.
Variables (R : realFieldType) (c : R).
Hypothesis c0 : 0 <= c.
Implicit Types (T S O L : finType).

(** "For every fixed t training is one and the same mechanism." *)
Lemma tuning_differs T S (P P' : T -> R) (K K' : T -> S -> R) : kernel K -> (forall t, K t =1 K' t) ->
  hockey c (both P K) (both P' K') <= hockey c P P'.
Proof.
move=> kK e; rewrite /hockey sum_pair; apply: ler_sum => t _.
rewrite -[X in _ <= X]mulr1 -(kK t).2 mulr_sumr; apply: ler_sum => s _.
rewrite [X in _ <= X]mulrC -posM ?(kK t).1 //; apply/pos_mono/le_of_eq.
by rewrite /both /= e; ring.
Qed.

(** "t has one distribution on both data sets, and for each t training differs." *)
Lemma training_differs T S d (P P' : T -> R) (K K' : T -> S -> R) : dist P -> P =1 P' ->
  (forall t, hockey c (K t) (K' t) <= d) -> hockey c (both P K) (both P' K') <= d.
Proof.
move=> [P0 P1] e h; rewrite (@hockey_ext _ _ c _ (both P K) _ (both P K')) => [|//|[t s]]; last by rewrite /both /= e.
rewrite mixture_released // -[d]mul1r -P1 mulr_suml; apply: ler_sum => t _.
by rewrite ler_wpmul2l.
Qed.

(** "Release the coins too: H_c is then the average over them." Coins o are those of all other records;
    the record has the role l with probability p l. *)
Lemma known_roles T O L (w : L * O -> R) (M M' : L * O -> T -> R) (p d : L -> R) : measure w ->
  (forall l, \sum_o w (l, o) = p l) -> (forall l o, hockey c (M (l, o)) (M' (l, o)) <= d l) ->
  hockey c (mixed w M) (mixed w M') <= \sum_l p l * d l.
Proof.
move=> w0 wp h; apply: le_trans (joint_convexity _ _ _ w0) _; rewrite sum_pair; apply: ler_sum => l _.
by rewrite -wp mulr_suml; apply: ler_sum => o _; rewrite ler_wpmul2l.
Qed.

Section Searches.
Variables (q v : R) (T S O U V W : finType).

Section Theorem2. (* Role true: in the subset. *)
Variables (w : bool * O -> R) (tune : bool * O -> bool -> T -> R) (train : bool * O -> bool -> T -> S -> R).
Hypotheses (w0 : measure w) (wq : \sum_o w (true, o) = q) (wr : \sum_o w (false, o) = 1 - q).
Hypotheses (dtune : forall o x, dist (tune o x)) (dtrain : forall o x, kernel (train o x)).
Hypothesis not_tuned : forall o, tune (false, o) true =1 tune (false, o) false.
Let M x := mixed w (fun o => both (tune o x) (train o x)).
Let p (l : bool) := if l then q else 1 - q.
Let wp l : \sum_o w (l, o) = p l. Proof. by case: l. Qed.

(** On the rest: q delta_tune + (1-q) delta_train. *)
Theorem known_rest d_tune d_train :
  (forall o t, train (true, o) true t =1 train (true, o) false t) ->
  (forall o, hockey c (tune (true, o) true) (tune (true, o) false) <= d_tune) ->
  (forall o t, hockey c (train (false, o) true t) (train (false, o) false t) <= d_train) ->
  hockey c (M true) (M false) <= q * d_tune + (1 - q) * d_train.
Proof.
move=> same h1 h2; have := known_roles (d := fun l => if l then d_tune else d_train) w0 wp.
rewrite big_bool; apply=> -[] o; last exact: training_differs.
exact: le_trans (tuning_differs _ _ (dtrain _ _) (same o)) (h1 o).
Qed.

(** On all: q delta_both + (1-q) delta_train, with delta_both that of the composition. *)
Theorem known_all (A A' : U -> R) (B B' : V -> R) d_train : measure B -> measure B' ->
  (forall o, dominates A A' (tune (true, o) true) (tune (true, o) false)) ->
  (forall o t, dominates B B' (train (true, o) true t) (train (true, o) false t)) ->
  (forall o t, hockey c (train (false, o) true t) (train (false, o) false t) <= d_train) ->
  hockey c (M true) (M false) <= q * hockey c (product A B) (product A' B') + (1 - q) * d_train.
Proof.
move=> B0 B'0 h1 h2 h3.
have := known_roles (d := fun l => if l then hockey c (product A B) (product A' B') else d_train) w0 wp.
rewrite big_bool; apply=> -[] o; last exact: training_differs.
apply: composition => //; [exact: (dtune _ _).1 | exact: (dtune _ _).1 | by move=> t; exact: (dtrain _ _ _).1].
Qed.
End Theorem2.

Section Theorem4. (* Roles: Some true trains, Some false validates, None does nothing. *)
Variables (w : option bool * O -> R) (tune : option bool * O -> bool -> T -> R).
Variables (train : option bool * O -> bool -> T -> S -> R).
Hypotheses (w0 : measure w) (wt : \sum_o w (Some true, o) = q) (wv : \sum_o w (Some false, o) = (1 - q) * v).
Hypothesis wi : \sum_o w (None, o) = (1 - q) * (1 - v).
Hypotheses (dtune : forall o x, dist (tune o x)) (dtrain : forall o x, kernel (train o x)).
Variables (A A' : U -> R) (E E' : W -> R) (B B' : V -> R) (d_tune d_train : R).
Hypotheses (B0 : measure B) (B'0 : measure B').
Hypothesis idle : forall o, tune (None, o) true =1 tune (None, o) false.
Hypothesis idle_train : forall o t, hockey c (train (None, o) true t) (train (None, o) false t) <= d_train.
Hypothesis validates : forall o, dominates E E' (tune (Some false, o) true) (tune (Some false, o) false).
Hypothesis val_train : forall o t, dominates B B' (train (Some false, o) true t) (train (Some false, o) false t).
Let M x := mixed w (fun o => both (tune o x) (train o x)).
Let p (l : option bool) := if l is Some b then (if b then q else (1 - q) * v) else (1 - q) * (1 - v).
Let wp l : \sum_o w (l, o) = p l. Proof. by case: l => [[]|]. Qed.
Let d_val := hockey c (product E B) (product E' B').

Lemma known_three d_in : (forall o, hockey c (both (tune (Some true, o) true) (train (Some true, o) true))
    (both (tune (Some true, o) false) (train (Some true, o) false)) <= d_in) ->
  hockey c (M true) (M false) <= q * d_in + (1 - q) * v * d_val + (1 - q) * (1 - v) * d_train.
Proof.
move=> h; have := known_roles (d := fun l => if l is Some b then (if b then d_in else d_val) else d_train) w0 wp.
rewrite (bigD1 None) //= (bigD1 (Some true)) //= (bigD1 (Some false)) //= [X in _ + (_ + (_ + X))]big1 => [k|[[]|] //].
rewrite addr0 addrC in k; apply: k => -[[]|] o; [exact: h | | exact: training_differs].
apply: composition => //; [exact: (dtune _ _).1 | exact: (dtune _ _).1 | by move=> t; exact: (dtrain _ _ _).1].
Qed.

(** On the rest: q delta_tune + (1-q) v delta_{validate, train} + (1-q)(1-v) delta_train. *)
Theorem known_validate_rest : (forall o t, train (Some true, o) true t =1 train (Some true, o) false t) ->
  (forall o, hockey c (tune (Some true, o) true) (tune (Some true, o) false) <= d_tune) ->
  hockey c (M true) (M false) <= q * d_tune + (1 - q) * v * d_val + (1 - q) * (1 - v) * d_train.
Proof.
move=> same h; apply: known_three => o.
exact: le_trans (tuning_differs _ _ (dtrain _ _) (same o)) (h o).
Qed.

(** On all: q delta_{tune, train} + (1-q) v delta_{validate, train} + (1-q)(1-v) delta_train. *)
Theorem known_validate_all : (forall o, dominates A A' (tune (Some true, o) true) (tune (Some true, o) false)) ->
  (forall o t, dominates B B' (train (Some true, o) true t) (train (Some true, o) false t)) ->
  hockey c (M true) (M false) <= q * hockey c (product A B) (product A' B') +
    (1 - q) * v * d_val + (1 - q) * (1 - v) * d_train.
Proof.
move=> h1 h2; apply: known_three => o.
apply: composition => //; [exact: (dtune _ _).1 | exact: (dtune _ _).1 | by move=> t; exact: (dtrain _ _ _).1].
Qed.
End Theorem4.
End Searches.
End Known_membership.

Print Assumptions known_rest.
Print Assumptions known_all.
Print Assumptions known_validate_rest.
Print Assumptions known_validate_all.
