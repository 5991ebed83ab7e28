(** Blackwell's theorem for two hypotheses (1953), on which Theorem 6 rests (docs/theory/prices.md, "One
    pair is enough"): if (P, P') dominates (Q, Q'), one random map makes Q out of P and Q' out of P'. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions loss_distributions farkas.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Blackwell.
Variables (R : realFieldType) (Z Y : finType) (P P' : Z -> R) (Q Q' : Y -> R).
Hypotheses (dP : dist P) (dP' : dist P') (dQ : dist Q) (dQ' : dist Q') (dom : dominates P P' Q Q').
Local Notation form := ({ffun Z * Y -> R} * R)%type.

(** What a kernel has to satisfy: K z y >= 0, sums of rows 1, and both images. *)
Definition c_ge0 (v : Z * Y) : form := ([ffun u => (u == v)%:R], 0).
Definition c_row (s : R) z : form := ([ffun u => s * (u.1 == z)%:R], - s).
Definition c_image (s : R) (F : Z -> R) (G : Y -> R) y : form :=
  ([ffun u => s * ((u.2 == y)%:R * F u.1)], - (s * G y)).
Definition constraints : seq form := [seq c_ge0 v | v <- enum [set: Z * Y]] ++
  ([seq c_row 1 z | z <- enum Z] ++ [seq c_row (-1) z | z <- enum Z]) ++
  ([seq c_image 1 P Q y | y <- enum Y] ++ [seq c_image (-1) P Q y | y <- enum Y]) ++
  ([seq c_image 1 P' Q' y | y <- enum Y] ++ [seq c_image (-1) P' Q' y | y <- enum Y]).

Lemma constraint_cases d : d \in constraints -> [\/ exists v, d = c_ge0 v, exists s z, d = c_row s z,
  exists s y, d = c_image s P Q y | exists s y, d = c_image s P' Q' y].
Proof.
rewrite !mem_cat => /or4P[/mapP[v _ ->]|/orP[]/mapP[z _ ->]|/orP[]/mapP[y _ ->]|/orP[]/mapP[y _ ->]].
- by constructor 1; exists v.
- by constructor 2; exists 1, z.
- by constructor 2; exists (-1), z.
- by constructor 3; exists 1, y.
- by constructor 3; exists (-1), y.
- by constructor 4; exists 1, y.
- by constructor 4; exists (-1), y.
Qed.

Lemma pick (I : finType) (i : I) (F : I -> R) : \sum_j (j == i)%:R * F j = F i.
Proof. by rewrite (bigD1 i) //= eqxx mul1r big1 ?addr0 // => j /negbTE ->; rewrite mul0r. Qed.

(* A combination is th + a_y P z + b_y P' z - g z in the variable K z y. *)
Lemma cone_shape d : cone constraints d -> exists th a b g,
  [/\ forall v, 0 <= th v, forall v, d.1 v = th v + a v.2 * P v.1 + b v.2 * P' v.1 - g v.1
    & d.2 = (\sum_z g z) - (\sum_y a y * Q y) - \sum_y b y * Q' y].
Proof.
have zero (I : finType) (F : I -> R) : \sum_i 0 * F i = 0 by apply: big1 => i _; rewrite mul0r.
have zero1 (I : finType) : \sum_(i : I) (0 : R) = 0 by exact: big1.
elim=> [{}d /constraint_cases[[v ->]|[s [z ->]]|[s [y ->]]|[s [y ->]]]|k l {}d e k0 l0 _ ih _ ih1].
- exists (fun u => (u == v)%:R), (fun=> 0), (fun=> 0), (fun=> 0); split=> [u|u|]; first exact: ler0n.
    by rewrite ffunE /= !mul0r !addr0 subr0.
  by rewrite !zero zero1 !subr0.
- exists (fun=> 0), (fun=> 0), (fun=> 0), (fun u => (u == z)%:R * - s); split=> // [u|].
    by rewrite ffunE /= !mul0r !addr0 add0r mulrN opprK mulrC.
  by rewrite !zero pick !subr0.
- exists (fun=> 0), (fun u => (u == y)%:R * s), (fun=> 0), (fun=> 0); split=> // [u|].
    by rewrite ffunE /=; ring.
  rewrite zero zero1 subr0 sub0r /=; congr (- _); rewrite -(pick y (fun u => s * Q u)).
  by apply: eq_bigr => u _; rewrite mulrA.
- exists (fun=> 0), (fun=> 0), (fun u => (u == y)%:R * s), (fun=> 0); split=> // [u|].
    by rewrite ffunE /=; ring.
  rewrite zero zero1 !sub0r oppr0 add0r /=; congr (- _); rewrite -(pick y (fun u => s * Q' u)).
  by apply: eq_bigr => u _; rewrite mulrA.
case: ih ih1 => th [a [b [g [t0 d1 d2]]]] [th1 [a1 [b1 [g1 [t10 e1 e2]]]]].
exists (fun v => k * th v + l * th1 v), (fun y => k * a y + l * a1 y), (fun y => k * b y + l * b1 y),
  (fun z => k * g z + l * g1 z); split=> [v|v|]; first by rewrite addr_ge0 // mulr_ge0.
  by rewrite ffunE d1 e1 /=; ring.
have lin (I : finType) (F G W : I -> R) : \sum_i (k * F i + l * G i) * W i =
    k * (\sum_i F i * W i) + l * (\sum_i G i * W i).
  by rewrite !mulr_sumr -big_split; apply: eq_bigr => i _ /=; ring.
have lin1 (I : finType) (F G : I -> R) : \sum_i (k * F i + l * G i) = k * (\sum_i F i) + l * (\sum_i G i).
  by rewrite !mulr_sumr -big_split.
rewrite !lin lin1 /= d2 e2; move: (\sum_z g z) (\sum_z g1 z) (\sum_y a y * _) (\sum_y a1 y * _)
  (\sum_y b y * _) (\sum_y b1 y * _) => s1 s2 s3 s4 s5 s6; ring.
Qed.

(* The maximum of lines is sublinear, so Lemma 0 excludes a contradiction. *)
Lemma no_contradiction d : cone constraints d -> (forall v, d.1 v = 0) -> 0 <= d.2.
Proof.
case/cone_shape => th [a [b [g [t0 d1 ->]]]] d0.
have [y0 _] : exists y0 : Y, true.
  case: (pickP (fun y : Y => true)) => [y _|none]; first by exists y.
  by case: dQ => _ /eqP; rewrite big_pred0 // eq_sym oner_eq0.
pose H x x' := \big[Num.max/a y0 * x + b y0 * x']_y (a y * x + b y * x').
have up y x x' : a y * x + b y * x' <= H x x'.
  rewrite /H; have := mem_index_enum y; elim: (index_enum Y) => [//|z s ih]; rewrite inE big_cons le_maxr.
  by case/orP => [/eqP -> | /ih ->]; rewrite ?lexx ?orbT.
have low x x' m : (forall y, a y * x + b y * x' <= m) -> H x x' <= m.
  move=> h; rewrite /H; elim/big_rec: _ => [//|y z _ zm]; by rewrite le_maxl h.
have sH : sublinear H.
  apply: (@sublinear_lub R Y (fun y x x' => a y * x + b y * x')) => [y|x x' _ _].
    by split=> *; [ring | apply: le_of_eq; ring].
  by split=> [y|m]; [exact: up | exact: low].
have := lemma0 sH dP dP' dQ dQ' dom.
have h1 : \sum_z H (P z) (P' z) <= \sum_z g z.
  apply: ler_sum => z _; apply: low => y; have := d1 (z, y); rewrite d0 /= => /eqP.
  rewrite eq_sym subr_eq0 => /eqP <-; rewrite -addrA ler_addr; exact: t0.
have h2 : \sum_y a y * Q y + \sum_y b y * Q' y <= \sum_y H (Q y) (Q' y).
  by rewrite -big_split; apply: ler_sum => y _; exact: up.
move=> h; have := le_trans h2 (le_trans h h1); rewrite -subr_ge0 => k; apply: le_trans k (le_of_eq _).
by rewrite opprD addrA.
Qed.

Theorem blackwell : exists K : Z -> Y -> R, [/\ kernel K, Q =1 post P K & Q' =1 post P' K].
Proof.
case: (@farkas R _ (enum [set: Z * Y]) constraints) => [d v _|[x sol]|[d [cd d0 neg]]]; last first.
- by have := no_contradiction cd d0; rewrite leNgt neg.
- have twice s (F : Z -> R) G y : 0 <= at_point (c_image s F G y) x -> 
      0 <= s * ((\sum_z F z * x (z, y)) - G y).
    rewrite /at_point /= mulrBr => h; apply: le_trans h (le_of_eq _); congr (_ - _).
    rewrite sum_pair mulr_sumr; apply: eq_bigr => z _.
    rewrite -(pick y (fun u => s * (F z * x (z, u)))); apply: eq_bigr => u _; rewrite ffunE /=; ring.
  have row s z : 0 <= at_point (c_row s z) x -> 0 <= s * ((\sum_y x (z, y)) - 1).
    rewrite /at_point /= mulrBr mulr1 => h; apply: le_trans h (le_of_eq _); congr (_ - _).
    rewrite sum_pair -(pick z (fun z => s * \sum_y x (z, y))); apply: eq_bigr => w _.
    by rewrite !mulr_sumr; apply: eq_bigr => u _; rewrite ffunE /=; ring.
  have both_signs r : 0 <= 1 * r -> 0 <= -1 * r -> r = 0.
    by rewrite mul1r mulN1r oppr_ge0 => h1 h2; apply/eqP; rewrite eq_le h1 h2.
  have sol_at f : (f \in constraints) -> 0 <= at_point f x by exact: sol.
  exists (fun z y => x (z, y)); split.
  + move=> z; split=> [y|].
      have := sol (c_ge0 (z, y)); rewrite /at_point /= addr0 => h.
      rewrite -(pick (z, y) x); apply: le_trans (h _) (le_of_eq _).
        by rewrite !mem_cat map_f // mem_enum inE.
      by apply: eq_bigr => u _; rewrite ffunE.
    apply/eqP; rewrite -subr_eq0; apply/eqP/both_signs; apply: row; apply: sol;
      by rewrite !mem_cat !map_f ?mem_enum ?orbT.
  + move=> y; apply/eqP; rewrite eq_sym -subr_eq0; apply/eqP/both_signs; apply: twice; apply: sol;
      by rewrite !mem_cat !(map_f (fun y => c_image _ P Q y)) ?mem_enum ?orbT.
  + move=> y; apply/eqP; rewrite eq_sym -subr_eq0; apply/eqP/both_signs; apply: twice; apply: sol;
      by rewrite !mem_cat !(map_f (fun y => c_image _ P' Q' y)) ?mem_enum ?orbT.
by rewrite mem_enum inE.
Qed.
End Blackwell.

Print Assumptions blackwell.
