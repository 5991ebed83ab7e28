r"""Distributions of the number of runs K, independent of the data, and draws from them.

The distribution of K enters the privacy bound only through the slope f'(z) = E[K z^{K−1}] of its generating function
f(z) = E[z^K]. Near z = 1 what matters is 1 − z, far below the spacing of doubles there; so the numerics work with z and
its complement u = 1 − z side by side (``log_slope``, ``log_curvature``).

K is drawn by inversion of its distribution function: in doubles where these suffice, else with many digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import mpmath
import numpy as np
import numpy.typing as npt
from scipy import integrate

from .._checks import FrozenValue, as_numbers, cached_property, check_kind, plain_number, require, require_whole
from .._types import Array, ArrayLike
from ..numerics.inversion import bracket, narrowed, whole_mean, within
from ..serialization import part_of_guarantees

#: A ``CountDistribution``, whose file imports this one.
Distribution: TypeAlias = Any

#: Steps of a table at first and at most; it ends where less than NEGLIGIBLE is left.
FIRST_STEPS, MOST_STEPS, NEGLIGIBLE = 2**10, 2**20, 1e-9
#: Rounding error per term, of a sum of probabilities and of their logarithms.
ONE_TERM = 2e-16


class RandomBits(Protocol):
    """A source of random bits, such as ``random.SystemRandom()``."""

    def getrandbits(self, k: int, /) -> int: ...


@dataclass(frozen=True, eq=False)
class Steps:
    """P[K ≤ first], P[K ≤ first + 1], … in double precision, each wrong by less than ``margin``.

    The steps depend on the distribution alone and not on any draw, so a distribution keeps its table.
    """

    first: int
    values: Array
    margin: float
    below: float  # P[K < first]

    def deciding(self, at: float) -> int | None:
        """Smallest k with P[K ≤ k] ≥ ``at``, if the doubles decide it."""
        i = int(self.values.searchsorted(at))
        if i == self.values.size or self.values[i] - at <= self.margin:
            return None
        before = self.values[i - 1] if i else self.below
        return self.first + i if at - before > self.margin else None

    def near(self, at: float) -> int:
        """First k to try in the search for this quantile."""
        return self.first + int(self.values.searchsorted(at))


def steps_of(distribution: Distribution) -> Steps:
    """The table of a distribution: from the lowest K or, where a large mean is far from it, from below the mean."""
    first = distribution.lowest
    if distribution.mean >= MOST_STEPS // 2 and distribution.pmf(first) < distribution.pmf(int(distribution.mean)):
        first = max(first, int(distribution.mean) - MOST_STEPS // 2)
    with mpmath.workprec(160):
        start = -np.inf if first == distribution.lowest else 1.0 - float(distribution.survival(first - 1))
    values, margin = np.array([]), distribution.rounding
    while _goes_on(values, first, distribution.highest, margin):
        last = int(min(distribution.highest, first + max(4 * values.size, FIRST_STEPS) - 1))
        total = values[-1] if values.size else max(start, 0.0)
        more = distribution.pmf(np.arange(first + values.size, last + 1))
        values = np.append(values, total + np.cumsum(more))
    return Steps(first, values, margin + ONE_TERM * (first + values.size), start)


def _goes_on(values: Array, first: int, highest: float, margin: float) -> bool:
    """Return whether a table needs another step and may have one."""
    if values.size == 0:
        return True
    return bool(
        values.size < MOST_STEPS and first + values.size <= highest and 1.0 - values[-1] > max(NEGLIGIBLE, margin)
    )


def draw(distribution: Distribution, steps: Steps, bits: int) -> int:
    """K from 256 random bits: the smallest k with P[K ≤ k] ≥ (bits + 1/2)/2^256."""
    at = (2 * bits + 1) / 2**257  # Python divides integers with one rounding
    found = steps.deciding(at)
    if found is not None:
        return found
    with mpmath.workprec(320):
        return _search(distribution, 1 - (mpmath.mpf(bits) + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 256, steps.near(at))


def quantile(distribution: Distribution, steps: Steps, p: float) -> int:
    """Smallest k with P[K ≤ k] ≥ p, in 160-bit arithmetic."""
    with mpmath.workprec(160):
        return _search(distribution, 1 - mpmath.mpf(p), steps.near(p))


def _search(distribution: Distribution, tail: Any, start: int) -> int:
    """Smallest k with P[K > k] ≤ ``tail``, by doubling steps away from ``start``, then by bisection."""
    lowest, start = distribution.lowest, max(start, distribution.lowest)
    steps = (2**i - 1 for i in count(1))

    def reached(k: float) -> bool:
        return k >= lowest and bool(distribution.survival(int(k)) <= tail)

    turn = bracket(reached, start, (max(start - step, lowest - 1) for step in steps), (start + step for step in steps))
    return int(narrowed(reached, turn, within(absolute=1), whole_mean).holds or lowest)


def light_tail(k: int, mean: float, probability: Callable[[int], Any], ratio: Callable[[int], Any]) -> Any:
    """P[K > k] of a unimodal distribution with light tails, from P[K = j] and P[K = j+1] / P[K = j].

    Summed away from the mode, in the working precision of ``mpmath``.
    """
    if k < 0:
        return mpmath.mpf(1)
    tiny = mpmath.mpf(2) ** -(mpmath.mp.prec + 20)
    upwards = k + 1 > mean
    j = k + 1 if upwards else k
    term = probability(j)
    total = term
    while term > tiny * total and (upwards or j > 0):
        term = term * ratio(j) if upwards else term / ratio(j - 1)
        j = j + 1 if upwards else j - 1
        total += term
    return total if upwards else 1 - total


#: Terms of a finite distribution that are evaluated one by one; more would take minutes.
MOST_TERMS = 10**6


@part_of_guarantees
@dataclass(frozen=True)
class CountDistribution(ABC, FrozenValue):
    """Distribution of K, the number of runs of a search."""

    if TYPE_CHECKING:  # a field of some distributions

        @property
        def mean(self) -> float:
            """E K."""

    # Hooks of each distribution -----------------------------------------------------------------------------------

    @abstractmethod
    def log_pmf(self, k: Array) -> Array:
        """log P[K = k] for an array of integers k ≥ 0."""

    @abstractmethod
    def log_slope(self, z: Array, u: Array) -> Array:
        """log f'(z), with u = 1 − z given separately."""

    @abstractmethod
    def log_curvature(self, z: Array, u: Array) -> Array:
        """log f''(z)."""

    @abstractmethod
    def generating(self, z: Array, u: Array) -> Array:
        """f(z)."""

    @abstractmethod
    def survival(self, k: int) -> Any:
        """P[K > k] as an ``mpmath`` number in the working precision."""

    @property
    def lowest(self) -> int:
        """Smallest possible K (0 or 1, or more)."""
        return 1

    @property
    def highest(self) -> float:
        """Largest possible K, or infinity."""
        return math.inf

    @property
    def rounding(self) -> float:
        """Largest error of a sum of ``pmf`` in double precision."""
        return 1e-9

    # Derived methods ----------------------------------------------------------------------------------------------

    def pmf(self, k: ArrayLike) -> Any:
        """P[K = k] for integers k (scalar or array)."""
        k = as_numbers("k", k)
        inside = (k >= self.lowest) & (k <= self.highest)
        values = np.where(inside, np.exp(self.log_pmf(np.where(inside, k, max(self.lowest, 1)).astype(float))), 0.0)
        return float(values) if k.ndim == 0 else values

    def pgf(self, z: ArrayLike) -> Any:
        """f(z) = E[z^K] for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._at(self.generating, z)

    def pgf_slope(self, z: ArrayLike) -> Any:
        """f'(z) = E[K z^{K−1}] for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._at(lambda *at: np.exp(self.log_slope(*at)), z)

    def log_pgf_slope(self, z: ArrayLike) -> Any:
        """log f'(z) for 0 ≤ z ≤ 1 (scalar or array)."""
        return self._at(self.log_slope, z)

    @staticmethod
    def _at(function: Any, z: ArrayLike) -> Any:
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
        """Expected quantile of the winner among all candidates, 1 − ∫₀¹ f (Papernot & Steinke 2022, section 3.6)."""
        value, _ = integrate.quad(
            lambda t: self._at(self.generating, -math.expm1(-t)) * math.exp(-t), 0.0, 60.0, limit=400
        )
        return float(1.0 - value)

    def success_probability(self, share: float) -> float:
        """Probability that the winner is among the best ``share`` of all candidates, 1 − f(1 − share)."""
        share = plain_number("share", share)
        require(0 <= share <= 1, "0 <= share <= 1", share=share)
        return float(1.0 - self.generating(np.array(1.0 - share), np.array(share)))

    def quantile(self, p: float) -> int:
        """Smallest k with P[K ≤ k] ≥ p."""
        p = plain_number("p", p)
        require(0 <= p < 1, "0 <= p < 1", p=p)
        return quantile(self, self._steps, p)

    def sample(self, rng: RandomBits | None = None) -> int:
        """One draw of K by inversion of 256 random bits.

        Parameters
        ----------
        rng : object with ``getrandbits``, optional
            By default the operating system's entropy. A seeded ``random.Random`` is for tests: a known K voids the
            guarantee of a search.

        Notes
        -----
        The distribution function is taken in double precision where that decides, and in 300-bit arithmetic where
        the draw falls within ``rounding`` of a step; the distribution of the result differs from the stated one by less
        than 2^{-200}.
        """
        from secrets import SystemRandom

        return draw(self, self._steps, (SystemRandom() if rng is None else rng).getrandbits(256))

    @cached_property
    def _steps(self) -> Steps:
        """Table for drawing K. It depends on the distribution alone, so a kept table reveals no draw."""
        return steps_of(self)

    def at_least_one(self) -> CountDistribution:
        """This distribution given K ≥ 1."""
        return self if self.lowest >= 1 else Conditioned(distribution=self)

    def capped(self, most: int) -> CountDistribution:
        """This distribution given K ≤ ``most`` (a hard limit on work; replaces Papernot & Steinke 2022, Lemma 22)."""
        require_whole(max(self.lowest, 1), most=most)
        return self if self.highest <= most else Capped(distribution=self, most=int(most))


@dataclass(frozen=True)
class Finite(CountDistribution):
    """Distribution on 0 … m given by its probabilities; f is a polynomial with nonnegative coefficients."""

    @property
    @abstractmethod
    def _probabilities(self) -> Array:
        """P[K = 0], P[K = 1], …"""

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

    def _polynomial(self, coefficients: Array, z: Array) -> Array:
        """Horner's rule; no term is negative, so nothing cancels."""
        value = np.zeros_like(z)
        for coefficient in coefficients[::-1]:
            value = value * z + coefficient
        return value

    def log_slope(self, z: Array, u: Array) -> Array:
        k = np.arange(self._probabilities.size)
        with np.errstate(divide="ignore", under="ignore"):
            return np.log(self._polynomial((k * self._probabilities)[1:], z))

    def log_curvature(self, z: Array, u: Array) -> Array:
        k = np.arange(self._probabilities.size)
        with np.errstate(divide="ignore", under="ignore"):
            return np.log(self._polynomial((k * (k - 1) * self._probabilities)[2:], z))

    def generating(self, z: Array, u: Array) -> Array:
        with np.errstate(under="ignore"):
            return self._polynomial(self._probabilities, z)


@dataclass(frozen=True)
class Capped(Finite):
    """Distribution given K ≤ most."""

    distribution: CountDistribution
    most: int

    def _check(self) -> None:
        check_kind("distribution", self.distribution, CountDistribution, "a distribution of K, e.g. Geometric(10),")
        require_whole(max(self.distribution.lowest, 1), most=self.most)
        require(self.most <= MOST_TERMS, f"a cap of at most {MOST_TERMS}", most=self.most)
        with mpmath.workprec(160):
            require(self.distribution.survival(self.most) < 1, "a cap that K can stay under", most=self.most)

    @cached_property
    def _probabilities(self) -> Array:
        values = self.distribution.pmf(np.arange(self.most + 1))
        return np.asarray(values / math.fsum(values))

    @property
    def rounding(self) -> float:
        with mpmath.workprec(160):
            return self.distribution.rounding / float(1 - self.distribution.survival(self.most))

    def survival(self, k: int) -> Any:
        beyond = self.distribution.survival(self.most)
        return (self.distribution.survival(k) - beyond) / (1 - beyond) if k < self.most else mpmath.mpf(0)


@dataclass(frozen=True)
class Conditioned(CountDistribution):
    """Distribution given K ≥ 1: (f(z) − f(0)) / (1 − f(0))."""

    distribution: CountDistribution
    _scale: float = field(init=False, repr=False, compare=False, default=1.0)

    def _check(self) -> None:
        check_kind("distribution", self.distribution, CountDistribution, "a distribution of K, e.g. Poisson(10),")
        with mpmath.workprec(160):
            object.__setattr__(self, "_scale", float(self.distribution.survival(0)))

    @property
    def mean(self) -> float:
        return float(self.distribution.mean / self._scale)

    @property
    def highest(self) -> float:
        return self.distribution.highest

    @property
    def rounding(self) -> float:
        return self.distribution.rounding / self._scale

    def log_pmf(self, k: Array) -> Array:
        return self.distribution.log_pmf(k) - math.log(self._scale)

    def log_slope(self, z: Array, u: Array) -> Array:
        return self.distribution.log_slope(z, u) - math.log(self._scale)

    def log_curvature(self, z: Array, u: Array) -> Array:
        return self.distribution.log_curvature(z, u) - math.log(self._scale)

    def generating(self, z: Array, u: Array) -> Array:
        return 1.0 - (1.0 - self.distribution.generating(z, u)) / self._scale

    def survival(self, k: int) -> Any:
        return self.distribution.survival(max(k, 0)) / self.distribution.survival(0)
