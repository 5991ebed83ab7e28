"""Tasks on private records: in silence, without revealing exceptions, and in a public number."""

from __future__ import annotations

import contextlib
import math
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn import config_context, get_config

from ..._process import DESCRIPTORS, GENERATORS, INTERRUPTS, discard, muted, muted_for_good
from ...ledger.ledger_context import counted
from ...privacy import LeakingEstimatorError
from .._types import Workers
from .cluster_payloads import JOBLIBS_PICKLERS, Sealed, sealed, unsealed
from .clusters import (
    at_once,
    called_off,
    complete,
    in_spite_of_losses,
    is_far,
    number_of_workers,
    on_a_cluster,
    raise_if_lost,
)
from .failures import LeakDetected, why

Found = TypeVar("Found")

#: Most tasks for each worker: enough to balance runs of unequal length.
TASKS_PER_WORKER = 8
#: Blocks of a search that stops early: growth factor, and total size in multiples of the expected number of runs.
GROWTH, REACH = 1.5, 3.0

NOT_AN_INTERRUPT = (
    "The search was stopped by an exception that is no interrupt: its source and its text could depend on the records "
    "and are not shown. The cost in privacy_spent_ is spent. Try search.dry_run() on public or made-up records."
)


# --- silence ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def in_task() -> Iterator[None]:
    """Context of one task: no output, no entries in ledgers, and numerical warnings are ignored."""
    with (
        counted(),  # a search inside enters nothing: the ledger's entry of this search covers it
        INTERRUPTS.watched(),  # again where the task runs in a process of its own
        muted_for_good(),
        DESCRIPTORS.muted(),
        GENERATORS(),
        np.errstate(all="ignore"),
        parallel_config(backend="sequential"),
    ):
        yield


def attempt(work: Callable[[], Found]) -> Found | None:
    """Result of a candidate's work, or None after any failure.

    Only an interrupt of the caller is raised. A candidate may raise an exception that looks like an interrupt.
    """
    found, leaks = None, False
    try:
        found = work()
    except BaseException as error:
        leaks = is_leak(error)
    INTERRUPTS.check()
    if leaks:  # outside the handler: a chained exception could quote a record
        raise LeakDetected
    return found


def guarded(work: Callable[[], Found]) -> Found:
    """Do work that reads private records. Errors leave without the frames, causes and texts underneath.

    Discarded objects, above all losers, are freed in silence: finalizers may write, warn or raise.
    """
    with INTERRUPTS.watched():
        found, problem = _ended(partial(_in_silence, work))
    if problem is not None:
        raise problem
    return found  # type: ignore[return-value]


def _in_silence(work: Callable[[], Found]) -> Found:
    """Do the work silently. All other results of tasks, and the frames under an error, are gone at the return."""
    with muted():
        kept, before = list[Any](), _KEPT.get()
        _KEPT.set(kept)
        try:
            found, problem = _ended(work)
        finally:
            _KEPT.set(before)
            with DESCRIPTORS.muted():
                kept.clear()
                discard()
    if problem is not None:
        raise problem
    return found  # type: ignore[return-value]


def _ended(work: Callable[[], Found]) -> tuple[Found | None, BaseException | None]:
    """Result of the work, or the error to raise later: tools that show variables of frames would show candidates."""
    try:
        found = work()
        INTERRUPTS.check()
        return found, None
    except Exception as error:
        problem: BaseException = INTERRUPTS.raised or error
    except BaseException:
        problem = INTERRUPTS.raised or RuntimeError(NOT_AN_INTERRUPT)
    problem.__cause__ = problem.__context__ = None
    return None, problem.with_traceback(None)


#: Results of the tasks of one ``guarded`` piece of work: they are freed together, at its end.
_KEPT: ContextVar[list[Any] | None] = ContextVar("kept", default=None)


# --- joblib -----------------------------------------------------------------------------------------------------------


#: Function called with the number of finished tasks.
Counter = Callable[[int], None]


def uncounted(done: int) -> None:
    """Report nothing: the number of finished tasks, and the moments when they end, are secret."""


class Counted(Parallel):
    """joblib's ``Parallel`` that counts finished tasks, perhaps in a worker's thread."""

    counter: Counter = staticmethod(uncounted)

    def _initialize_backend(self) -> int:
        """Count workers, at least 2 on a cluster: with 1 joblib works here, and an adaptive cluster never grows."""
        found = int(super()._initialize_backend())
        return max(2, found) if is_far(self._backend) else found

    def _wait_retrieval(self) -> bool:
        """Return whether tasks are at work: joblib asks every 10 ms."""
        waits = bool(super()._wait_retrieval())
        if waits and is_far(self._backend):
            raise_if_lost(self)
        return waits

    def print_progress(self) -> None:
        """Count a finished task: joblib calls this method after every task."""
        self.counter(self.n_completed_tasks)


def in_parallel(name: str, tasks: Iterable[Any], workers: Workers, counter: Counter = uncounted) -> list[Any]:
    """Results of joblib's tasks, in order and in silence; errors of joblib itself come without quoted objects.

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
            if (kept := _KEPT.get()) is not None:
                kept.append([*found])
            counter(len(found))  # some backends return results before counting them
            return found
    except LeakDetected:
        problem: Exception = would_leak(name)
    except Exception as error:
        problem = why(error)
    INTERRUPTS.check()
    raise problem  # outside the handlers: a chained exception could quote a record


def would_leak(name: str) -> LeakingEstimatorError:
    """Make the error for an estimator that gave a ``PrivacyLeakWarning``."""
    return LeakingEstimatorError(
        f"{name} reported that it would read something from the data without noise (PrivacyLeakWarning). Give the "
        "bounds, norms or classes that it asks for as public constants."
    )


def is_leak(error: BaseException) -> bool:
    """Return whether an error is an estimator's warning that it would read the data without noise."""
    return type(error).__name__ == "PrivacyLeakWarning"


def _run(tasks: Sequence[Any], workers: Workers, counter: Counter) -> list[Any]:
    """Results of the tasks; on a cluster arguments and results are sealed."""
    # joblib would put quick tasks together: how many there are would tell how long runs took
    parallel = Counted(verbose=0, batch_size=1, **at_once(workers))
    parallel.counter = counter
    if not on_a_cluster():
        return [one.open() if isinstance(one, Sealed) else one for one in parallel(configured(tasks))]
    with called_off(parallel):
        found = parallel(list(configured(sealed(tasks))))
        return unsealed(complete(found, len(tasks)))


def configured(tasks: Iterable[Any]) -> Iterator[Any]:
    """Wrap tasks to run under this thread's scikit-learn configuration: workers have one of their own.

    The arguments stay the same objects: clusters send an argument that several tasks share only once.
    """
    config, home = get_config(), _here()
    return (delayed(partial(_under, config, home, work))(*given, **named) for work, given, named in tasks)


def _under(
    config: Mapping[str, Any], home: tuple[str, int], work: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """Do the work under a configuration; in another process seal the result and free all other objects of the task."""
    with config_context(**config), muted(), DESCRIPTORS.muted():
        found = work(*given, **named)
        if _here() == home:
            return found
        result = found if isinstance(found, Sealed) else Sealed(found, picklers=JOBLIBS_PICKLERS)
        result.close()
        del found
        discard()
        return result


def _here() -> tuple[str, int]:
    """Identity of this process."""
    return platform.node(), os.getpid()


def dealt(number: int, hands: int) -> list[range]:
    """Deal the numbers 0 … number − 1 in turn to ``hands`` ranges, some of which may be empty."""
    return [range(first, number, hands) for first in range(hands)]


def number_of_tasks(expected: float, n_jobs: int | None, together: bool) -> int:
    """Number of tasks of a search, from public facts only: schedulers see this number.

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
    """Sizes of all blocks but the last, from public facts, for runs of which only the first success counts.

    The first blocks have one run for each worker, so that few runs come after the success; later blocks grow, so that
    there are few blocks.
    """
    workers, sizes = number_of_workers(n_jobs), list[int]()
    while sum(sizes) < REACH * expected:
        sizes.append(workers * max(1, int(GROWTH ** len(sizes))))
    return sizes
