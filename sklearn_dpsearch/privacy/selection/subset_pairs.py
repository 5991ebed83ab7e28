r"""Expectations over two independent likelihood ratios, and the pair of a mechanism on a random subset.

Given one of two independent ratios X and Y, the expectation of a hinge over the other is a value of its hockey-stick
curve. So every expectation here is one sum over the atoms of one loss distribution, with no grid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._types import Array
from ..guarantees.base import pair_through
from ..numerics.logspace import LARGEST_EXPONENT, safe_exp
from ..numerics.loss_distribution import ROUNDING, DominatingPair, LossDistribution, on_grid

#: In compositions with other guarantees, the profile is evaluated at this many points.
POINTS = 800

# --- one pair ----------------------------------------------------------------------------------------------------


def normalized(pld: LossDistribution) -> LossDistribution:
    r"""Normalize a pair to total masses of 1: its curve where below a chord from H_0 = 1, else the chord.

    A true curve is convex in c and 1 at c = 0, so it lies below each chord from there; the steepest chord is taken. A
    pair drawn through points of a profile may exceed 1 near c = 0, and the least losses of a transform are noise.
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
    return LossDistribution(losses, masses, pld.infinity + missing, max(0.0, 1.0 - mass - float(above_q[first + 1])))


def thinned(pld: LossDistribution, most: int) -> LossDistribution:
    """Atoms spread over an even grid with about ``most`` points, if there are more: the curve only rises."""
    if pld.losses.size <= most:
        return pld
    interval = float(np.ptp(pld.losses)) / most
    first, masses = on_grid(pld, interval)
    kept = masses > 0
    losses = np.asarray(interval * (first + np.flatnonzero(kept)), dtype=float)
    return LossDistribution(losses, masses[kept], pld.infinity, pld.minus_infinity)


def _log_sampled(losses: Array, fraction: float) -> Array:
    """log(1 − q + q·e^L), with all its digits for q near 0, for q near 1, and for L near 0."""
    grown = fraction * np.expm1(np.clip(losses, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    far = np.logaddexp(np.log1p(-fraction), np.log(fraction) + losses)
    return np.asarray(np.where(np.abs(grown) < 0.5, np.log1p(np.maximum(grown, -0.5)), far), dtype=float)


def sampled(pair: DominatingPair, fraction: float) -> DominatingPair:
    """The pair of a mechanism on a random subset, 0 < fraction < 1, of normalized loss distributions.

    If the record is missing from the subset, both data sets give the same distribution: the ratio is 1 − q + q·X.
    """
    keep = np.log1p(-fraction)
    pld, other = pair.removed, pair.added
    # Under the distribution without the record, X = e^L has probability p·e^{−L}; X = 0 has the rest.
    losses = np.append(keep, _log_sampled(pld.losses, fraction))
    q = pld.masses * safe_exp(-pld.losses)
    masses = np.append((1.0 - fraction) * (pld.minus_infinity or 0.0), (1.0 - fraction) * q + fraction * pld.masses)
    removed = LossDistribution(losses, masses, fraction * pld.infinity, 0.0)
    losses = np.append(-_log_sampled(-other.losses, fraction), -keep)
    masses = np.append(other.masses, other.infinity)
    added = LossDistribution(losses, masses, 0.0, fraction * (other.minus_infinity or 0.0))
    return DominatingPair(_distinct(removed), _distinct(added))


def _distinct(pld: LossDistribution) -> LossDistribution:
    """Merge losses that are equal by rounding."""
    losses, where = np.unique(pld.losses, return_inverse=True)
    masses = np.asarray(np.bincount(where, pld.masses, losses.size), dtype=float)
    return LossDistribution(losses, masses, pld.infinity, pld.minus_infinity)


def log_mean_exp(a: float, b: float, weight: float) -> float:
    """log(w·e^a + (1−w)·e^b) of a, b ≥ 0, rounded up."""
    if max(a, b) < 30.0:
        mean = np.log1p(weight * np.expm1(a) + (1.0 - weight) * np.expm1(b))
    else:
        with np.errstate(divide="ignore"):
            mean = np.logaddexp(np.log(weight) + a, np.log1p(-weight) + b)
    return float(mean * (1.0 + ROUNDING))


def pair_of_directions(in_direction: Callable[[int, Array], Array]) -> DominatingPair:
    """The pair through POINTS points of a profile in both directions: (index, ε) ↦ δ, index 0 or 1."""
    return pair_through(partial(in_direction, 0), partial(in_direction, 1), POINTS)


# --- two pairs ---------------------------------------------------------------------------------------------------


def composed_delta(summed: LossDistribution, other: LossDistribution, epsilon: float) -> float:
    """Σ_j p_j·H_{e^{ε−L_j}}: both parts, each on all records."""
    return summed.infinity + float(summed.masses @ other.delta_at(epsilon - summed.losses - ROUNDING))


def average_delta(
    summed: LossDistribution, other: LossDistribution, weight: float, rest: float, epsilon: float
) -> float:
    """E (w·X + (1−w)·Y − c)₊ = Σ_x Q(x)·(1−w)·H_k with k = (c − w·x)/(1−w), and 1 − k in place of H_k where k ≤ 0.

    Pairs (with the record, without it); c = e^ε. Q(x) = p·e^{−L} at x = e^L, and what is left at x = 0. Both w and
    ``rest`` = 1−w are given: the difference would lose the digits of a small one.
    """
    p, q = summed.masses, summed.masses * safe_exp(-summed.losses)
    share = weight * safe_exp(summed.losses - epsilon) * (1.0 + ROUNDING)  # w·x/c, up: k is rounded down
    inside = share < 1.0
    k = epsilon - np.log(rest) + np.log1p(-share[inside]) - ROUNDING
    below = rest * float(q[inside] @ other.delta_at(k))
    # Beyond: Q(x)·(w·x + 1 − w − c), with Q(x)·x = p.
    p, q, cost = p[~inside], q[~inside], np.exp(epsilon - summed.losses[~inside])
    above = float(np.sum(p * (weight - cost + ROUNDING) + rest * q))
    none = rest * (summed.minus_infinity or 0.0) * float(other.delta_at(epsilon - np.log(rest) - ROUNDING))
    return weight * summed.infinity + below + above + none


def reversed_average_delta(
    summed: LossDistribution, other: LossDistribution, weight: float, rest: float, epsilon: float
) -> float:
    """E (1 − c·(w·X + (1−w)·Y))₊ = Σ_x p·a·H_{c(1−w)/a} with a = (1 − c·w·x)₊.

    Pairs (without the record, with it); c = e^ε; x = e^{−L} with probability p, and x = 0 where L is infinite.
    """
    log_rest = np.log(rest) - ROUNDING
    exponent = epsilon + np.log(weight) - summed.losses
    inside = exponent < 0.0
    a = -np.expm1(exponent[inside]) + ROUNDING
    below = float((summed.masses[inside] * a) @ other.delta_at(epsilon + log_rest - np.log(a)))
    return below + summed.infinity * float(other.delta_at(epsilon + log_rest))
