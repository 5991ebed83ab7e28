"""Threshold search over a whole grid, by steps that double and halve.

It ends when no utility is above the threshold. Candidates are those of a grid, or come batch by
batch: one round of the walk for each.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias

from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from .._process.progress import Progress
from ..privacy import Guarantee, PrivacyError, calibrate, doubling_search
from ..privacy._checks import Neighboring, cached_property
from ..privacy._mechanisms.exact_sampling import IntegerSource
from ..privacy._selection import doubling as walks
from ..privacy._spent import Component
from . import _private_process as private_process
from . import _sample_and_aggregate as sample_and_aggregate
from ._execution.job import Job, Outcome
from ._execution.randomness import Randomness
from ._planning.checks import BUDGET, PARTS
from ._planning.plan import Cost, Plan
from ._planning.space_guarantee import SpaceGuarantee
from ._private_fit import PrivateFit, released_fields
from ._records import Candidate, Candidates, Distributions, Parameters

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
    """A threshold that is raised over a whole grid, by steps that double and halve.

    It is for ``DPThresholdSearchCV``. Every candidate has a utility in [0, 1], its mean score over
    random parts of the records (sample-and-aggregate). Each round asks whether any utility is above
    the threshold plus a step. If so, the threshold rises by the step and the step doubles.
    Otherwise the step is halved. The candidate found last is kept, and trained once.

    Parameters
    ----------
    round_epsilon : float, optional
        ε of a round in which a candidate is found. Default: the largest with which the worst case
        stays within half of the search's ``epsilon``.
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
        Noise of the threshold drawn in every round, as published, or once for the whole walk, which
        costs less.

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
                f"Found max_rounds={self.max_rounds!r} with granularity={self.granularity!r}, so "
                f"up to {self.most_rounds} rounds; at most {MOST_ROUNDS} are accounted for. Give "
                "fewer, or leave max_rounds=None."
            )

    def __repr__(self) -> str:
        """Show parameters that differ from the defaults, as scikit-learn does for estimators."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = [f for f in fields(self) if values[f.name] != f.default]
        return f"Doubling({', '.join(f'{f.name}={values[f.name]!r}' for f in changed)})"

    @property
    def levels(self) -> int:
        """Number of levels of the threshold, ⌈(1 − u₀)/g⌉."""
        return math.ceil((1 - Fraction(float(self.lower))) / Fraction(float(self.granularity)))

    @property
    def most_rounds(self) -> int:
        """Largest number of rounds, all accounted for; no walk has more than 2·levels + 1."""
        if self.max_rounds is None:
            return walks.default_max_rounds(self.levels)
        return min(int(self.max_rounds), 2 * self.levels + 1)

    def guarantee(self, round_epsilon: float, neighboring: Neighboring = "zero_out") -> Guarantee:
        """Guarantee of every walk that the rules allow, at this ε of a round: the worst case."""
        rules: Any = {"threshold_noise": self.threshold_noise, "neighboring": neighboring}
        return worst_walk(round_epsilon, self.levels, self.most_rounds, **rules)

    def walk(self, round_epsilon: float, n_parts: int, bits: IntegerSource) -> walks.DoublingRounds:
        """Mechanism for utilities that are means over ``n_parts`` parts, exact in fractions."""
        epsilon, sensitivity = Fraction(round_epsilon), sample_and_aggregate.sensitivity(n_parts)
        question = walks.AboveThreshold(round_epsilon=epsilon, sensitivity=sensitivity)
        steps = walks.DoublingSteps(levels=self.levels, max_rounds=self.most_rounds)
        lower, granularity = float(self.lower), float(self.granularity)
        noise = self.threshold_noise
        return walks.DoublingRounds(
            question, steps, lower=lower, granularity=granularity, threshold_noise=noise, bits=bits
        )


# --- what it costs --------------------------------------------------------------------------------


def cost_of_walk(
    promises: SpaceGuarantee,
    scoring: Guarantee | None,
    final: SpaceGuarantee,
    *,
    doubling: Doubling,
    round_epsilon: float,
) -> tuple[Component, ...]:
    """Cost of the decisions of all rounds, and of one training."""
    training = promises.worst
    walk = doubling.guarantee(round_epsilon, training.neighboring)
    levels = f"{doubling.levels} levels, the worst case"
    name = f"doubling walk of at most {doubling.most_rounds} rounds over {levels}"
    return sample_and_aggregate.choice_and_training(name, walk, training)


#: Guarantee of every walk that the rules allow: the worst case. Calibration, privacy_cost and fit
#: ask for it with the same numbers, as for the largest round.
worst_walk = lru_cache(maxsize=256)(doubling_search)


@lru_cache(maxsize=64)
def largest_round(share: float, delta: float, doubling: Doubling) -> float:
    """Largest ε of a round with which every walk stays within its share."""
    between = (share / (2 * doubling.most_rounds), 2 * share)
    return calibrate(doubling.guarantee, share, delta, between)


# --- how it runs ----------------------------------------------------------------------------------


class DoublingStrategy(sample_and_aggregate.SampleAndAggregate):
    """Utilities of all candidates on random parts, rounds that raise the threshold, one training.

    Parameters
    ----------
    search, distributions
        As for ``Strategy``.
    doubling : Doubling
    """

    shows = ("found_", "n_rounds_")
    why_nothing = (
        "no candidate was found above lower + granularity (found_ is False). Give Doubling(...) a "
        "smaller lower or a larger round_epsilon; fitting again spends privacy_spent_ again."
    )

    def __init__(
        self, search: Parameters, distributions: Distributions, doubling: Doubling
    ) -> None:
        super().__init__(search, distributions, "param_distributions", doubling)
        self.doubling = doubling

    @cached_property
    def round_epsilon(self) -> float:
        """ε of a round: as given, or the largest whose worst case stays within its share."""
        search, doubling = self.search, self.doubling
        if doubling.round_epsilon is not None:
            return float(doubling.round_epsilon)
        if search.epsilon is not None:
            share = SHARE * float(search.epsilon)
            return largest_round(share, float(search.delta or 0.0), doubling)
        raise PrivacyError(
            "Found neither epsilon nor round_epsilon: what may the rounds cost? Give epsilon, the "
            "total for the walk and the training, or threshold=Doubling(round_epsilon=...), and "
            "the estimator's own noise as configured."
        )

    @property
    def choice_epsilon(self) -> float:
        return self.round_epsilon / 2

    def cost(self, n_candidates: int) -> Cost:
        return partial(cost_of_walk, doubling=self.doubling, round_epsilon=self.round_epsilon)

    def run(
        self, job: Job, candidates: Candidates, source: Randomness, progress: Progress
    ) -> Outcome:
        rounds = Rounds(self, job, source, progress)
        sample_and_aggregate.count_trainings(progress, job, candidates)
        utilities = rounds.utilities(candidates)
        while not rounds.over:
            rounds.ask(candidates, utilities)
        progress.last_training()  # also if no candidate was found
        return rounds.train()


# --- candidates that come batch by batch ----------------------------------------------------------

Batch: TypeAlias = Candidates
Batches: TypeAlias = Iterable[Batch]


@dataclass(frozen=True)
class RoundRelease:
    """Release of one round.

    Parameters
    ----------
    params : dict or None
        The candidate kept, None before the first.
    utility : float
        The threshold that it was found above, at most 1.
    accepted : bool
        Whether this round found a candidate.
    """

    params: dict[str, Any] | None
    utility: float
    accepted: bool


class Rounds:
    """One walk over the utilities of candidates.

    The walk's guarantee covers every released decision.

    Parameters
    ----------
    strategy : DoublingStrategy
        Whose utilities count, and by whose rules the threshold is raised.
    job, source, progress
        As for ``Strategy.run``.
    """

    def __init__(
        self, strategy: DoublingStrategy, job: Job, source: Randomness, progress: Progress
    ) -> None:
        self.job = job
        self._strategy, self._source, self._progress = strategy, source, progress
        n_parts, epsilon = len(job.split.folds), strategy.round_epsilon
        #: The mechanism, which holds the secret noise.
        self._walk = strategy.doubling.walk(epsilon, n_parts, source.bits)
        self._kept: dict[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Return whether the walk has ended."""
        return self._walk.over

    def utilities(self, batch: Batch) -> list[Fraction]:
        """Compute exact utilities of a batch: a secret, discarded after its rounds."""
        seeds = self._source.run_seeds(len(self.job.split.folds))
        utilities_of, part_noise = sample_and_aggregate.utilities_of, self._strategy.part_noise
        return utilities_of(self.job, batch, part_noise, seeds, self._progress)

    def ask(self, batch: Batch, utilities: Sequence[Fraction]) -> RoundRelease:
        """Run one round: keep the first candidate of the batch found above the next threshold."""
        place = self._walk.ask(utilities)
        if place is not None:
            self._kept = dict(batch[place])
        # the caller may change the copy, not the original
        shown = None if self._kept is None else own_copy(self._kept)
        return RoundRelease(shown, self._utility, place is not None)

    def train(self) -> Outcome:
        """Train once, privately, with the kept candidate, if any."""
        if self._kept is None:
            return Outcome(has_model=False, rows=[], may_stop=True)
        (seed,) = self._source.run_seeds(1)
        attributes = {"found_": True, "n_rounds_": self._walk.steps.rounds}
        train_winner = sample_and_aggregate.train_winner
        return train_winner(self.job, self._kept, self._utility, seed, **attributes)

    @property
    def _utility(self) -> float:
        """Threshold passed last, at most 1: the last step may go beyond all utilities."""
        return float(min(self._walk.threshold, Fraction(1)))


@dataclass
class PrivateWalk:
    """Rounds in a process of their own.

    A call with a batch is a round, a call without one ends the walk.

    Parameters
    ----------
    fit : PrivateFit
        Planned and paid for.
    """

    fit: PrivateFit
    _rounds: Rounds | None = None
    _ended: bool = False

    def __call__(self, batch: Batch | None) -> Any:
        """Return a round's release and whether the walk is over.

        At the end of the walk the fields of the release are returned.
        """
        with self.fit.workplace.entered() as workers:
            if self._rounds is None:
                source, strategy = self.fit.source(), self.fit.strategy
                assert isinstance(strategy, DoublingStrategy)
                job = self.fit.job((), source, workers)
                self._rounds = Rounds(strategy, job, source, self.fit.progress())
            rounds = self._rounds
            rounds.job = replace(rounds.job, workers=workers)
            if self._ended:
                raise PrivacyError(
                    "Found a walk that has ended; each is trained once. Ask for other rounds."
                )
            if batch is None:
                self._ended = True
                return released_fields(len(rounds.job.split.folds), rounds.train())
            return rounds.ask(batch, rounds.utilities(batch)), rounds.over


def steps_of_walk(
    fit: PrivateFit,
    spend: Callable[[Plan], None],
    batches: Batches,
    release: Callable[[Plan, dict[str, Any]], None],
) -> Iterator[RoundRelease]:
    """Yield the rounds to the caller of ``rounds``; at the end the search is fitted.

    Secrets of the walk stay in one process, which gives each round once, to the first thread that
    asks.

    Parameters
    ----------
    fit : PrivateFit
    spend : callable
        Spends the budget of a plan; called before the first round.
    batches : iterable of lists of dicts
    release : callable
        Sets the fields of the release on the search.
    """
    plan, over = None, False
    with private_process.PrivateProcess(PrivateWalk(fit), fit.shared, fit.writes) as process:
        for batch in batches:
            candidates = checked(batch, fit.plan)
            if plan is None:
                spend(plan := fit.plan.assuming(*process.start()))
            round_release, over = process(candidates)
            yield round_release
            if over:
                break
        if plan is None:
            spend(plan := fit.plan.assuming(*process.start()))
        release(plan, process(None))


def checked(batch: Batch, plan: Plan) -> list[Candidate]:
    """Check that each of the caller's candidates keeps the guarantee of a planned point.

    The points are those of the space.
    """
    candidates: list[Any] = [] if isinstance(batch, Mapping) else list(batch)
    all_dicts = all(isinstance(candidate, Mapping) for candidate in candidates)
    if isinstance(batch, Mapping) or not all_dicts:
        needed = "a list of dicts, one for each candidate, is needed."
        raise TypeError(f"Found the batch {batch!r}; {needed}")
    if not candidates:
        raise ValueError(
            "Found an empty batch; at least one candidate is needed in each. To end the walk, end "
            "the batches."
        )
    candidates = [own_copy(candidate) for candidate in candidates]
    for candidate in candidates:
        plan.promises.check_covered(candidate)
    return candidates


def own_copy(candidate: Candidate) -> dict[str, Any]:
    """Copy a candidate, so that the caller shares none of its values."""
    return {name: clone(value, safe=False) for name, value in candidate.items()}
