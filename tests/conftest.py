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

# Tests that run side by side share the processors: threads of their own would only wait for each
# other. Read by NumPy and PyTorch when they are imported, which is later.
if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_sessionstart():
    """Nothing of what is collected is garbage: looking for some took a quarter of the time of
    collecting."""
    gc.disable()


def pytest_collection_finish():
    """Collect garbage again."""
    gc.enable()


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where Python was started with SIGINT ignored, as background jobs of a
    shell are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def place(request):
    """Private work is done in this process, which is faster, unless a test is marked with
    ``processes``."""
    if "processes" not in request.keywords:
        request.getfixturevalue("in_place")


@pytest.fixture
def in_place(monkeypatch):
    """Private work is done in this process: tests count and replace what candidates call."""
    from sklearn_dpsearch._process import generators_kept, without_warnings
    from sklearn_dpsearch.ledger._ledger_context import counted
    from sklearn_dpsearch.search import _private_process as private_process
    from sklearn_dpsearch.search._pickling import code_of

    class InPlace:
        def __init__(self, work, shared=(), writes=()):
            self.work, self.shared = work, shared

        @property
        def code(self):
            return code_of(self.work, self.shared)

        def start(self):
            return ()

        def __call__(self, *given, tell=lambda stage: None):
            monkeypatch.setattr(private_process, "tell", tell)
            with counted(), generators_kept(), without_warnings():
                return self.work(*given)

        def close(self):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(private_process, "prepare", lambda modules: None)
    monkeypatch.setattr(private_process, "PrivateProcess", InPlace)
    monkeypatch.setattr(private_process, "in_own_process", lambda work, threads=None: work())


@pytest.fixture
def begin(tmp_path):
    """A new ledger, by default one that refuses nothing."""
    from sklearn_dpsearch import PrivacyLedger

    def made(name="x", **given):
        return PrivacyLedger(tmp_path / name, **{"epsilon": float("inf"), "delta": 1e-5, **given})

    return made
