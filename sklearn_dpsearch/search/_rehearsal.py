"""Work on public or made-up records: dry runs, and the rehearsal before a fit spends.

Both take the whole way. Errors are shown in full: no private record is near.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from .._process import public_records, rehearsing
from ..adapters._refused_estimators import is_per_record
from ..data._records import Records, number_of_records
from ..ledger._ledger_context import counted
from . import _private_process as private_process
from ._execution.job import Job, Split
from ._execution.randomness import Randomness
from ._execution.workers import is_leak, leak_error, task_context
from ._pickling import pickled, unpickled
from ._planning.checks import first_look
from ._planning.plan import Plan
from ._private_fit import PrivateFit, job_of
from ._private_process import imported, privately
from ._records import Candidate, KnownSeed, Parameters, PublicData, columns_read
from ._strategy import Strategy, drawn_candidates
from ._synthetic_records import NothingKnownError, made_up

Result = TypeVar("Result")


def run_publicly(
    work: Callable[[], Result], shared: Sequence[Any] = (), writes: Sequence[str] | None = None
) -> Result:
    """Do work on public or made-up records in a process of its own, and return its value.

    Parameters
    ----------
    work, shared, writes
        As for ``privately``.

    Raises
    ------
    Exception
        The error of the work, with its traceback as a note.
    """
    result, problem, modules = privately(partial(_value_or_error, work), shared, writes)
    # private work that follows need not import again what this work needed
    private_process.prepare(modules)
    if problem is not None:
        raise problem
    value: Result = result
    return value


def _value_or_error(work: Callable[[], Any]) -> tuple[Any, Exception | None, list[str]]:
    """Value or error of the work, and the modules that it needed."""
    try:
        with public_records():
            return work(), None, imported()
    except Exception as error:
        return None, _picklable_error(error), imported()


def _picklable_error(problem: Exception) -> Exception:
    """Error with its traceback as a note.

    An error that cannot be pickled becomes one with the same words.
    """
    trace = "".join(traceback.format_exception(problem))
    try:
        travelling: Exception = unpickled(pickled(problem))
    except Exception:
        travelling = RuntimeError(f"{type(problem).__name__}: {problem}")
    travelling.add_note(trace)
    return travelling


# --- one candidate --------------------------------------------------------------------------------


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
        first = f"DryRun(params={dict(self.params)!r}, score={self.score!r})"
        return "\n  ".join([first, *self.columns])


def job_in_the_open(plan: Plan, X: Any, y: Any, fit_params: Any, public: PublicData | None) -> Job:
    """Job in which all records train and all records are scored."""
    n = number_of_records(X)
    split = Split(folds=[(np.arange(n),) * 2], n_scored=[n])
    return job_of(plan, split, X, y, fit_params, public)


def dry_run(search: Parameters, X: Any, y: Any, public: bool, random_state: KnownSeed) -> DryRun:
    """Train, score and prepare for release one candidate, as ``fit`` would.

    Parameters
    ----------
    search : Parameters
        Without a seed.
    X, y : array-like or None
        The caller's public records; None: records are made up.
    public : bool
        Whether candidates are scored on public data.
    random_state : None, int or RandomState
        Source of the candidate and of its noise.
    """
    strategy = search._strategy()
    if X is None and y is not None:
        raise ValueError(
            "Found y_example without X_example. Give both, or none to have records made up."
        )
    if X is None:
        X, y = made_up(search.estimator, strategy.scorer(public))
    records = first_look(search, strategy.kinds, strategy.scorer(public), X, y, {})
    # the plan for any number of records; for these only where it depends on that: ``fit`` will
    # have more
    try:
        plan = strategy.plan(None, public, search.delta)
    except (ValueError, TypeError):
        plan = strategy.plan(records.n, public, search.delta)
    examples = (records.X, records.y) if public else None
    job = job_in_the_open(plan, records.X, records.y, {}, examples)
    source = Randomness(random_state)
    (candidate,), (seed,) = drawn_candidates(plan, 1, source), source.run_seeds(1)
    with counted(), public_records():  # nothing is spent, nor by a search inside of this one
        score = strategy.dry(plan, job, candidate, seed)
    if not math.isfinite(score):
        raise ValueError(
            f"The score of {candidate!r} is {score}, which counts as a failure. Give other "
            "parameters, or a scorer whose values are finite."
        )
    return DryRun(candidate, score, tuple(columns_read(search.estimator)))


# --- before a fit ---------------------------------------------------------------------------------

#: Most families of which one candidate is rehearsed.
MOST_FAMILIES = 20
#: Attempts of one candidate: errors from unlucky noise pass, errors from parameters stay.
ATTEMPTS = 3

NOTE = (
    "This error came up in the rehearsal, on records made up from columns, types, classes and "
    "bounds: no record was used and nothing was spent. Mend it, or write rehearse=False if made-up "
    "records cannot suit this estimator."
)
CONFINEMENT = "Candidates may write to temporary files alone (tempfile), and have no network."


def rehearse(fit: PrivateFit, records: Records) -> str | None:
    """Train and score one candidate of each family on records made up from public facts.

    Nothing is spent.

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
        made_X, made_y = made_up(fit.strategy.search.estimator, fit.plan.scorer, records.headers)
    except NothingKnownError as error:
        return str(error)
    n, params = number_of_records(made_X), {}
    for name, value in fit.fit_params.items():
        params[name] = np.ones(n) if is_per_record(name, value) else value
    job = job_in_the_open(fit.plan, made_X, made_y, params, fit.public)
    try:
        rehearsal = partial(_rehearse_all, fit.strategy, fit.plan, job)
        run_publicly(rehearsal, [made_X, made_y], writes=())
    except Exception as error:
        if isinstance(error, OSError):
            error.add_note(CONFINEMENT)
        error.add_note(NOTE)
        raise
    return None


def _rehearse_all(strategy: Strategy, plan: Plan, job: Job) -> None:
    """Run one candidate of each family, the same in every rehearsal."""
    drawing = np.random.RandomState(0)
    with rehearsing(), task_context():
        for which in range(min(MOST_FAMILIES, len(plan.space.dictionaries))):
            _try_candidate(strategy, plan, job, plan.space.draw_from(which, drawing))


def _try_candidate(strategy: Strategy, plan: Plan, job: Job, candidate: Candidate) -> None:
    """Run one candidate; raise its error if every attempt fails."""
    for _ in range(ATTEMPTS):
        try:
            strategy.dry(plan, job, candidate)
            return
        except Exception as error:
            problem = error
        if is_leak(problem):
            raise leak_error(type(job.estimator).__name__)
    raise problem
