r"""Numerics of privacy profiles: dominating pairs, mixtures, grids, outward rounding.

A pair of output distributions (P, Q) matters only through its hockey-stick curve H_c(P‖Q) = ∫ (P −
cQ)₊, c ≥ 0. It is stored as the distribution of the privacy loss L = log(dP/dQ) under P: atoms on a
finite set of losses and a mass at infinity,

    H_c = mass_at_infinity + Σ_j p_j · (1 − c·exp(−L_j))₊.

Every operation may only raise this curve (docs/theory/loss_distributions.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._checks import Array, ArrayLike, cached_property, check_kind, require, require_in
from .._serialization import part_of_guarantees
from .arithmetic import safe_exp

#: Relative slack added to every sum of floating-point numbers that leaves this file.
ROUNDING = 1e-12
#: Least loss: further below 0 the P-mass would underflow, and the Q-mass be lost.
LEAST_LOSS = -600.0


def sums_from_above(terms: Array) -> Array:
    """Sum of the terms from each on; 0 after the last."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


@part_of_guarantees
@dataclass(frozen=True, eq=False)
class LossDistribution:
    """Distribution of the privacy loss of one dominating pair, in one direction.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Finite support, strictly increasing. Where every loss is infinite, one loss of mass 0 stands
        for it.
    masses : ndarray of shape (n,)
        Probability under P of each loss, ≥ 0. The total with ``infinity`` may exceed 1 by rounding
        upwards.
    infinity : float
        Probability under P of outcomes that are impossible under Q.
    minus_infinity : float, optional
        Probability under Q of outcomes that are impossible under P, where it is known exactly (no
        transform was used).
    """

    losses: Array
    masses: Array
    infinity: float = 0.0
    minus_infinity: float | None = None

    def __post_init__(self) -> None:
        if np.size(self.losses) == np.size(self.masses) == 0:
            object.__setattr__(self, "losses", np.zeros(1))
            object.__setattr__(self, "masses", np.zeros(1))

    @cached_property
    def from_above(self) -> tuple[Array, Array]:
        """Cumulated masses under P and Q from the largest loss down.

        They are Σ_{i ≥ j} p_i and Σ_{i ≥ j} p_i·exp(−L_i) for j = 0 … n (the last is 0).
        """
        return sums_from_above(self.masses), sums_from_above(self.masses * safe_exp(-self.losses))

    def delta_at(self, epsilon: ArrayLike) -> Array:
        """Hockey-stick divergence H_{e^ε} for any real ε, rounded up, at most 1."""
        epsilon = np.asarray(epsilon, dtype=float)
        first = np.searchsorted(self.losses, epsilon, side="right")
        tail_p, log_ratio = self.from_above[0][first], self._log_ratio[first]
        finite = tail_p * (ROUNDING - np.expm1(np.minimum(epsilon + log_ratio, 0.0)))
        return np.minimum(self.infinity + finite, 1.0)

    @cached_property
    def _log_ratio(self) -> Array:
        """Logarithm of the Q-mass over the P-mass of the losses above.

        It is −∞ (rounded down) where a sum underflows.
        """
        above_p, above_q = self.from_above
        with np.errstate(divide="ignore"):
            log_ratio = np.log(above_q) - np.log(np.maximum(above_p, 1e-320))
        return np.asarray(np.where(above_q > 1e-300, log_ratio, -np.inf))

    @cached_property
    def from_below(self) -> tuple[Array, Array]:
        """Cumulated masses under P and Q from the smallest loss up.

        They are Σ_{i < j} p_i and, with the outcomes impossible under P, Σ_{i < j} p_i·exp(−L_i)
        for j = 0 … n.
        """
        masses_q = np.append(self.minus_infinity or 0.0, self.masses * safe_exp(-self.losses))
        return np.append(0.0, np.cumsum(self.masses)), np.cumsum(masses_q)

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the finite losses."""
        total = float(self.masses.sum())
        if total == 0:
            return 0.0, 0.0
        weights = self.masses / total
        mean = float(weights @ self.losses)
        return mean, float(weights @ (self.losses - mean) ** 2)


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Loss distributions for both orders of two neighbours.

    ``removed`` is for a record removed (x, x') and ``added`` for a record added (x', x).
    """

    removed: LossDistribution
    added: LossDistribution

    @property
    def directions(self) -> tuple[LossDistribution, ...]:
        """Both loss distributions, or one where they are the same."""
        return (self.removed,) if self.removed is self.added else (self.removed, self.added)

    def delta_at(self, epsilon: ArrayLike) -> Array:
        """Larger hockey-stick divergence of both directions."""
        return np.asarray(np.max([pld.delta_at(epsilon) for pld in self.directions], axis=0))


#: Largest total of masses. It may exceed 1 by rounding up, or if a profile's points are not convex.
MOST_MASS = 1e3


def check_masses(value: object) -> None:
    """Raise unless a value is a loss distribution with valid masses.

    Masses are probabilities, possibly rounded up.
    """
    check_kind("loss distribution", value, LossDistribution, "a LossDistribution")
    assert isinstance(value, LossDistribution)
    losses, masses = (np.asarray(values) for values in (value.losses, value.masses))
    shaped = losses.ndim == 1 and losses.shape == masses.shape
    require(shaped, "as many masses as losses", losses=losses.shape, masses=masses.shape)
    valid = bool(np.all(np.isfinite(losses)) and np.all(np.diff(losses) > 0))
    require(valid, "finite, rising losses", losses=losses)
    smallest = np.min(masses, initial=0.0)
    require(bool(smallest >= 0), "masses >= 0", smallest=smallest)
    require_in("[0, 1]", infinity=value.infinity)
    minus_infinity = 0.0 if value.minus_infinity is None else value.minus_infinity
    require_in("[0, 1]", minus_infinity=minus_infinity)
    total = float(masses.sum() + value.infinity)
    other = float((masses * safe_exp(-losses)).sum() + minus_infinity)
    valid = 1 - 1e-9 <= total <= MOST_MASS
    require(valid, f"masses with a total from 1 to {MOST_MASS:g}", total=total)
    valid = other <= MOST_MASS
    require(valid, f"masses with a total of {MOST_MASS:g} at most under Q", total=other)


def symmetric_pair(pld: LossDistribution) -> DominatingPair:
    """Dominating pair with one loss distribution for both directions."""
    return DominatingPair(pld, pld)


def combine(
    pairs: Sequence[DominatingPair],
    combine: Callable[[Sequence[LossDistribution], Sequence[LossDistribution]], LossDistribution],
) -> DominatingPair:
    """Combine dominating pairs direction by direction, once if alike."""
    removed, added = [pair.removed for pair in pairs], [pair.added for pair in pairs]
    first = combine(removed, added)
    if all(pair.removed is pair.added for pair in pairs):
        return symmetric_pair(first)
    return DominatingPair(first, combine(added, removed))


# --- a profile in ---------------------------------------------------------------------------------


def connect_the_dots(epsilons: Array, delta: Array, delta_reversed: Array) -> LossDistribution:
    r"""Loss distribution whose curve lies above points of a profile.

    Doroshenko, Ghazi, Kamath, Kumar & Manurangsi (2022), on a grid that need not be even. The part
    below zero comes from the reversed pair by duality, H_{e^{−ε}}(P‖Q) = 1 − e^{−ε} +
    e^{−ε}·H_{e^ε}(Q‖P), so that no digits cancel. A true profile is convex in c = e^ε; where the
    given upper bounds are not, their lower convex hull is still an upper bound of the true profile
    and is what is used.

    Parameters
    ----------
    epsilons : ndarray of shape (n,)
        0 = ε_0 < … < ε_{n−1}.
    delta, delta_reversed : ndarrays of shape (n,)
        Upper bounds on H_{e^ε} of the pair and of the reversed pair.
    """
    # Both halves state H_1, the total variation distance, so the smaller value is a bound for both.
    # Where convexity does not let it, the smaller half is raised to the larger at its first kink:
    # otherwise the P- or the Q-masses would exceed 1 and the curve would be too low for ε < 0.
    distance = min(delta[0], delta_reversed[0])
    falling = (np.minimum.accumulate(np.minimum(d, distance)) for d in (delta, delta_reversed))
    halves = [_kinks(epsilons, curve) for curve in falling]
    apart = _total_variation(*halves[0]) - _total_variation(*halves[1])
    (up, masses_up, infinity), (down, masses_down, minus_infinity) = halves
    masses_up, infinity = _raise_total_variation(up, masses_up, infinity, -apart)
    masses_down, minus_infinity = _raise_total_variation(down, masses_down, minus_infinity, apart)
    far = down > -LEAST_LOSS
    minus_infinity += float(masses_down[far].sum())
    # the reversed curve carries Q-mass
    masses_down = np.where(far, 0.0, masses_down) * np.exp(-down)
    # A negative remainder means that the two halves are not convex together; cutting it at 0 only
    # raises the curve.
    middle = max(0.0, 1.0 - infinity - float(masses_up.sum()) - float(masses_down.sum()))
    losses = np.concatenate([-down[::-1], [0.0], up])
    masses = np.concatenate([masses_down[::-1], [middle], masses_up])
    support = (masses > 0) | (losses == 0)
    return LossDistribution(losses[support], masses[support], infinity, minus_infinity)


def pair_through(epsilons: Array, *deltas: Array) -> DominatingPair:
    """Dominating pair through points of one or two profiles."""
    first = connect_the_dots(epsilons, deltas[0], deltas[-1])
    if len(deltas) == 1:
        return symmetric_pair(first)
    return DominatingPair(first, connect_the_dots(epsilons, deltas[1], deltas[0]))


def _kinks(epsilons: Array, delta: Array) -> tuple[Array, Array, float]:
    """Losses, masses and mass at infinity of a piecewise linear profile.

    The curve goes through (e^ε, δ); losses are > 0.
    """
    masses = _second_differences(epsilons, delta)
    if np.any(masses < -1e-7 * delta[1:]):
        hull = lower_hull(epsilons, delta)
        epsilons, delta = epsilons[hull], delta[hull]
        masses = _second_differences(epsilons, delta)
    return epsilons[1:], np.maximum(masses, 0.0), float(delta[-1])


def _total_variation(losses: Array, masses: Array, infinity: float) -> float:
    """Total variation distance H_1 of losses above 0."""
    return infinity + float(masses @ -np.expm1(-losses))


def _raise_total_variation(
    losses: Array, masses: Array, infinity: float, by: float
) -> tuple[Array, float]:
    """Masses whose total variation distance is larger by ``by``.

    From the first loss on, the curve stays as it was.
    """
    if by <= 0 or losses.size == 0:
        return masses, infinity + max(by, 0.0)
    return masses + np.append(by / -np.expm1(-losses[0]), np.zeros(losses.size - 1)), infinity


def _second_differences(epsilons: Array, delta: Array) -> Array:
    """Slope changes of a profile at its points, times c = e^ε.

    They are c_i·(slope right of c_i − slope left of c_i) for i ≥ 1, with slope 0 after the last
    point.
    """
    gaps, falls = np.diff(epsilons), np.diff(delta)
    right = np.append(falls[1:] / np.expm1(gaps[1:]), 0.0)
    return right - falls / -np.expm1(-gaps)


def lower_hull(epsilons: Array, delta: Array) -> Array:
    """Indices of the lower convex hull of the points (e^ε, δ)."""
    # Python's numbers, which are three times as fast here
    points = list(zip(epsilons.tolist(), delta.tolist()))
    hull: list[int] = []
    for i, (epsilon, value) in enumerate(points):
        while len(hull) >= 2:
            (first, first_value), (last, last_value) = points[hull[-2]], points[hull[-1]]
            # The last point stays if it lies below the chord around it; both widths are divided by
            # its e^ε.
            left_width, right_width = -math.expm1(first - last), math.expm1(epsilon - last)
            if (last_value - first_value) * right_width < (value - last_value) * left_width:
                break
            hull.pop()
        hull.append(i)
    return np.asarray(hull)


# --- mixing, and grids ----------------------------------------------------------------------------


def normalized(pld: LossDistribution) -> LossDistribution:
    r"""Loss distribution with total masses of 1, nowhere lower.

    It has the given curve where that is below a chord from H_0 = 1, else the chord.

    A true curve is convex in c and 1 at c = 0, so it lies below each chord from there; the steepest
    chord is taken. A pair drawn through points of a profile may exceed 1 near c = 0, and the least
    losses of a transform are noise.
    """
    above_q = pld.from_above[1]
    if pld.losses.size == 0 or pld.infinity >= 1:
        return LossDistribution(np.array([]), np.array([]), 1.0, 1.0)
    with np.errstate(under="ignore"):
        slopes = np.minimum((1.0 - pld.delta_at(pld.losses)) * safe_exp(-pld.losses), 1.0)
    first = int(np.argmax(slopes))
    mass = max(float(slopes[first]) - float(above_q[first + 1]), 0.0)
    losses, masses = pld.losses[first:], pld.masses[first:].copy()
    masses[0] = mass * float(safe_exp(losses[0]))
    missing = max(0.0, 1.0 - float(masses.sum()) - pld.infinity)
    missing_q = max(0.0, 1.0 - mass - float(above_q[first + 1]))
    return LossDistribution(losses, masses, pld.infinity + missing, missing_q)


def mix(parts: Sequence[LossDistribution], weights: Sequence[float]) -> LossDistribution:
    """Loss distribution of a mixture: its curve is Σ w_i·H_i."""
    losses = np.concatenate([pld.losses for pld in parts])
    masses = np.concatenate([w * pld.masses for pld, w in zip(parts, weights)])
    support, where = np.unique(losses, return_inverse=True)
    infinity = sum(w * pld.infinity for pld, w in zip(parts, weights))
    lowest = [pld.minus_infinity for pld in parts if pld.minus_infinity is not None]
    minus_infinity = float(np.dot(weights, lowest)) if len(lowest) == len(parts) else None
    total = np.asarray(np.bincount(where, masses, support.size), dtype=float)
    return LossDistribution(support, total, float(infinity), minus_infinity)


def on_grid(pld: LossDistribution, interval: float) -> tuple[int, Array]:
    """Masses of a loss distribution on an even grid, and first index.

    Atoms are spread onto multiples of ``interval``.
    """
    below = np.floor(pld.losses / interval).astype(np.int64)
    share = _share_of_upper_end(pld.losses - below * interval, interval)
    first = int(below[0])
    masses = np.bincount(below - first, pld.masses * (1.0 - share), int(below[-1]) - first + 2)
    masses += np.bincount(below - first + 1, pld.masses * share, masses.size)
    return first, np.asarray(masses, dtype=float)


def coarser(pld: LossDistribution, interval: float) -> LossDistribution:
    """Spread of a loss distribution onto an even grid, with never less loss."""
    first, masses = on_grid(pld, interval)
    positive = masses > 0
    losses = np.asarray(interval * (first + np.flatnonzero(positive)), dtype=float)
    return LossDistribution(losses, masses[positive], pld.infinity, pld.minus_infinity)


def on_points(pld: LossDistribution, points: Array) -> Array:
    """Masses of a loss distribution spread onto rising points.

    The first point is at most the lowest loss, and the last is above all losses.
    """
    below = np.searchsorted(points, pld.losses, side="right") - 1
    share = _share_of_upper_end(pld.losses - points[below], np.diff(points)[below])
    masses = np.bincount(below, pld.masses * (1.0 - share), points.size)
    masses += np.bincount(below + 1, pld.masses * share, points.size)
    return np.asarray(masses, dtype=float)


def _share_of_upper_end(above: Array, gap: Array | float) -> Array:
    """Share of an atom that goes to the upper grid point, so that its P- and Q-mass stay."""
    return np.asarray(np.clip(np.expm1(-above) / np.expm1(-gap), 0.0, 1.0))
