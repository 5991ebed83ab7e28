"""Bounded range: what the exponential mechanism promises beyond pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._checks import require
from .._types import Array, ArrayLike
from ..numerics.curves import LARGEST_LOSS, randomized_response_renyi
from ..numerics.loss_distribution import ROUNDING, DominatingPair, connect_the_dots, symmetric
from .base import Guarantee
from .values import PureDP

#: Points of the profile through which a dominating pair is drawn.
POINTS = 4000


@dataclass(frozen=True, kw_only=True)
class BoundedRangeDP(Guarantee):
    r"""ε-bounded range: between two neighbours all privacy losses lie in one interval of length ε.

    The exponential mechanism has it (Durfee & Rogers 2019). It is ε-DP, and better than that at δ > 0:
    δ(ε') = (e^{ε/2} − e^{ε'/2})²/(e^ε − 1) for −ε ≤ ε' ≤ ε, the worst case of losses t and t − ε, and Rényi divergence
    at most α·ε²/8 (docs/theory/noisy_max.md).

    Parameters
    ----------
    epsilon : float
        Length of the interval, ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        How neighbours differ.

    Examples
    --------
    >>> round(BoundedRangeDP(epsilon=1.0).delta_at(0.0), 3), round(PureDP(epsilon=1.0).delta_at(0.0), 3)
    (0.245, 0.462)
    """

    epsilon: float

    def _check(self) -> None:
        require(0 <= self.epsilon < np.inf, "0 <= epsilon < inf", epsilon=self.epsilon)

    @property
    def pure_epsilon(self) -> float:
        return float(self.epsilon)

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """α·ε²/8 (Cesar & Rogers 2021), or that of any ε-DP mechanism."""
        order = np.asarray(order, dtype=float)
        curve: Array = np.minimum(order * self.epsilon**2 / 8, randomized_response_renyi(self.epsilon, order))
        return curve

    def _profile(self, epsilon: Array) -> Array:
        if self.epsilon == 0:
            return np.zeros_like(epsilon)
        if self.epsilon > LARGEST_LOSS:
            return np.where(epsilon >= self.epsilon, 0.0, 1.0)
        values = np.expm1(np.minimum(0.5 * (epsilon - self.epsilon), 0.0)) ** 2 / -np.expm1(-self.epsilon)
        delta: Array = np.minimum(values * (1.0 + ROUNDING), 1.0)
        return delta

    def _pair(self) -> DominatingPair:
        if not 0 < self.epsilon <= LARGEST_LOSS:
            return PureDP(epsilon=self.epsilon).pair
        grid = np.linspace(0.0, self.epsilon, POINTS + 1)
        values = self._profile(grid)
        return symmetric(connect_the_dots(grid, values, values))
