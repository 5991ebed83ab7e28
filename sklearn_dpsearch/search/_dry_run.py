"""One candidate in the open, on public or made-up records: errors are shown, and nothing is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ._job import Split, n_records
from ._made_up import made_up_records
from ._plan import Plan
from ._randomness import Randomness
from ._runner import Runner, drawn_candidates
from ._types import Candidate

if TYPE_CHECKING:
    from ._base import BasePrivateSearch


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

    params: Candidate
    score: float


def dry_run(search: BasePrivateSearch, X: Any, y: Any, public: bool) -> DryRun:
    """Train, score and prepare for release one candidate of a search, as ``fit`` would, without silence."""
    unseeded: BasePrivateSearch = clone(search).set_params(random_state=None)
    if X is None and y is not None:
        raise ValueError("Found y_example without X_example. Give both, or none to have records made up.")
    unseeded._validate_params()
    runner = unseeded._runner()
    if X is None:
        X, y = made_up_records(unseeded.estimator, runner.scorer(public))
    X, y = unseeded._first_look(runner, X, y, None, None, {}, public=public)
    plan = _planned(unseeded, runner, n_records(X), public)
    (candidate,) = drawn_candidates(plan, 1, Randomness())
    job = unseeded._job(plan, _everything(plan, n_records(X)), {}, (X, y) if public else None)
    score = runner.dry(plan, job, candidate, X, y)
    if not math.isfinite(score):
        raise ValueError(
            f"The score of {candidate!r} is {score}, which counts as a failure. Give other parameters, or a scorer "
            "whose values are finite."
        )
    return DryRun(candidate, score)


def _planned(search: BasePrivateSearch, runner: Runner, n: int, public: bool) -> Plan:
    """The plan for any number of records; for this number only where it is needed, since ``fit`` will have more."""
    try:
        return search._plan(runner, None, public, search.delta)
    except (ValueError, TypeError):
        return search._plan(runner, n, public, search.delta)


def _everything(plan: Plan, n: int) -> Split:
    """All records train, and all are scored."""
    everything = np.arange(n)
    scored = None if plan.spent.neighboring == "add_remove" else n
    return Split(folds=[(everything, everything)], n_scored=[scored])
