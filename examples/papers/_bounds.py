r"""Published bounds for the best of K runs that are never smaller than those of the accountant, for
figures and tests.

PS22: Papernot & Steinke, ICLR 2022. KRW24: Koskela, Redberg & Wang, ICML 2024. f is the generating
function of K, λ a Rényi order, m = E K, and η, γ are the parameters of the truncated negative
binomial distribution. Published bounds that are the smallest in some case are in
``sklearn_dpsearch/privacy/_selection/published_bounds.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sklearn_dpsearch.privacy import (
    ZCDP,
    ApproxDP,
    CountDistribution,
    GaussianDP,
    Guarantee,
    Poisson,
    ProfileDP,
    PureDP,
    RenyiDP,
    best_of,
)
from sklearn_dpsearch.privacy._checks import Array
from sklearn_dpsearch.privacy._count_distributions.base import Capped
from sklearn_dpsearch.privacy._count_distributions.negative_binomial import (
    TruncatedNegativeBinomial,
)
from sklearn_dpsearch.privacy._guarantees.single_mechanisms import ORDERS
from sklearn_dpsearch.privacy._selection.published_bounds import (
    renyi_any_distribution,
    shifted,
    smallest_shift,
)

Kind = TypeVar("Kind")


class NotApplicable(ValueError):
    """A published bound does not cover this combination of base guarantee and distribution of K."""


def need(condition: bool, what: str) -> None:
    if not condition:
        raise NotApplicable(f"This bound needs {what}.")


def of_kind(value: object, kind: type[Kind], what: str) -> Kind:
    """Return the guarantee or distribution if it is of the kind that a theorem needs."""
    need(isinstance(value, kind), what)
    return value


def negative_binomial(count: CountDistribution) -> TruncatedNegativeBinomial:
    return of_kind(count, TruncatedNegativeBinomial, "a negative binomial distribution")


def pure_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    """(2 + η)·ε. PS22 Corollary 3 (KRW24 Corollary 5.3; η = 1 is Liu & Talwar 2019)."""
    distribution, epsilon = (
        negative_binomial(count),
        of_kind(one_run.pure_epsilon, float, "a pure base"),
    )
    return PureDP(epsilon=(2 + distribution.eta) * epsilon, neighboring=one_run.neighboring)


def renyi_negative_binomial(
    one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS
) -> Guarantee:
    r"""ε'(λ) = ε(λ) + (1+η)(1 − 1/λ̂)·ε(λ̂) + (1+η)·log(1/γ)/λ̂ + log(m)/(λ−1), the best λ̂ among
    ``orders``.

    PS22 Theorem 2, for truncated negative binomial K.
    """
    need(one_run.has_renyi, "a Rényi curve")
    distribution, base = negative_binomial(count), one_run.renyi(orders)
    constant = (1 + distribution.eta) * np.min(
        (1 - 1 / orders) * base - np.log(distribution.gamma) / orders
    )
    return RenyiDP(
        orders=orders,
        epsilons=base + constant + np.log(distribution.mean) / (orders - 1),
        neighboring=one_run.neighboring,
    )


def zcdp_negative_binomial(
    one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS
) -> Guarantee:
    r"""ρ(λ−1) + log(m)/(λ−1) + 2(1+η)·√(ρ·log(1/γ)) − ηρ, and its least value 2√(ρ·log m) + … for
    smaller λ.

    PS22 Corollary 4, for a ρ-zCDP base with ρ ≤ log(1/γ).
    """
    distribution = negative_binomial(count)
    rho = (
        one_run.rho
        if isinstance(one_run, ZCDP)
        else 0.5 * of_kind(one_run, GaussianDP, "zCDP").mu ** 2
    )
    need(0 < rho <= -np.log(distribution.gamma), "0 < rho <= log(1/gamma)")
    best = np.maximum(orders - 1, np.sqrt(np.log(distribution.mean) / rho))
    constant = (
        2 * (1 + distribution.eta) * np.sqrt(-rho * np.log(distribution.gamma))
        - distribution.eta * rho
    )
    return RenyiDP(
        orders=orders,
        epsilons=rho * best + np.log(distribution.mean) / best + constant,
        neighboring=one_run.neighboring,
    )


def renyi_capped(one_run: Guarantee, count: CountDistribution, orders: Array = ORDERS) -> Guarantee:
    r"""Lemma 7 of K before the cap, plus log(1/P[K ≤ c])/(λ−1) + log(1 + E[K; K > c]/(E K − E[K; K
    > c])).

    PS22 Lemma 22, for K capped at c.
    """
    capped = of_kind(count, Capped, "a capped distribution of K")
    free, allowed = capped.distribution, np.arange(capped.most + 1)
    within, work = float(np.sum(free.pmf(allowed))), float(np.sum(free.pmf(allowed) * allowed))
    base = of_kind(
        renyi_any_distribution(one_run, free, orders), RenyiDP, "a Rényi curve and P[K = 1] > 0"
    )
    extra = -np.log(within) / (orders - 1) + np.log(free.mean / work)
    return RenyiDP(orders=orders, epsilons=base.epsilons + extra, neighboring=one_run.neighboring)


def profile_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""δ(ε) ≤ m·δ_Q(ε − (η+1)·log(e^{ε₁} + (1−γ)/γ·δ_Q(ε₁))) for any ε₁ ≥ 0, the best one taken.

    KRW24 Theorem 5.2, for truncated negative binomial K.
    """
    distribution = negative_binomial(count)
    odds = (1 - distribution.gamma) / distribution.gamma

    def shift(first: Array) -> Array:
        grown: Array = np.log(np.exp(first) + odds * one_run.delta_at(first))
        return (distribution.eta + 1) * grown

    return shifted(one_run, distribution.mean, smallest_shift(shift))


def approx_profile_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""(ε₀ + (η+1)·log(e^{ε₀} + (1−γ)/γ·δ₀), m·δ₀)-DP. KRW24 Corollary 5.4, for an (ε₀, δ₀)-DP
    base."""
    distribution, base = negative_binomial(count), of_kind(one_run, ApproxDP, "(ε, δ)-DP")
    need(distribution.mean * base.delta < 1, "mean·delta < 1")
    grown = np.log(
        np.exp(base.epsilon) + (1 - distribution.gamma) / distribution.gamma * base.delta
    )
    return ApproxDP(
        epsilon=float(base.epsilon + (distribution.eta + 1) * grown),
        delta=distribution.mean * base.delta,
        neighboring=base.neighboring,
    )


@dataclass(frozen=True)
class GaussianChernoffProfile:
    """The profile behind KRW24 Corollary 5.5 at one δ; 1 where the corollary does not apply."""

    mu: float
    mean: float
    odds: float
    eta: float

    def __call__(self, epsilon: Array) -> Array:
        mu = self.mu
        tail = 0.5 * mu**2 + mu * np.sqrt(2 * np.log(max(self.odds, 1.0)))  # δ_Q(tail) ≤ 1/odds
        shift = (self.eta + 1) * (tail + np.log1p(np.exp(-tail)))
        excess = np.maximum((epsilon - shift - 0.5 * mu**2) / mu, 0.0)
        delta: Array = np.minimum(self.mean * np.exp(-0.5 * excess**2), 1.0)
        return delta


def gaussian_negative_binomial(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    r"""ε = ε₂ + (η+1)·log(e^{ε₁} + 1) with Chernoff bounds ε₁ = μ²/2 + μ√(2·log((1−γ)/γ)), ε₂ =
    μ²/2 + μ√(2·log(m/δ)).

    KRW24 Corollary 5.5, for a μ-Gaussian base: Theorem 5.2 with δ_Q(ε) ≤ exp(−(ε/μ − μ/2)²/2) for ε
    ≥ μ²/2.
    """
    distribution, base = negative_binomial(count), of_kind(one_run, GaussianDP, "Gaussian DP")
    need(base.mu > 0 and distribution.gamma < 1, "mu > 0 and mean > 1")
    profile = GaussianChernoffProfile(
        base.mu, distribution.mean, (1 - distribution.gamma) / distribution.gamma, distribution.eta
    )
    return ProfileDP(profile=profile, neighboring=one_run.neighboring)


def profile_poisson(one_run: Guarantee, count: CountDistribution) -> Guarantee:
    """δ(ε) ≤ m·δ_Q(ε − m·δ_Q(0)). KRW24 Corollary 5.8 with ε₁ = 0, its best choice, for Poisson
    K."""
    unconditioned, scale = count.without_condition
    distribution = of_kind(unconditioned, Poisson, "a Poisson distribution")
    return shifted(one_run, distribution.mean * scale, distribution.mean * one_run.delta_at(0.0))


#: Every bound of this file by its name in the papers.
THEOREMS: dict[str, Callable[[Guarantee, CountDistribution], Guarantee]] = {
    "PS22 Corollary 3": pure_negative_binomial,
    "PS22 Theorem 2": renyi_negative_binomial,
    "PS22 Corollary 4": zcdp_negative_binomial,
    "PS22 Lemma 22": renyi_capped,
    "KRW24 Theorem 5.2": profile_negative_binomial,
    "KRW24 Corollary 5.4": approx_profile_negative_binomial,
    "KRW24 Corollary 5.5": gaussian_negative_binomial,
    "KRW24 Corollary 5.8": profile_poisson,
}


def all_bounds(one_run: Guarantee, count: CountDistribution) -> dict[str, Guarantee]:
    """Bounds of the accountant and of this file, by name, as far as they apply."""
    bounds = dict(getattr(best_of(one_run, count), "bounds", {}))
    for name, theorem in THEOREMS.items():
        try:
            bounds[name] = theorem(one_run, count)
        except NotApplicable:
            continue
    return bounds
