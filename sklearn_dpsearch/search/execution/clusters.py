"""Tasks on a cluster: number of workers, lost results, and what must not stay there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from joblib import Parallel, effective_n_jobs
from joblib.parallel import get_active_backend

from ...privacy import PrivacyError
from .._types import Workers

Found = TypeVar("Found")

#: Joblib's own backends raise errors, and log nothing.
NEAR = "joblib._parallel_backends"
#: Packages of backends with which searches are not tested: their logs and stores may keep records.
UNTESTED = frozenset({"ray", "joblibspark"})
#: Errors of Dask if all workers that held data of the records are lost.
LOST = frozenset({"FutureCancelledError", "FuturesCancelledError", "ResultsLost"})
#: Seconds before everything is sent again: the scheduler notices a moment later which workers are gone.
PAUSES = (1.0, 5.0)
#: joblib's default, which keeps tasks back until earlier ones are done.
JOBLIBS_OWN = "2*n_jobs"


def on_a_cluster() -> bool:
    """Return whether tasks now go to other processes, through a backend that is not joblib's own.

    Raises
    ------
    PrivacyError
        For backends with which searches are not tested.
    """
    backend = get_active_backend()[0]
    if type(backend).__module__.partition(".")[0] in UNTESTED:
        raise PrivacyError(
            f"Found joblib's backend {type(backend).__name__}, with which searches are not tested: its logs and stores "
            'may keep records. Use Dask (parallel_config("dask")), or joblib\'s own processes (n_jobs=2).'
        )
    return is_far(backend)


def is_far(backend: Any) -> bool:
    """Return whether a backend sends tasks to other processes and is not joblib's own."""
    return type(backend).__module__ != NEAR and not getattr(backend, "supports_sharedmem", False)


def number_of_workers(n_jobs: int | None) -> int:
    """Number of workers, now or later: ``n_jobs`` is how far a cluster may grow."""
    here = max(1, int(effective_n_jobs(n_jobs)))
    return max(here, n_jobs or 1) if on_a_cluster() else here


def at_once(workers: Workers) -> Workers:
    """Show a cluster all tasks, unless the user sets ``pre_dispatch``: a cluster grows by the tasks that wait."""
    waits = workers["pre_dispatch"] == JOBLIBS_OWN and on_a_cluster()
    return {**workers, "pre_dispatch": "all"} if waits else workers


def in_spite_of_losses(work: Callable[[], Found]) -> Found:
    """Run tasks, and run them again if all workers with the records were lost; tasks that have seeds keep them."""
    for pause in PAUSES:
        try:
            return work()
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise
        time.sleep(pause)
    return work()


class ResultsLost(Exception):
    """Error for tasks whose results are missing without an error of the cluster."""


def complete(results: list[Found], number: int) -> list[Found]:
    """Return the results, or raise if some are missing: the best of some candidates is not the best of all."""
    if len(results) != number:
        raise ResultsLost
    return results


def raise_if_lost(parallel: Parallel) -> None:
    """Raise the error of a task for which joblib's backend for Dask would wait for ever (joblib 1.6).

    The backend tells ``Parallel`` of results only. It never tells of a task that the cluster gave up, nor of one that
    was not sent, because its arguments could not be.
    """
    for task in list(parallel._jobs):
        error = _error_of(task.job)
        if error is not None:
            raise error
    arguments = getattr(getattr(parallel._backend, "call_data_futures", None), "_data", {})
    if any(_error_of(sending) for _, sending in list(arguments.values())):
        raise ResultsLost


def _error_of(future: Any) -> BaseException | None:
    """Error of a future that is done, or None, as for other objects by which a backend may know a task."""
    if not isinstance(future, (Future, asyncio.Future)) or not future.done() or future.cancelled():
        return None
    found: BaseException | None = future.exception()
    return found


@contextlib.contextmanager
def called_off(parallel: Parallel) -> Iterator[None]:
    """Remove results from a cluster after an error or an interrupt: joblib's backend for Dask would keep some."""
    try:
        yield
    except BaseException:
        held = getattr(parallel._backend, "_results", None)
        if isinstance(held, dict):
            for future in list(held):
                future.cancel()
            held.clear()
            _let_go_of_the_last(parallel._backend)
        raise


def _let_go_of_the_last(backend: Any) -> None:
    """Wake the backend's collector of results, which waits while holding the last result; it then ends."""

    async def wake() -> None:
        async with backend.waiting_futures.condition:
            backend.waiting_futures.condition.notify_all()

    with contextlib.suppress(AttributeError):  # another version of the library, which need not wait
        backend.client.loop.add_callback(wake)
