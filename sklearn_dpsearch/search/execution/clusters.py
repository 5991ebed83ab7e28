"""What is different where joblib's tasks go to a cluster: how many workers count, losses, and what may not stay."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from joblib import Parallel, effective_n_jobs
from joblib.parallel import get_active_backend

from .._types import Workers

Found = TypeVar("Found")

#: Joblib's own backends raise what goes wrong, and log nothing.
NEAR = "joblib._parallel_backends"
#: What Dask raises if all workers that held something of the records are gone, and Ray if one is; and how often
#: everything is sent then.
LOST = frozenset({"FutureCancelledError", "FuturesCancelledError", "RayActorError", "ActorDiedError", "ResultsLost"})
TRIES = 3
#: joblib's default, which keeps tasks back until earlier ones are done.
JOBLIBS_OWN = "2*n_jobs"


def on_a_cluster() -> bool:
    """Whether tasks now go to something that joblib does not bring along, and to other processes."""
    return is_far(get_active_backend()[0])


def is_far(backend: Any) -> bool:
    """Whether this is such a backend."""
    return type(backend).__module__ != NEAR and not getattr(backend, "supports_sharedmem", False)


def number_of_workers(n_jobs: int | None) -> int:
    """How many there are, or will be: a cluster that grows is told by ``n_jobs`` how far."""
    here = max(1, int(effective_n_jobs(n_jobs)))
    return max(here, n_jobs or 1) if on_a_cluster() else here


def at_once(workers: Workers) -> Workers:
    """A cluster sees all tasks unless the user wants it otherwise: one that grows does so by those that wait."""
    waits = workers["pre_dispatch"] == JOBLIBS_OWN and on_a_cluster()
    return {**workers, "pre_dispatch": "all"} if waits else workers


def store_of(backend: Any) -> Callable[[Any], Any] | None:
    """Where what tasks share is put once. Dask does that by itself, and Ray would send it with every task."""
    if not type(backend).__module__.startswith("ray."):
        return None
    put: Callable[[Any], Any] = sys.modules["ray"].put
    return put


def in_spite_of_losses(work: Callable[[], Found]) -> Found:
    """Do what runs tasks, and do it again where all workers with the records were lost: the tasks have their seeds."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise
    return work()


class ResultsLost(Exception):
    """Some tasks have no result, and nothing said so."""


def complete(results: list[Found], number: int) -> list[Found]:
    """The results, if there are so many: the best of some candidates is not the best of all."""
    if len(results) != number:
        raise ResultsLost
    return results


@contextlib.contextmanager
def called_off(parallel: Parallel) -> Iterator[None]:
    """After an error or an interrupt no result stays on a cluster, where joblib's backend for Dask would keep some."""
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
    """What collects results waits for the next one, with the last one in its hands: wake it, and it ends."""

    async def wake() -> None:
        async with backend.waiting_futures.condition:
            backend.waiting_futures.condition.notify_all()

    with contextlib.suppress(AttributeError):  # another version of the library, which need not wait
        backend.client.loop.add_callback(wake)
