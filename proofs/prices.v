(** docs/theory/prices.md: Theorem 6, prices on places. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import definitions testing_region best_of_release best_of potentials_cut.
From Proofs Require Import blackwell prices_places.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem6.
Variables (R : rcfType) (T Z : finType) (score : T -> nat) (tie : tie_rule R).
Hypothesis tieP : fair_ties tie.
Variables (f : {poly R}) (c sigma : R) (P P' : Z -> R) (Q Q' : T -> R).
Hypotheses (fP : law_of_runs f) (c1 : 1 <= c) (sigma0 : 0 < sigma).

(** (P, P') is a dominating pair of one run (Q, Q'), "with total masses of 1". *)
Hypotheses (dP : dist P) (dP' : dist P') (dQ : dist Q) (dQ' : dist Q') (dom : dominates P P' Q Q').

(** 1/X = P'/P. "An outcome takes up the room w = (sigma - 1/X)_+, and [all_room] = E_P w is all the room
    there is" (prices_places.v has w P = (sigma P - P')_+). *)
Let over_X z := P' z / P z.
Let w z := pos (sigma - over_X z).
Let total := all_room sigma P P'.

(** Prices lambda(xi) on [0, total] and mu(q) on [0, 1], with integrals Lambda and Mu: polynomials on each
    of finitely many polygons of the (q, xi) plane. *)
Local Notation cell := (seq (R * R * R) * (R * R * R))%type.
Variables (cells : seq cell) (lambda mu Lpoly Mpoly : cell -> {poly R}) (Lambda Mu : R -> R).
Hypothesis cover : forall q xi, 0 <= q <= 1 -> 0 <= xi <= total -> exists2 k, k \in cells & inside k q xi.
Hypothesis integrals : forall k q xi, k \in cells -> inside k q xi ->
  Lambda xi = (Lpoly k).[xi] /\ Mu q = (Mpoly k).[q].
Hypothesis derivatives : forall k, (Lpoly k)^`() = lambda k /\ (Mpoly k)^`() = mu k.
Hypothesis prices_ge0 : forall k q xi, k \in cells -> inside k q xi -> 0 <= q <= 1 -> 0 <= xi <= total ->
  0 <= (lambda k).[xi] /\ 0 <= (mu k).[q].

(** The lower edge of the pair's testing region, and upper bounds h_lambda, h_mu, h_0 of what an outcome
    may gain after it has paid. *)
Variables (qmin : R -> R) (h_lambda h_mu h_0 : Z -> R).
Hypothesis edge : lower_edge P P' qmin.
Hypothesis h_ge0 : forall z, [/\ 0 <= h_lambda z, 0 <= h_mu z & 0 <= h_0 z].
Hypothesis h_lambdaP : forall z k q xi, P' z < sigma * P z -> k \in cells -> inside k q xi ->
  0 <= q <= 1 -> 0 <= xi <= total ->
  f^`().[q] - c * over_X z * f^`().[Num.max (qmin q) (sigma * q - xi)] - w z * (lambda k).[xi] <= h_lambda z.
Hypothesis h_muP : forall z k q xi, k \in cells -> inside k q xi -> 0 <= q <= 1 -> 0 <= xi <= total ->
  f^`().[q] - c * over_X z * f^`().[qmin q] - (mu k).[q] <= h_mu z.
Hypothesis h_0P : forall z q, 0 <= q <= 1 -> f^`().[q] - c * over_X z * f^`().[qmin q] <= h_0 z.

(** min(h_lambda, h_mu, h_0), with h_lambda = oo if X <= 1/sigma. *)
Definition least_gain z :=
  let m := Num.min (h_mu z) (h_0 z) in if P' z < sigma * P z then Num.min (h_lambda z) m else m.

Lemma choice_of z : let B z := P z * least_gain z in 0 <= B z /\
  [\/ pays_lambda f c sigma P P' cells lambda qmin B z, pays_mu f c sigma P P' cells mu qmin B z
    | pays_nothing f c P P' qmin B z].
Proof.
move=> B; case: (h_ge0 z) => l0 m0 n0; have P0 := dP.1 z; have c0 : 0 <= c := le_trans ler01 c1.
have g0 : 0 <= least_gain z.
  by rewrite /least_gain; case: ifP => _; rewrite !le_minr ?l0 m0 n0.
split; first by rewrite /B mulr_ge0.
case: (eqVneq (P z) 0) => [Pz|Pn].
  constructor 3 => q q01; rewrite /B Pz mulr0 mul0r sub0r oppr_le0 !mulr_ge0 ?dP'.1 //.
  by apply: best_of_density.horner_ge0 (edge q01).1; exact: best_of_density.deriv_ge0 fP.1.
have Pp : 0 < P z by rewrite lt_neqAle eq_sym Pn.
have scale q r : f^`().[q] * P z - c * f^`().[r] * P' z = P z * (f^`().[q] - c * over_X z * f^`().[r]).
  by rewrite /over_X; move: (f^`().[q]) (f^`().[r]) => d d1; field.
have room_w : room sigma P P' z = P z * w z.
  by rewrite /w -posM //; congr pos; rewrite /over_X; field.
have mu_or_0 : least_gain z = Num.min (h_mu z) (h_0 z) -> pays_mu f c sigma P P' cells mu qmin B z \/
    pays_nothing f c P P' qmin B z.
  move=> e; case: (leP (h_mu z) (h_0 z)) => hm; [left => k q xi kin ink q01 xi01 | right => q q01].
    rewrite scale -mulrBr /B e ler_wpmul2l // (min_idPl hm); exact: h_muP kin ink q01 xi01.
  rewrite scale /B e ler_wpmul2l // (min_idPr (ltW hm)); exact: h_0P.
have [lt|ge] := boolP (P' z < sigma * P z); last first.
  by case: mu_or_0 => [|h|h]; [rewrite /least_gain (negbTE ge) | constructor 2 | constructor 3].
case: (leP (h_lambda z) (Num.min (h_mu z) (h_0 z))) => hl.
  constructor 1 => k q xi kin ink q01 xi01; rewrite scale room_w -[P z * w z * _]mulrA -mulrBr /B /least_gain lt ler_wpmul2l //.
  by rewrite (min_idPl hl); exact: h_lambdaP lt kin ink q01 xi01.
by case: mu_or_0 => [|h|h]; [rewrite /least_gain lt (min_idPr (ltW hl)) | constructor 2 | constructor 3].
Qed.

(** Theorem 6: delta(eps) <= integral of lambda + integral of mu + E_P min(h_lambda(X), h_mu(X), h_0(X)). *)
Theorem prices_bounded : hockey c (release score tie f Q) (release score tie f Q') <=
  (Lambda total - Lambda 0) + (Mu 1 - Mu 0) + \sum_z P z * least_gain z.
Proof.
have [K [kK eQ eQ']] := blackwell dP dP' dQ dQ' dom.
have ext (F F1 : T -> R) : F =1 F1 -> release score tie f F =1 release score tie f F1.
  move=> e [y|] //=; apply: eq_bigr => k _; congr (_ * _); rewrite bestE [RHS]bestE e; congr (_ * _).
  apply: eq_bigr => i _; apply: eq_bigr => d _; rewrite /rest; congr (_ * _).
  by apply: eq_bigr => j _; rewrite e.
rewrite (hockey_ext c (ext _ _ eQ) (ext _ _ eQ')).
exact: (prices_given_map (B := fun z => P z * least_gain z) score tieP fP c1 dP dP' kK cover integrals derivatives prices_ge0 edge choice_of).
Qed.
End Theorem6.

Print Assumptions prices_bounded.
