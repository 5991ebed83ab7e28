r"""Number of right guesses about coins that a claimed curve ε(δ) allows.

Theorem (Mahloujifar, Melis & Chaudhuri 2024, here with guesses left out; proof on the theory page
"Right guesses"). m fair coins decide which canaries are records; from the release an attack guesses
r of them, and W guesses are right. If P ≤ f̄(Q) for the chances P, Q of any event with and without
one canary, then for every j

    E[W·1{W ≥ j}]/m ≤ f̄( E[(r − W)·1{W ≥ j − 1}]/m ).

A claim (ε, δ) gives two lines of f̄, and a curve gives many.

Theorem (Steinke, Nasr & Jagielski 2023, 5.2). Under one claim, with B ~ Binomial(r, 1/(1 +
e^{−ε})),

    P[W ≥ v] ≤ P[B ≥ v] + 2·m·δ·max_i P[v > B ≥ v − i]/i.

It refutes more where m·δ is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..privacy._checks import Array, require
from ..privacy._numerics.bisection import bracket, geometric, narrow, within
from ._audit_result import check_levels

#: Relative error of a bound, which is rounded down.
RELATIVE_ERROR = 1e-4
#: Claims of a larger ε are left out: its exponential is no number, and no count of guesses speaks
#: about it.
LARGEST_EPSILON = 500.0
#: Sum of chances from which on a claim is refuted; the excess over 1 covers the rounding of a sum.
REFUTING_SUM = 1.0 + 1e-9


@dataclass(frozen=True)
class ClaimedCurve:
    """Claimed curve of pairs (ε, δ), for data sets one canary apart.

    Parameters
    ----------
    epsilons, deltas : ndarray of shape (k,)
        The pairs, in any order.
    """

    epsilons: Array
    deltas: Array

    def times(self, ratio: float) -> ClaimedCurve:
        """Claimed curve with each ε multiplied."""
        return ClaimedCurve(self.epsilons * ratio, self.deltas)

    def lines(self) -> tuple[Array, Array]:
        """Slopes and offsets of the lines that the claims imply.

        They say Q ≥ slope·P + offset, for each event and its complement.
        """
        finite = self.epsilons <= LARGEST_EPSILON
        epsilons, deltas = self.epsilons[finite], self.deltas[finite]
        smaller, larger = np.exp(-epsilons), np.exp(epsilons)
        slopes = np.concatenate([[0.0], smaller, larger])
        return slopes, np.concatenate([[0.0], -deltas * smaller, 1.0 - deltas - larger])


@dataclass(frozen=True)
class Guesses:
    """Guesses about fair coins of canaries, and how many were right.

    Parameters
    ----------
    n_canaries, n_guesses, n_right : int
        Coins, guesses about them (the others are left out), and right guesses.
    """

    n_canaries: int
    n_guesses: int
    n_right: int

    def refute(self, curve: ClaimedCurve, level: float) -> bool:
        """Return whether right guesses refute a claimed curve.

        Under the claims, as many right guesses or more have a chance below ``level``: both theorems
        bound it.
        """
        return self.refute_by_binomial(curve, level) or self.refute_by_sums(curve, level)

    def refute_by_binomial(self, curve: ClaimedCurve, level: float) -> bool:
        """Return whether a single claim is refuted by the theorem of Steinke, Nasr & Jagielski."""
        v, weight = self.n_right, 2.0 * self.n_canaries * curve.deltas
        right = 1.0 / (1.0 + np.exp(-curve.epsilons))
        tails = stats.binom.sf(v - 1, self.n_guesses, right) * REFUTING_SUM
        smallest = tails + weight * stats.binom.pmf(v - 1, self.n_guesses, right)  # i = 1 alone
        below, steps = np.arange(v - 1, -1, -1), np.arange(1, v + 1)
        for k in np.flatnonzero(smallest < level):
            shares = np.cumsum(stats.binom.pmf(below, self.n_guesses, right[k])) / steps
            if tails[k] + weight[k] * REFUTING_SUM * shares.max(initial=0.0) < level:
                return True
        return False

    def refute_by_sums(self, curve: ClaimedCurve, level: float) -> bool:
        """Return whether the theorem of Mahloujifar, Melis & Chaudhuri refutes the claims.

        The chances of j = n_right − 1, n_right − 2, … right guesses are at least those that the
        theorem asks for if ``level`` is the chance of n_right; the claims are refuted if the
        chances sum up to more than 1.
        """
        slopes, offsets = curve.lines()
        m, r = self.n_canaries, self.n_guesses
        right, wrong, total = level * self.n_right / m, level * (r - self.n_right) / m, level
        for j in range(self.n_right - 1, -1, -1):
            missing = (float(np.max(slopes * right + offsets)) - wrong) * m / (r - j)
            if missing <= 0.0 or total > REFUTING_SUM:
                break
            right = right + missing * j / m
            wrong = wrong + missing * (r - j) / m
            total = total + missing
        return total > REFUTING_SUM

    def epsilon(self, delta: float, level: float) -> float:
        """Largest ε at ``delta`` that the guesses refute, rounded down."""

        def holds(epsilon: float) -> bool:
            return not self.refute(ClaimedCurve(np.array([epsilon]), np.array([delta])), level)

        turn = bracket(holds, 0.0, [], [LARGEST_EPSILON])
        return narrow(holds, turn, within(RELATIVE_ERROR, RELATIVE_ERROR**2)).fails or 0.0

    def ratio(self, curve: ClaimedCurve, level: float) -> float:
        """Largest multiple of a claimed curve that is refuted, rounded down; 1 refutes it."""

        def holds(ratio: float) -> bool:
            return not self.refute(curve.times(ratio), level)

        turn = bracket(holds, 1.0, geometric(1.0, 0.5, 1e-3), geometric(1.0, 2.0, 2.0**20))
        return narrow(holds, turn, within(RELATIVE_ERROR)).fails or 0.0


def epsilon_of_guesses(
    n_canaries: int, n_guesses: int, n_right: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Lower bound on ε that right guesses about fair coins prove.

    It is the larger one of Steinke, Nasr & Jagielski (2023, Theorem 5.2) and Mahloujifar, Melis &
    Chaudhuri (2024).

    Parameters
    ----------
    n_canaries, n_guesses, n_right : int
        Coins, guesses about them (the others are left out), and right guesses.
    delta : float, default=0.0
        δ at which ε is bounded.
    confidence : float, default=0.95
        Probability with which the bound holds, for a number of guesses that does not depend on the
        coins.

    Returns
    -------
    float
        The lower bound, rounded down.

    Examples
    --------
    >>> [round(epsilon_of_guesses(1000, 100, right), 2) for right in (50, 90, 100)]
    [0.0, 1.63, 3.49]
    """
    valid = 0 <= n_right <= n_guesses <= n_canaries
    require(valid, "n_right <= n_guesses <= n_canaries", n_guesses=n_guesses)
    check_levels(delta, confidence)
    return Guesses(n_canaries, n_guesses, n_right).epsilon(delta, 1.0 - confidence)
