"""Curves of boosting: they add up to the model, or are its mean, and their band is the noise that
was added."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor

from .tables import SCHEMA, pd, table

TABLE = table()
#: Each bin has one of the values.
SMALL = {
    "age": {"lower": 0.0, "upper": 4.0, "bins": 4},
    "size": {"lower": 0.0, "upper": 3.0, "bins": 3},
    "job": ["clerk", "nurse", "pilot"],
    "old": [False, True],
}
ALL = pd.DataFrame(
    itertools.product(
        [0.5, 1.5, 2.5, 3.5], [0.5, 1.5, 2.5], ["clerk", "nurse", "pilot"], [False, True]
    ),
    columns=list(SMALL),
)


def classifier(target="pay", **changed):
    schema = SCHEMA.without(*{"pay", "grade", "price"} - {target})
    return DPGradientBoostingClassifier(
        schema,
        target=target,
        **{"target_mu": 10.0, "max_iter": 150, "random_state": 0, "noise_seed": 0, **changed},
    )


def regressor(**changed):
    schema = SCHEMA.without("pay", "grade")
    options = {"target_mu": 10.0, "max_iter": 150, "noise_seed": 0}
    return DPGradientBoostingRegressor(schema, target="price", **options, **changed)


def small(**changed):
    """Fit a model to records in which two columns act together."""
    records = ALL.iloc[np.random.default_rng(0).integers(0, len(ALL), 2000)]
    y = (records["age"] > 2) ^ (records["job"] == "nurse")
    given = {
        "classes": [False, True], "target_mu": 10.0, "max_iter": 60, "random_state": 0,
        "noise_seed": 0, **changed,
    }  # fmt: skip
    return DPGradientBoostingClassifier(SMALL, **given).fit(records, y)


def outputs(model, X):
    if isinstance(model, DPGradientBoostingRegressor):
        return model.predict(X)[:, np.newaxis]
    found = model.decision_function(X).reshape(len(X), -1)
    return found if found.shape[1] == 1 else found - found.mean(axis=1, keepdims=True)


def value_of(shape, name, given):
    """Effects at values of records: of the last value of the curve that is not above them."""
    if shape.of_list:
        return shape.effects[:, [shape.values.tolist().index(value) for value in given]]
    return shape.effects[:, np.searchsorted(shape.values, given.to_numpy(), side="right") - 1]


@pytest.mark.parametrize("target", ["pay", "grade", "price"])
def test_curves_of_single_columns_add_up_to_the_model(target):
    make = regressor if target == "price" else classifier
    model = make(max_features_per_cell=1, **({} if target == "price" else {"target": target})).fit(
        TABLE, TABLE[target]
    )
    inside = TABLE[
        (TABLE["age"] > 20) & (TABLE["age"] < 80) & (TABLE["wealth"] < 1e5) & TABLE["since"].notna()
    ]
    inside = inside[inside["job"] != "?"].assign(shop=None)
    shapes = model.shapes()
    since = inside["since"]
    added = sum(
        value_of(shapes[name], name, inside[name]) for name in ("age", "wealth", "job", "since")
    )
    added = added + value_of(shapes["since_month"], "since_month", since.dt.month)
    added = added + value_of(shapes["since_weekday"], "since_weekday", since.dt.day_of_week + 1)
    added = added + shapes["shop"].effects[:, [-1]]
    assert list(shapes) == ["age", "job", "wealth", "since", "since_month", "since_weekday", "shop"]
    found = outputs(model, inside)
    if target == "price":
        kept = (found[:, 0] > 0) & (found[:, 0] < 100)
        found, added = found[kept], added[:, kept]
    assert len(found) > 100
    rest = found - added.T
    np.testing.assert_allclose(rest - rest[0], 0.0, atol=1e-9)
    assert np.ptp(shapes["age"].effects) > 0.5


def test_a_curve_is_the_mean_over_all_values_of_the_other_columns():
    model = small(parts=16)
    assert {len(features) for features, *_ in model.partitions_} == {0, 1, 2, 3, 4}
    found_of_all = pd.Series(model.decision_function(ALL))
    for name, shape in model.shapes().items():
        means = found_of_all.groupby(ALL[name]).mean()
        found = value_of(shape, name, means.index.to_series())[0]
        np.testing.assert_allclose(found, means - means.mean(), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 4])
def test_the_band_is_the_spread_of_fits_whose_only_difference_is_the_noise(most):
    """In one round, after which no other pulls the noise back."""
    one = {"max_iter": 1, "max_features_per_cell": most, "parts": 16, "target_mu": 0.3}
    seed = next(
        seed for seed in range(50) if len(small(**one, random_state=seed).partitions_[1][0]) == most
    )
    fits = [small(**one, random_state=seed, noise_seed=fit).shapes() for fit in range(400)]
    moved = [name for name in SMALL if fits[0][name].noise.max() > 0]
    assert len(moved) == most
    for name in moved:
        spread = np.std([fit[name].effects for fit in fits], axis=0)
        stated = np.mean([fit[name].noise for fit in fits], axis=0)
        np.testing.assert_allclose(spread, stated, rtol=0.2)


def test_effects_are_zero_in_the_mean_over_the_public_range_or_list():
    for name, shape in classifier(target="grade").fit(TABLE, TABLE["grade"]).shapes().items():
        assert shape.effects.shape == shape.noise.shape == (3, len(shape.values))
        np.testing.assert_allclose(shape.effects.sum(axis=0), 0.0, atol=1e-9)
        if name == "age":
            lengths = np.diff(shape.values)[::2]
            np.testing.assert_allclose(shape.effects[:, ::2] @ lengths, 0.0, atol=1e-6)
        if name == "job":
            assert shape.values.tolist() == ["clerk", "nurse", "pilot", "unknown"]
            np.testing.assert_allclose(shape.effects[:, :3].sum(axis=1), 0.0, atol=1e-9)
