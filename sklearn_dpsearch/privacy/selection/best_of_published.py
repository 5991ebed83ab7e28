r"""Published bounds for the best of K runs that are the smallest in some case: pure, Rényi, (ε, δ), binomial.

PS22: Papernot & Steinke, ICLR 2022. KRW24: Koskela, Redberg & Wang, ICML 2024. f is the generating function of K, λ a
Rényi order, m = E K, and η, γ are the parameters of the truncated negative binomial distribution.

Conditioning on K ≥ 1 divides f' by 1 − f(0): every bound here multiplies its δ, or e^{(λ−1)ε}, by 1/(1 − f(0)).
Where K may be 0, the Rényi bounds are about the outcomes of a run alone (PS22, footnote 9): at ε ≥ 0 "no run" adds
nothing to a hockey-stick divergence, but it is one more outcome of a Rényi divergence (``BestOf.renyi`` counts it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import optimize

from ...errors import PrivacyError
from .._types import Array
from ..count_distributions.base import Conditioned, CountDistribution
from ..count_distributions.distributions import Binomial, Poisson
from ..count_distributions.negative_binomial import TruncatedNegativeBinomial
from ..guarantees.base import Guarantee
from ..guarantees.pure import PureDP
from ..guarantees.values import ORDERS, ApproxDP, ProfileDP, RenyiDP
from ..numerics import basic_mechanisms
from ..numerics.loss_distribution import ROUNDING
from .testing_region import nodes, slope_ratio

Kind = TypeVar("Kind")


class NotApplicable(PrivacyError):
    """A published bound does not cover this combination of base guarantee and distribution of K."""


def need(condition: bool, what: str) -> None:
    if not condition:
        raise NotApplicable(f"This bound needs {what}.")


def of_kind(value: object, kind: type[Kind], what: str) -> Kind:
    """Return the guarantee or distribution if it is of the kind that a theorem needs."""
    if not isinstance(value, kind):
        raise NotApplicable(f"This bound needs {what}.")
    return value


def negative_binomial(count: CountDistribution) -> TruncatedNegativeBinomial:
    if not isinstance(count, TruncatedNegativeBinomial):
        raise NotApplicable("This bound needs a negative binomial distribution.")
    return count


def split(count: CountDistribution) -> tuple[CountDistribution, float]:
    """The distribution without its condition K ≥ 1, and 1/P[K ≥ 1]."""
    return (count.distribution, 1.0 / count._scale) if isinstance(count, Conditioned) else (count, 1.0)


# --- PS22 --------------------------------------------------------------------------------------------------------


def pure_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    """(2 + η)·ε. PS22 Corollary 3 (KRW24 Corollary 5.3; η = 1 is Liu & Talwar 2019)."""
    distribution, epsilon = negative_binomial(count), of_kind(one_run.pure_epsilon, float, "a pure base")
    return PureDP(epsilon=(2 + distribution.eta) * epsilon, neighboring=one_run.neighboring)


def renyi_poisson(one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS) -> Guarantee:
    r"""ε'(λ) = ε(λ) + m·δ(ε̂) + log(m)/(λ−1), ε̂ = log(1 + 1/(λ−1)).

    PS22 Theorem 6, for K ~ Poisson(m).
    """
    unconditioned, scale = split(count)
    distribution = of_kind(unconditioned, Poisson, "a Poisson distribution")
    need(one_run.has_renyi, "a Rényi curve")
    delta = one_run.delta_at(np.log1p(1 / (orders - 1)))
    epsilons = one_run.renyi(orders) + distribution.mean * delta + np.log(distribution.mean * scale) / (orders - 1)
    return RenyiDP(orders=orders, epsilons=np.maximum(epsilons, 0.0), neighboring=one_run.neighboring)


def renyi_any_distribution(one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS) -> RenyiDP:
    r"""ε'(λ) = ε(λ) + sup over (q, q') of log( f'(q)^λ·f'(q')^{1−λ} ) / (λ−1), (q, q') in the testing region.

    PS22 Lemma 7. For each q the worst q' is q_min(q), and ``slope_ratio`` bounds f'(q)/f'(q_min(q)) on each cell.
    """
    need(one_run.has_renyi and count.pgf_slope(0.0) > 0, "a Rényi curve and P[K = 1] > 0")
    grid = nodes()
    log_slope = count.log_slope(grid.q[1:], grid.u[1:])
    log_ratio = np.max([slope_ratio(pld, count, grid) for pld in one_run.pair.directions], axis=0)
    worst = np.max(log_slope + (orders[:, None] - 1) * log_ratio, axis=1)
    epsilons = np.maximum(one_run.renyi(orders) + worst / (orders - 1), 0.0)
    return RenyiDP(orders=orders, epsilons=epsilons, neighboring=one_run.neighboring)


def approx_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""((2+η)·ε₀, 1 − f(1 − δ₀))-DP. PS22 Lemma 20 with Corollary 3.

    Lemma 20 moves the failures aside; a pure ε₀ base remains, and K with generating function
    f(x(1−δ₀))/f(1−δ₀), which is negative binomial with the same η.
    """
    distribution, base = negative_binomial(count), of_kind(one_run, ApproxDP, "(ε, δ)-DP")
    failed = distribution.shortfall(base.delta)  # never 0 by cancellation: that would claim pure privacy
    delta = failed * (1.0 + ROUNDING)
    need(delta < 1, "a delta below 1")
    return ApproxDP(epsilon=(2 + distribution.eta) * base.epsilon, delta=delta, neighboring=base.neighboring)


@dataclass(frozen=True)
class ApproxRenyiProfile:
    """δ₀ + δ(ε) of a Rényi bound: the profile of δ₀-approximate Rényi DP."""

    delta: float
    order: float
    epsilon: float

    def __call__(self, epsilon: Array) -> Array:
        return self.delta + basic_mechanisms.delta_of_renyi(np.array([self.order]), np.array([self.epsilon]), epsilon)


def approx_poisson(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""δ'-approximate (λ, ε')-Rényi DP, λ = 1 + 1/(e^{ε₀} − 1), ε' = ε₀ + (e^{ε₀} − 1)·log m, δ' = 1 − e^{−mδ₀}.

    PS22 Corollary 21 (of Lemma 20), for an (ε₀, δ₀)-DP base and K ~ Poisson(m), m ≥ 1.
    """
    base, distribution = of_kind(one_run, ApproxDP, "(ε, δ)-DP"), of_kind(count, Poisson, "a Poisson distribution")
    need(distribution.mean >= 1 and base.epsilon > 0, "mean >= 1 and epsilon > 0")
    odds = np.expm1(base.epsilon)
    profile = ApproxRenyiProfile(
        -np.expm1(-distribution.mean * base.delta) * (1.0 + ROUNDING),
        1 + 1 / odds,
        base.epsilon + odds * np.log(distribution.mean),
    )
    return ProfileDP(profile=profile, neighboring=one_run.neighboring)


# --- KRW24 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShiftedProfile:
    """δ(ε) = factor·δ_Q(ε − shift), the form of the KRW24 bounds; 1 where ε < shift."""

    base: Guarantee
    factor: float
    shift: float

    def __call__(self, epsilon: Array) -> Array:
        moved = self.base.delta_at(np.maximum(epsilon - self.shift, 0.0))
        return np.where(epsilon >= self.shift, np.minimum(self.factor * moved, 1.0), 1.0)


def least(shift: Callable[[Array], Array], reach: float = 40.0) -> float:
    """Smallest value found of ``shift`` over ε₁ in [0, reach]; every value is a valid choice."""
    grid = np.append(0.0, np.geomspace(1e-6, reach, 300))
    values = np.asarray(shift(grid))
    best = int(np.nanargmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    with np.errstate(invalid="ignore"):  # where some values are infinite
        found = optimize.minimize_scalar(lambda x: float(shift(np.array([x]))[0]), bounds=(low, high), method="bounded")
    return float(min(values[best], found.fun))


def profile_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""δ(ε) ≤ m·δ_Q(ε − (n−1)·log(1 − p + p·(e^{ε₁} + δ_Q(ε₁)))) for ε₁ with δ_Q(ε₁) ≤ (1−p)/p·(e^{ε₁} − 1).

    KRW24 Theorem 5.7, for binomial K.
    """
    unconditioned, scale = split(count)
    distribution = of_kind(unconditioned, Binomial, "a binomial distribution")

    def shift(first: Array) -> Array:
        delta = one_run.delta_at(first)
        allowed = distribution.p * delta <= (1 - distribution.p) * np.expm1(first)
        return np.where(
            allowed,
            (distribution.n - 1) * np.log(1 - distribution.p + distribution.p * (np.exp(first) + delta)),
            np.inf,
        )

    smallest = least(shift)
    need(np.isfinite(smallest), "an ε₁ with δ(ε₁) <= (1−p)/p·(e^{ε₁} − 1)")
    profile = ShiftedProfile(one_run, distribution.mean * scale, smallest)
    return ProfileDP(profile=profile, neighboring=one_run.neighboring)


#: Every published bound by the name under which it is reported.
THEOREMS: dict[str, Callable[[Guarantee, CountDistribution], Guarantee]] = {
    "PS22 Corollary 3": pure_negative_binomial,
    "PS22 Theorem 6": renyi_poisson,
    "PS22 Lemma 7": renyi_any_distribution,
    "PS22 Lemma 20": approx_negative_binomial,
    "PS22 Corollary 21": approx_poisson,
    "KRW24 Theorem 5.7": profile_binomial,
}


def published_best_of(one_run: Guarantee, count: CountDistribution) -> Iterator[tuple[str, Guarantee]]:
    """Name and guarantee of each published bound that applies."""
    for name, theorem in THEOREMS.items():
        try:
            yield name, theorem(one_run, count)
        except NotApplicable:
            continue
