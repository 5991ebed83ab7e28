"""What a Dask cluster still holds after searches, told as JSON:
``python -m tests.search.left_on_a_cluster``.

Records carry a mark, and candidates have a number that is found again. Workers have so little
memory that they write what they hold to the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed

from .toys import NoisyCentroids, Slow

#: Eight bytes that are a number between -1 and 1, and one of candidates; both in every form in
#: which they are logged.
MARK = b"canary\x00\x3f"
NUMBER = 0.1234567890123
MARKS = (
    MARK, repr(float(np.frombuffer(MARK)[0])).encode()[:10], np.float64(NUMBER).tobytes(),
    b"0.12345678", b"blabbed",
)  # fmt: skip


class Leaking(NoisyCentroids):
    """Says that it would read the data."""

    def fit(self, X, y):
        class PrivacyLeakWarning(Exception):
            pass

        raise PrivacyLeakWarning("blabbed")


class Unwritable:
    """Cannot be pickled, and says why."""

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return "blabbed"

    def __reduce__(self):
        raise TypeError("blabbed")


class Unreadable(Unwritable):
    """Cannot be unpickled in another process."""

    def __reduce__(self):
        return unreadable_but_in, (os.getpid(),)


def unreadable_but_in(process):
    if os.getpid() != process:
        raise TypeError("blabbed")
    return Unreadable()


class Holding(NoisyCentroids):
    """Has something of the user's, before or after its training."""

    def __init__(self, held=None, learns=None, epsilon=1.0, shrink=0.0, random_state=None):
        super().__init__(epsilon=epsilon, shrink=shrink, random_state=random_state)
        self.held = held
        self.learns = learns

    def fit(self, X, y):
        if self.learns is not None:
            self.learned_ = self.learns()
        return super().fit(X, y)


FAILING = {
    "leaking": Leaking(),
    "unwritable estimator": Holding(Unwritable()),
    "unreadable estimator": Holding(Unreadable()),
    "unwritable model": Holding(learns=Unwritable),
    "unreadable model": Holding(learns=Unreadable),
}


def marked():
    """16 MB of records, with the mark in one column."""
    X = np.random.default_rng(0).uniform(-1, 1, (50_000, 40))
    X[:, 1] = np.frombuffer(MARK)[0]
    return X, (X[:, 0] > 0).astype(int)


def search(estimator, number=12):
    return DPRandomSearchCV(estimator, {"shrink": [NUMBER]}, n_iter=Fixed(number), n_jobs=-1)


def found_in(texts):
    return sorted({mark.hex() for text in texts for mark in MARKS if mark in text})


def files(folder):
    """What is in the files of a folder; some go away meanwhile."""
    for path in Path(folder).rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                yield path.read_bytes()


def state(client, folder):
    """All that the scheduler and the workers say of themselves."""
    client.dump_cluster_state(f"{folder}/state", format="yaml")
    with open(f"{folder}/state.yaml", "rb") as file:
        yield file.read()
    yield repr((client.get_task_stream(), client.profile(), client.get_events())).encode()
    yield repr((client.get_worker_logs(), client.get_scheduler_logs(), client.story())).encode()


def left(client):
    """Things that workers hold, and tasks that the scheduler knows; both go a moment after a
    search."""
    deadline = time.monotonic() + 60
    while True:
        tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        held = sum(client.run(lambda dask_worker: len(dask_worker.data)).values())
        if not tasks + held or time.monotonic() > deadline:
            return tasks + held
        time.sleep(0.2)


def seen_within(seconds, folder):
    """Whether records are ever in a file of the folder."""
    deadline = time.monotonic() + seconds
    while MARK.hex() not in found_in(files(folder)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def failed(estimator, X, y):
    """Error of a search that cannot succeed. The user's own texts are in it only before records are
    used."""
    one = search(estimator, 4)
    try:
        one.fit(X, y)
    except Exception as error:
        quotes = "blabbed" in repr((error, error.__context__)) and hasattr(one, "privacy_spent_")
        return "blabbed" if quotes else type(error).__name__
    return "nothing"


def main():
    X, y = marked()
    told = {}
    dask.config.set({f"distributed.worker.memory.{name}": share for name, share in SHARES.items()})
    with (
        tempfile.TemporaryDirectory() as spilled,
        tempfile.TemporaryDirectory() as elsewhere,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=spilled,
            memory_limit="1GiB",
        ) as cluster,
        Client(cluster) as client,
        parallel_config("dask"),
    ):
        with ThreadPoolExecutor() as pool:
            looking = pool.submit(seen_within, 60, spilled)
            search(Slow(), 20).fit(X, y)
            told["on the disk meanwhile"] = looking.result()
        told["failures"] = {
            name: failed(estimator, X[:1000], y[:1000]) for name, estimator in FAILING.items()
        }
        told["left"] = left(client)
        told["on the disk"] = found_in(files(spilled))
        told["in the state"] = found_in(state(client, elsewhere))
    print(json.dumps(told))


#: Of a worker's memory: with next to nothing it writes all that it holds, and goes on all the same.
SHARES = {"target": 0.001, "spill": 0.002, "pause": False, "terminate": False}

if __name__ == "__main__":
    sys.exit(main())
