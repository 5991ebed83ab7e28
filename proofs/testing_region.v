(** docs/theory/loss_distributions.md, "Testing region": the edges of a dominating pair's region bound
    every randomised event of what it dominates. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Region.
Variable R : realFieldType.
Implicit Types (c q b : R) (T U : finType).

(** qmin(q) = max(0, sup over c > 0 of (q - H_c(P || P')) / c), or anything from 0 to that: the code
    takes finitely many c. *)
Definition lower_edge T (P P' : T -> R) (qmin : R -> R) := forall q, 0 <= q <= 1 ->
  0 <= qmin q /\
  forall b, 0 <= b -> (forall c, 0 < c -> (q - hockey c P P') / c <= b) -> qmin q <= b.

(** The region of (P, P') by its half-planes: all (P(S), P'(S)) over randomised events S
    (testing_region_reached.v). *)
Definition in_region T (P P' : T -> R) q q' := [/\ 0 <= q, 0 <= q' &
  forall c, 0 <= c -> q - c * q' <= hockey c P P' /\ q' - c * q <= hockey c P' P].

(** qmax(q) = 1 - qmin(1 - q), of the same pair: the region is symmetric about (1/2, 1/2). *)
Definition upper_edge T (P P' : T -> R) (qmax : R -> R) :=
  lower_edge P P' (fun q => 1 - qmax (1 - q)).

Definition prob T (t P : T -> R) := \sum_x t x * P x.

Lemma prob_01 T (t P : T -> R) : test t -> dist P -> 0 <= prob t P <= 1.
Proof.
move=> tt [P0 P1]; apply/andP; split.
  by apply: sumr_ge0 => x _; rewrite mulr_ge0 //; case/andP: (tt x).
rewrite -P1; apply: ler_sum => x _; rewrite -[X in _ <= X]mul1r ler_wpmul2r //.
by case/andP: (tt x).
Qed.

Theorem lower_edge_bounds T U (P P' : T -> R) (Q Q' t : U -> R) qmin :
  lower_edge P P' qmin -> dominates P P' Q Q' -> dist Q -> measure Q' -> test t ->
  qmin (prob t Q) <= prob t Q'.
Proof.
move=> edge dom dQ Q'0 tt; case: (edge _ (prob_01 tt dQ)) => _; apply.
  by apply: sumr_ge0 => x _; rewrite mulr_ge0 //; case/andP: (tt x).
move=> c c0; rewrite ler_pdivr_mulr // ler_subl_addr addrC mulrC -ler_subl_addr.
exact: le_trans (hockey_test _ _ _ tt) (dom _ (ltW c0)).
Qed.

Lemma test_compl T (t : T -> R) : test t -> test (fun x => 1 - t x).
Proof. by move=> tt x; case/andP: (tt x) => t0 t1; rewrite subr_ge0 t1 ler_subl_addr ler_addl. Qed.

Lemma prob_compl T (t P : T -> R) : dist P -> prob (fun x => 1 - t x) P = 1 - prob t P.
Proof.
by case=> _ P1; rewrite -[X in _ = X - _]P1 /prob -sumrB; apply: eq_bigr => x _; rewrite mulrBl mul1r.
Qed.

Theorem upper_edge_bounds T U (P P' : T -> R) (Q Q' t : U -> R) qmax :
  upper_edge P P' qmax -> dominates P P' Q Q' -> dist Q -> dist Q' -> test t ->
  prob t Q' <= qmax (prob t Q).
Proof.
move=> edge dom dQ dQ' tt.
have := lower_edge_bounds edge dom dQ dQ'.1 (test_compl tt); rewrite !prob_compl //.
by rewrite opprB addrCA subrr addr0 ler_add2l ler_opp2.
Qed.

(** The largest value at finitely many c is such an edge. *)
Definition edge_at T (P P' : T -> R) (cs : seq R) q :=
  \big[Num.max/0]_(c <- cs) ((q - hockey c P P') / c).

Lemma edge_at_lower T (P P' : T -> R) cs : all (fun c => 0 < c) cs -> lower_edge P P' (edge_at P P' cs).
Proof.
move=> cs0 q _; split.
  by rewrite /edge_at; elim: cs {cs0} => [|c cs ih]; rewrite ?big_nil // big_cons le_maxr ih orbT.
move=> b b0 h; rewrite /edge_at; elim: cs cs0 => [|c cs ih] /=; first by rewrite big_nil.
by case/andP => c0 cs0; rewrite big_cons le_maxl h // ih.
Qed.
End Region.

Print Assumptions lower_edge_bounds.
Print Assumptions upper_edge_bounds.
