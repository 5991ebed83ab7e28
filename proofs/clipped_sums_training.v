(** clipped_sums.md: T steps of DP-SGD, all released. What is computed in a step, its noise included, may depend on
    what was released before. The T-fold product of the Poisson-sampled pair dominates the training. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
From Proofs Require Import clipped_sums_sampling clipped_sums_batches clipped_sums_law.
From Proofs Require Import clipped_sums_rows clipped_sums_places.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Steps.
Variables (R : realFieldType) (O U : finType).
Implicit Types (S : seq O -> O -> R) (before released : seq O).

(** S before: a step after what was released before. *)
Fixpoint steps S before released : R :=
  if released is o :: later then S before o * steps S (rcons before o) later else 1.

Lemma steps_ge0 S before released : (forall h, dist (S h)) -> 0 <= steps S before released.
Proof.
move=> d; elim: released before => [|o l IH] before /=; first exact: ler01.
by rewrite mulr_ge0 // (d before).1.
Qed.

Theorem adaptive_steps m S S' before (P P' : U -> R) :
  (forall h, dist (S h)) -> (forall h, dist (S' h)) -> dist P -> dist P' ->
  (forall h, dominates P P' (S h) (S' h)) ->
  dominates (all_runs (fun _ : 'I_m => P)) (all_runs (fun _ : 'I_m => P'))
            (fun t : m.-tuple O => steps S before t) (fun t : m.-tuple O => steps S' before t).
Proof.
move=> dS dS' dP dP' dom; elim: m before => [|m IH] before c c0.
  have e (V : finType) (F : 0.-tuple V -> R) : \sum_t F t = F [tuple].
    by rewrite (bigD1 [tuple]) //= big1 ?addr0 // => t /eqP[]; exact: tuple0.
  by rewrite /hockey !e /all_runs !big_ord0.
have runs (F F' : U -> R) : hockey c (all_runs (fun _ : 'I_m.+1 => F)) (all_runs (fun _ : 'I_m.+1 => F'))
    = hockey c (product F (all_runs (fun _ : 'I_m => F))) (product F' (all_runs (fun _ : 'I_m => F'))).
  rewrite /hockey sum_cons sum_pair; apply: eq_bigr => x _; apply: eq_bigr => t _.
  by rewrite !all_runs_cons.
pose K S (o : O) (t : m.-tuple O) := steps S (rcons before o) t.
have -> : hockey c (fun t : m.+1.-tuple O => steps S before t) (fun t : m.+1.-tuple O => steps S' before t)
    = hockey c (both (S before) (K S)) (both (S' before) (K S')).
  by rewrite /hockey sum_cons sum_pair.
rewrite runs; apply: composition c0 => //.
- by case: (dS before).
- by case: (dS' before).
- by move=> o t; apply: steps_ge0.
- by apply: all_runs_ge0 => i; case: dP.
- by apply: all_runs_ge0 => i; case: dP'.
by move=> o; apply: IH.
Qed.
End Steps.

(** The statement for a net, under zero-out: the record at place j is blank in x'. *)
Section Training.
Variables (R : realFieldType) (J O U : finType) (M m : nat) (T : Type) (V : zmodType) (q : R).
Variables (f : seq O -> 'I_M -> T -> V) (N : seq O -> V -> O -> R) (P P' : U -> R).
Hypotheses (q_ge0 : 0 <= q) (q_le1 : q <= 1) (ends : 0 < not_above J M q).
Hypotheses (N_dist : forall h s, dist (N h s)) (dP : dist P) (dP' : dist P').
Hypothesis noise : forall h r t s, dominates P P' (N h (s + f h r t)) (N h s).

Definition released (x : J -> option T) (t : m.-tuple O) := training q f N x [::] t.

Lemma training_steps (x : J -> option T) before l :
  training q f N x before l = steps (fun h => step q (f h) (N h) x) before l.
Proof. by elim: l before => //= o l IH before; rewrite IH. Qed.

Theorem dp_sgd (x x' : J -> option T) j : (forall i, i != j -> x i = x' i) -> x' j = None ->
  dominates (all_runs (fun _ : 'I_m => sampled q P P')) (all_runs (fun _ : 'I_m => P')) (released x) (released x') /\
  dominates (all_runs (fun _ : 'I_m => P')) (all_runs (fun _ : 'I_m => sampled q P P')) (released x') (released x).
Proof.
move=> d blank; have q01 : 0 <= q <= 1 by rewrite q_ge0.
have dS := sampled_dist q01 dP dP'.
have one h := rows_zero_out q_ge0 q_le1 ends (N_dist h) dP dP' (noise h) d blank.
have D (y : J -> option T) h : dist (step q (f h) (N h) y) by apply: step_dist.
have e (y : J -> option T) : released y =1 fun t : m.-tuple O => steps (fun h => step q (f h) (N h) y) [::] t.
  by move=> t; apply: training_steps.
split=> c c0; rewrite (hockey_ext c (e _) (e _)).
  by apply: adaptive_steps c0 => // h; case: (one h).
by apply: adaptive_steps c0 => // h; case: (one h).
Qed.
End Training.
Print Assumptions adaptive_steps.
Print Assumptions dp_sgd.
