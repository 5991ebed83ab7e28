"""Poisson, binomial, fixed and any finite distributions of K; the meaning of a bare number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from scipy import special

from .._checks import Array, cached_property, plain_number, require, require_in, require_whole
from .base import MOST_TERMS, CountDistribution, Finite, successive_probabilities
from .negative_binomial import Geometric


@dataclass(frozen=True)
class Poisson(CountDistribution):
    """Poisson distribution on 0, 1, 2, …; searches use it given K ≥ 1.

    Parameters
    ----------
    mean : float
        E K > 0, before K ≥ 1 is required.

    Examples
    --------
    >>> round(Poisson(mean=10).at_least_one().mean, 4)
    10.0005
    """

    mean: float
    theorems = ("Theorem 6", "PS22 Theorem 6", "PS22 Corollary 21")
    lowest = 0

    def _check(self) -> None:
        require_in("(0, inf)", mean=self.mean)

    def log_pmf(self, k: Array) -> Array:
        return np.asarray(k * math.log(self.mean) - self.mean - special.gammaln(k + 1))

    def log_slope(self, z: Array, u: Array) -> Array:
        return math.log(self.mean) - self.mean * u

    def log_curvature(self, z: Array, u: Array) -> Array:
        return 2 * math.log(self.mean) - self.mean * u

    def generating(self, z: Array, u: Array) -> Array:
        return np.exp(-self.mean * u)

    def exact_pmf(self) -> Iterator[Any]:
        mu = mpmath.mpf(self.mean)
        return successive_probabilities(mpmath.exp(-mu), 0, lambda j: mu / (j + 1))


@dataclass(frozen=True)
class _Trials(CountDistribution):
    """Distribution of K as successes of n trials: f(z) = (1 − p + pz)^n."""

    if TYPE_CHECKING:  # fields of one distribution

        @property
        def n(self) -> int: ...
        @property
        def p(self) -> float: ...

    @property
    def mean(self) -> float:
        """n·p."""
        return float(self.n * self.p)

    @property
    def lowest(self) -> int:
        return 0 if self.p < 1 else self.n

    @property
    def highest(self) -> float:
        return self.n

    def log_pmf(self, k: Array) -> Array:
        n, p = self.n, self.p
        choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        return np.asarray(choose + special.xlogy(k, p) + special.xlog1py(n - k, -p))

    def _log_power(self, trials: int, z: Array, u: Array) -> Array:
        """Logarithm of (1 − p + pz)^trials; 0 of no trials."""
        p = self.p
        if trials == 0:
            return np.zeros_like(u)
        with np.errstate(divide="ignore"):
            near_one = np.log1p(-p * np.minimum(u, 0.5))
            return trials * np.where(u < 0.5, near_one, np.log(1.0 - p + p * z))

    def log_slope(self, z: Array, u: Array) -> Array:
        return math.log(self.mean) + self._log_power(self.n - 1, z, u)

    def log_curvature(self, z: Array, u: Array) -> Array:
        if self.n == 1:
            return np.full_like(u, -np.inf)
        return math.log(self.mean * (self.n - 1) * self.p) + self._log_power(self.n - 2, z, u)

    def generating(self, z: Array, u: Array) -> Array:
        return np.exp(self._log_power(self.n, z, u))

    def exact_pmf(self) -> Iterator[Any]:
        n, p = self.n, self.p
        if p == 1:
            return iter([mpmath.mpf(1)])
        exact, none = mpmath.mpf(p), 1 - mpmath.mpf(p)
        return successive_probabilities(none**n, 0, lambda j: (n - j) * exact / ((j + 1) * none))


@dataclass(frozen=True)
class Binomial(_Trials):
    """Binomial distribution: n candidates, each run with probability p. The work has a hard cap n.

    Parameters
    ----------
    n : int
        Number of candidates, ≥ 1.
    p : float
        Probability of each to be run.
    """

    n: int
    p: float
    theorems = ("Theorem 6", "KRW24 Theorem 5.7")

    def _check(self) -> None:
        require_whole(1, n=self.n)
        require_in("(0, 1]", p=self.p)


@dataclass(frozen=True)
class Fixed(_Trials):
    """Fixed number k of runs (naive repetition).

    Parameters
    ----------
    k : int
        Number of runs, ≥ 1.
    """

    k: int
    theorems = ("Theorem 6", "composition")
    #: Probability of success.
    p = 1.0

    def _check(self) -> None:
        require_whole(1, k=self.k)

    @property
    def n(self) -> int:
        """Number of trials."""
        return int(self.k)


@dataclass(frozen=True)
class FromPMF(Finite):
    """Distribution of K from a list of probabilities.

    Parameters
    ----------
    probabilities : sequence of float
        P[K = 0], P[K = 1], …; nonnegative, summing to 1 within 1e-9 (then scaled to 1).

    Examples
    --------
    >>> FromPMF([0.0, 0.5, 0.5]).mean
    1.5
    """

    probabilities: tuple[float, ...]
    theorems = ("Theorem 6",)

    def __init__(self, probabilities: Sequence[float]) -> None:
        values = np.ravel(np.asarray(probabilities, dtype=object))
        numbers = tuple(float(plain_number("probabilities", value)) for value in values)
        object.__setattr__(self, "probabilities", numbers)
        self.__post_init__()

    def _check(self) -> None:
        values = np.asarray(self.probabilities)
        valid = values.size >= 2 and values.size <= MOST_TERMS
        require(valid, f"2 to {MOST_TERMS} probabilities", number=values.size)
        valid = bool(np.all(values >= 0)) and abs(values.sum() - 1) < 1e-9
        require(valid, "probabilities >= 0 with sum 1", total=values.sum())
        require(values[1:].sum() > 0, "P[K >= 1] > 0", probabilities=self.probabilities[:3])

    @cached_property
    def _probabilities(self) -> Array:
        values = np.trim_zeros(np.asarray(self.probabilities), "b")
        return values / math.fsum(values)

    def exact_pmf(self) -> Iterator[Any]:
        exact = [mpmath.mpf(p) for p in self.probabilities[self.lowest :]]
        total = mpmath.fsum(exact)
        return (probability / total for probability in exact)


def as_count_distribution(count: CountDistribution | float) -> CountDistribution:
    """Distribution of K; a number stands for ``Geometric(mean)``.

    That is the best at equal (ε, δ) for most budgets.
    """
    if isinstance(count, CountDistribution):
        return count
    if isinstance(count, (bool, np.bool_)) or not isinstance(count, Real):
        name = f"the class {count.__name__}" if isinstance(count, type) else repr(count)
        needed = "a distribution or its mean is needed, e.g. Geometric(10) or 10."
        raise TypeError(f"Found {name} as the distribution of K, the number of runs; {needed}")
    return Geometric(mean=float(count))
