"""Clusters of Dask and Ray.

The private process connects to them, and workers start private processes of their own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend

from ...privacy import PrivacyError
from .. import _private_process as private_process
from .workers import WORKER_LOSSES, Counter, Tasks, Threads, Workers, uncounted

Result = TypeVar("Result")

TRUSTED_CLUSTER = (
    "Candidates run on a cluster: its workers, schedulers, stores and connections are trusted as "
    "the caller is."
)
#: Seconds before everything is sent again: the scheduler notices a moment later which workers are
#: gone.
PAUSES = (1.0, 5.0)


@dataclass
class DaskWorkers(Workers):
    """Workers of Dask, each of which does a task in a private process of its own.

    Parameters
    ----------
    number : int
    client : distributed.Client
    options : dict
        As ``Client.submit`` takes them.
    timeout : float
        Seconds to wait for a worker.
    """

    number: int = 1
    client: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    timeout: float = 10.0
    _records: Any = None

    def run(self, tasks: Tasks[Result], counter: Counter = uncounted) -> list[Result]:
        """Results of the tasks.

        The tasks are sent again, with the same seeds, if all workers with the records are lost.
        """
        pickled = [private_process.for_workers(task) for task in tasks]
        for pause in (*PAUSES, None):
            try:
                return list(map(private_process.value_of, self._answers(pickled, counter)))
            except Exception as error:
                if pause is None or type(error).__name__ not in WORKER_LOSSES:
                    raise
            self._records = None
            time.sleep(pause)
        raise AssertionError("The last attempt returns or raises.")

    def _answers(self, pickled: Sequence[bytes], counter: Counter) -> list[bytes]:
        from distributed import as_completed

        # a cluster grows by the tasks that wait
        self.client.submit(int, pure=False).result(timeout=self.timeout)
        if self._records is None:
            self._records = self.client.scatter(private_process.content_for_workers(), hash=False)
        submit = partial(self.client.submit, private_process.on_a_worker, **self.options)
        sent = [submit(task, self._records, pure=False) for task in pickled]
        answers: dict[Any, bytes] = {}
        for future in as_completed(sent, loop=self.client.loop):  # at once, while its worker lives
            answers[future.key] = future.result()
            counter(len(answers))
        return [answers[future.key] for future in sent]


@contextlib.contextmanager
def on_dask(number: int, connect: Callable[..., Any], **settings: Any) -> Iterator[Workers]:
    """Workers of a cluster of Dask, to which this process is connected until the end."""
    with connect(set_as_default=False) as client:
        yield DaskWorkers(number, client, **settings)


@dataclass
class RayWorkers(Workers):
    """Workers of Ray, each of which does a task in a private process of its own.

    Parameters
    ----------
    number : int
    options : dict
        As remote functions of Ray take them.
    """

    number: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    _records: Any = None

    def run(self, tasks: Tasks[Result], counter: Counter = uncounted) -> list[Result]:
        """Results of the tasks. Ray does those of a lost worker again; seeds stay."""
        import ray

        if self._records is None:
            self._records = ray.put(private_process.content_for_workers())
        remote = ray.remote(**{"num_cpus": 1, **self.options})(private_process.on_a_worker)
        sent = [remote.remote(private_process.for_workers(task), self._records) for task in tasks]
        running = sent
        while running:
            _, running = ray.wait(running)
            counter(len(sent) - len(running))
        return [private_process.value_of(answer) for answer in ray.get(sent)]


@contextlib.contextmanager
def on_ray(
    number: int, address: str, runtime: dict[str, Any], options: dict[str, Any]
) -> Iterator[Workers]:
    """Workers of a cluster of Ray; what it holds for this process is gone at the end."""
    import ray

    ray.init(address, runtime_env=runtime, log_to_driver=False)
    try:
        yield RayWorkers(number, options)
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Workplace:
    """Choice of workers by ``n_jobs`` and joblib's configuration, before the private process.

    Parameters
    ----------
    number : int
        Number of workers, now or later: ``n_jobs`` is how far a cluster may grow.
    cluster : callable or None
        Makes the block with workers of a cluster, from their number.
    """

    number: int = 1
    cluster: Callable[[int], AbstractContextManager[Workers]] | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about the workers, as plain sentences."""
        return () if self.cluster is None else (TRUSTED_CLUSTER,)

    @property
    def threads(self) -> int | None:
        """Number of threads of linear algebra in one run; None for the libraries' own number."""
        alone = self.number == 1 or self.cluster is not None
        return None if alone else max(1, cpu_count() // self.number)

    def entered(self) -> AbstractContextManager[Workers]:
        """Block with workers, which are let go of at the end."""
        if self.cluster is None:
            return contextlib.nullcontext(Threads(self.number))
        return self.cluster(self.number)


def workplace_for(n_jobs: int | None) -> Workplace:
    """Workers that the user has chosen.

    Raises
    ------
    PrivacyError
        For a cluster with which searches are not tested, or that other processes cannot reach.
    """
    backend = get_active_backend()[0]
    number = max(1, int(effective_n_jobs(n_jobs)))  # a cluster without any is refused, not paid for
    of_joblib = type(backend).__module__ == "joblib._parallel_backends"
    if of_joblib or getattr(backend, "supports_sharedmem", False):
        return Workplace(number)
    name = type(backend).__name__
    if name not in CLUSTERS:
        raise PrivacyError(
            f"Found joblib's backend {name}, with which searches are not tested: its logs and "
            'stores may keep records. Use Dask or Ray (parallel_config("dask"), "ray"), or '
            "joblib's own workers (n_jobs=2)."
        )
    return Workplace(max(number, n_jobs or 1), CLUSTERS[name](backend))


def connection_of(client: Any) -> Callable[..., Any]:
    """Maker of clients like one of Dask, for processes of their own.

    Raises
    ------
    PrivacyError
        For a cluster that other processes cannot reach.
    """
    from distributed import Client

    address = client.scheduler.address
    if address.startswith("inproc:"):
        raise PrivacyError(
            f"Found a Dask cluster inside of this process ({address.partition('/')[0]}): private "
            "work is done in a process of its own, which cannot reach it. Use "
            "LocalCluster(processes=True), or n_jobs without Dask."
        )
    return partial(Client, address=address, security=client.security)


def _dask_of(backend: Any) -> Callable[[int], AbstractContextManager[Workers]]:
    options, timeout = backend.submit_kwargs, backend.wait_for_workers_timeout
    return partial(on_dask, connect=connection_of(backend.client), options=options, timeout=timeout)


def _ray_of(backend: Any) -> Callable[[int], AbstractContextManager[Workers]]:
    import ray

    if not ray.is_initialized() or ray.util.client.ray.is_connected():
        raise PrivacyError(
            "Found joblib's backend of Ray in a process that is not part of a cluster of Ray, so "
            "that no other process can join it from here. Write ray.init() or "
            'ray.init(address="auto") first, on a machine of the cluster.'
        )
    context = ray.get_runtime_context()
    options = backend.ray_remote_args or {}
    runtime = dict(context.runtime_env)
    return partial(on_ray, address=context.gcs_address, runtime=runtime, options=options)


#: Clusters with which searches are tested, by joblib's backends.
CLUSTERS: dict[str, Callable[[Any], Callable[[int], AbstractContextManager[Workers]]]] = {
    "DaskDistributedBackend": _dask_of,
    "RayBackend": _ray_of,
}
