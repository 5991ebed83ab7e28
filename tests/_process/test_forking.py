"""Threads that fork at once neither hang nor leave a lock behind, and their children can work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

EIGHT = """
import os, threading
from sklearn_dpsearch._process import DESCRIPTORS, GENERATORS, muted

def fork():
    for _ in range(25):
        with {around}:
            child = os.fork()
            if child == 0:
                with muted(), DESCRIPTORS.muted(), GENERATORS():
                    os._exit(0)
            assert os.waitpid(child, 0)[1] == 0

threads = [threading.Thread(target=fork) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with muted(), DESCRIPTORS.muted(), GENERATORS():
    pass
print("done", threading.active_count())
"""

FITS = """
import os, threading
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed
from tests.search.toys import NoisyCentroids, two_blobs

X, y = two_blobs(60)

class Forks(NoisyCentroids):
    def fit(self, X, y):
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        return super().fit(X, y)

def search():
    DPRandomSearchCV(Forks(), {"shrink": [0.0]}, n_iter=Fixed(4)).fit(X, y)

threads = [threading.Thread(target=search) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", threading.active_count())
"""


def ends(script):
    """Whether a process comes to its end; it and its children are ended if not."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, _ = process.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return said.splitlines()[-1:] == ["done 1"]


@pytest.mark.parametrize("around", ["threading.Lock()", "muted()"])
def test_eight_threads_that_fork_at_once_come_to_their_end(around):
    """The first of them does nothing but import the library."""
    assert ends(EIGHT.format(around=around))


def test_searches_that_overlap_and_whose_candidates_fork_come_to_their_end():
    assert ends(FITS)
