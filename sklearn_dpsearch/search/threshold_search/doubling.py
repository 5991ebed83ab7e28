"""Threshold search over a whole grid, by steps that double and halve, until no utility is above the threshold."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from ...privacy import Guarantee, PrivacyError, calibrate, doubling_search
from ...privacy._types import Neighboring
from ...privacy.mechanisms.doubling_walk import AboveThreshold, DoublingRounds, DoublingSteps
from ...privacy.mechanisms.exact_sampling import IntegerSource
from ...privacy.selection.doubling import default_max_rounds
from ...privacy.spent import Component
from .._types import Candidate, Distributions, Parameters
from ..execution.candidate_utilities import sensitivity
from ..execution.job import Job, Outcome
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..planning.arguments import BUDGET, PARTS
from ..planning.plan import Plan
from ..planning.space_guarantee import SpaceGuarantee
from ..strategies.sample_and_aggregate import SampleAndAggregate, count_trainings
from .rounds import Rounds

#: Share of the search's epsilon that all rounds get together, where ``round_epsilon`` is not given.
SHARE = 0.5
#: Rounds whose worst case is computed in seconds; the time grows with the square.
MOST_ROUNDS = 5000

CONSTRAINTS = {
    "round_epsilon": BUDGET,
    "granularity": [Interval(numbers.Real, 0, 1, closed="neither")],
    "lower": [Interval(numbers.Real, 0, 1, closed="left")],
    "n_parts": PARTS,
    "part_noise": [StrOptions({"scaled", "same"})],
    "max_rounds": [None, Interval(numbers.Integral, 1, None, closed="left")],
    "threshold_noise": [StrOptions({"fresh", "once"})],
}


@dataclass(frozen=True, kw_only=True)
class Doubling:
    """A threshold that is raised over a whole grid, by steps that double and halve: for ``DPThresholdSearchCV``.

    Every candidate has a utility in [0, 1], its mean score over random parts of the records (sample-and-aggregate).
    Each round asks whether any utility is above the threshold plus a step. If so, the threshold rises by the step and
    the step doubles. Otherwise the step is halved. The candidate found last is kept, and trained once.

    Parameters
    ----------
    round_epsilon : float, optional
        ε of a round in which a candidate is found. Default: the largest with which the worst case stays within
        half of the search's ``epsilon``.
    granularity : float, default=0.02
        The smallest step g of the threshold, 0 < g < 1.
    lower : float, default=0.0
        Start of the threshold, u₀, 0 <= u₀ < 1.
    n_parts : int, optional
        Number of parts of the records, as for ``DPGridSearchCV``.
    part_noise : {"scaled", "same"}, default="scaled"
        Noise of the models on parts, as for ``DPGridSearchCV``.
    max_rounds : int, optional
        Largest number of rounds of a walk; by default 5·⌈log₂((1 − u₀)/g)⌉ + 2.
    threshold_noise : {"fresh", "once"}, default="fresh"
        Noise of the threshold drawn in every round, as published, or once for the whole walk, which costs less.

    Raises
    ------
    ValueError, TypeError
        For values that no walk can use.

    Examples
    --------
    >>> doubling = Doubling(granularity=0.05, threshold_noise="once")
    >>> doubling.levels, doubling.most_rounds
    (20, 27)
    """

    round_epsilon: float | None = None
    granularity: float = 0.02
    lower: float = 0.0
    n_parts: int | None = None
    part_noise: Literal["scaled", "same"] = "scaled"
    max_rounds: int | None = None
    threshold_noise: Literal["fresh", "once"] = "fresh"

    def __post_init__(self) -> None:
        validate_parameter_constraints(CONSTRAINTS, vars(self), caller_name="Doubling")
        if self.most_rounds > MOST_ROUNDS:
            raise ValueError(
                f"Found max_rounds={self.max_rounds!r} with granularity={self.granularity!r}, so up to "
                f"{self.most_rounds} rounds; at most {MOST_ROUNDS} are accounted for. Give fewer, or leave "
                "max_rounds=None."
            )

    def __repr__(self) -> str:
        """Show parameters that differ from the defaults, as scikit-learn does for estimators."""
        changed = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Doubling({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    @property
    def levels(self) -> int:
        """Number of levels of the threshold, ⌈(1 − u₀)/g⌉."""
        return math.ceil((1 - Fraction(float(self.lower))) / Fraction(float(self.granularity)))

    @property
    def most_rounds(self) -> int:
        """Largest number of rounds, all of them accounted for; no walk has more than 2·levels + 1."""
        if self.max_rounds is None:
            return default_max_rounds(self.levels)
        return min(int(self.max_rounds), 2 * self.levels + 1)

    def guarantee(self, round_epsilon: float, neighboring: Neighboring = "zero_out") -> Guarantee:
        """Guarantee of every walk that the rules allow, at this ε of a round: the worst case."""
        return worst_walk(round_epsilon, self.levels, self.most_rounds, self.threshold_noise, neighboring)

    def walk(self, round_epsilon: float, n_parts: int, bits: IntegerSource) -> DoublingRounds:
        """Mechanism for utilities that are means over ``n_parts`` parts. It is exact: fractions throughout."""
        question = AboveThreshold(round_epsilon=Fraction(round_epsilon), sensitivity=sensitivity(n_parts))
        steps = DoublingSteps(levels=self.levels, max_rounds=self.most_rounds)
        return DoublingRounds(
            question,
            steps,
            lower=float(self.lower),
            granularity=float(self.granularity),
            threshold_noise=self.threshold_noise,
            bits=bits,
        )


# --- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CostOfWalk:
    """Cost of the decisions of all rounds, and of one training."""

    doubling: Doubling
    round_epsilon: float

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        training, doubling = promises.worst, self.doubling
        walk = doubling.guarantee(self.round_epsilon, training.neighboring)
        name = f"doubling walk of at most {doubling.most_rounds} rounds over {doubling.levels} levels, the worst case"
        return (
            Component(name=name, guarantee=walk),
            Component(name="training of the winner on all records", guarantee=training),
        )


# Calibration, privacy_cost and fit call both functions with the same numbers.


@lru_cache(maxsize=256)
def worst_walk(
    round_epsilon: float, levels: int, max_rounds: int, threshold_noise: str, neighboring: Neighboring = "zero_out"
) -> Guarantee:
    """Guarantee of every walk that the rules allow: the worst case."""
    return doubling_search(round_epsilon, levels, max_rounds, threshold_noise=threshold_noise, neighboring=neighboring)


@lru_cache(maxsize=64)
def largest_round(share: float, delta: float, doubling: Doubling) -> float:
    """Largest ε of a round with which every walk stays within its share."""
    return calibrate(doubling.guarantee, share, delta, (share / (2 * doubling.most_rounds), 2 * share))


# --- how it runs ------------------------------------------------------------------------------------------------------


class DoublingStrategy(SampleAndAggregate):
    """Utilities of all candidates on random parts, rounds that raise the threshold, one training.

    Parameters
    ----------
    search, distributions
        As for ``Strategy``.
    doubling : Doubling
    """

    shows = ("found_", "n_rounds_")
    why_nothing = (
        "no candidate was found above lower + granularity (found_ is False). Give Doubling(...) a smaller lower or a "
        "larger round_epsilon; fitting again spends privacy_spent_ again."
    )

    def __init__(self, search: Parameters, distributions: Distributions, doubling: Doubling) -> None:
        super().__init__(search, distributions, n_parts=doubling.n_parts, part_noise=doubling.part_noise)
        self.doubling = doubling

    def choice(self, n_candidates: int) -> tuple[CostOfWalk, float]:
        """Cost with ε of a round as given, or the largest whose worst case stays within the share of the total."""
        search, doubling = self.search, self.doubling
        if doubling.round_epsilon is not None:
            round_epsilon = float(doubling.round_epsilon)
        elif search.epsilon is not None:
            round_epsilon = largest_round(SHARE * float(search.epsilon), float(search.delta or 0.0), doubling)
        else:
            raise PrivacyError(
                "Found neither epsilon nor round_epsilon: what may the rounds cost? Give epsilon, the total for the "
                "walk and the training, or threshold=Doubling(round_epsilon=...), and the estimator's own noise as "
                "configured."
            )
        return CostOfWalk(doubling=doubling, round_epsilon=round_epsilon), round_epsilon / 2

    def run(
        self, plan: Plan, job: Job, candidates: Sequence[Candidate], source: Randomness, progress: Progress
    ) -> Outcome:
        rounds = self.rounds(plan, job, source, progress)
        count_trainings(progress, job, candidates)
        utilities = rounds.utilities(candidates)
        while not rounds.over:
            rounds.ask(candidates, utilities)
        progress.last_training()  # also if no candidate was found
        return rounds.train()

    def rounds(self, plan: Plan, job: Job, source: Randomness, progress: Progress) -> Rounds:
        """Start a walk."""
        walk = self.doubling.walk(plan.cost.round_epsilon, len(job.split.folds), source.bits)
        return Rounds(self, walk, job, source, progress)
