"""Boosting: noisy sums of every cell, and from them the weights that are added to the outputs."""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ..data._persons import PersonCodes, number_of_persons
from . import _noise
from ._features import Codes
from ._losses import Array, Derivatives, Loss
from ._random_cells import SINGLE_CELL, CellNumbers, Partition, PartitionDraws

#: Outputs that a thread passes over at once: some MB, and few enough calls that threads seldom wait
#: for each other.
BLOCK = 2**17
#: Size of weights that is expected at first, rounds that follow it alone, and the largest size that
#: is measured.
FIRST_SCALE, UNMEASURED_ROUNDS, MOST_SCALE = 0.25, 15, 0.6
#: Standard deviations between the noisy and the public number of records from which on many may be
#: blank.
BLANK_GAP = 3.0
#: Change of the sum of all Hessians from round to round that is expected, and the smallest share
#: that is left of it.
DRIFT, LEAST_TOTAL = 0.02, 1e-3


#: Outputs of a public model are followed at most this far from constant ones; shares of it at which
#: slopes are seen.
MOST_DISTANCE, SHARES = 4.0, (1 / 3, 2 / 3, 1.0)
#: Rounds from one step along the line to the next, the change that is expected in it, and the
#: largest share.
STEP_ROUNDS, CHANGE, LARGEST_SHARE = 10, 0.2, 1.5


#: Numbers of 64 bits of a fingerprint.
LANES = 4


#: Sums ↦ noisy sums of scores and of Hessians, each of shape (n_outputs, n_cells).
SumRelease: TypeAlias = Callable[[NDArray[np.int64]], tuple[Array, Array]]
#: Cells of a round and their weights ↦ weights as they are taken.
StepRule: TypeAlias = Callable[[Partition, Array], Array]


@dataclass
class PriorScale:
    """Expected size of boosting weights, from the noisy sums of the rounds before.

    Scores of a cell are S ~ N(H·w, v) for Hessians H, where v is the variance of the noise and of
    the records' own scores, so that the sum of S² − v divided by that of H² estimates the mean
    square of w (empirical Bayes). It is weighted with what was expected before, by their variances:
    where little is to be seen, the estimate is mostly noise. It needs noisy sums alone.

    Parameters
    ----------
    factor : float
        Multiple of the measured size that is expected.
    smallest : float
        Smallest size that is measured.
    """

    factor: float
    smallest: float
    rounds: int = 0
    signal: float = 0.0
    weight: float = 0.0
    uncertainty: float = 0.0
    value: float = field(init=False)

    def __post_init__(self) -> None:
        self.value = FIRST_SCALE * self.factor

    def see(self, scores: Array, hessians: Array, variances: Array) -> None:
        """Take in the noisy scores of a round, the known Hessians, and variances without a step."""
        self.rounds += 1
        self.signal += float(np.sum(np.square(scores) - variances))
        self.weight += float(np.sum(np.square(np.maximum(hessians, 0.0))))
        self.uncertainty += 2.0 * float(np.sum(np.square(variances)))
        if self.rounds >= UNMEASURED_ROUNDS:
            size = math.sqrt(max(self._mean_square(), 0.0))
            self.value = self.factor * min(max(size, self.smallest), MOST_SCALE)

    def _mean_square(self) -> float:
        """Mean square of the weights so far, shrunk to what was expected."""
        before, certainty = FIRST_SCALE**-4 / 2.0, self.weight / self.uncertainty
        signal = certainty * self.signal + before * FIRST_SCALE**2
        return signal / (certainty * self.weight + before)


@dataclass
class KnownHessians:
    """Hessians of all records, and of cells, as far as noisy sums tell.

    All cells of a round sum to the same, which changes slowly: each round makes the total more
    certain. Within a round they are spread around the mean cell. By how much more than the noise
    spreads them, so far noisy sums are believed (empirical Bayes).

    Parameters
    ----------
    total, variance : ndarray of shape (n_outputs, 1)
        Sum of the Hessians of all records, and the square of its error.
    noise : float
        Standard deviation of the noise of a sum of Hessians.
    """

    total: Array
    variance: Array
    noise: float

    def see(self, hessians: Array) -> tuple[Array, Array]:
        """Take in the noisy sums of Hessians of a round.

        Returns
        -------
        ndarray of shape (n_outputs, n_cells)
            Expected sums.
        ndarray of shape (n_outputs, 1)
            How much of the difference to the mean cell is believed.
        """
        n_cells, variance = hessians.shape[1], self.variance + np.square(DRIFT * self.total)
        gain = variance / (variance + n_cells * self.noise**2)
        total = self.total + gain * (hessians.sum(axis=1, keepdims=True) - self.total)
        self.total = np.maximum(total, LEAST_TOTAL * self.total)
        self.variance = (1.0 - gain) * variance
        mean = self.total / n_cells
        spread = np.square(hessians - mean).mean(axis=1, keepdims=True) - self.noise**2
        spread = np.maximum(spread, 0.0)
        believed = spread / (spread + self.noise**2)
        return mean + believed * (hessians - mean), believed


class Round(NamedTuple):
    """Cells of a boosting round, their weights, and the noise in these.

    ``weights`` and ``noise`` have the shape (n_outputs, n_cells).
    """

    partition: Partition
    weights: Array
    noise: Array


class Boosted(NamedTuple):
    """Weights of boosting, the noise in them, and each round's gain.

    All follow from noisy sums alone.

    ``weights`` has an array of shape (n_outputs, n_cells) for each partition, ``gains`` a number.
    ``noise`` has the standard deviation of the noise in each weight, to first order, and
    ``hessians`` the sums of each cell as they are known: both of rounds alone, without the start.
    ``gains`` and ``noise`` are those of a step before a rule changes it.
    """

    weights: list[Array]
    gains: list[float]
    noise: list[Array]
    hessians: list[Array]


class RecordSums(Protocol):
    """Interface of records in boosting: sums over cells, no single record.

    They are in one place (``TrainingRecords``, which says what the methods do) or in partitions.
    """

    loss: Loss
    of_persons: bool
    n_units: int
    assumptions: tuple[str, ...]

    def fingerprint(self) -> NDArray[np.uint64]: ...
    def sums(self, step: Array, partition: Partition) -> NDArray[np.int64]: ...
    def advance(self, step: Array) -> None: ...
    def start_at(self, constant: Array, way: float) -> None: ...
    def move_on_line(self, constant: Array, way: float) -> None: ...
    def sums_on_line(self, constant: Array, way: float | None = None) -> NDArray[np.int64]: ...


class NoisyRecords(NamedTuple):
    """Records in boosting, the release of their sums, and the noise of a sum of scores.

    ``noise`` is a standard deviation.
    """

    records: RecordSums
    release: SumRelease
    noise: float

    @property
    def noise_of_hessians(self) -> float:
        """Standard deviation of the noise of a sum of Hessians."""
        return self.noise * _noise.HESSIAN_NOISE * self.records.loss.hessian_unit

    def sums(self, step: Array, partition: Partition) -> tuple[Array, Array]:
        """Take the last round's step, and release sums of scores and Hessians over new cells."""
        return self.release(self.records.sums(step, partition))


class TrainingRecords:
    """Records in boosting, asked for their number and sums over cells alone.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples)
    targets : ndarray of shape (n_samples,)
    loss : Loss
    persons : ndarray of shape (n_samples,), optional
        Code of each record's person; None: each record is a unit of its own.
    initial : ndarray of shape (n_outputs, n_samples), optional
        Outputs of a public model.
    blank : bool ndarray of shape (n_samples,), optional
        Records without a target, which add nothing; by default none.
    n_threads : int
        Threads that share the blocks of records, in a ``with`` block. Sums of whole numbers are the
        same for any.

    Attributes
    ----------
    n_units : int
        Number of records, or of persons.
    outputs : ndarray of shape (n_outputs, n_samples)
        Those of the model so far.
    persons : ndarray of shape (n_units,)
        Numbers of the persons in all partitions, if there are others.
    place : int
        Number of this partition.
    """

    assumptions: tuple[str, ...] = ()
    persons: NDArray[np.uint64]
    place: int

    def __init__(
        self,
        codes: Codes,
        targets: NDArray[Any],
        loss: Loss,
        persons: PersonCodes | None = None,
        initial: Array | None = None,
        blank: NDArray[np.bool_] | None = None,
        n_threads: int = 1,
    ) -> None:
        self.loss, self.of_persons = loss, persons is not None
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._persons = None if persons is None else RecordsByPerson(persons)
        order = slice(None) if self._persons is None else self._persons.order
        self._codes, self._targets = codes[:, order], targets[order]
        self._blank = blank[order] if blank is not None and blank.any() else None
        self._initial = np.zeros((loss.n_outputs, 0)) if initial is None else initial[:, order]
        self.n_units = codes.shape[1] if persons is None else number_of_persons(persons)
        self.outputs = np.zeros((loss.n_outputs, codes.shape[1]))
        self._cells = np.zeros(codes.shape[1], np.uint16)

    def __enter__(self) -> Self:
        if self._n_threads > 1:
            self._pool = ThreadPoolExecutor(self._n_threads)
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def leave_out(self, persons: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
        """Blank the records of persons who count in another partition, whose number is given."""
        assert self._persons is not None
        elsewhere = persons[places != self.place]
        blank = np.isin(self.persons, elsewhere)[self._persons.numbers]
        if blank.any():
            self._blank = blank if self._blank is None else blank | self._blank

    def fingerprint(self) -> NDArray[np.uint64]:
        """Sum of hashes of the records, whatever their order; persons' records count together."""
        initial = self._initial if self._initial.size else ()
        lanes, n = np.arange(LANES, dtype=np.uint64)[:, np.newaxis], len(self._targets)
        hashed = lanes + np.zeros(n, np.uint64)
        targets = self._targets.astype(np.float64)
        if self._blank is not None:
            targets[self._blank] = np.nan
        for column in (*self._codes, targets, *initial):
            bits = column.view(np.uint64) if column.dtype == np.float64 else column
            hashed = _splitmix64(hashed ^ bits)
        fingerprint: NDArray[np.uint64] = hashed.sum(axis=1)
        if self._persons is not None:
            fingerprint += _splitmix64(self._persons.sums_of_several_records(hashed)).sum(axis=1)
        return fingerprint

    def sums(self, step: Array, partition: Partition) -> NDArray[np.int64]:
        """Take the last round's step, and sum derivatives over new cells.

        Parameters
        ----------
        step : ndarray of shape (n_outputs, n_cells)
        partition : Partition

        Returns
        -------
        ndarray of shape (2 · n_outputs, n_cells)
            Sums of whole numbers.
        """

        def of_block(block: Block) -> NDArray[np.int64]:
            rows, _ = block
            outputs, cells = self.outputs[:, rows], partition.cells(self._codes[:, rows])
            outputs += steps_of(step, self._cells[rows])
            added = _noise.records_at(outputs, self._targets[rows], self.loss)
            self._cells[rows] = cells
            return self._cell_sums(added, cells, partition.n_cells, block)

        return self._sum_over_blocks(of_block, partition.n_cells)

    def advance(self, step: Array) -> None:
        """Take the last round's step; the next one is by one cell for all."""
        self.outputs += steps_of(step, self._cells)
        self._cells[:] = 0

    def start_at(self, constant: Array, way: float) -> None:
        """Set the outputs to a place on the line to a public model.

        ``way`` is the share from constant outputs, of shape (n_outputs, 1), to those of the model.
        """
        self.outputs = outputs_on_line(constant, self._initial, way)

    def move_on_line(self, constant: Array, way: float) -> None:
        """Move the outputs along the line to a public model."""
        self.outputs += way * MOST_DISTANCE * self._line_direction(constant, slice(None))

    def sums_on_line(self, constant: Array, way: float | None = None) -> NDArray[np.int64]:
        """Sum of the loss's scores, minus its slopes, along the line to a public model.

        The direction is between −1 and 1: so no record adds more than at any other release.

        Parameters
        ----------
        constant : ndarray of shape (n_outputs, 1)
        way : float, optional
            Share of the way at which the slope is taken; None: at the outputs.
        """

        def of_block(block: Block) -> NDArray[np.int64]:
            rows, _ = block
            outputs = self.outputs[:, rows]
            if way is not None:
                outputs = outputs_on_line(constant, self._initial[:, rows], way)
            scores, hessians = self.loss.derivatives(outputs, self._targets[rows])
            slopes = Derivatives(scores * self._line_direction(constant, rows), hessians)
            added, cells = (
                _noise.packed_records(slopes, self.loss),
                np.zeros(outputs.shape[1], np.uint8),
            )
            return self._cell_sums(added, cells, 1, block)

        return self._sum_over_blocks(of_block, 1)

    def _line_direction(self, constant: Array, rows: slice) -> Array:
        """Direction of the line to a public model, between −1 and 1."""
        return (outputs_on_line(constant, self._initial[:, rows], 1.0) - constant) / MOST_DISTANCE

    def _sum_over_blocks(
        self, of_block: Callable[[Block], NDArray[np.int64]], n_cells: int
    ) -> NDArray[np.int64]:
        """Sum of what is computed of each block, each thread taking its share of them."""
        zeros = np.zeros((2 * self.loss.n_outputs, n_cells), np.int64)

        def of_thread(first: int, step: int) -> NDArray[np.int64]:
            blocks = itertools.islice(self._blocks(n_cells), first, None, step)
            return functools.reduce(np.add, map(of_block, blocks), zeros)

        if self._pool is None:
            return of_thread(0, 1)
        shares = [
            self._pool.submit(contextvars.copy_context().run, of_thread, first, self._n_threads)
            for first in range(self._n_threads)
        ]
        return functools.reduce(np.add, (share.result() for share in shares))

    def _blocks(self, n_cells: int) -> Iterator[Block]:
        """Blocks of records, of equal length but for those of persons, as many for each thread."""
        if self._persons is not None:
            yield from self._persons.blocks(n_cells)
        else:
            number, at_once = self._codes.shape[1], self._n_threads * BLOCK
            n_blocks = self._n_threads * -(-number * self.loss.n_outputs // at_once)
            length = -(-number // max(n_blocks, 1))
            for start in range(0, number, length or 1):
                yield slice(start, start + length), None

    def _cell_sums(
        self, added: _noise.PackedRecords, cells: CellNumbers, n_cells: int, block: Block
    ) -> NDArray[np.int64]:
        """Sums over each cell of what records, or their persons, add."""
        rows, persons = block
        if self._blank is not None:
            added[:, self._blank[rows]] = 0
        if persons is None:
            return _noise.packed_sums(added, cells, n_cells)
        values = _noise.unpacked(added).astype(np.float64)
        clipped = clip_persons(values, cells, n_cells, persons, self.loss)
        return _noise.cell_sums(clipped, cells, n_cells).astype(np.int64)


class BoostingStart(NamedTuple):
    """Outputs at which boosting starts, and what their release tells.

    It tells the sum of the Hessians there, with the square of its error. ``outputs``, ``total`` and
    ``variance`` have the shape (n_outputs, 1). ``n_records`` is the public number of records, or a
    noisy one.
    """

    outputs: Array
    total: Array
    variance: Array
    n_records: float


def release_start(noisy: NoisyRecords, n_records: float | None = None) -> BoostingStart:
    """Release the constant outputs at which boosting starts, with noise.

    Parameters
    ----------
    noisy : NoisyRecords
    n_records : int, optional
        Where it is public: it tells the sum of the Hessians better than noise does, unless many
        records are blank.
    """
    loss, noise, error = noisy.records.loss, noisy.noise, noisy.noise_of_hessians
    zeros = np.zeros((loss.n_outputs, 1))
    scores, hessians = noisy.sums(zeros, SINGLE_CELL)
    before = loss.derivatives(zeros, np.zeros(1)).hessians
    if n_records is not None and (np.abs(hessians - n_records * before) < BLANK_GAP * error).all():
        hessians = n_records * before
    means = scores * _shrunk_inverse(hessians, noise)
    outputs = loss.start(means, noise / np.maximum(hessians, noise))
    at_start = loss.derivatives(outputs, np.zeros(1)).hessians
    number = np.maximum(hessians, error) / before
    squared_error = np.square(error * at_start / before)
    return BoostingStart(outputs, number * at_start, squared_error, float(number.mean()))


@dataclass
class PublicLine:
    """Line from constant outputs to a public model's, and the way along.

    Parameters
    ----------
    constant : ndarray of shape (n_outputs, 1)
    """

    constant: Array
    way: float = 0.0
    curvature: float = 0.0

    def start(self, noisy: NoisyRecords, n_records: float) -> BoostingStart:
        """Go along the line as noisy slopes say, and release a start.

        The loss is convex, so its score, minus the slope, falls along the line: the way ends where
        it would cross 0.
        """
        slopes = [self._slope(noisy, way) for way in SHARES]
        falling = isotonic_regression(slopes, increasing=False)
        self.way = float(np.interp(0.0, falling[::-1], SHARES[::-1])) if falling[0] > 0.0 else 0.0
        curvature = (slopes[0] - slopes[-1]) / (MOST_DISTANCE * (SHARES[-1] - SHARES[0]))
        self.curvature = max(curvature, noisy.noise)
        noisy.records.start_at(self.constant, self.way)
        scores, hessians = noisy.sums(np.zeros_like(self.constant), SINGLE_CELL)
        error = noisy.noise_of_hessians
        total = np.maximum(hessians, error)
        step = scores * _shrunk_inverse(total, noisy.noise / FIRST_SCALE)
        return BoostingStart(step, total, np.full_like(total, error**2), n_records)

    def follow(self, noisy: NoisyRecords) -> None:
        """Move along the line by a shrunk Newton step.

        Beside other weights less of it may be right, or more.
        """
        floor = np.array(noisy.noise / (CHANGE * MOST_DISTANCE))
        inverse = float(_shrunk_inverse(np.array(self.curvature), floor))
        move = self._slope(noisy) * inverse / MOST_DISTANCE
        move = min(max(self.way + move, 0.0), LARGEST_SHARE) - self.way
        self.way += move
        noisy.records.move_on_line(self.constant, move)

    def _slope(self, noisy: NoisyRecords, way: float | None = None) -> float:
        return float(noisy.release(noisy.records.sums_on_line(self.constant, way))[0].sum())


def outputs_on_line(constant: Array, outputs: Array, way: float) -> Array:
    """Outputs at a share of the way to a public model's.

    The way begins at constant outputs, and is followed for MOST_DISTANCE at most.
    """
    return constant + way * np.clip(outputs - constant, -MOST_DISTANCE, MOST_DISTANCE)


def boost(
    noisy: NoisyRecords,
    start: BoostingStart,
    draws: PartitionDraws,
    learning_rate: float,
    prior_factor: float,
    *,
    line: PublicLine | None = None,
    rule: StepRule | None = None,
) -> Boosted:
    """Boost after the start by noisy sums of each round's cells.

    Parameters
    ----------
    noisy : NoisyRecords
    start : BoostingStart
    draws : PartitionDraws
        Of the rounds.
    learning_rate : float
    prior_factor : float
        Multiple of the measured size of weights that is expected.
    line : PublicLine, optional
        Followed once in STEP_ROUNDS rounds, by a release more.
    rule : callable, optional
        Changes the weights of each round before they are taken.
    """
    loss, noise, noise_of_hessians = noisy.records.loss, noisy.noise, noisy.noise_of_hessians
    step = start.outputs
    boosted = Boosted([start.outputs], [0.0], [], [])
    prior = PriorScale(prior_factor, loss.least_scale)
    known_hessians = KnownHessians(start.total, start.variance, noise_of_hessians)
    for partition in draws:
        scores, hessians = noisy.sums(step, partition)
        hessians, believed = known_hessians.see(hessians)
        variances = noise**2 + loss.spread * np.maximum(hessians, 0.0)
        floor = np.sqrt(variances) / prior.value
        multiple = learning_rate * _shrunk_inverse(hessians, floor)
        slope = _shrunk_inverse_slope(hessians, floor, noise / prior.value)
        prior.see(scores, hessians, variances)
        step = scores * multiple if rule is None else rule(partition, scores * multiple)
        by_hessians = learning_rate * scores * slope * believed * noise_of_hessians
        boosted.noise.append(noise * np.hypot(multiple, by_hessians / noise))
        boosted.hessians.append(hessians)
        boosted.weights.append(step)
        boosted.gains.append(_loss_decrease(scores, hessians, multiple, noise))
        draws.see(boosted.gains[-1])
        if line is not None and len(boosted.noise) % STEP_ROUNDS == 0:
            noisy.records.advance(step)
            step = np.zeros_like(start.outputs)
            line.follow(noisy)
    return boosted


def _splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers by SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _shrunk_inverse(hessians: Array, floor: Array | float) -> Array:
    """Inverse of the Hessian of each cell, shrunk towards zero.

    The factor is H²/(H² + floor²) for the Hessian H.

    With floor = standard deviation of the score ÷ that of the weights, its product with the score
    is the posterior mean of the Newton step, at known H.
    """
    positive = np.maximum(hessians, 0.0)
    return np.asarray(positive / (np.square(positive) + np.square(floor)))


def _shrunk_inverse_slope(hessians: Array, floor: Array, by_noise: float) -> Array:
    """Slope of the shrunk inverse in the Hessian; ``floor``² grows linearly from ``by_noise``²."""
    squares = np.square(np.maximum(hessians, 0.0))
    slope: Array = (hessians > 0) * (by_noise**2 - squares) / np.square(squares + np.square(floor))
    return slope


def _loss_decrease(scores: Array, hessians: Array, multiple: Array, noise: float) -> float:
    """Decrease of the loss by a boosting step, to second order.

    The step is a multiple of the scores; the estimate is unbiased where Hessians are known.

    The product of score and step counts the noise, multiple·noise², too often.
    """
    step = scores * multiple
    linear = step * scores - multiple * noise**2
    return float(np.sum(linear - np.maximum(hessians, 0.0) * np.square(step) / 2))


def staged_outputs(
    partitions: Sequence[Partition], weights: Sequence[Array], codes: Codes, outputs: Array
) -> Iterator[Array]:
    """Outputs after the start and each round, shape (n_outputs, n_samples), in one array."""
    for partition, step in zip(partitions, weights):
        outputs += steps_of(step, partition.cells(codes))
        yield outputs


def steps_of(step: Array, cells: CellNumbers) -> Array:
    """Step of each record, by its cell; shape (n_outputs, n_samples)."""
    return step.take(cells, axis=1, mode="wrap")  # the fastest mode: all cells are there


# --- sums over persons ----------------------------------------------------------------------------


#: Records, and pairs of a person and a cell, that are summed at once.
PERSONS, PAIRS = 2**16, 2**20
#: Number of the person of each record, in order, from 0 on.
Numbers = NDArray[np.int64]
#: Rows of some records, and their persons; None where each record counts by itself.
Block: TypeAlias = tuple[slice, Numbers | None]


class RecordsByPerson:
    """Numbers of records in the order of their persons.

    Parameters
    ----------
    codes : int64 ndarray of shape (n_samples,)
        Person of each record, 0 … n_persons − 1.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Numbers of the records, person by person.
    numbers : ndarray of shape (n_samples,)
        Person of each record, in that order.
    """

    def __init__(self, codes: Numbers) -> None:
        self.order = np.argsort(codes, kind="stable")
        self.numbers = codes[self.order]
        self._starts = np.append(0, np.cumsum(np.bincount(codes)))

    def sums_of_several_records(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the records of each person who has several.

        Values are of shape (k, n_samples), in the order of the persons.
        """
        several = np.diff(self._starts) > 1
        return np.add.reduceat(values, self._starts[:-1], axis=1)[:, several]

    def blocks(self, n_cells: int) -> Iterator[tuple[slice, Numbers]]:
        """Blocks of records of whole persons, with each record's person.

        All records of one person are in one block.
        """
        first, limit = 0, max(PAIRS // n_cells, 1)
        while first < len(self._starts) - 1:
            end = self._starts[first] + PERSONS
            fitting = int(np.searchsorted(self._starts, end, side="right")) - 1
            last = min(max(fitting, first + 1), first + limit)
            rows = slice(*self._starts[[first, min(last, len(self._starts) - 1)]].tolist())
            yield rows, self.numbers[rows] - first
            first = last


def clip_persons(
    values: Array, cells: CellNumbers, n_cells: int, persons: Numbers, loss: Loss
) -> Array:
    """Clip the cell sums of each person to the norm of one record.

    Parameters
    ----------
    values : ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers of records.
    cells : ndarray of shape (n_samples,)
    n_cells : int
    persons : ndarray of shape (n_samples,)
        From 0 to n_persons − 1, in order.
    loss : Loss

    Returns
    -------
    ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers: each sum at the place of one record of that person and cell, and 0 at the
        others.
    """
    if persons[-1] == len(persons) - 1:  # one record of each
        return values
    pairs = persons * n_cells + cells.astype(np.int64)
    places = np.empty(int(persons[-1] + 1) * n_cells, np.uint32)
    places[pairs] = np.arange(len(pairs), dtype=np.uint32)
    sums = _noise.cell_sums(values, places.take(pairs), len(pairs))
    return _shorten_persons(sums, persons, int(_noise.squared_distance(loss) * _noise.UNIT**2))


def _shorten_persons(values: Array, persons: Numbers, bound: int) -> Array:
    """Scale down persons whose squared norm is too large.

    They are rounded towards zero; those that are still longer are set to 0.

    Squared norms up to 2⁵³ are exact sums of whole numbers, and larger ones are no smaller than
    that.
    """
    norms = np.bincount(persons, _noise.column_squares(values))
    if (norms > bound).any():
        values *= np.sqrt(bound / np.maximum(norms, bound)).take(persons)
        np.trunc(values, out=values)
        if (longer := np.bincount(persons, _noise.column_squares(values)) > bound).any():
            values[:, longer[persons]] = 0.0
    return values
