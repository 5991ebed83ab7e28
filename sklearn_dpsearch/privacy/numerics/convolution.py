r"""Composition: the distribution of a sum of many independent losses, with digits in both tails, rounded up.

Losses of one scale are summed on one grid (``grid_sums``). Losses that are rare and far larger than the sum of all
others are added on coarser grids (``rare_losses``). Very long compositions are compositions of shorter ones. Each of
these gives an upper bound (docs/theory/composition_far_out.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Array
from .grid_sums import EPS, GridPart, bulk_of, masses_by, tilts, tilts_of_tails, window
from .logspace import LARGEST_EXPONENT, safe_exp
from .loss_distribution import LossDistribution, coarser, mix, on_grid, on_points
from .rare_losses import cut_off, sums_with_jumps

#: Mass that a composition may move from a far tail to infinity.
TAIL_MASS = 1e-24
#: Most grid points of a composed loss distribution. Every grid gives a bound; a larger one is tighter.
MOST_POINTS = 2**21
#: Most grid points of a composition whose rare losses are not added apart.
BULK_POINTS = 2**19
#: Grid points to a standard deviation: of one step, of the intermediate sum, and of the result.
OF_ONE, OF_SUM, OF_RESULT = 50, 4000, 400
#: Smallest interval of a grid, as a share of the largest possible sum.
FINEST = 2.0**-40
#: Steps above which a composition is composed of compositions.
LONG = 2**16
#: Smallest mass, in place of what underflows.
TINY = 1e-300
#: The loss is infinite for certain.
OPEN = LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)


def convolve(
    parts: Sequence[LossDistribution], counts: Sequence[int], tail_mass: float | None = None
) -> LossDistribution:
    """Loss distribution of the composition of ``counts[i]`` runs of ``parts[i]``, rounded up.

    Atoms are split between neighbouring grid points so that both their P- and their Q-mass stay (a mean-preserving
    spread of the likelihood ratio: only ever more loss), and convolved with fast Fourier transforms. A bound
    on their error is added to every mass; the mass of both tails goes to infinity.

    Parameters
    ----------
    parts : sequence of LossDistribution
    counts : sequence of int
    tail_mass : float, optional
        Mass that may be moved from a far tail to infinity; ``TAIL_MASS`` by default.
    """
    tail_mass = TAIL_MASS if tail_mass is None else tail_mass
    if any(pld.infinity >= 1 for pld in parts):
        return OPEN
    if list(counts) == [1]:
        return parts[0]
    runs = list(_in_groups(parts, counts, tail_mass))
    parts, counts = [pld for pld, _ in runs], [count for _, count in runs]
    if max(float(np.ptp(pld.losses)) for pld in parts) <= BULK_POINTS * _interval(parts, counts):
        grid = _Grid.of(parts, counts, tail_mass)
        if grid.high - grid.low <= BULK_POINTS:
            return grid.total(parts, tail_mass)
    return _on_several_grids(parts, counts, tail_mass)


def _in_groups(
    parts: Sequence[LossDistribution], counts: Sequence[int], tail_mass: float
) -> Iterator[tuple[LossDistribution, int]]:
    """Runs of which none is long: T steps are √T compositions of √T steps, and the rest."""
    for pld, count in zip(parts, counts):
        size = math.isqrt(count) if count > LONG else 1
        groups = -(-count // size)
        yield convolve([pld], [size], tail_mass / groups), count // size
        if count % size:
            yield convolve([pld], [count % size], tail_mass / groups), 1


# --- losses of one scale -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    """A grid, the parts on it, and the indices between which the sum lies."""

    interval: float
    steps: Sequence[GridPart]
    low: int
    high: int

    @classmethod
    def of(cls, parts: Sequence[LossDistribution], counts: Sequence[int], tail_mass: float) -> _Grid:
        """The finest grid that is worth its points, of which there are at most ``MOST_POINTS``."""
        widest = max(float(np.ptp(pld.losses)) for pld in parts)
        interval = max(_interval(parts, counts), widest / (MOST_POINTS / 8))
        while True:
            steps = [GridPart(*on_grid(pld, interval), count) for pld, count in zip(parts, counts)]
            low, high = window(steps, tail_mass)
            if high - low <= MOST_POINTS:
                return cls(interval, steps, low, high)
            interval *= 1.01 * (high - low) / MOST_POINTS

    def total(self, parts: Sequence[LossDistribution], tail_mass: float) -> LossDistribution:
        """The sum on this grid."""
        if self.high < self.low:  # both tails have all that is finite
            return OPEN
        infinity = min(1.0, _infinity(parts, [step.count for step in self.steps]) + 2 * tail_mass)
        losses = np.asarray(np.arange(self.low, self.high + 1) * self.interval, dtype=float)
        masses = _sums(self.steps, self.low, self.high, tail_mass)
        factor = max(1, int(bulk_of(self.steps, 0.0)[1] / OF_RESULT))
        total = LossDistribution(losses, masses, infinity)
        return total if factor == 1 else coarser(total, self.interval * factor)


def _sums(steps: Sequence[GridPart], low: int, high: int, tail_mass: float) -> Array:
    """Upper bounds on the masses of the sum: the smallest of all tilts."""
    masses = np.full(high - low + 1, np.inf)
    for tilt in (*tilts(steps, low, high), *tilts_of_tails(steps, tail_mass)):
        masses = np.minimum(masses, masses_by(tilt, steps, low, high))
    return np.asarray(np.maximum(masses, TINY))


def _infinity(parts: Sequence[LossDistribution], counts: Sequence[int]) -> float:
    """Mass at infinity of the product: ∏ (finite + infinite) − ∏ finite, where the total of a part may exceed 1."""
    finite = [float(pld.masses.sum()) for pld in parts]
    log_finite = sum(count * np.log(mass) for mass, count in zip(finite, counts))
    grown = sum(count * np.log1p(pld.infinity / mass) for pld, mass, count in zip(parts, finite, counts))
    lost = sum(count * np.log1p(-pld.infinity) for pld, count in zip(parts, counts))
    either = max(safe_exp(log_finite) * np.expm1(min(grown, LARGEST_EXPONENT)), -np.expm1(lost))
    return float(either * (1.0 + EPS * (64.0 + 8.0 * sum(counts))))


def deviation_of(parts: Sequence[LossDistribution], counts: Sequence[int]) -> float:
    """Standard deviation of the sum."""
    return math.sqrt(sum(count * pld.moments()[1] for pld, count in zip(parts, counts)))


def _interval(parts: Sequence[LossDistribution], counts: Sequence[int]) -> float:
    """Grid on which rounding adds about 1e-4 of the variance of the total loss, and whose indices are exact floats."""
    total, number = deviation_of(parts, counts), sum(counts)
    largest = number * max(float(np.max(np.abs(pld.losses))) for pld in parts)
    return max(min(total / math.sqrt(number) / OF_ONE, total / OF_SUM), largest * FINEST, 1e-14)


# --- rare large losses -------------------------------------------------------------------------------------------


def _on_several_grids(parts: Sequence[LossDistribution], counts: Sequence[int], tail_mass: float) -> LossDistribution:
    """The bulk on its own grid, and the sums with rare large losses on coarser ones."""
    cut = cut_off(parts, counts)
    bulk = _Grid.of(cut.bulk, counts, tail_mass).total(cut.bulk, tail_mass)
    total = LossDistribution(bulk.losses, bulk.masses)
    for level in cut.levels:
        total = mix([total, sums_with_jumps(total, level, tail_mass)], [1.0, 1.0])
    mean = bulk.moments()[0]
    infinity = min(1.0, _infinity(parts, counts) + 2 * tail_mass * (1 + len(cut.levels)))
    return _thinned(LossDistribution(total.losses, total.masses, infinity), mean, cut.deviation)


def _thinned(pld: LossDistribution, mean: float, deviation: float) -> LossDistribution:
    """Spread of a pair on points whose gaps grow in proportion to the distance from the bulk."""
    deviation = max(deviation, TINY)
    ends = np.arcsinh((pld.losses[[0, -1]] - mean) / deviation) * OF_RESULT
    points = mean + deviation * np.sinh(np.arange(np.floor(ends[0]) - 1, np.ceil(ends[1]) + 2) / OF_RESULT)
    around = np.nextafter(pld.losses[[0, -1]], [-np.inf, np.inf])  # losses that rounding cannot tell apart
    points = np.unique(np.concatenate([around, points]))
    return LossDistribution(points, np.maximum(on_points(pld, points), TINY), pld.infinity)
