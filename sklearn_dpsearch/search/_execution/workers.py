"""Workers that run candidates: threads of the private process, or a cluster.

Each of the threads waits for a process.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from joblib import parallel_config

from ...adapters._adapter import is_ours
from ...privacy import LeakingEstimatorError, PrivacyError
from .. import _private_process as private_process

Result = TypeVar("Result")
#: Work of each task, a public number of them: schedulers of clusters count and log tasks.
Tasks: TypeAlias = Sequence[Callable[[], Result]]
#: Function called with the number of finished tasks.
Counter = Callable[[int], None]

#: Most tasks for each worker: enough to balance runs of unequal length.
TASKS_PER_WORKER = 8
#: Blocks of a search that stops early: growth factor, and total size in multiples of the expected
#: number of runs.
GROWTH, REACH = 1.5, 3.0
#: Errors of Dask if all workers that held the records are lost.
WORKER_LOSSES = frozenset({"CancelledError", "FutureCancelledError", "FuturesCancelledError"})


def uncounted(done: int) -> None:
    """Report nothing: the number of finished tasks, and the moments when they end, are secret."""


class Workers(ABC):
    """Workers for tasks. Their ``number`` is public."""

    number: int

    @abstractmethod
    def run(self, tasks: Tasks[Result], counter: Counter = uncounted) -> list[Result]:
        """Results of the tasks, in order; the first error ends all.

        Parameters
        ----------
        tasks : sequence of callable
        counter : callable, optional
            Told how many tasks are done, as they end: where that is public.
        """

    def __reduce__(self) -> Any:
        return Threads, (self.number,)  # a connection cannot go to another process


@dataclass(frozen=True)
class Threads(Workers):
    """Threads of this process.

    Parameters
    ----------
    number : int
    """

    number: int = 1

    def run(self, tasks: Tasks[Result], counter: Counter = uncounted) -> list[Result]:
        """Results of the tasks."""
        if self.number == 1:
            results = []
            for task in tasks:
                results.append(task())
                counter(len(results))
            return results
        with futures.ThreadPoolExecutor(self.number) as pool:
            running = [pool.submit(task) for task in tasks]
            try:
                for done, future in enumerate(futures.as_completed(running), 1):
                    future.result()
                    counter(done)
            finally:
                pool.shutdown(cancel_futures=True)
            return [future.result() for future in running]


# --- tasks ----------------------------------------------------------------------------------------


def deal(number: int, hands: int) -> list[range]:
    """Deal the numbers 0 … number − 1 in turn to ``hands`` ranges, some of which may be empty."""
    return [range(first, number, hands) for first in range(hands)]


def number_of_tasks(expected: float, workers: int, together: bool) -> int:
    """Number of tasks of a search, from public facts only: schedulers see this number.

    Parameters
    ----------
    expected : float
        Expected number of runs.
    workers : int
    together : bool
        Whether runs of one task share work, so that each worker had best get one.
    """
    per_worker = min(TASKS_PER_WORKER, max(1, math.ceil(2 * expected / workers)))
    return workers if together else workers * per_worker


def block_sizes(expected: float, workers: int) -> Sequence[int]:
    """Sizes of all blocks but the last, for runs of which only the first success counts.

    They follow from public facts. The first blocks have one run for each worker, so that few runs
    come after the success; later blocks grow, so that there are few blocks.
    """
    sizes = list[int]()
    while sum(sizes) < REACH * expected:
        sizes.append(workers * max(1, int(GROWTH ** len(sizes))))
    return sizes


@contextlib.contextmanager
def task_context() -> Iterator[None]:
    """Context of one run: estimators start no workers, and numerical warnings are ignored."""
    with np.errstate(all="ignore"), parallel_config(backend="sequential"):
        yield


# --- failures -------------------------------------------------------------------------------------


class LeakDetected(Exception):
    """Error for an estimator that warns that it reads the data without noise."""


class WorkersError(RuntimeError):
    """Error for candidates that could not be run."""


CRASHES = (
    *("KilledWorker", "OutOfMemoryError", "WorkerCrashedError", "NodeDiedError", "ObjectLostError"),
    *WORKER_LOSSES,
)
NO_RUNS = "The candidates could not be run, so there is no model."
#: Names of errors and what they say: fixed sentences, as texts and names may come from code that
#: saw the records.
SENTENCES = {
    "MemoryError": "There is not enough memory. Use fewer workers (n_jobs).",
    **dict.fromkeys(
        CRASHES,
        "Workers of the cluster ended before their tasks did, again and again: usually for want of "
        "memory, or compiled code crashed. Give workers more memory, or try the candidates on "
        "public or made-up data.",
    ),
    "TimeoutError": "The cluster has no workers. Start some, or wait for them longer: "
    "parallel_config('dask', wait_for_workers_timeout=120).",
    "OSError": "The operating system refused a process, a file or a connection: see its limits on "
    "processes, open files and disks. Use fewer workers (n_jobs).",
}
COMMON_REMEDY = (
    "Workers need enough memory, this library, and the modules of estimators and scorers. Try the "
    "search on public or made-up data with the same workers."
)


def attempt(work: Callable[[], Result]) -> Result | None:
    """Result of a candidate's work, or None after any failure.

    No interrupt of the user reaches a private process.
    """
    try:
        return work()
    except BaseException as error:
        leaks = is_leak(error)
    if leaks:  # outside the handler: a chained exception could quote a record
        raise LeakDetected
    return None


def in_parallel(
    name: str, workers: Workers, tasks: Tasks[Result], counter: Counter = uncounted
) -> list[Result]:
    """Results of the tasks, in order.

    Errors have fixed words, with the type of the estimator at most, or those of the library's own.
    """
    try:
        return workers.run(tasks, counter)
    except LeakDetected:
        problem: Exception = leak_error(name)
    except Exception as error:
        problem = error_in_fixed_words(error)
    raise problem  # outside the handlers: a chained exception could quote a record


def error_in_fixed_words(error: BaseException) -> Exception:
    """Error with fixed words or those of the library, to be raised outside of the handler."""
    kinds = (private_process.PrivateProcessError, PrivacyError)
    if isinstance(error, kinds) and is_ours(type(error)):
        return type(error)(str(error))
    names = (kind.__name__ for kind in type(error).__mro__)
    return WorkersError(f"{NO_RUNS} {next(filter(None, map(SENTENCES.get, names)), COMMON_REMEDY)}")


def leak_error(name: str) -> LeakingEstimatorError:
    """Make the error for an estimator that gave a ``PrivacyLeakWarning``."""
    return LeakingEstimatorError(
        f"{name} reported that it would read something from the data without noise "
        "(PrivacyLeakWarning). Give the bounds, norms or classes that it asks for as public "
        "constants."
    )


def is_leak(error: BaseException) -> bool:
    """Return whether an error warns that the estimator would read data without noise."""
    return type(error).__name__ == "PrivacyLeakWarning"
