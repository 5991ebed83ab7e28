(** docs/theory/prices.md, proof of Theorem 6: places and payments, for a run that is made out of the
    dominating pair's outcome by a random map. *)
From mathcomp Require Import all_ssreflect all_algebra polyrcf.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release best_of_density best_of potentials_cut prices_pair.
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
Hypothesis sigma0 : 0 <= sigma.

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

(* "Payments. Run through the outcomes by rising score": first those of one score. *)
Let RK := both room K.
Let paid s := Lambda (below S RK s) + Mu (below S J s).

Lemma one_score s :
  \sum_(x | S x == s) pos (best_of S tie f J x - c * best_of S tie f J' x) <=
  \sum_(x | S x == s) both B K x + (paid s.+1 - paid s).
Proof.
have [dJ dJ'] : dist J /\ dist J' := conj (both_dist dP kK) (both_dist dP' kK).
pose wins x := 0 < best_of S tie f J x - c * best_of S tie f J' x.
pose A : {poly R} := \sum_(x | (S x == s) && wins x) (share S f J x - c *: share S f J' x).
pose G u := A.[u] - (Lambda (below S RK s + u * at_ S RK s) + Mu (below S J s + u * at_ S J s)).
pose total := \sum_(x | S x == s) both B K x.
have A10 : A.[1] - A.[0] = \sum_(x | S x == s) pos (best_of S tie f J x - c * best_of S tie f J' x).
  rewrite /A !horner_sum -sumrB big_mkcondr /=; apply: eq_bigr => x _; rewrite /wins; case: ltP => h.
    rewrite pos_id ?ltW // -(share_increment S tieP f x dJ.1) -(share_increment S tieP f x dJ'.1).
    rewrite !(hornerD, hornerN, hornerZ) -!mulrN; move: (share S f J x) (share S f J' x) => p1 p2.
    by move: p1.[1] p1.[0] p2.[1] p2.[0] => z1 z0 z3 z2; ring.
  by rewrite pos_0.
have next (F : Z * T -> R) : below S F s.+1 = up_to S F s by apply: eq_bigl => x; rewrite ltnS.
suff : G 1 - G 0 <= total.
  rewrite /G !mul1r !mul0r !addr0 -!up_toE -!next -/(paid s) -/(paid s.+1) -A10 -/total => g.
  by rewrite -ler_subl_addr; apply: (le_by g); ring.
apply: (@pieces R (below S J s) (at_ S J s) (below S RK s) (at_ S RK s) G total cells) => [w w01|u v k u0 uv v1 kin ink].
  by rewrite -!prob_event; have [q01 xi01 _ _] := places (event_test S s w01); exact: cover.
pose L : {poly R} := (Lpoly k \Po ((below S RK s)%:P + at_ S RK s *: 'X)) +
                     (Mpoly k \Po ((below S J s)%:P + at_ S J s *: 'X)).
have GE w : u <= w <= v -> G w = (A - L).[w].
  move=> wuv; rewrite /G hornerD hornerN /L hornerD !horner_comp !hornerE /= ![at_ _ _ _ * w]mulrC.
  by have [-> ->] := integrals kin (ink w wuv).
rewrite !GE ?lexx ?(ltW uv) //; case: (mvt (A - L) uv) => x; rewrite in_itv /= => /andP[ux xv] ->.
apply: ler_wpmul2r; first by rewrite subr_ge0 ltW.
have x01 : 0 <= x <= 1 by rewrite (le_trans u0 (ltW ux)) (le_trans (ltW xv) v1).
have inx := ink x; rewrite -!prob_event in inx; have {}inx := inx _.
have tt := event_test S s x01; have [dl dm] := derivatives k.
rewrite derivB /L derivD !deriv_comp !derivD !derivC !add0r !derivZ !derivX dl dm.
rewrite !hornerE !horner_comp !hornerE /= ![at_ _ _ _ * x]mulrC -!prob_event.
rewrite /A raddf_sum horner_sum /total.
rewrite [in (lambda k).[_] * _]/at_ [in (mu k).[_] * _]/at_ !mulr_sumr -big_split /= big_mkcondr -sumrB.
apply: ler_sum => -[z y] /eqP ys; have k0 := (kK z).1 y.
have hz := net z tt kin (inx _); rewrite /both /=.
apply: (@le_trans _ _ (K z y * (pos (f^`().[prob (event S s x) J] * P z - c * f^`().[prob (event S s x) J'] * P' z)
   - (room z * (lambda k).[place (event S s x)] + P z * (mu k).[prob (event S s x) J])))).
  rewrite mulrBr; apply: ler_sub; last first.
    rewrite -[place _]/(prob (event S s x) RK); move: (lambda k).[_] (mu k).[_] => l l1.
    by apply: le_of_eq; rewrite /RK /J /both /=; ring.
  case: ifP => _; last by rewrite mulr_ge0 ?pos_ge0.
  apply: (@le_trans _ _ (K z y * (f^`().[prob (event S s x) J] * P z - c * f^`().[prob (event S s x) J'] * P' z))).
    rewrite derivB derivZ !hornerE /= !share_deriv ?ys; [| exact: dJ'.1 | exact: dJ.1].
    move: (f^`().[prob _ J]) (f^`().[prob _ J']) => d1 d2.
    by apply: le_of_eq; rewrite /J /J' /both /=; ring.
  by rewrite ler_wpmul2l // le_pos.
by rewrite [X in _ <= X]mulrC ler_wpmul2l // ler_subl_addl hz // !ltW.
Qed.

Lemma all_scores m :
  \sum_(x | (S x < m)%N) pos (best_of S tie f J x - c * best_of S tie f J' x) <=
  \sum_(x | (S x < m)%N) both B K x + (paid m - paid 0).
Proof.
elim: m => [|m ih]; first by rewrite !big_pred0 ?subrr ?addr0 // => y; rewrite ltn0.
have split (F : Z * T -> R) : \sum_(x | (S x < m.+1)%N) F x =
    \sum_(x | (S x < m)%N) F x + \sum_(x | S x == m) F x.
  rewrite (bigID (fun x => (S x < m)%N)) /=; congr (_ + _); apply: eq_bigl => x.
    by rewrite ltnS andb_idl // => /ltnW.
  by rewrite ltnS -leqNgt eqn_leq.
rewrite !split; apply: le_trans (ler_add ih (one_score m)) (le_of_eq _).
by rewrite [LHS]addrACA; congr (_ + _); rewrite [LHS]addrC addrA subrK.
Qed.

(* "All payments together are at most the integrals, because prices are not negative." *)
Theorem prices_given_map : hockey c (release score tie f Q) (release score tie f Q') <=
  (Lambda all_room - Lambda 0) + (Mu 1 - Mu 0) + \sum_z B z.
Proof.
rewrite (release_runs score tie Q Q' fP c1); apply: le_trans (hockey_merge score tieP f kK c dP.1 dP'.1) _.
pose m := (\max_x S x).+1; have hm x : (S x < m)%N by rewrite ltnS leq_bigmax.
have all_x (F : Z * T -> R) : \sum_(x | (S x < m)%N) F x = \sum_x F x by apply: eq_bigl => x; rewrite hm.
have start (F : Z * T -> R) : below S F 0 = 0 by apply: big_pred0 => x; rewrite ltn0.
have J1 : below S J m = 1 by rewrite /below all_x; exact: (both_dist dP kK).2.
have sumK (F : Z -> R) : \sum_x both F K x = \sum_z F z.
  by rewrite sum_pair; apply: eq_bigr => z _; rewrite /both /= -mulr_sumr (kK z).2 mulr1.
have R1 : below S RK m = all_room by rewrite /below all_x sumK.
have := all_scores m; rewrite !all_x sumK /paid !start J1 R1 => h.
apply: le_trans h (le_of_eq _); rewrite addrC; congr (_ + _).
by move: (Lambda all_room) (Lambda 0) (Mu 1) (Mu 0) => l1 l0 m1 m0; ring.
Qed.
End Places.

Print Assumptions prices_given_map.
