(** docs/theory/subset_rest.md, proof of Theorem 4: what is left if the coins of all other records are
    fixed. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition comonotone.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem4.
Variable R : realFieldType.
Implicit Types (k s q v : R) (T S V O : finType).

(** The quantile functions X*(u) and V*(u), 0 < u < 1, of finite pairs are rising steps. The interval is
    cut into n pieces, of lengths g i, on which both are constant: x i and y i. A ratio x with the mass
    infinity [oo] is the ratio of the pair (quantile_pair x oo, uniform). *)
Variables (n : nat) (g : nat -> R).
Definition quantile_pair (x : nat -> R) (oo : R) : option 'I_n -> R :=
  fun o => if o is Some i then g i * x i else oo.
Definition uniform : option 'I_n -> R := fun o => if o is Some i then g i else 0.

Lemma sum_option (I : finType) (F : option I -> R) : \sum_o F o = F None + \sum_i F (Some i).
Proof.
rewrite (bigD1 None) //=; congr (_ + _); rewrite (reindex_omap Some id) => [|[y|]] //=.
by apply: eq_bigl => y; rewrite eqxx.
Qed.

Variables (x y : nat -> R) (oox oov : R).
Hypotheses (x_rises : rising n x) (y_rises : rising n y).
Hypotheses (dX : dist (quantile_pair x oox)) (dV : dist (quantile_pair y oov)) (dU : dist uniform).

Let g0 (i : 'I_n) : 0 <= g i. Proof. exact: (dU.1 (Some i)). Qed.
Let oox0 : 0 <= oox. Proof. exact: (dX.1 None). Qed.
Let oov0 : 0 <= oov. Proof. exact: (dV.1 None). Qed.

(* X = Pw / P and V = Pv / P have some unknown joint distribution. *)
Lemma two_ratios T (Pw Pv P : T -> R) s l m k : dist Pw -> dist Pv -> dist P ->
  dominates (quantile_pair x oox) uniform Pw P -> dominates (quantile_pair y oov) uniform Pv P ->
  0 <= l -> 0 <= m ->
  \sum_t pos (s * l * Pw t + s * m * Pv t + k * P t) <=
  (\sum_(i < n) g i * pos (s * l * x i + s * m * y i + k)) + pos s * (l * oox + m * oov).
Proof.
move=> dw dv dP domX domV l0 m0.
have [k1 [k2 [kk split]]] : exists k1 k2, k1 + k2 = k /\ forall i, (i < n)%N ->
    pos (s * l * x i + s * m * y i + k) = pos (s * l * x i + k1) + pos (s * m * y i + k2).
  case: (lerP 0 s) => s0.
    by apply: (@comonotone_split _ n (fun i => s * l * x i) (fun i => s * m * y i)) => i j ij jn;
      rewrite ler_wpmul2l ?mulr_ge0 // (x_rises ij jn, y_rises ij jn).
  by apply: (@comonotone_split_falling _ n (fun i => s * l * x i) (fun i => s * m * y i)) => i j ij jn;
    rewrite ler_wnmul2l ?(x_rises ij jn) ?(y_rises ij jn) // mulr_le0_ge0 // ltW.
have one (z : nat -> R) oo h k' (Q : T -> R) : 0 <= oo -> 0 <= h -> dist (quantile_pair z oo) -> dist Q ->
    dominates (quantile_pair z oo) uniform Q P ->
    \sum_t pos (s * h * Q t + k' * P t) <= (\sum_(i < n) g i * pos (s * h * z i + k')) + pos s * (h * oo).
  move=> oo0 h0 dz dQ dom; apply: le_trans (any_line (s * h) k' dz dU dQ dP dom) _.
  rewrite sum_option addrC /=; apply: ler_add.
    by apply: ler_sum => i _; rewrite -posM //; apply/pos_mono/le_of_eq; ring.
  rewrite mulr0 addr0 [pos s * _]mulrC -posM ?mulr_ge0 //; apply/pos_mono/le_of_eq; ring.
apply: (@le_trans _ _ (\sum_t (pos (s * l * Pw t + k1 * P t) + pos (s * m * Pv t + k2 * P t)))).
  by apply: ler_sum => t _; rewrite -kk; apply: le_trans (posD _ _); apply/pos_mono/le_of_eq; ring.
rewrite big_split /=; apply: le_trans (ler_add (one _ _ _ k1 _ oox0 l0 dX dw domX) (one _ _ _ k2 _ oov0 m0 dV dv domV)) _.
rewrite addrACA -big_split /= mulrDr; apply: ler_add => //; apply: ler_sum => i _.
by rewrite -mulrDr split.
Qed.

(** Without the record t has law P and s law Q t. P_train and P_val are the laws of t if the record
    trains the candidates, and if it validates them; Qw t is that of s with the record. *)
Definition with_rest4 q v T S (Pw Pv P : T -> R) (Qw Q : T -> S -> R) : T * S -> R := fun z =>
  q * (Pw z.1 * Q z.1 z.2) + (1 - q) * ((v * Pv z.1 + (1 - v) * P z.1) * Qw z.1 z.2).
Definition with_all4 q v T S (Pw Pv P : T -> R) (Qw : T -> S -> R) : T * S -> R := fun z =>
  (q * Pw z.1 + (1 - q) * (v * Pv z.1 + (1 - v) * P z.1)) * Qw z.1 z.2.

Section Fixed_coins. (* "Fix the coins of all other records, as for Theorem 2." *)
Variables (q v : R) (T S V : finType) (Pw Pv P : T -> R) (Qw Q : T -> S -> R) (B B' : V -> R).
Hypotheses (q01 : 0 <= q <= 1) (v01 : 0 <= v <= 1).
Hypotheses (dPw : dist Pw) (dPv : dist Pv) (dP : dist P) (dQw : kernel Qw) (dQ : kernel Q).
Hypotheses (dB : dist B) (dB' : dist B').
Hypothesis domX : dominates (quantile_pair x oox) uniform Pw P.
Hypothesis domV : dominates (quantile_pair y oov) uniform Pv P.
Hypothesis domB : forall t, dominates B B' (Qw t) (Q t).
Let q0 : 0 <= q. Proof. by case/andP: q01. Qed.
Let r0 : 0 <= 1 - q. Proof. by rewrite subr_ge0; case/andP: q01. Qed.
Let v0 : 0 <= v. Proof. by case/andP: v01. Qed.

(** E over U and Y* of (a Z* + b)_+, and the mass at infinity, which counts for a > 0. Where B' = 0 the
    factor of Y* in Z* is what the mass at infinity of Y* counts with. *)
Definition bound_rest a b := (\sum_(i < n) \sum_w g i *
    pos (a * (q * x i * B' w + (1 - q) * (1 - v + v * y i) * B w) + b * B' w)) +
  pos a * (q * oox + (1 - q) * v * oov).
Definition bound_all a b := (\sum_(i < n) \sum_w g i *
    pos (a * ((q * x i + (1 - q) * (1 - v + v * y i)) * B w) + b * B' w)) +
  pos a * (q * oox + (1 - q) * v * oov).

Lemma fixed_rest4 a b :
  \sum_z pos (a * with_rest4 q v Pw Pv P Qw Q z + b * (P z.1 * Q z.1 z.2)) <= bound_rest a b.
Proof.
rewrite sum_pair; apply: (@le_trans _ _ (\sum_t \sum_w
    pos (a * with_rest4 q v Pw Pv P (fun=> B) (fun=> B') (t, w) + b * (P t * B' w)))).
  apply: ler_sum => t _ /=; rewrite /with_rest4 /=.
  have e (X : finType) (F F' : X -> R) z :
      a * (q * (Pw t * F' z) + (1 - q) * ((v * Pv t + (1 - v) * P t) * F z)) + b * (P t * F' z) =
      a * (1 - q) * (v * Pv t + (1 - v) * P t) * F z + (a * q * Pw t + b * P t) * F' z by ring.
  under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
  exact: any_line.
rewrite exchange_big /= /bound_rest [X in _ <= X + _]exchange_big /=.
have e1 : pos a * (q * oox + (1 - q) * v * oov) =
    \sum_w pos a * (q * B' w * oox + (1 - q) * v * B w * oov).
  rewrite -mulr_sumr big_split /= -!mulr_suml -!mulr_sumr dB.2 dB'.2; ring.
rewrite e1 -big_split; apply: ler_sum => w _ /=.
have h1 : 0 <= q * B' w by rewrite mulr_ge0 ?dB'.1.
have h2 : 0 <= (1 - q) * v * B w by rewrite !mulr_ge0 ?dB.1.
apply: le_trans (le_trans (two_ratios a (a * (1 - q) * (1 - v) * B w + b * B' w) dPw dPv dP domX domV h1 h2) _).
  by apply: ler_sum => t _; apply/pos_mono/le_of_eq; rewrite /with_rest4 /=; ring.
by rewrite ler_add2r; apply: ler_sum => i _; rewrite ler_wpmul2l //; apply/pos_mono/le_of_eq; ring.
Qed.

Lemma fixed_all4 a b :
  \sum_z pos (a * with_all4 q v Pw Pv P Qw z + b * (P z.1 * Q z.1 z.2)) <= bound_all a b.
Proof.
rewrite sum_pair; apply: (@le_trans _ _ (\sum_t \sum_w
    pos (a * with_all4 q v Pw Pv P (fun=> B) (t, w) + b * (P t * B' w)))).
  apply: ler_sum => t _ /=; rewrite /with_all4 /=.
  have e (X : finType) (F F' : X -> R) z :
      a * ((q * Pw t + (1 - q) * (v * Pv t + (1 - v) * P t)) * F z) + b * (P t * F' z) =
      a * (q * Pw t + (1 - q) * (v * Pv t + (1 - v) * P t)) * F z + b * P t * F' z by ring.
  under eq_bigr do rewrite e; under [X in _ <= X]eq_bigr do rewrite e.
  exact: any_line.
rewrite exchange_big /= /bound_all [X in _ <= X + _]exchange_big /=.
have e1 : pos a * (q * oox + (1 - q) * v * oov) =
    \sum_w pos a * (q * B w * oox + (1 - q) * v * B w * oov).
  rewrite -mulr_sumr big_split /= -!mulr_suml -!mulr_sumr dB.2; ring.
rewrite e1 -big_split; apply: ler_sum => w _ /=.
have h1 : 0 <= q * B w by rewrite mulr_ge0 ?dB.1.
have h2 : 0 <= (1 - q) * v * B w by rewrite !mulr_ge0 ?dB.1.
apply: le_trans (le_trans (two_ratios a (a * (1 - q) * (1 - v) * B w + b * B' w) dPw dPv dP domX domV h1 h2) _).
  by apply: ler_sum => t _; apply/pos_mono/le_of_eq; rewrite /with_all4 /=; ring.
by rewrite ler_add2r; apply: ler_sum => i _; rewrite ler_wpmul2l //; apply/pos_mono/le_of_eq; ring.
Qed.
End Fixed_coins.
End Theorem4.
