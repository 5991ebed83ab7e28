r"""Certificates: what some mechanism with a given guarantee really loses in best-of-K search.

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

from .._types import Array
from ..count_laws.base import CountLaw
from ..count_laws.laws import as_law
from ..errors import PrivacyError
from ..guarantees.base import LARGEST_EPSILON, Guarantee, Statement, as_guarantee
from ..guarantees.pure import BoundedRangeDP, LaplaceDP, PureDP
from ..guarantees.values import ZCDP, ApproxDP, GaussianDP, NonPrivate, RenyiDP
from ..numerics.inversion import bracket, geometric, narrowed, within
from ..numerics.loss_distribution import LossDistribution
from .orders import ManyGroups, Outcomes, rise


class Tails(NamedTuple):
    """P'-probability of the outcomes of lowest and of highest likelihood ratio with a given P-probability."""

    lowest: Callable[[Array], Array]
    highest: Callable[[Array], Array]
    outcomes: Outcomes


def witness(one_run: Guarantee | Statement, count: CountLaw | float, epsilon: float) -> float:
    """A δ that the search over some mechanism with this guarantee really has at ε: a lower bound on any true answer.

    Parameters
    ----------
    one_run : Guarantee
        A guarantee with an exactly known worst mechanism: Gaussian, zCDP (the Gaussian mechanism), pure, (ε, δ). For
        any other the accountant's own dominating pair is taken: the certificate then bounds how much the *search* bound
        could improve, given that pair.
    count : CountLaw or float
        Law of K.
    epsilon : float
        ε ≥ 0.

    Returns
    -------
    float
        The δ, rounded down.

    Examples
    --------
    >>> round(witness(GaussianDP(mu=0.2**0.5), 10, 2.88) * 1e6, 2)
    1.1
    """
    law, one_run = as_law(count), as_guarantee(one_run, "one_run")
    if epsilon > LARGEST_EPSILON:
        return always(one_run, law)
    all_tails = _tails(one_run)
    three = [largest_gain(tails, law, float(epsilon)) for tails in all_tails]
    return max(*three, *(ManyGroups(tails.outcomes, law).gain(float(epsilon)) for tails in all_tails))


def witness_epsilon(one_run: Guarantee | Statement, count: CountLaw | float, delta: float) -> float:
    """The largest ε at which ``witness`` exceeds ``delta`` (from below); infinite if it always does.

    Where one run never fails openly, nothing is certified beyond 600: such losses are not told from infinite ones.

    Parameters
    ----------
    one_run : Guarantee
        As for ``witness``.
    count : CountLaw or float
        Law of K.
    delta : float
        The δ to exceed.

    Returns
    -------
    float
        No true accountant can report an ε below it.
    """
    law, one_run = as_law(count), as_guarantee(one_run, "one_run")
    if always(one_run, law) > delta:
        return np.inf
    all_tails = _tails(one_run)
    three = _largest_epsilon(lambda at: max(largest_gain(tails, law, at) for tails in all_tails), delta, 1.0, 2.0, 1e-7)
    if three >= LARGEST_EPSILON:
        return three
    many = [ManyGroups(tails.outcomes, law) for tails in all_tails]
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


def always(one_run: Guarantee, law: CountLaw) -> float:
    """The gain at every ε, from outcomes that are impossible on one side, where there surely are some."""
    share = one_run.delta if isinstance(one_run, ApproxDP) else float(isinstance(one_run, NonPrivate))
    return float(rise(law, np.zeros(1), np.array([share]))[0][0])


def told_apart(one_run: Guarantee) -> Guarantee:
    """A guarantee whose losses are told from infinite ones: what keeps it keeps the weaker one that was given."""
    if isinstance(one_run, (PureDP, LaplaceDP, BoundedRangeDP, ApproxDP)) and one_run.epsilon > LARGEST_EPSILON:
        return replace(one_run, epsilon=LARGEST_EPSILON)
    return one_run


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
    """N(μ, 1) and N(0, 1) with their values told up to a cell: to forget the rest is post-processing."""
    edges = np.linspace(-8.5, 8.5 + mu, 6001)
    return Outcomes(_steps(edges - mu), _steps(edges))


def _steps(edges: Array) -> Array:
    """Φ between neighbouring edges, from the side on which no digits cancel; the outer cells reach to infinity."""
    below, above = special.ndtr(edges), special.ndtr(-edges)
    below[0] = above[-1] = 0.0
    below[-1] = above[0] = 1.0
    steps: Array = np.where(edges[1:] < 0, np.diff(below), -np.diff(above))
    return steps


def _discrete(pld: LossDistribution) -> Tails:
    """Cuts may split an atom: the score may toss a coin."""
    q = pld.masses * np.exp(-pld.losses)
    missing = max(0.0, 1.0 - float(q.sum()))
    low_p, low_q = np.append(0.0, np.cumsum(pld.masses)), missing + np.append(0.0, np.cumsum(q))
    high_p = np.append(pld.infinity, pld.infinity + np.cumsum(pld.masses[::-1]))
    high_q = np.append(0.0, np.cumsum(q[::-1]))
    outcomes = Outcomes(np.concatenate([[0.0], pld.masses, [pld.infinity]]), np.concatenate([[missing], q, [0.0]]))
    return Tails(
        lambda p: np.interp(p, low_p, np.minimum(low_q, 1.0)), lambda p: np.interp(p, high_p, high_q), outcomes
    )


def largest_gain(tails: Tails, law: CountLaw, epsilon: float) -> float:
    """Best pair of cuts: a coarse grid of both, then finer ones around the best."""
    low = high = (-40.0, 0.0)  # log-probabilities of C and of S
    best = 0.0
    for _ in range(7):
        c, s = np.exp(np.linspace(*low, 81)), np.exp(np.linspace(*high, 81))
        values = _gain(tails, law, epsilon, c[:, None], s[None, :])
        i, j = np.unravel_index(int(np.argmax(values)), values.shape)
        best = max(best, float(values[i, j]))
        low, high = _around(low, int(i)), _around(high, int(j))
    return max(
        best, float(_gain(tails, law, epsilon, np.zeros((1, 1)), np.exp(np.linspace(-40, 0, 4001))[None, :]).max())
    )


def _around(interval: tuple[float, float], index: int) -> tuple[float, float]:
    step = (interval[1] - interval[0]) / 80
    middle = interval[0] + index * step
    return middle - 3 * step, min(middle + 3 * step, 0.0)


def _gain(tails: Tails, law: CountLaw, epsilon: float, c: Array, s: Array) -> Array:
    """A(S) − e^ε·A'(S), rounded down."""
    c_other, s_other = tails.lowest(c), tails.highest(s)
    inside = (c + s <= 1.0) & (c_other + s_other <= 1.0)
    ours, _ = rise(law, c, s)
    _, theirs = rise(law, c_other, s_other)
    return np.where(inside, ours - np.exp(epsilon) * theirs, 0.0)
