"""One candidate in the open, on public or made-up records: errors are shown, and nothing is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._records import n_records
from ._synthetic_records import made_up
from ._types import Candidate
from .execution.job import Job, Split
from .execution.randomness import Randomness
from .planning.plan import Plan
from .planning.release_facts import columns_read
from .strategies.base import Strategy, drawn_candidates


@dataclass(frozen=True)
class DryRun:
    """A candidate that was trained and scored on public records.

    Parameters
    ----------
    params : dict
        The candidate.
    score : float
        Its score on the records that it was trained on, with as much noise as in ``fit``.
    columns : tuple of str
        One line for each column, as the schema is understood; empty without a schema.
    """

    params: Candidate
    score: float
    columns: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n  ".join([f"DryRun(params={dict(self.params)!r}, score={self.score!r})", *self.columns])


def examples(strategy: Strategy, X: Any, y: Any, public: bool) -> tuple[Any, Any]:
    """The caller's public records, or made-up ones."""
    if X is not None:
        return X, y
    if y is not None:
        raise ValueError("Found y_example without X_example. Give both, or none to have records made up.")
    return made_up(strategy.search.estimator, strategy.scorer(public))


def job_in_the_open(plan: Plan, X: Any, y: Any, **given: Any) -> Job:
    """Job in which all records train and all records are scored."""
    n = n_records(X)
    return Job(recipe=plan.recipe, split=Split(folds=[(np.arange(n),) * 2], n_scored=[n]), X=X, y=y, **given)


def dry_run(strategy: Strategy, plan: Plan, job: Job) -> DryRun:
    """Train, score and prepare for release one candidate, as ``fit`` would."""
    (candidate,) = drawn_candidates(plan, 1, Randomness())
    score = strategy.dry(plan, job, candidate)
    if not math.isfinite(score):
        raise ValueError(
            f"The score of {candidate!r} is {score}, which counts as a failure. Give other parameters, or a scorer "
            "whose values are finite."
        )
    return DryRun(candidate, score, tuple(columns_read(strategy.search.estimator)))
