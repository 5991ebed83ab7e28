"""A mechanism for which several bounds hold: the smallest of them is reported, and named."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from .._types import Array, ArrayLike
from ..errors import PrivacyError
from ..numerics.loss_distribution import DominatingPair
from .base import Guarantee, dots

#: Points at which the smallest of several profiles is evaluated when it is composed with something else.
POINTS = 4001


@dataclass(frozen=True, kw_only=True)
class SmallestOf(Guarantee):
    """A guarantee with several ``bounds``, each of them true: at each ε the smallest counts."""

    @cached_property
    def bounds(self) -> dict[str, Guarantee]:
        """Every bound that applies, by name."""
        return self._bounds()

    @abstractmethod
    def _bounds(self) -> dict[str, Guarantee]: ...

    def tightest(self, delta: float) -> str:
        """Name of the bound that gives ``epsilon_at(delta)``."""
        values = {name: bound.epsilon_at(delta) for name, bound in self.bounds.items()}
        return min(values, key=lambda name: float(values[name]))

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
        smallest: Array = np.min(curves, axis=0)
        return smallest

    def _profile(self, epsilon: Array) -> Array:
        values: Array = np.min([bound._profile(epsilon) for bound in self.bounds.values()], axis=0)
        return values

    def _epsilon(self, delta: float) -> float:
        return min(bound._epsilon(delta) for bound in self.bounds.values())

    def _pair(self) -> DominatingPair:
        bounds = list(self.bounds.values())
        if len(bounds) == 1:
            return bounds[0].pair
        removed, added = (partial(_smallest_in_direction, bounds, name) for name in ("removed", "added"))
        above = dots(removed, added, POINTS)
        if all(bound.pair.removed is bound.pair.added for bound in bounds):
            return DominatingPair(above, above)
        return DominatingPair(above, dots(added, removed, POINTS))


def _smallest_in_direction(bounds: list[Guarantee], direction: str, epsilon: Array) -> Array:
    """The smallest profile for one order of the neighbours."""
    both = [np.minimum(bound._profile(epsilon), getattr(bound.pair, direction).delta_at(epsilon)) for bound in bounds]
    values: Array = np.min(both, axis=0)
    return values
