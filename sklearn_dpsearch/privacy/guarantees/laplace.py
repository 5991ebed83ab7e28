"""Laplace noise: what it promises beyond pure differential privacy."""

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
class LaplaceDP(Guarantee):
    r"""No easier to tell apart than Laplace noise with scale 1 around 0 and around ε.

    Independent Laplace noise on every number of a statistic has it, with ε the l1-sensitivity ÷ the scale
    (docs/theory/composition.md, "Laplace noise"). It is ε-DP, and better than that at δ > 0:
    δ(ε') = 1 − e^{(ε' − ε)/2} for 0 ≤ ε' ≤ ε.

    Parameters
    ----------
    epsilon : float
        l1-sensitivity ÷ scale of the noise, ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        How neighbours differ.

    Examples
    --------
    >>> round(LaplaceDP(epsilon=1.0).delta_at(0.0), 3), round(PureDP(epsilon=1.0).delta_at(0.0), 3)
    (0.393, 0.462)
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
        """log( α/(2α−1)·e^{(α−1)ε} + (α−1)/(2α−1)·e^{−αε} ) / (α − 1) (Mironov 2017, Proposition 6), at most ε."""
        order = np.asarray(order, dtype=float)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            up = np.log(order / (2 * order - 1)) + (order - 1) * self.epsilon
            down = np.log((order - 1) / (2 * order - 1)) - order * self.epsilon
            allowance = ROUNDING * (1.0 + order * self.epsilon)
            curve = (np.logaddexp(up, down) + allowance) / (order - 1)
        pure = randomized_response_renyi(self.epsilon, order)
        smallest: Array = np.fmin(np.maximum(curve, 0.0), pure)
        return smallest

    def _profile(self, epsilon: Array) -> Array:
        values = -np.expm1(np.minimum(0.5 * (epsilon - self.epsilon), 0.0))
        delta: Array = np.minimum(values * (1.0 + ROUNDING), 1.0)
        return delta

    def _pair(self) -> DominatingPair:
        if not 0 < self.epsilon <= LARGEST_LOSS:
            return PureDP(epsilon=self.epsilon).pair
        grid = np.linspace(0.0, self.epsilon, POINTS + 1)
        values = self._profile(grid)
        return symmetric(connect_the_dots(grid, values, values))
