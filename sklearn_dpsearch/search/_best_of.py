"""Searches that run a random number of independent candidates and keep the best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ._base import BasePrivateSearch
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Run, run_all


class BestOfRuns(BasePrivateSearch):
    """Draw K, draw K candidates, run them all, and hand the best on."""

    @abstractmethod
    def _outcome(
        self,
        job: Job,
        candidates: Sequence[Mapping[str, Any]],
        runs: Sequence[Run],
        best: int,
        seed: Any,
        X: Any,
        y: Any,
    ) -> Outcome:
        """What is released, once all runs are done."""

    def _candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        assert plan.law is not None
        return self._drawn(plan, plan.law.sample(source.bits), source)

    def _search(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        *seeds, last = source.run_seeds(len(candidates) + 1)
        runs = run_all(job, candidates, seeds, X, y, n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)
        best = max(range(len(runs)), key=lambda i: runs[i].score)  # of equal scores the first drawn
        return self._outcome(job, candidates, runs, best, last, X, y)
