(** score_noise.md, "Lemma (one component is the worst)": independent components, moved by whole numbers v with
    sum |v_i| <= n, are no easier to tell apart than one component that is moved by n. *)
From mathcomp Require Import all_ssreflect all_algebra zify.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions score_tails.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Walk.
Variables (R : realFieldType) (W' n : nat) (I : finType) (D : bool -> nat -> 'I_W'.+1 -> R).
Hypotheses (D_dist : forall s k, dist (D s k)) (D_0 : forall s, D s 0 =1 D true 0).
Local Notation W := (W'.+1).
Implicit Types (x y : 'I_W) (m k : nat) (s : bool) (a b c : R).
Local Notation up := (D true).

Hypotheses (steps_alike : alike n D) (ratio_monotone : monotone n D).

(** Independent components, moved by v; T: an event on all of them. *)
Implicit Types (v : I -> bool * nat) (T : {ffun I -> 'I_W} -> R).
Definition moved v (x : {ffun I -> 'I_W}) := \prod_i D (v i).1 (v i).2 (x i).
Definition size v := (\sum_i (v i).2)%N.
Definition power T v := \sum_x T x * moved v x.

Lemma moved_dist v : dist (moved v).
Proof.
split=> [x|]; first by apply: prodr_ge0 => i _; case: (D_dist (v i).1 (v i).2).
rewrite /moved -(bigA_distr_bigA (fun i => D (v i).1 (v i).2)) big1 // => i _; exact: (D_dist _ _).2.
Qed.

(** One unit step of component i, from k to k + 1. *)
Lemma unit_step T v v' i k a b : 0 <= a -> 0 <= b -> test T -> (forall l, l != i -> v l = v' l) ->
  (v i).1 = (v' i).1 -> (v i).2 = k.+1 -> (v' i).2 = k -> a * power T v - b * power T v' <= told D a b (v i).1 k.
Proof.
move=> a0 b0 tt other s1 vk vk'; rewrite /power !mulr_sumr -sumrB.
pose F l x := if l == i then pos (a * D (v i).1 k.+1 x - b * D (v i).1 k x) else D (v l).1 (v l).2 x.
have -> : told D a b (v i).1 k = \sum_(x : {ffun I -> 'I_W}) \prod_l F l (x l).
  rewrite -(bigA_distr_bigA F) (bigD1 i) //= [X in _ * X]big1 ?mulr1 => [|l /negPf li].
    by apply: eq_bigr => x _; rewrite /F eqxx.
  by rewrite -[RHS](D_dist (v l).1 (v l).2).2; apply: eq_bigr => x _; rewrite /F li.
apply: ler_sum => x _; rewrite (bigD1 i) //=; pose others := \prod_(l | l != i) F l (x l).
have o0 : 0 <= others by apply: prodr_ge0 => l /negPf li; rewrite /F li (D_dist _ _).1.
have e : moved v x = D (v i).1 k.+1 (x i) * others.
  by rewrite /moved (bigD1 i) //= vk; congr (_ * _); apply: eq_bigr => l /negPf li; rewrite /F li.
have e' : moved v' x = D (v i).1 k (x i) * others.
  rewrite /moved (bigD1 i) //= vk' s1; congr (_ * _); apply: eq_bigr => l li.
  by rewrite /F (negPf li) other.
rewrite e e' {1}/F eqxx -/others.
have -> : a * (T x * (D (v i).1 k.+1 (x i) * others)) - b * (T x * (D (v i).1 k (x i) * others))
  = T x * (a * D (v i).1 k.+1 (x i) - b * D (v i).1 k (x i)) * others by ring.
rewrite ler_wpmul2r //; case/andP: (tt x) => t0 t1.
by apply: le_trans (ler_wpmul2l t0 (le_pos _)) _; apply: ler_pimull => //; apply: pos_ge0.
Qed.

(** "Walk from 0 to v in unit steps, one component at a time." *)
Definition still : I -> bool * nat := fun=> (true, 0%N).
Lemma walk T y c v : test T -> 0 <= c <= 1 -> 0 < up 0 y -> power T still <= reach D 0 y c -> (size v <= n)%N ->
  power T v <= reach D (size v) y c.
Proof.
move=> tt c01 y0 start; move e: (size v) => m; elim: m v e => [|m IH] v e mn.
  have z i : (v i).2 = 0%N by move/eqP: e; rewrite sum_nat_eq0 => /forallP/(_ i)/eqP.
  suff -> : power T v = power T still by [].
  by apply: eq_bigr => x _; congr (_ * _); apply: eq_bigr => i _; rewrite z D_0.
have le1 : power T v <= 1.
  rewrite -(moved_dist v).2; apply: ler_sum => x _; rewrite -[X in _ <= X]mul1r ler_wpmul2r ?(moved_dist v).1 //.
  by case/andP: (tt x).
case: (alive D_dist ratio_monotone mn y0) => [/(reach_beyond D_dist c) -> //|yp].
have yp' : 0 < up m y.
  case: (alive D_dist ratio_monotone (ltnW mn) y0) => // /(beyondS D_dist ratio_monotone mn)/(_ _ (leqnn _)) z; by rewrite z ltxx in yp.
have [i vi] : exists i, (0 < (v i).2)%N.
  apply/existsP; apply: contraT; rewrite negb_exists => /forallP z; move: e; rewrite /size big1 // => i _.
  by apply/eqP; move: (z i); rewrite -leqNgt leqn0.
pose v' l := if l == i then ((v i).1, (v i).2.-1) else v l.
have size' : size v' = m.
  move: e; rewrite /size (bigD1 i) //= [in X in _ -> X](bigD1 i) //= {1}/v' eqxx /=.
  rewrite (eq_bigr (fun l => (v l).2) (F1 := fun l => (v' l).2)) => [|l /negPf li]; last by rewrite /v' li.
  by rewrite -(prednK vi) addSn => -[].
have other l : l != i -> v l = v' l by move=> /negPf li; rewrite /v' li.
have [s1 vk'] : (v i).1 = (v' i).1 /\ (v' i).2 = (v i).2.-1 by rewrite /v' eqxx.
have st := unit_step (ltW yp') (ltW yp) tt other s1 (esym (prednK vi)) vk'.
have kn : ((v i).2.-1 < n)%N.
  by rewrite prednK // (leq_trans _ mn) // -e /size (bigD1 i) //= leq_addr.
have := le_trans st (steps_alike _ (ltW yp') (ltW yp) kn mn); rewrite (tail_best ratio_monotone y c mn).
have := IH v' size' (ltnW mn) => le' total.
rewrite -(ler_pmul2l yp') -subr_ge0.
have -> : up m y * reach D m.+1 y c - up m y * power T v
  = (up m y * reach D m.+1 y c - up m.+1 y * reach D m y c - (up m y * power T v - up m.+1 y * power T v'))
    + up m.+1 y * (reach D m y c - power T v') by ring.
by rewrite addr_ge0 ?subr_ge0 // mulr_ge0 ?subr_ge0 // ltW.
Qed.

(** The lemma: X + v is no easier to tell from X than X1 + n from X1. *)
Theorem one_component_is_the_worst c v : (size v <= n)%N ->
  hockey c (moved v) (moved still) <= hockey c (up n) (up 0).
Proof.
move=> vn; apply: hockey_bounded => S; pose T (z : {ffun I -> 'I_W}) : R := (S z)%:R.
have tt : test T by move=> z; rewrite /T; case: (S z); rewrite ?lexx ler01.
have e (F : {ffun I -> 'I_W} -> R) : \sum_(z | S z) F z = \sum_z T z * F z.
  by rewrite big_mkcond /=; apply: eq_bigr => z _; rewrite /T; case: (S z); rewrite ?mul1r ?mul0r.
rewrite !e -/(power T v) -/(power T still).
have le1 u : power T u <= 1.
  rewrite -(moved_dist u).2; apply: ler_sum => x _; rewrite -[X in _ <= X]mul1r ler_wpmul2r ?(moved_dist u).1 //.
  by case/andP: (tt x).
have q0 : 0 <= power T still.
  by apply: sumr_ge0 => x _; rewrite mulr_ge0 ?(moved_dist still).1 //; case/andP: (tt x).
have [q1|q1] := ltP (power T still) 1; last first.
  have -> : power T still = 1 by apply/eqP; rewrite eq_le le1.
  have [_ u1] := D_dist true n; have [_ u0] := D_dist true 0.
  apply: (@le_trans _ _ (1 - c)); first by rewrite mulr1 ler_add2r.
  have -> : 1 - c = \sum_x (up n x - c * up 0 x) by rewrite sumrB -mulr_sumr u1 u0 mulr1.
  by apply: ler_sum => x _; apply: le_pos.
have [y [d [d01 yp q]]] := quantile D_dist q0 q1.
have tails : test (tail y d) by move=> x; apply: tail_01.
apply: le_trans (hockey_test c (up n) (up 0) tails); rewrite -/(reach D n y d) -/(reach D 0 y d) q ler_add2r.
apply: le_trans (walk tt d01 yp _ vn) _; first by rewrite q.
have grow k : (size v <= k)%N -> (k <= n)%N -> reach D (size v) y d <= reach D k y d.
  elim: k => [|k IH]; first by rewrite leqn0 => /eqP ->.
  rewrite leq_eqVlt => /orP[/eqP -> //|le] kn; apply: le_trans (IH le (ltnW kn)) _; exact: (reach_mono D_dist ratio_monotone).
exact: grow.
Qed.
End Walk.
Print Assumptions one_component_is_the_worst.
