r"""Sums of losses on one grid: tilted fast Fourier transforms that bound every mass from above.

The fast Fourier transform errs by a share of the *largest* mass. So the masses are tilted first:
p·e^{θL}/E e^{θL} has its bulk where p has a tail, and undoing the tilt scales the error down with
the tail. Every tilt gives an upper bound on every mass, and the smallest over θ counts
(docs/theory/composition_far_out.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import fft

from .._checks import Array, cached_property
from .arithmetic import LARGEST_EXPONENT, safe_exp

#: Tilts move the bulk by STRIDE standard deviations, at most TILTS times in either direction.
STRIDE, TILTS = 5.0, 6
#: Orders of Chernoff's bound, in standard deviations of the sum: rare large losses need small ones.
ORDERS = np.geomspace(0.01, 60.0, 36)
#: Points to a standard deviation of a part that is spread for bounds on its moments.
SPREAD_POINTS = 16
#: Logarithm of a mass that is negligible for means. It affects the choice of tilts and so digits,
#: never bounds.
NEGLIGIBLE_MASS = -60.0
#: Logarithm of a power of a transform that is left out.
NEGLIGIBLE_POWER = -90.0
EPS = float(np.finfo(float).eps)
#: Tilted masses around a circle, and the error of each.
Circle: TypeAlias = tuple[Array, float]


@dataclass(frozen=True, eq=False)
class GridPart:
    """Loss distribution on a grid, and how often it runs."""

    first: int
    masses: Array
    count: int

    @cached_property
    def atoms(self) -> tuple[Array, Array]:
        """Grid indices with a mass, and the logarithms of their masses."""
        places = np.flatnonzero(self.masses)
        return np.asarray(self.first + places, dtype=float), np.log(self.masses[places])

    def log_moment(self, tilt: float) -> float:
        """Logarithm of the moment generating function of the grid index."""
        index, log_masses = self.atoms
        exponents = tilt * index + log_masses
        largest = float(exponents.max())
        return largest + float(np.log(np.exp(exponents - largest).sum()))

    @cached_property
    def spread(self) -> tuple[GridPart, int]:
        """Coarser copy of the part on every g-th point, and g.

        Each atom goes to the two points around it, with the same mean.
        """
        gap = max(1, int(self.moments(0.0)[1] ** 0.5 / SPREAD_POINTS))
        first = self.first // gap
        places, beyond = np.divmod(self.first - first * gap + np.arange(self.masses.size), gap)
        size = int(places[-1]) + 2
        masses = np.bincount(places, self.masses * (gap - beyond), size)
        masses[1:] += np.bincount(places, self.masses * beyond, size)[:-1]
        return GridPart(first, masses / gap, self.count), gap

    def log_moment_above(self, tilt: float) -> float:
        """Upper bound on ``log_moment`` from far fewer points, by convexity."""
        part, gap = self.spread
        return part.log_moment(tilt * gap)

    def moments(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the tilted grid index, but for masses negligible in both."""
        index, log_masses = self.atoms
        exponents = tilt * index + log_masses
        exponents -= exponents.max()
        counted = exponents > NEGLIGIBLE_MASS
        index, weights = index[counted], np.exp(exponents[counted])
        weights /= weights.sum()
        mean = float(weights @ index)
        return mean, float(weights @ (index - mean) ** 2)

    def tilted_on_circle(self, tilt: float, size: int) -> Array:
        """Tilted masses on a circle of ``size`` points.

        They are p·e^{θ·index}/E e^{θ·index}, with index 0 at 0.
        """
        index, log_masses = self.atoms
        tilted = np.exp(tilt * index + log_masses - self.log_moment(tilt))
        return np.asarray(np.bincount(index.astype(np.int64) % size, tilted, size), dtype=float)

    def relative_error(self, tilt: float) -> float:
        """Bound on the relative error of tilted masses of all runs, from rounded exponents."""
        index, log_masses = self.atoms
        largest = float(np.max(np.abs(tilt * index)) + np.max(np.abs(log_masses)))
        largest += abs(self.log_moment(tilt))
        return EPS * self.count * (16.0 + 4.0 * largest)


# --- one tilt -------------------------------------------------------------------------------------


def masses_by(tilt: float, steps: Sequence[GridPart], low: int, high: int) -> Array:
    """Upper bounds on the masses of a sum from ``low`` to ``high``, by one tilt.

    The wrap around the circle only adds: every index also gets the masses of indices a multiple of
    the size away.
    """
    circle = tilted_power(steps, tilt, fft.next_fast_len(high - low + 1, real=True))
    log_moment = sum(step.count * step.log_moment(tilt) for step in steps)
    return tilted_back(circle, tilt, log_moment, steps, low, high)


def tilted_back(
    circle: Circle, tilt: float, log_moment: float, steps: Sequence[GridPart], low: int, high: int
) -> Array:
    """Upper bounds on masses from tilted ones around a circle, with the error of each."""
    around, error = circle
    index = np.arange(low, high + 1)
    back = log_moment - tilt * index
    rounding = EPS * 8.0 * (np.abs(back) + np.abs(tilt * index))
    slack = sum(step.relative_error(tilt) for step in steps) + rounding
    bounds = (np.maximum(around[index % around.size], 0.0) + error) * safe_exp(back) * (1.0 + slack)
    return np.where(back < LARGEST_EXPONENT, bounds, 1.0)


def tilted_power(steps: Sequence[GridPart], tilt: float, size: int) -> Circle:
    """Tilted sum of many runs around the circle, and its error.

    A value of the transform is a sum with log₂(size) roundings of numbers that are at most 1
    together. Its n-th power is off by n times that, times the (n−1)-th power of the modulus; and a
    point of the inverse transform by the mean of these over the circle, and by its own roundings.
    Where the power of the modulus is next to nothing it counts as an error, and the power itself is
    left out.
    """
    rounding = EPS * (6.0 * np.log2(size) + 20.0)
    transforms = [fft.rfft(step.tilted_on_circle(tilt, size), size) for step in steps]
    log_modulus, wrong = np.zeros(size // 2 + 1), np.ones(size // 2 + 1)
    for step, transform in zip(steps, transforms):
        above = np.abs(transform) + rounding
        log_modulus += step.count * np.log(above)
        wrong += step.count / above
    counts, modulus = log_modulus > NEGLIGIBLE_POWER, np.exp(log_modulus)
    product = np.zeros(size // 2 + 1, dtype=complex)
    powers = [transform[counts] ** step.count for step, transform in zip(steps, transforms)]
    product[counts] = np.prod(powers, axis=0)
    error = rounding * float(2.0 * (modulus @ wrong)) + 2.0 * float(modulus[~counts].sum())
    return fft.irfft(product, size), error / size


# --- tilts ----------------------------------------------------------------------------------------


def tilts(steps: Sequence[GridPart], low: int, high: int) -> Iterator[float]:
    """Tilts that move the bulk of a sum across the window; 0 comes first."""
    yield 0.0
    bulk = bulk_of(steps, 0.0)
    for sign, end in ((1.0, high), (-1.0, low)):
        tilt, (mean, deviation) = 0.0, bulk
        for _ in range(TILTS):
            if sign * (end - mean) <= STRIDE * deviation or deviation < 1.0:
                break
            tilt, (mean, deviation) = _next_tilt(steps, tilt, sign, mean, deviation)
            yield tilt


def tilts_of_tails(steps: Sequence[GridPart], tail_mass: float) -> Iterator[float]:
    """Tilts that Chernoff's bound takes for a few tail masses.

    Of two bulks far apart the mean is in neither.
    """
    orders = ORDERS / max(bulk_of(steps, 0.0)[1], 1.0)
    moments = ((step.count * step.log_moment_above(order) for step in steps) for order in orders)
    log_moments = np.array([sum(moment) for moment in moments])
    for share in (0.25, 0.5, 0.75):
        yield float(orders[np.argmin((log_moments - share * np.log(tail_mass)) / orders)])


def _next_tilt(
    steps: Sequence[GridPart], tilt: float, sign: float, mean: float, deviation: float
) -> tuple[float, tuple[float, float]]:
    """Tilt whose bulk meets the last tilt's bulk without a gap.

    Heavy tails need small tilts.
    """
    stride = sign * STRIDE / deviation
    for _ in range(10):
        further = tilt + stride
        bulk = bulk_of(steps, further)
        if sign * (bulk[0] - mean) <= 0.75 * STRIDE * (deviation + bulk[1]):
            break
        stride *= 0.5
    return further, bulk


def bulk_of(steps: Sequence[GridPart], tilt: float) -> tuple[float, float]:
    """Mean and standard deviation of the tilted sum."""
    moments = [(step.count, *step.moments(tilt)) for step in steps]
    mean, variance = (sum(count * moment[k] for count, *moment in moments) for k in range(2))
    return float(mean), float(np.sqrt(variance))


# --- the window -----------------------------------------------------------------------------------


def tail_window(steps: Sequence[GridPart], tail_mass: float) -> tuple[int, int]:
    """Grid indices that leave a small mass in each tail, by Chernoff's bound."""
    low = sum(step.first * step.count for step in steps)
    high = sum((step.first + step.masses.size - 1) * step.count for step in steps)
    for order in ORDERS / max(bulk_of(steps, 0.0)[1], 1.0):
        for sign in (1, -1):
            log_moment = sum(step.count * step.log_moment_above(sign * order) for step in steps)
            reach = int(np.ceil((log_moment - np.log(tail_mass)) / order)) + 1
            low, high = (low, min(high, reach)) if sign > 0 else (max(low, -reach), high)
    return low, high
