"""Nets for data frames in the searches: rehearsal, calibration and labels follow from the schema."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV, PrivacyError
from sklearn_dpsearch.nets import DPTabularClassifier, DPTabularRegressor
from sklearn_dpsearch.scoring.named_scorers import stated_facts

pytest.importorskip("torch")
pytest.importorskip("pandas")

from .boosting_toys import SCHEMA, TABLE

SPACE = {"learning_rate_factor": [0.5, 1.0]}


def classifier(**changed):
    return DPTabularClassifier(SCHEMA.without("price"), target="pay", sample_rate=0.1, max_epochs=8, **changed)


def regressor(**changed):
    return DPTabularRegressor(SCHEMA.without("pay"), target="price", sample_rate=0.1, max_epochs=8, **changed)


SEARCHES = {
    "random": lambda model: DPRandomSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4),
    "grid": lambda model: DPGridSearchCV(model, SPACE, epsilon=8.0, delta=1e-4),
    "threshold": lambda model: DPThresholdSearchCV(model, SPACE, threshold=0.7, epsilon=8.0, delta=1e-4),
    "subset": lambda model: DPSubsetSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_goes_from_a_table_to_labels(name):
    search = SEARCHES[name](classifier()).set_params(random_state=0).fit(TABLE, TABLE["pay"])  # K may be 0
    assert search.score(TABLE, TABLE["pay"]) > 0.8
    assert set(search.predict(TABLE)) <= {"low", "high"}
    assert search.privacy_spent_.epsilon <= 8.0
    assert any("schema was not taken from the records" in text for text in search.privacy_spent_.assumptions)


@pytest.mark.slow
def test_a_regressor_is_searched_too():
    search = DPRandomSearchCV(regressor(), SPACE, n_iter=2, epsilon=20.0, delta=1e-4).fit(TABLE, TABLE["price"])
    assert np.all((search.predict(TABLE) >= 0) & (search.predict(TABLE) <= 100))


@pytest.mark.slow
def test_the_space_around_a_net_needs_no_words():
    search = DPRandomSearchCV(classifier(), "auto", n_iter=3, epsilon=8.0, delta=1e-4).fit(TABLE, TABLE["pay"])
    assert search.best_params_ is not None
    assert set(search.best_params_) == {"learning_rate_factor", "hidden_layer_sizes"}


@pytest.mark.slow
@pytest.mark.parametrize("model", [classifier(), regressor()])
def test_a_dry_run_needs_no_records(model):
    assert np.isfinite(DPRandomSearchCV(model, SPACE, epsilon=8.0, delta=1e-4).dry_run().score)


def test_scorers_take_labels_and_bounds_from_the_schema():
    assert stated_facts(classifier()) == {"classes": ["high", "low"], "pos_label": "low"}
    assert stated_facts(regressor()) == {"y_range": (0.0, 100.0)}
    assert stated_facts(classifier().set_params(target=None)) == {}


def test_labels_of_another_kind_are_refused_before_anything_is_spent():
    search = DPRandomSearchCV(classifier(), SPACE, epsilon=8.0, delta=1e-4)
    with pytest.raises((ValueError, PrivacyError), match="classes"):
        search.fit(TABLE, (TABLE["pay"] == "low").astype(int))
    assert not hasattr(search, "privacy_spent_")
