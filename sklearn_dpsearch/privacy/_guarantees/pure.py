"""Guarantees with a largest loss: pure, and the tighter profiles of two mechanisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._checks import Array, ArrayLike, require_in
from .._numerics.basic_mechanisms import (
    LARGEST_LOSS,
    randomized_response,
    randomized_response_renyi,
)
from .._numerics.loss_distribution import ROUNDING, DominatingPair, pair_through, symmetric_pair
from .base import Guarantee

#: Points of a profile through which a dominating pair is drawn.
POINTS = 4000


@dataclass(frozen=True, kw_only=True)
class _LargestLoss(Guarantee):
    """Guarantee with losses of at most ε, whose pair is drawn through its profile."""

    epsilon: float

    def _check(self) -> None:
        require_in("[0, inf)", epsilon=self.epsilon)

    @property
    def pure_epsilon(self) -> float:
        return float(self.epsilon)

    def _pair(self) -> DominatingPair:
        if not 0 < self.epsilon <= LARGEST_LOSS:
            return PureDP(epsilon=self.epsilon).pair
        grid = np.linspace(0.0, self.epsilon, POINTS + 1)
        return pair_through(grid, self._profile(grid))


@dataclass(frozen=True, kw_only=True)
class PureDP(_LargestLoss):
    """ε-differential privacy: the loss never exceeds ε.

    It is dominated by randomised response.

    Parameters
    ----------
    epsilon : float
        The largest loss, ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.

    Examples
    --------
    >>> PureDP(epsilon=1.0).epsilon_at(0.0)
    1.0
    >>> round(PureDP(epsilon=1.0).epsilon_at(0.1), 3)
    0.853
    """

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence of randomised response, the worst case."""
        return randomized_response_renyi(self.epsilon, np.asarray(order, dtype=float))

    def _pair(self) -> DominatingPair:
        return symmetric_pair(randomized_response(self.epsilon, 0.0))


@dataclass(frozen=True, kw_only=True)
class LaplaceDP(_LargestLoss):
    r"""Guarantee of Laplace noise, dominated by noise of scale 1 around 0 and around ε.

    It holds for independent Laplace noise on every number of a statistic, with ε = l1-sensitivity ÷
    scale (docs/theory/composition.md, "Laplace noise"). It implies ε-DP, and at δ > 0 more than
    ε-DP: δ(ε') = 1 − e^{(ε' − ε)/2} for 0 ≤ ε' ≤ ε.

    Parameters
    ----------
    epsilon : float
        l1-sensitivity ÷ scale of the noise, ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.

    Examples
    --------
    >>> round(LaplaceDP(epsilon=1.0).delta_at(0.0), 3), round(PureDP(epsilon=1.0).delta_at(0.0), 3)
    (0.393, 0.462)
    """

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence of Laplace noise, at most ε.

        It is log( α/(2α−1)·e^{(α−1)ε} + (α−1)/(2α−1)·e^{−αε} ) / (α − 1) (Mironov 2017, Proposition
        6).
        """
        order = np.asarray(order, dtype=float)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            up = np.log(order / (2 * order - 1)) + (order - 1) * self.epsilon
            down = np.log((order - 1) / (2 * order - 1)) - order * self.epsilon
            allowance = ROUNDING * (1.0 + order * self.epsilon)
            curve = (np.logaddexp(up, down) + allowance) / (order - 1)
        pure = randomized_response_renyi(self.epsilon, order)
        return np.asarray(np.fmin(np.maximum(curve, 0.0), pure))

    def _profile(self, epsilon: Array) -> Array:
        values = -np.expm1(np.minimum(0.5 * (epsilon - self.epsilon), 0.0))
        return np.asarray(np.minimum(values * (1.0 + ROUNDING), 1.0))


@dataclass(frozen=True, kw_only=True)
class BoundedRangeDP(_LargestLoss):
    r"""ε-bounded range: between two neighbours all privacy losses lie in one interval of length ε.

    It holds for the exponential mechanism (Durfee & Rogers 2019). It implies ε-DP, and at δ > 0
    more than ε-DP: δ(ε') = (e^{ε/2} − e^{ε'/2})²/(e^ε − 1) for −ε ≤ ε' ≤ ε, the worst case of
    losses t and t − ε, and Rényi divergence at most α·ε²/8 (docs/theory/noisy_max.md).

    Parameters
    ----------
    epsilon : float
        Length of the interval, ≥ 0.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring relation.

    Examples
    --------
    >>> round(BoundedRangeDP(epsilon=1.0).delta_at(0.0), 3)
    0.245
    >>> round(PureDP(epsilon=1.0).delta_at(0.0), 3)
    0.462
    """

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence α·ε²/8 (Cesar & Rogers 2021), or that of any ε-DP mechanism."""
        order = np.asarray(order, dtype=float)
        pure = randomized_response_renyi(self.epsilon, order)
        return np.asarray(np.minimum(order * self.epsilon**2 / 8, pure))

    def _profile(self, epsilon: Array) -> Array:
        if self.epsilon == 0:
            return np.zeros_like(epsilon)
        if self.epsilon > LARGEST_LOSS:
            return np.where(epsilon >= self.epsilon, 0.0, 1.0)
        squared = np.expm1(np.minimum(0.5 * (epsilon - self.epsilon), 0.0)) ** 2
        values = squared / -np.expm1(-self.epsilon)
        return np.asarray(np.minimum(values * (1.0 + ROUNDING), 1.0))


def only_largest_loss(guarantee: Guarantee) -> PureDP | None:
    """Pure guarantee with the largest loss of another, if known.

    It is smaller where a profile lacks digits.
    """
    largest = guarantee.pure_epsilon
    return None if largest is None else PureDP(epsilon=largest, neighboring=guarantee.neighboring)
