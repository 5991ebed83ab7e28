(** docs/theory/subset_rest.md, proof of Theorem 4, "Coupling": comonotone ratios are the worst. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Comonotone.
Variable R : realFieldType.
Implicit Types (k : R) (a b : nat -> R).

Definition rising n a := forall i j, (i <= j)%N -> (j < n)%N -> a i <= a j.

(* "Of all couplings the comonotone one has the largest": if both summands rise together, a hinge of
   their sum is the sum of a hinge of each; in any other coupling it is at most that. *)
Lemma comonotone_split n a b k : rising n a -> rising n b ->
  exists k1 k2, k1 + k2 = k /\
    forall i, (i < n)%N -> pos (a i + b i + k) = pos (a i + k1) + pos (b i + k2).
Proof.
move=> ra rb; have e k1 : k1 + (k - k1) = k by rewrite addrC subrK.
have add x y k1 : (0 <= x + k1 -> 0 <= y + (k - k1) -> pos (x + y + k) = pos (x + k1) + pos (y + (k - k1))) /\
    (x + k1 <= 0 -> y + (k - k1) <= 0 -> pos (x + y + k) = pos (x + k1) + pos (y + (k - k1))).
  have s : x + y + k = x + k1 + (y + (k - k1)) by ring.
  split=> h1 h2; first by rewrite s (pos_id h1) (pos_id h2) (pos_id (addr_ge0 h1 h2)).
  have h : x + k1 + (y + (k - k1)) <= 0 by apply: le_trans (ler_add h1 h2) _; rewrite addr0.
  by rewrite s (pos_0 h) (pos_0 h1) (pos_0 h2) addr0.
have [/existsP[i0 i0G]|none] := boolP [exists i : 'I_n, 0 < a i + b i + k]; last first.
  case: n ra rb none => [|n] ra rb none; first by exists k, 0; rewrite addr0.
  have h i : (i < n.+1)%N -> a i + b i + k <= 0.
    by move=> il; move/existsPn/(_ (Ordinal il)): none; rewrite -leNgt.
  exists (- a n), (k - - a n); split=> // i il; apply: (add _ _ _).2.
    by rewrite subr_le0 ra.
  by apply: le_by (ler_add (rb i n il (ltnSn n)) (h n (ltnSn n))) _; ring.
have exG : exists i, (i < n)%N && (0 < a i + b i + k) by exists i0; rewrite ltn_ord.
case: (ex_minnP exG) => m /andP[mn mG] least.
have up i : (m <= i)%N -> (i < n)%N -> a m <= a i /\ b m <= b i by split; [exact: ra | exact: rb].
case: m mn mG least up => [|m] mn mG least up.
  exists (- a 0%N), (k - - a 0%N); split=> // i il; have [h1 h2] := up i isT il; apply: (add _ _ _).1.
    by rewrite subr_ge0.
  by apply: le_by (ler_add h2 (ltW mG)) _; ring.
have low : a m + b m + k <= 0.
  by rewrite leNgt; apply/negP => h; have := least m; rewrite h (ltnW mn) ltnn => /(_ isT).
have mm : a m <= a m.+1 /\ b m <= b m.+1 by split; [apply: ra | apply: rb].
pose k1 := Num.max (- a m.+1) (k + b m).
have [k_a k_b] : - a m.+1 <= k1 /\ k + b m <= k1 by rewrite /k1 !le_maxr !lexx orbT.
have k_a1 : k1 <= - a m.
  by rewrite le_maxl ler_opp2 mm.1 /=; apply: le_by low _; ring.
have k_b1 : k1 <= k + b m.+1.
  by rewrite le_maxl ler_add2l mm.2 andbT; apply: le_by (ltW mG) _; ring.
exists k1, (k - k1); split=> // i il; case: (ltnP m i) => mi.
  have [h1 h2] := up i mi il; apply: (add _ _ _).1.
    by apply: le_by (ler_add h1 k_a) _; ring.
  by apply: le_by (ler_add h2 k_b1) _; ring.
apply: (add _ _ _).2; first by apply: le_by (ler_add (ra _ _ mi (ltnW mn)) k_a1) _; ring.
by apply: le_by (ler_add (rb _ _ mi (ltnW mn)) k_b) _; ring.
Qed.

Definition falling n a := forall i j, (i <= j)%N -> (j < n)%N -> a j <= a i.

Lemma comonotone_split_falling n a b k : falling n a -> falling n b ->
  exists k1 k2, k1 + k2 = k /\
    forall i, (i < n)%N -> pos (a i + b i + k) = pos (a i + k1) + pos (b i + k2).
Proof.
move=> fa fb; pose back i := (n.-1 - i)%N.
have bb i : (i < n)%N -> back (back i) = i by move=> il; rewrite /back subKn // -ltnS (ltn_predK il).
have bn i : (i < n)%N -> (back i < n)%N.
  by move=> il; rewrite /back -[X in (_ < X)%N](ltn_predK il) ltnS leq_subr.
case: (@comonotone_split n (a \o back) (b \o back) k).
- by move=> i j ij jn; apply: fa; [exact: leq_sub2l | apply/bn/(leq_ltn_trans ij)].
- by move=> i j ij jn; apply: fb; [exact: leq_sub2l | apply/bn/(leq_ltn_trans ij)].
move=> k1 [k2 [kk h]]; exists k1, k2; split=> // i il.
by have := h _ (bn i il); rewrite /= bb.
Qed.
End Comonotone.
