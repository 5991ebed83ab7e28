"""What several tests of the searches start from."""

from __future__ import annotations

from functools import partial

import pytest

from .toys import SEARCHES, search_of


@pytest.fixture(params=SEARCHES)
def make(request):
    """(estimator, space, more) to a search that has a plan: once for each kind."""
    return partial(search_of, request.param)
