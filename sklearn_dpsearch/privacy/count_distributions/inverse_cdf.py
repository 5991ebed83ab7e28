"""Inversion of distribution functions on the integers: in doubles where these suffice, else with many digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeAlias

import mpmath
import numpy as np

from .._types import Array
from ..numerics.inversion import bracket, narrowed, whole_mean, within

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
