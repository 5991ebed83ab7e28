(** scoring.md, "Coins": a coin that does not depend on the data decides how the record is used.

    O: the other records' coins, with the distribution w; p u: the probability of the use u; A x o u: what the
    search releases on x, given all coins. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Coins.
Variables (R : realFieldType) (O U T : finType) (w : O -> R) (p : U -> R).
Implicit Types A : O -> U -> T -> R.
Hypotheses (w_dist : dist w) (p_dist : dist p).

(** The search, and the search for a record that is used as u. *)
Definition search A : T -> R := mixed w (fun o => mixed p (A o)).
Definition search_used A u : T -> R := mixed w (fun o => A o u).

Lemma search_mixture A : search A =1 mixed p (search_used A).
Proof.
move=> t; rewrite /search /search_used /mixed; under eq_bigr do rewrite mulr_sumr.
rewrite exchange_big; apply: eq_bigr => u _; rewrite mulr_sumr; apply: eq_bigr => o _.
exact: mulrCA.
Qed.

Theorem coins A A' c (delta : U -> R) : (forall u, hockey c (search_used A u) (search_used A' u) <= delta u) ->
  hockey c (search A) (search A') <= \sum_u p u * delta u.
Proof.
move=> h; rewrite (hockey_ext c (search_mixture A) (search_mixture A')).
exact: mixture_bound p_dist.1 h.
Qed.

(** "It holds even if the coins are published." *)
Theorem coins_published A A' c (delta : U -> R) :
  (forall o u, hockey c (A o u) (A' o u) <= delta u) ->
  hockey c (both w (fun o => both p (A o))) (both w (fun o => both p (A' o))) <= \sum_u p u * delta u.
Proof.
move=> h; rewrite mixture_released; last exact: w_dist.1.
apply: (@le_trans _ _ (\sum_o w o * \sum_u p u * delta u)); last by rewrite -mulr_suml w_dist.2 mul1r.
apply: ler_sum => o _; rewrite ler_wpmul2l ?(w_dist.1 o) // mixture_released; last exact: p_dist.1.
by apply: ler_sum => u _; rewrite ler_wpmul2l ?(p_dist.1 u).
Qed.
End Coins.
Print Assumptions coins.
Print Assumptions coins_published.
