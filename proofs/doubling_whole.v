(** docs/theory/doubling.md: the whole walk, adaptively, purely and at delta > 0. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions doubling_walk doubling_profile.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Whole_walk.
Variables (R : realFieldType) (n : nat) (h : R) (X : finType) (acc : X -> bool).
Hypothesis h1 : 1 < h. (* e^(eps/2) *)

(** Every round may be chosen in view of the earlier results [past], on two data sets. An outcome x is an
    accept or a reject; losses stay within +-eps at an accept and within +-eps/2 at a reject. *)
Variables (P Q : seq X -> X -> R).
Hypotheses (dP : forall past, dist (P past)) (dQ : forall past, dist (Q past)).
Hypothesis near : forall past x, Q past x <= e h (acc x) * P past x /\ P past x <= e h (acc x) * Q past x.

(** The sum over all transcripts of (P(transcript) - c Q(transcript))_+, from a state ls on with m rounds
    left, where what is past has probabilities p and p'. This is the hockey-stick divergence. *)
Fixpoint transcripts c m ls past p p' : R :=
  if m is m'.+1 then
    if over n ls then pos (p - c * p')
    else \sum_x transcripts c m' (next (acc x) ls) (x :: past) (p * P past x) (p' * Q past x)
  else pos (p - c * p').

Lemma transcripts0 c m ls past : transcripts c m ls past 0 0 = 0.
Proof.
have z : pos (0 - c * 0) = 0 :> R by rewrite mulr0 subr0 pos_id.
elim: m ls past => [//|m ih] ls past /=; case: ifP => // _.
by apply: big1 => x _; rewrite !mul0r ih.
Qed.

Lemma lost past x : P past x = 0 -> Q past x = 0.
Proof.
case: (near past x) => q1 _ p0; apply/eqP; rewrite eq_le (dQ past).1 andbT.
by move: q1; rewrite p0 mulr0.
Qed.

Lemma profile_from c m t r ls past p p' : 0 <= c -> 0 < p -> 0 <= p' -> invariant n t r ls ->
  transcripts c m ls past p p' <= p * curve n h m t r (c * (p' / p)).
Proof.
move=> c0; elim: m t r ls past p p' => [|m ih] t r ls past p p' p0 p'0 inv.
  by rewrite /= -posM ?(ltW p0) //; apply/pos_mono/le_of_eq; field; rewrite gt_eqF.
have k0 : 0 <= c * (p' / p) by rewrite mulr_ge0 ?divr_ge0 // ltW.
have [o|no] := boolP (over n ls).
  rewrite /= o; apply: le_trans (ler_wpmul2l (ltW p0) (curve_end n h1 m.+1 t r k0)).
  by rewrite -posM ?(ltW p0) //; apply/pos_mono/le_of_eq; field; rewrite gt_eqF.
rewrite /= (negbTE no); have [o|[rt st [low lowE ll]]] := inv; first by rewrite o in no.
rewrite lowE /=; pose V o := curve n h m t.+1 (r + ~~ o)%N.
have cV o : convex (V o) by exact: curve_convex.
apply: le_trans (ler_wpmul2l (ltW p0) (one_round_bound h1 k0 (dP past) (dQ past) cV (near past))).
rewrite mulr_sumr; apply: ler_sum => x _; have := (dP past).1 x; rewrite le_eqVlt => /orP[/eqP px|px].
  by rewrite -px lost // !mulr0 transcripts0 mul0r mulr0.
have pp : 0 < p * P past x by rewrite mulr_gt0.
have qq : 0 <= p' * Q past x by rewrite mulr_ge0 // (dQ past).1.
apply: le_trans (ih _ _ _ (x :: past) _ _ pp qq (invariant_next (acc x) inv no)) _.
rewrite -mulrA /V; apply: le_of_eq; congr (_ * (_ * curve _ _ _ _ _ _)).
by field; rewrite !gt_eqF.
Qed.

(** At delta > 0: H_s(c) = max over outcomes o, o' of p H_{s+o}(c e^-eps_o) + (1-p) H_{s+o'}(c e^eps_o'). *)
Theorem walk_profile c max_rounds : 0 <= c ->
  transcripts c max_rounds (0%N, 1%N) [::] 1 1 <= curve n h max_rounds 0 0 c.
Proof.
move=> c0; have := profile_from max_rounds [::] c0 ltr01 ler01 (invariant0 n).
by rewrite mul1r divff ?oner_eq0 // mulr1.
Qed.

(** "The pure cost is the largest a eps + r eps/2." *)
Lemma pure_from max_rounds m t r ls past p p' : invariant n t r ls -> (r <= t)%N ->
  (t + m <= max_rounds)%N -> (2 * (t - r) + r <= worst_halves n max_rounds)%N -> 0 <= p -> 0 <= p' ->
  p <= h ^+ (2 * (t - r) + r) * p' ->
  transcripts (h ^+ worst_halves n max_rounds) m ls past p p' <= 0.
Proof.
set W := worst_halves n max_rounds; have h0 : 0 <= h := ltW (lt_trans ltr01 h1).
elim: m t r ls past p p' => [|m ih] t r ls past p p' inv rt tm kW p0 p'0 pp.
  by rewrite /= pos_0 // subr_le0 (le_trans pp) // ler_wpmul2r // ler_weexpn2l // ltW.
have done : pos (p - h ^+ W * p') <= 0.
  by rewrite pos_0 // subr_le0 (le_trans pp) // ler_wpmul2r // ler_weexpn2l // ltW.
rewrite /=; case: ifP => // /negbT no; rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => x _; rewrite oppr_ge0.
have st : (t < max_rounds)%N by rewrite (leq_trans _ tm) // addnS ltnS leq_addr.
have k2 : (2 * (t - r) + r + 2 <= W)%N.
  case: inv => [o|[_ _ [low lowE _]]]; first by rewrite o in no.
  rewrite /W /worst_halves (leq_trans _ (leq_bigmax (Ordinal st))) //=.
  by rewrite (leq_trans _ (leq_bigmax_cond (Ordinal (_ : r < t.+1)%N) _)) //= lowE.
have kE : (2 * (t.+1 - (r + ~~ acc x)) + (r + ~~ acc x) = 2 * (t - r) + r + half_cost (acc x))%N.
  case: (acc x); rewrite /= ?addn0 ?addn1; last by rewrite subSS addnS.
  by rewrite subSn // mulnS [RHS]addnC addnA.
apply: (ih t.+1 (r + ~~ acc x)%N) => //.
- exact: invariant_next.
- by case: (acc x); rewrite ?addn0 ?addn1 // leqW.
- by rewrite addSn -addnS.
- by rewrite kE (leq_trans _ k2) // leq_add2l; case: (acc x).
- by rewrite mulr_ge0 // (dP past).1.
- by rewrite mulr_ge0 // (dQ past).1.
rewrite kE exprD; have eE : h ^+ half_cost (acc x) = e h (acc x) by rewrite /e; case: (acc x).
rewrite eE mulrACA; apply: ler_pmul => //; first exact: (dP past).1.
by case: (near past x).
Qed.

Theorem walk_pure max_rounds :
  transcripts (h ^+ worst_halves n max_rounds) max_rounds (0%N, 1%N) [::] 1 1 <= 0.
Proof.
apply: (@pure_from max_rounds max_rounds 0 0); rewrite ?ler01 //; first exact: invariant0. by rewrite subnn muln0 expr0 mul1r.
Qed.
End Whole_walk.

Print Assumptions walk_profile.
Print Assumptions walk_pure.
