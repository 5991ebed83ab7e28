r"""Certificates: the loss of a concrete mechanism with a given guarantee in best-of-K search.

Order the outcomes of a dominating pair by likelihood ratio and cut them into C (lowest), B (middle) and S (highest);
let the score order them B < S < C. The best of K runs then falls into S with probability f(P(B∪S)) − f(P(B)), so that

    f(P(B∪S)) − f(P(B)) − e^ε·( f(P'(B∪S)) − f(P'(B)) )

is a lower bound on the δ of *some* mechanism with this guarantee. No valid accountant can report less. Orders of many
groups (``orders``) are better still; the larger of both counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from ...errors import PrivacyError
from .._checks import plain_number, require
from .._types import Array
from ..count_distributions.base import CountDistribution
from ..count_distributions.distributions import as_count_distribution
from ..guarantees.base import LARGEST_EPSILON, Guarantee, Statement, as_guarantee
from ..guarantees.pure import BoundedRangeDP, LaplaceDP, PureDP
from ..guarantees.values import ZCDP, ApproxDP, GaussianDP, NonPrivate, RenyiDP
from ..numerics.inversion import bracket, geometric, narrowed, within
from ..numerics.logspace import safe_exp
from ..numerics.loss_distribution import LossDistribution
from .score_orders import ManyGroups, Outcomes, rise

#: δ below which a numerical pair may have fewer digits than a Rényi curve.
FAR = 1e-17


class Tails(NamedTuple):
    """P'-probability of the outcomes of lowest and of highest likelihood ratio with a given P-probability."""

    lowest: Callable[[Array], Array]
    highest: Callable[[Array], Array]
    outcomes: Outcomes


def witness(one_run: Guarantee | Statement, count: CountDistribution | float, epsilon: float) -> float:
    """δ at ε of the search over a concrete mechanism with this guarantee: a lower bound for every valid accountant.

    Parameters
    ----------
    one_run : Guarantee
        A guarantee with a known worst mechanism: Gaussian, zCDP (the Gaussian mechanism), pure, (ε, δ). For other
        guarantees the accountant's own dominating pair is used: the certificate then limits the improvement of the
        *search* bound, given that pair.
    count : CountDistribution or float
        Distribution of K.
    epsilon : float
        ε ≥ 0.

    Returns
    -------
    float
        The δ, rounded down; 0 where it is below 1e-17 and the pair has fewer digits than the guarantee.

    Examples
    --------
    >>> round(witness(GaussianDP(mu=0.2**0.5), 10, 2.88) * 1e6, 2)
    1.1
    """
    distribution, one_run, epsilon = (
        as_count_distribution(count),
        as_guarantee(one_run, "one_run"),
        plain_number("epsilon", epsilon),
    )
    require(epsilon >= 0, "epsilon >= 0", epsilon=epsilon)
    if epsilon > LARGEST_EPSILON:
        return always(one_run, distribution)
    all_tails = _tails(one_run)
    three = [largest_gain(tails, distribution, float(epsilon)) for tails in all_tails]
    found = max(*three, *(ManyGroups(tails.outcomes, distribution).gain(float(epsilon)) for tails in all_tails))
    return found if found > _least_told(one_run, distribution) else 0.0


def witness_epsilon(one_run: Guarantee | Statement, count: CountDistribution | float, delta: float) -> float:
    """The largest ε at which ``witness`` exceeds ``delta`` (from below); infinite if it always does.

    If one run never fails openly, the largest certified ε is 600: larger losses look like infinite ones.

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
    distribution, one_run, delta = (
        as_count_distribution(count),
        as_guarantee(one_run, "one_run"),
        plain_number("delta", delta),
    )
    require(0 <= delta < 1, "0 <= delta < 1", delta=delta)
    if always(one_run, distribution) > delta:
        return np.inf
    all_tails, delta = _tails(one_run), max(delta, _least_told(one_run, distribution))
    three = _largest_epsilon(
        lambda at: max(largest_gain(tails, distribution, at) for tails in all_tails), delta, 1.0, 2.0, 1e-7
    )
    if three >= LARGEST_EPSILON:
        return three
    many = [ManyGroups(tails.outcomes, distribution) for tails in all_tails]
    for one in many:
        one.gain(three)
    return max(three, *(_largest_epsilon(one.gain_near, delta, max(three, 1e-3), 1.02, 1e-4) for one in many))


def _largest_epsilon(gain: Callable[[float], float], delta: float, start: float, rising: float, close: float) -> float:
    """The largest ε found with gain(ε) > δ: 0 if there is none."""

    def kept(epsilon: float) -> bool:
        return gain(epsilon) <= delta

    turn = bracket(kept, start, falling=(0.0,), rising=geometric(start, rising, LARGEST_EPSILON))
    if turn.holds is None:
        return LARGEST_EPSILON
    return narrowed(kept, turn, within(close, absolute=1e-12)).fails or 0.0


def always(one_run: Guarantee, distribution: CountDistribution) -> float:
    """The gain at every ε, from outcomes known to be impossible on one side."""
    share = one_run.delta if isinstance(one_run, ApproxDP) else float(isinstance(one_run, NonPrivate))
    return float(rise(distribution, np.zeros(1), np.array([share]))[0][0])


def told_apart(one_run: Guarantee) -> Guarantee:
    """A stronger guarantee with losses below the numeric infinity; its mechanisms also have the given one."""
    if isinstance(one_run, (PureDP, LaplaceDP, BoundedRangeDP, ApproxDP)) and one_run.epsilon > LARGEST_EPSILON:
        return replace(one_run, epsilon=LARGEST_EPSILON)
    return one_run


def _least_told(one_run: Guarantee, distribution: CountDistribution) -> float:
    """δ down to which a pair is sure to have all the digits that its guarantee has by other ways, such as Rényi's."""
    if isinstance(one_run, (GaussianDP, ZCDP, PureDP, LaplaceDP, BoundedRangeDP, ApproxDP, NonPrivate)):
        return 0.0
    return FAR * max(distribution.mean, 1.0)


def _tails(one_run: Guarantee) -> list[Tails]:
    if isinstance(one_run, RenyiDP):
        raise PrivacyError(
            "No worst mechanism of a Rényi curve at finitely many orders is known. Use a guarantee with one."
        )
    if isinstance(one_run, (GaussianDP, ZCDP)):
        return [gaussian_tails(one_run.mu if isinstance(one_run, GaussianDP) else float(np.sqrt(2.0 * one_run.rho)))]
    return [_discrete(pld) for pld in told_apart(one_run).pair.directions]


def gaussian_tails(mu: float) -> Tails:
    return Tails(
        lambda p: special.ndtr(special.ndtri(p) + mu), lambda p: special.ndtr(special.ndtri(p) - mu), _cells(mu)
    )


def _cells(mu: float) -> Outcomes:
    """N(μ, 1) and N(0, 1) with values rounded to cells, which is post-processing."""
    edges = np.linspace(-8.5, 8.5 + mu, 6001)
    return Outcomes(_steps(edges - mu), _steps(edges))


def _steps(edges: Array) -> Array:
    """Φ between neighbouring edges, from the side on which no digits cancel; the outer cells reach to infinity."""
    below, above = special.ndtr(edges), special.ndtr(-edges)
    below[0] = above[-1] = 0.0
    below[-1] = above[0] = 1.0
    steps: Array = np.where(edges[1:] < 0, np.diff(below), -np.diff(above))
    return steps


def probabilities(pld: LossDistribution) -> Outcomes:
    """Outcomes by rising likelihood ratio, with totals of 1, whose curve is max(1 − c, H_c ÷ total): nowhere above H_c.

    Masses that were rounded up may have totals above 1. All masses are divided by the total of the P-masses. If the
    Q-masses still exceed 1, the outcomes of lowest ratio are merged into one with the remaining mass.
    """
    total = max(1.0, float(pld.masses.sum()) + pld.infinity)
    p, q = pld.masses / total, pld.masses * safe_exp(-pld.losses) / total
    above_p = np.append(np.cumsum(p[::-1])[::-1], 0.0) + pld.infinity / total
    above_q = np.append(np.cumsum(q[::-1])[::-1], 0.0)
    too_much = np.flatnonzero(1.0 - above_p[:-1] >= safe_exp(pld.losses) * (1.0 - above_q[:-1]))
    first = int(too_much[-1]) + 1 if above_q[0] > 1.0 and too_much.size else 0
    left_p, left_q = (max(0.0, 1.0 - float(above[first])) for above in (above_p, above_q))
    return Outcomes(
        np.concatenate([[left_p], p[first:], [pld.infinity / total]]), np.concatenate([[left_q], q[first:], [0.0]])
    )


def _discrete(pld: LossDistribution) -> Tails:
    """Cuts through discrete outcomes; a cut may split an atom, as the score may toss a coin."""
    outcomes = probabilities(pld)
    low_p, low_q = (np.append(0.0, np.cumsum(side)) for side in (outcomes.p, outcomes.q))
    high_p, high_q = (np.append(0.0, np.cumsum(side[::-1])) for side in (outcomes.p, outcomes.q))
    return Tails(
        lambda p: np.interp(p, low_p, np.minimum(low_q, 1.0)), lambda p: np.interp(p, high_p, high_q), outcomes
    )


def largest_gain(tails: Tails, distribution: CountDistribution, epsilon: float) -> float:
    """Best pair of cuts: a coarse grid of both, then finer ones around the best."""
    low = high = (-40.0, 0.0)  # log-probabilities of C and of S
    best = 0.0
    for _ in range(7):
        c, s = np.exp(np.linspace(*low, 81)), np.exp(np.linspace(*high, 81))
        values = _gain(tails, distribution, epsilon, c[:, None], s[None, :])
        i, j = np.unravel_index(int(np.argmax(values)), values.shape)
        best = max(best, float(values[i, j]))
        low, high = _around(low, int(i)), _around(high, int(j))
    return max(
        best,
        float(_gain(tails, distribution, epsilon, np.zeros((1, 1)), np.exp(np.linspace(-40, 0, 4001))[None, :]).max()),
    )


def _around(interval: tuple[float, float], index: int) -> tuple[float, float]:
    step = (interval[1] - interval[0]) / 80
    middle = interval[0] + index * step
    return middle - 3 * step, min(middle + 3 * step, 0.0)


def _gain(tails: Tails, distribution: CountDistribution, epsilon: float, c: Array, s: Array) -> Array:
    """A(S) − e^ε·A'(S), rounded down."""
    c_other, s_other = tails.lowest(c), tails.highest(s)
    inside = (c + s <= 1.0) & (c_other + s_other <= 1.0)
    ours, _ = rise(distribution, c, s)
    _, theirs = rise(distribution, c_other, s_other)
    return np.where(inside, ours - np.exp(epsilon) * theirs, 0.0)
