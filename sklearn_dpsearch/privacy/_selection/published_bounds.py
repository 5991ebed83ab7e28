r"""Published bounds that are the smallest in some case: best of K runs, random subsets, thresholds.

PS22: Papernot & Steinke, ICLR 2022. KRW24: Koskela, Redberg & Wang, ICML 2024. KK23: Koskela &
Kulkarni, NeurIPS 2023. ZW19: Zhu & Wang, ICML 2019. λ is a Rényi order. A bound is None for
guarantees and distributions that it does not cover.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, special

from .._checks import Array
from .._count_distributions.base import CountDistribution
from .._guarantees.base import Guarantee
from .._guarantees.single_mechanisms import ORDERS, ApproxDP, ProfileDP, RenyiDP
from .._numerics import basic_mechanisms
from .._numerics.arithmetic import LARGEST_EXPONENT
from .._numerics.loss_distribution import ROUNDING
from .testing_region import nodes, slope_ratio

# --- the best of K runs ---------------------------------------------------------------------------
#
# f is the generating function of K, m = E K, and η, γ are the parameters of the truncated negative
# binomial distribution. Conditioning on K ≥ 1 divides f' by 1 − f(0): every bound here multiplies
# its δ, or e^{(λ−1)ε}, by 1/(1 − f(0)). Where K may be 0, the Rényi bounds are about the outcomes
# of a run alone (PS22, footnote 9): at ε ≥ 0 "no run" adds nothing to a hockey-stick divergence,
# but it is one more outcome of a Rényi divergence (``BestOf.renyi`` counts it).


def renyi_poisson(
    one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS
) -> RenyiDP | None:
    r"""Rényi curve of the best of Poisson many runs (PS22).

    ε'(λ) = ε(λ) + m·δ(ε̂) + log(m)/(λ−1), ε̂ = log(1 + 1/(λ−1)).

    PS22 Theorem 6, for K ~ Poisson(m).
    """
    if not (one_run.has_renyi and "PS22 Theorem 6" in count.theorems):
        return None
    distribution, scale = count.without_condition
    failures = distribution.mean * one_run._delta(np.log1p(1 / (orders - 1)))
    curve = one_run.renyi(orders) + failures + np.log(distribution.mean * scale) / (orders - 1)
    return RenyiDP(orders=orders, epsilons=np.maximum(curve, 0.0), neighboring=one_run.neighboring)


def renyi_any_distribution(
    one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS
) -> RenyiDP | None:
    r"""Rényi curve of the best of K runs, any K (PS22).

    ε'(λ) = ε(λ) + sup over (q, q') of log( f'(q)^λ·f'(q')^{1−λ} ) / (λ−1), (q, q') in the testing
    region.

    PS22 Lemma 7, where P[K = 1] > 0. For each q the worst q' is q_min(q), and ``slope_ratio``
    bounds f'(q)/f'(q_min(q)) on each cell.
    """
    if not (one_run.has_renyi and count.pgf_slope(0.0) > 0):
        return None
    grid = nodes()
    log_slope = count.log_slope(grid.q[1:], grid.u[1:])
    log_ratio = np.max([slope_ratio(pld, count, grid) for pld in one_run.pair.directions], axis=0)
    worst = np.max(log_slope + (orders[:, None] - 1) * log_ratio, axis=1)
    epsilons = np.maximum(one_run.renyi(orders) + worst / (orders - 1), 0.0)
    return RenyiDP(orders=orders, epsilons=epsilons, neighboring=one_run.neighboring)


def pure_negative_binomial(epsilon: float, count: Any) -> float:
    """Largest loss (2+η)·ε of the best of negative binomial many ε-DP runs, infinite for other K.

    PS22 Corollary 3 (KRW24 Corollary 5.3; η = 1 is Liu & Talwar 2019).
    """
    return (2.0 + count.eta) * epsilon if "PS22 Corollary 3" in count.theorems else math.inf


def approx_negative_binomial(one_run: Guarantee, count: Any) -> ApproxDP | None:
    r"""(ε, δ) of the best of negative binomial many runs (PS22).

    ((2+η)·ε₀, 1 − f(1 − δ₀))-DP for an (ε₀, δ₀)-DP base. PS22 Lemma 20 with Corollary 3.

    Lemma 20 moves the failures aside; a pure ε₀ base remains, and K with generating function
    f(x(1−δ₀))/f(1−δ₀), which is negative binomial with the same η.
    """
    if not (isinstance(one_run, ApproxDP) and "PS22 Lemma 20" in count.theorems):
        return None
    # never 0 by cancellation: that would claim pure privacy
    delta = count.shortfall(one_run.delta) * (1.0 + ROUNDING)
    if delta >= 1:
        return None
    epsilon = pure_negative_binomial(one_run.epsilon, count)
    return ApproxDP(epsilon=epsilon, delta=delta, neighboring=one_run.neighboring)


def approx_poisson(one_run: Guarantee, count: CountDistribution) -> ProfileDP | None:
    r"""Profile of the best of Poisson many (ε, δ)-DP runs (PS22).

    δ'-approximate (λ, ε')-Rényi DP, λ = 1 + 1/(e^{ε₀} − 1), ε' = ε₀ + (e^{ε₀} − 1)·log m, δ' = 1 −
    e^{−mδ₀}.

    PS22 Corollary 21 (of Lemma 20), for an (ε₀, δ₀)-DP base and K ~ Poisson(m), m ≥ 1.
    """
    if not (isinstance(one_run, ApproxDP) and "PS22 Corollary 21" in count.theorems):
        return None
    if count.mean < 1 or one_run.epsilon == 0:
        return None
    odds = math.expm1(min(one_run.epsilon, LARGEST_EXPONENT))
    if 1 + 1 / odds == 1:  # of no order that a double tells from 1
        return None
    failed = -np.expm1(-count.mean * one_run.delta) * (1.0 + ROUNDING)
    curve = np.array([1 + 1 / odds]), np.array([one_run.epsilon + odds * np.log(count.mean)])
    profile = partial(_renyi_or_failed, failed, *curve)
    return ProfileDP(profile=profile, neighboring=one_run.neighboring)


def _renyi_or_failed(failed: float, orders: Array, epsilons: Array, epsilon: Array) -> Array:
    """Profile of a Rényi curve, with a probability of failing openly added."""
    return failed + basic_mechanisms.delta_of_renyi(orders, epsilons, epsilon)


def shifted(base: Guarantee, factor: float, shift: float) -> ProfileDP:
    """Profile of the KRW24 bounds: δ_Q shifted in ε, times a factor.

    δ(ε) = factor·δ_Q(ε − shift); 1 where ε < shift.
    """
    return ProfileDP(profile=partial(_shifted, base, factor, shift), neighboring=base.neighboring)


def _shifted(base: Guarantee, factor: float, shift: float, epsilon: Array) -> Array:
    """Values of a profile shifted in ε, times a factor."""
    moved = base._delta(np.maximum(epsilon - shift, 0.0))
    return np.where(epsilon >= shift, np.minimum(factor * moved, 1.0), 1.0)


def smallest_shift(shift: Callable[[Array], Array], reach: float = 40.0) -> float:
    """Smallest shift found over ε₁ in [0, reach]; every value is valid."""
    grid = np.append(0.0, np.geomspace(1e-6, reach, 300))
    values = np.asarray(shift(grid))
    best = int(np.nanargmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    with np.errstate(invalid="ignore"):  # where some values are infinite
        refined = optimize.minimize_scalar(
            lambda x: float(shift(np.array([x]))[0]), bounds=(low, high), method="bounded"
        )
    return float(min(values[best], refined.fun))


def profile_binomial(one_run: Guarantee, count: Any) -> ProfileDP | None:
    r"""Profile of the best of binomially many runs (KRW24).

    δ(ε) ≤ m·δ_Q(ε − (n−1)·log(1 − p + p·(e^{ε₁} + δ_Q(ε₁)))) for ε₁ with δ_Q(ε₁) ≤ (1−p)/p·(e^{ε₁}
    − 1).

    KRW24 Theorem 5.7, for binomial K.
    """
    if "KRW24 Theorem 5.7" not in count.theorems:
        return None
    distribution, scale = count.without_condition
    n, p = distribution.n, distribution.p

    def shift(first: Array) -> Array:
        delta = one_run._delta(first)
        allowed = p * delta <= (1 - p) * np.expm1(first)
        return np.where(allowed, (n - 1) * np.log(1 - p + p * (np.exp(first) + delta)), np.inf)

    smallest = smallest_shift(shift)
    return shifted(one_run, distribution.mean * scale, smallest) if np.isfinite(smallest) else None


#: Every bound on the best of K runs by the name under which it is reported.
BEST_OF: dict[str, Callable[[Guarantee, CountDistribution], Guarantee | None]] = {
    "PS22 Theorem 6": renyi_poisson,
    "PS22 Lemma 7": renyi_any_distribution,
    "PS22 Lemma 20": approx_negative_binomial,
    "PS22 Corollary 21": approx_poisson,
    "KRW24 Theorem 5.7": profile_binomial,
}

# --- a random subset, then a training -------------------------------------------------------------
#
# λ is an integer, q the probability with which a record is in the subset, ρ_t and ρ_b the Rényi
# curves of tuning and of training. All sums are over moments M(k) = e^{(k−1)·ρ(k)} ≥ E X^k, M(0) =
# M(1) = 1, with X a likelihood ratio under its denominator.

#: Integer Rényi orders at which the sums are evaluated.
INTEGER_ORDERS: Array = np.unique(
    np.append(np.arange(2.0, 65.0), np.round(np.geomspace(65.0, 1024.0, 48)))
)


def renyi_rest(
    tune: Guarantee, train: Guarantee, fraction: float, orders: Array = INTEGER_ORDERS
) -> RenyiDP | None:
    r"""Rényi curve of tuning on a subset, training on the rest (KK23).

    It is max(ρ₁, ρ₂), with

    e^{(λ−1)ρ₁} = Σ_{j=0}^{λ} C(λ, j)·q^j(1−q)^{λ−j}·M_t(j)·M_b(λ−j),
    e^{(λ−1)ρ₂} = Σ_{j=0}^{λ−1} C(λ−1, j)·q^j(1−q)^{λ−1−j}·M_t(j+1)·M_b(λ−j).

    KK23 Theorem 1, for a record more (ρ₁) and a record less (ρ₂).
    """
    if not _have_curves(tune, train):
        return None
    tuning, training = _log_moments(tune, orders), _log_moments(train, orders)
    bounds = []
    for order in orders.astype(int):
        j = np.arange(order + 1)
        more = _log_sum(_log_binomial(order, fraction) + tuning[j] + training[order - j])
        j = np.arange(order)
        less = _log_sum(_log_binomial(order - 1, fraction) + tuning[j + 1] + training[order - j])
        bounds.append(_rounded_up(max(more, less)) / (order - 1))
    return RenyiDP(orders=orders, epsilons=bounds, neighboring=train.neighboring)


def renyi_all(
    tune: Guarantee, train: Guarantee, fraction: float, orders: Array = INTEGER_ORDERS
) -> RenyiDP | None:
    r"""Rényi curve of tuning on a subset, training on all (ZW19).

    It is ρ'_t + ρ_b, with the amplified curve of tuning

    e^{(λ−1)ρ'_t} = Σ_{j=0}^{λ} w_j·C(λ, j)·q^j(1−q)^{λ−j}·M_t(j),   w_j = 1 for j ≤ 2, else 3.

    ZW19 (KK23 Theorem 4; its first term is that of j = 0 and j = 1), composed with the training
    run.
    """
    if not _have_curves(tune, train):
        return None
    tuning = _log_moments(tune, orders)
    bounds = []
    for order in orders.astype(int):
        terms = _log_binomial(order, fraction) + tuning[: order + 1]
        terms[3:] += np.log(3.0)
        bounds.append(_rounded_up(_log_sum(terms)) / (order - 1))
    curve = np.array(bounds) + train.renyi(orders)
    return RenyiDP(orders=orders, epsilons=curve, neighboring=train.neighboring)


def _have_curves(tune: Guarantee, train: Guarantee) -> bool:
    """Return whether tuning and training have usable Rényi curves.

    They are usable for neighbours that differ by the presence of a record.
    """
    return tune.has_renyi and train.has_renyi and train.neighboring != "replace_one"


def _log_sum(terms: Array) -> float:
    """Logarithm of a sum of exponentials, infinite ones too.

    SciPy before 1.16 warns of infinite ones.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return float(special.logsumexp(terms))


def _log_moments(part: Guarantee, orders: Array) -> Array:
    """Logarithms of the moments M(k) of a Rényi curve, for k = 0 … the largest order."""
    k = np.arange(2.0, orders.max() + 1.0)
    return np.append([0.0, 0.0], (k - 1.0) * part.renyi(k))


def _rounded_up(log_moment: float) -> float:
    """Log-moment, at least 0, raised by its rounding errors.

    These are the errors of the logarithms of factorials and of the sum.
    """
    return max(float(log_moment), 0.0) * (1.0 + ROUNDING) + ROUNDING


def _log_binomial(n: int, p: float) -> Array:
    """Logarithms of C(n, j)·p^j·(1−p)^{n−j} for j = 0 … n, 0 < p < 1."""
    j = np.arange(n + 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1)
    return np.asarray(log_choose + j * np.log(p) + (n - j) * np.log1p(-p))


#: The bound on each variant and the name under which it is reported.
SUBSET: dict[str, tuple[str, Callable[[Guarantee, Guarantee, float], Guarantee | None]]] = {
    "rest": ("KK23 Theorem 1", renyi_rest),
    "all": ("ZW19, composed", renyi_all),
}

# --- a threshold ----------------------------------------------------------------------------------
#
# PS22 (appendix C) condition a run Q on a set S of good outcomes. Here Q is the run with the coin
# in front of it (their footnote 11), so Q(S) is at least the stop probability p, and D_λ is that of
# a run that is only sometimes reached: exp((λ−1)·D_λ) = p + (1−p)·exp((λ−1)·ε(λ)).

#: 1/q and 1/r of Proposition 15 that are tried, of which 1/p + 1/q + 1/r = 1.
INVERSES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])


def renyi_threshold(one_run: Guarantee, stop_probability: float) -> RenyiDP | None:
    r"""Rényi curve of runs until a score reaches a threshold (PS22).

    (λ−1)·D'_λ = (1/r)(λ₁−1)·D_{λ₁} + (λ₀−1)·D_{λ₀} + (1 + 1/r)·log(1/p), λ₁ = r(λ − 1/p̂), λ₀ = λ +
    1/q − 1 ≥ 1.

    PS22 Proposition 15, for every 1/p̂ + 1/q + 1/r = 1 with r < ∞ on a grid, the best at each
    order. Corollary 16 is its case r = 1, q = ∞.
    """
    if not one_run.has_renyi:
        return None
    log_stop = np.log(stop_probability)
    with np.errstate(divide="ignore"):
        log_go_on = np.log1p(-stop_probability)
        tabulated = np.logaddexp(log_stop, log_go_on + (ORDERS - 1) * one_run.renyi(ORDERS))
    finite = np.isfinite(tabulated)
    at, moments = np.append(1.0, ORDERS[finite]), np.append(0.0, tabulated[finite])

    def log_moments(order: Array) -> Array:
        """(λ − 1)·D_λ, convex and 0 at λ = 1, so below chords; ∞ beyond the known orders."""
        return np.asarray(np.interp(order, at, moments, right=np.inf))

    best = np.full(ORDERS.shape, np.inf)
    for over_q in INVERSES:
        for over_r in INVERSES[INVERSES > 0]:
            if over_q + over_r <= 1:
                over_p = 1.0 - over_q - over_r
                total = over_r * log_moments((ORDERS - over_p) / over_r) - (1 + over_r) * log_stop
                second = ORDERS + over_q - 1
                with np.errstate(invalid="ignore"):
                    total = total + log_moments(np.maximum(second, 1.0))
                best = np.fmin(best, np.where(second >= 1, total, np.inf))
    curve = np.maximum(best / (ORDERS - 1), 0.0)
    return RenyiDP(orders=ORDERS, epsilons=curve, neighboring=one_run.neighboring)
