"""Containment of other code's failures and warnings, and rehearsals with shortened trainings.

Failures and warnings are contained in private processes.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs

Found = TypeVar("Found")

#: Variable of the environment, which processes that a candidate starts have too.
PRIVATE_VARIABLE = "SKLEARN_DPSEARCH_PRIVATE_PROCESS"


def become_private() -> None:
    """Mark this process, and all that it starts, as one that does private work."""
    os.environ[PRIVATE_VARIABLE] = "1"


def is_private() -> bool:
    """Return whether this process does private work."""
    return PRIVATE_VARIABLE in os.environ


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Contain the failure of one candidate.

    In a private process, which no interrupt reaches, failures of any type are contained.
    """
    try:
        yield
    except Exception:
        pass
    except BaseException:
        if not is_private():
            raise


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Drop warnings of the libraries underneath."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def flagged(flag: ContextVar[Any], value: Any = True) -> Iterator[None]:
    """Set a flag of this thread, or task, while the block lasts."""
    before = flag.set(value)
    try:
        yield
    finally:
        flag.reset(before)


#: Whether the records at hand are public.
_PUBLIC_RECORDS: ContextVar[bool] = ContextVar("public", default=False)


class TrainingStoppedError(RuntimeError):
    """Error for a training that other code has stopped."""


STOPPED_TRAINING = (
    "The training of {} was stopped by an error of other code, whose text could quote a record and "
    "is not shown. DPRandomSearchCV(model, {{}}).dry_run(X_example, y_example) shows it on public "
    "or made-up records."
)


def in_fixed_words(name: str, work: Callable[[], Found]) -> Found:
    """Work on private records in the user's process, without texts of other code.

    Errors of other code have a fixed text, and warnings are dropped.

    Raises
    ------
    TrainingStoppedError
        Outside of the handler: a chained error would be shown.
    """
    if _PUBLIC_RECORDS.get():
        return work()
    with without_warnings():
        try:
            return work()
        except Exception as error:
            if type(error).__module__.partition(".")[0] == __name__.partition(".")[0]:
                raise
    raise TrainingStoppedError(STOPPED_TRAINING.format(name))


def public_records() -> contextlib.AbstractContextManager[None]:
    """Work on public or made-up records: errors of other code are shown as they are."""
    return flagged(_PUBLIC_RECORDS)


#: Steps of an iterative training in a rehearsal: enough to meet every part of the code.
REHEARSAL_STEPS = 3

_REHEARSAL: ContextVar[bool] = ContextVar("rehearsing", default=False)


def rehearsing() -> contextlib.AbstractContextManager[None]:
    """Mark the work of this thread as a rehearsal, whose results are thrown away."""
    return flagged(_REHEARSAL)


def steps_now(planned: int) -> int:
    """Number of steps of a training: fewer than planned in a rehearsal."""
    return min(planned, REHEARSAL_STEPS) if _REHEARSAL.get() else planned


#: Threads that a run beside others may have.
_MOST_THREADS: ContextVar[int | None] = ContextVar("most_threads", default=None)


def at_most_threads(number: int) -> contextlib.AbstractContextManager[None]:
    """Limit the threads of models that share their records among threads, while the block lasts."""
    return flagged(_MOST_THREADS, number)


def threads_now(n_jobs: int | None) -> int:
    """Number of threads of a model by its ``n_jobs``.

    It is one a processor at most, and smaller in a run beside others.
    """
    return int(min(effective_n_jobs(n_jobs), _MOST_THREADS.get() or cpu_count()))
