(** risk.md: what a profile says about attacks. An attack is a test t that says x; a is its false positive rate
    (of M(x') = Q), b its false negative rate (of M(x) = P); c = e^eps, d = delta(eps) in both orders. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Risk.
Variables (R : realFieldType) (T : finType).
Implicit Types (P Q t : T -> R) (c d : R).
Definition power t P := \sum_x t x * P x.

(** "Trade-off curve": one eps gives two lines. *)
Theorem trade_off P Q t c d : dist P -> dist Q -> test t -> 1 <= c ->
  hockey c P Q <= d -> hockey c Q P <= d ->
  1 - d - c * power t Q <= 1 - power t P /\ c^-1 * (1 - d - power t Q) <= 1 - power t P.
Proof.
move=> [_ P1] [_ Q1] tt c1 h h'; have c0 : 0 < c by apply: lt_le_trans c1.
split.
  have := le_trans (hockey_test c P Q tt) h; rewrite ler_subl_addr => le.
  by rewrite -addrA ler_add2l -opprD ler_opp2.
have tt' : test (fun x => 1 - t x).
  by move=> x; case/andP: (tt x) => t0 t1; rewrite subr_ge0 t1 ler_subl_addr ler_addl.
have e (F : T -> R) : \sum_x F x = 1 -> \sum_x (1 - t x) * F x = 1 - power t F.
  by move=> F1; rewrite -[X in _ = X - _]F1 -sumrB; apply: eq_bigr => x _; ring.
have := le_trans (hockey_test c Q P tt') h'; rewrite !e // => le.
rewrite mulrC ler_pdivr_mulr // -subr_ge0.
have -> : (1 - power t P) * c - (1 - d - power t Q) = d - (1 - power t Q - c * (1 - power t P)) by ring.
by rewrite subr_ge0.
Qed.

(** "Advantage". *)
Theorem advantage P Q t c d : dist P -> dist Q -> test t -> 1 <= c ->
  hockey c P Q <= d -> hockey c Q P <= d -> power t P - power t Q <= (c - 1 + 2%:R * d) / (c + 1).
Proof.
move=> dP dQ tt c1 h h'; have [le1 le2] := trade_off dP dQ tt c1 h h'; have c0 : 0 < c by apply: lt_le_trans c1.
rewrite ler_pdivl_mulr ?(addr_gt0 c0 ltr01) // -subr_ge0.
rewrite mulrC ler_pdivr_mulr // -subr_ge0 in le2; rewrite -subr_ge0 in le1.
have -> : c - 1 + 2%:R * d - (power t P - power t Q) * (c + 1) =
  (1 - power t P - (1 - d - c * power t Q)) + ((1 - power t P) * c - (1 - d - power t Q)) by ring.
exact: addr_ge0.
Qed.

(** "Success with a prior": the secret z has the distribution w; the attack succeeds with power t z; k is what it
    reaches without the record, at most the prior. The release without the record does not depend on z. *)
Theorem any_attack (Z : finType) (w : Z -> R) (P : Z -> T -> R) (Q : T -> R) (t : Z -> T -> R) c d k :
  dist w -> (forall z, dist (P z)) -> dist Q -> (forall z, test (t z)) -> 1 <= c ->
  (forall z, hockey c (P z) Q <= d) -> (forall z, hockey c Q (P z) <= d) ->
  (forall x, \sum_z w z * t z x <= k) ->
  \sum_z w z * power (t z) (P z) <= 1 - (1 - d - c * k) /\
  \sum_z w z * power (t z) (P z) <= 1 - c^-1 * (1 - d - k).
Proof.
move=> [w0 w1] dP dQ tt c1 h h' prior; have c0 : 0 < c by apply: lt_le_trans c1.
have le_k : \sum_z w z * power (t z) Q <= k.
  have -> : \sum_z w z * power (t z) Q = \sum_x Q x * \sum_z w z * t z x.
    transitivity (\sum_z \sum_x w z * (t z x * Q x)); first by apply: eq_bigr => z _; rewrite mulr_sumr.
    rewrite exchange_big; apply: eq_bigr => x _; rewrite mulr_sumr; apply: eq_bigr => z _; ring.
  rewrite -[k]mul1r -[X in X * k]dQ.2 mulr_suml; apply: ler_sum => x _.
  by rewrite ler_wpmul2l ?(dQ.1 x) ?prior.
have mean (a b : R) : 0 <= b -> (forall z, power (t z) (P z) <= a + b * power (t z) Q) ->
    \sum_z w z * power (t z) (P z) <= a + b * k.
  move=> b0 line; apply: (@le_trans _ _ (\sum_z w z * (a + b * power (t z) Q))).
    by apply: ler_sum => z _; apply: ler_wpmul2l.
  have -> : \sum_z w z * (a + b * power (t z) Q) = a + b * \sum_z w z * power (t z) Q.
    rewrite mulr_sumr -[X in X + _]mul1r -[X in X * a]w1 mulr_suml -big_split; apply: eq_bigr => z _ /=; ring.
  by rewrite ler_add2l ler_wpmul2l.
have lines z := trade_off (dP z) dQ (tt z) c1 (h z) (h' z).
split.
  have -> : 1 - (1 - d - c * k) = d + c * k by ring.
  apply: mean (ltW c0) _ => z; have [le _] := lines z; rewrite -subr_ge0.
  have -> : d + c * power (t z) Q - power (t z) (P z) = 1 - power (t z) (P z) - (1 - d - c * power (t z) Q) by ring.
  by rewrite subr_ge0.
have -> : 1 - c^-1 * (1 - d - k) = (1 - c^-1 * (1 - d)) + c^-1 * k by ring.
apply: mean; first by rewrite invr_ge0 ltW.
move=> z; have [_ le] := lines z; rewrite -subr_ge0.
have -> : 1 - c^-1 * (1 - d) + c^-1 * power (t z) Q - power (t z) (P z)
  = 1 - power (t z) (P z) - c^-1 * (1 - d - power (t z) Q) by ring.
by rewrite subr_ge0.
Qed.
End Risk.
Print Assumptions trade_off.
Print Assumptions advantage.
Print Assumptions any_attack.
