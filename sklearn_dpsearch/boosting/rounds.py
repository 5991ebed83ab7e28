"""Boosting: noisy sums of every cell, and from them the weights that are added to the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .cells import CellNumbers, Partition
from .features import Codes
from .losses import Array, Loss
from .noise import whole

#: Records in the processor's cache at once.
BLOCK = 2**14


class SumRelease(Protocol):
    """Release of sums: noisy sums of scores and of Hessians."""

    def __call__(self, sums: NDArray[np.int64], /) -> tuple[Array, Array]:
        """Noisy sums of scores and of Hessians, each of shape (n_outputs, n_cells)."""


class Boosted(NamedTuple):
    """Weights of a training, and how much each round explained; both from noisy sums alone.

    ``weights`` has an array of shape (n_outputs, n_cells) for each partition, ``gains`` a number.
    """

    weights: list[Array]
    gains: list[float]


def boost(
    codes: Codes,
    targets: Array,
    loss: Loss,
    partitions: Sequence[Partition],
    release: SumRelease,
    *,
    learning_rate: float,
    noise: float,
    prior_scale: float,
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
    prior_scale : float
        Standard deviation of the weights that is expected.
    """
    outputs = np.zeros((loss.n_outputs, codes.shape[1]))
    step, cells = np.zeros((loss.n_outputs, 1)), np.zeros(codes.shape[1], np.uint8)
    boosted = Boosted([], [])
    for partition in partitions:
        sums = np.zeros((2 * loss.n_outputs, partition.n_cells))
        for start in range(0, codes.shape[1], BLOCK):
            rows = slice(start, start + BLOCK)
            outputs[:, rows] += step[:, cells[rows]]
            cells[rows] = partition.cells(codes[:, rows])
            sums += sums_of(whole(loss.derivatives(outputs[:, rows], targets[rows]), loss), cells[rows], sums.shape[1])
        scores, hessians = release(sums.astype(np.int64))
        if not boosted.weights:
            step, gain = loss.start(_shrunk(scores, hessians, noise)), 0.0
        else:
            step = learning_rate * _shrunk(scores, hessians, noise / prior_scale)
            gain = _gain(scores, hessians, step, noise)
        boosted.weights.append(step)
        boosted.gains.append(gain)
    return boosted


def sums_of(values: Array, cells: CellNumbers, n_cells: int) -> Array:
    """Sums of whole numbers over each cell, exact in double precision: shape (len(values), n_cells)."""
    return np.array([np.bincount(cells, row, n_cells) for row in values])


def _shrunk(scores: Array, hessians: Array, floor: float) -> Array:
    """Newton step S/H of each cell, shrunk by H²/(H² + floor²) towards zero.

    With floor = noise / prior_scale it is the posterior mean of a weight with that prior, at known H.
    """
    known = np.maximum(hessians, 0.0)
    return scores * known / (np.square(known) + floor**2)


def _gain(scores: Array, hessians: Array, step: Array, noise: float) -> float:
    """Decrease of the loss by a step, to second order; unbiased where Hessians are known.

    A step is a multiple of its noisy score, S·k. Its product with the score counts the noise k·noise² times too often.
    """
    multiple = np.divide(step, scores, out=np.zeros_like(step), where=scores != 0)
    return float(np.sum(step * scores - multiple * noise**2 - np.maximum(hessians, 0.0) * np.square(step) / 2))


def outputs_after(
    codes: Codes, partitions: Sequence[Partition], weights: Sequence[Array], n_outputs: int
) -> Iterator[Array]:
    """Outputs of records after the start and after each round, shape (n_outputs, n_samples): one array, changed."""
    outputs = np.zeros((n_outputs, codes.shape[1]))
    for partition, step in zip(partitions, weights):
        outputs += step[:, partition.cells(codes)]
        yield outputs
