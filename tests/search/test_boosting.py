"""Boosting in the searches: rehearsal, calibration and labels follow from the schema, relations from the search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, search_space
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import GaussianDP
from sklearn_dpsearch.scoring.named_scorers import stated_facts

from .boosting_toys import SCHEMA, SEARCHES, SPACE, TABLE, classifier, regressor

pd = pytest.importorskip("pandas")


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_goes_from_a_table_to_labels(name):
    search = SEARCHES[name](classifier()).fit(TABLE, TABLE["pay"])
    assert search.score(TABLE, TABLE["pay"]) > 0.8
    assert set(search.predict(TABLE)) <= {"low", "high"}
    assert search.privacy_spent_.epsilon <= 8.0
    assert any("schema was not taken from the records" in text for text in search.privacy_spent_.assumptions)


@pytest.mark.slow
def test_a_regressor_is_searched_too():
    search = DPRandomSearchCV(regressor(), SPACE, n_iter=2, epsilon=20.0, delta=1e-4, random_state=0).fit(
        TABLE, TABLE["price"]
    )
    assert np.all((search.predict(TABLE) >= 0) & (search.predict(TABLE) <= 100))


@pytest.mark.slow
def test_the_space_around_boosting_needs_no_words():
    search = DPRandomSearchCV(classifier(), "auto", n_iter=3, epsilon=8.0, delta=1e-4, random_state=0).fit(
        TABLE, TABLE["pay"]
    )
    assert set(search.best_params_) == {"prior_factor"}
    assert search_space(classifier(prior_factor=1.0), grid=True) == [{"prior_factor": [0.7, 1.0, 1.4]}]


@pytest.mark.slow
@pytest.mark.parametrize("model", [classifier(), regressor()])
def test_a_dry_run_needs_no_records(model):
    assert np.isfinite(DPRandomSearchCV(model, SPACE, epsilon=8.0, delta=1e-4, random_state=0).dry_run().score)


def test_scorers_take_labels_and_bounds_from_the_schema():
    assert stated_facts(classifier()) == {"classes": ["high", "low"], "pos_label": "low"}
    assert stated_facts(regressor()) == {"y_range": (0.0, 100.0)}


@pytest.mark.slow
def test_the_search_sets_the_noise_of_candidates_under_every_relation():
    """Candidates may differ in the number of rounds: each is calibrated to the one target."""
    space = {"max_iter": [10, 40]}
    for relation in ("add_remove", "zero_out", "replace_one"):
        search = DPRandomSearchCV(
            classifier(neighboring=relation), space, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0
        ).fit(TABLE, TABLE["pay"])
        assert search.privacy_spent_.neighboring == ("zero_out" if relation == "add_remove" else relation)
        model = search.best_estimator_
        found = model.privacy_guarantee()
        assert found == GaussianDP(mu=model.target_mu, neighboring=relation)
        assert model.n_iter_ == model.max_iter


@pytest.mark.slow
def test_boosting_competes_with_other_families():
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPTabularClassifier

    net = DPTabularClassifier(SCHEMA.without("price"), target="pay", sample_rate=0.1, max_epochs=8)
    pipeline = Pipeline([("model", net)])
    space = search_space(net, classifier(), step="model")
    search = DPRandomSearchCV(pipeline, space, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0).fit(
        TABLE, TABLE["pay"]
    )
    assert search.privacy_spent_.neighboring == "zero_out"
    assert search.score(TABLE, TABLE["pay"]) > 0.6


@pytest.mark.slow
def test_nothing_of_a_subset_search_counts_records():
    """Under add/remove the models of a subset use no number of records, and so need none to be stated."""
    model = classifier(neighboring="add_remove")
    search = DPSubsetSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0)
    assert search.fit(TABLE, TABLE["pay"]).score(TABLE, TABLE["pay"]) > 0.7


@pytest.mark.slow
def test_a_delta_is_compared_with_no_number_that_a_subset_search_draws():
    """The rest of the subset has about 1,000 records, and may have more: a candidate that failed then would show it."""
    X = np.random.default_rng(0).uniform(-1, 1, (1111, 1))
    model = DPGradientBoostingClassifier(
        {"a": (-1.0, 1.0)}, classes=[0, 1], target_epsilon=1.0, target_delta=1e-3, max_iter=5
    )
    space = {"prior_factor": [1.0, 1.25]}
    search = DPSubsetSearchCV(model, space, n_iter=2, delta=1e-4, subset_fraction=0.1, scoring="accuracy")
    for seed in range(12):
        found = search.set_params(random_state=seed).fit(X, (X[:, 0] > 0).astype(int)).best_estimator_
        assert found.privacy_guarantee() == model.privacy_guarantee()


@pytest.mark.slow
def test_columns_and_labels_that_do_not_fit_the_schema_are_errors_before_anything_is_spent():
    table = pd.DataFrame({"age": [20, 30] * 50, "trade": ["clerk", "nurse"] * 50, "late": [0, 1] * 50})
    schema = {"Age": (17, 90), "job": ["clerk", "nurse"], "late": ["no", "yes"]}
    search = DPSubsetSearchCV(DPGradientBoostingClassifier(schema, target="late"), "auto", epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"Found classes=\['no', 'yes'\]"):
        search.fit(table, table["late"])
    search.set_params(estimator__schema={**schema, "late": [0, 1]})
    with pytest.raises(Exception, match="Found columns 'Age', 'job' of the schema missing .*'age'"):
        search.fit(table, table["late"])
    assert not hasattr(search, "privacy_spent_")
    right = {"age": (17, 90), "trade": ["clerk", "nurse"], "late": [0, 1]}
    search.set_params(estimator__schema=right).fit(table, table["late"])
