(** docs/theory/loss_distributions.md, "Testing region": all of it is reached by randomised events, and so
    is its lower edge (the Neyman-Pearson lemma), here by Blackwell's theorem for events. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region blackwell.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Reached.
Variables (R : realFieldType) (Z : finType) (P P' : Z -> R).
Hypotheses (dP : dist P) (dP' : dist P').
Implicit Types q c : R.

Definition coin q : bool -> R := fun b => if b then q else 1 - q.

Lemma coin_dist q : 0 <= q <= 1 -> dist (coin q).
Proof.
case/andP => q0 q1; split=> [[]|]; rewrite ?big_bool /coin ?subr_ge0 //=.
by rewrite addrC subrK.
Qed.

Lemma region_01 q q' : in_region P P' q q' -> 0 <= q <= 1 /\ 0 <= q' <= 1.
Proof.
case=> q0 q'0 /(_ 0 (lexx 0)); rewrite !mul0r !subr0 !hockey0 // => -[q1 q'1].
by rewrite q0 q'0 q1 q'1.
Qed.

Lemma region_dominates q q' : in_region P P' q q' -> dominates P P' (coin q) (coin q').
Proof.
move=> reg; have [q01 q01'] := region_01 reg; case: reg => q0 q'0 h.
apply: dominates_pos => // [|c c0]; first exact: coin_dist.
have [h1 _] := h c (ltW c0).
have ci : 0 <= c^-1 by rewrite invr_ge0 ltW.
have h2 : 1 - q - c * (1 - q') <= hockey c P P'.
  have [_ h2] := h c^-1 ci; have := ler_wpmul2l (ltW c0) h2; rewrite -(ler_add2l (1 - c)).
  rewrite (duality c0 dP' dP) => k; apply: le_trans k; apply: le_of_eq.
  have -> : c * (q' - c^-1 * q) = c * q' - q by rewrite mulrBr mulrA divff ?gt_eqF // mul1r.
  by ring.
have h3 : 1 - c <= hockey c P P'.
  have := hockey_event c P P' predT; by rewrite dP.2 dP'.2 mulr1.
rewrite /hockey big_bool /=; have g0 := hockey_ge0 c P P'.
case: (leP 0 (q - c * q')) => a; case: (leP 0 (1 - q - c * (1 - q'))) => b.
- by rewrite !pos_id //; apply: le_trans h3; apply: le_of_eq; ring.
- by rewrite (pos_id a) (pos_0 (ltW b)) addr0.
- by rewrite (pos_0 (ltW a)) (pos_id b) add0r.
- by rewrite (pos_0 (ltW a)) (pos_0 (ltW b)) addr0.
Qed.

(** "All pairs (Q(S), Q'(S)) over randomised events S." *)
Theorem region_reached q q' : in_region P P' q q' <->
  exists t, [/\ test t, prob t P = q & prob t P' = q'].
Proof.
split=> [reg|[t [tt <- <-]]].
  have [q01 q01'] := region_01 reg.
  have [K [kK e e']] := blackwell dP dP' (coin_dist q01) (coin_dist q01') (region_dominates reg).
  exists (fun z => K z true); split.
  - by move=> z; rewrite (kK z).1 dist_le1.
  - by have := e true; rewrite /coin /post /prob => ->; apply: eq_bigr => z _; rewrite mulrC.
  - by have := e' true; rewrite /coin /post /prob => ->; apply: eq_bigr => z _; rewrite mulrC.
have [/andP[q0 _] /andP[q'0 _]] := (prob_01 tt dP, prob_01 tt dP').
by split=> // c c0; split; exact: hockey_test.
Qed.

(** "Every point of the lower edge is reached", where the edge is the supremum itself. *)
Theorem lower_edge_reached qmin q : 0 <= q <= 1 -> lower_edge P P' qmin ->
  (forall c, 0 < c -> (q - hockey c P P') / c <= qmin q) ->
  exists t, [/\ test t, prob t P = q & prob t P' = qmin q].
Proof.
move=> q01 edge sup; have [q0 q1] := andP q01; apply/region_reached; split=> //; first exact: (edge q q01).1.
move=> c c0; split.
  move: c0; rewrite le_eqVlt => /orP[/eqP <-|c0]; first by rewrite mul0r subr0 hockey0.
  by have := sup c c0; rewrite ler_pdivr_mulr // mulrC ler_subl_addr addrC -ler_subl_addr.
(* the event "a coin, whatever the outcome" *)
have tq : test (fun _ : Z => q) by [].
have pq (F : Z -> R) : dist F -> prob (fun=> q) F = q by case=> _ F1; rewrite /prob -mulr_sumr F1 mulr1.
have dd : dominates P P' P P' by move=> d _.
have below := lower_edge_bounds edge dd dP dP'.1 tq; rewrite !pq // in below.
have := hockey_test c P' P tq; rewrite -/(prob _ P') -/(prob _ P) !pq //; apply: le_trans.
by rewrite ler_add2r.
Qed.
End Reached.

Print Assumptions region_reached.
Print Assumptions lower_edge_reached.
