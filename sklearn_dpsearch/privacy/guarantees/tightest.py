"""Smallest of several bounds for one mechanism, with its name."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ...errors import PrivacyError
from .._checks import cached_property
from .._types import Array, ArrayLike
from ..numerics.loss_distribution import DominatingPair
from .base import LARGEST_EPSILON, Guarantee, discretized, smallest_epsilon
from .pure import PureDP

#: Points at which the smallest of several profiles is evaluated in compositions.
POINTS = 1000
#: Values of δ at which bounds are compared.
COMPARED = (0.1, 1e-3, 1e-6, 1e-12)


@dataclass(frozen=True, kw_only=True)
class SmallestOf(Guarantee):
    """A guarantee with several valid ``bounds``: at each ε the smallest counts."""

    #: True if the pair is below every bound, not only the first.
    pair_of_all: ClassVar[bool] = True

    @cached_property
    def bounds(self) -> dict[str, Guarantee]:
        """Every bound that applies, by name."""
        return {name: bound for name, bound in self._bounds().items() if bound is not None}

    @abstractmethod
    def _bounds(self) -> dict[str, Guarantee | None]:
        """Bounds by name, the best of equal ones first; None where one does not apply."""

    def tightest(self, delta: float) -> str:
        """Name of the bound that gives ``epsilon_at(delta)``: the first of those that agree to a billionth."""
        values = {name: float(bound.epsilon_at(delta)) for name, bound in self.bounds.items()}
        least = min(values.values())
        return next(name for name, value in values.items() if value <= least * (1.0 + 2e-9) + 2e-10)

    @property
    def pure_epsilon(self) -> float | None:
        pure = [bound.pure_epsilon for bound in self.bounds.values() if bound.pure_epsilon is not None]
        return min(pure) if pure else None

    @property
    def has_renyi(self) -> bool:
        return any(bound.has_renyi for bound in self.bounds.values())

    def renyi(self, order: ArrayLike) -> Array:
        """The smallest of the bounds' Rényi curves."""
        curves = [bound.renyi(order) for bound in self.bounds.values() if bound.has_renyi]
        if not curves:
            raise PrivacyError(f"{type(self).__name__} has no Rényi curve here. Use delta_at or epsilon_at.")
        return np.asarray(np.min(curves, axis=0))

    def _profile(self, epsilon: Array) -> Array:
        return self._smallest([bound._profile(epsilon) for bound in self.bounds.values()], epsilon)

    def _far_profile(self, epsilon: Array) -> Array:
        return self._smallest([bound._far_profile(epsilon) for bound in self.bounds.values()], epsilon)

    def _smallest(self, profiles: list[Array], epsilon: Array) -> Array:
        values: Array = np.min(profiles, axis=0)
        return np.minimum(values, self.pair.delta_at(epsilon)) if self._cross else values

    def _epsilon(self, delta: float) -> float:
        least = min(bound._epsilon(delta) for bound in self.bounds.values())
        if delta == 0 or not self._cross:
            return least
        return min(least, smallest_epsilon(self.pair.delta_at, delta))

    @cached_property
    def _cross(self) -> bool:
        """True if several bounds are each the smallest somewhere.

        A true profile is convex in e^ε, so it is also below the chords between two bounds. The pair has these chords,
        and this guarantee uses them too: otherwise a composition of the pair could seem to lose less.
        """
        return self._bounds_cross()

    def _bounds_cross(self) -> bool:
        compared = self._in_pair
        if len(compared) == 1:
            return False
        _, *others = compared
        places = np.unique([min(bound.epsilon_at(delta), LARGEST_EPSILON) for bound in others for delta in COMPARED])
        values = np.array([bound._profile(places) for bound in compared])
        return not bool(np.any(np.all(values <= values.min(axis=0) * (1.0 + 1e-10), axis=1)))

    @property
    def _in_pair(self) -> list[Guarantee]:
        """The bounds that make up the pair."""
        bounds = list(self.bounds.values())
        return bounds if self.pair_of_all else bounds[:1]

    def _pair(self) -> DominatingPair:
        bounds = self._in_pair
        if len(bounds) == 1:
            return bounds[0].pair
        alike = all(bound.pair.removed is bound.pair.added for bound in bounds)
        removed, added = (partial(_smallest_in_direction, bounds, name) for name in ("removed", "added"))
        return discretized(removed, None if alike else added, POINTS, adaptive=True)


def only_largest_loss(guarantee: Guarantee) -> PureDP | None:
    """Pure guarantee with the largest loss of another, if it is known: smaller where a profile lacks digits."""
    largest = guarantee.pure_epsilon
    return None if largest is None else PureDP(epsilon=largest, neighboring=guarantee.neighboring)


def _smallest_in_direction(bounds: list[Guarantee], direction: str, epsilon: Array) -> Array:
    """The smallest profile for one order of the neighbours."""
    both = [np.minimum(bound._profile(epsilon), getattr(bound.pair, direction).delta_at(epsilon)) for bound in bounds]
    return np.asarray(np.min(both, axis=0))
