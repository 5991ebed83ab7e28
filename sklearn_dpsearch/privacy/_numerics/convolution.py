r"""Composition: sums of many independent losses, with digits in both tails, rounded up.

Losses of one scale are summed on one grid (``grid_sums``). Very long compositions are compositions
of shorter ones.

Losses that are rare and far larger than the sum of all others are added on coarser grids. A step
says first whether its loss is rare, and then what it is. Running the common part of the step even
then tells more, never less. So T steps are T common parts, which are summed on a fine grid, and
apart from them the rare losses, which are summed on a coarser grid: it may be coarse, because few
of them occur. Several scales are cut off one after the other. Each of these gives an upper bound
(docs/theory/composition_far_out.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from scipy import fft, special

from .._checks import Array
from . import grid_sums
from .arithmetic import LARGEST_EXPONENT, log_expm1, safe_exp
from .grid_sums import GridPart
from .loss_distribution import LossDistribution, coarser, mix, on_grid, on_points

#: Loss distributions of a composition, and how often each runs.
Parts: TypeAlias = Sequence[LossDistribution]
Counts: TypeAlias = Sequence[int]
#: Mass that a composition may move from a far tail to infinity.
TAIL_MASS = 1e-24
#: Most grid points of a composed loss distribution. Every grid gives a bound; a larger one is
#: tighter.
MOST_POINTS = 2**21
#: Most grid points of a composition whose rare losses are not added apart.
BULK_POINTS = 2**19
#: Grid points to a standard deviation: of one step, of the intermediate sum, and of the result.
STEP_POINTS, SUM_POINTS, RESULT_POINTS = 50, 4000, 400
#: Smallest interval of a grid, as a share of the largest possible sum.
FINEST_STEP = 2.0**-40
#: Steps above which a composition is composed of compositions.
LONG_COMPOSITION = 2**16
#: Smallest mass, in place of what underflows.
TINY_MASS = 1e-300
#: The loss is infinite for certain.
ALL_INFINITE = LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)


def convolve(parts: Parts, counts: Counts, tail_mass: float | None = None) -> LossDistribution:
    """Loss distribution of a composition of ``counts[i]`` runs of each ``parts[i]``, rounded up.

    Atoms are split between neighbouring grid points so that both their P- and their Q-mass stay (a
    mean-preserving spread of the likelihood ratio: only ever more loss), and convolved with fast
    Fourier transforms. A bound on their error is added to every mass; the mass of both tails goes
    to infinity.

    Parameters
    ----------
    parts : sequence of LossDistribution
    counts : sequence of int
    tail_mass : float, optional
        Mass that may be moved from a far tail to infinity; ``TAIL_MASS`` by default.
    """
    tail_mass = TAIL_MASS if tail_mass is None else tail_mass
    if any(pld.infinity >= 1 for pld in parts):
        return ALL_INFINITE
    if list(counts) == [1]:
        return parts[0]
    runs = []
    for pld, count in zip(parts, counts):
        # T steps of a long composition are √T compositions of √T steps, and the rest
        size = math.isqrt(count) if count > LONG_COMPOSITION else 1
        groups = -(-count // size)
        runs.append((convolve([pld], [size], tail_mass / groups), count // size))
        if count % size:
            runs.append((convolve([pld], [count % size], tail_mass / groups), 1))
    parts, counts = [pld for pld, _ in runs], [count for _, count in runs]
    reach = BULK_POINTS * _grid_interval(parts, counts)
    if max(float(np.ptp(pld.losses)) for pld in parts) <= reach:
        grid = _Grid.of(parts, counts, tail_mass)
        if grid.high - grid.low <= BULK_POINTS:
            return grid.total(parts, tail_mass)
    return _convolve_on_grids(parts, counts, tail_mass)


# --- losses of one scale --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    """Grid for a composition: the parts on it, and its window."""

    interval: float
    steps: Sequence[GridPart]
    low: int
    high: int

    @classmethod
    def of(cls, parts: Parts, counts: Counts, tail_mass: float) -> _Grid:
        """Finest grid for a composition that is worth its points, at most ``MOST_POINTS``."""
        widest = max(float(np.ptp(pld.losses)) for pld in parts)
        interval = max(_grid_interval(parts, counts), widest / (MOST_POINTS / 8))
        while True:
            steps = [GridPart(*on_grid(pld, interval), count) for pld, count in zip(parts, counts)]
            low, high = grid_sums.tail_window(steps, tail_mass)
            if high - low <= MOST_POINTS:
                return cls(interval, steps, low, high)
            interval *= 1.01 * (high - low) / MOST_POINTS

    def total(self, parts: Parts, tail_mass: float) -> LossDistribution:
        """Loss distribution of the composition on this grid."""
        if self.high < self.low:  # both tails have all that is finite
            return ALL_INFINITE
        counts = [step.count for step in self.steps]
        infinity = min(1.0, _mass_at_infinity(parts, counts) + 2 * tail_mass)
        losses = np.asarray(np.arange(self.low, self.high + 1) * self.interval, dtype=float)
        # each tilt bounds all masses from above
        window = self.steps, self.low, self.high
        tilts = (*grid_sums.tilts(*window), *grid_sums.tilts_of_tails(self.steps, tail_mass))
        masses = reduce(np.minimum, (grid_sums.masses_by(tilt, *window) for tilt in tilts))
        factor = max(1, int(grid_sums.bulk_of(self.steps, 0.0)[1] / RESULT_POINTS))
        total = LossDistribution(losses, np.maximum(masses, TINY_MASS), infinity)
        return total if factor == 1 else coarser(total, self.interval * factor)


def _mass_at_infinity(parts: Parts, counts: Counts) -> float:
    """Mass at infinite loss of a composition.

    It is ∏ (finite + infinite) − ∏ finite, where the total of a part may exceed 1.
    """
    finite = [float(pld.masses.sum()) for pld in parts]
    log_finite = sum(count * np.log(mass) for mass, count in zip(finite, counts))
    shares = [pld.infinity / mass for pld, mass in zip(parts, finite)]
    grown = sum(count * np.log1p(share) for share, count in zip(shares, counts))
    lost = sum(count * np.log1p(-pld.infinity) for pld, count in zip(parts, counts))
    either = max(safe_exp(log_finite) * np.expm1(min(grown, LARGEST_EXPONENT)), -np.expm1(lost))
    return float(either * (1.0 + grid_sums.EPS * (64.0 + 8.0 * sum(counts))))


def _grid_interval(parts: Parts, counts: Counts) -> float:
    """Interval of the grid for a composition.

    Rounding adds about 1e-4 of the variance of the total loss, and indices are exact floats.
    """
    total = math.sqrt(sum(count * pld.moments()[1] for pld, count in zip(parts, counts)))
    number = sum(counts)
    largest = number * max(float(np.max(np.abs(pld.losses))) for pld in parts)
    wanted = min(total / math.sqrt(number) / STEP_POINTS, total / SUM_POINTS)
    return max(wanted, largest * FINEST_STEP, 1e-14)


# --- rare large losses ----------------------------------------------------------------------------


def _convolve_on_grids(parts: Parts, counts: Counts, tail_mass: float) -> LossDistribution:
    """Compose common losses on a fine grid, rare ones on coarser grids."""
    cut = cut_off(parts, counts)
    bulk = _Grid.of(cut.bulk, counts, tail_mass).total(cut.bulk, tail_mass)
    total = LossDistribution(bulk.losses, bulk.masses)
    for level in cut.levels:
        total = mix([total, sums_with_jumps(total, level, tail_mass)], [1.0, 1.0])
    infinity = min(1.0, _mass_at_infinity(parts, counts) + 2 * tail_mass * (1 + len(cut.levels)))
    total = LossDistribution(total.losses, total.masses, infinity)
    return _spread_on_growing_gaps(total, bulk.moments()[0], cut.deviation)


def _spread_on_growing_gaps(
    pld: LossDistribution, mean: float, deviation: float
) -> LossDistribution:
    """Spread on points whose gaps grow in proportion to the distance from the bulk."""
    deviation = max(deviation, TINY_MASS)
    ends = np.arcsinh((pld.losses[[0, -1]] - mean) / deviation) * RESULT_POINTS
    steps = np.arange(np.floor(ends[0]) - 1, np.ceil(ends[1]) + 2)
    # losses that rounding cannot tell apart
    around = np.nextafter(pld.losses[[0, -1]], [-np.inf, np.inf])
    points = np.unique(np.append(around, mean + deviation * np.sinh(steps / RESULT_POINTS)))
    return LossDistribution(points, np.maximum(on_points(pld, points), TINY_MASS), pld.infinity)


#: Losses farther from the mean than CUT standard deviations of the sum of all nearer ones are rare.
CUT = 2.0
#: Losses of a level are up to RATIO times as large as those of the last one. Its grid has RATIO
#: points to the smallest.
RATIO = 64.0
#: Smallest loss that is cut off.
SMALLEST_LOSS = 1e-12
#: Orders of Chernoff's bound, to a grid point. The largest loss of a level, RATIO² points, stays in
#: the range of exp.
ORDERS = np.geomspace(1e-5, 500.0 / RATIO**2, 40)
#: Relative rounding of sums of masses.
SLACK = 1e-13


@dataclass(frozen=True)
class Level:
    """Rare losses of one scale, their numbers of runs, and their grid."""

    interval: float
    jumps: tuple[tuple[LossDistribution, int], ...]


@dataclass(frozen=True)
class Cut:
    """Common losses of each part, and levels of rare losses."""

    bulk: tuple[LossDistribution, ...]
    deviation: float
    levels: tuple[Level, ...]


def cut_off(parts: Parts, counts: Counts) -> Cut:
    """Cut rare large losses off, by scale; any cut gives a bound."""
    distances = [np.abs(pld.losses - pld.moments()[0]) for pld in parts]

    def deviation_up_to(end: float) -> float:
        """Standard deviation of the summed losses up to a distance."""
        squares = [np.where(distance <= end, distance, 0.0) ** 2 for distance in distances]
        variances = [float(pld.masses @ square) for pld, square in zip(parts, squares)]
        return float(np.sqrt(sum(count * part for count, part in zip(counts, variances))))

    end = farthest = max(float(distance.max()) for distance in distances)
    deviation = deviation_up_to(end)
    while SMALLEST_LOSS < CUT * deviation < 0.7 * end:
        end = CUT * deviation
        deviation = deviation_up_to(end)
    close = [distance <= end for distance in distances]
    common = [LossDistribution(pld.losses[i], pld.masses[i]) for pld, i in zip(parts, close)]
    levels = []
    while end < farthest:
        jumps = [
            (_rare_losses_between(pld, distance, end, RATIO * end), count)
            for pld, distance, count in zip(parts, distances, counts)
            if np.any((distance > end) & (distance <= RATIO * end) & (pld.masses > 0))
        ]
        levels += [Level(end / RATIO, tuple(jumps))] if jumps else []
        end *= RATIO
    return Cut(tuple(common), deviation, tuple(levels))


def _rare_losses_between(
    pld: LossDistribution, distance: Array, end: float, farther: float
) -> LossDistribution:
    """Rare losses between two distances, relative to a common step.

    With P and Q the masses of what is nearer, p/P is their mass and log(Q/P) is added to them
    (Lemma D).
    """
    common_side, rare = distance <= end, (distance > end) & (distance <= farther)
    p = float(pld.masses[common_side].sum()) * (1.0 - SLACK)
    common = common_side & (pld.masses > 0)
    smallest = float(pld.losses[common].min())  # Q may be less than the smallest float
    scaled_q = float(pld.masses[common] @ np.exp(smallest - pld.losses[common]))
    log_q = np.log(scaled_q * (1.0 + SLACK)) - smallest
    losses = pld.losses[rare] + (log_q - np.log(p)) + 4.0 * grid_sums.EPS * abs(smallest)
    return LossDistribution(losses, pld.masses[rare] / p)


# --- one level ------------------------------------------------------------------------------------


def sums_with_jumps(total: LossDistribution, level: Level, tail_mass: float) -> LossDistribution:
    """Loss distribution of sums with at least one rare loss, rounded up."""
    start = GridPart(*on_grid(total, level.interval), 1)
    jumps = [GridPart(*on_grid(pld, level.interval), count) for pld, count in level.jumps]
    low, high, tilts = _window_with_jumps(start, jumps, tail_mass)
    if high < low:  # both tails have all of it
        return LossDistribution(np.array([]), np.array([]))
    bounds = (_masses_with_jumps(tilt, start, jumps, low, high) for tilt in tilts)
    masses = reduce(np.minimum, bounds)
    positive = masses > 0
    losses = np.asarray(np.arange(low, high + 1)[positive] * level.interval, dtype=float)
    return LossDistribution(losses, masses[positive])


def _log_jump_rate(jumps: Sequence[GridPart], tilt: float) -> float:
    """Logarithm of the tilted rate of rare losses, ∏ (1 + E e^{θ·jump})^n."""
    return float(sum(jump.count * np.logaddexp(0.0, jump.log_moment(tilt)) for jump in jumps))


def _window_with_jumps(
    start: GridPart, jumps: Sequence[GridPart], tail_mass: float
) -> tuple[int, int, list[float]]:
    """Window of grid indices for sums with rare losses, and tilts.

    It leaves out ``tail_mass`` of each tail (Chernoff's bound).
    """
    ends, tilts = [], [0.0]
    for sign in (-1.0, 1.0):
        bulk = np.array([start.log_moment(tilt) for tilt in sign * ORDERS])
        rates = np.array([_log_jump_rate(jumps, tilt) for tilt in sign * ORDERS])
        log_moments = bulk + log_expm1(rates)
        for tail in (tail_mass**0.5, tail_mass):
            reach = (log_moments - np.log(tail)) / ORDERS
            best = int(np.argmin(reach))
            tilts.append(float(sign * ORDERS[best]))
        ends.append(int(np.ceil(reach[best])) + 1)
    return -ends[0], ends[1], tilts


def _masses_with_jumps(
    tilt: float, start: GridPart, jumps: Sequence[GridPart], low: int, high: int
) -> Array:
    """Upper bounds on masses of sums with rare losses, by one tilt, as ``grid_sums.masses_by``."""
    size = fft.next_fast_len(high - low + 1, real=True)
    circle = _tilted_sums_with_jumps(tilt, start, jumps, size)
    log_moment = start.log_moment(tilt) + _log_jump_rate(jumps, tilt)
    return grid_sums.tilted_back(circle, tilt, log_moment, (start, *jumps), low, high)


def _tilted_sums_with_jumps(
    tilt: float, start: GridPart, jumps: Sequence[GridPart], size: int
) -> tuple[Array, float]:
    """Tilted sums with rare losses around the circle, and their error.

    (1 + l)^n − 1 over (1 + |l|)^n is computed without cancellation. Its error is that of l, n
    times, and roundings.
    """
    rounding = grid_sums.EPS * (6.0 * np.log2(size) + 20.0)
    rate = _log_jump_rate(jumps, tilt)
    exponent = np.zeros(size // 2 + 1, dtype=complex)
    log_modulus, wrong = np.full(exponent.size, -rate), np.zeros(exponent.size)
    for jump in jumps:
        weight = float(np.exp(jump.log_moment(tilt)))
        transform = weight * fft.rfft(jump.tilted_on_circle(tilt, size), size)
        above = np.abs(1.0 + transform) + 2.0 * rounding * weight
        exponent += jump.count * special.log1p(transform)
        log_modulus += jump.count * np.log(above)
        wrong += jump.count * 2.0 * rounding * weight / above
    ratio = np.exp(exponent - rate) - np.exp(-rate)
    if rate < 1:
        ratio = special.expm1(exponent) * np.exp(-rate)
    roundings = grid_sums.EPS * (16.0 + len(jumps))
    error = np.exp(log_modulus) * (wrong + roundings * np.abs(exponent)) + roundings * np.abs(ratio)
    bulk = fft.rfft(start.tilted_on_circle(tilt, size), size)
    product = bulk * ratio
    total = (np.abs(bulk) + rounding) * error + 2.0 * rounding * np.abs(ratio)
    return fft.irfft(product, size), float(2.0 * total.sum() / size)
