r"""Orders of many groups: a search that loses more than any order of three groups.

Cut the outcomes of a mechanism by likelihood ratio into many groups. Groups above some ratio count, with the gain
A(S) − e^ε·A'(S); groups below do not. The score ranks groups that do not count by falling ratio, groups that count by
rising ratio, and mixes both sequences. The best mixture is a shortest path on a grid, found exactly.
Any order is a possible score of a search, so the sum of its gains is a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array
from ..count_distributions.base import CountDistribution

#: Cuts at each end of the ratios. More cuts improve the order a little, and the time grows with their cube.
CUTS = 50
#: Mechanisms with at most this many outcomes are cut more finely: the split of their atoms matters.
FEW = 30
#: Cuts that are tried from one ε to the next.
NEAR = (-5, -1, 0, 1, 5)


class Outcomes(NamedTuple):
    """P- and P'-masses of outcomes by rising likelihood ratio, and the largest error of their sums."""

    p: Array
    q: Array
    error: float = 0.0


def rise(distribution: CountDistribution, top: Array, width: Array) -> tuple[Array, Array]:
    """Bounds on f(1 − top) − f(1 − top − width), from below and from above.

    The difference of values cancels for small widths. f is convex: slope times width at either end bounds its rise.
    """
    bottom = np.minimum(top + width, 1.0)
    rises = distribution.generating(1.0 - top, top) - distribution.generating(1.0 - bottom, bottom)
    least = np.exp(distribution.log_slope(1.0 - bottom, bottom)) * width
    most = np.exp(distribution.log_slope(1.0 - top, top)) * width
    above = np.minimum(np.maximum(rises, 0.0) + 4e-15, most * (1 + 1e-12))
    return np.maximum(rises - 4e-15, least * (1 - 1e-12)), above


def groups(outcomes: Outcomes, mean: float, cuts: int = CUTS) -> Outcomes:
    """Outcomes in few groups, narrow where a search with ``mean`` runs on average looks. Atoms may be split."""
    p, q = outcomes.p, outcomes.q
    places = np.arange(p.size + 1.0)
    below_p, below_q = np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q))
    above_p = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    narrow = 1e-2 / mean
    ends = np.append(np.geomspace(1e-10, narrow, cuts // 2), np.geomspace(narrow, 0.5, cuts))
    even = np.linspace(0.0, 1.0, cuts // 2)
    at = np.concatenate([_places(ends, below_p), p.size - _places(ends, above_p[::-1]), _places(even, below_p)])
    at = np.unique(np.append(at, _places(np.append(ends, even), below_q)))
    above_q = np.append(np.cumsum(q[::-1])[::-1], 0.0)
    ours, theirs = (
        _between(np.interp(at, places, below), np.interp(at, places, above))
        for below, above in ((below_p, above_p), (below_q, above_q))
    )
    kept = ours + theirs > 1e-15
    return Outcomes(ours[kept], theirs[kept], outcomes.error)


def _places(shares: Array, cumulative: Array) -> Array:
    """Positions at which a cumulative mass reaches each share, in outcomes and parts of an outcome."""
    grown = np.append(True, np.diff(cumulative) > 0)
    places: Array = np.interp(shares, cumulative[grown], np.flatnonzero(grown).astype(float))
    return places


def _between(below: Array, above: Array) -> Array:
    """Masses between neighbouring cuts, from the side on which no digits cancel."""
    masses: Array = np.maximum(np.where(below[1:] < 0.5, np.diff(below), -np.diff(above)), 0.0)
    return masses


def best_order(few: Outcomes, counting: int, distribution: CountDistribution, epsilon: float) -> float:
    """The largest Σ A(S) − e^ε·A'(S) over all mixtures of the two sequences; groups from ``counting`` on count.

    gain[i, j] is the gain of the j-th counting group with i other groups below it. Rounded down.
    """
    gain = np.maximum(_gains(few, counting, distribution, epsilon), 0.0)
    placed = np.concatenate([np.zeros((counting + 1, 1)), np.cumsum(gain, axis=1)], axis=1)
    best = placed[-1, -1] - placed[-1]
    for row in placed[-2::-1]:  # from j on: place some that count at this i, then go on
        best = np.maximum.accumulate((row + best)[::-1])[::-1] - row
    return float(best[0] * (1.0 - 1e-12))


def _gains(few: Outcomes, counting: int, distribution: CountDistribution, epsilon: float) -> Array:
    top_p, top_q = (_above(side, counting) for side in (few.p, few.q))
    error = few.error
    ours = np.maximum(few.p[counting:] - error, 0.0)
    theirs = few.q[counting:] + error
    least, _ = rise(distribution, np.clip(top_p + error, 0.0, 1.0), ours)
    _, most = rise(distribution, np.clip(top_q - error, 0.0, 1.0), theirs)
    gains: Array = least - np.exp(epsilon) * most
    return gains


def _above(side: Array, counting: int) -> Array:
    """Mass that scores above: of groups that do not count if i of them are below, and of counting groups after j."""
    others = np.append(np.cumsum(side[:counting])[::-1], 0.0)
    later = np.append(np.cumsum(side[counting:][::-1])[::-1], 0.0)[1:]
    both: Array = others[:, None] + later
    return both


class ManyGroups:
    """The best order found at each ε, for one mechanism and distribution of K."""

    def __init__(self, outcomes: Outcomes, distribution: CountDistribution) -> None:
        self.coarse = outcomes.p.size <= FEW
        self.few, self.distribution = (
            groups(outcomes, max(distribution.mean, 1.0), 2 * CUTS if self.coarse else CUTS),
            distribution,
        )
        self.counting: int | None = None

    def gain(self, epsilon: float) -> float:
        """The best of a few cuts between counting and other groups, tried from coarse to fine."""
        number = self.few.p.size
        step = max(number // 20, 1)
        tried = {cut: self._gain(cut, epsilon) for cut in range(1, number, step)}
        if not tried:
            return 0.0
        while step > 1:
            step = max(step // 3, 1)
            around = max(tried, key=lambda cut: tried[cut])
            near = (around - 2 * step, around - step, around + step, around + 2 * step)
            tried |= {cut: self._gain(cut, epsilon) for cut in near if 0 < cut < number and cut not in tried}
        self.counting = max(tried, key=lambda cut: tried[cut])
        return tried[self.counting]

    def gain_near(self, epsilon: float) -> float:
        """The best over the cuts around the last one that gained something."""
        if self.coarse or self.counting is None:
            return self.gain(epsilon)
        cuts = [self.counting + step for step in NEAR if 0 < self.counting + step < self.few.p.size]
        tried = {cut: self._gain(cut, epsilon) for cut in cuts}
        best = max(tried, key=lambda cut: tried[cut])
        if tried[best] > 0:
            self.counting = best
        return tried[best]

    def _gain(self, counting: int, epsilon: float) -> float:
        return best_order(self.few, counting, self.distribution, epsilon)
