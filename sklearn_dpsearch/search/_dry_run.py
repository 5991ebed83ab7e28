"""One candidate in the open, on public or made-up records: errors are shown, and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import indexable

from ._made_up import made_up_records
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, fitted, fresh, n_records, releasable, score_of


@dataclass(frozen=True)
class DryRun:
    """A candidate that went the whole way on public records.

    Parameters
    ----------
    params : dict
        The candidate.
    score : float
        Its score on the records that it was trained on, with as much noise as in ``fit``.
    """

    params: Mapping[str, Any]
    score: float


def dry_run(search: Any, X: Any, y: Any, public: bool) -> DryRun:
    """Train, score and prepare for release one candidate of a search, as ``fit`` would, without silence."""
    one = clone(search).set_params(random_state=None)
    if X is None:
        if y is not None:
            raise ValueError("Found y_example without X_example. Give both, or none to have records made up.")
        one._validate_params()
        X, y = made_up_records(one.estimator, one._scorer(public))
    X, y = indexable(X, y)
    one._first_look(X, y, None, None, {}, public)
    plan, source = _planned(one, n_records(X), public), Randomness()
    (candidate,) = one._drawn(plan, 1, source)
    everything = np.arange(n_records(X))
    scored = None if plan.spent.neighboring == "add_remove" else n_records(X)
    job = one._job(plan, Parts(folds=[(everything, everything)], n_scored=[scored]), {}, (X, y) if public else None)
    score = one._dry(plan, job, candidate, X, y)
    if not math.isfinite(score):
        raise ValueError(
            f"The score of {candidate!r} is {score}, which counts as a failure. Give other parameters, or a scorer "
            "whose values are finite."
        )
    return DryRun(candidate, score)


def _planned(search: Any, n: int, public: bool) -> Plan:
    """The plan for any number of records; for this number only where it is needed, since ``fit`` will have more."""
    try:
        found: Plan = search._plan(None, public, search.delta)
    except (ValueError, TypeError):
        found = search._plan(n, public, search.delta)
    return found


def in_the_open(job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> tuple[Any, float]:
    """A model of the candidate, ready for release, and its score."""
    everything = job.parts.folds[0][0]
    model = fitted(job, fresh(job, candidate, None), everything, X, y)
    job.scorer(model, X, y)  # a private score counts records that cannot be scored as failures, and says nothing
    score = score_of(job, model, X, y, job.parts.n_scored[0], None)
    return releasable(job, model), score
