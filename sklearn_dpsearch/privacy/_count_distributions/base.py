r"""Distributions of the number of runs K, independent of the data, and draws from them.

The distribution of K enters the privacy bound only through the slope f'(z) = E[K z^{K−1}] of its
generating function f(z) = E[z^K]. Near z = 1 what matters is 1 − z, far below the spacing of
doubles there; so the numerics work with z and its complement u = 1 − z side by side (``log_slope``,
``log_curvature``).

K is drawn by inversion of its distribution function: with many digits, one probability after the
other, which takes some microseconds for each of the K runs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Protocol

import mpmath
import numpy as np
import numpy.typing as npt
from numpy.polynomial.polynomial import polyval
from scipy import integrate

from .._checks import (
    Array,
    ArrayLike,
    FrozenValue,
    as_numbers,
    cached_property,
    check_kind,
    number_in,
    require,
    require_whole,
)
from .._serialization import part_of_guarantees


class RandomBits(Protocol):
    """A source of random bits, such as ``random.SystemRandom()``."""

    def getrandbits(self, k: int, /) -> int: ...


def successive_probabilities(first: Any, k: int, ratio: Callable[[int], Any]) -> Iterator[Any]:
    """Probabilities of K from the first and from ratios of neighbours."""
    term = first
    while term:
        yield term
        term, k = term * ratio(k), k + 1


#: Working precision, in bits, of what is left of 1 after a probability near it: the smallest
#: doubles keep 300 bits.
EXACT_BITS = 1500
#: Least probability with which K stays under a cap: far below it doubles have few digits.
LEAST_CHANCE = 1e-40
#: Terms of a finite distribution that are evaluated one by one; more would take minutes.
MOST_TERMS = 10**6
#: What is needed where something else was found.
A_DISTRIBUTION = "a distribution of K, e.g. Geometric(10),"
#: Bounds on the best of K runs that hold under a cap, and given K ≥ 1, if they hold without.
CAP_BOUNDS, CONDITION_BOUNDS = ("Theorem 6",), ("Theorem 6", "PS22 Theorem 6", "KRW24 Theorem 5.7")


@part_of_guarantees
@dataclass(frozen=True)
class CountDistribution(ABC, FrozenValue):
    """Distribution of K, the number of runs of a search."""

    if TYPE_CHECKING:  # a field of some distributions

        @property
        def mean(self) -> float:
            """E K."""

    # Hooks of each distribution -------------------------------------------------------------------

    @abstractmethod
    def log_pmf(self, k: Array) -> Array:
        """log P[K = k] for an array of integers k ≥ 0."""

    @abstractmethod
    def log_slope(self, z: Array, u: Array) -> Array:
        """Logarithm of f', f the generating function of K; u = 1 − z."""

    @abstractmethod
    def log_curvature(self, z: Array, u: Array) -> Array:
        """Logarithm of f'', f the generating function of K; u = 1 − z."""

    @abstractmethod
    def generating(self, z: Array, u: Array) -> Array:
        """Generating function f(z) of K, with u = 1 − z."""

    @abstractmethod
    def exact_pmf(self) -> Iterator[Any]:
        """Probabilities of K from the lowest on, as ``mpmath`` numbers."""

    @property
    def lowest(self) -> int:
        """Smallest possible K (0 or 1, or more)."""
        return 1

    @property
    def highest(self) -> float:
        """Largest possible K, or infinity."""
        return math.inf

    @property
    def theorems(self) -> tuple[str, ...]:
        """Names of the bounds that hold for this distribution, beside those for every K."""
        return ()

    @property
    def without_condition(self) -> tuple[CountDistribution, float]:
        """Distribution without the condition K ≥ 1, and 1/P[K ≥ 1]."""
        return self, 1.0

    # Derived methods ------------------------------------------------------------------------------

    def pmf(self, k: ArrayLike) -> Any:
        """P[K = k] for integers k (scalar or array)."""
        k = as_numbers("k", k)
        inside = (k >= self.lowest) & (k <= self.highest)
        possible = np.where(inside, k, max(self.lowest, 1)).astype(float)
        values = np.where(inside, np.exp(self.log_pmf(possible)), 0.0)
        return float(values) if k.ndim == 0 else values

    def pgf(self, z: ArrayLike) -> Any:
        """f(z) = E[z^K] for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._evaluate(self.generating, z)

    def pgf_slope(self, z: ArrayLike) -> Any:
        """f'(z) = E[K z^{K−1}] for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._evaluate(lambda *at: np.exp(self.log_slope(*at)), z)

    def log_pgf_slope(self, z: ArrayLike) -> Any:
        """log f'(z) for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._evaluate(self.log_slope, z)

    @staticmethod
    def _evaluate(function: Any, z: ArrayLike) -> Any:
        """Value of a function of z and 1 − z, for checked z."""
        z = as_numbers("z", z)
        require(bool(np.all((z >= 0) & (z <= 1))), "0 <= z <= 1", z=z)
        with np.errstate(divide="ignore"):
            values = function(z, 1.0 - z)
        return float(values) if z.ndim == 0 else values

    @property
    def probability_of_none(self) -> float:
        """P[K = 0]."""
        return float(self.pgf(0.0))

    def expected_quantile(self) -> float:
        """Expected quantile of the winner, 1 − ∫₀¹ f (Papernot & Steinke 2022, section 3.6)."""

        def integrand(t: float) -> float:
            return float(self._evaluate(self.generating, -math.expm1(-t)) * math.exp(-t))

        return float(1.0 - integrate.quad(integrand, 0.0, 60.0, limit=400)[0])

    def success_probability(self, share: float) -> float:
        """Probability that the winner is among the best share of candidates."""
        share = number_in("[0, 1]", share=share)
        return float(1.0 - self.generating(np.array(1.0 - share), np.array(share)))

    def quantile(self, p: float) -> int:
        """Smallest k with P[K ≤ k] ≥ p."""
        return self._exact_quantile(number_in("[0, 1)", p=p))

    def _exact_quantile(self, p: Any) -> int:
        """Smallest k with P[K ≤ k] ≥ p, in 320-bit arithmetic.

        It adds up the probabilities of all smaller K.
        """
        with mpmath.workprec(320):
            totals = enumerate(accumulate(self.exact_pmf()), self.lowest)
            return int(next((k for k, total in totals if total >= p), self.highest))

    def sample(self, rng: RandomBits | None = None) -> int:
        """One draw of K by inversion of 256 random bits.

        Parameters
        ----------
        rng : object with ``getrandbits``, optional
            By default the operating system's entropy. A seeded ``random.Random`` is for tests: a
            known K voids the guarantee of a search.

        Notes
        -----
        The distribution of the result differs from the stated one by less than 2^{-200}.
        """
        from secrets import SystemRandom

        bits = (SystemRandom() if rng is None else rng).getrandbits(256)
        with mpmath.workprec(320):
            return self._exact_quantile((bits + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 256)

    def at_least_one(self) -> CountDistribution:
        """Distribution of K given K ≥ 1."""
        return self if self.lowest >= 1 else Conditioned(distribution=self)

    def capped(self, most: int) -> CountDistribution:
        """Distribution of K given K ≤ ``most``.

        It is a hard limit on work, and replaces Papernot & Steinke (2022), Lemma 22.
        """
        require_whole(max(self.lowest, 1), most=most)
        return self if self.highest <= most else Capped(distribution=self, most=int(most))


@dataclass(frozen=True)
class Finite(CountDistribution):
    """Distribution of K on 0 … m given by its probabilities.

    Its generating function is a polynomial, in which nothing cancels.
    """

    @property
    @abstractmethod
    def _probabilities(self) -> Array:
        """Probabilities of K = 0, 1, …"""

    @cached_property
    def _support(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self._probabilities)

    @property
    def mean(self) -> float:
        return float(self._probabilities @ np.arange(self._probabilities.size))

    @property
    def lowest(self) -> int:
        return int(self._support[0])

    @property
    def highest(self) -> float:
        return int(self._support[-1])

    def log_pmf(self, k: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._probabilities[k.astype(int)]))

    def log_slope(self, z: Array, u: Array) -> Array:
        k = np.arange(self._probabilities.size)
        with np.errstate(divide="ignore", under="ignore"):
            return np.asarray(np.log(polyval(z, (k * self._probabilities)[1:])))

    def log_curvature(self, z: Array, u: Array) -> Array:
        k = np.arange(self._probabilities.size)
        with np.errstate(divide="ignore", under="ignore"):
            values = np.log(polyval(z, np.append((k * (k - 1) * self._probabilities)[2:], 0.0)))
            return np.asarray(values)

    def generating(self, z: Array, u: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(polyval(z, self._probabilities))


@dataclass(frozen=True)
class Capped(Finite):
    """Distribution of K given K ≤ most."""

    distribution: CountDistribution
    most: int

    def _check(self) -> None:
        check_kind("distribution", self.distribution, CountDistribution, A_DISTRIBUTION)
        require_whole(max(self.distribution.lowest, 1), most=self.most)
        require(self.most <= MOST_TERMS, f"a cap of at most {MOST_TERMS}", most=self.most)
        possible = float(np.sum(self.distribution.pmf(np.arange(self.most + 1))))
        require(possible > LEAST_CHANCE, "a cap that K can stay under", most=self.most)

    @property
    def lowest(self) -> int:
        return self.distribution.lowest  # the first double that is not 0 may be far above it

    @property
    def theorems(self) -> tuple[str, ...]:
        return tuple(name for name in self.distribution.theorems if name in CAP_BOUNDS)

    @cached_property
    def _probabilities(self) -> Array:
        values = self.distribution.pmf(np.arange(self.most + 1))
        return np.asarray(values / math.fsum(values))

    def exact_pmf(self) -> Iterator[Any]:
        return (probability / self._possible for probability in self._pmf_up_to_cap())

    @cached_property
    def _possible(self) -> Any:
        """Probability that K stays under the cap, exact."""
        with mpmath.workprec(EXACT_BITS):
            return mpmath.fsum(self._pmf_up_to_cap())

    def _pmf_up_to_cap(self) -> Iterator[Any]:
        """Exact probabilities of K up to the cap."""
        return islice(self.distribution.exact_pmf(), self.most + 1 - self.lowest)


@dataclass(frozen=True)
class Conditioned(CountDistribution):
    """Distribution of K given K ≥ 1: (f(z) − f(0)) / (1 − f(0))."""

    distribution: CountDistribution

    def _check(self) -> None:
        check_kind("distribution", self.distribution, CountDistribution, A_DISTRIBUTION)
        valid = self.distribution.lowest == 0
        require(valid, "a distribution of K that may be 0", distribution=self.distribution)

    @cached_property
    def _possible(self) -> Any:
        """Probability of K ≥ 1, exact."""
        with mpmath.workprec(EXACT_BITS):
            return 1 - next(self.distribution.exact_pmf())

    @property
    def _scale(self) -> float:
        """Probability of K ≥ 1, as a double."""
        return float(self._possible)

    @property
    def theorems(self) -> tuple[str, ...]:
        return tuple(name for name in self.distribution.theorems if name in CONDITION_BOUNDS)

    @property
    def without_condition(self) -> tuple[CountDistribution, float]:
        return self.distribution, 1.0 / self._scale

    @property
    def mean(self) -> float:
        return float(self.distribution.mean / self._scale)

    @property
    def highest(self) -> float:
        return self.distribution.highest

    def log_pmf(self, k: Array) -> Array:
        return self.distribution.log_pmf(k) - math.log(self._scale)

    def log_slope(self, z: Array, u: Array) -> Array:
        return self.distribution.log_slope(z, u) - math.log(self._scale)

    def log_curvature(self, z: Array, u: Array) -> Array:
        return self.distribution.log_curvature(z, u) - math.log(self._scale)

    def generating(self, z: Array, u: Array) -> Array:
        return 1.0 - (1.0 - self.distribution.generating(z, u)) / self._scale

    def exact_pmf(self) -> Iterator[Any]:
        later = islice(self.distribution.exact_pmf(), 1, None)
        return (probability / self._possible for probability in later)
