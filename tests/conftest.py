"""What tests of several folders start from."""

from __future__ import annotations

import gc
import os
import signal

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
    """Collect garbage again."""
    gc.enable()


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where Python was started with SIGINT ignored, as background jobs of a shell are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
