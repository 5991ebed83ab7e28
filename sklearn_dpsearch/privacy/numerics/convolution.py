r"""Composition: the distribution of a sum of many independent losses, with digits in both tails, rounded up.

The fast Fourier transform errs by a share of the *largest* mass. So the masses are tilted first: p·e^{θL}/E e^{θL} has
its bulk where p has a tail, and undoing the tilt scales the error down with the tail. Every tilt gives an upper bound
on every mass, and the smallest over θ counts (docs/theory/composition_far_out.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from .._cached_property import cached_property
from .._types import Array
from .logspace import LARGEST_EXPONENT, safe_exp
from .loss_distribution import LossDistribution, on_grid

#: Mass that a composition may move from a far tail to infinity.
TAIL_MASS = 1e-24
#: Most grid points of a composed loss distribution. Every grid gives a bound; a larger one is tighter.
MOST_POINTS = 2**21
#: Grid points to a standard deviation: of one step, of the intermediate sum, and of the result.
OF_ONE, OF_SUM, OF_RESULT = 50, 1000, 400
#: Tilts move the bulk by STRIDE standard deviations, at most TILTS times in either direction.
STRIDE, TILTS = 5.0, 6
#: Logarithm of a mass that is negligible for means. It affects the choice of tilts and so digits, never bounds.
NEGLIGIBLE = -60.0
#: Smallest mass, in place of what underflows.
TINY = 1e-300
EPS = float(np.finfo(float).eps)
#: The loss is infinite for certain.
OPEN = LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)


def convolve(
    parts: Sequence[LossDistribution], counts: Sequence[int], interval: float | None = None
) -> LossDistribution:
    """Loss distribution of the composition of ``counts[i]`` runs of ``parts[i]``, rounded up.

    Atoms are split between neighbouring grid points so that both their P- and their Q-mass stay (a mean-preserving
    spread of the likelihood ratio: only ever more loss), and convolved with fast Fourier transforms. A bound
    on their error is added to every mass; the mass of both tails goes to infinity.

    Parameters
    ----------
    parts : sequence of LossDistribution
    counts : sequence of int
    interval : float, optional
        Grid of the parts, if they share one already.
    """
    if any(pld.infinity >= 1 for pld in parts):
        return OPEN
    if list(counts) == [1]:
        return parts[0]
    interval = _interval(parts, counts) if interval is None else interval
    while True:
        steps = [GridPart(*on_grid(pld, interval), count) for pld, count in zip(parts, counts)]
        low, high = _window(steps)
        if high - low <= MOST_POINTS:
            break
        interval *= 2.0 ** np.ceil(np.log2((high - low) / MOST_POINTS))
    if high < low:  # both tails have all that is finite
        return OPEN
    masses = np.full(high - low + 1, np.inf)
    for tilt in _tilts(steps, low, high):
        masses = np.minimum(masses, _masses_by(tilt, steps, low, high))
    infinity = min(1.0, _infinity(parts, counts) + 2 * TAIL_MASS)
    total = LossDistribution(np.arange(low, high + 1) * interval, np.maximum(masses, TINY), infinity)
    return _coarser(total, interval, max(1, int(_bulk(steps, 0.0)[1] / OF_RESULT)))


@dataclass(frozen=True, eq=False)
class GridPart:
    """One part on the grid, from its ``first`` index on, and how often it runs."""

    first: int
    masses: Array
    count: int

    @cached_property
    def atoms(self) -> tuple[Array, Array]:
        """Indices with a mass, and the logarithms of the masses."""
        there = np.flatnonzero(self.masses)
        return np.asarray(self.first + there, dtype=float), np.log(self.masses[there])

    def log_moment(self, tilt: float) -> float:
        """log Σ p·e^{θ·index}."""
        index, log_masses = self.atoms
        exponents = tilt * index + log_masses
        largest = float(exponents.max())
        return largest + float(np.log(np.exp(exponents - largest).sum()))

    def tilted(self, tilt: float) -> Array:
        """p·e^{θ·index}/E e^{θ·index} of the atoms."""
        index, log_masses = self.atoms
        return np.exp(tilt * index + log_masses - self.log_moment(tilt))

    def moments(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the tilted distribution, without masses that are negligible in both."""
        index, log_masses = self.atoms
        exponents = tilt * index + log_masses
        exponents -= exponents.max()
        there = exponents > NEGLIGIBLE
        index, weights = index[there], np.exp(exponents[there])
        weights /= weights.sum()
        mean = float(weights @ index)
        return mean, float(weights @ (index - mean) ** 2)

    def around(self, tilt: float, size: int) -> Array:
        """The tilted distribution on a circle of ``size`` points, its first index at 0."""
        places = (self.atoms[0] - self.first).astype(np.int64) % size
        return np.asarray(np.bincount(places, self.tilted(tilt), size), dtype=float)

    def wrong_by(self, tilt: float) -> float:
        """Bound on the relative error of a tilted mass, times the number of runs: exponents are rounded."""
        index, log_masses = self.atoms
        largest = float(np.max(np.abs(tilt * index)) + np.max(np.abs(log_masses))) + abs(self.log_moment(tilt))
        return EPS * self.count * (16.0 + 4.0 * largest)


# --- one tilt ----------------------------------------------------------------------------------------------------


def _masses_by(tilt: float, steps: Sequence[GridPart], low: int, high: int) -> Array:
    """Upper bounds on the masses of the sum at the indices from ``low`` to ``high``.

    The wrap around the circle only adds: every index also gets the masses of indices a multiple of the size away.
    """
    size = fft.next_fast_len(high - low + 1, real=True)
    around, error = _power(steps, tilt, size)
    index, offset = np.arange(low, high + 1), sum(step.first * step.count for step in steps)
    back = sum(step.count * step.log_moment(tilt) for step in steps) - tilt * index
    slack = sum(step.wrong_by(tilt) for step in steps) + EPS * 8.0 * (np.abs(back) + np.abs(tilt * index))
    bounds = (np.maximum(around[(index - offset) % size], 0.0) + error) * safe_exp(back) * (1.0 + slack)
    return np.where(back < LARGEST_EXPONENT, bounds, 1.0)


def _power(steps: Sequence[GridPart], tilt: float, size: int) -> tuple[Array, float]:
    """The tilted sum around the circle, and a bound on the error of the transforms at each point.

    A value of the transform is a sum with log₂(size) roundings of numbers that are at most 1 together. Its n-th power
    is off by n times that, times the (n−1)-th power of the modulus; and a point of the inverse transform by the mean of
    these over the circle, and by its own roundings.
    """
    rounding = EPS * (6.0 * np.log2(size) + 20.0)
    product, modulus, wrong = np.ones(size // 2 + 1, dtype=complex), np.ones(size // 2 + 1), np.ones(size // 2 + 1)
    for step in steps:
        transform = fft.rfft(step.around(tilt, size), size)
        product *= transform**step.count
        above = np.abs(transform) + rounding
        modulus *= above**step.count
        wrong += step.count / above
    return fft.irfft(product, size), rounding * float(2.0 * (modulus @ wrong) / size)


# --- tilts -------------------------------------------------------------------------------------------------------


def _tilts(steps: Sequence[GridPart], low: int, high: int) -> Iterator[float]:
    """0, and tilts that move the bulk of the sum to either end of the window."""
    yield 0.0
    bulk = _bulk(steps, 0.0)
    for sign, end in ((1.0, high), (-1.0, low)):
        tilt, (mean, deviation) = 0.0, bulk
        for _ in range(TILTS):
            if sign * (end - mean) <= STRIDE * deviation or deviation < 1.0:
                break
            tilt, (mean, deviation) = _next_tilt(steps, tilt, sign, mean, deviation)
            yield tilt


def _next_tilt(
    steps: Sequence[GridPart], tilt: float, sign: float, mean: float, deviation: float
) -> tuple[float, tuple[float, float]]:
    """The next tilt and its bulk, which meets the last tilt's bulk without a gap; heavy tails need small tilts."""
    stride = sign * STRIDE / deviation
    for _ in range(10):
        further = tilt + stride
        bulk = _bulk(steps, further)
        if sign * (bulk[0] - mean) <= 0.75 * STRIDE * (deviation + bulk[1]):
            break
        stride *= 0.5
    return further, bulk


def _bulk(steps: Sequence[GridPart], tilt: float) -> tuple[float, float]:
    """Mean and standard deviation of the tilted sum."""
    moments = [(step.count, *step.moments(tilt)) for step in steps]
    mean, variance = (sum(count * each[k] for count, *each in moments) for k in range(2))
    return float(mean), float(np.sqrt(variance))


# --- the grid ----------------------------------------------------------------------------------------------------


def _infinity(parts: Sequence[LossDistribution], counts: Sequence[int]) -> float:
    """Mass at infinity of the product: ∏ (finite + infinite) − ∏ finite, where the total of a part may exceed 1."""
    finite = [float(pld.masses.sum()) for pld in parts]
    log_finite = sum(count * np.log(mass) for mass, count in zip(finite, counts))
    grown = sum(count * np.log1p(pld.infinity / mass) for pld, mass, count in zip(parts, finite, counts))
    lost = sum(count * np.log1p(-pld.infinity) for pld, count in zip(parts, counts))
    either = max(safe_exp(log_finite) * np.expm1(min(grown, LARGEST_EXPONENT)), -np.expm1(lost))
    return float(either * (1.0 + EPS * (64.0 + 8.0 * sum(counts))))


def _interval(parts: Sequence[LossDistribution], counts: Sequence[int]) -> float:
    """Grid on which rounding adds about 1e-4 of the variance of the total loss."""
    total = np.sqrt(sum(count * pld.moments()[1] for pld, count in zip(parts, counts)))
    widest = max(float(np.ptp(pld.losses)) for pld in parts)
    finest = min(total / np.sqrt(sum(counts)) / OF_ONE, total / OF_SUM)
    return float(max(finest, widest / (MOST_POINTS / 8), 1e-9))


def _window(steps: Sequence[GridPart]) -> tuple[int, int]:
    """Grid indices between which all but ``TAIL_MASS`` of each tail of the sum lies (Chernoff's bound)."""
    low = sum(step.first * step.count for step in steps)
    high = sum((step.first + step.masses.size - 1) * step.count for step in steps)
    for order in np.geomspace(0.5, 60.0, 24) / max(_bulk(steps, 0.0)[1], 1.0):
        for sign in (1, -1):
            log_moment = sum(step.count * step.log_moment(sign * order) for step in steps)
            reach = int(np.ceil((log_moment - np.log(TAIL_MASS)) / order)) + 1
            low, high = (low, min(high, reach)) if sign > 0 else (max(low, -reach), high)
    return low, high


def _coarser(pld: LossDistribution, interval: float, factor: int) -> LossDistribution:
    """Spread of a pair on a grid that is ``factor`` times as coarse."""
    if factor == 1:
        return pld
    first, masses = on_grid(pld, interval * factor)
    losses = np.asarray((first + np.arange(masses.size)) * (interval * factor), dtype=float)
    return LossDistribution(losses, np.maximum(masses, TINY), pld.infinity)
