r"""Doubling walk (Ding, Wu et al. 2022, Algorithm 1), drawn exactly, and its largest cost.

The walk holds a level (how much utility has been confirmed) and a step. Each round asks whether any
candidate's utility exceeds level + step. If so, an *accept*, the level rises by the step and the
step doubles. If not, a *reject*, the step is halved, rounded down. The walk ends when the step is
0, when the highest level is reached, or after ``max_rounds``.

**Cost of a round**, of the sparse vector technique. With noise Lap(2Δ/ε) on the threshold and
Lap(4Δ/ε) on each candidate, two neighbours give "none" with probabilities within a factor e^{ε/2}
of each other, and "candidate k" within e^ε. *Proof.* Couple the threshold noise z on one data set
with z + Δ on the other: density ratio at most e^{ε/2}. A candidate that stays below stays below, as
its utility grows by at most Δ. For an accept couple the noise of k with itself plus 2Δ: again
e^{ε/2}, and k still reaches the threshold. The noise of the candidates after k plays no part.
Nothing is assumed about the signs of the changes. ∎

**Cost of the walk.** The number of rounds of each kind depends on the data, so the cost is the
worst case over all walks that the rules allow. The step is always 2^{accepts − rejects}, so a
walk's state is its number of accepts and rejects and its level; and of all walks with the same
numbers the one on the lowest level can go on longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np

from ...errors import PrivacyError
from .._checks import Array, Neighboring, cached_property, require, require_in, require_whole
from .._guarantees.base import Guarantee
from .._guarantees.pure import PureDP
from .._mechanisms.exact_sampling import SYSTEM_RANDOMNESS, IntegerSource, discrete_laplace
from .._numerics.arithmetic import Number, float_above, fraction, positive_fraction
from .._numerics.loss_distribution import ROUNDING, DominatingPair, pair_through

#: Largest distance of two points at which the profile is computed exactly; between them it is below
#: the chord.
GAP = 0.01


def default_max_rounds(levels: int) -> int:
    """Default number of rounds of a doubling walk, 5·⌈log₂ n⌉ + 2.

    These are more than Ding, Wu et al. (2022, figure 4) saw in any of their walks.

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
    """Lowest level of an unfinished walk, by accepts and rejects."""
    lowest = {(0, 0): 0}
    for rounds in range(1, max_rounds):
        for rejects in range(rounds // 2 + 1):
            accepts = rounds - rejects
            step = 2 ** max(accepts - 1 - rejects, 0)
            accepted = lowest.get((accepts - 1, rejects), levels) + step
            level = min(accepted, lowest.get((accepts, rejects - 1), levels))
            if level < levels:
                lowest[accepts, rejects] = level
    return lowest


def walk_ends(levels: int, max_rounds: int) -> list[tuple[int, int]]:
    """Accepts and rejects of every ended walk, and some unfinished."""
    unfinished = lowest_levels(levels, max_rounds)
    accepted = [(accepts + 1, rejects) for accepts, rejects in unfinished]
    return accepted + [(accepts, rejects + 1) for accepts, rejects in unfinished]


@dataclass(frozen=True, kw_only=True)
class DoublingWalk(Guarantee):
    r"""Guarantee of a doubling walk with fresh noise in every round.

    Pure: the largest accepts·ε + rejects·ε/2 of any walk. At δ > 0: the exact worst case over every
    sequence of rounds whose losses stay within ±ε at an accept and ±ε/2 at a reject, each round
    chosen in view of the earlier ones. With H_s(c) the largest hockey-stick curve of the rest of
    the walk from state s,

        H_s(c) = max over outcomes o, o' of  p·H_{s,o}(c·e^{−ε_o}) + (1 − p)·H_{s,o'}(c·e^{ε_{o'}}),

    with p the probability that makes both sides' total 1, and H(c) = (1 − c)₊ at the end of the
    walk.

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
        require_in("(0, inf)", round_epsilon=self.round_epsilon)
        require_whole(1, levels=self.levels, max_rounds=self.max_rounds)

    @cached_property
    def halves(self) -> int:
        """Largest cost of a walk in units of ε/2: 2 for an accept, 1 for a reject."""
        ends = walk_ends(int(self.levels), int(self.max_rounds))
        return max(2 * accepts + rejects for accepts, rejects in ends)

    @property
    def pure_epsilon(self) -> float:
        return float_above(self.halves * Fraction(self.round_epsilon) / 2)

    def _pair(self) -> DominatingPair:
        """Dominating pair of the walk, through points that divide ε/2."""
        points = min(ceil(0.5 * self.round_epsilon / GAP), max(1, 20000 // self.halves))
        step = 0.5 * self.round_epsilon / points
        grid = np.asarray(np.arange(self.halves * points + 1) * step, dtype=float)
        reach = (self.halves + 2) * points
        curve = self._worst_curve(points, reach)[reach : reach + grid.size] * (1.0 + ROUNDING)
        return pair_through(grid, np.minimum(curve, 1.0))

    def _worst_curve(self, points: int, reach: int) -> Array:
        """Largest hockey-stick curve of any walk, by backward induction.

        It is the largest of the mixtures of two outcomes with opposite losses, computed at 2·reach
        + 1 multiples of ε/2 ÷ points around 0.
        """
        epsilons = np.arange(-reach, reach + 1) * (0.5 * self.round_epsilon / points)
        # far above 0 the curve is 0, for any size of the exponential
        with np.errstate(over="ignore"):
            end = np.maximum(-np.expm1(epsilons), 0.0)

        def mixed(up: Array, loss_up: int, down: Array, loss_down: int) -> Array:
            p, q = _opposite_loss_masses(loss_up, loss_down, 0.5 * self.round_epsilon)
            shift_up, shift_down = loss_up * points, loss_down * points
            value: Array = end.copy()  # values at the far ends: 1 − c, and 0
            width = shift_up + shift_down
            value[shift_up:-shift_down] = p * up[:-width] + q * down[width:]
            return value

        walk: dict[tuple[int, int], Array] = {}
        unfinished = lowest_levels(int(self.levels), int(self.max_rounds))
        for accepts, rejects in sorted(unfinished, key=sum, reverse=True):
            states = (((accepts + 1, rejects), 2), ((accepts, rejects + 1), 1))
            outcomes = [(walk.get(state, end), loss) for state, loss in states]
            curves = [mixed(*up, *down) for up in outcomes for down in outcomes]
            walk[accepts, rejects] = np.max(curves, axis=0)
        return walk[0, 0]


def _opposite_loss_masses(loss_up: int, loss_down: int, unit: float) -> tuple[float, float]:
    """Masses of a loss a and a loss −b of one round.

    They are p and 1 − p with p·e^{−a} + (1 − p)·e^{b} = 1.
    """
    width = -np.expm1(-(loss_up + loss_down) * unit)
    down_mass = np.exp(-loss_down * unit) * -np.expm1(-loss_up * unit) / width
    return float(-np.expm1(-loss_down * unit) / width), float(down_mass)


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
        ε of the noise: Lap(2Δ/ε) on the threshold, Lap(4Δ/ε) on each candidate, Δ the sensitivity
        of each utility.
    levels : int
        Number of levels, ⌈(1 − u₀)/g⌉ for a lowest utility u₀ and a granularity g.
    max_rounds : int, optional
        Largest number of rounds; by default ``default_max_rounds(levels)``.
    threshold_noise : {"fresh", "once"}
        A new draw in every round, as published, or one draw for the whole walk. With one draw an
        accept costs ε/2, a reject nothing, and the draw ε/2 once.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The relation under which the utilities have their sensitivity.

    Returns
    -------
    Guarantee
        Of all decisions of the walk.

    Notes
    -----
    Ding, Wu et al. (2022) state O(log n)·ε for rounds that behave as expected, which is not a
    guarantee. This is the worst case over all walks that the rules allow (docs/theory/doubling.md).

    Examples
    --------
    >>> walk = doubling_search(0.1, levels=100)
    >>> round(walk.epsilon_at(0.0), 3), round(walk.epsilon_at(1e-6), 3)
    (2.95, 2.258)
    >>> round(doubling_search(0.1, levels=100, threshold_noise="once").epsilon_at(0.0), 3)
    1.15
    """
    rounds = default_max_rounds(levels) if max_rounds is None else max_rounds
    walk = DoublingWalk(
        round_epsilon=round_epsilon, levels=levels, max_rounds=rounds, neighboring=neighboring
    )
    valid = threshold_noise in ("fresh", "once")
    require(valid, "threshold_noise 'fresh' or 'once'", threshold_noise=threshold_noise)
    if threshold_noise == "fresh":
        return walk
    accepts = max(accepts for accepts, _ in walk_ends(int(levels), int(rounds)))
    epsilon = float_above((accepts + 1) * Fraction(round_epsilon) / 2)
    return PureDP(epsilon=epsilon, neighboring=neighboring)


@dataclass(frozen=True, kw_only=True)
class AboveThreshold:
    """Round of a walk, drawn exactly: the first candidate above a noisy threshold.

    Everything is an integer: utilities are rounded down and thresholds up to multiples of ``grid``,
    and discrete Laplace noise is added. Rounding moves the utilities of two neighbours apart by at
    most ⌈Δ/grid⌉ multiples, which is what the noise is made for: a grid that divides Δ costs
    nothing.

    Parameters
    ----------
    round_epsilon : Fraction or int
        ε of a round in which a candidate is accepted.
    sensitivity : Fraction or int
        Δ: how much one record changes the utility of any candidate.
    grid : Fraction or int, optional
        By default Δ/1024.
    """

    round_epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("round_epsilon", "sensitivity", "grid"):
            value = getattr(self, name)
            if name == "grid" and value is None:
                value = Fraction(self.sensitivity) / 1024
            object.__setattr__(self, name, positive_fraction(value, name))

    @property
    def steps(self) -> int:
        """Sensitivity in multiples of the grid."""
        assert self.grid is not None
        return ceil(self.sensitivity / self.grid)

    def draw_threshold_noise(self, bits: IntegerSource = SYSTEM_RANDOMNESS) -> int:
        """Draw discrete Laplace noise of scale 2Δ/ε for a threshold, in multiples of the grid."""
        return discrete_laplace(2 * self.steps / self.round_epsilon, bits)

    def first_above(
        self,
        utilities: Sequence[Number],
        threshold: Number,
        bits: IntegerSource = SYSTEM_RANDOMNESS,
        threshold_noise: int | None = None,
    ) -> int | None:
        """Index of the first candidate whose noisy utility reaches the noisy threshold, or None.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite. A float counts for exactly what it is: where it was rounded, that has to be part
            of ``sensitivity``.
        threshold : Fraction, int or float
            Public: it may depend on the results of earlier rounds only.
        bits : IntegerSource
            Source of fair integers; by default the operating system.
        threshold_noise : int, optional
            One earlier ``draw_threshold_noise`` for a whole walk; by default a new draw.

        Examples
        --------
        >>> import random
        >>> one_round = AboveThreshold(round_epsilon=Fraction(2), sensitivity=Fraction(1, 50))
        >>> one_round.first_above([0.1, 0.2, 0.9, 0.95], 0.6, random.Random(0))
        2
        """
        assert self.grid is not None
        noise = self.draw_threshold_noise(bits) if threshold_noise is None else threshold_noise
        reached = ceil(fraction(threshold) / self.grid) + noise
        for index, utility in enumerate(utilities):
            drawn = discrete_laplace(4 * self.steps / self.round_epsilon, bits)
            if floor(fraction(utility) / self.grid) + drawn >= reached:
                return index
        return None


@dataclass(frozen=True, kw_only=True)
class DoublingSteps:
    """State of a doubling walk, which released answers alone determine.

    Parameters
    ----------
    levels : int
        The walk ends on reaching this level.
    max_rounds : int
        Largest number of rounds.
    level, step, rounds : int
        The level reached, the next step, and the rounds that are over.

    Examples
    --------
    >>> walk = DoublingSteps(levels=8, max_rounds=20)
    >>> while not walk.over:
    ...     walk = walk.after(accepted=walk.asked <= 5)
    >>> walk.level, walk.rounds
    (5, 7)
    """

    levels: int
    max_rounds: int
    level: int = 0
    step: int = 1
    rounds: int = 0

    @property
    def over(self) -> bool:
        """True once the walk has ended."""
        return self.step == 0 or self.level >= self.levels or self.rounds >= self.max_rounds

    @property
    def asked(self) -> int:
        """Level that the next round of the walk asks about."""
        return self.level + self.step

    def after(self, accepted: bool) -> DoublingSteps:
        """State of the walk after a round that accepts or rejects."""
        level, step = (self.asked, 2 * self.step) if accepted else (self.level, self.step // 2)
        return replace(self, level=level, step=step, rounds=self.rounds + 1)


class DoublingRounds:
    """Rounds of one doubling walk on utilities, with secret noise.

    Each is a round of ``AboveThreshold`` at the threshold lower + level · granularity.

    Parameters
    ----------
    question : AboveThreshold
        One round.
    steps : DoublingSteps
        The start of the walk.
    granularity, lower : Fraction, int or float
        Distance of two levels, and the threshold of level 0.
    threshold_noise : {"fresh", "once"}
        The threshold's noise is drawn in every round, or once for the whole walk.
    bits : IntegerSource
        Source of fair integers; by default the operating system.

    Examples
    --------
    >>> import random
    >>> question = AboveThreshold(round_epsilon=Fraction(1000), sensitivity=Fraction(1, 50))
    >>> steps = DoublingSteps(levels=10, max_rounds=20)
    >>> rounds = DoublingRounds(question, steps, granularity=Fraction(1, 10), bits=random.Random(0))
    >>> while not rounds.over:
    ...     found = rounds.ask([Fraction(1, 5), Fraction(3, 4)])
    >>> rounds.threshold
    Fraction(7, 10)
    """

    def __init__(
        self,
        question: AboveThreshold,
        steps: DoublingSteps,
        *,
        granularity: Number,
        lower: Number = 0,
        threshold_noise: str = "fresh",
        bits: IntegerSource = SYSTEM_RANDOMNESS,
    ) -> None:
        self.steps = steps
        self._question, self._bits = question, bits
        self._lower, self._granularity = fraction(lower), fraction(granularity)
        self._noise = question.draw_threshold_noise(bits) if threshold_noise == "once" else None

    @property
    def over(self) -> bool:
        """True once the walk has ended."""
        return self.steps.over

    @property
    def threshold(self) -> Fraction:
        """Threshold that the walk passed last.

        The last step may go beyond the highest level.
        """
        return self._threshold_at(self.steps.level)

    def ask(self, utilities: Sequence[Number]) -> int | None:
        """Ask one round for the first candidate above the next threshold.

        Raises
        ------
        PrivacyError
            If the walk has ended.
        """
        if self.over:
            raise PrivacyError(
                f"Found a round asked of a walk that ended after {self.steps.rounds} of them; more "
                "are not paid for. Begin another walk, which costs as much again."
            )
        threshold = self._threshold_at(self.steps.asked)
        accepted = self._question.first_above(utilities, threshold, self._bits, self._noise)
        self.steps = self.steps.after(accepted is not None)
        return accepted

    def _threshold_at(self, level: int) -> Fraction:
        """Threshold of a level of the walk."""
        return self._lower + level * self._granularity
