(** docs/theory/prices.md, proof of Theorem 6: places and payments, for a run that is made out of the
    dominating pair's outcome by a random map. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release best_of_density best_of potentials_cut.
From Proofs Require Import prices_pair prices_payments.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Places.
Variables (R : rcfType) (Z T : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Variables (f : {poly R}) (c sigma : R) (P P' : Z -> R) (K : Z -> T -> R).
Hypotheses (fP : law_of_runs f) (c1 : 1 <= c).
Hypotheses (dP : dist P) (dP' : dist P') (kK : kernel K).

(** The run is [post P K] here and [post P' K] there. *)
Let Q := post P K.
Let Q' := post P' K.

(** "So the search may be thought to draw z, then y = T(z), and to release the best of the K triples
    (z, y, coin), by the score of y and the coin. What is really released is a part of it." *)
Let S : Z * T -> nat := score \o snd.
Let J := both P K.
Let J' := both P' K.

(** Room w P = (sigma P - P')_+ of an outcome; Zall is all the room there is. *)
Definition room z := pos (sigma * P z - P' z).
Definition all_room := \sum_z room z.

(** Prices: lambda on places xi in [0, Zall], mu on q in [0, 1]; each is a polynomial on each of finitely
    many cells of the (q, xi) plane, with the integrals Lambda and Mu. *)
Local Notation cell := (seq (R * R * R) * (R * R * R))%type.
Variables (cells : seq cell) (lambda mu : cell -> {poly R}) (Lambda Mu : R -> R).
Hypothesis cover : forall q xi, 0 <= q <= 1 -> 0 <= xi <= all_room -> exists2 k, k \in cells & inside k q xi.
Variables (Lpoly Mpoly : cell -> {poly R}).
Hypothesis integrals : forall k q xi, k \in cells -> inside k q xi ->
  Lambda xi = (Lpoly k).[xi] /\ Mu q = (Mpoly k).[q].
Hypothesis derivatives : forall k, (Lpoly k)^`() = lambda k /\ (Mpoly k)^`() = mu k.
Hypothesis prices_ge0 : forall k q xi, k \in cells -> inside k q xi -> 0 <= q <= 1 -> 0 <= xi <= all_room ->
  0 <= (lambda k).[xi] /\ 0 <= (mu k).[q].

Variables (qmin : R -> R) (B : Z -> R).
Hypothesis edge : lower_edge P P' qmin.

(** "Let each outcome choose, by its X alone, whether it pays w lambda(xi), mu(q), or nothing." In masses,
    P h: B z is at least one of P h_lambda, P h_mu, P h_0. *)
Definition pays_lambda z := forall k q xi, k \in cells -> inside k q xi -> 0 <= q <= 1 -> 0 <= xi <= all_room ->
  f^`().[q] * P z - c * f^`().[Num.max (qmin q) (sigma * q - xi)] * P' z - room z * (lambda k).[xi] <= B z.
Definition pays_mu z := forall k q xi, k \in cells -> inside k q xi -> 0 <= q <= 1 -> 0 <= xi <= all_room ->
  f^`().[q] * P z - c * f^`().[qmin q] * P' z - P z * (mu k).[q] <= B z.
Definition pays_nothing z := forall q, 0 <= q <= 1 -> f^`().[q] * P z - c * f^`().[qmin q] * P' z <= B z.
Hypothesis choice : forall z, 0 <= B z /\ [\/ pays_lambda z, pays_mu z | pays_nothing z].

(* "Also, as P' >= P/X, sigma q - q' <= integral of w dP over what scores less = xi." *)
Definition place (t : Z * T -> R) := \sum_x t x * (room x.1 * K x.1 x.2).

Lemma places t : test t -> let q := prob t J in let q' := prob t J' in
  [/\ 0 <= q <= 1, 0 <= place t <= all_room, 0 <= q' & Num.max (qmin q) (sigma * q - place t) <= q'].
Proof.
move=> tt /=; have [dJ dJ'] := (both_dist dP kK, both_dist dP' kK); have [q01 q01'] := (prob_01 tt dJ, prob_01 tt dJ').
have r0 x : 0 <= room x.1 * K x.1 x.2 by rewrite mulr_ge0 ?pos_ge0 // (kK _).1.
have domJ : dominates P P' J J'.
  move=> d _; rewrite /hockey sum_pair; apply: ler_sum => z _.
  rewrite -[X in _ <= X]mulr1 -(kK z).2 mulr_sumr; apply: ler_sum => y _.
  by rewrite [X in _ <= X]mulrC -posM ?(kK z).1 //; apply/pos_mono/le_of_eq; rewrite /J /J' /both /=; ring.
split=> //; [apply/andP; split | by case/andP: q01' |].
- by apply: sumr_ge0 => x _; rewrite mulr_ge0 //; case/andP: (tt x).
- apply: (@le_trans _ _ (\sum_x room x.1 * K x.1 x.2)).
    by apply: ler_sum => x _; rewrite ler_pimull //; case/andP: (tt x).
  by rewrite sum_pair; apply: le_of_eq; apply: eq_bigr => z _ /=; rewrite -mulr_sumr (kK z).2 mulr1.
rewrite le_maxl; apply/andP; split; first exact: lower_edge_bounds edge domJ dJ dJ'.1 tt.
rewrite ler_subl_addr /prob /place mulr_sumr -big_split; apply: ler_sum => x _ /=.
have [t0 _] := andP (tt x); rewrite -mulrDr mulrCA ler_wpmul2l // /J /J' /both mulrA -mulrDl.
by rewrite ler_wpmul2r ?(kK _).1 // -ler_subl_addl le_pos.
Qed.

(* What an outcome gains is at most what it pays and B. *)
Lemma net k t z : test t -> k \in cells -> inside k (prob t J) (place t) ->
  pos (f^`().[prob t J] * P z - c * f^`().[prob t J'] * P' z) <=
  room z * (lambda k).[place t] + P z * (mu k).[prob t J] + B z.
Proof.
move=> tt kin ink; have [q01 xi01 q0' lowq] := places tt; case: (choice z) => B0 which.
have [l0 m0] := prices_ge0 kin ink q01 xi01.
have [a0 b0] : 0 <= room z * (lambda k).[place t] /\ 0 <= P z * (mu k).[prob t J].
  by rewrite !mulr_ge0 ?pos_ge0 // dP.1.
apply: pos_le; last by rewrite !addr_ge0.
have c0 : 0 <= c := le_trans ler01 c1.
have lower r : 0 <= r -> r <= prob t J' ->
    f^`().[prob t J] * P z - c * f^`().[prob t J'] * P' z <= f^`().[prob t J] * P z - c * f^`().[r] * P' z.
  move=> r0 rq; rewrite ler_add2l ler_opp2 ler_wpmul2r ?dP'.1 // ler_wpmul2l //.
  by apply: horner_mono => //; exact: deriv_ge0 fP.1.
have qm0 : 0 <= qmin (prob t J) := (edge q01).1.
have qm : qmin (prob t J) <= prob t J' by apply: le_trans lowq; rewrite le_maxr lexx.
case: which => h.
- apply: le_trans (lower _ _ lowq) _; first by rewrite le_maxr qm0.
  have := h _ _ _ kin ink q01 xi01; rewrite ler_subl_addl => h1; apply: le_trans h1 _.
  by rewrite ler_add2r ler_addl.
- apply: le_trans (lower _ qm0 qm) _; have := h _ _ _ kin ink q01 xi01; rewrite ler_subl_addl => h1.
  by apply: le_trans h1 _; rewrite ler_add2r ler_addr.
- apply: le_trans (lower _ qm0 qm) _; apply: le_trans (h _ q01) _.
  by rewrite ler_addr addr_ge0.
Qed.

(* "All payments together are at most the integrals, because prices are not negative." *)
Theorem prices_given_map : hockey c (release score tie f Q) (release score tie f Q') <=
  (Lambda all_room - Lambda 0) + (Mu 1 - Mu 0) + \sum_z B z.
Proof.
rewrite (release_runs score tie Q Q' fP c1); apply: le_trans (hockey_merge score tieP f kK c dP.1 dP'.1) _.
have sumK (F : Z -> R) : \sum_x both F K x = \sum_z F z.
  by rewrite sum_pair; apply: eq_bigr => z _; rewrite /both /= -mulr_sumr (kK z).2 mulr1.
rewrite -(sumK B) /all_room -(sumK room).
apply: (payments S tieP (both_dist dP kK) (both_dist dP' kK) (cells := cells) _ integrals derivatives).
  by move=> t tt; have [q01 xi01 _ _] := places tt; exact: cover.
move=> t k [z y] tt kin ink; have k0 := (kK z).1 y; have := ler_wpmul2l k0 (net z tt kin ink).
rewrite -posM // => h; apply: le_trans (le_trans (le_of_eq _) h) (le_of_eq _); rewrite /both /= -/J -/J'.
  by congr pos; move: (f^`().[_]) (f^`().[_]) => d d1; ring.
rewrite -[place t]/(prob t (both room K)); move: (lambda k).[_] (mu k).[_] => l l1; ring.
Qed.
End Places.

Print Assumptions prices_given_map.
