r"""Lower bounds on ε from counts, by Clopper–Pearson bounds on two probabilities.

If a mechanism is (ε, δ)-DP, every event has p ≤ e^ε·q + δ, p and q its probabilities on two
neighbours. With p_low ≤ p and q_high ≥ q, ε ≥ log((p_low − δ)/q_high). The two samples are
independent: each bound holds with probability at least √confidence, so both hold with at least the
stated confidence.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

from ..privacy._checks import Array, require_in, require_whole
from ..privacy._numerics.bisection import bracket, geometric, narrow, whole_midpoint, within


def certified_epsilon(
    hits: int | Array,
    runs: int | Array,
    other_hits: int | Array,
    other_runs: int | Array,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Array:
    """Lower bound on ε that the counts of one event prove, at least 0; arrays allowed.

    Parameters
    ----------
    hits, runs : int or ndarray
        Number of runs in which the event happened, and number of all runs, on one data set.
    other_hits, other_runs : int or ndarray
        Both numbers on its neighbour.
    delta : float
        δ at which ε is bounded.
    confidence : float
        Probability with which the bound holds, for an event that was chosen without these counts.
    """
    level = 1.0 - math.sqrt(confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(hits > 0, beta.ppf(level, hits, runs - hits + 1), 0.0)
        high = beta.ppf(1.0 - level, other_hits + 1, other_runs - other_hits)
        high = np.where(other_hits < other_runs, high, 1.0)
        epsilon = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.asarray(np.maximum(epsilon, 0.0))


def n_counted_runs(n_runs: int) -> int:
    """Number of runs that are counted; the others choose the event."""
    return n_runs - n_runs // 2


def largest_provable_epsilon(n_runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Largest ε that a number of fits proves, with an event that always or never happens.

    Parameters
    ----------
    n_runs : int
        Fits on each data set, of which half choose the event.
    delta : float, default=0.0
        δ at which ε is bounded.
    confidence : float, default=0.95
        Probability with which the bound holds.

    Returns
    -------
    float
        The largest lower bound on ε.

    Examples
    --------
    >>> [round(largest_provable_epsilon(n), 1) for n in (100, 1000, 10_000)]
    [2.6, 4.9, 7.2]
    """
    require_whole(1, n_runs=n_runs)
    require_in("[0, 1)", delta=delta)
    require_in("(0, 1)", confidence=confidence)
    m = n_counted_runs(n_runs)
    return float(certified_epsilon(m, m, 0, m, delta, confidence))


def runs_needed(epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> int:
    """Fewest fits on each data set that can prove ``epsilon``, for any estimator.

    Parameters
    ----------
    epsilon : float
        The ε to prove.
    delta : float, default=0.0
        δ at which ε is bounded.
    confidence : float, default=0.95
        Probability with which the bound holds.

    Returns
    -------
    int
        Fits on each data set.

    Examples
    --------
    >>> runs_needed(1.0), runs_needed(3.0), runs_needed(5.0)
    (23, 151, 1095)
    """
    require_in("[0, 30)", epsilon=epsilon)

    def reached(n_runs: float) -> bool:
        return largest_provable_epsilon(int(n_runs), delta, confidence) >= epsilon

    doubled = bracket(reached, 2, [], geometric(2, 2, math.inf))
    fewest = narrow(reached, doubled, within(absolute=1), whole_midpoint).holds
    assert fewest is not None  # the largest provable ε grows with the number of runs, past 30
    return int(fewest)
