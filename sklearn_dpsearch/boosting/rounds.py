"""Boosting: noisy sums of every cell, and from them the weights that are added to the outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .cells import CellNumbers, Partition
from .features import Codes
from .losses import Array, Loss
from .noise import HESSIAN_NOISE, bounded, whole

#: Records in the processor's cache at once.
BLOCK = 2**14
#: Rounds in which the size of the weights is measured, the size that is expected until then, and its bounds.
MEASURED, FIRST_SCALE, LEAST_SCALE, MOST_SCALE = 30, 0.25, 0.1, 0.6


class SumRelease(Protocol):
    """Release of sums: noisy sums of scores and of Hessians."""

    def __call__(self, sums: NDArray[np.int64], /) -> tuple[Array, Array]:
        """Noisy sums of scores and of Hessians, each of shape (n_outputs, n_cells)."""


@dataclass
class PriorScale:
    """Standard deviation of the weights that is expected: that of the first rounds, less the noise.

    Scores of a cell are S ~ N(H·w, noise²) for Hessians H, so that the sum of S² − noise² divided by that of H²
    estimates the mean square of w (empirical Bayes). It needs noisy sums alone.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise of a sum of scores.
    factor : float
        Multiple of the measured size that is expected.
    """

    noise: float
    factor: float
    rounds: int = 0
    signal: float = 0.0
    weight: float = 0.0
    value: float = field(init=False)

    def __post_init__(self) -> None:
        self.value = FIRST_SCALE * self.factor

    def see(self, scores: Array, hessians: Array) -> None:
        """Take in the noisy sums of a round."""
        self.rounds += 1
        self.signal += float(np.sum(np.square(scores) - self.noise**2))
        self.weight += float(np.sum(np.square(np.maximum(hessians, 0.0))))
        if self.rounds == MEASURED and self.weight > 0:
            measured = math.sqrt(max(self.signal / self.weight, 0.0))
            self.value = self.factor * min(max(measured, LEAST_SCALE), MOST_SCALE)


class Boosted(NamedTuple):
    """Weights of a training, the noise in them, and how much each round explained; all from noisy sums alone.

    ``weights`` has an array of shape (n_outputs, n_cells) for each partition, ``gains`` a number. ``noise`` has the
    standard deviation of the noise in each weight, to first order, of rounds alone: without the start.
    """

    weights: list[Array]
    gains: list[float]
    noise: list[Array]


def boost(
    codes: Codes,
    targets: NDArray[Any],
    loss: Loss,
    partitions: Sequence[Partition],
    release: SumRelease,
    *,
    learning_rate: float,
    noise: float,
    prior_factor: float,
) -> Boosted:
    """Train on the records; only ``release`` tells of them.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples)
    targets : ndarray of shape (n_samples,)
    loss : Loss
    partitions : sequence of Partition
        The first one is of the start.
    release : callable
    learning_rate : float
    noise : float
        Standard deviation of the noise of a sum of scores.
    prior_factor : float
        Multiple of the measured size of weights that is expected.
    """
    outputs = np.zeros((loss.n_outputs, codes.shape[1]))
    step, cells = np.zeros((loss.n_outputs, 1)), np.zeros(codes.shape[1], np.uint8)
    boosted, prior = Boosted([], [], []), PriorScale(noise, prior_factor)
    for partition in partitions:
        sums = np.zeros((2 * loss.n_outputs, partition.n_cells))
        for start in range(0, codes.shape[1], BLOCK):
            rows = slice(start, start + BLOCK)
            outputs[:, rows] += step[:, cells[rows]]
            cells[rows] = partition.cells(codes[:, rows])
            values = bounded(whole(loss.derivatives(outputs[:, rows], targets[rows]), loss), loss)
            sums += sums_of(values, cells[rows], sums.shape[1])
        scores, hessians = release(sums.astype(np.int64))
        if not boosted.weights:
            step, gain = loss.start(scores * _shrunk_inverse(hessians, noise)), 0.0
        else:
            floor = noise / prior.value
            multiple = learning_rate * _shrunk_inverse(hessians, floor)
            prior.see(scores, hessians)
            step, gain = scores * multiple, _gain(scores, hessians, multiple, noise)
            by_hessians = learning_rate * scores * _slope(hessians, floor) * HESSIAN_NOISE * loss.hessian_unit
            boosted.noise.append(noise * np.hypot(multiple, by_hessians))
        boosted.weights.append(step)
        boosted.gains.append(gain)
    return boosted


def sums_of(values: Array, cells: CellNumbers, n_cells: int) -> Array:
    """Sums of whole numbers over each cell, exact in double precision: shape (len(values), n_cells)."""
    return np.array([np.bincount(cells, row, n_cells) for row in values])


def _shrunk_inverse(hessians: Array, floor: float) -> Array:
    """Inverse of the Hessian H of each cell, shrunk by H²/(H² + floor²) towards zero.

    With floor = noise ÷ standard deviation of the weights, its product with the score is the posterior mean of the
    Newton step, at known H.
    """
    known = np.maximum(hessians, 0.0)
    found: Array = known / (np.square(known) + floor**2)
    return found


def _slope(hessians: Array, floor: float) -> Array:
    """Derivative of the shrunk inverse."""
    known = np.maximum(hessians, 0.0)
    found: Array = (hessians > 0) * (floor**2 - np.square(known)) / np.square(np.square(known) + floor**2)
    return found


def _gain(scores: Array, hessians: Array, multiple: Array, noise: float) -> float:
    """Decrease of the loss by a step of a multiple of the scores, to second order; unbiased where Hessians are known.

    The product of score and step counts the noise, multiple·noise², too often.
    """
    step = scores * multiple
    return float(np.sum(step * scores - multiple * noise**2 - np.maximum(hessians, 0.0) * np.square(step) / 2))


def outputs_after(
    codes: Codes, partitions: Sequence[Partition], weights: Sequence[Array], n_outputs: int
) -> Iterator[Array]:
    """Outputs of records after the start and after each round, shape (n_outputs, n_samples): one array, changed."""
    outputs = np.zeros((n_outputs, codes.shape[1]))
    for partition, step in zip(partitions, weights):
        outputs += step[:, partition.cells(codes)]
        yield outputs
