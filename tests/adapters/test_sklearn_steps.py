"""Steps that learn nothing are fitted on a made-up record: private ones decide neither their types
nor their names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.adapters._sklearn_steps import FittedByParameters
from sklearn_dpsearch.privacy import LeakingEstimatorError, PureDP, UnknownGuaranteeError

from ..search.toys import NoisyCentroids
from .toys import promise, refused

N = 200
RNG = np.random.default_rng(0)
WHOLE = RNG.integers(0, 3, N)
LABELS = RNG.integers(0, 2, N)


def one_hot(*values):
    return OneHotEncoder(categories=[list(values)], handle_unknown="ignore", sparse_output=False)


def ordinal(*values):
    return OrdinalEncoder(
        categories=[list(values)], handle_unknown="use_encoded_value", unknown_value=-1
    )


def constant(fill):
    return SimpleImputer(strategy="constant", fill_value=fill, keep_empty_features=True)


def of_polars(values, dtype):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"a": polars.Series(values, dtype=getattr(polars, dtype))})


def of_pandas(values, dtype):
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


def categorical(values, dtype):
    return pd.DataFrame(
        {"a": pd.Categorical(pd.Series(values, dtype="Int64").to_numpy(object), categories=dtype)}
    )


#: Column with a missing value or without: how it is made, of which values, and of which type.
TABLES = {
    "whole numbers of polars": (of_polars, WHOLE, "Int64"),
    "flags of polars": (of_polars, WHOLE > 0, "Boolean"),
    "whole numbers of pandas": (of_pandas, WHOLE, "Int64"),
    "flags of pandas": (of_pandas, WHOLE > 0, "boolean"),
    "categories": (categorical, WHOLE, [0, 1, 2]),
    "categories of the values": (of_pandas, WHOLE, "category"),
}


def table(name, missing):
    make, values, dtype = TABLES[name]
    return make([None, *values[1:].tolist()] if missing else values.tolist(), dtype)


STEPS = [
    one_hot(0, 1, 2),
    one_hot(0.5, 1.5, 2.5),
    one_hot(0.0, 1.0),
    ordinal(0, 1, 2),
    ordinal(0.5, 1.5, 2.5),
    constant(0),
    constant(0.0),
    make_pipeline(constant(7), one_hot(0, 1, 2, 7)),
    ColumnTransformer([("one", one_hot(0, 1, 2), [0]), ("two", ordinal(0, 1), [0])]),
    make_union(one_hot(0, 1), constant(1)),
]


def state(part):
    """All that a fitted part keeps, with types."""
    if isinstance(part, np.ndarray):
        return part.dtype.str, [state(value) for value in part.ravel().tolist()]
    if isinstance(part, (list, tuple)):
        return [state(value) for value in part]
    if isinstance(part, dict):
        return {key: state(value) for key, value in part.items()}
    is_step = hasattr(part, "get_params") and not isinstance(part, (type, NoisyCentroids))
    return (type(part).__name__, state(vars(part)) if is_step else repr(part))


def releases(step, name, kind=DPRandomSearchCV, **more):
    model = make_pipeline(clone(step), NoisyCentroids(epsilon=50.0, random_state=0))
    for missing in (False, True):
        search = kind(model, {"noisycentroids__shrink": [0.0]}, random_state=0, delta=1e-5, **more)
        yield search.fit(table(name, missing), LABELS).best_estimator_[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: repr(step)[:40].replace("\n", ""))
def test_one_missing_value_changes_nothing_of_the_released_steps(step, name):
    whole, missing = releases(step, name, n_iter=2)
    assert state(whole) == state(missing)
    assert list(whole.get_feature_names_out()) == list(missing.get_feature_names_out())


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TABLES)[:2])
def test_the_final_model_of_a_subset_search_has_steps_by_parameters_too(name):
    whole, missing = releases(one_hot(0, 1, 2), name, DPSubsetSearchCV, subset_fraction=0.5)
    assert state(whole) == state(missing)
    assert list(whole.get_feature_names_out()) == ["a_0", "a_1", "a_2"]


@pytest.mark.slow
def test_scores_are_those_of_records_read_alone():
    """Of records without a missing value the imputer would refuse the type, and all of them would
    count as failures."""
    model = make_pipeline(constant(0.5), NoisyCentroids(epsilon=1e6, random_state=0))
    options = {"random_state": 0, "delta": 1e-5, "score_noise": PureDP(epsilon=1e6)}
    for missing in (False, True):
        search = DPRandomSearchCV(model, {}, n_iter=2, **options)
        search.fit(table("whole numbers of polars", missing), (WHOLE > 0).astype(int))
        assert search.best_score_ == pytest.approx(1.0, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_released_pipelines_are_scikit_learns_own_and_read_new_records(declared):
    model = make_pipeline(
        ColumnTransformer([("kinds", one_hot(0, 1, 2), ["a"]), ("rest", constant(0.0), ["c"])]),
        NoisyCentroids(),
    )
    table = pd.DataFrame({"a": WHOLE, "c": RNG.normal(size=N)})
    guarantee = PureDP(epsilon=1.0) if declared else None
    search = DPRandomSearchCV(model, {}, n_iter=2, guarantee=guarantee)
    found = search.fit(table, LABELS).best_estimator_
    assert [type(step) for _, step in found.steps] == [ColumnTransformer, NoisyCentroids]
    actual = {type(step) for _, step, _ in (*found[0].transformers, *found[0].transformers_)}
    assert actual == {OneHotEncoder, SimpleImputer}
    expected = ["kinds__a_0", "kinds__a_1", "kinds__a_2", "rest__c"]
    assert list(found[0].get_feature_names_out()) == expected
    assert found.predict(table[:3]).shape == (3,)
    assert clone(found).get_params()["columntransformer__kinds__categories"] == [[0, 1, 2]]


@pytest.mark.parametrize(("step", "record"), [
    (Normalizer(), np.ones((1, 3))),
    (PolynomialFeatures(2), np.ones((1, 3))),
    (FunctionTransformer(np.abs), np.ones((1, 2, 2))),
    (HashingVectorizer(), [""]),
    (FeatureHasher(), [{"a": 1}]),
], ids=repr)  # fmt: skip
def test_other_steps_are_fitted_with_columns_alone(step, record):
    typed = FittedByParameters(step)
    assert typed.fit_transform(record).shape == clone(step).fit_transform(record).shape


# --- which steps learn nothing --------------------------------------------------------------------

FREE = [
    AdditiveChi2Sampler(), one_hot("a", "b"), ordinal(1, 2, 3), PolynomialFeatures(2),
    constant(0.0),
]  # fmt: skip
#: Steps that may learn, and the remedy in the error.
LEARNING = [
    (GaussianProcessRegressor(), "learns nothing"),
    (OneHotEncoder(), "public categories="),
    (OneHotEncoder(categories=[["a", "b"]], min_frequency=5), "min_frequency"),
    (OrdinalEncoder(), "public categories="),
    (ordinal(1, 2**53 + 1), "only up to 2**53"),
    (SimpleImputer(), "TableEncoder"),
    (SimpleImputer(strategy="constant", fill_value=0.0), "keep_empty_features=True"),
    # without one, the type of the records decides between 0 and a word
    (constant(None), "a public fill_value"),
]


@pytest.mark.parametrize("part", FREE, ids=repr)
def test_parts_that_keep_nothing_of_the_records_are_free(part):
    assert promise(make_pipeline(part, NoisyCentroids(epsilon=0.5))).epsilon_at(0.0) == 0.5


@pytest.mark.parametrize(
    "part", [OneHotEncoder(categories=[["a"]]), OrdinalEncoder(categories=[[1]])], ids=repr
)
def test_encoders_that_raise_at_an_unknown_category_are_refused(part):
    """One record would make every candidate fail, and show."""
    model = make_pipeline(part, NoisyCentroids())
    refused(LeakingEstimatorError, model, "handle_unknown='error'", "Give it handle_")


@pytest.mark.parametrize(("part", "remedy"), LEARNING, ids=repr)
def test_parts_that_keep_something_of_the_records_are_refused_with_the_remedy(part, remedy):
    words = ("without privacy", type(part).__name__, remedy)
    refused(UnknownGuaranteeError, make_pipeline(part, NoisyCentroids()), *words)


def test_a_grid_that_makes_a_step_learn_is_refused_before_data_is_read():
    model = make_pipeline(ordinal(1, 2), NoisyCentroids())
    search = DPRandomSearchCV(model, {"ordinalencoder__categories": ["auto"]}, n_iter=2)
    with pytest.raises(UnknownGuaranteeError, match="OrdinalEncoder"):
        search.fit(np.ones((20, 1)), np.arange(20) % 2)


ODD_CELLS = [[1], {}, float("nan"), float("inf"), "x", None, np.zeros(2)]


@pytest.mark.parametrize(("step", "rows", "odd"), [
    *((one_hot("a", "b"), [["a"], ["b"], ["a"]], [cell]) for cell in ODD_CELLS),
    *((ordinal("a", "b"), [["a"], ["b"], ["a"]], [cell]) for cell in ODD_CELLS),
    *(
        (PolynomialFeatures(), [[1.0, 2.0], [3.0, 4.0], [0.5, 0.1]], [cell, 1.0])
        for cell in (np.nan, np.inf)
    ),
    (Normalizer(), [[1.0, 2.0], [3.0, 4.0], [0.5, 0.1]], [np.nan, 1.0]),
    (HashingVectorizer(n_features=8), ["some words", "others", "more"], 7),
    (HashingVectorizer(n_features=8), ["some words", "others", "more"], None),
    (FeatureHasher(n_features=8), [{"a": 1}, {"b": 2}, {"a": 3}], "text"),
], ids=lambda one: repr(one)[:24])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_record_on_which_a_step_fails_is_blank_and_changes_no_other(step, rows, odd):
    def read(records):
        table = np.empty(
            (len(records), len(records[0])) if isinstance(rows[0], list) else len(records), object
        )
        for place, record in enumerate(records):
            if isinstance(record, list):
                for column, cell in enumerate(record):
                    table[place, column] = cell
            else:
                table[place] = record
        if isinstance(step, (PolynomialFeatures, Normalizer)):
            table = table.astype(float)
        found = FittedByParameters(clone(step)).fit(table).transform(table)
        return found.toarray() if hasattr(found, "toarray") else np.asarray(found)

    expected = read(rows)
    for place in range(4):
        found = read([*rows[:place], odd, *rows[place:]])
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.delete(found, place, axis=0), expected)
        assert np.isfinite(found).all()
