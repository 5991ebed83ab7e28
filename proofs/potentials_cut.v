(** docs/theory/potentials.md, proof of Theorem 5: "W changes along the path by the integral of
    W_q dq + W_q' dq'", where W is linear on each of finitely many convex cells. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Cells.
Variable R : realFieldType.
Implicit Types (q a b u v : R).

(** A half-plane (a, b, d) is a q + b q' + d >= 0; a cell is a polygon, finitely many of them, with a
    linear function (d, a, b), d + a q + b q', whose slopes are W_q = a and W_q' = b. *)
Local Notation plane := (R * R * R)%type.
Definition value (l : plane) q q' := l.1.1 * q + l.1.2 * q' + l.2.
Local Notation cell := (seq plane * plane)%type.
Definition sides (k : cell) := k.1.
Definition linear (k : cell) := k.2.
Definition inside (k : cell) q q' := all (fun l => 0 <= value l q q') (sides k).
Definition Wq (k : cell) := (linear k).1.1.
Definition Wq' (k : cell) := (linear k).1.2.

(** W is linear on every cell; on a common side of two cells both agree. *)
Definition piecewise_linear (cells : seq cell) (W : R -> R -> R) :=
  {in cells, forall k q q', inside k q q' -> W q q' = value (linear k) q q'}.

Section Segment. (* The segment from (a, a') in the direction (b, b'). *)
Variables (a b a' b' : R).
Let along (l : plane) u := value l (a + u * b) (a' + u * b').
Definition one_sided l u v := (forall w, u <= w <= v -> 0 <= along l w) \/
                              (forall w, u <= w <= v -> along l w <= 0).

Lemma along_mid l u w v : (v - u) * along l w = (v - w) * along l u + (w - u) * along l v.
Proof. by rewrite /along /value; ring. Qed.

Lemma ends_ge0 l u v : u < v -> 0 <= along l u -> 0 <= along l v -> forall w, u <= w <= v -> 0 <= along l w.
Proof.
move=> uv lu lv w /andP[uw wv]; have d : 0 < v - u by rewrite subr_gt0.
by rewrite -(pmulr_rge0 _ d) along_mid addr_ge0 // mulr_ge0 // subr_ge0.
Qed.

Lemma ends_le0 l u v : u < v -> along l u <= 0 -> along l v <= 0 -> forall w, u <= w <= v -> along l w <= 0.
Proof.
move=> uv lu lv w /andP[uw wv]; have d : 0 < v - u by rewrite subr_gt0.
rewrite -(pmulr_rle0 _ d) along_mid -oppr_ge0 opprD -!mulrN.
by rewrite addr_ge0 // mulr_ge0 // ?subr_ge0 // oppr_ge0.
Qed.

(* A line that changes sign has a zero between. *)
Lemma zero_between l u v : u < v -> 0 < along l u -> along l v < 0 -> exists2 w, u < w < v & along l w = 0.
Proof.
move=> uv lu lv; pose w := u + (v - u) * (along l u / (along l u - along l v)).
have g : 0 < along l u - along l v by rewrite subr_gt0 (lt_trans lv).
have d : 0 < v - u by rewrite subr_gt0.
have wE : (w - u) * (along l u - along l v) = (v - u) * along l u.
  by rewrite /w addrC addKr mulrA divfK // gt_eqF.
have uw : u < w by rewrite /w ltr_addl mulr_gt0 // divr_gt0.
exists w; first rewrite uw /= -subr_gt0 -(pmulr_lgt0 _ g).
  have -> : (v - w) * (along l u - along l v) = (v - u) * (along l u - along l v) - (w - u) * (along l u - along l v).
    by ring.
  rewrite wE; have -> : (v - u) * (along l u - along l v) - (v - u) * along l u = (v - u) * - along l v by ring.
  by rewrite mulr_gt0 // oppr_gt0.
apply/eqP; have := along_mid l u w v; have -> : (v - w) * along l u + (w - u) * along l v =
  (v - u) * along l u - (w - u) * (along l u - along l v) by ring.
by rewrite wE subrr => /eqP; rewrite mulf_eq0 gt_eqF.
Qed.

Lemma cut_line l u v : u < v -> one_sided l u v \/
  exists2 w, u < w < v & one_sided l u w /\ one_sided l w v.
Proof.
move=> uv; have minus w : along (- l.1.1, - l.1.2, - l.2) w = - along l w by rewrite /along /value /=; ring.
case: (ltrgt0P (along l u)) => lu; case: (ltrgt0P (along l v)) => lv; try by left; left; apply: ends_ge0;
  rewrite ?lu ?lv // ltW.
- have [w /andP[uw wv] z] := zero_between uv lu lv; right; exists w; first by rewrite uw.
  by split; [left; apply: ends_ge0 | right; apply: ends_le0]; rewrite ?z // ltW.
- have [| |w /andP[uw wv]] := @zero_between (- l.1.1, - l.1.2, - l.2) u v uv; rewrite ?minus ?oppr_gt0 ?oppr_lt0 //.
  move=> /eqP; rewrite oppr_eq0 => /eqP z; right; exists w; first by rewrite uw.
  by split; [right; apply: ends_le0 | left; apply: ends_ge0]; rewrite ?z // ltW.
- by left; right; apply: ends_le0; rewrite // ltW.
- by left; right; apply: ends_le0; rewrite ?lv // ltW.
- by left; right; apply: ends_le0; rewrite ?lu // ltW.
Qed.

Lemma one_sided_sub l u v u1 v1 : u <= u1 -> v1 <= v -> one_sided l u v -> one_sided l u1 v1.
Proof.
by move=> uu vv [] h; [left | right] => w /andP[w1 w2]; apply: h; rewrite (le_trans uu) ?(le_trans w2).
Qed.

Variables (G : R -> R) (B : R).
Let goal u v := G v - G u <= B * (v - u).

Lemma cut_all (ls : seq plane) u v : u < v ->
  (forall u1 v1, u <= u1 -> u1 < v1 -> v1 <= v -> (forall l, l \in ls -> one_sided l u1 v1) -> goal u1 v1) ->
  goal u v.
Proof.
elim: ls u v => [|l ls ih] u v uv h; first exact: h.
have step u0 v0 : u <= u0 -> u0 < v0 -> v0 <= v -> one_sided l u0 v0 -> goal u0 v0.
  move=> uu uv0 vv one; apply: ih => // u1 v1 a1 a2 a3 sided.
  apply: h => //; [exact: le_trans a1 | exact: le_trans vv |].
  by move=> l1; rewrite inE => /orP[/eqP ->|]; [exact: one_sided_sub one | exact: sided].
case: (cut_line l uv) => [one|[w /andP[uw wv] [one two]]]; first exact: step.
have := ler_add (step _ _ (lexx u) uw (ltW wv) one) (step _ _ (ltW uw) wv (lexx v) two).
by move=> a0; apply: (le_by a0); ring.
Qed.

(** The segment runs through finitely many pieces, each inside one cell. *)
Theorem pieces (cells : seq cell) :
  (forall w, 0 <= w <= 1 -> exists2 k, k \in cells & inside k (a + w * b) (a' + w * b')) ->
  (forall u v k, 0 <= u -> u < v -> v <= 1 -> k \in cells ->
     (forall w, u <= w <= v -> inside k (a + w * b) (a' + w * b')) -> goal u v) ->
  G 1 - G 0 <= B.
Proof.
move=> cover piece; suff : goal 0 1 by rewrite /goal subr0 mulr1.
apply: (@cut_all (flatten [seq sides k | k <- cells])) => [|u v u0 uv v1 sided]; first exact: ltr01.
pose w := (u + v) / 2%:R; have two : 0 < 2%:R :> R by rewrite ltr0n.
have [uw wv] : u < w /\ w < v by rewrite midf_lt // [_ < v]midf_lt.
have w01 : 0 <= w <= 1 by rewrite (le_trans u0 (ltW uw)) (le_trans (ltW wv) v1).
have [k kin inw] := cover w w01.
apply: (piece u v k) => // z zuv; apply/allP => l lin.
have [] := sided l; first by apply/flattenP; exists (sides k) => //; apply/mapP; exists k.
  by move=> /(_ _ zuv).
move=> neg; have wz : along l w = 0.
  by apply/eqP; rewrite eq_le neg ?(ltW uw) ?(ltW wv) //=; exact: (allP inw).
(* a line that is never above 0 and is 0 between the ends is 0 *)
have [eu ev] : along l u = 0 /\ along l v = 0.
  have lu : along l u <= 0 by apply: neg; rewrite lexx ltW.
  have lv : along l v <= 0 by apply: neg; rewrite lexx ltW.
  have := along_mid l u w v; rewrite wz mulr0 => /eqP; rewrite eq_sym.
  have [d1 d2] : 0 < v - w /\ 0 < w - u by rewrite !subr_gt0.
  rewrite naddr_eq0 ?pmulr_rle0 // !mulf_eq0 (gt_eqF d1) (gt_eqF d2) /= => /andP[/eqP e1 /eqP e2].
  by split.
by apply: (ends_ge0 uv) zuv; rewrite ?eu ?ev.
Qed.
End Segment.
End Cells.
Print Assumptions pieces.
