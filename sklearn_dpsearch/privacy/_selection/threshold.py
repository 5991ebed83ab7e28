r"""Stop at the first candidate whose score reaches a threshold fixed in advance.

Before each run a coin with probability p ends the search without a result. Otherwise the run's
outcome is released if its score is at least the threshold, and forgotten if not. The release is one
run, or the coin, *given* that the search ends there.

**Theorem 3.** Let (P, P') dominate one run, q_min and q_max be the edges of their testing region.
For every c = e^ε

    δ(ε) ≤ sup over e, r ∈ [0, 1], stop ∈ {0, 1} of  A − c·B,      A/(1 − A) = x/y,   B/(1 − B) =
    x'/y',

    x = p·stop + (1−p)·e,  y = p·(1−stop) + (1−p)·r,   x' = p·stop + (1−p)·q_min(e),  y' =
    p·(1−stop) + (1−p)·q_max(r).

For ε ≥ 0 nothing better is possible: some run with this guarantee and some score reach the
supremum.

Proof: docs/theory/threshold.md. E is the event that tells the neighbours apart, R any other
release; e and r are their probabilities in one run. The lines A − c·B do not depend on ε: their
upper envelope is the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from .._checks import Array, cached_property, plain_number, require_in
from .._guarantees.base import (
    Guarantee,
    SmallestOf,
    Statement,
    as_guarantee,
    built_once,
    check_parts,
)
from .._guarantees.pure import only_largest_loss
from .._guarantees.single_mechanisms import NonPrivate
from .._numerics import loss_distribution
from .._numerics.loss_distribution import ROUNDING, DominatingPair, LossDistribution
from .published_bounds import renyi_threshold
from .testing_region import SLACK, AffineLines, upper_envelope

#: Relative width of the cells of x and of y'; the bound exceeds the supremum by about its square
#: over 16 and over 4.
STEP_X, STEP_Y = 0.05, 0.015
#: Cells of y' at most; where the stop probability is tiny they are wider.
MOST_Y = 500
#: Smallest probability of E that has a cell of its own, in units of the stop probability.
SMALLEST_PROBABILITY = 1e-16


class Polygon(NamedTuple):
    """Edge of the testing region as a polygon.

    Its corners are the masses that an event has on either neighbour, both nondecreasing.
    """

    mass: Array
    other_mass: Array


# --- the two edges of the testing region ----------------------------------------------------------


def _spread_on_cells(pld: LossDistribution, place: Array, step: float) -> LossDistribution:
    """Loss distribution spread on one loss in each cell.

    Cells have the width ``step``; losses that fill a cell by themselves stay.

    ``place`` says how far the masses above, or below, have come at each loss; it rises or falls
    throughout.
    """
    alone = np.append(np.abs(np.diff(place)), np.inf) > step
    starts = alone | np.append(True, np.diff(np.floor(place / step)) != 0)
    if np.all(starts):
        return pld
    losses = pld.losses[starts]
    # the last loss is kept: nothing lies above it
    masses = loss_distribution.on_points(pld, np.append(losses, np.inf))[:-1]
    return LossDistribution(losses, masses, pld.infinity)


def _log_odds(mass: Array) -> Array:
    """Log-odds of probabilities, cut off near 0 and 1."""
    log_odds = np.log(np.clip(mass, 1e-300, 1.0)) - np.log(np.maximum(1.0 - mass, 1e-6))
    return np.asarray(log_odds, dtype=float)


def with_mass_at_most_one(pld: LossDistribution) -> LossDistribution:
    """Loss distribution without the lowest losses of excess mass.

    The masses exceed 1 there: on [0, 1] the polygon q_min stays as it is.

    A pair that goes through points of a profile may have total masses above 1.
    """
    above = pld.infinity + pld.from_above[0][1:]
    masses = np.clip(1.0 - above, 0.0, pld.masses)
    positive = masses > 0
    positive[-1:] = True
    return LossDistribution(pld.losses[positive], masses[positive], pld.infinity)


def lower_polygon(pld: LossDistribution) -> Polygon:
    """Lower edge q_min as a polygon from e = 0 to 1: the outcomes of highest loss first."""
    above_p, above_q = pld.from_above
    place = _log_odds(pld.infinity + above_p[:-1]) + _log_odds(above_q[:-1])
    pld = _spread_on_cells(pld, place, 2 * STEP_X)
    above_p, above_q = pld.from_above
    e, other = pld.infinity + above_p[::-1], above_q[::-1]
    if pld.infinity > 0:
        e, other = np.append(0.0, e), np.append(0.0, other)
    return Polygon(np.minimum(e, 1.0), other * (1.0 - ROUNDING))


def upper_polygon(pld: LossDistribution, stop_probability: float) -> Polygon:
    """Upper edge q_max of the testing region as a polygon.

    q_max(r) = 1 − q_min(1 − r) from r = 0 to 1: the outcomes of lowest loss first.
    """
    p, (above_p, above_q) = stop_probability, pld.from_above
    below = [np.maximum(1.0 - above[:-1], 0.0) for above in (pld.infinity + above_p, above_q)]
    place = np.sum([np.log(p + (1 - p) * mass) for mass in below], axis=0)
    pld = _spread_on_cells(pld, place, _cell_width(p))
    above_p, above_q = pld.from_above
    # the differences cancel near r = 0: what they may be wrong is taken from r and given to q_max
    r = np.clip(1.0 - (pld.infinity + above_p) * (1.0 + ROUNDING), 0.0, 1.0)
    other = np.clip(1.0 - above_q * (1.0 - ROUNDING), 0.0, 1.0)
    return Polygon(np.append(r, 1.0), np.append(other, 1.0))


def _cell_width(stop_probability: float) -> float:
    """Relative width of the cells of y'."""
    return max(STEP_Y, float(-np.log(stop_probability)) / MOST_Y)


# --- cells ----------------------------------------------------------------------------------------


def _with_corners_added(edge: Polygon, place: Array, step: float) -> Polygon:
    """Polygon with corners added, so that its cells are narrow.

    The positive coordinate ``place`` grows by at most a factor e^step from each to the next.
    """
    cuts = np.ceil(np.diff(np.log(place)) / step).astype(int)
    masses, other_masses = [edge.mass], [edge.other_mass]
    for k in np.flatnonzero(cuts > 1):
        inner = np.geomspace(place[k], place[k + 1], cuts[k] + 1)[1:-1]
        share = (inner - place[k]) / (place[k + 1] - place[k])
        masses.append(edge.mass[k] + share * (edge.mass[k + 1] - edge.mass[k]))
        rise = edge.other_mass[k + 1] - edge.other_mass[k]
        other_masses.append(edge.other_mass[k] + share * rise)
    order = np.argsort(np.concatenate(masses), kind="stable")
    return Polygon(np.concatenate(masses)[order], np.sort(np.concatenate(other_masses)))


def _cells_of_event(low: Polygon, p: float, stop: int) -> tuple[Array, Array, Array]:
    """Cells of the event that tells neighbours apart.

    They are x and x' at the corners of the cells of e, and the share by which A is raised there.

    On a cell x' is linear in x; A = x/(x + y) is concave, above its chord by at most (width/x)²/16
    of itself, and B is concave and above its chord. In the first cell, where x and x' begin at 0, A
    ≤ x/y and B ≥ x'/(x'_1 + y') instead.
    """
    x, other, first = p * stop + (1 - p) * low.mass, p * stop + (1 - p) * low.other_mass, 0.0
    if not stop:
        positive = x > 0
        x, other = x[positive], other[positive]
        first = min(SMALLEST_PROBABILITY * p, 0.5 * float(x[0]))
        x, other = np.append(first, x), np.append(first * (other[0] / x[0]), other)
    fine = _with_corners_added(Polygon(x, other), x, STEP_X)
    raised = np.append((np.diff(fine.mass) / fine.mass[:-1]) ** 2 / 16, 0.0)
    return fine.mass, fine.other_mass, np.maximum(raised, np.append(first / p, raised[:-1]))


def _cells_of_other_releases(high: Polygon, p: float, stop: int) -> tuple[Array, Array, Array]:
    """Cells of all other releases.

    They are y and y' at the corners of the cells of r, and the share by which B is lowered there.

    On a cell y' is linear in y; A is convex in y and below its chord, B = x'/(x' + y') is convex,
    below its chord by at most width²·(x' + y'_right)/(4·(x' + y'_left)³) of itself, which falls
    with x' ≥ p·stop.
    """
    y, other = p * (1 - stop) + (1 - p) * high.mass, p * (1 - stop) + (1 - p) * high.other_mass
    fine = _with_corners_added(Polygon(y, other), p * stop + other, _cell_width(p))
    low, upper = p * stop + fine.other_mass[:-1], p * stop + fine.other_mass[1:]
    lowered = np.append((upper - low) ** 2 * upper / (4 * low**3), 0.0)
    lowered = np.minimum(np.maximum(lowered, np.append(0.0, lowered[:-1])), 1.0)
    return fine.mass, fine.other_mass, lowered


def release_lines(pld: LossDistribution, stop_probability: float) -> AffineLines:
    """Lines A − c·B above the supremum of Theorem 3 for every c ≥ 1, in one direction."""
    p, heights, falls = stop_probability, [], []
    pld = with_mass_at_most_one(pld)
    low, high = lower_polygon(pld), upper_polygon(pld, p)
    for stop in (0, 1):
        x, x_other, raised = (side[:, None] for side in _cells_of_event(low, p, stop))
        y, y_other, lowered = _cells_of_other_releases(high, p, stop)
        height = np.minimum(x / (x + y) * (1.0 + raised) * (1.0 + SLACK), 1.0)
        fall = x_other / (x_other + y_other) * (1.0 - lowered) * (1.0 - SLACK)
        useful = height > fall  # all other lines are below 0 from c = 1 on
        heights.append(height[useful])
        falls.append(fall[useful])
    return AffineLines(np.concatenate(heights), np.concatenate(falls))


def release_curve(pld: LossDistribution, stop_probability: float) -> LossDistribution:
    """Loss distribution of a threshold search, by Theorem 3.

    Its curve is the bound for every ε ≥ 0, in one direction.
    """
    lines = release_lines(pld, stop_probability)
    if lines.height.size == 0:
        return LossDistribution(np.array([0.0]), np.array([0.0]))
    hinges = upper_envelope(lines)
    bends = np.isfinite(hinges.ends)
    losses, where = np.unique(np.log(hinges.ends[bends]), return_inverse=True)
    masses = np.asarray(np.bincount(where, hinges.weights[bends], losses.size), dtype=float)
    return LossDistribution(losses, masses, float(hinges.weights[~bends].sum()))


# --- guarantees -----------------------------------------------------------------------------------


def until_above_pure(epsilon: float, stop_probability: float) -> float:
    """Largest loss of a threshold search over pure runs, rounded up.

    It is ε + log( (e^ε + p)/(1 + p·e^ε) ), exact and less than 2ε.
    """
    inverse, p = np.exp(-epsilon), stop_probability
    grown = epsilon + np.log1p((1.0 - p) * -np.expm1(-epsilon) / (inverse + p))
    return float(min(grown * (1.0 + 4e-15), 2.0 * epsilon))


@dataclass(frozen=True, kw_only=True)
class _RunsUntilAbove(Guarantee):
    """Base class of guarantees of runs until a threshold is reached."""

    one_run: Guarantee
    stop_probability: float

    def _check(self) -> None:
        check_parts(self, one_run=self.one_run)
        require_in("(0, 1)", stop_probability=self.stop_probability)


@dataclass(frozen=True, kw_only=True)
class TheoremThree(_RunsUntilAbove):
    """Guarantee of a threshold search by Theorem 3 alone."""

    @property
    def pure_epsilon(self) -> float | None:
        base = self.one_run.pure_epsilon
        return None if base is None else until_above_pure(base, self.stop_probability)

    @cached_property
    def _curves(self) -> tuple[LossDistribution, ...]:
        directions = self.one_run.pair.directions
        return tuple(release_curve(pld, self.stop_probability) for pld in directions)

    def _profile(self, epsilon: Array) -> Array:
        values = np.max([pld.delta_at(epsilon) for pld in self._curves], axis=0)
        return self._zero_beyond_largest_loss(epsilon, values)

    def _pair(self) -> DominatingPair:
        bends = np.concatenate([pld.losses for pld in self._curves])
        grid = np.unique(np.append(0.0, bends[bends > 1e-9]))
        return loss_distribution.pair_through(grid, *(pld.delta_at(grid) for pld in self._curves))


@dataclass(frozen=True, kw_only=True)
class UntilAbove(SmallestOf, _RunsUntilAbove):
    """Guarantee of releasing the first run above a threshold.

    It is the smallest of Theorem 3 and the published bound at each ε.

    Parameters
    ----------
    one_run : Guarantee
        Guarantee of one run, training and score together.
    stop_probability : float
        Probability with which the search ends without a result before each run, in (0, 1).
    """

    def _bounds(self) -> dict[str, Guarantee | None]:
        first = TheoremThree(**{part.name: getattr(self, part.name) for part in fields(self)})
        return {
            "Theorem 3": first,
            "Theorem 3 (pure)": only_largest_loss(first),
            "PS22 Proposition 15": renyi_threshold(self.one_run, self.stop_probability),
        }


def until_above(one_run: Guarantee | Statement, stop_probability: float) -> Guarantee:
    """Guarantee of releasing only the first run whose score reaches a threshold.

    Runs are independent, candidates drawn with replacement; the threshold and the stop probability
    do not depend on the data. The release is the run that ended the search, or the fact that no run
    did, but not the number of runs.

    Parameters
    ----------
    one_run : Guarantee
        One run, the choice of its hyperparameters and its score included.
    stop_probability : float
        Probability with which the search ends without a result before each run, in (0, 1). The
        number of runs has mean at most (1 − p)/p.

    Returns
    -------
    Guarantee
        With ``bounds`` (all that apply) and ``tightest(delta)`` (the name of the one reported).

    Notes
    -----
    Theorem 3 of this library (docs/theory/threshold.md); Papernot & Steinke (2022), appendix C; Liu
    & Talwar (2019).

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP, PureDP
    >>> search = until_above(GaussianDP(mu=0.2**0.5), 0.1)
    >>> round(search.epsilon_at(1e-6), 2), search.tightest(1e-6)
    (2.53, 'Theorem 3')
    >>> round(until_above(PureDP(epsilon=1.0), 0.1).epsilon_at(0.0), 3)
    1.796
    """
    one_run = as_guarantee(one_run, "one_run")
    p = plain_number("stop_probability", stop_probability)
    relation = one_run.neighboring
    search = built_once(UntilAbove, one_run=one_run, stop_probability=p, neighboring=relation)
    return one_run if isinstance(one_run, NonPrivate) else search
