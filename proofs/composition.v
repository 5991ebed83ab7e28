(** docs/theory/composition.md: composition, mixtures, steps from one relation to another;
    and docs/theory/subset.md, "A list whose candidates all run". *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Composition.
Variable R : realFieldType.
Implicit Types (c p : R) (T U V W I : finType).

(* The hockey-stick of two measures of masses p and p' is that of their shapes. *)
Lemma hockey_scaled T p p' c (P P' : T -> R) : 0 < p ->
  hockey c (fun x => p * P x) (fun x => p' * P' x) = p * hockey (c * p' / p) P P'.
Proof.
move=> p0; rewrite /hockey mulr_sumr; apply: eq_bigr => x _; rewrite -posM ?ltW //.
by congr pos; rewrite mulrBr !mulrA [p * c]mulrC [c * p * p']mulrAC mulfK ?gt_eqF.
Qed.

Lemma scaled_dominates T U p p' c (P P' : T -> R) (Q Q' : U -> R) :
  0 <= p -> 0 <= p' -> 0 <= c -> measure Q' -> dominates P P' Q Q' ->
  hockey c (fun x => p * Q x) (fun x => p' * Q' x) <=
  hockey c (fun x => p * P x) (fun x => p' * P' x).
Proof.
move=> + p'0 c0 Q0 dom; rewrite le_eqVlt => /orP[/eqP <-|p0].
  apply: le_trans (hockey_ge0 _ _ _); apply: le_of_eq.
  by apply: big1 => x _; rewrite pos_0 // mul0r sub0r oppr_le0 !mulr_ge0.
by rewrite !hockey_scaled // ler_pmul2l // dom // divr_ge0 ?mulr_ge0 // ltW.
Qed.

(** Domination carries over to every line, of whatever signs, in the two densities. *)
Lemma any_line T U (P P' : T -> R) (Q Q' : U -> R) a b :
  dist P -> dist P' -> dist Q -> dist Q' -> dominates P P' Q Q' ->
  \sum_x pos (a * Q x + b * Q' x) <= \sum_x pos (a * P x + b * P' x).
Proof.
move=> dP dP' dQ dQ' dom; have dom1 := dominates_sym dP dP' dQ dQ' dom.
have lin (X : finType) (F F' : X -> R) : dist F -> dist F' -> 0 <= a -> 0 <= b ->
    \sum_x pos (a * F x + b * F' x) = a + b.
  move=> [F0 F1] [F'0 F'1] a0 b0; rewrite -{2}(mulr1 a) -{2}(mulr1 b) -{1}F1 -F'1 !mulr_sumr -big_split.
  by apply: eq_bigr => x _; rewrite pos_id // addr_ge0 // mulr_ge0.
case: (lerP 0 a) => a0; case: (lerP 0 b) => b0.
- by rewrite !lin.
- have nb : 0 <= - b by rewrite oppr_ge0 ltW.
  have := scaled_dominates a0 nb (@ler01 R) dQ'.1 dom; rewrite /hockey.
  by under eq_bigr do rewrite mul1r mulNr opprK; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr opprK.
- have na : 0 <= - a by rewrite oppr_ge0 ltW.
  have := scaled_dominates b0 na (@ler01 R) dQ.1 dom1; rewrite /hockey.
  by under eq_bigr do rewrite mul1r mulNr opprK addrC; under [X in _ <= X]eq_bigr do rewrite mul1r mulNr opprK addrC.
- apply: le_trans (sumr_ge0 _ (fun _ _ => pos_ge0 _)); apply/le_of_eq/big1 => x _; rewrite pos_0 //.
  by rewrite -oppr_ge0 opprD -!mulNr addr_ge0 // mulr_ge0 ?oppr_ge0 ?(ltW a0) ?(ltW b0) ?(dQ.1 x) ?(dQ'.1 x).
Qed.

(** "Composition". The first mechanism gives x by P (on one data set) or P' (on the other one); the
    second sees x and gives u by K x or K' x. (A, A') dominates the first, and (B, B') the second
    for every x. Then the product of both pairs dominates the release of both results. *)
Theorem composition T U V W (P P' : T -> R) (K K' : T -> U -> R) (A A' : V -> R) (B B' : W -> R) :
  measure P -> measure P' -> (forall x, measure (K' x)) -> measure B -> measure B' ->
  dominates A A' P P' -> (forall x, dominates B B' (K x) (K' x)) ->
  dominates (product A B) (product A' B') (both P K) (both P' K').
Proof.
move=> P0 P'0 K0 B0 B'0 domA domB c c0; rewrite /hockey !sum_pair.
apply: (@le_trans _ _ (\sum_x \sum_y pos (P x * B y - c * (P' x * B' y)))).
  by apply: ler_sum => x _; exact: (scaled_dominates (P0 x) (P'0 x) c0 (K0 x) (domB x)).
rewrite exchange_big [X in _ <= X]exchange_big; apply: ler_sum => y _ /=.
apply: (@le_trans _ _ (hockey c (fun x => B y * P x) (fun x => B' y * P' x))).
  by apply/le_of_eq/eq_bigr => x _; rewrite ![_ * P _]mulrC ![_ * P' _]mulrC.
apply: le_trans (scaled_dominates (B0 y) (B'0 y) c0 P'0 domA) _.
by apply/le_of_eq/eq_bigr => x _; rewrite /product /= ![B _ * _]mulrC ![B' _ * _]mulrC.
Qed.

(** "From one relation to another": P to S, then S to Q. *)
Theorem two_steps T c1 c2 (P S Q : T -> R) : 0 <= c1 ->
  hockey (c1 * c2) P Q <= hockey c1 P S + c1 * hockey c2 S Q.
Proof.
move=> c0; rewrite mulr_sumr -big_split /=; apply: ler_sum => x _; rewrite -posM //.
have -> : P x - c1 * c2 * Q x = (P x - c1 * S x) + c1 * (S x - c2 * Q x) by ring.
exact: posD.
Qed.

(** A replaced record is a record blanked and another one put in its place. *)
Definition replaced (X : Type) (removed : X -> X -> Prop) x x' :=
  exists2 z, removed x z & removed x' z.

Theorem replaced_private (X : Type) T (removed : X -> X -> Prop) (M : X -> T -> R) c1 c2 d1 d2 :
  0 <= c1 -> private removed M c1 d1 -> private (fun z x => removed x z) M c2 d2 ->
  private (replaced removed) M (c1 * c2) (d1 + c1 * d2).
Proof.
move=> c0 h1 h2 x x' [z xz x'z]; apply: le_trans (two_steps _ _ (M z) _ c0) _.
by rewrite ler_add ?h1 // ler_wpmul2l // h2.
Qed.

(** "From one record to one person": a chain of m neighbours, all steps at eps/m. *)
Theorem group T c d m (P : nat -> T -> R) : 0 <= c ->
  (forall i, (i < m)%N -> hockey c (P i) (P i.+1) <= d) ->
  hockey (c ^+ m) (P 0%N) (P m) <= d * \sum_(i < m) c ^+ i.
Proof.
move=> c0; elim: m => [|m ih] h.
  by rewrite big_ord0 mulr0 expr0 /hockey big1 // => x _; rewrite mul1r subrr pos_id.
rewrite exprSr big_ord_recr /= mulrDr.
apply: le_trans (two_steps c _ (P m) _ (exprn_ge0 m c0)) _; apply: ler_add.
  by apply: ih => i im; rewrite h // ltnW.
by rewrite mulrC ler_wpmul2r ?exprn_ge0 // h.
Qed.

(** subset.md, "A list whose candidates all run": m different runs, each once, all released (what is
    released of them by their scores is post-processing). The m-fold product of pairs dominates. *)
Definition all_runs T m (Q : 'I_m -> T -> R) : m.-tuple T -> R := fun t => \prod_i Q i (tnth t i).

Lemma sum_cons T m (F : m.+1.-tuple T -> R) :
  \sum_t F t = \sum_x \sum_(t : m.-tuple T) F [tuple of x :: t].
Proof.
rewrite pair_bigA (reindex (fun z : T * m.-tuple T => [tuple of z.1 :: z.2])) //=.
exists (fun t => (thead t, [tuple of behead t])) => [[x t] _|t _] /=.
  by rewrite theadE; congr pair; apply: val_inj.
by rewrite -tuple_eta.
Qed.

Lemma all_runs_cons T m (Q : 'I_m.+1 -> T -> R) x (t : m.-tuple T) :
  all_runs Q [tuple of x :: t] = Q ord0 x * all_runs (fun i => Q (lift ord0 i)) t.
Proof.
rewrite /all_runs big_ord_recl (tnth_nth x) /=; congr (_ * _); apply: eq_bigr => i _.
by rewrite !(tnth_nth x).
Qed.

Lemma all_runs_ge0 T m (Q : 'I_m -> T -> R) : (forall i, measure (Q i)) -> measure (all_runs Q).
Proof. by move=> Q0 t; apply: prodr_ge0 => i _; exact: Q0. Qed.

Theorem each_once T U m (Q Q' : 'I_m -> T -> R) (P P' : 'I_m -> U -> R) :
  (forall i, measure (Q i) /\ measure (Q' i)) -> (forall i, measure (P i) /\ measure (P' i)) ->
  (forall i, dominates (P i) (P' i) (Q i) (Q' i)) ->
  dominates (all_runs P) (all_runs P') (all_runs Q) (all_runs Q').
Proof.
elim: m Q Q' P P' => [|m ih] Q Q' P P' Q0 P0 dom c c0.
  have e (V : finType) (F : 0.-tuple V -> R) : \sum_t F t = F [tuple].
    by rewrite (bigD1 [tuple]) //= big1 ?addr0 // => t /eqP[]; exact: tuple0.
  by rewrite /hockey !e /all_runs !big_ord0.
have split (V : finType) (F F' : 'I_m.+1 -> V -> R) : hockey c (all_runs F) (all_runs F') =
    hockey c (product (F ord0) (all_runs (fun i => F (lift ord0 i))))
             (product (F' ord0) (all_runs (fun i => F' (lift ord0 i)))).
  rewrite /hockey sum_cons sum_pair; apply: eq_bigr => x _; apply: eq_bigr => t _.
  by rewrite !all_runs_cons.
rewrite !split; apply: (composition (K := fun=> _) (K' := fun=> _)) c0 => //.
- exact: (Q0 _).1.
- exact: (Q0 _).2.
- by move=> _; apply: all_runs_ge0 => i; exact: (Q0 _).2.
- by apply: all_runs_ge0 => i; exact: (P0 _).1.
- by apply: all_runs_ge0 => i; exact: (P0 _).2.
- by move=> _; apply: ih.
Qed.

End Composition.

Print Assumptions composition.
Print Assumptions two_steps.
Print Assumptions replaced_private.
Print Assumptions group.
Print Assumptions each_once.
