"""Workers of the user: their number, or a cluster, with lost results and what must not stay there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib import Parallel, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from ...privacy import PrivacyError
from .._types import Workers

Found = TypeVar("Found")

#: Joblib's own backends raise errors, and log nothing.
NEAR = "joblib._parallel_backends"
#: Errors of Dask if all workers that held data of the records are lost.
LOST = frozenset({"FutureCancelledError", "FuturesCancelledError", "ResultsLost"})
#: Seconds before everything is sent again: the scheduler notices a moment later which workers are gone.
PAUSES = (1.0, 5.0)
#: joblib's default, which keeps tasks back until earlier ones are done.
JOBLIBS_OWN = "2*n_jobs"


@dataclass(frozen=True)
class Workplace:
    """Place where candidates run: threads of the private process, each of which waits for a process, or a cluster.

    Parameters
    ----------
    number : int
        Number of workers, where there is no cluster.
    cluster : dict or None
        Parameters of a client of Dask.
    settings : dict
        Parameters of joblib's backend for it.
    """

    number: int
    cluster: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Let joblib use these workers."""
        if self.cluster is None:
            with parallel_config(backend="threading", n_jobs=self.number):
                yield
            return
        from distributed import Client

        with (
            Client(**self.cluster, set_as_default=False) as client,
            parallel_config(backend="dask", client=client, **(self.settings or {})),
        ):
            yield


def workplace(n_jobs: int | None) -> Workplace:
    """Place that the user has chosen by ``n_jobs`` and joblib's configuration.

    Raises
    ------
    PrivacyError
        For a cluster with which searches are not tested, or that other processes cannot reach.
    """
    if not on_a_cluster():
        return Workplace(number_of_workers(n_jobs))
    number_of_workers(n_jobs)  # a cluster without any is refused, not paid for
    backend = get_active_backend()[0]
    address = backend.client.scheduler.address
    if address.startswith("inproc:"):
        raise PrivacyError(
            f"Found a Dask cluster inside of this process ({address.partition('/')[0]}): private work is done in a "
            "process of its own, which cannot reach it. Use LocalCluster(processes=True), or n_jobs without Dask."
        )
    settings = {"wait_for_workers_timeout": backend.wait_for_workers_timeout, **backend.submit_kwargs}
    return Workplace(0, {"address": address, "security": backend.client.security}, settings)


def on_a_cluster() -> bool:
    """Return whether tasks now go to other processes, through a backend that is not joblib's own.

    Raises
    ------
    PrivacyError
        For backends with which searches are not tested.
    """
    backend = get_active_backend()[0]
    if not is_far(backend):
        return False
    if type(backend).__name__ != "DaskDistributedBackend":
        raise PrivacyError(
            f"Found joblib's backend {type(backend).__name__}, with which searches are not tested: its logs and stores "
            'may keep records. Use Dask (parallel_config("dask")), or joblib\'s own workers (n_jobs=2).'
        )
    return True


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
