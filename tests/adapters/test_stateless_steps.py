"""Steps that learn nothing from the data are free; those that could are told how not to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import (
    LeakingEstimatorError,
    UnknownGuaranteeError,
)

from ..search.toys import NoisyCentroids
from .toys import promise, refused

FREE = [
    AdditiveChi2Sampler(),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"),
    OrdinalEncoder(categories=[[1, 2, 3]], handle_unknown="use_encoded_value", unknown_value=-1),
    PolynomialFeatures(2),
    SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
]
LEARNING = [
    GaussianProcessRegressor(),
    OneHotEncoder(),
    OneHotEncoder(categories=[["a", "b"]], min_frequency=5),
    OrdinalEncoder(),
    OrdinalEncoder(categories=[[1, 2**53 + 1]], handle_unknown="use_encoded_value", unknown_value=-1),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=0.0),
]


@pytest.mark.parametrize("part", FREE, ids=repr)
def test_parts_that_keep_nothing_of_the_records_are_free(part):
    assert promise(make_pipeline(part, NoisyCentroids(epsilon=0.5))).epsilon_at(0.0) == 0.5


@pytest.mark.parametrize("part", [OneHotEncoder(categories=[["a"]]), OrdinalEncoder(categories=[[1]])], ids=repr)
def test_encoders_that_raise_at_an_unknown_category_are_refused(part):
    """One record would make every candidate fail, and show."""
    refused(LeakingEstimatorError, make_pipeline(part, NoisyCentroids()), "handle_unknown='error'", "Give it handle_")


@pytest.mark.parametrize("part", LEARNING, ids=repr)
def test_parts_that_keep_something_of_the_records_are_refused(part):
    refused(UnknownGuaranteeError, make_pipeline(part, NoisyCentroids()), type(part).__name__)


def test_every_transformer_that_is_free_keeps_the_same_state_whatever_the_records():
    """Fitted on two different data sets of one schema, no attribute differs."""
    words = np.array([["a"], ["b"], ["a"]], dtype=object), np.array([["b"], ["b"], ["a"]], dtype=object)
    numbers = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[2.0, 2.0], [1.0, 3.0]])
    for part, (first, second) in [
        (OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"), words),
        *((free, numbers) for free in FREE[3:]),
    ]:
        states = [vars(clone(part).fit(X)) for X in (first, second)]
        assert repr(states[0]) == repr(states[1])


def test_a_grid_that_makes_a_step_learn_is_refused_before_data_is_read():
    encoder = OrdinalEncoder(categories=[[1, 2]], handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(encoder, NoisyCentroids())
    search = DPRandomSearchCV(model, {"ordinalencoder__categories": ["auto"]}, n_iter=2)
    with pytest.raises(UnknownGuaranteeError, match="OrdinalEncoder"):
        search.fit(np.ones((20, 1)), np.arange(20) % 2)
