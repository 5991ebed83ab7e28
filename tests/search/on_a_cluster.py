"""Searches on a Dask cluster of two processes, told as JSON:
``python -m tests.search.on_a_cluster``."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from sklearn_dpsearch import DPRandomSearchCV

from .toys import NoisyCentroids, Slow, search_of, two_blobs

SPACE = {"shrink": [0.0, 0.2, 0.4]}


#: What a search is given beside what each kind needs; that for a threshold needs ten runs to reach
#: it.
SETTINGS = {
    "random": {"n_iter": 12}, "subset": {"n_iter": 12}, "grid": {"n_parts": 8},
    "threshold": {"threshold": 1.03, "n_iter": 12}, "doubling": {"n_parts": 6, "max_rounds": None},
}  # fmt: skip


def searches(model, **more):
    """One search of each kind."""
    return {
        kind: search_of(kind, model, SPACE, random_state=3, **own, **more)
        for kind, own in SETTINGS.items()
    }


def released(search):
    return [
        repr(search.best_params_),
        repr(getattr(search, "best_score_", None)),
        search.best_estimator_.centroids_.tolist(),
    ]


def loopback():
    """Bytes over this machine's own network so far."""
    with open("/proc/net/dev") as lines:
        return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))


def bytes_sent(X, y):
    """By a search of about 12 runs in 16 tasks or more."""
    before = loopback()
    DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=12, n_jobs=-1).fit(X, y)
    return loopback() - before


def in_a_file(folder, X):
    """The same records, which stay on the disk."""
    np.save(f"{folder}/X.npy", X)
    return np.load(f"{folder}/X.npy", mmap_mode="r")


def after_a_loss(search, X, y):
    """Release of a search during which a worker is lost; Dask may lose count of a cluster that
    loses several."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        parallel_config("dask"),
    ):
        pids = list(client.run(os.getpid).values())
        client.loop.call_later(1.0, os.kill, pids[0], signal.SIGKILL)
        return released(search.fit(X, y))


def main():
    X, y = two_blobs(400)
    wide = np.random.default_rng(0).uniform(-1, 1, (50_000, 40))
    alone = {
        name: released(search.fit(X, y)) for name, search in searches(NoisyCentroids()).items()
    }
    on_workers = searches(NoisyCentroids(), n_jobs=-1)
    told = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        parallel_config("dask"),
    ):
        told["same"] = {
            name: released(search.fit(X, y)) == alone[name] for name, search in on_workers.items()
        }
        mapped = on_workers["random"].fit(in_a_file(folder, X), y)
        told["same from a file"] = released(mapped) == alone["random"]
        told["sent from a file"] = (
            bytes_sent(in_a_file(folder, wide), (wide[:, 0] > 0).astype(int)) / wide.nbytes
        )
        told["sent"] = bytes_sent(wide, (wide[:, 0] > 0).astype(int)) / wide.nbytes
        told["logs"] = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
        deadline = time.monotonic() + 60
        while any(client.has_what().values()) and time.monotonic() < deadline:
            time.sleep(0.2)
        told["left"] = sum(map(len, client.has_what().values()))
    lossy = searches(Slow(), n_jobs=-1).items()
    told["after a loss"] = {
        name: after_a_loss(search, X, y) == alone[name] for name, search in lossy
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
