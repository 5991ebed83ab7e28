r"""Sums with Gaussian noise, exact: whole numbers of a small unit, and rounded normals.

One record is in one cell of a round. There it adds (g, h / (4·unit)) to the sums, where ‖g‖ ≤ 1, h
≥ 0 and ‖h‖² is at most the loss's bound, in units that are rounded towards zero. With d the largest
distance of the sums of neighbours, all rounds and the start are adaptive Gaussian mechanisms with
noise of scale s, and compose to μ-GDP with μ² = Σ d²/s² (Dong, Roth & Su 2022, Corollary 3.3).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetUnreachableError
from ..privacy._checks import Neighboring
from ..privacy._mechanisms.array_sampling import LARGEST_SCALE, RandomBytes, rounded_normals
from ..privacy._mechanisms.release_sum import release_sum
from ._losses import PLACES, Array, Derivatives, Loss, nearest_places

#: Whole numbers that stand for 1. Sums of 2³³ records stay below 2⁵³, and so exact in double
#: precision.
UNIT = 2**20
#: Times that the unit of Hessians counts less than the largest score: their noise has this many
#: times the scale.
HESSIAN_NOISE = 4
#: Numbers of noise that are drawn at once.
NOISE_BLOCK = 2**12
#: Whole number that a Hessian of one unit becomes.
CONSTANT = (UNIT - 1) // HESSIAN_NOISE
#: Score and Hessian of an output for one record, as score · 2^BITS + Hessian.
PackedRecords: TypeAlias = NDArray[np.int64]
#: Bits of the sum of Hessians, and most records with which it has no more: PART · UNIT /
#: HESSIAN_NOISE < 2^BITS.
BITS, PART = 30, 2**12 - 1


def squared_hessians(loss: Loss) -> Fraction:
    """Bound on the squared norm of what a record's Hessians add, in units of the largest score."""
    return loss.squared_hessians / (HESSIAN_NOISE * Fraction(loss.hessian_unit)) ** 2


def squared_distance(
    loss: Loss, neighboring: Neighboring = "zero_out", persons: bool = False
) -> Fraction:
    """Bound on the squared distance of cell sums of neighbours, in units of the largest score.

    Two records of one cell have scores at most 2 apart. Hessians are not negative, so two numbers
    are at most the larger one apart, and two vectors at most √2 times the longest. Records of two
    cells add vectors at right angles. Two persons add vectors of the length of one record, which
    are at most twice that apart.
    """
    hessians = squared_hessians(loss)
    if neighboring != "replace_one":
        return 1 + hessians
    if persons:
        return 4 * (1 + hessians)
    apart = Fraction(0) if loss.constant_hessians else hessians * min(loss.n_outputs, 2)
    return max(4 + apart, 2 * (1 + hessians))


def noise_scale(
    mu: float, releases: int | Fraction, neighboring: Neighboring, loss: Loss, persons: bool = False
) -> int:
    """Noise, in whole numbers, with which all releases together are μ-GDP.

    Parameters
    ----------
    mu : float
    releases : int or Fraction
        Number of equal releases; one with the share q of μ² is one of 1/q.
    neighboring : {"add_remove", "zero_out", "replace_one"}
    loss : Loss
    persons : bool
        Whether neighbours differ in the records of a person.

    Returns
    -------
    int
        Rounded up, from exact fractions.

    Raises
    ------
    BudgetUnreachableError
        If the noise would have to be larger than it can be drawn.
    """
    square = releases * squared_distance(loss, neighboring, persons) * (UNIT / Fraction(mu)) ** 2
    scale = math.isqrt(math.ceil(square) - 1) + 1
    if scale > LARGEST_SCALE:
        raise BudgetUnreachableError(
            f"Found mu={mu:g} for {float(releases):.0f} releases: the noise would drown every sum. "
            "Give a larger target, or a smaller max_iter."
        )
    return scale


def whole_numbers(derivatives: Derivatives, loss: Loss) -> Array:
    """Scores and Hessians as whole numbers rounded towards zero, shape (2 · n_outputs, n).

    They are scaled to just below the unit, so that rounding in double precision leads to no longer
    vector.
    """
    numbers = np.concatenate(derivatives)
    numbers[: loss.n_outputs] *= UNIT - 1
    numbers[loss.n_outputs :] *= (UNIT - 1) / (HESSIAN_NOISE * loss.hessian_unit)
    return np.trunc(numbers, out=numbers)


def bounded_records(values: Array, loss: Loss) -> Array:
    """Set records to 0 that would add more than is paid for.

    Records without numbers count as nothing too: the guarantee does not rest on the loss.

    Scores and Hessians are bounded apart. All sums of squares are exact, as whole numbers below 2⁵³
    are.

    Parameters
    ----------
    values : ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers, changed in place.
    loss : Loss
    """
    scores, hessians = np.split(values, 2)
    if _all_fit(scores, hessians, loss):
        return values
    fits = column_squares(scores) <= UNIT**2
    fits &= column_squares(hessians) <= int(squared_hessians(loss) * UNIT**2)
    fits &= (hessians == CONSTANT if loss.constant_hessians else hessians >= 0.0).all(axis=0)
    if not fits.all():
        values[:, ~fits] = 0.0
    return values


def packed_records(derivatives: Derivatives, loss: Loss) -> PackedRecords:
    """Pack what records add, bounded whole numbers, with score and Hessian of an output in one.

    The shape is (n_outputs, n_samples).
    """
    scores, hessians = np.split(bounded_records(whole_numbers(derivatives, loss), loss), 2)
    scores *= 2**BITS  # exact in double precision, as |score| ≤ UNIT
    scores += hessians
    return scores.astype(np.int64)


def unpacked(packed: PackedRecords) -> PackedRecords:
    """Scores and Hessians, shape (2 · n_outputs, n), of packed ones or of sums of at most PART."""
    return np.concatenate([packed >> BITS, packed & (2**BITS - 1)])


def records_at(outputs: Array, targets: NDArray[Any], loss: Loss) -> PackedRecords:
    """Compute what records add at their outputs, packed; losses of few targets have a table.

    The shape is (n_outputs, n_samples).
    """
    if loss.labels is None:
        return packed_records(loss.derivatives(outputs, targets), loss)
    places = nearest_places(outputs)
    places += np.multiply(targets == loss.labels[1], len(PLACES), dtype=np.intp)
    # no number is a place of the table, too
    return _table(type(loss)).take(places, mode="clip")


@functools.lru_cache(maxsize=4)
def _table(kind: type[Loss]) -> PackedRecords:
    """Table of what a record of each label adds at each of ``PLACES``, label by label."""
    loss = kind()
    outputs, targets = np.tile(PLACES, 2)[np.newaxis], np.repeat(loss.labels or (), len(PLACES))
    return np.asarray(packed_records(loss.derivatives(outputs, targets), loss)[0])


def _all_fit(scores: Array, hessians: Array, loss: Loss) -> bool:
    """Return whether all records keep their bounds, by their extremes alone.

    This is faster, and is done for losses with one output.
    """
    if len(scores) != 1 or not scores.size:
        return False
    low, high = (CONSTANT, CONSTANT) if loss.constant_hessians else (0, _largest_hessian(loss))
    # no comparison with NaN is true
    fit = scores.min() >= -UNIT and scores.max() <= UNIT
    return bool(fit and hessians.min() >= low and hessians.max() <= high)


@functools.lru_cache(maxsize=64)  # asked for every block of records
def _largest_hessian(loss: Loss) -> int:
    """Largest whole number that the Hessian of one output may be."""
    return math.isqrt(int(squared_hessians(loss) * UNIT**2))


def column_squares(values: Array) -> Array:
    """Squared norms of the columns of an array."""
    return np.asarray(np.einsum("ij,ij->j", values, values))


def packed_sums(
    packed: PackedRecords, cells: NDArray[np.integer[Any]], n_cells: int
) -> NDArray[np.int64]:
    """Sums over each cell of what records add, shape (2 · n_outputs, n_cells).

    One pass sums scores and Hessians: of as many records at once as keep them apart, unless there
    are more cells.
    """
    if n_cells > PART:
        return cell_sums(unpacked(packed).astype(np.float64), cells, n_cells).astype(np.int64)
    n_full = len(cells) // PART  # full parts, each of which is summed in places of its own
    places, parts = cells.astype(np.intp), np.zeros((len(packed), n_full + 1, n_cells), np.int64)
    full = places[: n_full * PART].reshape(n_full, PART)
    full += n_cells * np.arange(n_full)[:, np.newaxis]
    places[n_full * PART :] += n_full * n_cells
    for sums, row in zip(parts, packed):
        np.add.at(sums.reshape(-1), places, row)
    return np.asarray(unpacked(parts).sum(axis=1))


def cell_sums(values: Array, cells: NDArray[np.integer[Any]], n_cells: int) -> Array:
    """Sums of whole numbers over each cell, shape (len(values), n_cells).

    They are exact in double precision.
    """
    places = cells.astype(np.intp)  # once for all rows
    return np.array([np.bincount(places, row, n_cells) for row in values])


class NoisySums:
    """Releases of cell sums, each with fresh Gaussian noise.

    Parameters
    ----------
    loss : Loss
    scale : int
        Standard deviation of the noise, as ``noise_scale`` has it.
    random_bytes : callable
        Source of the noise.
    squared : Fraction
        Square of the distance of the sums of neighbours to which the noise is calibrated, as
        ``squared_distance``.
    """

    def __init__(
        self, loss: Loss, scale: int, random_bytes: RandomBytes, squared: Fraction = Fraction(0)
    ) -> None:
        self._loss, self._scale, self._random_bytes = loss, scale, random_bytes
        self._squared = squared * UNIT**2
        self._ahead = np.empty(0, np.int64)  # noise that no release had yet

    def release(self, sums: NDArray[np.int64]) -> tuple[Array, Array]:
        """Noisy sums of scores and Hessians, shape (n_outputs, n_cells) each.

        Parameters
        ----------
        sums : ndarray of shape (2 · n_outputs, n_cells)
            Of the whole numbers.
        """

        def add_noise(exact: NDArray[np.int64]) -> NDArray[np.int64]:
            return exact + self._fresh(exact.size).reshape(exact.shape)

        noisy = release_sum("sums over cells", sums, self._squared, add_noise)
        scores, hessians = np.split(noisy / UNIT, 2)
        return scores, hessians * (HESSIAN_NOISE * self._loss.hessian_unit)

    def _fresh(self, size: int) -> NDArray[np.int64]:
        """Noise that no release had before, and none will have again.

        Much of it is drawn at once, which is faster.
        """
        if len(self._ahead) < size:
            self._ahead = rounded_normals(self._scale, max(size, NOISE_BLOCK), self._random_bytes)
        noise, self._ahead = self._ahead[:size], self._ahead[size:]
        return noise
