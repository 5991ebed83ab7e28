"""What a mechanism promises, as frozen values.

Every guarantee answers ``delta_at(epsilon)`` and ``epsilon_at(delta)`` (both rounded up), and knows the pair of output
laws that dominates it (``pair``); those with a Rényi curve also answer ``renyi(order)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from . import curves
from ._types import NEIGHBORING, Array, ArrayLike, Neighboring
from .errors import PrivacyError
from .profiles import DominatingPair, LossDistribution, connect_the_dots, symmetric

#: ε beyond which a guarantee is reported as infinite.
LARGEST_EPSILON = curves.LARGEST_LOSS


def require(condition: bool, expected: str, **found: object) -> None:
    """Raise ``ValueError("Expected …, got name=value.")`` unless ``condition`` holds."""
    if not condition:
        got = ", ".join(f"{name}={value!r}" for name, value in found.items())
        raise ValueError(f"Expected {expected}, got {got}.")


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """A differential-privacy guarantee under one neighbouring relation.

    Parameters
    ----------
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Which data sets are neighbours: one record more or less; one record replaced by nothing in its place (n public);
        one record changed (n public).
    """

    neighboring: Neighboring = "add_remove"

    def __post_init__(self) -> None:
        require(
            self.neighboring in NEIGHBORING, f"neighboring to be one of {NEIGHBORING}", neighboring=self.neighboring
        )
        self._check()

    def _check(self) -> None:  # noqa: B027 - a guarantee without parameters has nothing to check
        """Raise ``ValueError`` for parameters that no mechanism has."""

    @cached_property
    def pair(self) -> DominatingPair:
        """Dominating loss distributions, one for each order of the neighbours."""
        return self._pair()

    @abstractmethod
    def _pair(self) -> DominatingPair: ...

    @property
    def pure_epsilon(self) -> float | None:
        """The exact maximal privacy loss, if it is finite and known (a pure guarantee), else None."""
        return None

    @property
    def has_renyi(self) -> bool:
        """Whether ``renyi`` is defined."""
        return False

    def renyi(self, order: ArrayLike) -> Array:
        """Bound on the Rényi divergence of each order > 1 (array-like), in nats."""
        raise PrivacyError(f"{type(self).__name__} has no Rényi curve. Use delta_at or epsilon_at.")

    def delta_at(self, epsilon: ArrayLike) -> Any:
        """δ(ε): the least δ for which the guarantee implies (ε, δ)-DP.

        Parameters
        ----------
        epsilon : float or array-like
            ε ≥ 0.

        Returns
        -------
        float or ndarray
            Rounded up, in [0, 1].
        """
        epsilon = np.asarray(epsilon, dtype=float)
        require(bool(np.all(epsilon >= 0)), "epsilon >= 0", epsilon=epsilon)
        values = self._profile(np.minimum(np.atleast_1d(epsilon), 1e6))  # it never rises: safe for infinity too
        if self.pure_epsilon is None:  # an underflow to 0 would claim pure privacy
            values = np.maximum(values, np.finfo(float).tiny)
        return float(values[0]) if epsilon.ndim == 0 else values.reshape(epsilon.shape)

    def epsilon_at(self, delta: ArrayLike) -> Any:
        """ε(δ): the least ε for which the guarantee implies (ε, δ)-DP.

        Parameters
        ----------
        delta : float or array-like
            0 ≤ δ < 1.

        Returns
        -------
        float or ndarray
            Rounded up; infinite where no finite ε exists.
        """
        delta = np.asarray(delta, dtype=float)
        require(bool(np.all((delta >= 0) & (delta < 1))), "0 <= delta < 1", delta=delta)
        values = np.array([self._epsilon(float(one)) for one in delta.ravel()])
        return float(values[0]) if delta.ndim == 0 else values.reshape(delta.shape)

    def _profile(self, epsilon: Array) -> Array:
        values = self.pair.delta_at(epsilon)
        return values if self.pure_epsilon is None else np.where(epsilon >= self.pure_epsilon, 0.0, values)

    def _epsilon(self, delta: float) -> float:
        if delta == 0:
            return np.inf if self.pure_epsilon is None else self.pure_epsilon
        return smallest_epsilon(self._profile, delta, self.pure_epsilon)

    def __getstate__(self) -> dict[str, Any]:
        """Fields only: what was computed from them is computed again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def smallest_epsilon(profile: Callable[[Array], Array], delta: float, pure_epsilon: float | None = None) -> float:
    """The end of the last bisection interval at which ``profile`` meets ``delta``."""

    def met(epsilon: float) -> bool:
        return bool(profile(np.array([epsilon]))[0] <= delta)

    if met(0.0):
        return 0.0
    high = 1.0 if pure_epsilon is None else pure_epsilon
    while not met(high):
        high *= 2.0
        if high > LARGEST_EPSILON:
            return np.inf
    low = 0.0
    while high - low > 1e-10 + 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def dots(
    profile: Callable[[Array], Array],
    reversed_profile: Callable[[Array], Array] | None = None,
    number: int = 8001,
) -> LossDistribution:
    """Loss distribution through ``number`` points of a profile known as a function of ε ≥ 0."""
    both = [profile] if reversed_profile is None else [profile, reversed_profile]
    reach = min(max(_negligible_from(one) for one in both), LARGEST_EPSILON)
    grid = reach * np.linspace(0.0, 1.0, number)
    values = [np.clip(one(grid), 0.0, 1.0) for one in both]
    return connect_the_dots(grid, values[0], values[-1])


def _negligible_from(profile: Callable[[Array], Array], mass: float = 1e-18) -> float:
    """An ε from which the profile is below ``mass`` or no longer falls."""
    grid = np.geomspace(1e-6, LARGEST_EPSILON, 400)
    values = profile(grid)
    below = np.flatnonzero((values <= mass) | (values <= values[-1] * (1 + 1e-9)))
    return float(grid[below[0]])


@dataclass(frozen=True, kw_only=True)
class PureDP(Guarantee):
    """ε-differential privacy: the loss never exceeds ε. Dominated by randomised response.

    Examples
    --------
    >>> PureDP(epsilon=1.0).epsilon_at(0.0)
    1.0
    >>> round(PureDP(epsilon=1.0).epsilon_at(0.1), 3)
    0.853
    """

    epsilon: float

    def _check(self) -> None:
        require(0 <= self.epsilon < np.inf, "0 <= epsilon < inf", epsilon=self.epsilon)

    @property
    def pure_epsilon(self) -> float:
        return float(self.epsilon)

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """Randomised response with odds e^ε, the worst case of every order."""
        return curves.randomized_response_renyi(self.epsilon, np.asarray(order, dtype=float))

    def _pair(self) -> DominatingPair:
        return symmetric(curves.randomized_response(self.epsilon, 0.0))


@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy, nothing else known. Dominated by randomised response that fails openly with δ."""

    epsilon: float
    delta: float

    def _check(self) -> None:
        require(0 <= self.epsilon < np.inf, "0 <= epsilon < inf", epsilon=self.epsilon)
        require(0 <= self.delta < 1, "0 <= delta < 1", delta=self.delta)

    @property
    def pure_epsilon(self) -> float | None:
        return float(self.epsilon) if self.delta == 0 else None

    def _pair(self) -> DominatingPair:
        return symmetric(curves.randomized_response(self.epsilon, self.delta))


@dataclass(frozen=True, kw_only=True)
class ZCDP(Guarantee):
    """ρ-zero-concentrated DP (Bun & Steinke 2016): Rényi divergence of order α at most ρ·α for every α > 1."""

    rho: float

    def _check(self) -> None:
        require(0 <= self.rho < np.inf, "0 <= rho < inf", rho=self.rho)

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """ρ·α."""
        return self.rho * np.asarray(order, dtype=float)

    def _profile(self, epsilon: Array) -> Array:
        return curves.delta_of_zcdp(self.rho, epsilon)

    def _pair(self) -> DominatingPair:
        return symmetric(dots(self._profile))


@dataclass(frozen=True, kw_only=True)
class GaussianDP(Guarantee):
    """μ-Gaussian DP (Dong, Roth & Su 2022): no easier to tell apart than N(0, 1) and N(μ, 1).

    Examples
    --------
    >>> round(GaussianDP(mu=1.0).epsilon_at(1e-5), 3)
    4.377
    """

    mu: float

    def _check(self) -> None:
        require(0 <= self.mu < np.inf, "0 <= mu < inf", mu=self.mu)

    @property
    def pure_epsilon(self) -> float | None:
        return 0.0 if self.mu == 0 else None

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """μ²·α/2."""
        return 0.5 * self.mu**2 * np.asarray(order, dtype=float)

    def _profile(self, epsilon: Array) -> Array:
        return curves.delta_of_gaussian(self.mu, epsilon)

    def _pair(self) -> DominatingPair:
        if self.mu == 0:
            return symmetric(curves.randomized_response(0.0, 0.0))
        reach = 0.5 * self.mu**2 + 10.0 * self.mu
        grid = np.linspace(0.0, reach, 1 + int(np.clip(2000 * reach / self.mu, 1, 2**17)))
        values = self._profile(grid)
        return symmetric(connect_the_dots(grid, values, values))


@dataclass(frozen=True, kw_only=True, eq=False)
class RenyiDP(Guarantee):
    """A Rényi-DP curve at finitely many orders (Mironov 2017).

    Parameters
    ----------
    orders, epsilons : array-like of shape (n,)
        Orders α > 1 and bounds on the Rényi divergence of that order, in nats. Infinite bounds are allowed.
    """

    orders: Any
    epsilons: Any

    def __post_init__(self) -> None:
        for name in ("orders", "epsilons"):
            values = np.array(getattr(self, name), dtype=float, ndmin=1)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        super().__post_init__()

    def _check(self) -> None:
        require(
            self.orders.ndim == 1 and self.orders.shape == self.epsilons.shape and self.orders.size > 0,
            "orders and epsilons of the same shape (n,), n >= 1",
            orders=self.orders.shape,
            epsilons=self.epsilons.shape,
        )
        require(bool(np.all(self.orders > 1)), "orders > 1", smallest=self.orders.min())
        require(bool(np.all(self.epsilons >= 0)), "epsilons >= 0", smallest=self.epsilons.min())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RenyiDP)
            and self.neighboring == other.neighboring
            and np.array_equal(self.orders, other.orders)
            and np.array_equal(self.epsilons, other.epsilons)
        )

    def __hash__(self) -> int:
        return hash((self.neighboring, self.orders.tobytes(), self.epsilons.tobytes()))

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """The smallest bound that the stated orders imply (Rényi divergences grow with their order)."""
        orders, least = self._least_above
        return least[np.searchsorted(orders, np.asarray(order, dtype=float) * (1 - 1e-12))]

    @cached_property
    def _least_above(self) -> tuple[Array, Array]:
        """The orders, sorted, and the smallest bound of any order from each one on (none: infinite)."""
        sort = np.argsort(self.orders)
        bounds = np.append(self.epsilons[sort], np.inf)
        return self.orders[sort], np.minimum.accumulate(bounds[::-1])[::-1]

    def _profile(self, epsilon: Array) -> Array:
        orders, least = self._least_above
        return curves.delta_of_renyi(orders, least[:-1], epsilon)

    def _pair(self) -> DominatingPair:
        return symmetric(dots(self._profile))


@dataclass(frozen=True, kw_only=True)
class DPSGD(Guarantee):
    """DP-SGD: ``steps`` adaptive Gaussian sums over Poisson batches (Abadi et al. 2016), everything fixed in advance.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise ÷ clipping norm.
    sample_rate : float
        Probability with which each record enters each batch, independently.
    steps : int
        Number of steps, whatever the batches hold.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Under add_remove and zero_out the loss is the same; replace_one costs 1.8–2 times as much.

    Examples
    --------
    >>> round(DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000).epsilon_at(1e-5), 2)
    1.48
    """

    noise_multiplier: float
    sample_rate: float
    steps: int

    def _check(self) -> None:
        require(
            0 < self.noise_multiplier < np.inf, "0 < noise_multiplier < inf", noise_multiplier=self.noise_multiplier
        )
        require(0 < self.sample_rate <= 1, "0 < sample_rate <= 1", sample_rate=self.sample_rate)
        require(self.steps >= 0 and float(self.steps).is_integer(), "an integer steps >= 0", steps=self.steps)

    @property
    def pure_epsilon(self) -> float | None:
        return 0.0 if self.steps == 0 else None

    @property
    def has_renyi(self) -> bool:
        return self.neighboring != "replace_one"

    def renyi(self, order: ArrayLike) -> Array:
        """Exact at integer orders (Mironov, Talwar & Zhang 2019, eq. 3.3), log-moments interpolated between them."""
        if not self.has_renyi:
            return super().renyi(order)
        return self.steps * curves.subsampled_gaussian_renyi(
            self.noise_multiplier, self.sample_rate, np.asarray(order, float)
        )

    def _pair(self) -> DominatingPair:
        return curves.dpsgd_pair(
            self.noise_multiplier, self.sample_rate, int(self.steps), self.neighboring == "replace_one"
        )


@dataclass(frozen=True, kw_only=True)
class ProfileDP(Guarantee):
    """A privacy profile: any callable ε ↦ δ(ε) on arrays of ε ≥ 0, an upper bound and nonincreasing.

    To be pickled, the callable must be picklable.
    """

    profile: Callable[[Array], Array]
    given_pair: DominatingPair | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_pld(cls, pld: Any, neighboring: Neighboring = "add_remove") -> ProfileDP:
        """From a ``dp_accounting.pld`` privacy loss distribution (a pessimistic estimate)."""
        from .interop import pair_from_pld

        return cls.from_pair(pair_from_pld(pld), neighboring)

    @classmethod
    def from_pair(cls, pair: DominatingPair, neighboring: Neighboring = "add_remove") -> ProfileDP:
        """From loss distributions."""
        return cls(profile=pair.delta_at, given_pair=pair, neighboring=neighboring)

    def _profile(self, epsilon: Array) -> Array:
        values: Array = np.clip(np.asarray(self.profile(epsilon), dtype=float), 0.0, 1.0)
        return values

    def _pair(self) -> DominatingPair:
        return self.given_pair if self.given_pair is not None else symmetric(dots(self._profile))


@dataclass(frozen=True, kw_only=True)
class NonPrivate(Guarantee):
    """No promise: ε is infinite."""

    def _profile(self, epsilon: Array) -> Array:
        return np.ones_like(epsilon)

    def _pair(self) -> DominatingPair:
        return symmetric(LossDistribution(np.array([]), np.array([]), 1.0))
