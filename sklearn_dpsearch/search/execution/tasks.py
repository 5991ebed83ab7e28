"""Tasks on private records: failures without texts, and a public number of tasks on a cluster."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

from ...privacy import LeakingEstimatorError
from .. import private_process
from .._types import Workers
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


@contextlib.contextmanager
def in_task() -> Iterator[None]:
    """Context of one run: estimators start no workers, and numerical warnings are ignored."""
    with np.errstate(all="ignore"), parallel_config(backend="sequential"):
        yield


def attempt(work: Callable[[], Found]) -> Found | None:
    """Result of a candidate's work, or None after any failure. No interrupt of the user reaches a private process."""
    try:
        return work()
    except BaseException as error:
        leaks = is_leak(error)
    if leaks:  # outside the handler: a chained exception could quote a record
        raise LeakDetected
    return None


def threads_of_one_run(workers: Workers) -> int | None:
    """Number of threads of linear algebra in one run; None for the libraries' own number."""
    number = number_of_workers(workers["n_jobs"])
    return None if number == 1 or on_a_cluster() else max(1, cpu_count() // number)


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
    """Results of joblib's tasks, in order; errors come without quoted objects.

    Parameters
    ----------
    name : str
        The estimator's type, for errors.
    tasks : iterable of delayed calls
        A number of them that is public: schedulers of clusters count and log tasks.
    workers : dict
    counter : callable, optional
        Told how many tasks are done, as they end: where that is public.
    """
    try:
        run = partial(_run, list(tasks), workers, counter)
        found: list[Any] = in_spite_of_losses(run) if on_a_cluster() else run()
        counter(len(found))  # some backends return results before counting them
        return found
    except LeakDetected:
        problem: Exception = would_leak(name)
    except Exception as error:
        problem = why(error)
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
    """Results of the tasks. A worker of a cluster does each of them in a private process of its own."""
    # joblib would put quick tasks together: how many there are would tell how long runs took
    parallel = Counted(verbose=0, batch_size=1, **at_once(workers))
    parallel.counter = counter
    if not on_a_cluster():
        found: list[Any] = parallel(tasks)
        return found
    content = private_process.content_for_workers()
    sent = [private_process.for_workers(partial(work, *given, **named)) for work, given, named in tasks]
    with called_off(parallel):
        done = parallel(delayed(private_process.on_a_worker)(one, content) for one in sent)
        return [private_process.value_of(one) for one in complete(done, len(tasks))]


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
