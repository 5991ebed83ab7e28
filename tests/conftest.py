"""What tests of several folders start from."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

import pytest
from hypothesis import settings

# The same examples every time, and no limit that a slow moment of the machine exceeds.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")

# Tests that run side by side share the processors: threads of their own would only wait for each other. Read by NumPy
# and PyTorch when they are imported, which is later.
if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_sessionstart():
    """Nothing of what is collected is garbage: looking for some took a quarter of the time of collecting."""
    gc.disable()


def pytest_collection_finish():
    """Collect garbage again. Nothing is frozen: each fit sets aside what was there before it."""
    gc.enable()


@pytest.fixture(autouse=True)
def silent_threads_end():
    """Fail a test that leaves a candidate's thread behind: replaced functions would stay in place for later tests."""
    yield
    silence = sys.modules.get("sklearn_dpsearch._process.silence")
    if silence is None or not silence._ROUTES.anyone:
        return
    end = time.monotonic() + 30
    while silence._ROUTES.anyone and time.monotonic() < end:
        time.sleep(0.01)
    assert not silence._ROUTES.anyone, [thread for thread in silence._SILENT_FOR_GOOD if thread.is_alive()]


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where Python was started with SIGINT ignored, as background jobs of a shell are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
