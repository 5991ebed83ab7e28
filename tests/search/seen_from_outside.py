"""Everything that a user's process can see of a fit, for a process of its own."""

from __future__ import annotations

import cProfile
import functools
import gc
import json
import logging
import os
import pstats
import re
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from sklearn_dpsearch import DPRandomSearchCV

from .toys import NoisyCentroids, seed_of_runs, two_blobs

X, y = two_blobs(60)
POOL = ThreadPoolExecutor(2)
RUNS, RECORDS = [], []
COUNTED = {"global": 0}


@functools.lru_cache
def cached(number):
    """A cache whose size tells how often it was asked for something new."""
    return number


class Talkative(NoisyCentroids):
    """Leaves a trace wherever a process keeps one."""

    made = 0

    def fit(self, X, y):
        type(self).made += 1
        COUNTED["global"] += 1
        cached(COUNTED["global"])
        self.name_ = f"model_{type(self).made}"
        RUNS.append(self.shrink)
        print("secret out")
        print("secret err", file=sys.stderr)
        os.write(2, b"secret descriptor\n")
        warnings.warn("secret warning", stacklevel=1)
        logging.getLogger("candidates").error("secret record")
        POOL.submit(RUNS.append, "pool").result()
        threading.Thread(target=RUNS.append, args=("thread",)).start()
        os.environ["CANDIDATES"] = os.environ.get("CANDIDATES", "") + "i"
        np.random.seed(0)
        re.compile(f"secret{COUNTED['global']}")
        tempfile.mkstemp(prefix="secret")
        with open(os.path.join(tempfile.gettempdir(), "counted"), "a") as file:
            file.write("i")
        self.files_ = len(Path(tempfile.gettempdir(), "counted").read_text())
        self.loop_ = [self]  # garbage
        return super().fit(X, y)


def autologged(cls):
    """Patch ``fit`` as tools that log each training do."""
    original = cls.fit

    def fit(self, *given):
        RECORDS.append(type(self).__name__)
        return original(self, *given)

    cls.fit = fit


def state():
    """All that can be seen at a moment."""
    return {
        "runs": list(RUNS), "records of a patched fit": list(RECORDS),
        "counters": [Talkative.made, COUNTED["global"], cached.cache_info().currsize],
        "environment": sorted(os.environ.items()),
        "streams": [id(sys.stdout), id(sys.stderr), os.fstat(1).st_ino, os.fstat(2).st_ino],
        "hooks": [
            id(sys.excepthook), id(sys.unraisablehook), id(threading.excepthook),
            id(threading.Thread.start),
        ],
        "logging": [
            id(logging.Logger.handle), id(logging.Handler.handle), len(logging.root.handlers),
        ],
        "warnings": [id(warnings._showwarnmsg), [repr(one) for one in warnings.filters]],
        "generator": hash(np.random.get_state()[1].tobytes()), "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "temporary files": sorted(os.listdir(tempfile.gettempdir())),
        "memory files": sorted(name for name in os.listdir("/dev/shm") if str(os.getpid()) in name),
        "modules": len(sys.modules), "patterns": len(re._cache) if hasattr(re, "_cache") else 0,
    }  # fmt: skip


def fitted(k, n_jobs):
    """Fit with K = k; return what can be seen after it, and how often each function was called."""
    options = {"n_iter": 4, "n_jobs": n_jobs, "random_state": seed_of_runs(k)}
    search = DPRandomSearchCV(Talkative(), {"shrink": [0.0, 0.1]}, **options)
    profile = cProfile.Profile()
    profile.runcall(search.fit, X, y)
    gc.collect()
    calls = {
        f"{Path(file).name}:{line}:{name}": counts[1]
        for (file, line, name), counts in pstats.Stats(profile).stats.items()
        if "sklearn_dpsearch" in file
    }
    model = search.best_estimator_
    return {**state(), "calls": calls, "model": [model.name_, model.files_, sorted(vars(model))]}


def main():
    """Print what is seen of fits with two and with nine runs, after others have filled the
    caches."""
    logging.root.addHandler(logging.StreamHandler(sys.stderr))
    autologged(Talkative)
    POOL.submit(int).result()
    for n_jobs in (None, 2):
        fitted(2, n_jobs), fitted(9, n_jobs)
    print(json.dumps([[fitted(k, n_jobs) for k in (2, 9)] for n_jobs in (None, 2)]))
