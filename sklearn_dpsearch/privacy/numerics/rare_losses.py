r"""Sums in which rare losses are far larger than all others together: each scale of losses on a grid of its own.

A step says first whether its loss is rare, and then what it is. Running the common part of the step even then tells
more, never less. So T steps are T common parts, which are summed on a fine grid, and apart from them the rare losses,
which are summed on a coarser grid: it may be coarse, because few of them occur. Several scales are cut off one after
the other (docs/theory/composition_far_out.md, Lemmas D and E).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft, special

from .._types import Array
from .grid_sums import EPS, GridPart, tilted_back
from .logspace import log_expm1
from .loss_distribution import LossDistribution, on_grid

#: Losses farther from the mean than CUT standard deviations of the sum of all nearer ones are rare.
CUT = 2.0
#: Losses of a level are up to RATIO times as large as those of the last one. Its grid has RATIO points to the smallest.
RATIO = 64.0
#: Smallest loss that is cut off.
SMALLEST = 1e-12
#: Orders of Chernoff's bound, to a grid point. The largest loss of a level, RATIO² points, stays in the range of exp.
ORDERS = np.geomspace(1e-5, 500.0 / RATIO**2, 40)
#: Relative rounding of sums of masses.
SLACK = 1e-13


@dataclass(frozen=True)
class Level:
    """Rare losses of one scale, each with its number of runs, and the grid on which they are summed."""

    interval: float
    jumps: tuple[tuple[LossDistribution, int], ...]


@dataclass(frozen=True)
class Cut:
    """The common losses of each part, the standard deviation of their sum, and levels of rare losses."""

    bulk: tuple[LossDistribution, ...]
    deviation: float
    levels: tuple[Level, ...]


def cut_off(parts: Sequence[LossDistribution], counts: Sequence[int]) -> Cut:
    """Cut rare losses off. Any cut gives a bound."""
    distances = [np.abs(pld.losses - pld.moments()[0]) for pld in parts]
    farthest = max(float(distance.max()) for distance in distances)
    end, deviation = farthest, _deviation(parts, counts, distances, farthest)
    while SMALLEST < CUT * deviation < 0.7 * end:
        end = CUT * deviation
        deviation = _deviation(parts, counts, distances, end)
    bulk = tuple(
        LossDistribution(pld.losses[near <= end], pld.masses[near <= end]) for pld, near in zip(parts, distances)
    )
    levels = []
    while end < farthest:
        jumps = [
            (_jumps(pld, near, end, RATIO * end), count)
            for pld, near, count in zip(parts, distances, counts)
            if np.any((near > end) & (near <= RATIO * end) & (pld.masses > 0))
        ]
        levels += [Level(end / RATIO, tuple(jumps))] if jumps else []
        end *= RATIO
    return Cut(bulk, deviation, tuple(levels))


def _deviation(
    parts: Sequence[LossDistribution], counts: Sequence[int], distances: Sequence[Array], end: float
) -> float:
    """Root of the sum of the squared distances up to ``end``."""
    squares = [
        count * float(pld.masses @ np.where(near <= end, near, 0.0) ** 2)
        for pld, near, count in zip(parts, distances, counts)
    ]
    return float(np.sqrt(sum(squares)))


def _jumps(pld: LossDistribution, distance: Array, end: float, farther: float) -> LossDistribution:
    """Rare losses between two distances, relative to a common step.

    With P and Q the masses of what is nearer, p/P is their mass and log(Q/P) is added to them (Lemma D).
    """
    near, here = distance <= end, (distance > end) & (distance <= farther)
    p = float(pld.masses[near].sum()) * (1.0 - SLACK)
    common = near & (pld.masses > 0)
    least = float(pld.losses[common].min())  # Q may be less than the smallest float
    log_q = np.log(float(pld.masses[common] @ np.exp(least - pld.losses[common])) * (1.0 + SLACK)) - least
    return LossDistribution(pld.losses[here] + (log_q - np.log(p)) + 4.0 * EPS * abs(least), pld.masses[here] / p)


# --- one level ---------------------------------------------------------------------------------------------------


def sums_with_jumps(total: LossDistribution, level: Level, tail_mass: float) -> LossDistribution:
    """Sums of a total of smaller losses and at least one of the level's rare losses, rounded up."""
    start = GridPart(*on_grid(total, level.interval), 1)
    jumps = [GridPart(*on_grid(pld, level.interval), count) for pld, count in level.jumps]
    low, high, tilts = _window(start, jumps, tail_mass)
    if high < low:  # both tails have all of it
        return LossDistribution(np.array([]), np.array([]))
    masses = np.full(high - low + 1, np.inf)
    for tilt in tilts:
        masses = np.minimum(masses, _masses_by(tilt, start, jumps, low, high))
    kept = masses > 0
    losses = np.asarray(np.arange(low, high + 1)[kept] * level.interval, dtype=float)
    return LossDistribution(losses, masses[kept])


def _log_rate(jumps: Sequence[GridPart], tilt: float) -> float:
    """log ∏ (1 + E e^{θ·jump})^n."""
    return float(sum(jump.count * np.logaddexp(0.0, jump.log_moment(tilt)) for jump in jumps))


def _window(start: GridPart, jumps: Sequence[GridPart], tail_mass: float) -> tuple[int, int, list[float]]:
    """Indices between which all but ``tail_mass`` of each tail lies (Chernoff's bound), and tilts for both tails."""
    ends, tilts = [], [0.0]
    for sign in (-1.0, 1.0):
        log_moments = np.array(
            [start.log_moment(tilt) + log_expm1(_log_rate(jumps, tilt)) for tilt in sign * ORDERS], dtype=float
        )
        for tail in (tail_mass**0.5, tail_mass):
            reach = (log_moments - np.log(tail)) / ORDERS
            best = int(np.argmin(reach))
            tilts.append(float(sign * ORDERS[best]))
        ends.append(int(np.ceil(reach[best])) + 1)
    return -ends[0], ends[1], tilts


def _masses_by(tilt: float, start: GridPart, jumps: Sequence[GridPart], low: int, high: int) -> Array:
    """Upper bounds on the masses from ``low`` to ``high``, as ``grid_sums.masses_by``."""
    circle = _around_circle(tilt, start, jumps, fft.next_fast_len(high - low + 1, real=True))
    log_moment = start.log_moment(tilt) + _log_rate(jumps, tilt)
    return tilted_back(circle, tilt, log_moment, (start, *jumps), low, high)


def _around_circle(tilt: float, start: GridPart, jumps: Sequence[GridPart], size: int) -> tuple[Array, float]:
    """The tilted sums around the circle, and a bound on the error of the transforms at each point.

    (1 + l)^n − 1 over (1 + |l|)^n is computed without cancellation. Its error is that of l, n times, and roundings.
    """
    rounding = EPS * (6.0 * np.log2(size) + 20.0)
    rate = _log_rate(jumps, tilt)
    exponent = np.zeros(size // 2 + 1, dtype=complex)
    log_modulus, wrong = np.full(exponent.size, -rate), np.zeros(exponent.size)
    for jump in jumps:
        weight = float(np.exp(jump.log_moment(tilt)))
        transform = weight * fft.rfft(jump.around(tilt, size), size)
        above = np.abs(1.0 + transform) + 2.0 * rounding * weight
        exponent += jump.count * special.log1p(transform)
        log_modulus += jump.count * np.log(above)
        wrong += jump.count * 2.0 * rounding * weight / above
    ratio = special.expm1(exponent) * np.exp(-rate) if rate < 1 else np.exp(exponent - rate) - np.exp(-rate)
    roundings = EPS * (16.0 + len(jumps))
    error = np.exp(log_modulus) * (wrong + roundings * np.abs(exponent)) + roundings * np.abs(ratio)
    bulk = fft.rfft(start.around(tilt, size), size)
    product = bulk * ratio
    total = (np.abs(bulk) + rounding) * error + 2.0 * rounding * np.abs(ratio)
    return fft.irfft(product, size), float(2.0 * total.sum() / size)
