"""A δ of 1/n allows one record to be published in full: it is refused."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch.privacy import GaussianDP, PrivacyError, PureDP
from sklearn_dpsearch.privacy._checks import check_size_of_delta

from .toys import SEARCHES, search_of, two_blobs

X, y = two_blobs(300)


def made(kind, relation, delta, guarantee=GaussianDP, **parameters):
    size = {"mu": 0.5} if guarantee is GaussianDP else {"epsilon": 0.5}
    declared = guarantee(**size, neighboring=relation)
    return search_of(
        kind, LogisticRegression(), {"C": [1.0]}, guarantee=declared, delta=delta, **parameters
    )


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("delta", [1 / 300, 0.01, 0.5])
def test_a_delta_that_promises_nobody_anything_is_refused(kind, relation, delta):
    match = r"delta=.* for 300 records.*1/n = 0.00333.*e.g. delta=3e-05"
    with pytest.raises(PrivacyError, match=match):
        made(kind, relation, delta).fit(X, y)
    with pytest.raises(PrivacyError, match="for 300 records"):
        made(kind, relation, delta, PureDP).privacy_cost(300)


@pytest.mark.slow
def test_one_in_n_is_refused_for_every_n():
    """In doubles 49 · (1/49) is less than 1, and so is it for thousands of other numbers."""
    assert 1 / 49 * 49 < 1
    for n in range(2, 40_000):
        with pytest.raises(PrivacyError, match="promises nothing"):
            check_size_of_delta("delta", 1 / n, n)
    check_size_of_delta("delta", 0.999 / 40_000, 40_000)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_a_delta_below_one_in_n_is_fine(kind, relation):
    made(kind, relation, 1e-3).privacy_cost(300)
