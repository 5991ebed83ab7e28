"""The ε that is needed: from public records, at the number of private ones, and with a spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV, PrivacyLedger
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.report import NeededEpsilon, needed_epsilon

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (300, 2))
y = (X[:, 0] > 0.5).astype(int)
SEEN = []


class Told(ClassifierMixin, BaseEstimator):
    """Remembers what it is fitted on, and is right with a probability that ε sets."""

    def __init__(self, target_epsilon=None):
        self.target_epsilon = target_epsilon

    def fit(self, X, y):
        SEEN.append((self.target_epsilon, {*X[:, 0].tolist()}, len(X)))
        return self

    def score(self, X, y):
        SEEN.append((None, {*X[:, 0].tolist()}, len(X)))
        return min(1.0, self.target_epsilon / 2)


class Numbers(RegressorMixin, BaseEstimator):
    """Predicts 0."""

    def __init__(self, epsilon=None):
        self.epsilon = epsilon

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_the_smallest_epsilon_from_which_on_the_score_is_reached_is_found():
    found = needed_epsilon(Told(), X, y, n_samples=1000, at_least=0.5, epsilons=[2.0, 0.5, 1.0])
    assert found.epsilon == 1.0
    assert found.epsilons.tolist() == [0.5, 1.0, 2.0]
    assert found.scores.tolist() == [[0.25] * 5, [0.5] * 5, [1.0] * 5]
    assert "epsilon = 1 is needed" in str(found)


def test_targets_of_a_regressor_that_are_whole_are_no_classes():
    prices = 1000.0 * np.arange(len(X))
    tried = needed_epsilon(Numbers(), X, prices, n_samples=100, at_least=0.0, epsilons=[1.0])
    assert tried.scores.shape == (1, 5)


def test_fits_have_the_number_of_private_records_and_are_scored_on_others():
    SEEN.clear()
    needed_epsilon(Told(), X, y, n_samples=1000, at_least=0.5, epsilons=[1.0], n_fits=3)
    fits, scored = SEEN[::2], SEEN[1::2]
    assert [number for *_, number in fits] == [1000] * 3
    assert [number for *_, number in scored] == [100] * 3
    assert not any(drawn & tested for (_, drawn, _), (_, tested, _) in zip(fits, scored))
    assert len({tuple(sorted(tested)) for _, tested, _ in scored}) == 3


def test_four_of_five_fits_must_reach_it_here_and_at_every_larger_epsilon():
    scores = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    options = {"scores": scores, "at_least": 1.0, "n_samples": 10}
    assert NeededEpsilon(epsilons=np.array([1.0, 2.0, 3.0, 4.0]), **options).epsilon == 3.0
    settings = {"scores": np.zeros((1, 5)), "at_least": 1.0, "n_samples": 10}
    never = NeededEpsilon(epsilons=np.array([1.0]), **settings)
    assert never.epsilon == math.inf
    assert "no epsilon here suffices" in str(never)


@pytest.mark.parametrize("searched", [False, True])
def test_nothing_is_entered_into_a_ledger(searched, tmp_path):
    """Neither that of the block nor that of a search."""
    model = DPGradientBoostingClassifier({"a": (0, 1), "b": (0, 1)}, classes=[0, 1], max_iter=3)
    with PrivacyLedger(tmp_path / "data.ledger", epsilon=1.0, delta=1e-4) as ledger:
        options = {"n_iter": 2, "delta": 1e-5, "ledger": ledger}
        search = DPRandomSearchCV(model, {"prior_factor": [1.0]}, **options)
        one = search if searched else model.set_params(target_delta=1e-5)
        needed_epsilon(one, X, y, n_samples=200, at_least=0.5, epsilons=[5.0], n_fits=1)
    assert ledger.entries() == ()


def test_numbers_and_searches_have_it_too():
    options = {"at_least": 0.0, "epsilons": [1.0], "n_fits": 1}
    found = needed_epsilon(Numbers(), X.tolist(), X[:, 0], n_samples=50, **options)
    assert found.epsilon == math.inf
    search = DPRandomSearchCV(Told(), {"target_epsilon": [1.0]}, epsilon=1.0)
    with pytest.raises(Exception, match="guarantee"):
        needed_epsilon(search, X, y, n_samples=50, at_least=0.0, n_fits=1)


def test_a_model_whose_epsilon_cannot_be_set_is_refused():
    match = r"LogisticRegression without target_epsilon= or epsilon=.*Give a model"
    with pytest.raises(ValueError, match=match):
        needed_epsilon(LogisticRegression(), X, y, n_samples=50, at_least=0.9)


@pytest.mark.parametrize(("wrong", "error", "match"), [
    ({"n_samples": 0}, ValueError, "Expected an integer n_samples >= 1, got n_samples=0"),
    ({"n_samples": 1.5}, ValueError, "Expected an integer n_samples >= 1, got n_samples=1.5"),
    ({"n_fits": 0}, ValueError, "Expected an integer n_fits >= 1, got n_fits=0"),
    ({"at_least": "good"}, TypeError, "Found at_least='good' .* a number is needed"),
])  # fmt: skip
def test_wrong_arguments_are_named(wrong, error, match):
    with pytest.raises(error, match=match):
        needed_epsilon(Told(), X, y, **{"n_samples": 50, "at_least": 0.9, **wrong})
