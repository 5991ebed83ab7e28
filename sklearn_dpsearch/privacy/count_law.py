r"""Laws of the number of runs K, independent of the data.

A law enters the privacy bound only through the slope f'(z) = E[K z^{K−1}] of its probability generating function
f(z) = E[z^K]. Near z = 1 what matters is 1 − z, far below the spacing of doubles there; so the numerics work with z and
its complement u = 1 − z side by side (``log_slope``, ``log_curvature``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate

from ._types import Array, ArrayLike
from .guarantee import plain_numbers, require, without_numpy
from .inversion import RandomBits, Steps, draw, quantile, steps_of


@dataclass(frozen=True)
class CountLaw(ABC):
    """Law of the number of runs of a search."""

    if TYPE_CHECKING:  # some laws have it as a field

        @property
        def mean(self) -> float:
            """E K."""

    def __post_init__(self) -> None:
        without_numpy(self)
        plain_numbers(self)
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise ``ValueError`` for parameters outside the domain."""

    # What a law has to know about itself --------------------------------------------------------------------------

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
        """What sums of ``pmf`` in double precision may be wrong by."""
        return 1e-9

    # What follows from it -----------------------------------------------------------------------------------------

    def pmf(self, k: ArrayLike) -> Any:
        """P[K = k] for integers k (scalar or array)."""
        k = np.asarray(k)
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
        z = np.asarray(z, dtype=float)
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
        require(0 <= share <= 1, "0 <= share <= 1", share=share)
        return float(1.0 - self.generating(np.array(1.0 - share), np.array(share)))

    def quantile(self, p: float) -> int:
        """Smallest k with P[K ≤ k] ≥ p."""
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
        the draw falls within ``rounding`` of a step; the law of the result differs from the stated one by less than
        2^{-200}.
        """
        from secrets import SystemRandom

        return draw(self, self._steps, (SystemRandom() if rng is None else rng).getrandbits(256))

    @cached_property
    def _steps(self) -> Steps:
        """What drawing looks up; it follows from the law alone, so that keeping it tells nothing of what was drawn."""
        return steps_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Fields only: what was computed from them is computed again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def at_least_one(self) -> CountLaw:
        """This law given K ≥ 1."""
        from .restricted_laws import Conditioned

        return self if self.lowest >= 1 else Conditioned(law=self)

    def capped(self, most: int) -> CountLaw:
        """This law given K ≤ ``most`` (a hard limit on the work; replaces Papernot & Steinke 2022, Lemma 22)."""
        require(
            float(most).is_integer() and most >= max(self.lowest, 1),
            f"an integer most >= {max(self.lowest, 1)}",
            most=most,
        )
        from .restricted_laws import Capped

        return self if self.highest <= most else Capped(law=self, most=int(most))
