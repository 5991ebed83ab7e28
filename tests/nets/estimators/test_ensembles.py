"""Means of a net and of boosting: both are paid for, under one relation, and the mean is theirs."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.adapters import adapter_for
from sklearn_dpsearch.nets import DPTabularEnsembleClassifier, DPTabularEnsembleRegressor
from sklearn_dpsearch.nets.estimators.ensembles import weight_of_net
from sklearn_dpsearch.privacy import GaussianDP, PrivacyError, compose

rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": rng.integers(20, 80, 1500), "job": rng.choice(["clerk", "nurse"], 1500)})
TABLE["pay"] = np.where(abs(TABLE["age"] - 50) < 12, "high", "low")
TABLE["kind"] = np.select([TABLE["age"] < 40, TABLE["age"] < 60], ["a", "b"], "c")
TABLE["price"] = np.where(TABLE["job"] == "nurse", 20.0, 60.0) + TABLE["age"] / 4
SCHEMA = {
    "age": (20, 80),
    "job": ["clerk", "nurse"],
    "pay": ["low", "high"],
    "kind": ["a", "b", "c"],
    "price": (0.0, 100.0),
}
FEATURES = {name: SCHEMA[name] for name in ("age", "job")}
BUDGET = {"target_epsilon": 3.0, "target_delta": 1e-5}


def classifier(target="pay", **given):
    return DPTabularEnsembleClassifier({**FEATURES, target: SCHEMA[target]}, target=target, **{**BUDGET, **given})


def regressor(**given):
    return DPTabularEnsembleRegressor({**FEATURES, "price": (0.0, 100.0)}, target="price", **{**BUDGET, **given})


@pytest.mark.slow
@pytest.mark.parametrize("model", [classifier(), regressor(), classifier(neighboring="replace_one")])
def test_both_models_are_paid_for_and_the_target_is_met(model):
    fitted = clone(model).fit(TABLE, TABLE[model.target])
    spent = fitted.privacy_spent_
    assert 2.99 < spent.guarantee.epsilon_at(1e-5) <= 3.0
    assert spent.guarantee == model.privacy_guarantee()
    parts = [one.privacy_guarantee() for one in (fitted.net_, fitted.boosting_)]
    assert fitted.net_.privacy_spent_ == fitted.boosting_.privacy_spent_ == spent  # they are released together
    assert spent.guarantee.epsilon_at(1e-5) == compose(*parts).epsilon_at(1e-5)
    assert [one.guarantee for one in spent.components] == parts
    assert {one.neighboring for one in parts} == {model.neighboring or "zero_out"}


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_mu_is_that_of_both_together(mu):
    found = classifier(target_epsilon=None, target_delta=None, target_mu=mu).privacy_guarantee()
    whole = GaussianDP(mu=mu).epsilon_at(1e-5)
    assert 0.99 * whole < found.epsilon_at(1e-5 + 2e-9) <= whole


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pay", "kind"])
def test_logits_are_averaged(target):
    model = classifier(target).fit(TABLE, TABLE[target])
    net, boosting = (one.decision_function(TABLE) for one in (model.net_, model.boosting_))
    mixed = model.net_weight_ * net + (1 - model.net_weight_) * boosting
    np.testing.assert_allclose(model.decision_function(TABLE), mixed)
    chances = model.predict_proba(TABLE)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert list(model.predict(TABLE)) == list(model.classes_[chances.argmax(axis=1)])
    assert model.score(TABLE, TABLE[target]) > 0.75


@pytest.mark.parametrize(
    ("signal", "weight"), [(1.0, 0.1), (1e3, 0.25), (4e3, 0.5), (1e4, 0.5), (4e4, 0.25), (1e9, 0.1)]
)
def test_boosting_has_more_weight_where_much_or_little_can_be_learned(signal, weight):
    assert weight_of_net(signal) == pytest.approx(weight)


@pytest.mark.slow
def test_a_meaningless_delta_is_refused_where_a_number_of_records_is_public():
    with pytest.raises(PrivacyError, match="promises nothing"):
        classifier(target_delta=0.5).fit(TABLE, TABLE["pay"])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"target_epsilon": None}, "target_epsilon with target_delta"),
        ({"target_mu": 1.0}, "target_mu, is needed"),
        ({"classes": ["low", "high"]}, "Leave one of them out|classes"),
        ({"class_weight": {"typo": 2.0}}, "class_weight"),
    ],
)
def test_wrong_arguments_train_nothing(given, match):
    model = classifier(**given)
    with pytest.raises(ValueError, match=match):
        model.fit(TABLE, TABLE["pay"])
    assert not hasattr(model, "net_")
    assert not hasattr(model, "privacy_spent_")


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda model: DPRandomSearchCV(model, {"class_weight": [None, {"high": 2.0}]}, n_iter=2, cv=0.2),
        lambda model: DPSubsetSearchCV(model, {"class_weight": [None, {"high": 2.0}]}, n_iter=2, subset_fraction=0.3),
        lambda model: DPGridSearchCV(model, {"class_weight": [None, {"high": 2.0}]}, n_parts=3),
    ],
)
def test_every_search_takes_the_mean(make):
    search = make(classifier(target_epsilon=None, target_delta=None))
    search.set_params(epsilon=6.0, delta=1e-4, random_state=0).fit(TABLE, TABLE["pay"])
    assert search.privacy_spent_.epsilon <= 6.0
    best = search.best_estimator_
    assert {one.privacy_spent_.epsilon for one in (best, best.net_, best.boosting_)} == {search.privacy_spent_.epsilon}
    assert search.score(TABLE, TABLE["pay"]) > 0.6


@pytest.mark.slow
def test_a_factor_multiplies_the_privacy_loss():
    model = classifier()
    twice = clone(model).set_params(**adapter_for(model).scaled_privacy(model, 2.0))
    mu = clone(model).set_params(**adapter_for(model).scaled_privacy(model, 1.0)).target_mu
    assert twice.target_mu == 2 * mu
    assert model.privacy_guarantee().epsilon_at(1e-5) == pytest.approx(GaussianDP(mu=mu).epsilon_at(1e-5), rel=1e-3)


@pytest.mark.slow
def test_no_seed_of_the_noise_is_left():
    model = classifier(noise_seed=7, random_state=7).fit(TABLE, TABLE["pay"])
    again = classifier(noise_seed=7, random_state=7).fit(TABLE, TABLE["pay"])
    np.testing.assert_array_equal(model.predict_proba(TABLE), again.predict_proba(TABLE))
    assert model.net_.noise_seed is model.boosting_.noise_seed is None
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.noise_seed is None
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))
    other = classifier(random_state=7).fit(TABLE, TABLE["pay"])
    assert not np.array_equal(other.predict_proba(TABLE), model.predict_proba(TABLE))
