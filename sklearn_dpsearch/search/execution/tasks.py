"""Running things on private records: in silence, without an exception that could tell, in a public number of tasks."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn import config_context, get_config

from ..._process import DESCRIPTORS, GENERATORS, INTERRUPTS, muted
from ...ledger import counted
from ...privacy import LeakingEstimatorError
from .._types import Workers
from .clusters import (
    at_once,
    called_off,
    complete,
    in_spite_of_losses,
    is_far,
    number_of_workers,
    on_a_cluster,
    store_of,
)
from .failures import LeakDetected, why
from .sealed import sealed, unsealed

Found = TypeVar("Found")

#: Most tasks for each worker: enough to even out runs of unequal length.
TASKS_PER_WORKER = 8
#: The blocks of a search that stops grow by this factor, and reach so many times the expected number of runs.
GROWTH, REACH = 1.5, 3.0

NOT_AN_INTERRUPT = (
    "The search was stopped by an exception that is no interrupt: what raised it, and why, could depend on the records "
    "and is not told. What privacy_spent_ says is spent. Try search.dry_run() on public or made-up records."
)


# --- silence ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def in_task() -> Iterator[None]:
    """Around everything that one task does: nothing is said or counted, and no numerical warning is an error."""
    with (
        counted(),  # a search inside of this one: this one's entry in a ledger is for all that it does
        INTERRUPTS.watched(),  # again where the task runs in a process of its own
        muted(),
        DESCRIPTORS.muted(),
        GENERATORS(),
        np.errstate(all="ignore"),
        parallel_config(backend="sequential"),
    ):
        yield


def attempt(work: Callable[[], Found]) -> Found | None:
    """The result of something that a candidate does, or None if it fails, in whatever way.

    Only an interrupt of the caller goes on. An exception that a candidate raises may look like one.
    """
    found, leaks = None, False
    try:
        found = work()
    except BaseException as error:
        leaks = type(error).__name__ == "PrivacyLeakWarning"
    INTERRUPTS.check()
    if leaks:  # outside the handler: a chained exception could quote a record
        raise LeakDetected
    return found


def guarded(work: Callable[[], Found]) -> Found:
    """Do what reads private records. Whatever is raised comes without the frames, causes and texts underneath."""
    with INTERRUPTS.watched():
        try:
            found = work()
            INTERRUPTS.check()
            return found
        except Exception as error:
            problem: BaseException = INTERRUPTS.raised or error
        except BaseException:
            problem = INTERRUPTS.raised or RuntimeError(NOT_AN_INTERRUPT)
    problem.__cause__ = problem.__context__ = None
    raise problem.with_traceback(None)  # tools that show the variables of frames would show the candidates


# --- joblib -----------------------------------------------------------------------------------------------------------


#: Told how many tasks are done.
Counter = Callable[[int], None]


def uncounted(done: int) -> None:
    """Nobody wants to know: how many tasks are done, and when, depends on what is secret."""


class Counted(Parallel):
    """joblib's tasks, counted as they end; a worker's thread may do so."""

    counter: Counter = staticmethod(uncounted)

    def _initialize_backend(self) -> int:
        """How many workers there are. Of one, joblib would do the work here, and an adaptive cluster never grow."""
        found = int(super()._initialize_backend())
        return max(2, found) if is_far(self._backend) else found

    def print_progress(self) -> None:
        """Called by joblib after every task."""
        self.counter(self.n_completed_tasks)


def in_parallel(name: str, tasks: Iterable[Any], workers: Workers, counter: Counter = uncounted) -> list[Any]:
    """Results of joblib's tasks, in order and in silence; errors of joblib itself without what they quote.

    Parameters
    ----------
    name : str
        The estimator's type, for errors.
    tasks : iterable of delayed calls
        A number of them that is public: schedulers count and log tasks.
    workers : dict
    counter : callable, optional
        Told how many tasks are done, as they end: where that is public.
    """
    try:
        with muted(), GENERATORS():
            run = partial(_run, list(tasks), workers, counter)
            found: list[Any] = in_spite_of_losses(run) if on_a_cluster() else run()
            counter(len(found))  # some backends hand results over before they count them
            return found
    except LeakDetected:
        problem: Exception = LeakingEstimatorError(
            f"{name} reported that it would read something from the data without noise (PrivacyLeakWarning). Give the "
            "bounds, norms or classes that it asks for as public constants."
        )
    except Exception as error:
        problem = why(error)
    INTERRUPTS.check()
    raise problem  # outside the handlers: a chained exception could quote a record


def _run(tasks: Sequence[Any], workers: Workers, counter: Counter) -> list[Any]:
    """Results of the tasks; on a cluster they come and go sealed."""
    # joblib would put quick tasks together: how many there are would tell how long runs took
    parallel = Counted(verbose=0, batch_size=1, **at_once(workers))
    parallel.counter = counter
    if not on_a_cluster():
        return list(parallel(configured(tasks)))
    with called_off(parallel):
        found = parallel(list(configured(sealed(tasks, store_of(parallel._backend)))))
        return unsealed(complete(found, len(tasks)))


def configured(tasks: Iterable[Any]) -> Iterator[Any]:
    """The same tasks under scikit-learn's configuration of this thread: workers have one of their own.

    What tasks are given stays as it is given: clusters send an argument that several tasks share only once.
    """
    config = get_config()
    return (delayed(partial(_under, config, work))(*given, **named) for work, given, named in tasks)


def _under(config: Mapping[str, Any], work: Callable[..., Found], *given: Any, **named: Any) -> Found:
    with config_context(**config):
        return work(*given, **named)


def dealt(number: int, hands: int) -> list[range]:
    """Numbers 0 … number − 1 dealt to so many hands in turn; some may be empty."""
    return [range(first, number, hands) for first in range(hands)]


def number_of_tasks(expected: float, n_jobs: int | None, together: bool) -> int:
    """How many tasks a search makes, from what is public: schedulers see how many there are.

    Parameters
    ----------
    expected : float
        Expected number of runs.
    n_jobs : int or None
    together : bool
        Whether runs of one task share work, so that each worker had best get one.
    """
    workers = number_of_workers(n_jobs)
    return workers if together else workers * min(TASKS_PER_WORKER, max(1, math.ceil(2 * expected / workers)))


def block_sizes(expected: float, n_jobs: int | None) -> Sequence[int]:
    """Sizes of all blocks but the last, for runs of which only the first success counts; from what is public.

    The first are as large as the workers are many, so that few runs come too late; later ones grow, so that there are
    few blocks.
    """
    workers, sizes = number_of_workers(n_jobs), list[int]()
    while sum(sizes) < REACH * expected:
        sizes.append(workers * max(1, int(GROWTH ** len(sizes))))
    return sizes
