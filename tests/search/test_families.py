"""Several kinds of estimators in one search: each with noise of its own, and one relation for
all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.adapters import adapter_for
from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier
from sklearn_dpsearch.search._planning.space import Space

from .toys import NoisyCentroids, RandomizedResponse, refuses_to_fit, search_of, two_blobs

X, y = two_blobs(400)
SEED = 3
CHANGED = {"neighboring": "replace_one", "noise_multiplier": 2.0}


def nets(**given):
    return {"sample_rate": 0.1, "max_steps": 20, "classes": [0, 1], **given}


def logistic(**given):
    return DPLogisticRegression(**nets(**given))


def mlp(**given):
    return DPMLPClassifier((8,), **nets(**given))


def of_families(*models):
    """A pipeline of one step, and a space of models in it."""
    return Pipeline([("model", models[0])]), {"model": list(models)}


def planned(search):
    return search._strategy().plan(len(X), False, search.delta)


def promise_of(model) -> dp.Guarantee:
    return adapter_for(model).training_run(model, 400).guarantee


# --- the space ------------------------------------------------------------------------------------


def test_splitting_a_space_by_family_keeps_the_distribution_of_its_candidates():
    given = [
        {"a": [LogisticRegression(), LinearRegression()], "b": [1, 2, 3]},
        {"a": [LogisticRegression(C=2)], "b": [7]},
    ]
    space = Space.of(given)
    split = space.by_family()
    assert split.probabilities == [0.25, 0.25, 0.5]

    def distribution(space):
        found = {}
        for share, dictionary in zip(space.probabilities, space.dictionaries):
            for values in itertools.product(*(dictionary[name] for name in sorted(dictionary))):
                size = np.prod([len(v) for v in dictionary.values()])
                found[repr(values)] = found.get(repr(values), 0.0) + share / size
        return found

    assert distribution(split) == pytest.approx(distribution(space))
    rng = np.random.RandomState(0)
    drawn = [split.draw(rng)[0] for _ in range(4000)]
    assert np.bincount(drawn) / 4000 == pytest.approx([0.25, 0.25, 0.5], abs=0.03)


# --- as configured --------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [
    logistic(noise_multiplier=2.0),
    RandomizedResponse(epsilon=0.4, neighboring="zero_out"),
], ids=["net", "pure"])  # fmt: skip
def test_candidates_of_different_relations_are_stated_for_changed_records(net):
    trees = NoisyCentroids(epsilon=0.5)
    estimator, space = of_families(net, trees)
    search = DPRandomSearchCV(estimator, space, n_iter=5, delta=1e-5, refit=False)
    cost = search.privacy_cost(400, public=True)
    one = dp.mixture([dp.as_replace_one(promise_of(net)), promise_of(trees)], [0.5, 0.5])
    assert cost.neighboring == search.privacy_cost(400).neighboring == "replace_one"
    expected = pytest.approx(dp.best_of(one, dp.Geometric(5)).epsilon_at(1e-5), rel=1e-6)
    assert cost.epsilon == expected
    sentence = "different neighbouring relations (replace_one and zero_out)"
    assert sum(sentence in text for text in cost.assumptions) == 1
    assert search.privacy_guarantee(400).neighboring == "replace_one"


def test_the_placeholder_in_the_pipeline_is_no_candidate():
    estimator, space = of_families(logistic(noise_multiplier=2.0), mlp(noise_multiplier=2.0))
    estimator.set_params(model=NoisyCentroids(epsilon=100.0))
    actual = DPRandomSearchCV(estimator, space, n_iter=5, delta=1e-5).privacy_cost(400).neighboring
    assert actual == "zero_out"


# --- calibrated -----------------------------------------------------------------------------------

CALIBRATED = {
    "random": {}, "random, folds": {"refit": True, "cv": 3}, "subset": {},
    "grid": {"selection_epsilon": None}, "threshold": {"threshold": 0.2, "n_iter": 50},
    "doubling": {"round_epsilon": None},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATED)
def test_every_search_is_calibrated_over_families_and_fits(name):
    estimator, space = of_families(
        RandomizedResponse(neighboring="zero_out"), NoisyCentroids(epsilon=7.0)
    )
    one = search_of(name.partition(",")[0], estimator, space, epsilon=8.0, **CALIBRATED[name])
    cost = one.privacy_cost(len(X))
    assert 7.9 < cost.epsilon <= 8.0
    assert (cost.delta, cost.neighboring) == (0.0, "replace_one")
    one.fit(X, y)
    assert one.privacy_spent_.epsilon == cost.epsilon
    if getattr(one, "found_", True):
        won = one.best_params_["model"]
        assert type(one.best_estimator_.steps[-1][1]) is type(won)
        assert dp.as_replace_one(promise_of(won)).epsilon <= 8.0


@pytest.mark.slow
def test_every_family_gets_the_noise_with_which_it_alone_would_meet_the_total():
    """So none of them is starved, and none of them is all of the cost."""
    estimator, space = of_families(logistic(), NoisyCentroids(epsilon=1e-4), mlp(max_steps=80))
    plan = planned(DPRandomSearchCV(estimator, space, n_iter=5, epsilon=2.0, delta=1e-4))
    candidates = [dictionary["model"][0] for dictionary in plan.space.dictionaries]
    alone = [
        dp.best_of(promise_of(model), dp.Geometric(5)).epsilon_at(1e-4) for model in candidates
    ]
    assert max(alone) < 1.1 * min(alone)
    assert min(alone) > 1.8


@pytest.mark.slow
def test_a_step_that_is_not_replaced_is_calibrated_with_the_family():
    estimator = Pipeline([("first", Scaling(epsilon=3.0)), ("model", NoisyCentroids())])
    search = DPRandomSearchCV(
        estimator, {"model": [RandomizedResponse(), NoisyCentroids()]}, n_iter=3, epsilon=2.0
    )
    plan = planned(search)
    assert all(dictionary["first"][0].epsilon != 3.0 for dictionary in plan.space.dictionaries)
    assert plan.spent.epsilon <= 2.0
    assert set(search.fit(X, y).best_params_) == {"first", "model"}


class Scaling(NoisyCentroids):
    """A private step, under replace-one."""

    def transform(self, X):
        return X


@pytest.mark.slow
@pytest.mark.parametrize("calibrated", [True, False])
def test_candidates_are_noisier_than_the_training_of_the_winner_where_that_is_asked_for(calibrated):
    estimator, space = of_families(
        RandomizedResponse(neighboring="zero_out"), NoisyCentroids(epsilon=0.6)
    )
    given = {"epsilon": 4.0} if calibrated else {}
    for search in (
        DPRandomSearchCV(estimator, space, n_iter=5, refit=True, tuning_share=0.25, **given),
        DPSubsetSearchCV(
            estimator, space, n_iter=5, subset_fraction=0.4, tuning_share=0.25, **given
        ),
    ):
        plan = planned(search)
        for tuned, final in zip(plan.promises.runs, plan.final.runs):
            assert tuned[0].guarantee.epsilon == pytest.approx(0.25 * final[0].guarantee.epsilon)
        search.fit(X, y)
        assert search.privacy_spent_.epsilon == plan.spent.epsilon
        tuned, final = search.best_params_["model"], search.best_estimator_["model"]
        assert tuned.epsilon == pytest.approx(0.25 * final.epsilon)
        assert dp.as_replace_one(promise_of(final)).epsilon <= plan.final.worst.pure_epsilon


@pytest.mark.slow
def test_a_winner_that_goes_on_training_gets_the_noise_of_the_last_training():
    estimator, space = of_families(logistic(noise_multiplier=2.0), mlp(noise_multiplier=2.0))
    options = {"subset_fraction": 0.4, "tuning_share": 0.5, "warm_start": True}
    one = DPSubsetSearchCV(estimator, space, n_iter=5, delta=1e-4, **options).fit(X, y)
    assert one.best_params_["model"].noise_multiplier == 4.0
    expected = one.best_estimator_["model"].noise_multiplier_
    assert one.best_estimator_["model"].noise_multiplier == expected == 2.0


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("space", "match"), [
    ([{"model": [NoisyCentroids(epsilon=0.1), NoisyCentroids(epsilon=9.0), logistic()]}], "model"),
    (
        [
            {"model": [logistic()], "model__noise_multiplier": [1.0, 2.0]},
            {"model": [NoisyCentroids()]},
        ],
        "noise_multiplier",
    ),
])  # fmt: skip
def test_noise_of_families_cannot_be_searched_while_it_is_calibrated(space, match):
    with pytest.raises(dp.PrivacyError, match=rf"vary.*{match}.*calibration sets"):
        DPRandomSearchCV(
            Pipeline([("model", logistic())]), space, epsilon=1.0, delta=1e-4
        ).privacy_cost(400)


def test_classifiers_and_regressors_do_not_compete():
    space = {"model": [LogisticRegression(), LinearRegression()]}
    with pytest.raises(ValueError, match="classifiers and regressors"):
        DPRandomSearchCV(
            Pipeline([("model", LogisticRegression())]), space, guarantee=dp.PureDP(epsilon=1.0)
        ).fit(X, y)


def test_what_any_family_declares_is_checked_before_records_are_used():
    estimator, space = of_families(
        logistic(noise_multiplier=1.0), mlp(noise_multiplier=1.0, classes=["a", "b"])
    )
    refuses_to_fit(DPRandomSearchCV(estimator, space, delta=1e-4), ValueError, "classes", X, y)


# --- with data ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_candidates_of_different_kinds_give_the_same_alone_and_together():
    """Nets train together, others one by one: results do not depend on who else was drawn."""
    estimator, space = of_families(logistic(**CHANGED), mlp(**CHANGED), NoisyCentroids())
    together = DPRandomSearchCV(estimator, space, n_iter=12, delta=1e-4, random_state=SEED).fit(
        X, y
    )
    with parallel_config("threading"):
        apart = DPRandomSearchCV(
            estimator, space, n_iter=12, delta=1e-4, random_state=SEED, n_jobs=6
        ).fit(X, y)
    assert together.best_score_ == apart.best_score_
    assert repr(together.best_params_) == repr(apart.best_params_)
