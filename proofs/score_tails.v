(** score_noise.md, "Lemma (one component is the worst)": steps of one component, and upper tails.

    D s k: the distribution of X1 + k (s = true) or X1 - k on ordered outcomes, for k <= n; up = D true. Of a
    symmetric log-concave distribution on the integers are used: unit steps away from 0 are alike, wherever they
    begin and to which side they go ([alike]); and the likelihood ratio of X1 + m + 1 and X1 + m is monotone
    ([monotone]). *)
From mathcomp Require Import all_ssreflect all_algebra zify.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Components.
Variables (R : realFieldType) (W' n : nat) (D : bool -> nat -> 'I_W'.+1 -> R).
Hypotheses (D_dist : forall s k, dist (D s k)).
Local Notation W := (W'.+1).
Implicit Types (x y : 'I_W) (m k : nat) (s : bool) (a b c : R).
Local Notation up := (D true).

(** How well a step away from 0 is told: the sum of (a D(k + 1) - b D(k))_+. *)
Definition told a b s k := \sum_x pos (a * D s k.+1 x - b * D s k x).
Definition alike := forall a b s k m, 0 <= a -> 0 <= b -> (k < n)%N -> (m < n)%N ->
  told a b s k <= told a b true m.
Definition monotone := forall m x y, (m < n)%N -> (x <= y)%N -> up m.+1 x * up m y <= up m x * up m.+1 y.
Hypotheses (steps_alike : alike) (ratio_monotone : monotone).

(** The upper tail above y, and y with the coin c. *)
Definition tail y c x : R := if (y < x)%N then 1 else if x == y then c else 0.
Definition reach m y c := \sum_x tail y c x * up m x.

Lemma tail_01 y c x : 0 <= c <= 1 -> 0 <= tail y c x <= 1.
Proof. by rewrite /tail; case: ifP => _; [rewrite ler01 lexx | case: ifP => _; rewrite ?lexx ?ler01]. Qed.

(** "The best events are upper tails": of a step they reach all that can be told at the ratio of y. *)
Lemma tail_best m y c : (m < n)%N ->
  told (up m y) (up m.+1 y) true m = up m y * reach m.+1 y c - up m.+1 y * reach m y c.
Proof.
move=> mn; rewrite /reach !mulr_sumr -sumrB; apply: eq_bigr => x _; rewrite /tail -val_eqE /=.
have [yx|xy|e] := ltngtP y x.
- rewrite pos_id; first by ring.
  by rewrite subr_ge0; apply: ratio_monotone => //; apply: ltnW.
- rewrite pos_0; first by ring.
  rewrite subr_le0 mulrC [X in _ <= X]mulrC; apply: ratio_monotone => //; exact: ltnW.
rewrite (val_inj e) pos_0; first by ring.
by rewrite subr_le0 mulrC.
Qed.

(** All of D m lies above y. *)
Definition beyond m y := forall x, (x <= y)%N -> up m x = 0.
Lemma reach_beyond m y c : beyond m y -> reach m y c = 1.
Proof.
move=> h; have [_ <-] := D_dist true m; apply: eq_bigr => x _; rewrite /tail; case: ltnP => xy; first by rewrite mul1r.
by rewrite h // mulr0.
Qed.

Lemma beyondS m y : (m < n)%N -> beyond m y -> beyond m.+1 y.
Proof.
move=> mn h x xy; have [D0 D1] := D_dist true m; have [D0' _] := D_dist true m.+1.
have [z zp] : exists z, up m z != 0.
  apply/existsP; apply: contraT; rewrite negb_exists => /forallP z; move: (oner_eq0 R).
  by rewrite -D1 big1 ?eqxx // => i _; apply/eqP; move: (z i); rewrite negbK.
have yz : (x <= z)%N by rewrite leqNgt; apply/negP => zx; move: zp; rewrite h ?eqxx // ltnW // (leq_trans zx).
have := ratio_monotone mn yz; rewrite (h x xy) mul0r => le; apply/eqP.
have zp' : 0 < up m z by rewrite lt_def zp D0.
by rewrite eq_le D0' andbT -(ler_pmul2r zp') mul0r.
Qed.

(** At y or beyond it. *)
Lemma alive m y : (m <= n)%N -> 0 < up 0 y -> beyond m y \/ 0 < up m y.
Proof.
move=> + y0; elim: m => [|m IH] mn; first by right.
case: (IH (ltnW mn)) => [/(beyondS mn)|yp]; first by left.
have [y_0|yn] := eqVneq (up m.+1 y) 0; last by right; rewrite lt_def yn (D_dist true m.+1).1.
left=> x xy; have := ratio_monotone mn xy; rewrite y_0 mulr0 pmulr_lle0 // => le.
by apply/eqP; rewrite eq_le le (D_dist true m.+1).1.
Qed.

(** Upper tails grow. *)
Lemma reach_mono m y c : (m < n)%N -> 0 <= c <= 1 -> reach m y c <= reach m.+1 y c.
Proof.
move=> mn c01; have [_ D1] := D_dist true m; have [_ D1'] := D_dist true m.+1.
have grow (x z : 'I_W) : (x <= z)%N -> tail y c x <= tail y c z.
  move=> xz; have [/andP[x0 x1] /andP[z0 z1]] := (tail_01 y x c01, tail_01 y z c01).
  move: xz x1 z0; rewrite /tail; have [yx|xy|/val_inj <-] := ltngtP y x => xz.
  - by rewrite (leq_trans yx xz) lexx.
  - by rewrite -val_eqE /= (ltn_eqF xy).
  rewrite eqxx => c1 _; have [->|yz] := eqVneq z y; first by rewrite ltnn lexx.
  by rewrite ltn_neqAle eq_sym val_eqE yz xz.
pose g (x z : 'I_W) := (tail y c z - tail y c x) * (up m x * up m.+1 z - up m.+1 x * up m z).
have g0 (x z : 'I_W) : 0 <= g x z.
  have [xz|/ltnW zx] := leqP x z; first by rewrite mulr_ge0 // subr_ge0 ?grow ?ratio_monotone.
  rewrite mulr_le0 // subr_le0 ?grow // mulrC [X in _ <= X]mulrC; exact: ratio_monotone.
have : 0 <= \sum_x \sum_z g x z by apply: sumr_ge0 => x _; apply: sumr_ge0.
have -> : \sum_x \sum_z g x z = 2%:R * (reach m.+1 y c - reach m y c).
  transitivity ((\sum_x up m x) * reach m.+1 y c - (\sum_x up m.+1 x) * reach m y c
      - reach m y c * (\sum_x up m.+1 x) + reach m.+1 y c * (\sum_x up m x)); last by rewrite D1 D1'; ring.
  rewrite /reach !big_distrlr /= -!sumrB -big_split; apply: eq_bigr => x _.
  by rewrite -!sumrB -big_split; apply: eq_bigr => z _; rewrite /g /=; ring.
by rewrite pmulr_rge0 ?ltr0n // subr_ge0.
Qed.

(** A quantile: unless q = 1, an upper tail of up 0 that reaches q, with y in its support. *)
Lemma quantile q : 0 <= q -> q < 1 -> exists y c, [/\ 0 <= c <= 1, 0 < up 0 y & reach 0 y c = q].
Proof.
move=> q0 q1; pose tm (y : 'I_W) := \sum_(x : 'I_W | (y < x)%N) up 0 x; have [D0 D1] := D_dist true 0.
have split_tail y c : reach 0 y c = tm y + c * up 0 y.
  rewrite /reach (bigID (fun x : 'I_W => (y < x)%N)) /=; congr (_ + _).
    by apply: eq_bigr => x yx; rewrite /tail yx mul1r.
  rewrite (bigD1 y) ?ltnn //= big1 ?addr0 => [|x /andP[yx /negPf xy]]; rewrite /tail ?ltnn ?eqxx //.
  by rewrite (negPf yx) xy mul0r.
have last : tm ord_max <= q by rewrite /tm big_pred0 // => x; apply/negbTE; rewrite -leqNgt -ltnS.
case: (@arg_minnP _ ord_max (fun y => tm y <= q) (fun y : 'I_W => y : nat) last) => y yq least; exists y.
have above : q <= tm y + up 0 y /\ 0 < up 0 y.
  have [y0|y0] := posnP y.
    have e : tm y + up 0 y = 1.
      rewrite -D1 [RHS](bigID (fun x : 'I_W => (y < x)%N)) /=; congr (_ + _).
      by rewrite (big_pred1 y) // => x /=; rewrite -leqNgt y0 leqn0 -val_eqE /= y0.
    rewrite e ltW //; split=> //; rewrite lt_def D0 andbT; apply: contraTneq q1 => z.
    by rewrite -leNgt -e z addr0.
  have py : (y.-1 < W)%N by apply: leq_ltn_trans (leq_pred _) (ltn_ord y).
  have e : tm (Ordinal py) = tm y + up 0 y.
    rewrite /tm (bigD1 y) /= ?ltn_predL // addrC; congr (_ + _); apply: eq_bigl => x.
    by rewrite -val_eqE /=; lia.
  have more : q < tm (Ordinal py).
    by rewrite ltNge; apply/negP => /least /=; lia.
  by rewrite -e ltW //; split=> //; rewrite lt_def D0 andbT; apply: contraTneq more => z; rewrite e z addr0 -leNgt.
case: above => qy yp; exists ((q - tm y) / up 0 y); split=> //.
  by rewrite divr_ge0 ?subr_ge0 //= ler_pdivr_mulr // mul1r ler_subl_addl.
by rewrite split_tail divfK ?gt_eqF // addrC subrK.
Qed.
End Components.
