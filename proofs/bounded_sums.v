(** Sums over records with a bound on each: what boosting.md, persons.md and clipped_sums.md share.

    A data set has a place for every record or person; a place may be blank.
    What a record adds is a vector with entries in I; sq is its squared norm. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Norms.
Variables (R : realFieldType) (I : finType).
Implicit Types u v w V : I -> R.

Definition sq v := \sum_i v i ^+ 2.
Definition dot u v := \sum_i u i * v i.

Lemma sq_ge0 v : 0 <= sq v.
Proof. by apply: sumr_ge0 => i _; apply: sqr_ge0. Qed.

Lemma eq_sq u v : u =1 v -> sq u = sq v.
Proof. by move=> e; apply: eq_bigr => i _; rewrite e. Qed.

Lemma sq_linear (a b : R) u v :
  sq (fun i => a * u i + b * v i) = a ^+ 2 * sq u + 2%:R * a * b * dot u v + b ^+ 2 * sq v.
Proof.
rewrite /sq /dot !big_distrr -!big_split /=; apply: eq_bigr => i _.
ring.
Qed.

(** |u - v|^2 = |u|^2 - 2 <u, v> + |v|^2. *)
Lemma sq_sub u v : sq (fun i => u i - v i) = sq u - 2%:R * dot u v + sq v.
Proof.
rewrite (eq_sq (v := fun i => 1 * u i + -1 * v i)) => [|i]; last by rewrite mul1r mulN1r.
by rewrite sq_linear; ring.
Qed.

Lemma cauchy u v : dot u v ^+ 2 <= sq u * sq v.
Proof.
have [v0|v0] := eqVneq (sq v) 0.
  suff -> : dot u v = 0 by rewrite v0 mulr0 expr0n.
  rewrite /dot big1 // => i _; move/eqP: v0; rewrite psumr_eq0; last by move=> *; apply: sqr_ge0.
  by move/allP/(_ i (mem_index_enum i)); rewrite sqrf_eq0 => /eqP ->; rewrite mulr0.
have vp : 0 < sq v by rewrite lt_def v0 sq_ge0.
rewrite -(ler_pmul2r vp) -subr_ge0.
have -> : sq u * sq v * sq v - dot u v ^+ 2 * sq v = sq (fun i => sq v * u i + - dot u v * v i).
  by rewrite sq_linear; ring.
exact: sq_ge0.
Qed.

(** Two vectors of squared norm at most B are at most twice its root apart. *)
Lemma sq_sub_le4 (B : R) u v : sq u <= B -> sq v <= B -> sq (fun i => u i - v i) <= 4%:R * B.
Proof.
move=> uB vB; have : 0 <= sq (fun i => 1 * u i + 1 * v i) by apply: sq_ge0.
rewrite sq_linear sq_sub => s0; rewrite -subr_ge0.
have -> : 4%:R * B - (sq u - 2%:R * dot u v + sq v)
  = (1 ^+ 2 * sq u + 2%:R * 1 * 1 * dot u v + 1 ^+ 2 * sq v) + 2%:R * ((B - sq u) + (B - sq v)) by ring.
by rewrite addr_ge0 // mulr_ge0 ?ler0n // addr_ge0 // subr_ge0.
Qed.

(** Two vectors without negative entries: at most the sum of their squares apart. *)
Lemma sq_sub_nonneg u v : (forall i, 0 <= u i) -> (forall i, 0 <= v i) ->
  sq (fun i => u i - v i) <= sq u + sq v.
Proof.
move=> u0 v0; rewrite sq_sub -subr_ge0.
have -> : sq u + sq v - (sq u - 2%:R * dot u v + sq v) = 2%:R * dot u v by ring.
by rewrite mulr_ge0 ?ler0n //; apply: sumr_ge0 => i _; apply: mulr_ge0.
Qed.

(** One number moves by at most the larger one. *)
Lemma sub_nonneg (B a b : R) : 0 <= a -> 0 <= b -> a ^+ 2 <= B -> b ^+ 2 <= B -> (a - b) ^+ 2 <= B.
Proof.
move=> a0 b0 aB bB; have [ab|/ltW ba] := lerP a b.
  apply: le_trans bB; rewrite -sqrrN opprB ler_sqr ?nnegrE ?subr_ge0 //.
  by rewrite ler_subl_addr ler_addl.
by apply: le_trans aB; rewrite ler_sqr ?nnegrE ?subr_ge0 // ler_subl_addr ler_addl.
Qed.

(** V is clipped to the squared norm B, and rounded so that no entry grows: towards zero, or to 0. *)
Definition clipped (B : R) V w := (sq V <= B /\ w =1 V) \/
  exists2 s, s ^+ 2 * sq V = B & forall i, `|w i| <= `|s * V i|.

Lemma clipped_le (B : R) V w : clipped B V w -> sq w <= B.
Proof.
case=> [[VB /eq_sq -> //]|[s <- short]]; rewrite /sq mulr_sumr; apply: ler_sum => i _.
by rewrite -exprMn -real_normK ?num_real // -[X in _ <= X]real_normK ?num_real // ler_sqr ?nnegrE.
Qed.
End Norms.

Section Sums.
Variables (R : realFieldType) (I J : finType) (T : Type) (adds : T -> I -> R).
(* J: places, T: records, or a person's records; adds r: what r adds to the sum. *)

Definition data := J -> option T.
Definition added (r : option T) i := if r is Some t then adds t i else 0.
Definition total (x : data) i := \sum_j added (x j) i.

(** Neighbours differ in one place. Zero-out: it is blank in one of them. *)
Definition differ_at j (x x' : data) := forall j', j' != j -> x j' = x' j'.
Definition zero_out x x' := exists2 j, differ_at j x x' & x j = None \/ x' j = None.
Definition replace_one x x' := exists2 j, differ_at j x x' & exists t t', x j = Some t /\ x' j = Some t'.

Lemma total_differ j x x' : differ_at j x x' ->
  forall i, total x i - total x' i = added (x j) i - added (x' j) i.
Proof.
move=> d i; rewrite /total (bigD1 j) //= [in X in _ - X](bigD1 j) //= opprD addrACA.
by rewrite (eq_bigr (fun k => added (x' k) i)) ?subrr ?addr0 // => k kj; rewrite d.
Qed.

Lemma zero_out_moves (B : R) x x' : (forall t, sq (adds t) <= B) -> 0 <= B -> zero_out x x' ->
  sq (fun i => total x i - total x' i) <= B.
Proof.
move=> bound B0 [j /total_differ d blank]; rewrite (eq_sq d).
have le_B (r : option T) : sq (added r) <= B.
  by case: r => [t|]; [apply: bound | rewrite /sq big1 // => i _; rewrite expr0n].
case: blank => ->; last by rewrite (eq_sq (v := added (x j))) // => i; rewrite /= subr0.
suff -> : sq (fun i => added None i - added (x' j) i) = sq (added (x' j)) by [].
by apply: eq_bigr => i _; rewrite /= sub0r sqrrN.
Qed.

Lemma replace_one_moves (B : R) x x' :
  (forall t t', sq (fun i => adds t i - adds t' i) <= B) -> replace_one x x' ->
  sq (fun i => total x i - total x' i) <= B.
Proof. by move=> bound [j /total_differ d [t [t' [e e']]]]; rewrite (eq_sq d) e e'; apply: bound. Qed.

End Sums.
