(** docs/theory/doubling.md, "One round" and "One draw for the threshold". *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rounds.
Variable R : realFieldType.
Implicit Types (z x th : int) (h : R).

(** On integers. h stands for e^(eps/2). The threshold's noise is z with probability p z; G x is the
    probability that a candidate's noise is at least x. Discrete Laplace noise of scales 2 D/eps and
    4 D/eps has the ratios that are assumed. *)
Variables (D : int) (h : R) (p G : int -> R).
Hypotheses (h1 : 1 <= h) (p0 : forall z, 0 <= p z) (p_ratio : forall z, p z <= h * p (z + D)).
Hypotheses (G01 : forall x, 0 <= G x <= 1) (G_falls : forall x y, x <= y -> G y <= G x).
Hypothesis G_ratio : forall x, G x <= h * G (x + D + D).

(** Utilities u and u' of n candidates on two neighbouring data sets: each moves by at most D. *)
Variables (n : nat) (u u' : 'I_n -> int).
Hypothesis near : forall i, u i <= u' i + D /\ u' i <= u i + D.

(** Given the threshold th + z: no candidate reaches it; candidate k is the first that does. *)
Definition reject (v : 'I_n -> int) th z : R := \prod_i (1 - G (th + z - v i)).
Definition first (v : 'I_n -> int) th (k : 'I_n) z : R :=
  (\prod_(i < n | (i < k)%N) (1 - G (th + z - v i))) * G (th + z - v k).

(* Integers. *)
Lemma int_le_by (x y x1 y1 : int) : x <= y -> y - x = y1 - x1 -> x1 <= y1.
Proof. by rewrite -subr_ge0 => l e; rewrite -subr_ge0 -e. Qed.

(* "Couple the threshold's noise z here with z + D there. A utility that is below the threshold here is
   below it there." *)
Lemma below_there th z i : 0 <= 1 - G (th + z - u i) <= 1 - G (th + (z + D) - u' i).
Proof.
have [g0 g1] := andP (G01 (th + z - u i)); rewrite subr_ge0 g1 ler_add2l ler_opp2 G_falls //.
by case: (near i) => _ h'; apply: (int_le_by h'); ring.
Qed.

Lemma reject_shift th z : 0 <= reject u th z <= reject u' th (z + D).
Proof.
apply/andP; split; first by apply: prodr_ge0 => i _; case/andP: (below_there th z i).
by apply: ler_prod => i _; exact: below_there.
Qed.

(* "Couple k's noise with itself plus 2 D, which costs another e^(eps/2)." *)
Lemma first_shift th k z : 0 <= first u th k z <= h * first u' th k (z + D).
Proof.
have pr : 0 <= \prod_(i < n | (i < k)%N) (1 - G (th + z - u i)) <=
    \prod_(i < n | (i < k)%N) (1 - G (th + (z + D) - u' i)).
  apply/andP; split; first by apply: prodr_ge0 => i _; case/andP: (below_there th z i).
  by apply: ler_prod => i _; exact: below_there.
have [q0 q1] := andP pr; have [g0 _] := andP (G01 (th + z - u k)).
rewrite /first mulr_ge0 //= mulrCA ler_pmul //.
apply: le_trans (G_ratio _) _; rewrite ler_wpmul2l ?(le_trans ler01) // G_falls //.
by case: (near k) => h' _; apply: (int_le_by h'); ring.
Qed.

(** A transcript is a list of answers: None for a reject, Some k for "k is the first above"; its
    thresholds may depend on the earlier answers. Given the threshold's noise it has probability: *)
Definition answer v th (o : option 'I_n) z := if o is Some k then first v th k z else reject v th z.
Definition cost (o : option 'I_n) : nat := if o is Some _ then 1 else 0.

Lemma answer_shift th o z : 0 <= answer u th o z <= h ^+ cost o * answer u' th o (z + D).
Proof.
case: o => [k|] /=; first by rewrite expr1 first_shift.
by rewrite expr0 mul1r reject_shift.
Qed.

(** One round with all noise drawn anew: "the probability of a reject changes by a factor e^(eps/2) at
    most, and that of candidate k is the first above by e^eps". Probabilities are the limits of sums
    over windows of z; every window here is below a window there. *)
Theorem one_round th o (window : seq int) :
  \sum_(z <- window) p z * answer u th o z <=
  h ^+ (1 + cost o) * \sum_(z <- [seq z + D | z <- window]) p z * answer u' th o z.
Proof.
rewrite big_map mulr_sumr; apply: ler_sum => z _; have [a0 a1] := andP (answer_shift th o z).
rewrite exprD expr1.
have -> : h * h ^+ cost o * (p (z + D) * answer u' th o (z + D)) =
  (h * p (z + D)) * (h ^+ cost o * answer u' th o (z + D)) by ring.
by rewrite ler_pmul.
Qed.

(** "With one draw for the threshold the walk is (1 + accepts) eps/2-DP." *)
Theorem one_draw (answers : seq (int * option 'I_n)) (window : seq int) :
  \sum_(z <- window) p z * \prod_(a <- answers) answer u a.1 a.2 z <=
  h ^+ (1 + \sum_(a <- answers) cost a.2) *
    \sum_(z <- [seq z + D | z <- window]) p z * \prod_(a <- answers) answer u' a.1 a.2 z.
Proof.
have shift z : 0 <= \prod_(a <- answers) answer u a.1 a.2 z <=
    h ^+ (\sum_(a <- answers) cost a.2)%N * \prod_(a <- answers) answer u' a.1 a.2 (z + D).
  elim: answers => [|a s /andP[s0 s1]]; first by rewrite !big_nil expr0 mul1r ler01 lexx.
  have [a0 a1] := andP (answer_shift a.1 a.2 z); rewrite !big_cons mulr_ge0 //= exprD.
  by rewrite mulrACA ler_pmul.
rewrite big_map mulr_sumr; apply: ler_sum => z _; have [a0 a1] := andP (shift z).
rewrite exprD expr1.
have -> : h * h ^+ (\sum_(a <- answers) cost a.2)%N *
   (p (z + D) * \prod_(a <- answers) answer u' a.1 a.2 (z + D)) =
  (h * p (z + D)) * (h ^+ (\sum_(a <- answers) cost a.2)%N * \prod_(a <- answers) answer u' a.1 a.2 (z + D)).
  by ring.
by rewrite ler_pmul.
Qed.
End Rounds.

Print Assumptions one_round.
Print Assumptions one_draw.
