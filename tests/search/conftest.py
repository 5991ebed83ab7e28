"""What several tests of the searches start from."""

from __future__ import annotations

from functools import partial

import pytest

from sklearn_dpsearch.search import _base

from .toys import SEARCHES, search_of


@pytest.fixture(params=SEARCHES)
def make(request):
    """(estimator, space, more) to a search that has a plan: once for each kind."""
    return partial(search_of, request.param)


@pytest.fixture
def unrehearsed(monkeypatch):
    """Fits start without a rehearsal: for tests that count trainings, or that need candidates to
    fail in ``fit``."""
    monkeypatch.setattr(_base, "rehearse", lambda *given: None)
