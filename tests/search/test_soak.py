"""A service that fits one search after the other, for as long as it likes."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV, PrivacyLedger

from .toys import NoisyCentroids, two_blobs

FULL = os.environ.get("SKLEARN_DPSEARCH_FULL") == "1"
SEARCHES = 1000 if FULL else 160
WARM_UP = 40
#: Bytes by which all Python objects together may grow: caches of plans fill up, a leak of 1 kB a search shows.
SPARE = 400 * (SEARCHES - WARM_UP) if FULL else 100_000
X, y = two_blobs(60)
SPACE = {"shrink": [0.0, 0.3]}

LINUX = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux does")


def one_of_each(number, folder, ledger):
    """A fit of one of the searches, each with a state on the disk now and then."""
    kinds = (
        lambda **more: DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=3, **more),
        lambda **more: DPSubsetSearchCV(NoisyCentroids(), SPACE, n_iter=3, subset_fraction=0.5, **more),
        lambda **more: DPThresholdSearchCV(NoisyCentroids(), SPACE, threshold=0.0, n_iter=3, **more),
        lambda **more: DPGridSearchCV(NoisyCentroids(), SPACE, n_parts=4, selection_epsilon=1.0, **more),
    )
    more = {}
    if number % 5 == 0:
        more["checkpoint"] = folder / f"checkpoint-{number}"
    if number % 40 == 7:
        more["ledger"] = ledger
    kinds[number % 4](**more).fit(X, y)


def taken():
    """What a process holds: descriptors, threads, files, filters, handlers, the state of error handling."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "files": len(os.listdir(tempfile.gettempdir())),
        "filters": len(warnings.filters),
        "handlers": len(logging.getLogger().handlers),
        "errors": repr(np.geterr()),
    }


@LINUX
@pytest.mark.slow
def test_a_thousand_searches_in_a_row_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))  # other processes use the common one
    (tmp_path / "own").mkdir()
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=10_000.0, delta=0.0)
    for number in range(WARM_UP):
        one_of_each(number, tmp_path, ledger)
    before = taken()
    gc.collect()
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        for number in range(WARM_UP, SEARCHES):
            one_of_each(number, tmp_path, ledger)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert taken() == before
    assert grown < SPARE
    assert {path.name for path in tmp_path.iterdir()} == {"own", "data.ledger", "data.ledger.lock"}


@LINUX
@pytest.mark.slow
def test_eight_threads_that_fit_at_once_leave_nothing_behind_either(tmp_path):
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=10_000.0, delta=0.0)
    one_of_each(0, tmp_path, ledger)
    before = taken()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: one_of_each(number, tmp_path, ledger), range(1, SEARCHES // 2)))
    after = taken()
    assert {**after, "files": 0} == {**before, "files": 0}
