r"""Losses whose gradients use all of the sensitivity that is paid for.

The score of the log loss, y − p, is unbiased for the true probability, and stays so times any
function of p alone. A record's largest score under p has the norm max_y ‖e_y − p‖; divided by it,
all records have scores up to 1, and none above. So each record moves the sums as much as any may,
at every p, where scores of the log loss stay far below 1 unless a record is misjudged.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import truncnorm

Array = NDArray[np.float64]
#: Probabilities of the start stay this far from 0 and 1.
LEAST_PROBABILITY = 0.005
#: Steps per unit, and length, of the table of exponentials.
GRID, TABLE_LENGTH = 1024, 40
EXPONENTIALS = np.exp(-np.arange(TABLE_LENGTH * GRID + 1) / GRID)


def exp_of_minus(values: Array) -> Array:
    """exp(−x) of x ≥ 0, at the nearest place of a table.

    A processor may compute exp of equal numbers differently in different places of an array: one
    record more would then move the last digits of others. Looking it up, multiplying and rounding
    are the same everywhere.
    """
    places = np.rint(np.minimum(values, TABLE_LENGTH) * GRID).astype(np.intp)
    return np.asarray(EXPONENTIALS[places])


#: Outputs of both signs at the places of that table.
PLACES = np.arange(-TABLE_LENGTH * GRID, TABLE_LENGTH * GRID + 1) / GRID


def nearest_places(outputs: Array) -> NDArray[np.intp]:
    """Number of the nearest of ``PLACES`` to each output."""
    places = outputs * GRID
    np.clip(np.rint(places, out=places), -TABLE_LENGTH * GRID, TABLE_LENGTH * GRID, out=places)
    places += TABLE_LENGTH * GRID
    return places.astype(np.intp)


def _sum_of_rows(rows: Array) -> Array:
    """Sum over the first axis, row by row.

    NumPy's own sum adds in an order that depends on the shape.
    """
    return functools.reduce(np.add, rows)


def mean_within(means: Array, errors: Array, lower: float, upper: float) -> Array:
    """Expected true means between two ends, if they had noise of these standard deviations."""
    ends = (lower - means) / errors, (upper - means) / errors
    mean: Array = truncnorm.mean(*ends, loc=means, scale=errors)
    return np.clip(mean, lower, upper)


class Derivatives(NamedTuple):
    """Scores and Hessians of records, shape (n_outputs, n_samples) each.

    Scores are minus the gradient, of norm at most 1 for each record; Hessians the diagonal of its
    expected Hessian.
    """

    scores: Array
    hessians: Array


class Loss(ABC):
    """Loss of boosting by the outputs of records."""

    #: Number of outputs.
    n_outputs: int = 1
    #: Unit of Hessians: their noise is that of scores times ``noise.HESSIAN_NOISE`` and this.
    hessian_unit: float
    #: Bound on the square of the norm of a record's Hessians, none of which is negative.
    squared_hessians: Fraction
    #: Whether all records have the same Hessians at all outputs.
    constant_hessians: bool = False
    #: Mean square of a record's score ÷ its Hessian, about: how far scores spread without noise.
    spread: float = 1.0
    #: Smallest expected size of weights: where records tell nothing, steps stay as small.
    least_scale: float = 0.01
    #: Both targets, if all that a record adds follows from its own and the nearest of ``PLACES`` to
    #: its one output.
    labels: tuple[int, int] | None = None

    @abstractmethod
    def derivatives(self, outputs: Array, targets: NDArray[Any]) -> Derivatives:
        """Scores and Hessians of each record at its outputs."""

    @abstractmethod
    def start(self, mean_scores: Array, errors: Array) -> Array:
        """Constant outputs of least loss, shape (n_outputs, 1).

        Parameters
        ----------
        mean_scores : ndarray of shape (n_outputs, 1)
            Sums of scores ÷ sums of Hessians, at outputs of 0.
        errors : ndarray of shape (n_outputs, 1)
            Standard deviations of their noise.
        """


class BinaryLoss(Loss):
    r"""Two classes: −1 and 1.

    With the margin m = target · output: 1 − m where m ≤ 0, exp(−m) above.

    Convex, with a continuous derivative, and a proper loss: the expected score is 0 where the
    output is the logit.

    Notes
    -----
    The score is (y − p)/max(p, 1 − p) = ±min(1, exp(−m)), the expected Hessian p·(1 − p)/max(p, 1 −
    p) = min(p, 1 − p) ≤ 1/2.
    """

    hessian_unit = 0.5
    squared_hessians = Fraction(1, 4)
    labels = (-1, 1)

    def derivatives(self, outputs: Array, targets: NDArray[Any]) -> Derivatives:
        odds = exp_of_minus(np.abs(outputs))
        scores = targets * np.where(targets * outputs > 0, odds, 1.0)
        return Derivatives(scores, odds / (1.0 + odds))

    def start(self, mean_scores: Array, errors: Array) -> Array:
        chance = mean_within(0.5 + mean_scores / 4.0, errors / 4.0, 0.0, 1.0)
        chance = np.clip(chance, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return np.log(chance / (1.0 - chance))


class SoftmaxLoss(Loss):
    r"""Loss of boosting for several classes, with an output for each.

    Notes
    -----
    The score is (e_y − p)/c with c² = max_y ‖e_y − p‖² = 1 − 2·min p + ‖p‖². The square of the norm
    of the Hessians p·(1 − p)/c is at most (k − 1)/k² with k = min(n_classes, 4), reached by even
    probabilities of up to four classes (docs/theory/boosting.md).
    """

    hessian_unit = 0.5

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes
        k = min(n_classes, 4)
        self.squared_hessians = Fraction(k - 1, k**2)

    def derivatives(self, outputs: Array, targets: NDArray[Any]) -> Derivatives:
        chances = exp_of_minus(outputs.max(axis=0) - outputs)
        chances /= _sum_of_rows(chances)
        largest = np.sqrt(1.0 - 2.0 * chances.min(axis=0) + _sum_of_rows(np.square(chances)))
        is_class = np.arange(self.n_outputs)[:, np.newaxis] == targets
        return Derivatives((is_class - chances) / largest, chances * (1.0 - chances) / largest)

    def start(self, mean_scores: Array, errors: Array) -> Array:
        even = 1.0 / self.n_outputs
        unit = even * (1.0 - even)
        chances = mean_within(even + mean_scores * unit, errors * unit, 0.0, 1.0)
        chances = np.maximum(chances, LEAST_PROBABILITY)
        return np.asarray(np.log(chances) - np.log(chances).mean())


class SquaredLoss(Loss):
    """Loss of boosting for numbers: squared, and linear beyond 1 (Huber's)."""

    hessian_unit = 1.0
    squared_hessians = Fraction(1)
    constant_hessians = True
    spread, least_scale = 0.1, 0.1

    def derivatives(self, outputs: Array, targets: NDArray[Any]) -> Derivatives:
        return Derivatives(np.clip(targets - outputs, -1.0, 1.0), np.ones_like(outputs))

    def start(self, mean_scores: Array, errors: Array) -> Array:
        return mean_within(mean_scores, errors, -1.0, 1.0)
