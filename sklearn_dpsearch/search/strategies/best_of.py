"""The best of a random number of independent runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...privacy import CountDistribution, Guarantee, compose
from ...privacy.spent import Component
from ...scoring.scored_run import search_guarantee
from ...scoring.validation import Exposure
from .._types import Candidate, Seed
from ..execution.job import Job
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.runs import Run, run_all, run_best
from ..planning.grid import points_of
from ..planning.plan import Plan
from ..planning.space_guarantee import SpaceGuarantee
from .base import Strategy, checked_candidates, drawn_candidates

# --- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CostOfRuns:
    """Releases of a search over runs: the best run, and a refit of the winner where the user asks for it.

    Parameters
    ----------
    name : str
        Name of the release.
    search : callable
        Guarantee of one run ↦ guarantee of that release: the theorem.
    exposures : tuple of Exposure
        All the ways in which one run may use one record.
    refit : bool
    """

    name: str
    search: Callable[[Guarantee], Guarantee]
    exposures: tuple[Exposure, ...]
    refit: bool

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        released = search_guarantee(promises.trained, scoring, self.exposures, self.search)
        again = (Component(name="refit of the winner on all records", guarantee=final.worst),)
        return (Component(name=self.name, guarantee=released), *(again if self.refit else ()))


def all_of(one_run: Guarantee, number: int) -> Guarantee:
    """Guarantee of a fixed number of runs, all of them released."""
    return compose(*[one_run] * number)


#: Default privacy loss of a candidate's training, as a share of the final training's loss.
TUNING_SHARE = 1.0


def share_of_tuning(given: float | None) -> float:
    """The share that the user asks for, or the default."""
    return TUNING_SHARE if given is None else float(given)


def shown_of(run: Run) -> dict[str, Any]:
    """Attributes about the winner's score."""
    return {"best_score_std_": run.std}


# --- how it runs ------------------------------------------------------------------------------------------------------


class BestOfStrategy(Strategy):
    """Draw K, draw K candidates, run them all, and return the best."""

    distribution: CountDistribution
    #: Whether every run is released, so that their number is public.
    releases_all = False
    shows: tuple[str, ...] = ("best_score_std_",)

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        assert plan.request.distribution is not None
        if plan.request.each:
            return checked_candidates(plan, points_of(plan.space))
        return drawn_candidates(plan, plan.request.distribution.sample(source.bits), source)

    def run(self, plan: Plan, job: Job, candidates: Sequence[Candidate], source: Randomness, X: Any, y: Any) -> Outcome:
        *seeds, last = source.run_seeds(len(candidates) + 1)  # ``last`` is for the training after the runs
        if self.releases_all:
            # every row and their number are public: tasks and progress may depend on them
            self.progress.public_runs("runs", len(candidates))
            runs = dict(enumerate(run_all(job, candidates, seeds, X, y, self.workers, self.progress)))
            best = max(runs, key=lambda i: (*runs[i].order, -i))
        else:
            self.progress.secret_runs()
            assert plan.request.distribution is not None
            expected = float(plan.request.distribution.mean)  # tasks may depend on it, never on the number drawn
            best, run = run_best(job, candidates, seeds, X, y, self.workers, expected=expected)
            runs = {best: run}
        return self.outcome(job, candidates, runs, best, last, X, y)

    @abstractmethod
    def outcome(
        self,
        job: Job,
        candidates: Sequence[Candidate],
        runs: Mapping[int, Run],
        best: int,
        seed: Seed,
        X: Any,
        y: Any,
    ) -> Outcome:
        """Build the outcome from the finished runs: the best run, or all of them where all are released."""
