"""A search on a cluster is the same search, sends the records once, and leaves nothing private behind."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import delayed, parallel_config, register_parallel_backend
from joblib._parallel_backends import LokyBackend

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.search.execution import clusters
from sklearn_dpsearch.search.execution.cluster_payloads import Sealed, in_a_file, in_seals, sealed, unsealed
from sklearn_dpsearch.search.execution.clusters import (
    LOST,
    ResultsLost,
    at_once,
    complete,
    in_spite_of_losses,
    number_of_workers,
    raise_if_lost,
)
from sklearn_dpsearch.search.execution.failures import FailedThere, NotReadable, NotWritable
from sklearn_dpsearch.search.execution.tasks import configured

from .toys import NoisyCentroids, two_blobs

ROOT = Path(__file__).parents[2]


def test_what_tasks_share_is_handed_over_as_one_object():
    """Clusters send each argument of a task once, if they see that it is the same; nested ones go with every task."""
    X, y = np.zeros((5, 2)), np.zeros(5)
    found = list(configured((len, (X, y), {"more": X}) for _ in range(3)))
    assert all(given[0] is X and given[1] is y and named["more"] is X for _, given, named in found)


class Blabbing:
    """Cannot be pickled, and says why."""

    def __repr__(self):
        return "blabbed"

    def __reduce__(self):
        raise TypeError("blabbed")


class Unreadable:
    """Cannot be unpickled, and says why."""

    def __reduce__(self):
        return _blab, ()


def _blab(*given):
    raise TypeError("blabbed")


def sent(one):
    return pickle.loads(pickle.dumps(one, protocol=5))


def test_what_several_tasks_share_is_sealed_once_and_arrays_go_as_they_are():
    X, y, job = np.zeros((5, 2)), np.zeros(5), {"a": 1}
    tasks = list(sealed(delayed(len)(job, [i], X, y) for i in range(3)))
    assert all(given[1] is tasks[0][1][1] and given[3] is X and given[4] is y for _, given, _ in tasks)
    assert [given[2].open() for _, given, _ in tasks] == [[0], [1], [2]]


def test_objects_in_an_array_are_sealed():
    assert isinstance(next(sealed([delayed(len)(np.array([Blabbing()]))]))[1][1], Sealed)


def test_what_is_sealed_arrives_as_it_was():
    arrived = sent(sent(Sealed({"a": np.arange(4.0), "b": [1]})))
    assert arrived.open()["a"].tolist() == [0, 1, 2, 3]
    assert arrived.open()["b"] == [1]
    assert arrived.open() is arrived.open()


def test_an_array_in_a_file_stays_there_unless_it_is_a_part_or_was_changed(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    X = np.load(path, mmap_mode="r")
    ((_, given, _),) = sealed([delayed(len)(X)])
    assert len(pickle.dumps(given[1])) < 1000
    assert np.array_equal(sent(given[1]).open(), X)
    changed = np.load(path, mmap_mode="c")
    for other in (X[1:], changed, np.asarray(X)):
        assert in_a_file(other) is None
    np.save(path, np.zeros((4, 3)))
    with pytest.raises(NotReadable):
        sent(given[1]).open()


def test_arrays_in_a_seal_are_not_copied():
    X = np.zeros(1000)
    one = Sealed(X)
    pickle.dumps(one, protocol=5)
    assert np.shares_memory(one._arrays[0], X)


@pytest.mark.parametrize(("content", "raised"), [(Blabbing(), NotWritable), (Unreadable(), NotReadable)])
def test_what_cannot_be_sent_is_found_when_it_is_opened_and_says_nothing(content, raised):
    arrived = sent(Sealed([content]))
    with pytest.raises(raised) as caught:
        arrived.open()
    assert "blabbed" not in repr((caught.value, caught.value.__context__, caught.value.__cause__, arrived))


def test_an_error_of_a_task_is_a_result_in_fixed_words():
    with pytest.raises(FailedThere, match="could not be run by joblib") as caught:
        unsealed([sent(in_seals(_blab, Sealed("a record")))])
    assert "blabbed" not in str(caught.value)
    with pytest.raises(FailedThere, match="could not read what it was sent"):
        unsealed([sent(in_seals(len, sent(Sealed(Unreadable()))))])


def test_the_size_of_a_result_and_of_candidates_is_not_told_and_that_of_shared_things_is():
    assert sys.getsizeof(Sealed([0.0] * 100)) == sys.getsizeof(Sealed([]))
    assert sys.getsizeof(Sealed(np.zeros(100_000), shared=True)) > 800_000


def test_lost_records_are_sent_again_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(clusters, "PAUSES", (0.0, 0.0))

    class FutureCancelledError(Exception):
        pass

    lost = iter([True, True, False])

    def work():
        if next(lost):
            raise FutureCancelledError
        return "done"

    assert in_spite_of_losses(work) == "done"
    lost = iter([True] * 9)
    with pytest.raises(FutureCancelledError):
        in_spite_of_losses(work)
    assert sum(lost) >= 3
    with pytest.raises(ZeroDivisionError):
        in_spite_of_losses(lambda: 1 / 0)


def test_errors_for_which_joblib_would_wait_are_raised():
    done, failed, at_work, cancelled = (Future() for _ in range(4))
    done.set_result(1)
    failed.set_exception(ZeroDivisionError())
    cancelled.cancel()
    raise_if_lost(with_futures([done, at_work, cancelled, None], [done, at_work, cancelled]))
    with pytest.raises(ZeroDivisionError):
        raise_if_lost(with_futures([at_work, failed], []))
    with pytest.raises(ResultsLost):
        raise_if_lost(with_futures([at_work], [done, failed]))
    raise_if_lost(SimpleNamespace(_jobs=[SimpleNamespace(job=object())], _backend=object()))


def with_futures(of_tasks, of_arguments):
    """Parallel call on joblib's backend for Dask, as far as it is looked at."""
    sent = SimpleNamespace(_data={number: ("reference", future) for number, future in enumerate(of_arguments)})
    tasks = [SimpleNamespace(job=future) for future in of_tasks]
    return SimpleNamespace(_jobs=tasks, _backend=SimpleNamespace(call_data_futures=sent))


def test_results_that_are_missing_are_not_mistaken_for_all():
    assert complete([1, 2], 2) == [1, 2]
    with pytest.raises(ResultsLost):
        complete([1], 2)
    assert ResultsLost.__name__ in LOST


class Growing(LokyBackend):
    """A cluster of two workers now, whatever the user asks for."""

    def effective_n_jobs(self, n_jobs):
        return 2


register_parallel_backend("growing", Growing)


def test_a_cluster_that_grows_is_given_as_much_as_n_jobs_says():
    with parallel_config("growing"):
        assert [number_of_workers(n_jobs) for n_jobs in (None, -1, 1, 6)] == [2, 2, 1, 6]
        assert at_once({"n_jobs": 6, "pre_dispatch": "2*n_jobs"})["pre_dispatch"] == "all"
        assert at_once({"n_jobs": 6, "pre_dispatch": 3})["pre_dispatch"] == 3
    assert [number_of_workers(n_jobs) for n_jobs in (None, 1, 6)] == [1, 1, 6]
    assert at_once({"n_jobs": 6, "pre_dispatch": "2*n_jobs"})["pre_dispatch"] == "2*n_jobs"


def test_a_task_has_the_word_cuda_with_it_and_the_worker_finds_the_device(monkeypatch):
    torch = pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression
    from sklearn_dpsearch.nets.estimators import base

    asked = []
    monkeypatch.setattr(base, "device_of", lambda name: asked.append(name) or torch.device("cpu"))
    net = DPLogisticRegression(classes=[0, 1], device="cuda", noise_multiplier=1.0, max_epochs=1)
    DPRandomSearchCV(net, {"learning_rate_init": [0.1]}, n_iter=2, delta=1e-6).privacy_cost(100, public=True)
    arrived = sent(Sealed(net)).open()
    assert asked == []
    arrived.fit(np.zeros((50, 2), np.float32), np.arange(50) % 2)
    assert asked == ["cuda"]


def told_by(script):
    """What a script that starts clusters prints last, and all that its processes write."""
    pytest.importorskip("distributed")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.search.{script}"],
        capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1]), run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes as Linux does")
def test_a_search_on_two_worker_processes_is_the_same_search_and_sends_records_once():
    told, _ = told_by("on_a_cluster")
    all_are_the_same = dict.fromkeys(("random", "subset", "grid", "threshold", "doubling"), True)
    assert told["same"] == told["after a loss"] == all_are_the_same
    assert told["sent again"]  # by joblib alone such a search waits for ever, as the next task does
    assert "ended before their tasks did" in told["given up"]
    assert told["sent"] < 5  # times the records: to two workers, and what else goes over the line; 16 tasks and more
    assert told["same from a file"]
    assert told["sent from a file"] < 0.5  # labels and splits
    assert told["left"] == 0
    assert "shrink" not in told["logs"]


@pytest.mark.slow
def test_a_search_on_a_cluster_that_grows_and_loses_all_its_workers_is_the_same_search():
    pytest.importorskip("torch")
    told, _ = told_by("growing_cluster")
    assert told["refused without workers"]
    assert told["adaptive"]
    assert told["grown to"] == 2
    assert told["nets"]
    assert told["plans"] == [1, 0]  # here, and on the workers
    assert told["after the loss of all"]


@pytest.mark.slow
def test_nothing_private_is_left_on_a_cluster_whatever_happens():
    told, written = told_by("left_on_a_cluster")
    assert told["on the disk meanwhile"]
    errors = dict.fromkeys(told["failures"], "RuntimeError")
    assert told["failures"] == {**errors, "leaking": "LeakingEstimatorError"}
    assert told["left"] == 0
    assert told["on the disk"] == told["in the state"] == []
    assert not [mark for mark in ("blabbed", "0.12345678", "canary", "Run(score", "Split(") if mark in written]


def test_an_untested_backend_costs_nothing():
    kind = type("RayBackend", (Growing,), {"__module__": "ray.util.joblib.ray_backend"})
    register_parallel_backend("untested", kind)
    search = DPRandomSearchCV(NoisyCentroids(), {}, n_iter=2)
    with parallel_config("untested"), pytest.raises(PrivacyError, match="RayBackend.*Use Dask"):
        search.fit(*two_blobs(60))
    assert not hasattr(search, "privacy_spent_")
