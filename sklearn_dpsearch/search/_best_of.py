"""Searches that run a random number of independent candidates and keep the best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ._base import BasePrivateSearch
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Run, run_all, run_best


class BestOfRuns(BasePrivateSearch):
    """Draw K, draw K candidates, run them all, and hand the best on."""

    @abstractmethod
    def _outcome(
        self,
        job: Job,
        candidates: Sequence[Mapping[str, Any]],
        runs: Mapping[int, Run],
        best: int,
        seed: Any,
        X: Any,
        y: Any,
    ) -> Outcome:
        """What is released, once all runs are done; ``runs`` holds the best, or all of them where all are released."""

    def _candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        assert plan.law is not None
        return self._drawn(plan, plan.law.sample(source.bits), source)

    def _search(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        *seeds, last = source.run_seeds(len(candidates) + 1)
        parallel = {"n_jobs": self.n_jobs, "pre_dispatch": self.pre_dispatch}
        if self._releases_all:
            runs = dict(enumerate(run_all(job, candidates, seeds, X, y, **parallel)))
            best = max(runs, key=lambda i: (*runs[i].order, -i))
        else:
            best, run = run_best(job, candidates, seeds, X, y, expected=self._expected_runs(), **parallel)
            runs = {best: run}
        return self._outcome(job, candidates, runs, best, last, X, y)

    @property
    def _releases_all(self) -> bool:
        """Whether every run is released, so that their number is public."""
        return False

    def _expected_runs(self) -> float:
        law = self._law()
        assert law is not None
        return float(law.mean)
