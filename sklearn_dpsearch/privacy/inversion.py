"""Inversion of distribution functions on the integers: doubles where they decide, many digits where they do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import mpmath
import numpy as np

from ._types import Array

TABLE = 2**14


class RandomBits(Protocol):
    """A source of random bits, such as ``random.SystemRandom()``."""

    def getrandbits(self, k: int, /) -> int: ...


class Invertible(Protocol):
    def __hash__(self) -> int: ...
    @property
    def lowest(self) -> int: ...
    @property
    def highest(self) -> float: ...
    @property
    def mean(self) -> float: ...
    def pmf(self, k: Any) -> Any: ...
    def survival(self, k: int) -> Any: ...


def invert(law: Invertible, probability: Any, margin: float) -> int:
    """Smallest k with P[K ≤ k] ≥ ``probability`` (an ``mpmath`` number in the working precision).

    The table of double-precision sums decides if the probability is further than ``margin`` from both
    neighbouring steps; with margin 0 it only says where to begin.
    """
    first, steps = _table(law)
    at = float(probability)
    i = int(np.searchsorted(steps, at))
    below = steps[i - 1] if i > 0 else -np.inf if first == law.lowest else at
    if margin > 0 and i < steps.size and min(at - below, steps[i] - at) > margin:
        return first + i
    return _search(law, 1 - probability, first + i)


@lru_cache(maxsize=64)
def _table(law: Invertible) -> tuple[int, Array]:
    """P[K ≤ k] for a window of k that starts at the lowest K or, for a large mean, below it."""
    first = law.lowest if law.mean < TABLE else max(law.lowest, int(law.mean) - TABLE // 2)
    last = int(min(law.highest, first + TABLE))
    before = 0.0 if first == law.lowest else 1.0 - float(law.survival(first - 1))
    return first, before + np.cumsum(law.pmf(np.arange(first, last + 1)))


def _search(law: Invertible, tail: Any, start: int) -> int:
    """Smallest k with P[K > k] ≤ ``tail``, by doubling steps away from ``start`` and bisection."""
    step, low = 1, max(start - 1, law.lowest - 1)
    while low >= law.lowest and law.survival(low) <= tail:
        low, step = max(low - step, law.lowest - 1), 2 * step
    high, step = low + 1, 1
    while law.survival(high) > tail:
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law.survival(middle) <= tail else (middle, high)
    return int(high)


def light_tail(k: int, mean: float, probability: Callable[[int], Any], ratio: Callable[[int], Any]) -> Any:
    """P[K > k] of a unimodal law with light tails, from P[K = j] and P[K = j+1] / P[K = j].

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
