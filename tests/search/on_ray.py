"""Searches on a cluster of Ray, and what it still holds, told as JSON:
``python -m tests.search.on_ray``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import ray
from joblib import parallel_config
from ray.util.joblib import register_ray

from .left_on_a_cluster import FAILING, failed, files, found_in, marked, search
from .on_a_cluster import released, searches
from .toys import NoisyCentroids, Slow, two_blobs


def left():
    """Bytes that are still in the stores of objects; they go a moment after a search."""
    deadline = time.monotonic() + 60
    while True:
        cases = (ray.cluster_resources, ray.available_resources)
        every, free = (found().get("object_store_memory", 0.0) for found in cases)
        if every == free or time.monotonic() > deadline:
            return every - free
        time.sleep(0.2)


def lose_a_worker():
    """End a process that does a task now."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if one.read_bytes().startswith(b"ray::on_a_worker"):
                return os.kill(int(one.parent.name), signal.SIGKILL)
    return None


def main():
    X, y = two_blobs(400)
    alone = {name: released(one.fit(X, y)) for name, one in searches(NoisyCentroids()).items()}
    told = {}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        try:
            ray.init(
                num_cpus=2,
                include_dashboard=False,
                object_store_memory=80 * 2**20,
                log_to_driver=False,
                _temp_dir=folder,  # a short name: sockets lie there
            )
        except Exception as error:
            return print(json.dumps({"no cluster": repr(error)}))
        register_ray()
        with parallel_config("ray"):
            entries = searches(NoisyCentroids(), n_jobs=-1).items()
            told["same"] = {name: released(one.fit(X, y)) == alone[name] for name, one in entries}
            losing = threading.Timer(2.0, lose_a_worker)
            losing.start()
            told["after a loss"] = (
                released(searches(Slow(), n_jobs=-1)["random"].fit(X, y)) == alone["random"]
            )
            losing.join()
            X, y = marked()
            spent = search(NoisyCentroids(), 8).fit(X, y).privacy_spent_
            told["assumed"] = sum(
                "stores and connections are trusted" in one for one in spent.assumptions
            )
            told["failures"] = {
                name: failed(estimator, X[:1000], y[:1000]) for name, estimator in FAILING.items()
            }
        told["left"] = left()
        told["on the disk"] = found_in(files(folder))
        ray.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
