"""DPRandomSearchCV does what its parameters say, and states what it cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV

from .toys import NoisyCentroids, two_blobs

X, y = two_blobs()
SPACE = {"shrink": [0.0, 0.2, 0.5]}


def search(**kwargs):
    return DPRandomSearchCV(NoisyCentroids(epsilon=1.0), SPACE, **{"n_iter": 5, **kwargs})


def test_matched_scores_make_one_run_cost_the_training_alone():
    expected = dp.best_of(dp.PureDP(epsilon=1.0, neighboring="replace_one"), 5).epsilon_at(0.0)
    assert search().privacy_cost(len(X)).epsilon == pytest.approx(expected, rel=1e-9)


def test_scores_on_public_data_are_free_and_all_records_train():
    fitted = search(random_state=0).fit(X, y, X_public=X.copy(), y_public=y.copy())
    assert fitted.privacy_spent_.epsilon == search().privacy_cost(public=True).epsilon
    assert fitted.n_splits_ == 1
    assert any("public" in text for text in fitted.privacy_spent_.assumptions)


def test_a_noisier_score_than_the_training_costs_nothing_and_a_clearer_one_does():
    noises = [dp.PureDP(epsilon=e, neighboring="replace_one") for e in (0.1, 1, 2)]
    costs = [search(score_noise=noise).privacy_cost(len(X)).epsilon for noise in noises]
    assert costs[0] == pytest.approx(costs[1])
    assert costs[2] > costs[1]


def test_folds_pay_for_every_training_and_one_score():
    # 4 trainings and 1 score of a record
    one = dp.compose(*[dp.PureDP(epsilon=1.0, neighboring="replace_one")] * 5)
    expected = dp.best_of(one, 5).epsilon_at(0.0)
    assert search(cv=5).privacy_cost(len(X)).epsilon == pytest.approx(expected)


@pytest.mark.slow
def test_all_folds_train_the_same_candidate_so_their_trainings_compose_before_candidates_average():
    """An average of two candidates, composed with itself, would draw anew for every fold and state
    too little."""
    dear = dp.PureDP(epsilon=1.0, neighboring="replace_one")
    cheap = dp.PureDP(epsilon=0.01, neighboring="replace_one")
    score = dp.PureDP(epsilon=0.001, neighboring="replace_one")
    truth = dp.mixture([dp.compose(one, one, one, score) for one in (dear, cheap)], [0.5, 0.5])
    average = dp.mixture([dear, cheap], [0.5, 0.5])
    actual = dp.compose(average, average, average, score).delta_at(2.0)
    assert actual == pytest.approx(0.032, abs=1e-3)
    given = {"cv": 4, "score_noise": score, "delta": 1e-6}
    space = {"epsilon": [1.0, 0.01]}
    for search in (
        DPRandomSearchCV(NoisyCentroids(), space, n_iter=dp.Fixed(1), **given),
        DPRandomSearchCV(NoisyCentroids(), space, n_iter=1, release="all", **given),
    ):
        stated = search.privacy_cost(len(X)).guarantee
        actual = pytest.approx(truth.delta_at(2.0), rel=1e-6)
        assert stated.delta_at(2.0) == actual == pytest.approx(0.1235, abs=1e-4)
    distribution = dp.until_above(truth, 1 / 11)  # the default: n_iter=10
    until = DPThresholdSearchCV(NoisyCentroids(), space, threshold=0.5, **given).privacy_cost(
        len(X)
    )
    assert until.delta_at(2.0) == pytest.approx(distribution.delta_at(2.0), rel=1e-3)
    given = {**given, "validate_on": "subset", "subset_fraction": 0.5}
    subset = DPSubsetSearchCV(NoisyCentroids(), space, n_iter=dp.Fixed(1), **given)
    expected = dp.subset_then_train(truth, dear, 0.5)
    actual = subset.privacy_cost(len(X)).delta_at(2.0)
    assert actual == pytest.approx(expected.delta_at(2.0), rel=1e-3)


def test_index_splits_are_accounted_by_the_record_used_most():
    half, third, fourth = np.split(np.arange(len(X)), [len(X) // 2, 3 * len(X) // 4])
    repeated = [(half, third), (half, fourth), (third, half)]
    # the first half trains twice and scores once
    one = dp.compose(*[dp.PureDP(epsilon=1.0, neighboring="replace_one")] * 3)
    expected = pytest.approx(dp.best_of(one, 5).epsilon_at(0.0))
    assert search(cv=repeated).privacy_cost(len(X)).epsilon == expected
    actual = search(cv=KFold(4)).privacy_cost(len(X)).epsilon
    assert actual == pytest.approx(search(cv=4).privacy_cost(len(X)).epsilon)
    assert hasattr(search(cv=KFold(3)).fit(X, y), "best_estimator_")
    # a generator, which cannot be pickled
    assert search(cv=KFold(3).split(X)).fit(X, y).n_splits_ == 3


def test_a_refit_is_composed_and_trained_on_everything():
    fitted = search(refit=True).fit(X, y)
    names = [one.name for one in fitted.privacy_spent_.components]
    assert names[1].startswith("refit")
    expected = pytest.approx(search().privacy_cost(len(X)).epsilon + 1.0)
    assert fitted.privacy_spent_.epsilon == expected


def test_without_refit_there_is_no_model_and_predict_says_so():
    fitted = search(refit=False).fit(X, y)
    assert set(fitted.best_params_) == {"shrink"}
    with pytest.raises(AttributeError, match="refit=False"):
        fitted.predict(X)


def test_releasing_all_scores_is_composition_of_a_fixed_number_of_runs():
    fitted = search(release="all", n_iter=4).fit(X, y)
    assert len(fitted.cv_results_["params"]) == 4
    assert fitted.privacy_spent_.epsilon == pytest.approx(4.0)
    assert fitted.best_score_ == max(fitted.cv_results_["mean_test_score"])
    assert fitted.best_params_ == fitted.cv_results_["params"][fitted.best_index_]


def test_a_target_is_met_from_below_and_nearly_reached():
    fitted = search(epsilon=2.0).fit(X, y)
    assert 1.99 < fitted.privacy_spent_.epsilon <= 2.0
    expected = pytest.approx(2.0 / search().privacy_cost(len(X)).epsilon, rel=0.15)
    assert fitted.best_estimator_.epsilon == expected


def test_a_tree_of_diffprivlib_with_epsilon_in_its_grid_costs_exactly_what_can_be_lost():
    """0.2, 1 and 2 are twice that if a record changes; what scores cost is hidden behind the
    training."""
    models = pytest.importorskip("diffprivlib.models")
    tree = models.DecisionTreeClassifier(max_depth=2, bounds=([-4, -4], [4, 4]), classes=[0, 1])
    spent = DPRandomSearchCV(tree, {"epsilon": [0.2, 1.0, 2.0]}, n_iter=10).fit(X, y).privacy_spent_
    one = dp.mixture(
        [dp.PureDP(epsilon=2 * one, neighboring="replace_one") for one in (0.2, 1.0, 2.0)],
        [1 / 3] * 3,
    )
    assert spent.epsilon == pytest.approx(dp.best_of(one, 10).epsilon_at(0.0), abs=1e-9)
    assert spent.epsilon == pytest.approx(7.081, abs=1e-3)
    assert spent.delta_at(spent.epsilon) == 0.0 < spent.delta_at(spent.epsilon - 1e-3)


def test_replaced_steps_run_with_the_noise_that_was_accounted():
    model = make_pipeline(FunctionTransformer(np.tanh), NoisyCentroids(epsilon=0.1))
    space = {"noisycentroids": [NoisyCentroids(epsilon=0.5), NoisyCentroids(epsilon=2.0)]}
    fitted = DPRandomSearchCV(model, space, n_iter=3).fit(X, y)
    assert fitted.best_estimator_[-1].epsilon == fitted.best_params_["noisycentroids"].epsilon
    one = dp.mixture(
        [dp.PureDP(epsilon=one, neighboring="replace_one") for one in (0.5, 2.0)], [0.5, 0.5]
    )
    expected = pytest.approx(dp.best_of(one, 3).epsilon_at(0.0), abs=1e-9)
    assert fitted.privacy_spent_.epsilon == expected


def test_a_drawn_candidate_outside_the_plan_is_an_error_before_data_is_read():
    declared = DPRandomSearchCV(
        NoisyCentroids(),
        {"epsilon": uniform(1.5, 1.0)},
        guarantee=lambda e, n: dp.PureDP(epsilon=e.epsilon),
    )
    with pytest.raises(ValueError, match="not what the search was planned with"):
        declared.fit(X, y)


def test_whatever_a_search_of_sklearn_passes_on_is_passed_on():
    class Everything(NoisyCentroids):
        pass

    names = [
        "predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples",
        "transform", "inverse_transform",
    ]  # fmt: skip
    for name in names:
        assert hasattr(RandomizedSearchCV, name)
        setattr(Everything, name, lambda self, X, name=name: (name, X))
    fitted = DPRandomSearchCV(Everything(), SPACE)
    fitted.best_estimator_, fitted.privacy_spent_, fitted.scorer_ = Everything(), None, None
    for name in names:
        assert getattr(fitted, name)("records") == (name, "records")


def test_a_search_around_a_search_rests_on_what_the_inner_one_rests_on():
    inner = DPRandomSearchCV(
        LogisticRegression(), {"C": [1.0]}, guarantee=dp.PureDP(epsilon=1.0), random_state=0
    )
    outer = DPRandomSearchCV(inner, {"estimator__C": [0.1, 1.0]}, n_iter=2)
    told = outer.privacy_cost(len(X)).assumptions
    assert any("The caller declared that one fit of LogisticRegression" in text for text in told)
    assert not any("seed" in text for text in told)  # the outer search replaces it


class Moody(NoisyCentroids):
    """Its guarantee depends on two parameters together."""

    def __init__(self, mood="calm", strength=0.0):
        super().__init__()
        self.mood = mood
        self.strength = strength

    def privacy_guarantee(self, n_samples=None):
        calm = self.mood == "calm" and self.strength < 0.5
        return dp.PureDP(epsilon=0.1 if calm else 1.0, neighboring="replace_one")


@pytest.mark.parametrize("seed", range(3))
def test_a_candidate_may_not_cost_more_than_its_own_share_of_the_mixture(seed):
    """Half of the plan is cheap; drawn strengths make that half as dear as the other, which was
    planned too."""
    one = DPRandomSearchCV(
        Moody(), {"mood": ["calm", "wild"], "strength": uniform(0.6, 0.1)}, n_iter=dp.Fixed(60)
    )
    with pytest.raises(ValueError, match="not what the search was planned with"):
        one.set_params(random_state=seed).fit(X, y)


class Weighted(NoisyCentroids):
    """Remembers whether weights arrived."""

    def fit(self, X, y, sample_weight=None):
        self.weighted_ = sample_weight is not None and len(sample_weight) == len(X)
        return super().fit(X, y)


def test_metadata_routing_reaches_the_estimators_fit():
    with config_context(enable_metadata_routing=True):
        model = Weighted().set_fit_request(sample_weight=True)
        one = DPRandomSearchCV(model, SPACE, n_iter=2, guarantee=dp.PureDP(epsilon=1.0))
        assert one.fit(X, y, sample_weight=np.ones(len(X))).best_estimator_.weighted_
        assert not one.fit(X, y).best_estimator_.weighted_
