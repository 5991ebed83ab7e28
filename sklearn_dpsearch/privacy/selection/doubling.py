r"""The doubling walk over utility thresholds (Ding, Wu et al. 2022, Algorithm 1): its largest cost.

Its rules, and the walk that runs, are in ``mechanisms.doubling_walk``. A round that finds a candidate above the
threshold is an *accept*: the step doubles. Any other is a *reject*: the step is halved.

Between neighbours, one round with noise Lap(2Δ/ε) on the threshold and Lap(4Δ/ε) on each candidate changes the
probability of a reject by a factor e^{ε/2} at most and that of "candidate k is accepted" by e^ε (``doubling_walk``).
The number of rounds of each kind depends on the data, so the cost is the worst case over all walks that the rules
allow.

The step is always 2^{accepts − rejects}, so a walk's state is its number of accepts and rejects and its level; and of
all walks with the same numbers the one on the lowest level can go on longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from .._checks import cached_property, require, require_whole
from .._types import Array, Neighboring
from ..guarantees.base import Guarantee
from ..guarantees.pure import PureDP
from ..numerics.arithmetic import float_above
from ..numerics.loss_distribution import ROUNDING, DominatingPair, pair_through

#: Largest distance of two points at which the profile is computed exactly; between them it is below the chord.
GAP = 0.01


def default_max_rounds(levels: int) -> int:
    """5·⌈log₂ n⌉ + 2: more rounds than Ding, Wu et al. (2022, figure 4) saw in any of their walks.

    Parameters
    ----------
    levels : int
        Number of levels n.

    Returns
    -------
    int
        A number of rounds for ``max_rounds``.

    Examples
    --------
    >>> default_max_rounds(100)
    37
    """
    require_whole(1, levels=levels)
    return 5 * (int(levels) - 1).bit_length() + 2


@lru_cache(maxsize=64)
def lowest_levels(levels: int, max_rounds: int) -> dict[tuple[int, int], int]:
    """The lowest level of an unfinished walk, by its numbers of accepts and rejects."""
    lowest = {(0, 0): 0}
    for rounds in range(1, max_rounds):
        for rejects in range(rounds // 2 + 1):
            accepts = rounds - rejects
            before = []
            if (accepts - 1, rejects) in lowest:
                before.append(lowest[accepts - 1, rejects] + 2 ** (accepts - 1 - rejects))
            if (accepts, rejects - 1) in lowest:
                before.append(lowest[accepts, rejects - 1])
            if before and min(before) < levels:
                lowest[accepts, rejects] = min(before)
    return lowest


def ends(levels: int, max_rounds: int) -> list[tuple[int, int]]:
    """Accepts and rejects of every ended walk, and of some unfinished ones."""
    unfinished = lowest_levels(levels, max_rounds)
    return [state for accepts, rejects in unfinished for state in ((accepts + 1, rejects), (accepts, rejects + 1))]


@dataclass(frozen=True, kw_only=True)
class DoublingWalk(Guarantee):
    r"""The doubling walk with fresh noise in every round.

    Pure: the largest accepts·ε + rejects·ε/2 of any walk. At δ > 0: the exact worst case over every sequence of rounds
    whose losses stay within ±ε at an accept and ±ε/2 at a reject, each round chosen in view of the earlier ones. With
    H_s(c) the largest hockey-stick curve of the rest of the walk from state s,

        H_s(c) = max over outcomes o, o' of  p·H_{s,o}(c·e^{−ε_o}) + (1 − p)·H_{s,o'}(c·e^{ε_{o'}}),

    with p the probability that makes both sides' total 1, and H(c) = (1 − c)₊ at the end of the walk.

    Parameters
    ----------
    round_epsilon : float
        ε of a round in which a candidate is accepted.
    levels : int
        Number of levels, ⌈(1 − u₀)/g⌉ for a lowest utility u₀ and a granularity g.
    max_rounds : int
        Largest number of rounds.
    """

    round_epsilon: float
    levels: int
    max_rounds: int

    def _check(self) -> None:
        require(0 < self.round_epsilon < np.inf, "0 < round_epsilon < inf", round_epsilon=self.round_epsilon)
        require_whole(1, levels=self.levels, max_rounds=self.max_rounds)

    @cached_property
    def halves(self) -> int:
        """The largest cost of a walk in units of ε/2: 2 for an accept, 1 for a reject."""
        return max(2 * accepts + rejects for accepts, rejects in ends(int(self.levels), int(self.max_rounds)))

    @property
    def pure_epsilon(self) -> float:
        return float_above(self.halves * Fraction(self.round_epsilon) / 2)

    def _pair(self) -> DominatingPair:
        """The pair through δ at points that divide ε/2, rounded up."""
        points = min(ceil(0.5 * self.round_epsilon / GAP), max(1, 20000 // self.halves))
        grid = np.asarray(np.arange(self.halves * points + 1) * (0.5 * self.round_epsilon / points), dtype=float)
        reach = (self.halves + 2) * points
        curve = self._worst(points, reach)[reach : reach + grid.size] * (1.0 + ROUNDING)
        return pair_through(grid, np.minimum(curve, 1.0))

    def _worst(self, points: int, reach: int) -> Array:
        """H of the whole walk at 2·reach + 1 multiples of ε/2 ÷ points around 0, backwards from all unfinished states.

        It is the largest of the mixtures of two outcomes with opposite losses.
        """
        both = np.arange(-reach, reach + 1) * (0.5 * self.round_epsilon / points)
        with np.errstate(over="ignore"):  # far above 0 the curve is 0, for any size of the exponential
            end = np.maximum(-np.expm1(both), 0.0)

        def mixed(up: Array, loss_up: int, down: Array, loss_down: int) -> Array:
            p, rest = _probabilities(loss_up, loss_down, 0.5 * self.round_epsilon)
            left, right = loss_up * points, loss_down * points
            value: Array = end.copy()  # values at the far ends: 1 − c, and 0
            value[left:-right] = p * up[: -left - right] + rest * down[left + right :]
            return value

        walk: dict[tuple[int, int], Array] = {}
        unfinished = lowest_levels(int(self.levels), int(self.max_rounds))
        for accepts, rejects in sorted(unfinished, key=sum, reverse=True):
            outcomes = [(walk.get((accepts + 1, rejects), end), 2), (walk.get((accepts, rejects + 1), end), 1)]
            walk[accepts, rejects] = np.max([mixed(*up, *down) for up in outcomes for down in outcomes], axis=0)
        return walk[0, 0]


def _probabilities(loss_up: int, loss_down: int, unit: float) -> tuple[float, float]:
    """p and 1 − p with p·e^{−a} + (1 − p)·e^{b} = 1: the masses of loss a and of loss −b."""
    both = -np.expm1(-(loss_up + loss_down) * unit)
    rest = np.exp(-loss_down * unit) * -np.expm1(-loss_up * unit) / both
    return float(-np.expm1(-loss_down * unit) / both), float(rest)


def doubling_search(
    round_epsilon: float,
    levels: int,
    max_rounds: int | None = None,
    *,
    threshold_noise: str = "fresh",
    neighboring: Neighboring = "add_remove",
) -> Guarantee:
    """Guarantee of releasing all decisions of a doubling walk.

    Parameters
    ----------
    round_epsilon : float
        ε of the noise: Lap(2Δ/ε) on the threshold, Lap(4Δ/ε) on each candidate, Δ the sensitivity of each utility.
    levels : int
        Number of levels, ⌈(1 − u₀)/g⌉ for a lowest utility u₀ and a granularity g.
    max_rounds : int, optional
        Largest number of rounds; by default ``default_max_rounds(levels)``.
    threshold_noise : {"fresh", "once"}
        A new draw in every round, as published, or one draw for the whole walk. With one draw an accept costs ε/2, a
        reject nothing, and the draw ε/2 once.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The relation under which the utilities have their sensitivity.

    Returns
    -------
    Guarantee
        Of all decisions of the walk.

    Notes
    -----
    Ding, Wu et al. (2022) state O(log n)·ε for rounds that behave as expected, which is not a guarantee. This is the
    worst case over all walks that the rules allow (docs/theory/doubling.md).

    Examples
    --------
    >>> walk = doubling_search(0.1, levels=100)
    >>> round(walk.epsilon_at(0.0), 3), round(walk.epsilon_at(1e-6), 3)
    (2.95, 2.258)
    >>> round(doubling_search(0.1, levels=100, threshold_noise="once").epsilon_at(0.0), 3)
    1.15
    """
    rounds = default_max_rounds(levels) if max_rounds is None else max_rounds
    walk = DoublingWalk(round_epsilon=round_epsilon, levels=levels, max_rounds=rounds, neighboring=neighboring)
    require(threshold_noise in ("fresh", "once"), "threshold_noise 'fresh' or 'once'", threshold_noise=threshold_noise)
    if threshold_noise == "fresh":
        return walk
    accepts = max(accepts for accepts, _ in ends(int(levels), int(rounds)))
    return PureDP(epsilon=float_above((accepts + 1) * Fraction(round_epsilon) / 2), neighboring=neighboring)
