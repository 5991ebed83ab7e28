"""``search.score`` says what scikit-learn says of the same predictions, however far they are from
the public bounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, r2_score

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.scoring import private_scorer

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 3))
TARGET, LABELS = X[:, 0] + 5.0, (X[:, 0] > 0).astype(int)


class Far(RegressorMixin, BaseEstimator):
    """Predictions far from every bound."""

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=50.0, neighboring="replace_one")

    def fit(self, X, y):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        return 1000.0 * np.asarray(X)[:, 1]


class Sure(ClassifierMixin, Far):
    """Probabilities of 0 and 1, often wrong."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return super().fit(X, y)

    def predict_proba(self, X):
        positive = (np.asarray(X)[:, 1] > 0).astype(float)
        return np.column_stack([1 - positive, positive])

    def predict(self, X):
        return self.predict_proba(X)[:, 1].astype(int)


SCORERS = {
    "r2": (Far(), TARGET, private_scorer("r2", y_range=(0.0, 10.0))),
    "neg_mean_absolute_error": (Far(), TARGET, private_scorer("neg_mean_absolute_error", clip=2.0)),
    "neg_mean_squared_error": (Far(), TARGET, private_scorer("neg_mean_squared_error", clip=2.0)),
    "neg_log_loss": (Sure(), LABELS, private_scorer("neg_log_loss", clip=3.0)),
    "accuracy": (Sure(), LABELS, private_scorer("accuracy")),
    "balanced_accuracy": (Sure(), LABELS, private_scorer("balanced_accuracy", classes=[0, 1])),
    "f1": (Sure(), LABELS, private_scorer("f1", pos_label=1)),
    "precision": (Sure(), LABELS, private_scorer("precision", pos_label=1)),
    "recall": (Sure(), LABELS, private_scorer("recall", pos_label=1)),
}


KINDS = {
    "random": (DPRandomSearchCV, {"n_iter": 3}),
    "random, all": (DPRandomSearchCV, {"n_iter": 2, "release": "all"}),
    "subset": (DPSubsetSearchCV, {"n_iter": 3, "subset_fraction": 0.5}),
    "threshold": (DPThresholdSearchCV, {"n_iter": 50, "threshold": -1e9}),
}


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_search_scores_its_callers_test_data_by_the_plain_metric(kind, name):
    (model, y, scorer), (search, needed) = SCORERS[name], KINDS[kind]
    search = search(model, {}, scoring=scorer, random_state=0, **needed).fit(X, y)
    assert search.score(X, y) == pytest.approx(get_scorer(name)(search, X, y), rel=1e-9)


def test_public_data_score_by_the_bounds_and_the_test_data_without_them():
    scorer = private_scorer("r2", y_range=(0.0, 10.0))
    search = DPRandomSearchCV(Far(), {}, n_iter=2, scoring=scorer).fit(
        X, TARGET, X_public=X.copy(), y_public=TARGET.copy()
    )
    assert search.best_score_ == -1.0
    assert search.score(X, TARGET) == pytest.approx(r2_score(TARGET, search.predict(X)))
    assert search.score(X, TARGET) < -1000


def test_bounded_scores_are_what_they_were_for_a_probability_of_zero():
    """It counts as the smallest step of a double, beyond every usual clip."""
    model = Sure().fit(X, LABELS)
    wrong = np.mean(model.predict(X) != LABELS)
    assert private_scorer("neg_log_loss", clip=3.0)(model, X, LABELS) == pytest.approx(-3.0 * wrong)
    actual = private_scorer("neg_log_loss", clip=3.0).statistic(model, X, LABELS, "replace_one")
    assert actual == [1000 * int((model.predict(X) != LABELS).sum())]


@pytest.mark.parametrize("name", SCORERS)
def test_weights_of_test_records_count_as_in_scikit_learn(name):
    model, y, scorer = SCORERS[name]
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = model.fit(X, y)
    repeated = np.repeat(np.arange(len(X)), weights)
    weighted = scorer.plain(model, X, y, sample_weight=weights)
    assert weighted == pytest.approx(scorer.plain(model, X[repeated], y[repeated]))
    assert weighted != pytest.approx(scorer.plain(model, X, y))
    assert weighted == pytest.approx(get_scorer(name)(model, X, y, sample_weight=weights))
