"""Behaviour that all searches share: what each one releases, and what its results depend on."""

from __future__ import annotations

import pickle
import re

import pytest
from joblib import parallel_config
from scipy.sparse import coo_array, coo_matrix, csr_array

import sklearn_dpsearch
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP, best_of

from .toys import ALLOWED, SEARCHES, NoisyCentroids, Talkative, refuses_to_fit, search_of, two_blobs

#: Trainings are counted here.
pytestmark = pytest.mark.usefixtures("unrehearsed")

X, y = two_blobs(200)
SPACE = {"shrink": [0.0, 0.2, 0.5]}
#: With what every search ends with a model.
SUCCEEDS = {"threshold": {"threshold": -1e9, "n_iter": 1e3}, "doubling": {"round_epsilon": 50.0}}
OWN = {"subset": {"final_params_"}, "threshold": {"found_"}, "doubling": {"found_", "n_rounds_"}}
WITHOUT_SPREAD = {"grid", "doubling"}


def test_every_public_search_is_tried_here():
    public = {name for name in sklearn_dpsearch.__all__ if name.endswith("SearchCV")}
    assert public <= {make.__name__ for make, _ in SEARCHES.values()}


def fitted(kind, estimator=None, **given):
    estimator = NoisyCentroids() if estimator is None else estimator
    return search_of(kind, estimator, SPACE, **{**SUCCEEDS.get(kind, {}), **given}).fit(X, y)


@pytest.mark.parametrize("kind", [*SEARCHES, pytest.param("random", marks=pytest.mark.processes)])
def test_the_release_is_the_winner_and_nothing_else(kind):
    one = fitted(kind, Talkative(), random_state=0)
    spread = {"best_score_std_"} if kind in WITHOUT_SPREAD else set()
    expected = ALLOWED - spread | OWN.get(kind, set())
    assert set(vars(one)) - set(one.get_params(deep=False)) == expected
    assert set(one.cv_results_) == {"param_shrink", "params", "mean_test_score", "rank_test_score"}
    assert one.cv_results_["params"] == [one.best_params_]
    pickled = pickle.dumps(one)
    shown = pickled.decode("latin1") + repr(one) + repr(vars(one))
    shown += str(one.privacy_spent_) + one._repr_html_()
    assert set(re.findall(r"token-\w+", shown)) == {one.best_estimator_.token_}
    assert X[0].tobytes() not in pickled
    assert one.best_estimator_.random_state is None


@pytest.mark.parametrize(("kind", "given"), [
    *((kind, {}) for kind in SEARCHES), ("random", {"cv": 3}),
    ("subset", {"cv": 3, "train_on": "all", "validate_on": "subset"}),
])  # fmt: skip
def test_results_do_not_depend_on_the_number_of_jobs(kind, given):
    def outcome(n_jobs):
        with parallel_config(backend="threading"):
            one = fitted(kind, n_jobs=n_jobs, random_state=7, **given)
        return one.best_params_, repr(one.best_score_), one.best_estimator_.centroids_.tolist()

    assert outcome(1) == outcome(2)


@pytest.mark.parametrize("kind", SEARCHES)
def test_an_empty_table_costs_nothing(kind):
    refuses_to_fit(search_of(kind, NoisyCentroids(), SPACE), ValueError, "0 records", X[:0], y[:0])


@pytest.mark.parametrize("kind", SEARCHES)
def test_without_a_seed_every_fit_draws_anew(kind):
    assert len({fitted(kind).best_estimator_.centroids_.tobytes() for _ in range(2)}) == 2


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_search_is_itself_a_private_estimator(kind):
    inner = search_of(kind, NoisyCentroids(), SPACE)
    promised = inner.privacy_guarantee(len(X))
    assert promised.epsilon_at(0.0) == inner.privacy_cost(len(X)).epsilon
    outer = DPRandomSearchCV(inner, {"estimator__shrink": [0.0, 0.5]}, n_iter=2)
    searched = best_of(promised, 2).epsilon_at(0.0)  # the score may cost more
    assert searched * (1 - 1e-9) <= outer.privacy_cost(len(X)).epsilon < 1.25 * searched


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_score_of_test_data_takes_weights_and_refuses_other_arguments_without_routing(kind):
    one = fitted(kind)
    assert one.score(X, y, sample_weight=y == one.predict(X)) == 1.0
    match = "shade in score.*is only supported if .*enable_metadata_routing=True"
    with pytest.raises(ValueError, match=match):
        one.score(X, y, shade=1)


@pytest.mark.parametrize("kind", SEARCHES)
def test_records_in_any_sparse_format_are_those_of_compressed_rows(kind):
    class OfSparse(NoisyCentroids):
        def fit(self, X, y):
            return super().fit(X.toarray(), y)

        def predict(self, X):
            return super().predict(X.toarray())

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.sparse = True
            return tags

    guarantee = PureDP(epsilon=1.0, neighboring="replace_one")
    given = {"guarantee": guarantee, **SUCCEEDS.get(kind, {}), "random_state": 0}
    models = [
        search_of(kind, OfSparse(), SPACE, **given)
        .fit(container(X), y)
        .best_estimator_.centroids_.tolist()
        for container in (csr_array, coo_array, coo_matrix)
    ]
    assert models[0] == models[1] == models[2]
