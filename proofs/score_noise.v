(** score_noise.md, "What one record does" and "R^2": by how much one record moves the whole numbers of a score.

    W is the resolution (R on the page). Of a record: x, the level of a value, in 0..W; e, that of the squared
    error; t, that of the target, in -W..W; and q t = round(t^2/W). *)
From Coq Require Import ZArith Lia Psatz.
Local Open Scope Z_scope.

Section Score.
Variable W : Z.
Hypothesis W_pos : 1 <= W.
Definition level x := 0 <= x <= W.
Definition target t := - W <= t <= W.
Definition q t := (2 * (t * t) + W) / (2 * W).
Definition middle := W / 2.
Definition h := W - middle.

(** Means: replaced, x; blanked, 2x - W. *)
Theorem mean_moves x x' : level x -> level x' -> Z.abs (x - x') <= W /\ Z.abs (2 * x - W) <= W.
Proof. unfold level; lia. Qed.

Lemma q_bounds t : 2 * (t * t) - W < 2 * (W * q t) <= 2 * (t * t) + W.
Proof.
  unfold q; pose proof (Z.mul_div_le (2 * (t * t) + W) (2 * W)).
  pose proof (Z.mul_succ_div_gt (2 * (t * t) + W) (2 * W)); lia.
Qed.

Lemma square_le a b : Z.abs a <= b -> a * a <= b * b.
Proof. intros le; rewrite <- (Z.abs_square a); apply Z.square_le_mono_nonneg; lia. Qed.

Lemma q_level t : target t -> level (q t).
Proof.
  intros ht; pose proof (q_bounds t) as hq; assert (0 <= t * t) by apply Z.square_nonneg.
  assert (t * t <= W * W) by (apply square_le; unfold target in ht; lia).
  split; nia.
Qed.

(** d and s: the distance and the sum of two targets. "x_q moves by at most d s/W + 1", and less. *)
Lemma q_moves t t' : W * (q t - q t') <= (t - t') * (t + t') + W - 1.
Proof.
  pose proof (q_bounds t); pose proof (q_bounds t').
  replace ((t - t') * (t + t')) with (t * t - t' * t') by ring; lia.
Qed.

(** Blanked. *)
Theorem blanked e t : level e -> target t ->
  Z.abs (e - middle) + Z.abs t + Z.abs (q t - middle) <= 2 * h + W /\
  (e - middle) * (e - middle) + t * t + (q t - middle) * (q t - middle) <= 2 * (h * h) + W * W.
Proof.
  intros he ht; pose proof (q_level t ht) as hq; unfold level, target in *.
  assert (2 * middle <= W < 2 * middle + 2)
    by (unfold middle; pose proof (Z.mul_div_le W 2); pose proof (Z.mul_succ_div_gt W 2); lia).
  unfold h; split; [lia|].
  pose proof (square_le (e - middle) (W - middle)); pose proof (square_le t W).
  pose proof (square_le (q t - middle) (W - middle)); lia.
Qed.

(** Changed: d and D are the distances of the targets and of their squares, s <= 2W - d. *)
Lemma absolute d s D : 0 <= d -> 0 <= s -> d + s <= 2 * W -> W * D <= d * s + W - 1 ->
  d + D <= 9 * W / 4 + 1.
Proof.
  intros d0 s0 sum m; enough (d + D - 1 <= 9 * W / 4) by lia.
  apply Z.div_le_lower_bound; [lia|].
  assert (d * s <= d * (2 * W - d)) by (apply Z.mul_le_mono_nonneg_l; lia).
  pose proof (Z.square_nonneg (3 * W - 2 * d)).
  assert (W * (4 * (d + D) - 4) <= W * (9 * W)) by lia.
  apply Z.mul_le_mono_pos_l with (p := W); lia.
Qed.

Lemma squared d s D : 0 <= d -> 0 <= s -> d + s <= 2 * W -> 0 <= D <= W -> W * D <= d * s + W - 1 ->
  (s = 0 -> D = 0) -> d * d + D * D <= 4 * (W * W).
Proof.
  intros d0 s0 sum D01 m zero; destruct (Z.eq_dec s 0) as [e|ne].
    rewrite (zero e); pose proof (square_le d (2 * W)); lia.
  set (k := 2 * W - d); assert (dk : d = 2 * W - k) by (unfold k; lia).
  assert (d * s <= d * k) by (apply Z.mul_le_mono_nonneg_l; lia).
  assert (D <= 2 * k).
    enough (W * D < W * (2 * k + 1)) by (apply Z.mul_lt_mono_pos_l in H0; lia).
    pose proof (Z.square_nonneg k); rewrite dk in *; lia.
  pose proof (square_le D W); pose proof (square_le D (2 * k)).
  destruct (Z_le_gt_dec (5 * k) (4 * W)).
    assert (k * (5 * k) <= k * (4 * W)) by (apply Z.mul_le_mono_nonneg_l; lia).
    rewrite dk; lia.
  pose proof (square_le (5 * d) (6 * W)); lia.
Qed.

Lemma ordered t t' : target t -> target t' -> Z.abs t' <= Z.abs t ->
  Z.abs (t - t') + Z.abs (q t - q t') <= 9 * W / 4 + 1 /\
  (t - t') * (t - t') + (q t - q t') * (q t - q t') <= 4 * (W * W).
Proof.
  intros ht ht' le; pose proof (q_level t ht) as l; pose proof (q_level t' ht') as l'.
  pose proof (q_moves t t') as m; unfold target, level in *.
  assert (sq : t' * t' <= t * t) by (rewrite <- (Z.abs_square t); apply square_le; exact le).
  assert (mono : q t' <= q t) by (apply Z.div_le_mono; lia).
  assert (ds : (t - t') * (t + t') = Z.abs (t - t') * Z.abs (t + t')).
    rewrite <- Z.abs_mul; replace ((t - t') * (t + t')) with (t * t - t' * t') by ring; lia.
  rewrite ds in m; rewrite (Z.abs_eq (q t - q t')) by lia; rewrite <- (Z.abs_square (t - t')).
  split; [apply absolute with (s := Z.abs (t + t')) | apply squared with (s := Z.abs (t + t'))]; try lia.
  intros z; assert (e : t' = - t) by lia; rewrite e; unfold q.
  replace (- t * - t) with (t * t) by ring; lia.
Qed.

(** Changed: l1 and l2^2. *)
Theorem changed e e' t t' : level e -> level e' -> target t -> target t' ->
  Z.abs (e - e') + Z.abs (t - t') + Z.abs (q t - q t') <= W + 9 * W / 4 + 1 /\
  (e - e') * (e - e') + (t - t') * (t - t') + (q t - q t') * (q t - q t') <= 5 * (W * W).
Proof.
  intros he he' ht ht'; pose proof (square_le (e - e') W) as ee; unfold level in he, he'.
  destruct (Z_le_gt_dec (Z.abs t') (Z.abs t)) as [le|gt].
    pose proof (ordered t t' ht ht' le); lia.
  pose proof (ordered t' t ht' ht ltac:(lia)) as o.
  replace ((t - t') * (t - t')) with ((t' - t) * (t' - t)) by ring.
  replace ((q t - q t') * (q t - q t')) with ((q t' - q t) * (q t' - q t)) by ring; lia.
Qed.
End Score.
Print Assumptions mean_moves.
Print Assumptions blanked.
Print Assumptions changed.
