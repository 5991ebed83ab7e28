"""Spaces that need no thought: around what estimators are set to."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, search_space
from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPTabularClassifier,
)
from sklearn_dpsearch.nets._estimators import layers
from sklearn_dpsearch.privacy import Fixed, PrivacyError, PureDP
from sklearn_dpsearch.search._planning.space import Space

from .toys import SEARCHES, NoisyCentroids, refuses_to_fit, search_of, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

X, y = two_blobs(300)
SMALL = {"sample_rate": 0.1, "max_epochs": 2, "classes": [0, 1]}
SETTINGS = {
    "grid": {"selection_epsilon": None},
    "threshold": {"threshold": 0.1, "n_iter": 50},
    "doubling": {"round_epsilon": None, "max_rounds": 2},
}


def made(kind, model):
    options = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
    return search_of(kind, model, "auto", **options, **SETTINGS.get(kind, {}))


class Centroids(NoisyCentroids):
    """Suggests a space of its own."""

    def search_space(self, *, grid=False):
        return [{"shrink": [0.0, 0.2]}]


def drawn(space, number=300):
    rng = np.random.RandomState(0)
    return [Space.of(space).draw(rng)[1] for _ in range(number)]


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_search_takes_the_space_of_its_estimator(kind):
    search = made(kind, Centroids()).set_params(delta=None)  # all of it is pure
    assert "'auto'" in repr(search)
    for copy in (clone(search), pickle.loads(pickle.dumps(search))):
        assert next(v for k, v in copy.get_params().items() if k.startswith("param_")) == "auto"
    search.fit(X, y)
    assert set(search.best_params_) == {"shrink"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEARCHES)
def test_nets_are_searched_around_what_they_are_set_to(kind):
    search = made(kind, DPMLPClassifier((8,), **SMALL)).fit(X, y)
    assert search.privacy_spent_.epsilon <= 8.0
    assert {"learning_rate_factor", "hidden_layer_sizes"} <= set(search.best_params_)


@pytest.mark.parametrize(
    "kind", [DPLogisticRegression, DPLinearRegression, DPMLPClassifier, DPMLPRegressor]
)
def test_draws_are_near_what_a_net_is_set_to(kind):
    net = kind(learning_rate_factor=3.0)
    found = drawn(net.search_space())
    factors = [one["learning_rate_factor"] for one in found]
    assert 2.4 <= min(factors) <= max(factors) <= 3.75
    assert np.mean(np.log(factors)) == pytest.approx(np.log(3.0), abs=0.1)
    if "hidden_layer_sizes" in found[0]:
        kept = [one["hidden_layer_sizes"] == "auto" for one in found]
        assert np.mean(kept) == pytest.approx(0.5, abs=0.1)
        assert {one["hidden_layer_sizes"] for one in found} == {"auto", (64, 64)}
    for one in found[:20]:
        clone(net).set_params(**one, noise_multiplier=1.0).privacy_guarantee()


def test_a_grid_is_small_and_holds_the_own_settings():
    (space,) = search_space(DPMLPClassifier((8, 4)), grid=True)
    expected = {"learning_rate_factor": [0.8, 1.0, 1.25], "hidden_layer_sizes": [(8, 4), (8, 4, 4)]}
    assert space == expected
    (space,) = DPMLPClassifier(()).search_space(grid=True)
    assert space["hidden_layer_sizes"] == [(), (64,)]


@pytest.mark.parametrize("hidden", ["auto", (), (32,)])
def test_layers_beside_bins_are_not_searched(hidden):
    net = DPTabularClassifier(
        {"age": (20, 80), "pay": ["low", "high"]}, target="pay", hidden_layer_sizes=hidden
    )
    assert search_space(net, grid=True) == [{"learning_rate_factor": [0.8, 1.0, 1.25]}]
    assert set(drawn(net.search_space(), 1)[0]) == {"learning_rate_factor"}


def test_spaces_of_steps_are_put_together_under_their_names():
    model = make_pipeline(FunctionTransformer(), DPLogisticRegression())
    expected = [{"dplogisticregression__learning_rate_factor": [0.8, 1.0, 1.25]}]
    assert search_space(model, grid=True) == expected


def test_where_no_space_is_known_it_is_said_before_records_are_used():
    search = DPRandomSearchCV(NoisyCentroids(), "auto")
    refuses_to_fit(search, PrivacyError, r"no space is known.*search_space\(grid=False\)", X, y)
    with pytest.raises(PrivacyError, match="no space is known"):
        DPRandomSearchCV(LogisticRegression(), "auto", guarantee=PureDP(epsilon=1.0)).privacy_cost()
    with pytest.raises(ValueError, match="without a step"):
        search_space(Centroids(), Centroids())
    with pytest.raises(ValueError, match="param_distributions"):
        DPRandomSearchCV(Centroids(), "best").fit(X, y)


# --- one candidate alone --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("drawn_as", ["auto", (64, 64)])
def test_layers_that_follow_the_number_of_records_are_decided_again(drawn_as, monkeypatch):
    """On a tenth of the records "auto" is one layer, on the rest two."""
    monkeypatch.setattr(layers, "MANY_RECORDS", 100)
    seen, choose = [], layers.hidden_layers_by_rule

    def watching(n):
        seen.append((round(n), choose(n)))
        return choose(n)

    monkeypatch.setattr(layers, "hidden_layers_by_rule", watching)
    net = DPMLPClassifier(noise_multiplier=2.0, max_steps=2, classes=[0, 1])
    space = {"hidden_layer_sizes": [drawn_as]}
    one = DPSubsetSearchCV(net, space, n_iter=Fixed(2), delta=1e-6).fit(X, y)
    assert set(seen[:-1]) == ({(round(0.1 * len(X)), (64,))} if drawn_as == "auto" else set())
    assert seen[-1:] == ([(round(0.9 * len(X)), (64, 64))] if drawn_as == "auto" else [])
    assert one.best_estimator_.hidden_layer_sizes_ == (64, 64)
