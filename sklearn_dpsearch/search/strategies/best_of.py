"""The best of a random number of independent runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...privacy import Guarantee, compose
from ...privacy.spent import Component
from ...scoring.scored_run import search_guarantee
from ...scoring.validation import Exposure
from .._types import Candidate, Seed
from ..execution.job import Job
from ..execution.outcome import Outcome
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..execution.runs import Run, run_all, run_best
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


# --- how it runs ------------------------------------------------------------------------------------------------------


class BestOfStrategy(Strategy):
    """Draw K, draw K candidates, run them all, and return the best."""

    #: Whether every run is released, so that their number is public.
    releases_all = False
    shows: tuple[str, ...] = ("best_score_std_",)

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        if plan.each:
            return checked_candidates(plan, plan.space.points())
        assert plan.distribution is not None
        return drawn_candidates(plan, plan.distribution.sample(source.bits), source)

    def run(
        self, plan: Plan, job: Job, candidates: Sequence[Candidate], source: Randomness, progress: Progress
    ) -> Outcome:
        *seeds, last = source.run_seeds(len(candidates) + 1)  # ``last`` is for the training after the runs
        if self.releases_all:
            # every row and their number are public: tasks and progress may depend on them
            progress.public_runs("runs", len(candidates))
            runs = dict(enumerate(run_all(job, candidates, seeds, progress)))
            best = max(runs, key=lambda i: (*runs[i].order, -i))
        else:
            progress.secret_runs()
            assert plan.distribution is not None
            expected = float(plan.distribution.mean)  # tasks may depend on it, never on the number drawn
            best, run = run_best(job, candidates, seeds, expected=expected)
            runs = {best: run}
        return self.outcome(job, candidates, runs, best, last, progress)

    @abstractmethod
    def outcome(
        self,
        job: Job,
        candidates: Sequence[Candidate],
        runs: Mapping[int, Run],
        best: int,
        seed: Seed,
        progress: Progress,
    ) -> Outcome:
        """Build the outcome from the finished runs: the best run, or all of them where all are released."""
