"""Guarantees of single mechanisms: approximate, concentrated, Gaussian, Rényi, DP-SGD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import PrivacyError
from .. import _checks
from .._checks import Array, ArrayLike, Neighboring, cached_property
from .._numerics import basic_mechanisms
from .._numerics.loss_distribution import (
    DominatingPair,
    LossDistribution,
    check_masses,
    pair_through,
    symmetric_pair,
)
from .._serialization import BUILDERS
from .base import Guarantee, discretize_profiles

#: Rényi orders at which curves are tabulated.
ORDERS: Array = np.unique(
    np.concatenate([1 + np.geomspace(0.05, 8, 60), np.arange(2, 65), np.geomspace(65, 4096, 40)])
)
#: Most steps of DP-SGD: beyond, the transforms have no digits left.
MOST_STEPS = 10**9


@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy, nothing else known.

    It is dominated by randomised response that fails openly with probability δ.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0.
    delta : float
        Probability of failing, 0 ≤ δ < 1.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.
    """

    epsilon: float
    delta: float

    def _check(self) -> None:
        _checks.require_in("[0, inf)", epsilon=self.epsilon)
        _checks.require_in("[0, 1)", delta=self.delta)

    @property
    def pure_epsilon(self) -> float | None:
        return float(self.epsilon) if self.delta == 0 else None

    def _pair(self) -> DominatingPair:
        return symmetric_pair(basic_mechanisms.randomized_response(self.epsilon, self.delta))


@dataclass(frozen=True, kw_only=True)
class ZCDP(Guarantee):
    """ρ-zero-concentrated DP (Bun & Steinke 2016).

    The Rényi divergence of order α is at most ρ·α for every α > 1.

    Parameters
    ----------
    rho : float
        ρ ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.
    """

    rho: float

    def _check(self) -> None:
        _checks.require_in("[0, inf)", rho=self.rho)

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence ρ·α."""
        with np.errstate(over="ignore"):
            return np.asarray(self.rho * np.asarray(order, dtype=float))

    def _profile(self, epsilon: Array) -> Array:
        return basic_mechanisms.delta_of_zcdp(self.rho, epsilon)

    def _pair(self) -> DominatingPair:
        return discretize_profiles(self._profile)


@dataclass(frozen=True, kw_only=True)
class GaussianDP(Guarantee):
    """μ-Gaussian DP (Dong, Roth & Su 2022), dominated by N(0, 1) and N(μ, 1).

    Parameters
    ----------
    mu : float
        μ ≥ 0: sensitivity ÷ standard deviation of the noise.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.

    Examples
    --------
    >>> round(GaussianDP(mu=1.0).epsilon_at(1e-5), 3)
    4.377
    """

    mu: float

    def _check(self) -> None:
        _checks.require_in("[0, inf)", mu=self.mu)

    @property
    def pure_epsilon(self) -> float | None:
        return 0.0 if self.mu == 0 else None

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence μ²·α/2."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.square(self.mu) * np.asarray(order, dtype=float))

    def _profile(self, epsilon: Array) -> Array:
        return basic_mechanisms.delta_of_gaussian(self.mu, epsilon)

    def _pair(self) -> DominatingPair:
        if self.mu == 0:
            return symmetric_pair(basic_mechanisms.randomized_response(0.0, 0.0))
        if self.mu > basic_mechanisms.LARGEST_LOSS:  # losses below μ²/2 − 40·μ are negligible
            return symmetric_pair(basic_mechanisms.randomized_response(self.mu, 0.0))
        reach = 0.5 * self.mu**2 + 10.0 * self.mu
        grid = np.linspace(0.0, reach, 1 + int(np.clip(2000 * reach / self.mu, 1, 2**17)))
        return pair_through(grid, self._profile(grid))


@dataclass(frozen=True, kw_only=True, eq=False)
class RenyiDP(Guarantee):
    """A Rényi-DP curve at finitely many orders (Mironov 2017).

    Parameters
    ----------
    orders, epsilons : array-like of shape (n,)
        Orders α > 1 and bounds on the Rényi divergence of that order, in nats. Infinite bounds are
        allowed.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.
    """

    orders: Any
    epsilons: Any

    def __post_init__(self) -> None:
        for name in ("orders", "epsilons"):
            values = np.array(_checks.as_numbers(name, getattr(self, name)), ndmin=1)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        super().__post_init__()

    def _check(self) -> None:
        shape, other = self.orders.shape, self.epsilons.shape
        alike = len(shape) == 1 and shape == other != (0,)
        expected = "orders and epsilons of the same shape (n,), n >= 1"
        _checks.require(alike, expected, orders=shape, epsilons=other)
        _checks.require(bool(np.all(self.orders > 1)), "orders > 1", smallest=self.orders.min())
        not_negative = bool(np.all(self.epsilons >= 0))
        _checks.require(not_negative, "epsilons >= 0", smallest=self.epsilons.min())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RenyiDP) or self.neighboring != other.neighboring:
            return False
        same_orders = np.array_equal(self.orders, other.orders)
        return same_orders and np.array_equal(self.epsilons, other.epsilons)

    def __hash__(self) -> int:
        return hash((self.neighboring, self.orders.tobytes(), self.epsilons.tobytes()))

    def renyi(self, order: ArrayLike) -> Array:
        """Smallest Rényi bound implied by the orders, as divergences grow with the order."""
        orders, bounds = self._least_bound_above
        return bounds[np.searchsorted(orders, np.asarray(order, dtype=float) * (1 - 1e-12))]

    @cached_property
    def _least_bound_above(self) -> tuple[Array, Array]:
        """Sorted orders, and the smallest bound from each on (infinite where there is none)."""
        sort = np.argsort(self.orders)
        bounds = np.append(self.epsilons[sort], np.inf)
        return self.orders[sort], np.minimum.accumulate(bounds[::-1])[::-1]

    def _profile(self, epsilon: Array) -> Array:
        orders, bounds = self._least_bound_above
        return basic_mechanisms.delta_of_renyi(orders, bounds[:-1], epsilon)

    def _pair(self) -> DominatingPair:
        return discretize_profiles(self._profile)


class ByBothRoutes(Guarantee):
    """Guarantee with the smaller profile of its pair and its Rényi curve."""

    @cached_property
    def _renyi_route(self) -> RenyiDP:
        """Rényi curve of this guarantee, at tabulated orders."""
        return RenyiDP(orders=ORDERS, epsilons=self.renyi(ORDERS), neighboring=self.neighboring)

    def _profile(self, epsilon: Array) -> Array:
        values = super()._profile(epsilon)
        return np.minimum(values, self._renyi_route._delta(epsilon)) if self.has_renyi else values


@dataclass(frozen=True, kw_only=True)
class DPSGD(ByBothRoutes):
    """DP-SGD: ``steps`` adaptive Gaussian sums over Poisson batches.

    Everything is fixed in advance (Abadi et al. 2016).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise ÷ clipping norm.
    sample_rate : float
        Probability with which each record enters each batch, independently.
    steps : int
        Number of steps, for every content of the batches.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Under add_remove and zero_out the loss is the same; replace_one costs up to twice as much.

    Examples
    --------
    >>> round(DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000).epsilon_at(1e-5), 2)
    1.48
    """

    noise_multiplier: float
    sample_rate: float
    steps: int

    def _check(self) -> None:
        _checks.require_in("(0, inf)", noise_multiplier=self.noise_multiplier)
        _checks.require_in("(0, 1]", sample_rate=self.sample_rate)
        _checks.require_whole(0, steps=self.steps)
        _checks.require(self.steps <= MOST_STEPS, f"at most {MOST_STEPS:g} steps", steps=self.steps)

    @property
    def pure_epsilon(self) -> float | None:
        return 0.0 if self.steps == 0 else None

    @property
    def has_renyi(self) -> bool:
        return self.neighboring != "replace_one"

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi curve of DP-SGD, exact at integer orders.

        Between them log-moments are interpolated (Mironov, Talwar & Zhang 2019, eq. 3.3).
        """
        if not self.has_renyi:
            return super().renyi(order)
        order, noise = np.asarray(order, dtype=float), self.noise_multiplier
        step = basic_mechanisms.subsampled_gaussian_renyi(noise, self.sample_rate, order)
        return self.steps * step

    def _pair(self) -> DominatingPair:
        noise, rate, replaced = self.noise_multiplier, self.sample_rate, not self.has_renyi
        return basic_mechanisms.dpsgd_pair(noise, rate, int(self.steps), replaced)


@dataclass(frozen=True, kw_only=True)
class ProfileDP(Guarantee):
    """Privacy profile: a callable ε ↦ δ(ε), nonincreasing, from above.

    To be pickled, the callable must be picklable.

    Parameters
    ----------
    profile : callable
        ε ↦ δ(ε), on arrays.
    given_pair : DominatingPair, optional
        The loss distributions behind it, where they are known; see ``from_pld``.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.
    """

    profile: Callable[[Array], Array]
    given_pair: DominatingPair | None = field(default=None, repr=False)

    def _check(self) -> None:
        if not callable(self.profile):
            raise TypeError(
                f"Found profile={self.profile!r}; a function from epsilon to delta is needed."
            )
        if self.given_pair is not None:
            _checks.check_kind("given_pair", self.given_pair, DominatingPair, "a DominatingPair")
            for pld in self.given_pair.directions:
                check_masses(pld)

    @classmethod
    def from_pld(cls, pld: Any, neighboring: Neighboring = "add_remove") -> ProfileDP:
        """Build from a ``dp_accounting.pld`` privacy loss distribution (pessimistic)."""
        removed = _from_dp_accounting_pmf(pld._pmf_remove)
        added = removed if pld._symmetric else _from_dp_accounting_pmf(pld._pmf_add)
        return cls.from_pair(DominatingPair(removed, added), neighboring)

    @classmethod
    def from_pair(cls, pair: DominatingPair, neighboring: Neighboring = "add_remove") -> ProfileDP:
        """Build from a dominating pair of loss distributions."""
        return cls(profile=pair.delta_at, given_pair=pair, neighboring=neighboring)

    def written_fields(self) -> dict[str, Any]:
        """Fields of a profile of loss distributions, for ``to_dict``."""
        pair = self.given_pair
        if pair is None or self.profile != pair.delta_at:
            raise PrivacyError(
                "Found a ProfileDP whose profile is a function, which has no plain values; loss "
                "distributions are needed to write it down. Build it with ProfileDP.from_pld or "
                "ProfileDP.from_pair."
            )
        added = None if pair.removed is pair.added else pair.added
        return {"neighboring": self.neighboring, "removed": pair.removed, "added": added}

    def _profile(self, epsilon: Array) -> Array:
        values = _checks.as_numbers("profile", self.profile(epsilon))
        valid = values.shape == epsilon.shape
        _checks.require(valid, "a profile with as many values as arguments", profile=values.shape)
        expected = "a profile that is a number everywhere (1 where nothing is known)"
        _checks.require(not np.any(np.isnan(values)), expected, profile=values)
        return np.asarray(np.clip(values, 0.0, 1.0))

    def _pair(self) -> DominatingPair:
        return self.given_pair or discretize_profiles(self._profile)


def _from_dp_accounting_pmf(pmf: Any) -> LossDistribution:
    """Loss distribution of a pessimistic ``dp_accounting`` PMF."""
    dense = pmf.to_dense_pmf()
    if not dense._pessimistic_estimate:
        raise ValueError(
            "Expected a pessimistic privacy loss distribution, got an optimistic one: its epsilon "
            "is no bound."
        )
    masses = np.asarray(dense._probs, dtype=float)
    positive = masses > 0
    losses = (dense._lower_loss + np.arange(masses.size)) * dense._discretization
    return LossDistribution(losses[positive], masses[positive], float(dense._infinity_mass))


#: ``added`` is None if both orders are alike.
BUILDERS["ProfileDP"] = lambda removed, added, neighboring: ProfileDP.from_pair(
    DominatingPair(removed, removed if added is None else added), neighboring
)


@dataclass(frozen=True, kw_only=True)
class NonPrivate(Guarantee):
    """Guarantee that promises nothing: ε is infinite.

    Parameters
    ----------
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.
    """

    def _profile(self, epsilon: Array) -> Array:
        return np.ones_like(epsilon)

    def _pair(self) -> DominatingPair:
        return symmetric_pair(LossDistribution(np.array([]), np.array([]), 1.0))
