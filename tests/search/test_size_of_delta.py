"""A δ of 1/n allows one record to be published in full: refused where n is public, said where it is private."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import GaussianDP, PrivacyError, PureDP
from sklearn_dpsearch.privacy._checks import check_size_of_delta

from .toys import SEARCHES, search_of, two_blobs

X, y = two_blobs(300)
NOT_COMPARED = "That number is private (neighbours: add_remove), so the two were not compared."


def made(kind, relation, delta, guarantee=GaussianDP, **parameters):
    size = {"mu": 0.5} if guarantee is GaussianDP else {"epsilon": 0.5}
    declared = guarantee(**size, neighboring=relation)
    return search_of(kind, LogisticRegression(), {"C": [1.0]}, guarantee=declared, delta=delta, **parameters)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
@pytest.mark.parametrize("delta", [1 / 300, 0.01, 0.5])
def test_a_delta_that_promises_nobody_anything_is_refused(kind, relation, delta):
    with pytest.raises(PrivacyError, match=r"delta=.* for 300 records.*1/n = 0.00333.*e.g. delta=3e-05"):
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
    search = made(kind, relation, 1e-3)
    assert NOT_COMPARED not in " ".join(search.privacy_cost(300).assumptions)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("delta", [1e-6, 0.5])
def test_a_private_number_of_records_is_not_compared_with_it_and_that_is_said(kind, delta):
    """Whether there is an error, and what is said, must be the same for every number of records."""
    search = made(kind, "add_remove", delta)
    few, many = search.privacy_cost(3), search.privacy_cost(10**9)
    assert few.assumptions == many.assumptions == search.privacy_cost().assumptions
    assert NOT_COMPARED in few.assumptions[-1]
    assert f"delta={delta:g}" in few.assumptions[-1]


def test_a_pure_total_rests_on_no_delta():
    assert NOT_COMPARED not in " ".join(made("random", "add_remove", None, PureDP).privacy_cost().assumptions)


def test_a_public_number_is_compared():
    pytest.importorskip("torch")
    from sklearn_dpsearch import nets

    net = nets.DPLogisticRegression(classes=[0, 1], noise_multiplier=2.0)
    search = DPRandomSearchCV(net, {"max_epochs": [5]}, n_iter=3, delta=0.01)
    with pytest.raises(PrivacyError, match="delta=0.01 for 500 records"):
        search.privacy_cost(500)
    assert NOT_COMPARED not in " ".join(search.set_params(delta=1e-5).privacy_cost(500).assumptions)


def test_it_is_refused_before_the_noise_is_calibrated(monkeypatch):
    """A calibration takes seconds."""
    pytest.importorskip("torch")
    from sklearn_dpsearch import nets
    from sklearn_dpsearch.search.planning import plan

    monkeypatch.setattr(plan, "_calibrated", lambda request: pytest.fail("calibrated first"))
    net = nets.DPLogisticRegression(classes=[0, 1])
    search = DPRandomSearchCV(net, {"max_epochs": [5]}, n_iter=3, epsilon=1.0, delta=0.01)
    with pytest.raises(PrivacyError, match="for 300 records"):
        search.fit(X, y)
