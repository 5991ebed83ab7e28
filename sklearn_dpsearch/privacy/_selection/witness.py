r"""Certificates: the loss of a concrete mechanism with a given guarantee in best-of-K search.

Order the outcomes of a dominating pair by likelihood ratio and cut them into C (lowest), B (middle)
and S (highest); let the score order them B < S < C. The best of K runs then falls into S with
probability f(P(B∪S)) − f(P(B)), so that

    f(P(B∪S)) − f(P(B)) − e^ε·( f(P'(B∪S)) − f(P'(B)) )

is a lower bound on the δ of *some* mechanism with this guarantee. No valid accountant can report
less.

Many groups are better still: those above some ratio count, those below do not. The score ranks
groups that do not count by falling ratio, groups that count by rising ratio, and mixes both
sequences. The best mixture is a shortest path on a grid, found exactly; any order is a possible
score. The larger of both bounds counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from ...errors import PrivacyError
from .._checks import Array, number_in, plain_number, require
from .._count_distributions.base import CountDistribution
from .._count_distributions.distributions import as_count_distribution
from .._guarantees.base import LARGEST_EPSILON, Guarantee, Statement, as_guarantee
from .._guarantees.pure import BoundedRangeDP, LaplaceDP, PureDP
from .._guarantees.single_mechanisms import ZCDP, ApproxDP, GaussianDP, NonPrivate, RenyiDP
from .._numerics.arithmetic import safe_exp
from .._numerics.bisection import bracket, geometric, narrow, within
from .._numerics.loss_distribution import LossDistribution, sums_from_above

#: δ below which a numerical pair may have fewer digits than a Rényi curve.
TINY_DELTA = 1e-17
#: Cuts at each end of the ratios. More cuts improve the order a little, and the time grows with
#: their cube.
CUTS = 50
#: Mechanisms with at most this many outcomes are cut more finely: the split of their atoms matters.
FEW_OUTCOMES = 30
#: Kinds of guarantees with a largest loss ε, but for failures.
EPSILON_KINDS = (PureDP, LaplaceDP, BoundedRangeDP, ApproxDP)
#: Cuts that are tried from one ε to the next.
NEAR = (-5, -1, 0, 1, 5)


class Outcomes(NamedTuple):
    """Outcomes by rising likelihood ratio: P- and P'-masses, and the error of their sums."""

    p: Array
    q: Array
    error: float = 0.0


class Tails(NamedTuple):
    """Tails of a mechanism's outcomes, as functions of P-probability.

    They give the P'-probability of the outcomes of lowest and of highest likelihood ratio with a
    given P-probability.
    """

    lowest: Callable[[Array], Array]
    highest: Callable[[Array], Array]
    outcomes: Outcomes


def witness(
    one_run: Guarantee | Statement, count: CountDistribution | float, epsilon: float
) -> float:
    """δ at ε of the search over a concrete mechanism: a lower bound.

    No valid accountant reports less for this guarantee.

    Parameters
    ----------
    one_run : Guarantee
        A guarantee with a known worst mechanism: Gaussian, zCDP (the Gaussian mechanism), pure, (ε,
        δ). For other guarantees the accountant's own dominating pair is used: the certificate then
        limits the improvement of the *search* bound, given that pair.
    count : CountDistribution or float
        Distribution of K.
    epsilon : float
        ε ≥ 0.

    Returns
    -------
    float
        The δ, rounded down; 0 where it is below 1e-17 times the mean of K and the pair has fewer
        digits than the guarantee.

    Examples
    --------
    >>> round(witness(GaussianDP(mu=0.2**0.5), 10, 2.88) * 1e6, 2)
    1.1
    """
    distribution, one_run = as_count_distribution(count), as_guarantee(one_run, "one_run")
    epsilon = float(plain_number("epsilon", epsilon))
    require(epsilon >= 0, "epsilon >= 0", epsilon=epsilon)
    if epsilon > LARGEST_EPSILON:
        return open_failure(one_run, distribution)
    delta = largest_delta(worst_tails(one_run), distribution, epsilon)
    return delta if delta > _smallest_reliable_delta(one_run, distribution) else 0.0


def largest_delta(
    mechanisms: list[Tails], distribution: CountDistribution, epsilon: float, enough: float = np.inf
) -> float:
    """Largest δ of the search over any of several mechanisms.

    Many groups, which take longer, are tried if three are not enough.
    """
    three = max((largest_gain(tails, distribution, epsilon) for tails in mechanisms), default=0.0)
    if three > enough:
        return three
    groups = (ManyGroups(tails.outcomes, distribution) for tails in mechanisms)
    return max([three, *(many.gain(epsilon) for many in groups)])


def witness_epsilon(
    one_run: Guarantee | Statement, count: CountDistribution | float, delta: float
) -> float:
    """Largest ε at which ``witness`` exceeds ``delta``, from below; infinite if it always does.

    If one run never fails openly, the largest certified ε is 600: larger losses look like infinite
    ones.

    Parameters
    ----------
    one_run : Guarantee
        See ``witness``.
    count : CountDistribution or float
        Distribution of K.
    delta : float
        The δ to exceed.

    Returns
    -------
    float
        Every valid accountant reports at least this ε.
    """
    distribution, one_run = as_count_distribution(count), as_guarantee(one_run, "one_run")
    delta = number_in("[0, 1)", delta=delta)
    if open_failure(one_run, distribution) > delta:
        return np.inf
    all_tails = worst_tails(one_run)
    delta = max(delta, _smallest_reliable_delta(one_run, distribution))

    def gain(epsilon: float) -> float:
        return max(largest_gain(tails, distribution, epsilon) for tails in all_tails)

    largest = [_largest_epsilon(gain, delta, 1.0, 2.0, 1e-7)]
    if largest[0] >= LARGEST_EPSILON:
        return largest[0]
    start = max(largest[0], 1e-3)
    for tails in all_tails:
        groups = ManyGroups(tails.outcomes, distribution)
        groups.gain(largest[0])
        largest.append(_largest_epsilon(groups.gain_near, delta, start, 1.02, 1e-4))
    return max(largest)


def _largest_epsilon(
    gain: Callable[[float], float], delta: float, start: float, rising: float, close: float
) -> float:
    """Largest ε at which a gain exceeds δ; 0 if none."""

    def met(epsilon: float) -> bool:
        return gain(epsilon) <= delta

    turn = bracket(met, start, falling=(0.0,), rising=geometric(start, rising, LARGEST_EPSILON))
    if turn.holds is None:
        return LARGEST_EPSILON
    return narrow(met, turn, within(close, absolute=1e-12)).fails or 0.0


def open_failure(one_run: Guarantee, distribution: CountDistribution) -> float:
    """Certified δ at every ε, from outcomes impossible on one side."""
    share = float(isinstance(one_run, NonPrivate))
    if isinstance(one_run, ApproxDP):
        share = one_run.delta
    return float(pgf_increase(distribution, np.zeros(1), np.array([share]))[0][0])


def _smallest_reliable_delta(one_run: Guarantee, distribution: CountDistribution) -> float:
    """Smallest δ at which a pair has all digits of its guarantee.

    Below it a Rényi curve may have more digits.
    """
    if isinstance(one_run, (GaussianDP, ZCDP, NonPrivate, *EPSILON_KINDS)):
        return 0.0
    return TINY_DELTA * max(distribution.mean, 1.0)


def worst_tails(one_run: Guarantee) -> list[Tails]:
    """Tails, in both directions, of the worst mechanism, or of the accountant's own pair."""
    if isinstance(one_run, RenyiDP):
        raise PrivacyError(
            "No worst mechanism of a Rényi curve at finitely many orders is known. Use a guarantee "
            "that has one, e.g. GaussianDP or PureDP."
        )
    if isinstance(one_run, GaussianDP):
        return [gaussian_tails(one_run.mu)]
    if isinstance(one_run, ZCDP):
        return [gaussian_tails(float(np.sqrt(2.0 * one_run.rho)))]
    # with losses below the numeric infinity it is a stronger guarantee
    if isinstance(one_run, EPSILON_KINDS):
        one_run = replace(one_run, epsilon=min(one_run.epsilon, LARGEST_EPSILON))
    return [cuts(probabilities(pld)) for pld in one_run.pair.directions]


def gaussian_tails(mu: float) -> Tails:
    """Tails of the Gaussian mechanism."""
    # N(μ, 1) and N(0, 1), rounded to cells, which is post-processing
    edges = np.linspace(-8.5, 8.5 + mu, 6001)
    cells = Outcomes(_normal_probabilities(edges - mu), _normal_probabilities(edges))
    return Tails(
        lambda p: special.ndtr(special.ndtri(p) + mu),
        lambda p: special.ndtr(special.ndtri(p) - mu),
        cells,
    )


def _normal_probabilities(edges: Array) -> Array:
    """Normal probabilities between neighbouring edges, with all digits.

    They are computed from the side on which no digits cancel; the outer cells reach to infinity.
    """
    below, above = special.ndtr(edges), special.ndtr(-edges)
    below[0] = above[-1] = 0.0
    below[-1] = above[0] = 1.0
    return np.asarray(np.where(edges[1:] < 0, np.diff(below), -np.diff(above)))


def probabilities(pld: LossDistribution) -> Outcomes:
    """Outcomes of a loss distribution, normalized to probabilities.

    They are sorted by rising likelihood ratio, with totals of 1. Their hockey-stick divergence at
    c = e^ε is max(1 − c, H_c ÷ total), nowhere above that of the masses, H_c.

    Masses that were rounded up may have totals above 1. All masses are divided by the total of the
    P-masses. If the Q-masses still exceed 1, the outcomes of lowest ratio are merged into one with
    the remaining mass.
    """
    total = max(1.0, float(pld.masses.sum()) + pld.infinity)
    p, q = pld.masses / total, pld.masses * safe_exp(-pld.losses) / total
    above_p, above_q = sums_from_above(p) + pld.infinity / total, sums_from_above(q)
    too_much = np.flatnonzero(1.0 - above_p[:-1] >= safe_exp(pld.losses) * (1.0 - above_q[:-1]))
    first = int(too_much[-1]) + 1 if above_q[0] > 1.0 and too_much.size else 0
    rest_p, rest_q = (max(0.0, 1.0 - float(above[first])) for above in (above_p, above_q))
    masses_p = np.concatenate([[rest_p], p[first:], [pld.infinity / total]])
    return Outcomes(masses_p, np.concatenate([[rest_q], q[first:], [0.0]]))


def cuts(outcomes: Outcomes) -> Tails:
    """Tails of discrete outcomes, by cuts that may split an atom.

    A cut may split an atom because the score may toss a coin.

    Sums of masses may be wrong by the outcomes' ``error``, which counts against the cut.
    """
    p, q, error = outcomes
    low_p, low_q = (np.append(0.0, np.cumsum(side)) for side in (p, q))
    high_p, high_q = (np.append(0.0, np.cumsum(side[::-1])) for side in (p, q))
    low_q = np.minimum(low_q, 1.0)
    return Tails(
        lambda c: np.maximum(np.interp(np.maximum(c - error, 0.0), low_p, low_q) - error, 0.0),
        lambda s: np.minimum(np.interp(s + error, high_p, high_q, right=1.0) + error, 1.0),
        outcomes,
    )


def largest_gain(tails: Tails, distribution: CountDistribution, epsilon: float) -> float:
    """Largest certified δ by the best pair of cuts.

    A coarse grid of both is followed by finer ones around the best.
    """
    low = high = (-40.0, 0.0)  # log-probabilities of C and of S
    best = 0.0
    for _ in range(7):
        c, s = np.exp(np.linspace(*low, 81)), np.exp(np.linspace(*high, 81))
        values = _cuts_gain(tails, distribution, epsilon, c[:, None], s[None, :])
        i, j = np.unravel_index(int(np.argmax(values)), values.shape)
        best = max(best, float(values[i, j]))
        low, high = _interval_around(low, int(i)), _interval_around(high, int(j))
    none, s = np.zeros((1, 1)), np.exp(np.linspace(-40, 0, 4001))[None, :]
    return max(best, float(_cuts_gain(tails, distribution, epsilon, none, s).max()))


def _interval_around(interval: tuple[float, float], index: int) -> tuple[float, float]:
    """Smaller interval around the best of a grid."""
    step = (interval[1] - interval[0]) / 80
    middle = interval[0] + index * step
    return middle - 3 * step, min(middle + 3 * step, 0.0)


def _cuts_gain(
    tails: Tails, distribution: CountDistribution, epsilon: float, c: Array, s: Array
) -> Array:
    """Certified δ of pairs of cuts, A(S) − e^ε·A'(S), rounded down."""
    c_other, s_other = tails.lowest(c), tails.highest(s)
    inside = (c + s <= 1.0) & (c_other + s_other <= 1.0)
    low, _ = pgf_increase(distribution, c, s)
    _, high = pgf_increase(distribution, c_other, s_other)
    return np.where(inside, low - np.exp(epsilon) * high, 0.0)


# --- orders of many groups ------------------------------------------------------------------------


def pgf_increase(distribution: CountDistribution, top: Array, width: Array) -> tuple[Array, Array]:
    """Bounds on an increase of the generating function of K.

    They are bounds on f(1 − top) − f(1 − top − width), from below and from above.

    The difference of values cancels for small widths. f is convex: slope times width at either end
    bounds its rise.
    """
    bottom = np.minimum(top + width, 1.0)
    rises = distribution.generating(1.0 - top, top) - distribution.generating(1.0 - bottom, bottom)
    low = np.exp(distribution.log_slope(1.0 - bottom, bottom)) * width
    high = np.exp(distribution.log_slope(1.0 - top, top)) * width
    above = np.minimum(np.maximum(rises, 0.0) + 4e-15, high * (1 + 1e-12))
    return np.maximum(rises - 4e-15, low * (1 - 1e-12)), above


def group_outcomes(outcomes: Outcomes, mean: float, n_cuts: int = CUTS) -> Outcomes:
    """Outcomes merged into few groups, narrow where it matters.

    Groups are narrow where a search with ``mean`` runs on average decides. Atoms may be split.
    """
    p, q = outcomes.p, outcomes.q
    places = np.arange(p.size + 1.0)
    below_p, below_q = np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q))
    above_p, above_q = sums_from_above(p), sums_from_above(q)
    deciding = 1e-2 / mean
    ends = np.append(
        np.geomspace(1e-10, deciding, n_cuts // 2), np.geomspace(deciding, 0.5, n_cuts)
    )
    shares = np.append(ends, np.linspace(0.0, 1.0, n_cuts // 2))
    at_p = np.append(_positions(shares, below_p), p.size - _positions(ends, above_p[::-1]))
    at = np.unique(np.append(at_p, _positions(shares, below_q)))
    sides = ((below_p, above_p), (below_q, above_q))
    masses = []
    for side in sides:  # from the side on which no digits cancel
        below, above = (np.interp(at, places, sums) for sums in side)
        between = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        masses.append(np.maximum(between, 0.0))
    group_p, group_q = masses
    nonempty = group_p + group_q > 1e-15
    return Outcomes(group_p[nonempty], group_q[nonempty], outcomes.error)


def _positions(shares: Array, cumulative: Array) -> Array:
    """Positions, in outcomes and parts of one, at which a cumulative mass reaches each share."""
    grown = np.append(True, np.diff(cumulative) > 0)
    return np.asarray(np.interp(shares, cumulative[grown], np.flatnonzero(grown).astype(float)))


def best_order(
    few: Outcomes, counting: int, distribution: CountDistribution, epsilon: float
) -> float:
    """Largest certified δ of any order that mixes two sequences of groups.

    It is Σ A(S) − e^ε·A'(S), where the groups from ``counting`` on count.

    gain[i, j] is the gain of the j-th counting group with i other groups below it. Rounded down.
    """
    top_p, top_q = (_mass_above(side, counting) for side in (few.p, few.q))
    widths_p = np.maximum(few.p[counting:] - few.error, 0.0)
    widths_q = few.q[counting:] + few.error
    low, _ = pgf_increase(distribution, np.clip(top_p + few.error, 0.0, 1.0), widths_p)
    _, high = pgf_increase(distribution, np.clip(top_q - few.error, 0.0, 1.0), widths_q)
    gain = np.maximum(low - np.exp(epsilon) * high, 0.0)
    placed = np.concatenate([np.zeros((counting + 1, 1)), np.cumsum(gain, axis=1)], axis=1)
    best = placed[-1, -1] - placed[-1]
    for row in placed[-2::-1]:  # from j on: place some that count at this i, then go on
        best = np.maximum.accumulate((row + best)[::-1])[::-1] - row
    return float(best[0] * (1.0 - 1e-12))


def _mass_above(side: Array, counting: int) -> Array:
    """Mass that scores above each counting group.

    It is that of the groups that do not count, if i of them are below, and of the counting groups
    after j.
    """
    uncounted = np.append(np.cumsum(side[:counting])[::-1], 0.0)
    return np.asarray(uncounted[:, None] + sums_from_above(side[counting:])[1:])


class ManyGroups:
    """Search for the best order of many groups of outcomes of one mechanism, at each ε."""

    def __init__(self, outcomes: Outcomes, distribution: CountDistribution) -> None:
        self.distribution, self.has_few = distribution, outcomes.p.size <= FEW_OUTCOMES
        n_cuts = 2 * CUTS if self.has_few else CUTS
        self.few = group_outcomes(outcomes, max(distribution.mean, 1.0), n_cuts)
        self.counting: int | None = None

    def gain(self, epsilon: float) -> float:
        """Largest certified δ over cuts between counting and other groups, from coarse to fine."""
        number = self.few.p.size
        step = max(number // 20, 1)
        tried = {cut: self._gain(cut, epsilon) for cut in range(1, number, step)}
        if not tried:
            return 0.0
        while step > 1:
            step = max(step // 3, 1)
            around = max(tried, key=lambda cut: tried[cut])
            nearby = (around - 2 * step, around - step, around + step, around + 2 * step)
            untried = [cut for cut in nearby if 0 < cut < number and cut not in tried]
            tried |= {cut: self._gain(cut, epsilon) for cut in untried}
        self.counting = max(tried, key=lambda cut: tried[cut])
        return tried[self.counting]

    def gain_near(self, epsilon: float) -> float:
        """Largest certified δ over cuts near the last good one."""
        if self.has_few or self.counting is None:
            return self.gain(epsilon)
        number = self.few.p.size
        nearby = [self.counting + step for step in NEAR if 0 < self.counting + step < number]
        tried = {cut: self._gain(cut, epsilon) for cut in nearby}
        best = max(tried, key=lambda cut: tried[cut])
        if tried[best] > 0:
            self.counting = best
        return tried[best]

    def _gain(self, counting: int, epsilon: float) -> float:
        """Largest certified δ for one cut."""
        return best_order(self.few, counting, self.distribution, epsilon)
