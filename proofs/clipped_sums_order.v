(** clipped_sums.md, Lemma 2 (any order): b vectors of length at most C, each a product of two numbers, are added in
    any tree. Every operation returns its exact result times 1 + e, |e| <= u. Terms in u^2 are not left out: the
    result errs by at most C u (b^2 + 3b)/2 divided by 1 - b u. *)
From mathcomp Require Import all_ssreflect all_algebra zify.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import bounded_sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Any_order.
Variables (R : realFieldType) (I : finType) (u : R).
Hypothesis u_ge0 : 0 <= u.

(** A leaf is a record's vector. *)
Inductive tree := leaf of (I -> R) | node of tree & tree.
Implicit Types (t a b : tree) (w : I -> R) (k : nat).
Fixpoint leaves t : nat := if t is node a b then leaves a + leaves b else 1.
Fixpoint exact_sum t : I -> R := match t with
  | leaf v => v
  | node a b => fun i => exact_sum a i + exact_sum b i end.
Fixpoint short C t : Prop := match t with leaf v => sq v <= C ^+ 2 | node a b => short C a /\ short C b end.

(** w is what is computed: in a leaf there is one product, in a node one addition. *)
Fixpoint computed t w : Prop := match t with
  | leaf v => forall i, `|w i - v i| <= u * `|v i|
  | node a b => exists wa wb,
      [/\ computed a wa, computed b wb & forall i, `|w i - (wa i + wb i)| <= u * `|wa i + wb i|] end.

(** The sum over the leaves of (1 + u)^(depth + k) |leaf| in a coordinate; of |leaf|; of the factors less 1; and of
    the depths. *)
Fixpoint above k t i : R := match t with
  | leaf v => (1 + u) ^+ k * `|v i|
  | node a b => above k.+1 a i + above k.+1 b i end.
Fixpoint mass t i : R := match t with leaf v => `|v i| | node a b => mass a i + mass b i end.
Fixpoint factors k t : R := match t with leaf _ => (1 + u) ^+ k - 1 | node a b => factors k.+1 a + factors k.+1 b end.
Fixpoint depths t : nat := if t is node a b then depths a + depths b + (leaves a + leaves b) else 0.

Lemma aboveS k t i : above k.+1 t i = (1 + u) * above k t i.
Proof.
elim: t k => [v|a IHa b IHb] k /=; first by rewrite exprS mulrA.
by rewrite IHa IHb mulrDr.
Qed.

Lemma power_ge1 k : 1 <= (1 + u) ^+ k.
Proof. by rewrite exprn_ege1 // ler_addl. Qed.

Lemma factors_ge0 k t : 0 <= factors k t.
Proof. by elim: t k => [v|a IHa b IHb] k /=; [rewrite subr_ge0 power_ge1 | rewrite addr_ge0]. Qed.

Lemma exact_mass t i : `|exact_sum t i| <= mass t i.
Proof. by elim: t => [v|a IHa b IHb] //=; apply: le_trans (ler_norm_add _ _) _; apply: ler_add. Qed.

(** "In each coordinate the error is at most u times the sum over the leaves of (depth + 1) |leaf|." *)
Lemma error_of_coordinate t w i : computed t w -> `|w i - exact_sum t i| <= above 1 t i - mass t i.
Proof.
elim: t w => [v|a IHa b IHb] w /=; first by move/(_ i); rewrite expr1 mulrDl mul1r addrAC subrr add0r.
case=> wa [wb [/IHa ea /IHb eb /(_ i) e]]; rewrite !(aboveS 1).
have below (v ex m A : R) : `|v - ex| <= A - m -> `|ex| <= m -> `|v| <= A.
  move=> h1 h2; rewrite -[v](subrK ex); apply: le_trans (ler_norm_add _ _) _.
  by rewrite -[A](subrK m); apply: ler_add.
have [la lb] := (below _ _ _ _ ea (exact_mass a i), below _ _ _ _ eb (exact_mass b i)).
have -> : w i - (exact_sum a i + exact_sum b i)
    = (w i - (wa i + wb i)) + ((wa i - exact_sum a i) + (wb i - exact_sum b i)) by ring.
apply: le_trans (ler_norm_add _ _) _; apply: le_trans (ler_add e (ler_norm_add _ _)) _.
have -> : (1 + u) * above 1 a i + (1 + u) * above 1 b i - (mass a i + mass b i)
    = u * (above 1 a i + above 1 b i) + ((above 1 a i - mass a i) + (above 1 b i - mass b i)) by ring.
rewrite ler_add ?(ler_add ea eb) // ler_wpmul2l //.
by apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
Qed.

(** "By the triangle inequality." *)
Lemma triangle x y (p q : R) : 0 <= p -> 0 <= q -> sq x <= p ^+ 2 -> sq y <= q ^+ 2 ->
  sq (fun i : I => x i + y i) <= (p + q) ^+ 2.
Proof.
move=> p0 q0 xp yq; rewrite (eq_sq (v := fun i => 1 * x i + 1 * y i)) => [|i]; last by rewrite !mul1r.
have d : dot x y <= p * q.
  apply: le_trans (ler_norm _) _; rewrite -ler_sqr ?nnegrE ?mulr_ge0 // real_normK ?num_real //.
  by apply: le_trans (cauchy _ _) _; rewrite exprMn ler_pmul ?sq_ge0.
rewrite sq_linear !expr1n !mul1r !mulr1; have -> : (p + q) ^+ 2 = p ^+ 2 + 2%:R * (p * q) + q ^+ 2 by ring.
by rewrite !ler_add // ler_wpmul2l ?ler0n.
Qed.

Lemma error_of_vector C k t : 0 <= C -> short C t -> sq (fun i => above k t i - mass t i) <= (C * factors k t) ^+ 2.
Proof.
move=> C0; elim: t k => [v|a IHa b IHb] k /=.
  move=> le; have -> : sq (fun i => (1 + u) ^+ k * `|v i| - `|v i|) = ((1 + u) ^+ k - 1) ^+ 2 * sq v.
    rewrite /sq mulr_sumr; apply: eq_bigr => i _; rewrite -[v i ^+ 2]real_normK ?num_real //.
    by move: ((1 + u) ^+ k) `|v i| => p x; ring.
  by rewrite [X in _ <= X]exprMn [X in X <= _]mulrC ler_wpmul2r ?sqr_ge0.
case=> /(IHa k.+1) ea /(IHb k.+1) eb; rewrite mulrDr.
rewrite (eq_sq (v := fun i => (above k.+1 a i - mass a i) + (above k.+1 b i - mass b i))) => [|i]; last by ring.
by apply: triangle; rewrite // mulr_ge0 // factors_ge0.
Qed.

(** "In a tree with b leaves the depths add up to at most (b^2 + b)/2": even to 1 less. *)
Lemma leaves_gt0 t : (0 < leaves t)%N.
Proof. by elim: t => //= a pos b _; rewrite addn_gt0 pos. Qed.

Lemma depths_le t : (2 * depths t + 2 <= leaves t ^ 2 + leaves t)%N.
Proof. elim: t => //= a IHa b IHb; have := leaves_gt0 a; have := leaves_gt0 b; nia. Qed.

(** (1 + u)^k - 1 is at most k u/(1 - b u) for k <= b. *)
Lemma power_le k n : n%:R * u < 1 -> (k <= n)%N -> ((1 + u) ^+ k - 1) * (1 - n%:R * u) <= k%:R * u.
Proof.
move=> nu kn; have bernoulli : (1 + u) ^+ k * (1 - k%:R * u) <= 1.
  elim: k {kn} => [|k IH]; first by rewrite expr0 mul0r subr0 mulr1.
  apply: le_trans IH; rewrite exprSr -mulrA ler_wpmul2l ?(le_trans ler01) ?power_ge1 // -subr_ge0 -[in k.+1%:R]addn1 natrD.
  have -> : 1 - k%:R * u - (1 + u) * (1 - (k%:R + 1) * u) = (k%:R + 1) * u ^+ 2 by ring.
  by rewrite mulr_ge0 ?sqr_ge0 // addr_ge0 ?ler0n ?ler01.
apply: (@le_trans _ _ (((1 + u) ^+ k - 1) * (1 - k%:R * u))).
  by rewrite ler_wpmul2l ?subr_ge0 ?power_ge1 // ler_add2l ler_opp2 ler_wpmul2r // ler_nat.
by rewrite mulrBl mul1r -subr_ge0; move: bernoulli; rewrite -subr_ge0; congr (_ <= _); ring.
Qed.

(** Lemma 2. *)
Lemma factors_le k t n : n%:R * u < 1 -> (k + leaves t <= n.+1)%N ->
  factors k t * (1 - n%:R * u) <= (k * leaves t + depths t)%:R * u.
Proof.
move=> nu; elim: t k => [v|a IHa b IHb] k /= le.
  by rewrite muln1 addn0; apply: power_le => //; lia.
have [pa pb] := (leaves_gt0 a, leaves_gt0 b).
rewrite mulrDl; apply: le_trans (ler_add (IHa _ _) (IHb _ _)) _; [lia|lia|].
by rewrite -mulrDl -natrD ler_wpmul2r // ler_nat; lia.
Qed.

Theorem any_order C t w : 0 <= C -> short C t -> computed t w -> (leaves t)%:R * u < 1 ->
  exists2 error, sq (fun i => w i - exact_sum t i) <= error ^+ 2 &
    2%:R * error * (1 - (leaves t)%:R * u) <= C * u * (leaves t ^ 2 + 3 * leaves t)%:R.
Proof.
move=> C0 s c bu; exists (C * factors 1 t).
  apply: le_trans (error_of_vector 1 C0 s); apply: ler_sum => i _.
  rewrite -real_normK ?num_real // ler_sqr ?nnegrE ?normr_ge0 ?error_of_coordinate //.
  exact: le_trans (normr_ge0 _) (error_of_coordinate i c).
have le := factors_le (k := 1) (t := t) bu (leqnn _); have d := depths_le t.
apply: (@le_trans _ _ (C * u * (2 * (leaves t + depths t))%:R)); last first.
  by rewrite ler_wpmul2l ?mulr_ge0 // ler_nat; lia.
rewrite mul1n in le; have := ler_wpmul2l C0 le; rewrite -(ler_pmul2l (ltr0n R 2)) natrM.
by congr (_ <= _); ring.
Qed.
End Any_order.
Print Assumptions any_order.
