"""Laws of K with finite support, and laws given that K is at least 1 or at most a cap."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from ._types import Array
from .count_law import CountLaw
from .guarantee import require

#: Terms of a finite law that are evaluated one by one; more would take minutes.
MOST_TERMS = 10**6


@dataclass(frozen=True)
class _Finite(CountLaw):
    """A law on 0 … m given by its probabilities; f is a polynomial with nonnegative coefficients."""

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
        for one in coefficients[::-1]:
            value = value * z + one
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
class FromPMF(_Finite):
    """Any law with finite support.

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

    def __init__(self, probabilities: Sequence[float]) -> None:
        object.__setattr__(self, "probabilities", tuple(float(p) for p in np.ravel(probabilities)))
        self.__post_init__()

    def _check(self) -> None:
        values = np.asarray(self.probabilities)
        require(values.size >= 2 and values.size <= MOST_TERMS, f"2 to {MOST_TERMS} probabilities", number=values.size)
        require(
            bool(np.all(values >= 0)) and abs(values.sum() - 1) < 1e-9,
            "probabilities >= 0 with sum 1",
            total=values.sum(),
        )
        require(values[1:].sum() > 0, "P[K >= 1] > 0", probabilities=self.probabilities[:3])

    @cached_property
    def _probabilities(self) -> Array:
        values = np.trim_zeros(np.asarray(self.probabilities), "b")
        return values / math.fsum(values)

    def survival(self, k: int) -> Any:
        exact = [mpmath.mpf(p) for p in self.probabilities]
        return mpmath.fsum(exact[max(k + 1, 0) :]) / mpmath.fsum(exact)


@dataclass(frozen=True)
class Capped(_Finite):
    """A law given K ≤ most."""

    law: CountLaw
    most: int

    def _check(self) -> None:
        require(self.most <= MOST_TERMS, f"a cap of at most {MOST_TERMS}", most=self.most)
        with mpmath.workprec(160):
            require(self.law.survival(self.most) < 1, "a cap that K can stay under", most=self.most)

    @cached_property
    def _probabilities(self) -> Array:
        values = self.law.pmf(np.arange(self.most + 1))
        return np.asarray(values / math.fsum(values))

    @property
    def rounding(self) -> float:
        with mpmath.workprec(160):
            return self.law.rounding / float(1 - self.law.survival(self.most))

    def survival(self, k: int) -> Any:
        beyond = self.law.survival(self.most)
        return (self.law.survival(k) - beyond) / (1 - beyond) if k < self.most else mpmath.mpf(0)


@dataclass(frozen=True)
class Conditioned(CountLaw):
    """A law given K ≥ 1: (f(z) − f(0)) / (1 − f(0))."""

    law: CountLaw
    _scale: float = field(init=False, repr=False, compare=False, default=1.0)

    def _check(self) -> None:
        with mpmath.workprec(160):
            object.__setattr__(self, "_scale", float(self.law.survival(0)))

    @property
    def mean(self) -> float:
        return float(self.law.mean / self._scale)

    @property
    def highest(self) -> float:
        return self.law.highest

    @property
    def rounding(self) -> float:
        return self.law.rounding / self._scale

    def log_pmf(self, k: Array) -> Array:
        return self.law.log_pmf(k) - math.log(self._scale)

    def log_slope(self, z: Array, u: Array) -> Array:
        return self.law.log_slope(z, u) - math.log(self._scale)

    def log_curvature(self, z: Array, u: Array) -> Array:
        return self.law.log_curvature(z, u) - math.log(self._scale)

    def generating(self, z: Array, u: Array) -> Array:
        return 1.0 - (1.0 - self.law.generating(z, u)) / self._scale

    def survival(self, k: int) -> Any:
        return self.law.survival(max(k, 0)) / self.law.survival(0)
