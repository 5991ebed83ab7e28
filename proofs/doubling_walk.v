(** docs/theory/doubling.md, "The whole walk, purely": the worst walk that the rules allow. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.

Section Rules.
Variable n : nat. (* levels *)

(** "The walk keeps a level and a step, 0 and 1 at first. An accept adds the step to the level and doubles
    the step. A reject halves the step, rounded down. The walk ends when the step is 0, when the level is
    n, or after max_rounds." *)
Definition next (acc : bool) (ls : nat * nat) := if acc then (ls.1 + ls.2, 2 * ls.2) else (ls.1, ls.2./2).
Definition over (ls : nat * nat) := (ls.2 == 0) || (n <= ls.1).

(** m(a, r) = min(m(a-1, r) + 2^(a-1-r), m(a, r-1)), the lowest level of a walk that is not over after t
    rounds, r of them rejects (a = t - r); None if there is no such walk. *)
Definition least (x y : option nat) :=
  if x is Some i then (if y is Some j then Some (minn i j) else x) else y.
Fixpoint lowest t r : option nat :=
  if t is t'.+1 then
    if 2 * r <= t then
      let m := least (omap (addn (2 ^ (t' - 2 * r))) (lowest t' r)) (if r is r'.+1 then lowest t' r' else None) in
      if m is Some i then (if i < n then Some i else None) else None
    else None
  else if (r == 0) && (0 < n) then Some 0 else None.

Definition invariant t r (ls : nat * nat) := over ls \/
  [/\ 2 * r <= t, ls.2 = 2 ^ (t - 2 * r) & exists2 m, lowest t r = Some m & m <= ls.1].

Lemma invariant0 : invariant 0 0 (0, 1).
Proof.
rewrite /invariant /over /=; case: (posnP n) => [->|n0]; [by left | right; split=> //].
by exists 0; rewrite ?eqxx.
Qed.

Lemma least_le x y i : (x = Some i \/ y = Some i) -> exists2 j, least x y = Some j & j <= i.
Proof.
case: x y => [k|] [l|] /= [] // [<-]; eexists; by [reflexivity | rewrite ?geq_minl ?geq_minr].
Qed.

(* "The step is 2^(accepts - rejects) as long as the walk goes on. Of all walks with the same numbers of
   accepts and rejects, the one on the lowest level can be continued in every way in which another can." *)
Lemma invariant_next t r ls acc : invariant t r ls -> ~~ over ls -> invariant t.+1 (r + ~~ acc) (next acc ls).
Proof.
case=> [-> //|[rt step [m low ml]]] no; case: (boolP (over (next acc ls))) => o; first by left.
right; case: acc o => o; rewrite ?addn0 ?addn1.
- have r1 : 2 * r <= t.+1 by apply: leqW.
  split; [by [] | by rewrite /= step subSn // expnS | rewrite /= r1].
  have [|j e jl] := @least_le (omap (addn (2 ^ (t - 2 * r))) (lowest t r))
      (if r is r'.+1 then lowest t r' else None) (2 ^ (t - 2 * r) + m); first by left; rewrite low.
  rewrite e; have jle : j <= ls.1 + ls.2 by rewrite step addnC (leq_trans jl) // leq_add2l.
  move: o; rewrite /over /= negb_or -ltnNge => /andP[_ ln]; rewrite (leq_ltn_trans jle ln).
  by exists j.
- move: o; rewrite /over /= negb_or -ltnNge => /andP[half ln].
  have tr : 2 * r < t.
    rewrite ltn_neqAle rt andbT; apply: contraNneq half => e; rewrite step e subnn expn0 //.
  have r1 : 2 * r.+1 <= t.+1 by rewrite mulnS add2n ltnS.
  split; [by [] | | rewrite /= r1].
    have e : t - 2 * r = (t.+1 - 2 * r.+1).+1.
      by rewrite mulnS add2n subSS subnS prednK // subn_gt0.
    by rewrite step e expnS mul2n doubleK.
  have [|j e jl] := @least_le (omap (addn (2 ^ (t - 2 * r.+1))) (lowest t r.+1)) (lowest t r) m; first by right.
  by rewrite e (leq_ltn_trans (leq_trans jl ml) ln); exists j; rewrite // (leq_trans jl ml).
Qed.

(** Rounds and their answers, told as a list, the latest first: m more rounds from a state. [halves] is
    the cost in units of eps/2: "the pure cost is the largest a eps + r eps/2". *)
Definition half_cost (acc : bool) := if acc then 2 else 1.

(** A walk: the state and the number of rejects after a list of answers, if every round was asked of a
    walk that was not over. *)
Fixpoint walk (answers : seq bool) ls : option (nat * nat) :=
  if answers is a :: s then if over ls then None else walk s (next a ls) else Some ls.

Definition worst_halves max_rounds :=
  \max_(t < max_rounds) \max_(r < t.+1 | lowest t r != None :> option nat) (2 * (t - r) + r + 2).

Lemma walk_cost max_rounds answers t r ls : 
  invariant t r ls -> r <= t -> t + size answers <= max_rounds -> walk answers ls != None ->
  answers != [::] ->
  2 * (t - r) + r + \sum_(a <- answers) half_cost a <= worst_halves max_rounds.
Proof.
elim: answers t r ls => [//|a s ih] t r ls inv rt size_ok /=; case: ifP => // /negbT no w _.
have st : t < max_rounds by rewrite (leq_trans _ size_ok) // addnS ltnS leq_addr.
have inv' := invariant_next a inv no.
case: s ih size_ok w => [|b s] ih size_ok w.
  rewrite big_seq1; case: inv => [o|[_ _ [m low _]]]; first by rewrite o in no.
  rewrite (leq_trans _ (leq_bigmax (Ordinal st))) //= (leq_trans _ (leq_bigmax_cond (Ordinal (_ : r < t.+1)) _)) //=.
    by rewrite leq_add2l; case: (a).
  by rewrite low.
rewrite big_cons addnA; apply: leq_trans (ih t.+1 (r + ~~ a)%N _ inv' _ _ w isT).
- rewrite leq_add2r; case: (a) => /=; rewrite ?addn0 ?addn1 /half_cost.
    by rewrite subSn // mulnS [X in X <= _]addnC addnA.
  by rewrite subSS addnS.
- by case: (a); rewrite ?addn0 ?addn1 // leqW.
- by rewrite addSn -addnS.
Qed.

Theorem worst_walk max_rounds answers : size answers <= max_rounds -> walk answers (0, 1) != None ->
  \sum_(a <- answers) half_cost a <= worst_halves max_rounds.
Proof.
move=> s w; case: answers s w => [|a l] s w; first by rewrite big_nil.
have := @walk_cost max_rounds (a :: l) 0 0 (0, 1) invariant0 (leqnn 0) s w isT.
by rewrite sub0n muln0 !add0n.
Qed.
End Rules.

Print Assumptions worst_walk.
