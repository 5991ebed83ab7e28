"""What several tests of the searches start from."""

from __future__ import annotations

from functools import partial

import pytest

from sklearn_dpsearch._process import generators_kept, without_warnings
from sklearn_dpsearch.ledger.ledger_context import counted
from sklearn_dpsearch.search import _base, private_process

from .toys import SEARCHES, search_of


@pytest.fixture(params=SEARCHES)
def make(request):
    """(estimator, space, more) to a search that has a plan: once for each kind."""
    return partial(search_of, request.param)


@pytest.fixture
def unrehearsed(monkeypatch):
    """Fits start without a rehearsal: for tests that count trainings, or that need candidates to fail in ``fit``."""
    monkeypatch.setattr(_base, "rehearse", lambda *given: None)


@pytest.fixture(autouse=True)
def place(request):
    """Private work is done in this process, which is faster, unless a test is marked with ``processes``."""
    if "processes" not in request.keywords:
        request.getfixturevalue("in_place")


@pytest.fixture
def in_place(monkeypatch):
    """Private work is done in this process: tests count and replace what candidates call."""

    class InPlace:
        def __init__(self, work, shared=()):
            self.work = work

        def __call__(self, *given, tell=lambda stage: None):
            monkeypatch.setattr(private_process, "tell", tell)
            with counted(), generators_kept():
                return self.work(*given)

        def close(self):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    def in_own_process(work, threads=None):
        with without_warnings():
            return work()

    monkeypatch.setattr(private_process, "prepare", lambda modules: None)
    monkeypatch.setattr(private_process, "PrivateProcess", InPlace)
    monkeypatch.setattr(private_process, "in_own_process", in_own_process)
