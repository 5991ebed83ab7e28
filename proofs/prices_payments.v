(** docs/theory/prices.md, proof of Theorem 6, "Payments": outcomes are run through by rising score, and
    what they pay at their places adds up to the integrals of the prices, whatever the order is. *)
From mathcomp Require Import all_ssreflect all_algebra polyrcf.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release best_of_density potentials_cut.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Payments.
Variables (R : rcfType) (X : finType) (S : X -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Variables (f : {poly R}) (c : R) (J J' room gain : X -> R).
Hypotheses (dJ : dist J) (dJ' : dist J').

(** Prices lambda and mu with integrals Lambda and Mu, polynomials on each of finitely many cells of the
    plane of (q, xi) = (J, room)(what scores less). *)
Local Notation cell := (seq (R * R * R) * (R * R * R))%type.
Variables (cells : seq cell) (lambda mu Lpoly Mpoly : cell -> {poly R}) (Lambda Mu : R -> R).
Hypothesis cover : forall t, test t -> exists2 k, k \in cells & inside k (prob t J) (prob t room).
Hypothesis integrals : forall k q xi, k \in cells -> inside k q xi ->
  Lambda xi = (Lpoly k).[xi] /\ Mu q = (Mpoly k).[q].
Hypothesis derivatives : forall k, (Lpoly k)^`() = lambda k /\ (Mpoly k)^`() = mu k.

(** At its place every outcome has no more than it pays and its gain. *)
Hypothesis net : forall t k x, test t -> k \in cells -> inside k (prob t J) (prob t room) ->
  pos (f^`().[prob t J] * J x - c * (f^`().[prob t J'] * J' x)) <=
  room x * (lambda k).[prob t room] + J x * (mu k).[prob t J] + gain x.

Let paid s := Lambda (below S room s) + Mu (below S J s).

Lemma one_score s :
  \sum_(x | S x == s) pos (best_of S tie f J x - c * best_of S tie f J' x) <=
  \sum_(x | S x == s) gain x + (paid s.+1 - paid s).
Proof.
pose wins x := 0 < best_of S tie f J x - c * best_of S tie f J' x.
pose A : {poly R} := \sum_(x | (S x == s) && wins x) (share S f J x - c *: share S f J' x).
pose G u := A.[u] - (Lambda (below S room s + u * at_ S room s) + Mu (below S J s + u * at_ S J s)).
pose total := \sum_(x | S x == s) gain x.
have A10 : A.[1] - A.[0] = \sum_(x | S x == s) pos (best_of S tie f J x - c * best_of S tie f J' x).
  rewrite /A !horner_sum -sumrB big_mkcondr /=; apply: eq_bigr => x _; rewrite /wins; case: ltP => h.
    rewrite pos_id ?ltW // -(share_increment S tieP f x dJ.1) -(share_increment S tieP f x dJ'.1).
    rewrite !(hornerD, hornerN, hornerZ) -!mulrN; move: (share S f J x) (share S f J' x) => p1 p2.
    by move: p1.[1] p1.[0] p2.[1] p2.[0] => z1 z0 z3 z2; ring.
  by rewrite pos_0.
have next (F : X -> R) : below S F s.+1 = up_to S F s by apply: eq_bigl => x; rewrite ltnS.
suff : G 1 - G 0 <= total.
  rewrite /G !mul1r !mul0r !addr0 -!up_toE -!next -/(paid s) -/(paid s.+1) -A10 -/total => g.
  by rewrite -ler_subl_addr; apply: (le_by g); ring.
apply: (@pieces R (below S J s) (at_ S J s) (below S room s) (at_ S room s) G total cells) => [w w01|u v k u0 uv v1 kin ink].
  by rewrite -!prob_event; apply: cover; exact: event_test.
pose L : {poly R} := (Lpoly k \Po ((below S room s)%:P + at_ S room s *: 'X)) +
                     (Mpoly k \Po ((below S J s)%:P + at_ S J s *: 'X)).
have GE w : u <= w <= v -> G w = (A - L).[w].
  move=> wuv; rewrite /G hornerD hornerN /L hornerD !horner_comp !hornerE /= ![at_ _ _ _ * w]mulrC.
  by have [-> ->] := integrals kin (ink w wuv).
rewrite !GE ?lexx ?(ltW uv) //; case: (mvt (A - L) uv) => x; rewrite in_itv /= => /andP[ux xv] ->.
apply: ler_wpmul2r; first by rewrite subr_ge0 ltW.
have x01 : 0 <= x <= 1 by rewrite (le_trans u0 (ltW ux)) (le_trans (ltW xv) v1).
have inx : inside k (prob (event S s x) J) (prob (event S s x) room).
  by rewrite !prob_event; apply: ink; rewrite !ltW.
have tt := event_test S s x01; have [dl dm] := derivatives k.
rewrite derivB /L derivD !deriv_comp !derivD !derivC !add0r !derivZ !derivX dl dm.
rewrite !hornerE !horner_comp !hornerE /= ![at_ _ _ _ * x]mulrC -!prob_event.
rewrite /A raddf_sum horner_sum /total.
rewrite [in (lambda k).[_] * _]/at_ [in (mu k).[_] * _]/at_ !mulr_sumr -big_split /= big_mkcondr -sumrB.
apply: ler_sum => y /eqP ys; rewrite ler_subl_addl ![_.[_] * _ y]mulrC; apply: le_trans (net y tt kin inx).
case: ifP => _; last exact: pos_ge0; apply: le_trans (le_pos _).
by rewrite derivB derivZ !hornerE /= !share_deriv ?ys; [| exact: dJ'.1 | exact: dJ.1]; apply: le_of_eq; ring.
Qed.

Lemma all_scores m :
  \sum_(x | (S x < m)%N) pos (best_of S tie f J x - c * best_of S tie f J' x) <=
  \sum_(x | (S x < m)%N) gain x + (paid m - paid 0).
Proof.
elim: m => [|m ih]; first by rewrite !big_pred0 ?subrr ?addr0 // => y; rewrite ltn0.
have split (F : X -> R) : \sum_(x | (S x < m.+1)%N) F x =
    \sum_(x | (S x < m)%N) F x + \sum_(x | S x == m) F x.
  rewrite (bigID (fun x => (S x < m)%N)) /=; congr (_ + _); apply: eq_bigl => x.
    by rewrite ltnS andb_idl // => /ltnW.
  by rewrite ltnS -leqNgt eqn_leq.
rewrite !split; apply: le_trans (ler_add ih (one_score m)) (le_of_eq _).
by rewrite [LHS]addrACA; congr (_ + _); rewrite [LHS]addrC addrA subrK.
Qed.

Theorem payments : \sum_x pos (best_of S tie f J x - c * best_of S tie f J' x) <=
  (Lambda (\sum_x room x) - Lambda 0) + (Mu 1 - Mu 0) + \sum_x gain x.
Proof.
pose m := (\max_x S x).+1; have hm x : (S x < m)%N by rewrite ltnS leq_bigmax.
have all_x (F : X -> R) : \sum_(x | (S x < m)%N) F x = \sum_x F x by apply: eq_bigl => x; rewrite hm.
have start (F : X -> R) : below S F 0 = 0 by apply: big_pred0 => x; rewrite ltn0.
have J1 : below S J m = 1 by rewrite /below all_x; exact: dJ.2.
have R1 : below S room m = \sum_x room x by rewrite /below all_x.
have := all_scores m; rewrite !all_x /paid !start J1 R1 => h.
apply: le_trans h (le_of_eq _); rewrite addrC; congr (_ + _).
by move: (Lambda (\sum_x room x)) (Lambda 0) (Mu 1) (Mu 0) => l1 l0 m1 m0; ring.
Qed.
End Payments.

Print Assumptions payments.
