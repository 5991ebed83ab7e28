"""Negative binomial distributions of K, truncated at 0: geometric, logarithmic, any shape."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from scipy import optimize, special

from .._checks import Array, cached_property, require
from .base import CountDistribution, successive_probabilities

#: A smaller shape is 0 in all digits of doubles, and some of its products would have none.
SMALLEST_SHAPE = 1e-100


@dataclass(frozen=True)
class TruncatedNegativeBinomial(CountDistribution):
    r"""Truncated negative binomial D(η, γ) of Papernot & Steinke (2022), Definition 1.

    P[K = k] = C·(1−γ)^{k−1}·∏_{l=1}^{k−1} (l+η)/(l+1),  C = η(1−γ)/(γ^{−η} − 1),  f'(z) = C·(1 −
    (1−γ)z)^{−η−1}.
    """

    theorems = ("PS22 Corollary 3", "PS22 Lemma 20")

    @property
    @abstractmethod
    def eta(self) -> float:
        """Shape η of the negative binomial distribution."""

    def _check(self) -> None:
        # doubles for γ and logarithms of Γ hold nine digits of the probabilities up to there
        expected = "-1 < shape <= 1e4 (larger ones are nearly Poisson(…).at_least_one())"
        require(-1 < self.eta <= 1e4, expected, shape=self.eta)
        require(1 <= self.mean < math.inf, "1 <= mean < inf (K is at least 1)", mean=self.mean)
        reach = math.log(self.mean) / (1 + self.eta)  # about log(1/gamma)
        expected = "log(mean)/(1 + shape) < 650 (a lighter tail)"
        require(reach < 650, expected, mean=self.mean, shape=self.eta)

    @cached_property
    def gamma(self) -> float:
        """Parameter γ that gives the mean."""
        if self.mean == 1:
            return 1.0
        if self.eta == 1:
            return 1.0 / self.mean

        def excess(log_gamma: float) -> float:
            return self._log_first(log_gamma) - (1 + self.eta) * log_gamma - math.log(self.mean)

        low, high = -1.0, -1e-16
        if excess(high) > 0:  # rounding hides so small a mean - 1 = -(1+η)/2·log γ + …
            return math.exp(-2.0 * math.log(self.mean) / (1 + self.eta))
        while excess(low) < 0:
            low *= 2.0
        return math.exp(optimize.brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16))

    def _log_first(self, log_gamma: float) -> float:
        """Logarithm of P[K = 1], for a given log γ."""
        if log_gamma == 0:
            return 0.0
        log_failure = math.log(-math.expm1(log_gamma))
        if self.eta == 0:
            return log_failure - math.log(-log_gamma)
        x = -self.eta * log_gamma
        log_abs_expm1 = max(x, 0.0) + math.log(-math.expm1(-abs(x)))
        return log_failure + math.log(abs(self.eta)) - log_abs_expm1

    @property
    def _failure(self) -> float:
        """Probability 1 − γ, with all digits."""
        return 1.0 - self.gamma if self.gamma < 0.5 else -math.expm1(math.log(self.gamma))

    @cached_property
    def _log_c(self) -> float:
        """Logarithm of P[K = 1]."""
        return self._log_first(math.log(self.gamma))

    def _log_base(self, z: Array, u: Array) -> Array:
        """Logarithm of 1 − (1−γ)z = γ + (1−γ)u.

        It has all digits where γ is small and where it is nearly 1.
        """
        part = self._failure * z
        far = np.log(self.gamma + self._failure * u)
        return np.where(part < 0.5, np.log1p(-np.minimum(part, 0.5)), far)

    def log_pmf(self, k: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.where(k > 1, (k - 1) * np.log(self._failure), 0.0)
        return self._log_c + powers + _log_rising(k, self.eta)

    def log_slope(self, z: Array, u: Array) -> Array:
        return self._log_c - (1 + self.eta) * self._log_base(z, u)

    def log_curvature(self, z: Array, u: Array) -> Array:
        with np.errstate(divide="ignore"):
            constant = self._log_c + np.log((1 + self.eta) * self._failure)
        return np.asarray(constant - (2 + self.eta) * self._log_base(z, u))

    def generating(self, z: Array, u: Array) -> Array:
        if self.gamma == 1:
            return z
        if self.eta == 0:
            return self._log_base(z, u) / math.log(self.gamma)
        scale = math.expm1(-self.eta * math.log(self.gamma))
        return np.expm1(-self.eta * self._log_base(z, u)) / scale

    def shortfall(self, u: float) -> float:
        """Difference 1 − f(1 − u), exact for small u, and at least u, as K ≥ 1."""
        if self.gamma == 1:
            return u
        # of 1 − (1−γ)z, from z = 1 to z = 1 − u
        log_growth = math.log1p(self._failure / self.gamma * u)
        if self.eta == 0:
            return max(u, log_growth / -math.log(self.gamma))
        scale = math.expm1(self.eta * math.log(self.gamma))
        return max(u, math.expm1(-self.eta * log_growth) / scale)

    def exact_pmf(self) -> Iterator[Any]:
        if self.gamma == 1:
            return iter([mpmath.mpf(1)])
        gamma, eta = mpmath.mpf(self.gamma), mpmath.mpf(self.eta)
        scale = -mpmath.log(gamma) if eta == 0 else mpmath.expm1(-eta * mpmath.log(gamma)) / eta
        first, failure = (1 - gamma) / scale, 1 - gamma
        return successive_probabilities(first, 1, lambda j: failure * (j + eta) / (j + 1))


def _log_rising(k: Array, eta: float) -> Array:
    """Logarithm of ∏_{l=1}^{k−1} (l+η)/(l+1).

    It is log Γ(k+η)/(Γ(1+η)·Γ(k+1)), by Stirling's series where Γ would cancel.
    """
    k = np.asarray(k, dtype=float)
    small = np.minimum(k, 1e5)
    exact = special.gammaln(small + eta) - special.gammaln(small + 1)
    large = np.maximum(k, 1e5)
    a, b = large + eta, large + 1
    # log Γ(a) − log Γ(b) with a/b = 1 + (η − 1)/b
    series = (a - 0.5) * np.log1p((eta - 1) / b) + (eta - 1) * np.log(b)
    series = series - (eta - 1) + (1 / a - 1 / b) / 12
    return np.asarray(np.where(k <= 1e5, exact, series) - special.gammaln(1 + eta))


@dataclass(frozen=True)
class NegativeBinomial(TruncatedNegativeBinomial):
    """Truncated negative binomial distribution (Papernot & Steinke 2022, Definition 1).

    Parameters
    ----------
    shape : float
        −1 < η ≤ 1e4. 1 is geometric, 0 logarithmic.
    mean : float
        E K ≥ 1.

    Examples
    --------
    >>> distribution = NegativeBinomial(shape=-0.5, mean=10)
    >>> round(distribution.pmf(1), 4), distribution.quantile(0.5)
    (0.5263, 1)
    >>> round(distribution.pgf_slope(1.0), 6)
    10.0
    """

    shape: float
    mean: float

    @property
    def eta(self) -> float:
        return 0.0 if abs(self.shape) < SMALLEST_SHAPE else self.shape


@dataclass(frozen=True)
class Geometric(TruncatedNegativeBinomial):
    """Geometric distribution on 1, 2, …: after each run stop with probability 1/mean.

    Parameters
    ----------
    mean : float
        E K ≥ 1.

    Examples
    --------
    >>> round(Geometric(mean=10).pmf(1), 9), Geometric(mean=10).quantile(0.5)
    (0.1, 7)
    """

    mean: float
    eta = 1.0


@dataclass(frozen=True)
class Logarithmic(TruncatedNegativeBinomial):
    """Logarithmic distribution, P[K = k] ∝ (1 − γ)^k / k, k ≥ 1.

    Parameters
    ----------
    mean : float
        E K ≥ 1.
    """

    mean: float
    eta = 0.0
