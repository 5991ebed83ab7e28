"""A search on a cluster is the same search, sends the records once, and leaves nothing private
behind."""

from __future__ import annotations

import os
import pickle
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import LokyBackend

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.search import _private_process as private_process
from sklearn_dpsearch.search._execution import clusters
from sklearn_dpsearch.search._execution.clusters import DaskWorkers, workplace_for
from sklearn_dpsearch.search._serving import VALUE

from ..clusters import told_by
from .toys import NoisyCentroids, refuses_to_fit, two_blobs

#: Clusters whose workers are lost and come back: many minutes, as each run is a process there too.
FULL = pytest.mark.skipif(
    os.environ.get("SKLEARN_DPSEARCH_FULL") != "1", reason="takes long: SKLEARN_DPSEARCH_FULL=1"
)
#: Errors of searches that cannot succeed, by what makes them fail.
FAILURES = {
    "leaking": "LeakingEstimatorError", "unwritable estimator": "PrivacyError",
    "unreadable estimator": "PrivateProcessError", "unwritable model": "PrivacyError",
    "unreadable model": "PrivateProcessError",
}  # fmt: skip
#: Texts that no process of a cluster may write.
SECRET = ("blabbed", "0.12345678", "canary", "Run(score", "Split(")


class FutureCancelledError(Exception):
    """Named like an error of Dask."""


class Client:
    """A cluster that loses everything some times."""

    loop = None

    def __init__(self, losses, lost=FutureCancelledError):
        self.losses, self.lost, self.sent = losses, lost, 0

    def scatter(self, content, hash):
        self.sent += 1
        return Future()

    def submit(self, work, *given, pure):
        future = Future()
        future.key = id(future)
        if given and self.losses:
            self.losses -= 1
            future.set_exception(self.lost())
        else:
            future.set_result(VALUE + pickle.dumps("done"))
        return future


@pytest.fixture
def no_pause(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("distributed.as_completed", lambda sent, loop: sent)
    monkeypatch.setattr(clusters, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(private_process, "content_for_workers", lambda: None)


def test_lost_records_are_sent_again_but_not_for_ever(no_pause):
    client = Client(2)
    assert DaskWorkers(client=client).run([str]) == ["done"]
    assert client.sent == 3
    with pytest.raises(client.lost):
        DaskWorkers(client=Client(9, client.lost)).run([str])
    once = Client(9, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        DaskWorkers(client=once).run([str])
    assert once.sent == 1


class Growing(LokyBackend):
    """A cluster of two workers now, whatever the user asks for."""

    client = SimpleNamespace(scheduler=SimpleNamespace(address="tcp://here"), security=None)
    submit_kwargs, wait_for_workers_timeout = {}, 10.0

    def effective_n_jobs(self, n_jobs):
        return 2


Growing.__name__ = "DaskDistributedBackend"  # by which it is known
register_parallel_backend("growing", Growing)


def test_a_cluster_that_grows_is_given_as_much_as_n_jobs_says():
    with parallel_config("growing"):
        assert [workplace_for(n_jobs).number for n_jobs in (None, -1, 1, 6)] == [2, 2, 1, 6]
    assert [workplace_for(n_jobs).number for n_jobs in (None, 1, 6)] == [1, 1, 6]


@pytest.mark.slow
@FULL
@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes as Linux does")
def test_a_search_on_two_worker_processes_is_the_same_search_and_sends_records_once():
    told = told_by("search.on_a_cluster")
    all_are_the_same = dict.fromkeys(("random", "subset", "grid", "threshold", "doubling"), True)
    assert told["same"] == told["after a loss"] == all_are_the_same
    # times the records: to two workers, and what else goes over the line; 16 tasks and more
    assert told["sent"] < 5
    assert told["same from a file"]
    assert told["sent from a file"] < 0.5  # labels and splits
    assert told["left"] == 0
    assert "shrink" not in told["logs"]


@pytest.mark.slow
@FULL
def test_nothing_private_is_left_on_a_cluster_whatever_happens():
    told = told_by("search.left_on_a_cluster")
    assert told["on the disk meanwhile"]
    assert told["failures"] == FAILURES
    assert told["left"] == 0
    assert told["on the disk"] == told["in the state"] == []
    assert not [mark for mark in SECRET if mark in told["written"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux has them")
def test_searches_on_ray_are_the_same_searches_and_leave_nothing_private():
    told = told_by("search.on_ray", "ray")
    if "no cluster" in told:
        pytest.skip(f"no cluster of Ray can start here: {told['no cluster']}")
    expected = dict.fromkeys(("random", "subset", "grid", "threshold", "doubling"), True)
    assert told["same"] == expected
    assert told["after a loss"]
    assert told["assumed"] == 1
    assert told["failures"] == FAILURES
    assert told["left"] == 0
    assert told["on the disk"] == []
    assert not [mark for mark in SECRET if mark in told["written"]]


@pytest.mark.parametrize(
    ("backend", "remedy"), [("ray", r"Write ray.init\(\)"), ("untested", "SparkBackend.*Use Dask")]
)
def test_a_backend_that_cannot_be_used_costs_nothing(backend, remedy):
    if backend == "ray":
        pytest.importorskip("ray.util.joblib").register_ray()
    else:
        kind = type("SparkBackend", (Growing,), {"__module__": "joblibspark.backend"})
        register_parallel_backend("untested", kind)
    with parallel_config(backend):
        refuses_to_fit(
            DPRandomSearchCV(NoisyCentroids(), {}, n_iter=2), PrivacyError, remedy, *two_blobs(60)
        )
