"""DPGridSearchCV: what it costs, how utilities move, how the choice is drawn, and what is
released."""

from __future__ import annotations

import math
import os
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.neighbors import KernelDensity

from sklearn_dpsearch import DPGridSearchCV
from sklearn_dpsearch.privacy import GaussianDP, GumbelNoise, PureDP, compose, noisy_max
from sklearn_dpsearch.search import _sample_and_aggregate as _aggregated
from sklearn_dpsearch.search import _sample_and_aggregate as _utilities

from ..audit.toys import audited
from .toys import NoisyCentroids, RandomizedResponse, two_blobs
from .utilities_toys import (
    LABELS,
    LOUD,
    QUIET,
    RELATIONS,
    Adversary,
    Seeing,
    by_label,
    everything_everywhere,
    folds_of,
    loudest,
    neighbours,
    seen,
    utilities_in_the_open,
    wild,
)

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

FULL = bool(os.environ.get("SKLEARN_DPSEARCH_FULL"))
X, y = two_blobs(200)
SHRINK = {"shrink": [0.0, 0.2, 0.5]}


def search(estimator=None, space=None, **kwargs):
    estimator = NoisyCentroids(epsilon=1.0) if estimator is None else estimator
    given = {"selection_epsilon": 0.5} if kwargs.get("epsilon") is None else {}
    return DPGridSearchCV(
        estimator, SHRINK if space is None else space, **{**given, "n_parts": 4, **kwargs}
    )


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(2, 4), (40, 4), (2, 30)])
def test_the_total_is_that_of_a_noisy_maximum_and_one_training(size, k):
    options = {"guarantee": GaussianDP(mu=0.4), "delta": 1e-6, "n_parts": k}
    one = search(LogisticRegression(), {"C": np.linspace(1, 2, size)}, **options)
    choice = noisy_max(size, Fraction(1, k), GumbelNoise(scale=Fraction(2, k) / Fraction(0.5)))
    expected = pytest.approx(compose(choice, GaussianDP(mu=0.4)).epsilon_at(1e-6), rel=1e-12)
    assert one.privacy_cost().epsilon == expected
    first, second = one.privacy_cost().components
    assert first.guarantee.epsilon_at(0.0) == 0.5
    assert second.guarantee == GaussianDP(mu=0.4, neighboring="zero_out")
    assert one.privacy_cost().bound == "composition"


@pytest.mark.slow
def test_a_target_is_met_and_nearly_reached():
    one = search(epsilon=2.0, delta=1e-6, random_state=1).fit(X, y)
    assert 1.98 < one.privacy_spent_.epsilon <= 2.0
    assert tuple(one.privacy_spent_) == tuple(one.privacy_cost(200))
    assert one.privacy_spent_.components[0].guarantee.epsilon_at(1e-6) <= 2.0 * 0.3


def test_one_candidate_leaves_the_whole_budget_to_its_training():
    one = search(space={"shrink": [0.1]}, epsilon=2.0).fit(X, y)
    assert one.best_params_ == {"shrink": 0.1}
    assert 1.99 < one.best_estimator_.epsilon <= 2.0
    assert one.privacy_spent_.epsilon <= 2.0
    assert search(space={}, selection_epsilon=0.5).privacy_cost(200).epsilon == 1.0


def test_the_final_training_is_charged_as_the_worst_candidate():
    assert search(space={"epsilon": [0.5, 2.0]}).privacy_cost(200).epsilon == 2.5


# --- number of parts ------------------------------------------------------------------------------


def test_the_default_number_of_parts_follows_its_rule():
    def k(n, epsilon=0.5):
        one = search(n_parts=None, selection_epsilon=epsilon)
        return one._strategy().facts(n, False).validation.n_parts

    assert k(10**6) == math.ceil(2 * math.log(3) / (0.05 * 0.5))
    assert k(1000) == 20  # no more than one part for 50 records
    assert k(60) == 2
    assert search(n_parts=None).fit(X, y).n_splits_ == 4


def test_every_record_draws_its_part_and_its_use_by_itself():
    drawn = [_utilities.random_parts(400, 5, False, os.urandom) for _ in range(40)]
    sizes = np.array([[[len(train), len(test)] for train, test in parts] for parts in drawn])
    assert sizes.sum(axis=(1, 2)).tolist() == [400] * 40
    assert abs(sizes[..., 0].mean() - 60) < 2.0
    assert abs(sizes[..., 1].mean() - 20) < 1.5
    assert 0.6 < sizes.sum(axis=2).std() / 8 < 1.4  # binomial: 8; parts of fixed sizes: 0
    assert all(not len(test) for _, test in _utilities.random_parts(50, 5, True, os.urandom))


# --- sensitivity ----------------------------------------------------------------------------------


def largest_move(relation, score, trials, k=3, broken=False):
    """The most that any utility moves between neighbours whose common records are in the same
    parts."""
    rng = np.random.default_rng(0)
    labels = list(ParameterGrid({"label": [0, 1, 2]}))
    one = search(Adversary(neighboring=relation), {"label": [0, 1, 2]}, scoring=score, n_parts=k)
    largest = Fraction(0)
    for _ in range(trials):
        drawn = rng.integers(0, 4 * k, 40)
        moved = []
        for data, target, present in neighbours(rng, relation=relation):
            folds = folds_of(drawn, present, k)
            folds = everything_everywhere(len(data), k, False, None) if broken else folds
            moved.append(utilities_in_the_open(one, data, target, folds, labels))
        largest = max(largest, *(abs(a - b) for a, b in zip(*moved)))
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("score", [wild, loudest])
def test_one_record_moves_no_utility_by_more_than_one_part(relation, score):
    actual = largest_move(relation, score, 300 if FULL else 10)
    assert actual == Fraction(1, 3) == _utilities.sensitivity(3)


@pytest.mark.slow
def test_models_trained_on_all_records_are_caught_by_the_same_comparison():
    assert largest_move("replace_one", loudest, 30, broken=True) == 1


def test_utilities_are_exact_fractions_in_the_unit_interval():
    rng = np.random.default_rng(1)
    (data, target, _), _ = neighbours(rng)
    folds = folds_of(rng.integers(0, 16, 40), np.arange(40), 4)
    found = utilities_in_the_open(
        search(Adversary(), {"label": [0]}, scoring=wild), data, target, folds, [{"label": 0}]
    )
    assert all(isinstance(one, Fraction) and 0 <= one <= 1 for one in found)


@pytest.mark.parametrize(
    ("error_score", "utility"), [(np.nan, 0), (-3.0, 0), (0.25, Fraction(1, 4)), (9.0, 1)]
)
def test_a_candidate_that_fails_has_the_stated_score_whatever_the_scorer_takes(
    error_score, utility
):
    one = search(
        Adversary(fails=1.0), {"label": [0]}, scoring=lambda *_: 0.9, error_score=error_score
    )
    folds = folds_of(np.arange(40) % 16, np.arange(40), 4)
    assert utilities_in_the_open(one, X[:40], y[:40], folds, [{"label": 0}]) == [utility]


def test_weights_follow_their_records_into_the_parts():
    lengths = []

    class Weighted(Adversary):
        def fit(self, X, y, sample_weight=None):
            lengths.append((len(X), len(sample_weight)))
            assert np.array_equal(X[:, 0], sample_weight)
            return super().fit(X, y)

    options = {"guarantee": PureDP(epsilon=1.0), "scoring": lambda *_: 1.0}
    search(Weighted(fails=0.0), {"label": [0, 1]}, **options).fit(X, y, sample_weight=X[:, 0])
    assert len(lengths) == 2 * 4 + 1
    assert all(a == b for a, b in lengths)
    assert lengths[-1] == (200, 200)


def test_models_on_parts_have_less_noise_in_proportion_and_the_final_one_what_is_accounted():
    noises = []

    class Noted(NoisyCentroids):
        def fit(self, X, y):
            noises.append(self.epsilon)
            return super().fit(X, y)

    one = search(Noted(), SHRINK, epsilon=2.0).fit(X, y)
    expected = pytest.approx([4 * one.best_estimator_.epsilon] * 12 + [one.best_estimator_.epsilon])
    assert noises == expected
    noises.clear()
    search(Noted(), {"epsilon": [0.5, 2.0]}, part_noise="scaled").fit(X, y)
    assert noises[:8] == [2.0, 8.0] * 4
    noises.clear()
    search(Noted(), SHRINK, part_noise="same").fit(X, y)
    assert noises == [1.0] * 13


def test_noise_that_cannot_be_scaled_is_left_as_it_is():
    one = search(NoisyCentroids(), SHRINK, guarantee=PureDP(epsilon=1.0)).fit(X, y)
    assert one.best_estimator_.epsilon == 1.0


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_choice_follows_the_exponential_mechanism():
    runs = 4000 if FULL else 200
    options = {"n_parts": 2, "selection_epsilon": 2.0}
    one = search(RandomizedResponse(), {"label": [0, 1, 2]}, scoring=by_label, **options)
    fits = (one.set_params(random_state=seed).fit(X[:20], y[:20]) for seed in range(runs))
    counts = Counter(fit.best_params_["label"] for fit in fits)
    weights = np.exp(np.array([0.2, 0.5, 0.9]) / (2 / (2 * 2.0)))
    for label, chance in enumerate(weights / weights.sum()):
        assert abs(counts[label] / runs - chance) < 4.5 * np.sqrt(chance * (1 - chance) / runs)


@pytest.mark.slow
def test_the_noise_is_that_of_the_mechanism_for_the_sensitivity_of_the_parts():
    strategy = search(delta=1e-6)._strategy()
    assert strategy.noise(Fraction(1, 4)).scale == strategy.noise(Fraction(1)).scale / 4


# --- what is released -----------------------------------------------------------------------------


def test_utilities_leave_no_trace(monkeypatch):
    """Two fits that differ in their utilities and agree in their choice leave the same object."""

    def trace(utilities):
        exact = [Fraction(utility) for utility in utilities]
        monkeypatch.setattr(_aggregated, "utilities_of", lambda *args, **kwargs: exact)
        one = search(RandomizedResponse(), {"label": [0, 1]}, selection_epsilon=1e6).fit(X, y)
        del one.best_estimator_
        return pickle.dumps(one)

    assert trace([1.0, 0.0]) == trace([0.7, 0.1])


def test_public_data_scores_and_all_records_train():
    sizes = []

    class Sized(NoisyCentroids):
        def fit(self, X, y):
            sizes.append(len(X))
            return super().fit(X, y)

    one = search(Sized(), {"shrink": [0.0, 0.1]}).fit(
        X, y, X_public=X[:20].copy(), y_public=y[:20].copy()
    )
    assert sum(sizes[:-1]) == 2 * 200
    assert sizes[-1] == 200
    assert any("public" in text for text in one.privacy_spent_.assumptions)


# --- audits ---------------------------------------------------------------------------------------

RUNS = 4000 if FULL else 250


def found(neighboring, other):
    options = {"scoring": seen, "n_parts": 2, "selection_epsilon": 1.5}
    one = search(Seeing(epsilon=0.5, neighboring=neighboring), {"label": [0, 1]}, **options)
    return audited(
        one, lambda model: (model.best_params_["label"], model.best_estimator_.answer_), RUNS,
        data=(QUIET, LABELS), other=(other, np.zeros(len(other), dtype=int)), confidence=0.99,
        fit_params={"X_public": QUIET[:2].copy(), "y_public": LABELS[:2].copy()},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"] if FULL else ["replace_one"])
def test_no_more_than_the_reported_epsilon_is_found(relation):
    told = found(relation, LOUD if relation == "replace_one" else np.vstack([QUIET, [[1.0]]]))
    assert (0.3 if FULL else 0.1) * 2.0 < told.epsilon_lower <= told.stated_epsilon == 2.0


def test_a_metric_is_not_handed_a_target_that_does_not_exist():
    def density(estimator, X):
        return float(np.exp(estimator.score_samples(X)).mean())

    data = np.random.default_rng(0).normal(size=(200, 2))
    given = {"scoring": density, "guarantee": PureDP(epsilon=1.0), "random_state": 0}
    one = search(
        KernelDensity(), {"bandwidth": [0.3, 30.0]}, **{**given, "selection_epsilon": 1e6}
    ).fit(data)
    assert one.best_params_ == {"bandwidth": 0.3}
