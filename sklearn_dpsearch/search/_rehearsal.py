"""Rehearsal before a fit spends: candidates are trained and scored on records made up from public facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .._process import rehearsing
from ._dry_run import everything
from ._records import n_records
from ._synthetic_records import NothingKnownError, made_up_like
from ._types import Candidate, PublicData
from .execution.job import Job, Split
from .execution.tasks import in_task, is_leak, would_leak
from .planning.container_facts import ContainerFacts
from .planning.keywords import is_per_record
from .planning.plan import Plan
from .strategies.base import Strategy

#: Most families of which one candidate is rehearsed.
MOST_FAMILIES = 20
#: Attempts of one candidate: errors from unlucky noise pass, errors from parameters stay.
ATTEMPTS = 3

NOTE = (
    "This error came up in the rehearsal, on records made up from columns, types, classes and bounds: no record was "
    "used and nothing was spent. Mend it, or write rehearse=False if made-up records cannot suit this estimator."
)

MakeJob = Callable[[Plan, Split, Mapping[str, Any], PublicData | None], Job]


def rehearse(
    strategy: Strategy,
    plan: Plan,
    make_job: MakeJob,
    X: ContainerFacts,
    y: ContainerFacts | None,
    fit_params: Mapping[str, Any],
    public: PublicData | None,
) -> str | None:
    """Train and score one candidate of each family on records made up from public facts; nothing is spent.

    Returns
    -------
    str or None
        Reason why no rehearsal was possible.

    Raises
    ------
    Exception
        The error of an attempt, with a note, if every one of several attempts fails.
    """
    try:
        made_X, made_y = made_up_like(strategy.search.estimator, plan.recipe.scorer, X, y)
    except NothingKnownError as error:
        return str(error)
    n, params = n_records(made_X), {}
    for name, value in fit_params.items():
        params[name] = np.ones(n) if is_per_record(name, value) else value
    job = make_job(plan, everything(plan, n), params, public)
    for candidate in _candidates(plan):
        _attempt(strategy, plan, job, candidate, made_X, made_y)
    return None


def _candidates(plan: Plan) -> Iterator[Candidate]:
    """One candidate of each family, the same in every rehearsal."""
    drawing = np.random.RandomState(0)
    for which in range(min(MOST_FAMILIES, len(plan.space.dictionaries))):
        yield plan.space.draw_from(which, drawing)


def _attempt(strategy: Strategy, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> None:
    """Run one candidate; raise its error if every attempt fails."""
    for _ in range(ATTEMPTS):
        try:
            with rehearsing(), in_task():
                strategy.dry(plan, job, candidate, X, y)
            return
        except Exception as error:
            problem = error
        if is_leak(problem):
            raise would_leak(type(job.recipe.estimator).__name__)
    if hasattr(problem, "add_note"):  # since Python 3.11
        problem.add_note(NOTE)
    raise problem
