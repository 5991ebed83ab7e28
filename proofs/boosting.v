(** boosting.md, "What it costs": by how much one record moves a round's sums.

    In a round a record t lies in one cell, and adds there its scores g and its Hessians h / (4u). In this
    unit the squared distance d^2 of the sums of neighbours is at most
        1 + b/(16 u^2)  under zero-out,    4 + b'/(16 u^2)  under replace-one,
    for |g| <= 1, h >= 0, |h|^2 <= b and |h - h'|^2 <= b' of all records; and the table's numbers. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions bounded_sums boosting_hessians.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Round.
Variables (R : realFieldType) (C K J : finType) (T : Type).
Variables (cell : T -> C) (g h : T -> K -> R) (u : R).
(* C: cells, K: outputs, T: records, J: places. g and h are fixed by what was released before. *)

Definition scaled t (bk : bool * K) := if bk.1 then h t bk.2 / (4%:R * u) else g t bk.2.
Definition adds t (i : bool * K * C) := if i.2 == cell t then scaled t i.1 else 0.

Lemma sq_scaled (v w : K -> R) : sq (fun bk : bool * K => if bk.1 then w bk.2 / (4%:R * u) else v bk.2)
  = sq v + sq w / (16%:R * u ^+ 2).
Proof.
rewrite /sq sum_pair big_bool addrC /=.
congr (_ + _); rewrite mulr_suml; apply: eq_bigr => k _; rewrite expr_div_n.
by have -> : (4%:R * u) ^+ 2 = 16%:R * u ^+ 2 by ring.
Qed.

(** A record's vector has the length of its part in its cell. *)
Lemma sq_adds t : sq (adds t) = sq (g t) + sq (h t) / (16%:R * u ^+ 2).
Proof.
rewrite -sq_scaled /sq sum_pair; apply: eq_bigr => bk _.
rewrite (bigD1 (cell t)) //= big1 ?addr0 /adds /= ?eqxx // => c /negPf ->; exact: expr0n.
Qed.

Lemma same_cell t t' : cell t = cell t' -> sq (fun i => adds t i - adds t' i)
  = sq (fun k => g t k - g t' k) + sq (fun k => h t k - h t' k) / (16%:R * u ^+ 2).
Proof.
move=> e; rewrite -sq_scaled /sq sum_pair; apply: eq_bigr => bk _.
rewrite (bigD1 (cell t)) //= big1 ?addr0 /adds /= -?e ?eqxx.
  by rewrite /scaled; case: (bk.1); rewrite // -mulrBl.
by move=> c /negPf ->; rewrite subrr expr0n.
Qed.

(** "If the cells differ, both vectors stand at right angles." *)
Lemma other_cell t t' : cell t != cell t' ->
  sq (fun i => adds t i - adds t' i) = sq (adds t) + sq (adds t').
Proof.
move=> e; rewrite sq_sub; have -> : dot (adds t) (adds t') = 0; last by ring.
rewrite /dot big1 // => i _; rewrite /adds; case: eqP => [->|_]; last exact: mul0r.
by rewrite (negPf e) mulr0.
Qed.

Variables b b' : R.
Hypotheses (g_le : forall t, sq (g t) <= 1) (h_le : forall t, sq (h t) <= b) (b_ge0 : 0 <= b).
Hypothesis apart : forall t t', sq (fun k => h t k - h t' k) <= b'.

Let unit_ge0 : 0 <= (16%:R * u ^+ 2)^-1. Proof. by rewrite invr_ge0 mulr_ge0 ?ler0n ?sqr_ge0. Qed.

Lemma record_le t : sq (adds t) <= 1 + b / (16%:R * u ^+ 2).
Proof. by rewrite sq_adds ler_add // ler_wpmul2r. Qed.

Theorem boosting_zero_out x x' : zero_out (J := J) x x' ->
  sq (fun i => total adds x i - total adds x' i) <= 1 + b / (16%:R * u ^+ 2).
Proof. by apply: zero_out_moves => [t|]; rewrite ?record_le // addr_ge0 ?ler01 // mulr_ge0. Qed.

(** 2 (1 + b/(16 u^2)) is less than 4 in every column of the table. *)
Theorem boosting_replace_one x x' : b <= 16%:R * u ^+ 2 -> 0 < u -> replace_one (J := J) x x' ->
  sq (fun i => total adds x i - total adds x' i) <= 4%:R + b' / (16%:R * u ^+ 2).
Proof.
move=> small u0; apply: replace_one_moves => t t'; have [e|e] := eqVneq (cell t) (cell t').
  by rewrite same_cell // ler_add ?ler_wpmul2r // -[4%:R]mulr1 sq_sub_le4.
rewrite other_cell //; apply: le_trans (ler_add (record_le t) (record_le t')) _.
apply: (@le_trans _ _ 4%:R); last first.
  by rewrite ler_addl mulr_ge0 //; apply: le_trans (apart t t); apply: sq_ge0.
have b1 : b / (16%:R * u ^+ 2) <= 1 by rewrite ler_pdivr_mulr ?mul1r // mulr_gt0 ?ltr0n ?exprn_gt0.
apply: le_trans (ler_add (ler_add (lexx _) b1) (ler_add (lexx _) b1)) _.
by have -> : 1 + 1 + (1 + 1) = 4%:R :> R by ring.
Qed.
End Round.

(** b' <= 2b for several outputs without negative Hessians, b' <= b for one. *)
Lemma apart_several (R : realFieldType) (K : finType) (h h' : K -> R) b :
  (forall k, 0 <= h k) -> (forall k, 0 <= h' k) -> sq h <= b -> sq h' <= b ->
  sq (fun k => h k - h' k) <= 2%:R * b.
Proof.
move=> h0 h0' hb hb'; apply: le_trans (sq_sub_nonneg h0 h0') _.
have -> : 2%:R * b = b + b by ring.
exact: ler_add.
Qed.

Lemma sq_unit (R : realFieldType) (v : unit -> R) : sq v = v tt ^+ 2.
Proof. by rewrite /sq (bigD1 tt) //= big1 ?addr0 // => -[]; rewrite eqxx. Qed.
Print Assumptions boosting_zero_out.
Print Assumptions boosting_replace_one.
