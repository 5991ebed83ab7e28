(** docs/theory/best_of.md, "Statement": what the best of K runs releases, from its definition. *)
From mathcomp Require Import all_ssreflect all_algebra all_fingroup.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Release.
Variables (R : realFieldType) (T : finType) (score : T -> nat).
Implicit Types (Q : T -> R) (f : {poly R}) (y z : T) (k s : nat).

(** "Ties are broken by independent coins": among the runs B (places 1..k) that share the best score
    run i is chosen with probability tie k B i. Fair coins: 1 / #|B|. *)
Definition tie_rule := forall k, {set 'I_k} -> 'I_k -> R.
Definition fair_ties (tie : tie_rule) :=
  forall k (B : {set 'I_k}), B != set0 -> \sum_(i in B) tie k B i = 1.
Variable tie : tie_rule.
Hypothesis tieP : fair_ties tie.

(** Q is run k times independently; y is released if it is the outcome of the run that is chosen among
    those with the best score. K = k with probability f`_k. *)
Definition same_score k (d : {ffun 'I_k -> T}) s := [set i | score (d i) == s].
Definition none_above k (d : {ffun 'I_k -> T}) s := [forall i, (score (d i) <= s)%N].
Definition best Q k y : R :=
  \sum_(d : {ffun 'I_k -> T} | none_above d (score y))
    (\prod_i Q (d i)) * \sum_(i | d i == y) tie (same_score d (score y)) i.
Definition best_of f Q y : R := \sum_(k < size f) f`_k * best Q k y.

(** F(s) = Q(score <= s), the same without s, and their difference. *)
Definition up_to Q s := \sum_(z | (score z <= s)%N) Q z.
Definition below Q s := \sum_(z | (score z < s)%N) Q z.
Definition at_ Q s := \sum_(z | score z == s) Q z.

Lemma up_toE Q s : up_to Q s = below Q s + at_ Q s.
Proof.
rewrite /up_to (bigID (fun z => (score z < s)%N)) /=; congr (_ + _); apply: eq_bigl => z.
  by case: ltngtP.
by rewrite -leqNgt eqn_leq andbC.
Qed.

(* All k runs score at most s. *)
Lemma all_up_to Q k s : \sum_(d : {ffun 'I_k -> T} | none_above d s) \prod_i Q (d i) = up_to Q s ^+ k.
Proof.
transitivity (\prod_(i < k) up_to Q s); last by rewrite prodr_const card_ord.
rewrite /up_to bigA_distr_big_dep /=; apply: eq_bigl => d.
by apply/forallP/familyP.
Qed.

Lemma all_below Q k s : \sum_(d : {ffun 'I_k -> T} | [forall i, (score (d i) < s)%N]) \prod_i Q (d i) =
  below Q s ^+ k.
Proof.
transitivity (\prod_(i < k) below Q s); last by rewrite prodr_const card_ord.
rewrite /below bigA_distr_big_dep /=; apply: eq_bigl => d.
by apply/forallP/familyP.
Qed.

(* Exchange y and z, of the same score, in run i. *)
Definition exchange k y z i (d : {ffun 'I_k -> T}) : {ffun 'I_k -> T} :=
  [ffun j => if j == i then tperm y z (d j) else d j].

Lemma exchangeK k y z i : involutive (@exchange k y z i).
Proof. by move=> d; apply/ffunP => j; rewrite !ffunE; case: eqP => // _; rewrite tpermK. Qed.

Lemma exchange_score k y z i (d : {ffun 'I_k -> T}) j : score y = score z ->
  score (exchange y z i d j) = score (d j).
Proof. by move=> yz; rewrite ffunE; case: eqP => // _; case: tpermP => // ->. Qed.

(* The others' part of the probability that run i is chosen. *)
Definition rest k Q s i (d : {ffun 'I_k -> T}) :=
  (\prod_(j | j != i) Q (d j)) * tie (same_score d s) i.

Lemma rest_exchange Q k s i y z : score y = score z ->
  \sum_(d : {ffun 'I_k -> T} | none_above d s && (d i == y)) rest Q s i d =
  \sum_(d : {ffun 'I_k -> T} | none_above d s && (d i == z)) rest Q s i d.
Proof.
move=> yz; rewrite (reindex_inj (inv_inj (@exchangeK k y z i))) /=; apply: eq_big => d.
  congr (_ && _); first by apply: eq_forallb => j; rewrite exchange_score.
  by rewrite ffunE eqxx (can2_eq (tpermK y z) (tpermK y z)) tpermL.
move=> _; rewrite /rest; congr (_ * _).
  by apply: eq_bigr => j /negbTE ji; rewrite ffunE ji.
by congr tie; apply/setP => j; rewrite !inE exchange_score.
Qed.

Lemma bestE Q k y : best Q k y =
  Q y * \sum_i \sum_(d : {ffun 'I_k -> T} | none_above d (score y) && (d i == y)) rest Q (score y) i d.
Proof.
transitivity (\sum_(d : {ffun 'I_k -> T} | none_above d (score y)) \sum_(i | d i == y)
                Q y * rest Q (score y) i d).
  apply: eq_bigr => d _; rewrite mulr_sumr; apply: eq_bigr => i /eqP dy.
  by rewrite (bigD1 i) //= dy /rest mulrA.
rewrite (exchange_big_dep predT) //= mulr_sumr.
by apply: eq_bigr => i _; rewrite mulr_sumr.
Qed.

(** "The release has density A(y) = f'(F(y)) Q(y)": with the coins attached, an outcome has its share of
    f(F) - f(F without the score). *)
Theorem best_law Q k y : let s := score y in
  at_ Q s * best Q k y = Q y * (up_to Q s ^+ k - below Q s ^+ k).
Proof.
rewrite /= bestE mulrCA; congr (_ * _); set s := score y.
transitivity (\sum_i \sum_(d : {ffun 'I_k -> T} | none_above d s && (score (d i) == s))
                Q (d i) * rest Q s i d).
  rewrite mulr_sumr; apply: eq_bigr => i _.
  rewrite /at_ mulr_suml [RHS](partition_big (fun d : {ffun 'I_k -> T} => d i) (fun z => score z == s)) /=.
    apply: eq_bigr => z /eqP zs; rewrite (@rest_exchange _ _ _ _ y z) ?zs // mulr_sumr.
    apply: eq_big => d; last by case/andP => _ /eqP ->.
    by case: eqP => [->|]; rewrite ?andbF ?zs ?eqxx ?andbT.
  by move=> d /andP[].
rewrite -all_up_to -all_below (exchange_big_dep (fun d => none_above d s)) /=; last by move=> i d _ /andP[].
rewrite [X in _ = X - _](bigID (fun d : {ffun 'I_k -> T} => [forall i, (score (d i) < s)%N])) /=.
have e (d : {ffun 'I_k -> T}) : none_above d s && [forall i, (score (d i) < s)%N] =
    [forall i, (score (d i) < s)%N].
  by apply: andb_idl => /forallP h; apply/forallP => i; exact: ltnW.
rewrite (eq_bigl _ _ e) addrC addKr (bigID (fun d : {ffun 'I_k -> T} => [forall i, (score (d i) < s)%N])) /=.
rewrite (eq_bigl _ _ e) big1 ?add0r => [|d /forallP dl]; last first.
  by rewrite big1 // => i /andP[_ /eqP h]; have := dl i; rewrite h ltnn.
apply: eq_bigr => d /andP[na nb]; transitivity ((\prod_i Q (d i)) * \sum_(i in same_score d s) tie (same_score d s) i).
  rewrite mulr_sumr; apply: eq_big => i; rewrite ?inE ?na // => _.
  by rewrite [X in _ = X * _](bigD1 i) //= /rest mulrA.
rewrite tieP ?mulr1 //; apply: contraNneq nb => e0; apply/forallP => i.
rewrite ltn_neqAle (forallP na i) andbT; apply/negP => h.
by move/setP/(_ i): e0; rewrite !inE h.
Qed.

(** The generating function f(z) = E z^K. *)
Theorem best_of_law f Q y : let s := score y in
  at_ Q s * best_of f Q y = Q y * (f.[up_to Q s] - f.[below Q s]).
Proof.
rewrite /= /best_of !horner_coef -sumrB !mulr_sumr; apply: eq_bigr => k _.
by rewrite mulrCA best_law; ring.
Qed.

Lemma best_of_zero f Q y : Q y = 0 -> best_of f Q y = 0.
Proof. by move=> Qy; apply: big1 => k _; rewrite bestE Qy mul0r mulr0. Qed.
End Release.

Print Assumptions best_law.
Print Assumptions best_of_law.
