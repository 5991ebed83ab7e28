"""A service that fits one search after the other, for as long as it likes: SKLEARN_DPSEARCH_SOAK
seconds."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import tempfile
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from sklearn_dpsearch import PrivacyLedger

from .forked import net_search
from .toys import NoisyCentroids, holds_a_release_alone, search_of, two_blobs

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux does"
    ),
]

FULL = os.environ.get("SKLEARN_DPSEARCH_FULL") == "1"
#: How many searches at least, and for how many seconds.
SEARCHES = 1000 if FULL else 40
SECONDS = float(os.environ.get("SKLEARN_DPSEARCH_SOAK", "10"))
WARM_UP = 60 if FULL else 20
#: Bytes by which all Python objects together may grow, for each search: caches of plans fill up, a
#: leak of 1 kB shows.
SPARE = 200
#: Caches of plans, which fill up once.
CACHES = 150_000
#: Bytes by which the process may grow, whatever holds them: what compiled code never frees shows
#: only here.
PROCESS = 48 * 2**20
X, y = two_blobs(60)


def one_of_each(number, folder, ledger):
    """A fit of one of the searches, each with a state on the disk now and then, or over nets."""
    kind = ("random", "subset", "threshold", "grid")[number % 4]
    of_nets = number % 20 == 9 and find_spec("torch")
    search = net_search() if of_nets else search_of(kind, NoisyCentroids(), {"shrink": [0.0, 0.3]})
    if number % 5 == 0:
        search.checkpoint = folder / f"checkpoint-{number}"
    if number % 40 == 7:
        search.ledger = ledger
    search.fit(X, y)


def taken():
    """What a process holds: descriptors, threads, files, filters, handlers, the state of error
    handling."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "children": len(multiprocessing.active_children()),
        "files": len(os.listdir(tempfile.gettempdir())),
        "filters": len(warnings.filters),
        "handlers": len(logging.getLogger().handlers),
        "errors": repr(np.geterr()),
    }


def left(before, within=60.0):
    """What a process holds beyond what it held ``before``, once threads that were joined are gone
    for the system too.

    Python's ``join`` returns before the system's thread has ended, and the threads of OpenMP that
    it had: on a busy machine they are seen for a moment longer. What is still there after a minute
    is a leak.
    """
    end = time.monotonic() + within
    while True:
        now = taken()  # idle workers of other tests may have ended meanwhile
        other = {name: value for name, value in now.items() if value != before[name]}
        more = {name: value for name, value in other.items() if not is_less(value, before[name])}
        if not more or time.monotonic() > end:
            return more
        time.sleep(0.05)


def is_less(value, before):
    return isinstance(value, int) and value < before


def resident():
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 2**10


def in_a_row(folder, ledger):
    """Fit until the time is over; how many, and by how much Python's objects and the process have
    grown."""
    number, end = WARM_UP, time.monotonic() + SECONDS
    process, start = resident(), tracemalloc.get_traced_memory()[0]
    while number < SEARCHES or time.monotonic() < end:
        one_of_each(number, folder, ledger)
        number += 1
        if number % 20 == 0:
            gc.collect()  # Python seldom looks for cycles where many modules are loaded
    gc.collect()
    return number - WARM_UP, tracemalloc.get_traced_memory()[0] - start, resident() - process


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """One in the folder of a test, which also has a place for temporary files: other processes use
    the common one."""
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))
    return PrivacyLedger(tmp_path / "data.ledger", epsilon=1e6, delta=0.0)


@pytest.fixture(autouse=True)
def _alone():
    """Idle workers that earlier tests left would end at some time, and count for less then."""
    get_reusable_executor().shutdown(wait=True)
    gc.collect()


def test_searches_in_a_row_leave_nothing_behind(tmp_path, ledger):
    for number in range(WARM_UP):
        one_of_each(number, tmp_path, ledger)
    before = taken()
    gc.collect()
    tracemalloc.start()
    try:
        number, objects, process = in_a_row(tmp_path, ledger)
    finally:
        tracemalloc.stop()
    print(
        f"{number} searches: objects grew by {objects:,} bytes, the process by {process:,}; it "
        f"holds {taken()}"
    )
    assert not left(before)
    assert objects < CACHES + SPARE * number
    assert process < PROCESS
    kept = set(tmp_path.glob("checkpoint-*"))
    assert all(map(holds_a_release_alone, kept))
    expected = {"own", "data.ledger", "data.ledger.lock"}
    assert {path.name for path in set(tmp_path.iterdir()) - kept} == expected


def test_eight_threads_that_fit_at_once_leave_nothing_behind_either(tmp_path, ledger):
    for number in (0, 9):  # what libraries leave when they are imported is theirs
        one_of_each(number, tmp_path, ledger)
    before = taken()
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda number: one_of_each(number, tmp_path, ledger), range(1, SEARCHES // 2))
        )
    assert not left(before)
