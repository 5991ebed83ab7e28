r"""Sums with Gaussian noise, exact: whole numbers of a small unit, and rounded normals.

One record is in one cell of a round. There it adds (g, h / (4·h_max)) to the sums, where ‖g‖ ≤ 1 and ‖h‖ ≤ h_max: a
vector of norm at most √(1 + 1/16), in units that are rounded towards zero. All rounds and the start, R together, are
adaptive Gaussian mechanisms with noise of scale s, and compose to μ-GDP with μ² = R·(17/16)/s² (Dong, Roth & Su 2022,
Corollary 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetUnreachableError
from ..privacy._types import Neighboring
from ..privacy.mechanisms.rounded_normal import LARGEST_SCALE, ByteSource, rounded_normals
from .losses import Array, Derivatives, Loss

#: Whole numbers that stand for 1. Sums of 2³³ records stay below 2⁵³, and so exact in double precision.
UNIT = 2**20
#: Times that the largest Hessian counts less than the largest score: their noise has this many times the scale.
HESSIAN_NOISE = 4
#: Square of the norm of what one record adds, in units of the largest score.
SQUARED_SENSITIVITY = 1 + Fraction(1, HESSIAN_NOISE**2)
#: The largest square of the norm of what one record adds, in whole numbers.
LARGEST_SQUARE = int(SQUARED_SENSITIVITY * UNIT**2)
#: Largest distance of the sums of neighbours ÷ the largest norm of a record.
DISTANCE = {"add_remove": 1, "zero_out": 1, "replace_one": 2}


def noise_scale(mu: float, releases: int, neighboring: Neighboring) -> int:
    """Standard deviation, in whole numbers, of the noise with which all releases together are μ-GDP.

    Parameters
    ----------
    mu : float
    releases : int
        Number of rounds, with the start.
    neighboring : {"add_remove", "zero_out", "replace_one"}

    Returns
    -------
    int
        Rounded up, from exact fractions.

    Raises
    ------
    BudgetUnreachableError
        If the noise would have to be larger than it can be drawn.
    """
    square = releases * SQUARED_SENSITIVITY * (DISTANCE[neighboring] * UNIT / Fraction(mu)) ** 2
    scale = math.isqrt(math.ceil(square) - 1) + 1
    if scale > LARGEST_SCALE:
        raise BudgetUnreachableError(
            f"Found mu={mu:g} for {releases - 1} rounds: the noise would drown every sum. Give a larger target, or a "
            "smaller max_iter."
        )
    return scale


def whole(derivatives: Derivatives, loss: Loss) -> Array:
    """Derivatives as whole numbers, rounded towards zero: shape (2 · n_outputs, n_samples).

    They are scaled to just below the unit, so that rounding in double precision leads to no longer vector.
    """
    found = np.concatenate(derivatives)
    found[: loss.n_outputs] *= UNIT - 1
    found[loss.n_outputs :] *= (UNIT - 1) / (HESSIAN_NOISE * loss.largest_hessian)
    return np.trunc(found, out=found)


def bounded(values: Array) -> Array:
    """Set records to 0 that would add more than is paid for, or no number: the guarantee does not rest on the loss.

    Parameters
    ----------
    values : ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers, changed in place.
    """
    fits = np.einsum("ij,ij->j", values, values) <= LARGEST_SQUARE  # exact, as whole numbers below 2⁵³ are
    if not fits.all():
        values[:, ~fits] = 0.0
    return values


class NoisySums:
    """Releases of sums, each with fresh noise.

    Parameters
    ----------
    loss : Loss
    scale : int
        Standard deviation of the noise, as ``noise_scale`` has it.
    sizes : sequence of int
        Number of cells of each release, all of which are drawn at once.
    random_bytes : callable
        Source of the noise.
    """

    def __init__(self, loss: Loss, scale: int, sizes: Sequence[int], random_bytes: ByteSource) -> None:
        rows = 2 * loss.n_outputs
        drawn = rounded_normals(scale, rows * sum(sizes), random_bytes)
        ends = np.cumsum([rows * size for size in sizes])[:-1]
        self._noise = iter([part.reshape(rows, -1) for part in np.split(drawn, ends)])
        self._loss = loss

    def release(self, sums: NDArray[np.int64]) -> tuple[Array, Array]:
        """Noisy sums of scores and of Hessians, each of shape (n_outputs, n_cells).

        Parameters
        ----------
        sums : ndarray of shape (2 · n_outputs, n_cells)
            Of the whole numbers.
        """
        noisy = (sums + next(self._noise)) / UNIT
        scores, hessians = np.split(noisy, 2)
        return scores, hessians * (HESSIAN_NOISE * self._loss.largest_hessian)
