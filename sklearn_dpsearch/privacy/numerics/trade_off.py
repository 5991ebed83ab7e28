r"""From a privacy profile to the error rates of attacks: the trade-off curve, from below.

An attack decides between two neighbours. Its false positive rate is α, its false negative rate β. If a mechanism is
(ε, δ)-DP in both orders of the neighbours, then

    β ≥ max( 0,  1 − δ − e^ε·α,  e^{−ε}·(1 − δ − α) )

(Wasserman & Zhou 2010; Dong, Roth & Su 2022, Proposition 2.4). Each point (ε, δ) of a profile is a line below the curve
f of the mechanism, and the largest of finitely many lines is below it too: no point in between is ever needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._cached_property import cached_property
from .._types import Array
from .basic_mechanisms import LARGEST_LOSS
from .inversion import bracket, geometric
from .loss_distribution import ROUNDING, lower_hull

#: δ and true positive rates below this count as 0: no lines are added for them.
NEGLIGIBLE = 1e-13
#: Lines are added until none lowers the true positive rate by more than this share of it.
TOLERANCE = 1e-4
#: Cells with which the search for lines begins, and how often they are halved at most.
CELLS, HALVINGS = 64, 24


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The largest of finitely many lines, and of their mirror images at α = β.

    Parameters
    ----------
    epsilons : ndarray of shape (n,)
        0 = ε_1 < … < ε_n.
    deltas : ndarray of shape (n,)
        Upper bounds on δ(ε), falling.
    """

    epsilons: Array
    deltas: Array

    def false_negative_rate(self, false_positive_rate: float) -> float:
        """f(α), rounded down."""
        alpha, c = false_positive_rate, np.exp(self.epsilons)
        steep = (1.0 - self.deltas) - c * alpha * (1.0 + ROUNDING)
        flat = (1.0 - self.deltas - alpha) / c
        return float(np.clip(max(np.max(steep), np.max(flat)) - ROUNDING, 0.0, 1.0))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """1 − f(α), rounded up, with all digits where it is small."""
        alpha, c = false_positive_rate, np.exp(self.epsilons)
        steep = self.deltas + c * alpha
        flat = 1.0 - (1.0 - self.deltas - alpha) / c + ROUNDING
        return float(min(min(np.min(steep), np.min(flat)) * (1.0 + ROUNDING), 1.0))

    def advantage(self) -> float:
        """max 1 − α − f(α), rounded up; δ(0), or less where the bounds on δ are not convex together.

        It is reached where α = f(α): a line and its mirror image meet at α = (1 − δ)/(1 + e^ε).
        """
        part = np.exp(-self.epsilons)
        values = (-np.expm1(-self.epsilons) + 2.0 * self.deltas * part) / (1.0 + part)
        return float(min(np.min(values) * (1.0 + ROUNDING), 1.0))

    @cached_property
    def corners(self) -> tuple[Array, Array]:
        """False and true positive rates at the corners of the curve with α ≤ β, from α = β on to α = 0."""
        kept = lower_hull(self.epsilons, self.deltas)
        epsilons, deltas = self.epsilons[kept], self.deltas[kept]
        alpha, power = line_intersections(epsilons, deltas)
        here = alpha + power < 1.0  # beyond α = β follows the mirror image
        middle = 0.5 * (1.0 - self.advantage())
        rates = np.concatenate([[middle], alpha[here], [0.0]])
        return rates, np.concatenate([[1.0 - middle], power[here], deltas[-1:]])

    def right_guess(self, prior: float) -> float:
        """max (1 − prior)·(1 − α) + prior·(1 − f(α)), rounded up: linear, so it is largest at a corner."""
        likely, rest = max(prior, 1.0 - prior), min(prior, 1.0 - prior)
        alpha, power = self.corners  # where α ≤ β, which is better for guessing what is likely
        return float(min(np.max(likely * (1.0 - alpha) + rest * power) + ROUNDING, 1.0))


def line_intersections(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """False and true positive rate where each line meets the next one."""
    c = np.exp(epsilons)
    alpha = -np.diff(deltas) / (c[:-1] * np.expm1(np.diff(epsilons)))
    return alpha, deltas[:-1] + c[:-1] * alpha


def trade_off(profile: Callable[[Array], Array], largest: float | None = None) -> TradeOff:
    """The trade-off curve of a profile: lines where they matter.

    Parameters
    ----------
    profile : callable
        ε ↦ an upper bound on δ(ε), on arrays of ε ≥ 0.
    largest : float, optional
        The ε at which the profile becomes 0, where it is known.
    """
    reach = _reach(profile) if largest is None else min(largest, LARGEST_LOSS)
    epsilons = np.unique(np.append(np.linspace(0.0, reach, CELLS + 1), 0.0))
    deltas = profile(epsilons)
    cells = np.arange(epsilons.size - 1)
    for _ in range(HALVINGS):
        middles = 0.5 * (epsilons[cells] + epsilons[cells + 1])
        found = profile(middles) if middles.size else middles
        worth = _gain(epsilons, deltas, cells, middles, found)
        epsilons, deltas = np.insert(epsilons, cells + 1, middles), np.insert(deltas, cells + 1, found)
        first = (cells + np.arange(cells.size))[worth]  # where the left half of a cell is now
        cells = np.sort(np.concatenate([first, first + 1]))
    return TradeOff(epsilons, np.minimum.accumulate(deltas))


def _gain(
    epsilons: Array, deltas: Array, cells: npt.NDArray[np.intp], middles: Array, found: Array
) -> npt.NDArray[np.bool_]:
    """True for cells where the middle line lowers the true positive rate at the corner by more than the tolerance."""
    c, gaps = np.exp(epsilons[cells]), epsilons[cells + 1] - epsilons[cells]
    alpha = (deltas[cells] - deltas[cells + 1]) / (c * np.expm1(gaps))
    power = deltas[cells] + c * alpha
    lower = power - (found + np.exp(middles) * alpha)
    worth: npt.NDArray[np.bool_] = (power > NEGLIGIBLE) & (lower > TOLERANCE * power)
    return worth


def _reach(profile: Callable[[Array], Array]) -> float:
    """An ε from which a profile is negligible, or no longer falls."""
    least = max(NEGLIGIBLE, float(profile(np.array([LARGEST_LOSS]))[0]) * (1.0 + 1e-9))

    def over(epsilon: float) -> bool:
        return bool(profile(np.array([epsilon]))[0] <= least)

    turn = bracket(over, 1.0, falling=geometric(1.0, 0.5, 1e-9), rising=geometric(1.0, 2.0, LARGEST_LOSS))
    return LARGEST_LOSS if turn.holds is None else turn.holds
