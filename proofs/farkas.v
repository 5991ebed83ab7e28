(** Farkas' lemma over an ordered field, by elimination of variables: finitely many linear inequalities
    have a solution, or a combination of them with weights >= 0 says 0 <= -1. Used for Blackwell's
    theorem (blackwell.v). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Farkas.
Variables (R : realFieldType) (V : finType).
Local Notation form := ({ffun V -> R} * R)%type. (* sum_v a v x v + b >= 0 *)
Implicit Types (d e : form) (x : {ffun V -> R}).

Definition at_point d x := \sum_v d.1 v * x v + d.2.
Definition combine (k l : R) d e : form := ([ffun v => k * d.1 v + l * e.1 v], k * d.2 + l * e.2).

Lemma at_combine k l d e x : at_point (combine k l d e) x = k * at_point d x + l * at_point e x.
Proof.
rewrite /at_point !mulrDr !mulr_sumr addrACA -big_split /=; congr (_ + _).
by apply: eq_bigr => v _; rewrite ffunE; ring.
Qed.

(** Combinations with weights >= 0. *)
Inductive cone (ds : seq form) : form -> Prop :=
| Cone_in d : d \in ds -> cone ds d
| Cone_combine k l d e : 0 <= k -> 0 <= l -> cone ds d -> cone ds e -> cone ds (combine k l d e).

Lemma between (ls us : seq R) : {in ls & us, forall l u, l <= u} ->
  exists w, {in ls, forall l, l <= w} /\ {in us, forall u, w <= u}.
Proof.
elim: ls => [|l ls ih] h.
  elim: us {h} => [|u us [w [_ wu]]]; first by exists 0.
  exists (Num.min u w); split=> // z; rewrite inE le_minl => /orP[/eqP ->|/wu ->]; by rewrite ?lexx ?orbT.
case: ih => [a b ain bin|w [lw wu]]; first by apply: h; rewrite // inE ain orbT.
exists (Num.max l w); split=> z.
  by rewrite inE le_maxr => /orP[/eqP ->|/lw ->]; rewrite ?lexx ?orbT.
by move=> zin; rewrite le_maxl wu // h // inE eqxx.
Qed.

(* Variable v from x on to w. *)
Definition set_var x v w : {ffun V -> R} := [ffun u => if u == v then w else x u].

Lemma at_set d x v w : at_point d (set_var x v w) = d.1 v * w + at_point d (set_var x v 0).
Proof.
rewrite /at_point (bigD1 v) //= [in RHS](bigD1 v) //= !ffunE eqxx mulr0 add0r -addrA; congr (_ + (_ + _)).
by apply: eq_bigr => u /negbTE uv; rewrite !ffunE uv.
Qed.

Lemma at_unused d x v w : d.1 v = 0 -> at_point d (set_var x v w) = at_point d x.
Proof.
move=> d0; congr (_ + _); apply: eq_bigr => u _; rewrite ffunE; case: eqP => // ->.
by rewrite d0 !mul0r.
Qed.

Theorem farkas (vs : seq V) (ds : seq form) : (forall d v, d \in ds -> v \notin vs -> d.1 v = 0) ->
  (exists x, {in ds, forall d, 0 <= at_point d x}) \/
  (exists d, [/\ cone ds d, forall v, d.1 v = 0 & d.2 < 0]).
Proof.
elim: vs ds => [|v vs ih] ds used.
  case: (boolP (all (fun d => 0 <= d.2) ds)) => [/allP h|/allPn[d dd neg]]; [left | right].
    exists [ffun=> 0] => d dd; rewrite /at_point big1 ?add0r ?h // => v _; by rewrite ffunE mulr0.
  by exists d; split; [exact: Cone_in | move=> v; exact: used | rewrite ltNge].
pose ps := [seq d : form <- ds | 0 < d.1 v]; pose ns := [seq d : form <- ds | d.1 v < 0].
pose zs := [seq d : form <- ds | d.1 v == 0].
pose es := zs ++ [seq combine (- (e : form).1 v) ((d : form).1 v) d e | d <- ps, e <- ns].
have v_ps d : d \in ps -> d \in ds /\ 0 < d.1 v by rewrite mem_filter => /andP[].
have v_ns d : d \in ns -> d \in ds /\ d.1 v < 0 by rewrite mem_filter => /andP[].
have es_in d : d \in es -> (d \in ds /\ d.1 v = 0) \/
    exists p e, [/\ p \in ps, e \in ns & d = combine (- e.1 v) (p.1 v) p e].
  rewrite mem_cat => /orP[|/allpairsP[[p e] [pin ein ->]]]; last by right; exists p, e.
  by rewrite mem_filter => /andP[/eqP]; left.
case: (ih es) => [d u /es_in [[din d0]|[p [e [/v_ps[pin _] /v_ns[ein _] ->]]]] uvs|[x xs]|[d [cd d0 dn]]].
- by case: (eqVneq u v) => [-> //|uv]; apply: used; rewrite // inE negb_or uv.
- rewrite /= ffunE; case: (eqVneq u v) => [->|uv]; first by ring.
  by rewrite !(used _ u) // ?inE ?negb_or ?uv //; ring.
- left; pose low p := - at_point p (set_var x v 0) / p.1 v.
  case: (@between [seq low p | p <- ps] [seq low e | e <- ns]) => [l u /mapP[p pin ->] /mapP[e ein ->]|w [lw wu]].
    have [[_ p0] [_ e0]] := (v_ps p pin, v_ns e ein).
    have : combine (- e.1 v) (p.1 v) p e \in es.
      by rewrite mem_cat; apply/orP; right; apply/allpairsP; exists (p, e).
    have cv : (combine (- e.1 v) (p.1 v) p e).1 v = 0 by rewrite /= ffunE; ring.
    move/xs; rewrite -(at_unused x 0 cv) at_combine => h.
    move: h; rewrite /low; move: (at_point p _) (at_point e _) (p.1 v) (e.1 v) p0 e0 => a b k l1 k0 l0 h.
    rewrite ler_pdivr_mulr // mulrAC ler_ndivl_mulr // -subr_ge0; apply: le_trans h _.
    by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
  exists (set_var x v w) => d din; case: (ltrgt0P (d.1 v)) => dv.
  + have dp : d \in ps by rewrite mem_filter dv.
    rewrite (at_set d x v w) mulrC -ler_subl_addr sub0r -ler_pdivr_mulr //.
    exact: lw (low d) (map_f _ dp).
  + have dn : d \in ns by rewrite mem_filter dv.
    rewrite (at_set d x v w) mulrC -ler_subl_addr sub0r -ler_ndivl_mulr //.
    exact: wu (low d) (map_f _ dn).
  + rewrite (at_unused _ _ dv); apply: xs; rewrite mem_cat mem_filter dv eqxx din //.
- right; exists d; split=> //; elim: cd => [e ein|k l e e1 k0 l0 _ c1 _ c2]; last exact: Cone_combine.
  case: (es_in _ ein) => [[eds _]|[p [n [/v_ps[pin p0] /v_ns[nin n0] ->]]]]; first exact: Cone_in.
  by apply: Cone_combine; [rewrite oppr_ge0 ltW | rewrite ltW | exact: Cone_in | exact: Cone_in].
Qed.
End Farkas.

Print Assumptions farkas.
