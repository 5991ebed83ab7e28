(** persons.md, "One record of a person": by how much does one record move a clipped person's sum?

    Exact arithmetic: by no more than the record adds, since clipping is the projection onto a ball
    ([clipping_moves_no_farther]). With entries truncated to whole numbers: by at most the root of the number of
    entries more ([one_record_of_a_person]). Without this allowance it is false (persons_counterexample.v). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import bounded_sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section One_record.
Variables (R : realFieldType) (I : finType) (B : R).
Hypothesis B_ge0 : 0 <= B.
Implicit Types V W z w : I -> R.

(** s is the factor of V: 1 in the ball |V|^2 <= B, and root(B)/|V| outside. *)
Definition factor V s := 0 <= s /\ (sq V <= B /\ s = 1 \/ B < sq V /\ s ^+ 2 * sq V = B).

Lemma factor_le V s : factor V s -> sq (fun i => s * V i) <= B.
Proof.
have e : sq (fun i => s * V i) = s ^+ 2 * sq V by rewrite /sq mulr_sumr; apply: eq_bigr => i _; rewrite exprMn.
by rewrite e; case=> _ [[VB ->]|[_ <-]] //; rewrite expr1n mul1r.
Qed.

(** The clipped vector is the nearest point of the ball: <V - sV, z - sV> <= 0 for z in the ball. *)
Lemma nearest V s z : factor V s -> sq z <= B ->
  dot (fun i => V i - s * V i) (fun i => z i - s * V i) <= 0.
Proof.
have -> : dot (fun i => V i - s * V i) (fun i => z i - s * V i) = (1 - s) * (dot V z - s * sq V).
  by rewrite /dot /sq mulr_sumr -sumrB mulr_sumr; apply: eq_bigr => i _; ring.
case=> s0 [[_ ->] _|[VB sV] zB]; first by rewrite subrr mul0r.
have V0 : 0 < sq V by apply: le_lt_trans VB.
have s1 : s <= 1.
  by rewrite -(expr_le1 (n := 2)) // -(ler_pmul2r V0) mul1r sV ltW.
rewrite mulr_ge0_le0 ?subr_ge0 // subr_le0.
apply: (@le_trans _ _ `|dot V z|); first exact: ler_norm.
rewrite -ler_sqr ?nnegrE ?mulr_ge0 ?normr_ge0 ?(ltW V0) // real_normK ?num_real //.
apply: le_trans (cauchy V z) _; have -> : (s * sq V) ^+ 2 = sq V * (s ^+ 2 * sq V) by ring.
by rewrite sV ler_pmul2l.
Qed.

(** Clipped vectors are no farther apart than the vectors are. *)
Theorem clipping_moves_no_farther V W s t : factor V s -> factor W t ->
  sq (fun i => s * V i - t * W i) <= sq (fun i => V i - W i).
Proof.
move=> fV fW; have hV := nearest fV (factor_le fW); have hW := nearest fW (factor_le fV).
pose d i := s * V i - t * W i; pose e i := V i - W i.
have h : sq d <= dot e d.
  rewrite -subr_ge0; have -> : dot e d - sq d = - (dot (fun i => V i - s * V i) (fun i => t * W i - s * V i)
      + dot (fun i => W i - t * W i) (fun i => s * V i - t * W i)).
    by rewrite /dot /sq /d /e -!(sumrB, big_split) -sumrN /=; apply: eq_bigr => i _; ring.
  by rewrite oppr_ge0 ler_naddl.
rewrite -subr_ge0 -[sq (fun i => V i - W i)]/(sq e) -[X in _ - X]/(sq d).
have -> : sq e - sq d = sq (fun i => e i - d i) + 2%:R * (dot e d - sq d) by rewrite (sq_sub e d); ring.
by rewrite addr_ge0 ?sq_ge0 // mulr_ge0 ?ler0n // subr_ge0.
Qed.

(** t is a, or a truncated towards zero to a whole number. *)
Definition truncated (a t : R) :=
  [/\ 0 <= a -> 0 <= t <= a, a <= 0 -> a <= t <= 0 & `|a - t| <= 1].

Lemma truncated_apart a a' t t' : truncated a t -> truncated a' t' -> `|t - t'| <= `|a - a'| + 1.
Proof.
have below (u v : R) : `|u - v| <= 1 -> v <= u + 1 /\ u <= v + 1.
  rewrite ler_norml ler_subl_addr [1 + v]addrC => /andP[le ->]; split=> //.
  by rewrite -ler_subl_addl -ler_opp2 opprB.
have one (x x' y y' : R) : truncated x y -> truncated x' y' -> y - y' <= `|x - x'| + 1.
  move=> [up down /below[yx xy]] [up' down' /below[yx' xy']].
  have [|le] : (y - y' <= x - x' + 1) \/ (y - y' <= 0); last first.
  - by apply: le_trans le _; rewrite addr_ge0.
  - by move=> le; apply: le_trans le _; rewrite ler_add2r ler_norm.
  have [/up /andP[_ le]|/ltW/down /andP[_ y0]] := lerP 0 x.
    left; have -> : x - x' + 1 = x - (x' - 1) by ring.
    by rewrite ler_sub // ler_subl_addr.
  have [/up' /andP[le _]|/ltW/down' /andP[le _]] := lerP 0 x'; [right | left].
    by rewrite subr_le0 (le_trans y0).
  have -> : x - x' + 1 = x + 1 - x' by ring.
  exact: ler_sub.
move=> T T'; rewrite ler_norml ler_oppl opprB; apply/andP; split; last exact: one.
by rewrite distrC; apply: one.
Qed.

(** t is computed from a with an error of at most eta, and then truncated. *)
Definition rounded (eta a t : R) := exists2 b, `|b - a| <= eta & truncated b t.

Lemma rounded_apart eta a a' t t' : rounded eta a t -> rounded eta a' t' ->
  `|t - t'| <= `|a - a'| + (1 + 2%:R * eta).
Proof.
move=> [b ba bt] [b' ba' bt']; apply: le_trans (truncated_apart bt bt') _.
have -> : b - b' = (b - a) + ((a - a') + (a' - b')) by ring.
have -> : `|a - a'| + (1 + 2%:R * eta) = eta + (`|a - a'| + eta) + 1 by ring.
rewrite ler_add2r; apply: le_trans (ler_norm_add _ _) _; rewrite ler_add //.
by apply: le_trans (ler_norm_add _ _) _; rewrite ler_add2l distrC.
Qed.

(** What the library adds for a person: V as it is in the ball, and else V scaled and truncated; and 0 where
    that should be too long. *)
Definition person_adds eta V w := sq w <= B /\
  (w =1 (fun=> 0) \/ exists2 s, factor V s & forall i, rounded eta (s * V i) (w i)).

(** V: the sum of a person's records; g: what one record more adds to it, of norm at most r; n^2 is at least the
    number of entries, each counted (1 + 2 eta)^2. With r^2 = B: at most n farther than the root of B. With r + n =
    the root of B, which asks a little less of each record: no farther than the root of B. *)
Theorem one_record_of_a_person eta V g w w' r n : 0 <= r -> 0 <= n -> B <= (r + n) ^+ 2 -> 0 <= eta ->
  #|I|%:R * (1 + 2%:R * eta) ^+ 2 <= n ^+ 2 -> sq g <= r ^+ 2 ->
  person_adds eta V w -> person_adds eta (fun i => V i + g i) w' ->
  sq (fun i => w' i - w i) <= (r + n) ^+ 2.
Proof.
move=> r0 n0 Br eta0 Nn gr [wB Vw] [wB' Vw']; pose u := 1 + 2%:R * eta.
have one : sq (fun _ : I => u) = #|I|%:R * u ^+ 2 by rewrite /sq sumr_const mulr_natl.
case: Vw => [zero|[s f tr]].
  by rewrite (eq_sq (v := w')) ?(le_trans wB') // => i; rewrite zero subr0.
case: Vw' => [zero|[s' f' tr']].
  by apply: le_trans Br; apply: le_trans wB; apply: ler_sum => i _; rewrite zero sub0r sqrrN.
pose d i := `|s' * (V i + g i) - s * V i|.
have dr : sq d <= r ^+ 2.
  have -> : sq d = sq (fun i => s' * (V i + g i) - s * V i).
    by apply: eq_bigr => i _; rewrite real_normK ?num_real.
  apply: le_trans (clipping_moves_no_farther f' f) _; rewrite (eq_sq (v := g)) // => i.
  by rewrite addrC addKr.
have u0 : 0 <= u by rewrite addr_ge0 ?mulr_ge0 ?ler01 ?ler0n.
have sum_d : dot d (fun=> u) <= r * n.
  rewrite -ler_sqr ?nnegrE ?mulr_ge0 //; last by apply: sumr_ge0 => i _; rewrite mulr_ge0 ?normr_ge0.
  by apply: le_trans (cauchy _ _) _; rewrite one exprMn ler_pmul ?sq_ge0 // mulr_ge0 ?ler0n ?sqr_ge0.
apply: (@le_trans _ _ (sq (fun i => 1 * d i + 1 * u))).
  apply: ler_sum => i _; rewrite !mul1r -real_normK ?num_real //.
  rewrite ler_sqr ?nnegrE ?(addr_ge0 _ u0) ?normr_ge0 //; exact: rounded_apart (tr' i) (tr i).
rewrite sq_linear one; have -> : (r + n) ^+ 2 = r ^+ 2 + 2%:R * (r * n) + n ^+ 2 by ring.
by rewrite !expr1n !mulr1 !mul1r !ler_add // ler_wpmul2l ?ler0n.
Qed.
End One_record.
Print Assumptions clipping_moves_no_farther.
Print Assumptions one_record_of_a_person.
