"""The bound of Theorem 6 at a few ε, and chords between them: profiles are convex in e^ε."""

from __future__ import annotations

import math

import numpy as np

from .._checks import cached_property
from .._types import Array
from ..count_distributions.base import Capped, Conditioned, CountDistribution
from ..count_distributions.distributions import Binomial, Fixed, FromPMF, Poisson
from ..guarantees.base import smallest_epsilon
from ..numerics.basic_mechanisms import LARGEST_LOSS
from .prices import Ground, Room, best_room, bound_by
from .testing_region import SLACK

#: Distributions of K for which Theorem 1 loses much if there are many runs.
LIGHT = (Poisson, Binomial, Fixed, FromPMF)
#: The bound is computed where Theorem 1 reaches e^{−k·STEP}, for k from FIRST to LAST.
STEP, FIRST, LAST = 0.25, 4, 128
#: Number of k that share one slope.
SHARED = 4
#: k ↦ factor on δ from which prices are worth their time: in a pair, and (a stronger factor) everywhere.
PAIR, EVERYWHERE = {28: 0.75, 56: 0.75}, {56: 0.6}
#: At these k prices are tested; they gain if the bound is below this share of δ.
ENDS, NOTHING = range(16, LAST, 16), 0.98
#: Least mean of K: below, Theorem 1 is within 0.3 % of a certificate.
FEWEST = 8.0


def light_tailed(count: CountDistribution) -> bool:
    """Return whether prices may pay: many runs, and a distribution with a tail no heavier than a Poisson's."""
    mean = count.mean
    while isinstance(count, (Capped, Conditioned)):
        count = count.distribution
    return isinstance(count, LIGHT) and mean >= FEWEST


class Anchors:
    """Bounds at a few ε for one direction, computed on first use. Theorem 1 determines the ε."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._epsilons: dict[int, float] = {}
        self._deltas: dict[int, float] = {}
        self._rooms: dict[int, Room] = {}

    def epsilon(self, k: int) -> float:
        """ε at which Theorem 1 reaches δ = e^{−k·STEP}, in this direction."""
        if k not in self._epsilons:
            self._epsilons[k] = smallest_epsilon(self.ground.unpriced, math.exp(-k * STEP))
        return self._epsilons[k]

    def delta(self, k: int) -> float:
        """The bound there, and 1 if there is no such ε."""
        if k < FIRST or k > LAST or not self.epsilon(k) <= LARGEST_LOSS:
            return 1.0
        return self._priced(k) if k < self.end else math.exp(-k * STEP)

    def _priced(self, k: int) -> float:
        if k not in self._deltas:
            priced = bound_by(self._room(SHARED * (k // SHARED)), self.epsilon(k))
            self._deltas[k] = min(priced, math.exp(-k * STEP))
        return self._deltas[k]

    @cached_property
    def end(self) -> int:
        """First k without a gain by prices, from which Theorem 1 serves: prices gain less at smaller δ."""
        seen = (k for k in ENDS if self.epsilon(k) <= LARGEST_LOSS)
        return next((k for k in seen if self._priced(k) > NOTHING * math.exp(-k * STEP)), LAST + 1)

    def _room(self, k: int) -> Room:
        if k not in self._rooms:
            self._rooms[k] = best_room(self.ground, self.epsilon(k))
        return self._rooms[k]

    def gains(self, factors: dict[int, float]) -> bool:
        """Return whether prices reduce δ by such a factor at one of the given k."""
        return any(self.delta(k) < factor * math.exp(-k * STEP) for k, factor in factors.items())

    def profile(self, epsilon: Array, every: int = 1) -> Array:
        """Chords in e^ε between the bounds, or between one in ``every``; 1 where there are none."""
        unpriced = np.maximum(self.ground.unpriced(epsilon), 1e-300)
        steps = np.minimum(-np.log(unpriced) // STEP, LAST).astype(int) // every * every
        return np.array([self._chord(float(e), int(k), every) for e, k in zip(epsilon, steps)])

    def _chord(self, epsilon: float, k: int, every: int) -> float:
        while k >= FIRST and epsilon < self.epsilon(k):  # both are rounded; left of its start a chord is no bound
            k -= every
        if k < FIRST:
            return 1.0
        if k >= LAST or not np.isfinite(self.epsilon(k + every)):
            return self.delta(k)
        low, high, start, end = self.delta(k), self.delta(k + every), self.epsilon(k), self.epsilon(k + every)
        share = min(math.expm1(epsilon - start) / math.expm1(end - start), 1.0)
        return (low + (min(high, low) - low) * share) * (1.0 + SLACK)
