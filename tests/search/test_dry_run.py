"""A dry run takes one candidate the whole way on public records: errors are shown, nothing is spent
or kept."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import GaussianDP, MissingDeltaError, PrivacyError, PureDP

from .toys import NoisyCentroids, Remembering, two_blobs

X, y = two_blobs(100)


@pytest.mark.parametrize("example", [(X, y), (), (X[:3], [0, 1, 0])])
def test_a_candidate_goes_the_whole_way_and_nothing_is_kept(make, example):
    search = make(NoisyCentroids(), {"shrink": [0.0, 0.5]})
    before = pickle.dumps(search)
    found = search.dry_run(*example)
    assert found.params["shrink"] in (0.0, 0.5)
    assert np.isfinite(found.score)
    assert pickle.dumps(search) == before


def test_errors_are_shown_in_full(make, capsys):
    class Failing(NoisyCentroids):
        def fit(self, X, y):
            print("on the way")
            raise KeyError(f"the first record is {X[0].tolist()}")

    with pytest.raises(KeyError, match="the first record is"):
        make(Failing(), {}).dry_run(X, y)
    assert "on the way" in capsys.readouterr().out


def test_what_fit_refuses_is_refused(make):
    with pytest.raises(MissingDeltaError):
        make(NoisyCentroids(), {}, guarantee=GaussianDP(mu=1.0)).dry_run()
    with pytest.raises(ValueError, match="y_example without X_example"):
        make(NoisyCentroids(), {}).dry_run(y_example=y)


def made_up(estimator, **more):
    Remembering.seen.clear()
    DPRandomSearchCV(estimator, {}, **more).dry_run()
    return Remembering.seen[0][:2]


def test_records_are_made_up_within_declared_bounds_and_classes():
    records, labels = made_up(
        Remembering(bounds=([0, 10, -5], [1, 20, -4]), classes=["a", "b", "c"])
    )
    assert records.shape == (200, 3)
    assert np.all((records >= [0, 10, -5]) & (records <= [1, 20, -4]))
    assert set(labels) == {"a", "b", "c"}
    assert set(made_up(Remembering())[1]) == {0, 1}


def test_where_nothing_is_declared_an_example_is_asked_for():
    model = make_pipeline(FunctionTransformer(np.log1p), NoisyCentroids())
    match = "FunctionTransformer, which does not say.*Give X_example"
    with pytest.raises(PrivacyError, match=match):
        DPRandomSearchCV(model, {}).dry_run()
    assert DPRandomSearchCV(model, {}).dry_run(np.abs(X), y).params == {}
    chosen = ColumnTransformer([("all", "passthrough", ["a", "b"])])
    with pytest.raises(PrivacyError, match="Give X_example"):
        DPRandomSearchCV(make_pipeline(chosen, NoisyCentroids()), {}).dry_run()


def test_scoring_on_public_data_is_tried_with_its_own_metric():
    search = DPRandomSearchCV(
        LogisticRegression(), {"C": [1.0]}, scoring="roc_auc", guarantee=PureDP(epsilon=1.0)
    )
    assert search.dry_run(public=True).score <= 1.0
    with pytest.raises(PrivacyError, match="roc_auc"):
        search.dry_run()
