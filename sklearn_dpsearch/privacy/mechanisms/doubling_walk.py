r"""The doubling walk (Ding, Wu et al. 2022, Algorithm 1), drawn exactly: its rules, and its rounds.

The walk holds a level (how much utility has been confirmed) and a step. Each round asks whether any candidate's utility
exceeds level + step. If so, the level rises by the step and the step doubles. If not, the step is halved, rounded down.
The walk ends when the step is 0, when the highest level is reached, or after ``max_rounds``. What it costs is in
``selection.doubling``.

**Cost of a round**, of the sparse vector technique. With noise Lap(2Δ/ε) on the threshold and Lap(4Δ/ε) on each
candidate, two neighbours give "none" with probabilities within a factor e^{ε/2} of each other, and "candidate k" within
e^ε. *Proof.* Couple the threshold noise z on one data set with z + Δ on the other: density ratio at most e^{ε/2}. A
candidate that stays below stays below, as its utility grows by at most Δ. For an accept couple the noise of k with
itself plus 2Δ: again e^{ε/2}, and k still reaches the threshold. The noise of the candidates after k plays no part.
Nothing is assumed about the signs of the changes. ∎
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from ...errors import PrivacyError
from ..numerics.arithmetic import Number, fraction, positive_fraction
from .exact_sampling import SYSTEM, IntegerSource, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class AboveThreshold:
    """One round: the first candidate whose noisy utility reaches a noisy threshold, drawn exactly.

    Everything is an integer: utilities are rounded down and thresholds up to multiples of ``grid``, and discrete
    Laplace noise is added. Rounding moves the utilities of two neighbours apart by at most ⌈Δ/grid⌉ multiples, which is
    what the noise is made for: a grid that divides Δ costs nothing.

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
        """The sensitivity in multiples of the grid."""
        assert self.grid is not None
        return ceil(self.sensitivity / self.grid)

    def draw_threshold_noise(self, bits: IntegerSource = SYSTEM) -> int:
        """Discrete Laplace noise of scale 2Δ/ε, in multiples of the grid."""
        return discrete_laplace(2 * self.steps / self.round_epsilon, bits)

    def first_above(
        self,
        utilities: Sequence[Number],
        threshold: Number,
        bits: IntegerSource = SYSTEM,
        threshold_noise: int | None = None,
    ) -> int | None:
        """Index of the first candidate whose noisy utility reaches the noisy threshold, or None.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite. A float counts for exactly what it is: where it was rounded, that has to be part of ``sensitivity``.
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
    """State of a walk. Its next step depends on the released answers alone.

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
        """The level that the next round asks about."""
        return self.level + self.step

    def after(self, accepted: bool) -> DoublingSteps:
        """State after a round that found a candidate, or found none."""
        level, step = (self.asked, 2 * self.step) if accepted else (self.level, self.step // 2)
        return replace(self, level=level, step=step, rounds=self.rounds + 1)


class DoublingRounds:
    """The rounds of one walk: ``AboveThreshold`` at the threshold lower + level · granularity. Holds secret noise.

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
        bits: IntegerSource = SYSTEM,
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
        """The threshold passed last. The last step may go beyond the highest level."""
        return self._at(self.steps.level)

    def ask(self, utilities: Sequence[Number]) -> int | None:
        """One round: index of the first candidate found above the next threshold, or None.

        Raises
        ------
        PrivacyError
            If the walk has ended.
        """
        if self.over:
            raise PrivacyError(
                f"Found a round asked of a walk that ended after {self.steps.rounds} of them; more are not paid for. "
                "Begin another walk, which costs as much again."
            )
        found = self._question.first_above(utilities, self._at(self.steps.asked), self._bits, self._noise)
        self.steps = self.steps.after(found is not None)
        return found

    def _at(self, level: int) -> Fraction:
        return self._lower + level * self._granularity
