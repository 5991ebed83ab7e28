(** clipped_sums.md, Lemma 3 (rows): a step is dominated by the Poisson-sampled pair.

    x j is the record at place j, or None where it is blank. In row r a record t adds f r t, whatever the other
    rows hold: "what is computed in a row depends on this row's number and content alone". N s is the noisy sum. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions composition clipped_sums_sampling clipped_sums_batches clipped_sums_law.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rows.
Variables (R : realFieldType) (J O : finType) (M : nat) (T : Type) (V : zmodType) (q : R).
Variables (f : 'I_M -> T -> V) (N : V -> O -> R).
Hypotheses (q_ge0 : 0 <= q) (q_le1 : q <= 1) (ends : 0 < not_above J M q) (N_dist : forall s, dist (N s)).
Implicit Types (x : J -> option T) (b : batch J M) (r : 'I_M) (j : J) (S : {set J}).

Definition adds r (t : option T) := if t is Some t then f r t else 0.
Definition batch_sum x b := \sum_r adds r (if b r is Some j then x j else None).
Definition step x : O -> R := mixed (law q) (fun b => N (batch_sum x b)).

Lemma step_dist x : dist (step x).
Proof. exact: mixed_dist (law_dist q_ge0 q_le1 ends) (fun b => N_dist _). Qed.

(** "The sum is s without the record, s + g in a row of its own with it." *)
Lemma batch_sum_put x b r j : b r = None ->
  batch_sum x (put b r (Some j)) = batch_sum x b + adds r (x j).
Proof.
move=> e; rewrite /batch_sum (bigD1 r) //= ffunE eqxx [in RHS](bigD1 r) //= e add0r addrC.
by congr (_ + _); apply: eq_bigr => r' /negPf ne; rewrite ffunE ne.
Qed.

Lemma batch_sum_others x x' b j : (forall i, i != j -> x i = x' i) -> j \notin members b ->
  batch_sum x b = batch_sum x' b.
Proof.
move=> d jb; apply: eq_bigr => r _; case e: (b r) => [i|] //; rewrite d //.
by apply: contraNneq jb => <-; apply/in_members; exists r.
Qed.

Section One_record.
Variable j : J.

(** A step is a mixture over the others j b and a row r; [None] stands for a batch that the others fill. *)
Definition mixing (i : batch J M * option 'I_M) : R :=
  if others j i.1 then
    if i.2 is Some r then if i.1 r == None then weight q j i.1 else 0 else full q i.1
  else 0.
Definition part x (i : batch J M * option 'I_M) : O -> R :=
  if i.2 is Some r then sampled q (N (batch_sum x i.1 + adds r (x j))) (N (batch_sum x i.1)) else N (batch_sum x i.1).

Lemma step_mixture x : step x =1 mixed mixing (part x).
Proof.
move=> o; pose F b := law q b * N (batch_sum x b) o.
have sum_option (G : option 'I_M -> R) : \sum_i G i = G None + \sum_r G (Some r).
  by rewrite (bigD1 None) //=; congr (_ + _); rewrite (reindex_omap Some id) => [|[]] //=; apply: eq_bigl => r; rewrite eqxx.
transitivity (\sum_(b | others j b) (F b + \sum_(r | b r == None) F (put b r (Some j)))).
  rewrite big_split /= -sum_with addrC /step /mixed (bigID (@valid J M)) /= [X in _ + X]big1 ?addr0.
    by rewrite (bigID (fun b => j \in members b)).
  by move=> b /negPf v; rewrite /law v mul0r.
rewrite /mixed sum_pair big_mkcond; apply: eq_bigr => b _; rewrite sum_option /mixing /part /=.
case: ifP => [ob|_]; last by rewrite mul0r big1 ?addr0 // => r _; rewrite mul0r.
rewrite [in RHS](eq_bigr (fun r => if b r == None then weight q j b * part x (b, Some r) o else 0)) => [|r _]; last first.
  by case: ifP; rewrite ?mul0r.
have drawn r : b r == None -> weight q j b * part x (b, Some r) o
    = (1 - q) * weight q j b * N (batch_sum x b) o + F (put b r (Some j)).
  by move=> /eqP e; rewrite /F (law_with q ob e) batch_sum_put // /part /sampled /=; ring.
rewrite -big_mkcond (eq_bigr _ drawn) big_split /= -mulr_suml -mulr_sumr {1}/F (law_without ends ob).
by rewrite mulrDl -addrA addrCA.
Qed.

Lemma mixing_dist : dist mixing.
Proof.
have z0 := ltW ends; split=> [[b r]|].
  rewrite /mixing /=; case: ifP => // _; case: r => [r|].
    case: ifP => // _; rewrite !divr_ge0 ?ler0n ?prodr_ge0 // => i _.
    by case: ifP; rewrite // subr_ge0.
  by rewrite /full; case: ifP => // _; case: (law_dist q_ge0 q_le1 ends).
pose x (_ : J) : option T := None; have [_ <-] := step_dist x.
rewrite (eq_bigr _ (fun o _ => step_mixture x o)) exchange_big; apply: eq_bigr => i _ /=.
have [_ p1] : dist (part x i); last by rewrite -mulr_sumr p1 mulr1.
by rewrite /part; case: (i.2) => [r|] //; apply: sampled_dist; rewrite // q_ge0 q_le1.
Qed.

(** Whatever is put into the record's place on both sides. *)
Theorem rows (U : finType) (P P' : U -> R) x x' : dist P -> dist P' -> (forall i, i != j -> x i = x' i) ->
  (forall r s, dominates P P' (sampled q (N (s + adds r (x j))) (N s)) (sampled q (N (s + adds r (x' j))) (N s))) ->
  dominates P P' (step x) (step x').
Proof.
move=> dP dP' d dom c c0; rewrite (hockey_ext c (step_mixture x) (step_mixture x')).
have [w0 w1] := mixing_dist.
rewrite -[X in _ <= X]mul1r -w1 mulr_suml; apply: le_trans (joint_convexity _ _ _ w0) _.
apply: ler_sum => -[b r] _; have [o|no] := boolP (others j b); last by rewrite /mixing (negPf no) !mul0r.
apply: ler_wpmul2l => //; rewrite /part /= (batch_sum_others d); last by case/andP: o.
by case: r => [r|]; [apply: dom | apply: same_dominated].
Qed.
End One_record.

(** Lemma 3, zero-out: the record is blank in x'. (P, P') dominates the noise with and without a record's vector. *)
Theorem rows_zero_out (U : finType) (P P' : U -> R) x x' j : dist P -> dist P' ->
  (forall r t s, dominates P P' (N (s + f r t)) (N s)) ->
  (forall i, i != j -> x i = x' i) -> x' j = None ->
  dominates (sampled q P P') P' (step x) (step x') /\ dominates P' (sampled q P P') (step x') (step x).
Proof.
move=> dP dP' dom d blank; have q01 : 0 <= q <= 1 by rewrite q_ge0 q_le1.
have dS := sampled_dist q01 dP dP'; suff h : dominates (sampled q P P') P' (step x) (step x').
  by split=> //; apply: dominates_sym => //; apply: step_dist.
apply: rows d _ => // r s; rewrite blank /= addr0 => c c0.
have e : sampled q (N s) (N s) =1 N s by move=> o; rewrite /sampled; ring.
rewrite (hockey_ext c (frefl _) e); case: (x j) => [t|] /=.
  by apply: sampled_dominated.
by rewrite addr0 (hockey_ext c e (frefl _)); apply: same_dominated.
Qed.

(** Replace-one (composition.md): (P, P') dominates the pairs of two records. *)
Theorem rows_replace_one (U : finType) (P P' : U -> R) x x' j : dist P -> dist P' ->
  (forall r t t' s, dominates P P' (sampled q (N (s + f r t)) (N s)) (sampled q (N (s + f r t')) (N s))) ->
  (forall i, i != j -> x i = x' i) -> x j <> None -> x' j <> None ->
  dominates P P' (step x) (step x').
Proof.
move=> dP dP' dom d; case e: (x j) => [t|] // _; case e': (x' j) => [t'|] // _.
by apply: rows d _ => // r s; rewrite e e'; apply: dom.
Qed.
End Rows.
Print Assumptions rows.
Print Assumptions rows_zero_out.
Print Assumptions rows_replace_one.
