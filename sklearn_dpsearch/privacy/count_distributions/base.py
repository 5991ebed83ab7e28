r"""Distributions of the number of runs K, independent of the data.

The distribution of K enters the privacy bound only through the slope f'(z) = E[K z^{K−1}] of its generating function
f(z) = E[z^K]. Near z = 1 what matters is 1 − z, far below the spacing of doubles there; so the numerics work with z and
its complement u = 1 − z side by side (``log_slope``, ``log_curvature``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import numpy.typing as npt
from scipy import integrate

from .._cached_property import cached_property, fields_alone, set_fields
from .._checks import as_numbers, check_kind, plain_number, plain_numbers, require, require_whole
from .._types import Array, ArrayLike
from .inverse_cdf import RandomBits, Steps, draw, quantile, steps_of

#: Terms of a finite distribution that are evaluated one by one; more would take minutes.
MOST_TERMS = 10**6


@dataclass(frozen=True)
class CountDistribution(ABC):
    """Distribution of K, the number of runs of a search."""

    if TYPE_CHECKING:  # a field of some distributions

        @property
        def mean(self) -> float:
            """E K."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise ``ValueError`` for parameters outside the domain."""

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

    __getstate__, __setstate__ = fields_alone, set_fields

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
            log_values: Array = np.log(self._probabilities[k.astype(int)])
            return log_values

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
