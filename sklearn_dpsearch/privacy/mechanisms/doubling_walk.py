"""The doubling walk (Ding, Wu et al. 2022, Algorithm 1), drawn exactly: its rules, and its rounds.

The walk holds a level (how much utility has been confirmed) and a step. Each round asks whether any candidate's utility
exceeds level + step. If so, the level rises by the step and the step doubles. If not, the step is halved, rounded down.
The walk ends when the step is 0, when the highest level is reached, or after ``max_rounds``. What it costs is in
``selection.doubling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...errors import PrivacyError
from .._checks import require
from ..numerics.exact_numbers import Number, fraction
from .above_threshold import AboveThreshold
from .exact_sampling import SYSTEM, IntegerSource


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
        if accepted:
            return replace(self, level=self.asked, step=2 * self.step, rounds=self.rounds + 1)
        return replace(self, step=self.step // 2, rounds=self.rounds + 1)


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
        require(
            threshold_noise in ("fresh", "once"), "threshold_noise 'fresh' or 'once'", threshold_noise=threshold_noise
        )
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
