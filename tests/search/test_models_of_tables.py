"""Boosting and nets for data frames in searches: rehearsal, calibration and labels follow from the
schema."""

from __future__ import annotations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.scoring._named_scorers import stated_facts

from .tables_toys import BUDGET, SCHEMA, SEARCHES, SPACE, TABLE, classifier, regressor
from .toys import refuses_to_fit


def nets():
    return pytest.importorskip("sklearn_dpsearch.nets")


def net(**changed):
    return nets().DPTabularClassifier(
        SCHEMA.without("price"), **{"target": "pay", "sample_rate": 0.1, "max_epochs": 8, **changed}
    )


def net_regressor():
    options = {"target": "price", "sample_rate": 0.1, "max_epochs": 8}
    return nets().DPTabularRegressor(SCHEMA.without("pay"), **options)


FACTORS = {"learning_rate_factor": [0.5, 1.0]}
MODELS = {"boosting": (classifier, regressor, SPACE), "nets": (net, net_regressor, FACTORS)}
EVERY_MODEL = pytest.mark.parametrize(
    ("classifier", "regressor", "space"), MODELS.values(), ids=list(MODELS)
)


@pytest.mark.slow
@EVERY_MODEL
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_goes_from_a_table_to_labels(name, classifier, regressor, space):
    search = SEARCHES[name](classifier(), space).fit(TABLE, TABLE["pay"])
    assert search.score(TABLE, TABLE["pay"]) > 0.8
    assert set(search.predict(TABLE)) <= {"low", "high"}
    assert search.privacy_spent_.epsilon <= 8.0
    parts = search.privacy_spent_.assumptions
    assert any("schema was not taken from the records" in text for text in parts)


@EVERY_MODEL
def test_scorers_take_labels_and_bounds_from_the_schema(classifier, regressor, space):
    assert stated_facts(classifier()) == {"classes": ["high", "low"], "pos_label": "low"}
    assert stated_facts(regressor()) == {"y_range": (0.0, 100.0)}
    assert stated_facts(classifier(target=None)) == {}


def test_labels_of_another_kind_are_refused_before_anything_is_spent():
    search = DPRandomSearchCV(net(), FACTORS, **BUDGET)
    refuses_to_fit(search, ValueError, "classes", TABLE, (TABLE["pay"] == "low").astype(int))


@pytest.mark.slow
def test_the_search_sets_the_noise_of_candidates_under_every_relation():
    """Candidates may differ in the number of rounds: each is calibrated to the one target."""
    total = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
    for relation in ("add_remove", "zero_out", "replace_one"):
        model = classifier(neighboring=relation)
        search = DPRandomSearchCV(model, {"max_iter": [10, 40]}, n_iter=3, **total)
        search.fit(TABLE, TABLE["pay"])
        expected = "zero_out" if relation == "add_remove" else relation
        assert search.privacy_spent_.neighboring == expected
        model = search.best_estimator_
        assert model.privacy_guarantee() == dp.GaussianDP(mu=model.target_mu, neighboring=relation)
        assert model.n_iter_ == model.max_iter


@pytest.mark.slow
def test_nothing_of_a_subset_search_counts_records():
    """Under add/remove the models of a subset use no number of records, and so need none to be
    stated."""
    model = classifier(neighboring="add_remove")
    search = DPSubsetSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0)
    assert search.fit(TABLE, TABLE["pay"]).score(TABLE, TABLE["pay"]) > 0.7


@pytest.mark.slow
def test_a_subset_search_over_boosting_as_configured_pays_in_two_steps():
    asked = dp.GaussianDP(mu=0.24, neighboring="replace_one")
    given = {"n_iter": 10, "delta": 1e-5, "subset_fraction": 0.1}
    model = classifier(neighboring="replace_one", target_mu=0.24, max_iter=5)
    one = DPSubsetSearchCV(model, SPACE, **given)
    spent = one.privacy_cost(public=True)
    step = dp.GaussianDP(mu=0.12, neighboring="zero_out")
    tune = dp.best_of(step, dp.Geometric(10))
    known = dp.subset_then_train(dp.best_of(asked, dp.Geometric(10)), asked, 0.1)
    assert spent.guarantee == dp.as_replace_one(dp.subset_then_train(tune, step, 0.1))
    assert spent.epsilon < 0.72 * known.epsilon_at(1e-5)
    model = one.fit(TABLE, TABLE["pay"]).best_estimator_
    assert dp.as_replace_one(model.privacy_guarantee()) == asked
    assert one.privacy_spent_.neighboring == "replace_one"


@pytest.mark.parametrize("space", [{"target_mu": [0.1, 0.2]}, {"target_epsilon": [0.5, 1.0]}])
def test_a_target_that_is_searched_is_one_for_a_replaced_record(space):
    (name, values), given = (
        *space.items(),
        {"target_delta": 1e-6} if "target_epsilon" in space else {},
    )
    model = classifier(neighboring="replace_one", **{name: values[0]}, **given)
    actual = DPSubsetSearchCV(model, space, n_iter=3, delta=1e-5).privacy_cost(public=True).bound
    assert actual == "mixture"


@pytest.mark.slow
def test_a_subset_search_over_nets_as_configured_pays_in_two_steps():
    """The noise is the same under both relations."""
    model = net(neighboring="replace_one", noise_multiplier=3.0)
    spent = DPSubsetSearchCV(
        model, FACTORS, n_iter=10, delta=1e-5, subset_fraction=0.1
    ).privacy_cost(public=True)
    step = model.set_params(neighboring="zero_out").privacy_guarantee()
    expected = dp.as_replace_one(
        dp.subset_then_train(dp.best_of(step, dp.Geometric(10)), step, 0.1)
    )
    assert spent.guarantee == expected


@pytest.mark.slow
def test_a_delta_is_compared_with_no_number_that_a_subset_search_draws():
    """The rest of the subset has about 1,000 records, and may have more: a candidate that failed
    then would show it."""
    X = np.random.default_rng(0).uniform(-1, 1, (1111, 1))
    options = {"target_epsilon": 1.0, "target_delta": 1e-3, "max_iter": 5}
    model = DPGradientBoostingClassifier({"a": (-1.0, 1.0)}, classes=[0, 1], **options)
    space = {"prior_factor": [1.0, 1.25]}
    settings = {"delta": 1e-4, "subset_fraction": 0.1, "scoring": "accuracy"}
    search = DPSubsetSearchCV(model, space, n_iter=2, **settings)
    for seed in range(12):
        found = (
            search.set_params(random_state=seed).fit(X, (X[:, 0] > 0).astype(int)).best_estimator_
        )
        assert found.privacy_guarantee() == model.privacy_guarantee()


@pytest.mark.parametrize(("train_on", "share"), [("rest", 0.8), ("all", 1.0)])
def test_boosting_in_a_subset_search_is_told_an_expected_number_of_records(train_on, share):
    """It would start from the number that there are: a blank member of the subset and an absent one
    would differ."""
    draw = np.random.default_rng(0)
    X, y = draw.uniform(size=(600, 1)), draw.integers(0, 2, 600)
    model = DPGradientBoostingClassifier({"a": (0.0, 1.0)}, classes=[0, 1], max_iter=3)
    given = {
        "n_iter": 2, "epsilon": 3.0, "delta": 1e-4, "subset_fraction": 0.2, "train_on": train_on,
    }  # fmt: skip
    search = DPSubsetSearchCV(model, "auto", **given).fit(X, y)
    assert search.best_estimator_.expected_samples == share * 600
