"""Shapes: effects of the values of a column in a linear model, from the schema and the coefficients
alone."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from sklearn_dpsearch.preprocessing import Schema, TableEncoder

SCHEMA = Schema(
    {
        "age": {"lower": 20, "upper": 80, "bins": [30, 60]},
        "balance": {"lower": -100, "upper": 10_000, "scale": "log"},
        "job": ["clerk", "nurse", "unknown"],
        "shop": {"buckets": 4},
        "since": (date(2000, 1, 1), date(2001, 1, 1)),
    }
)
rng = np.random.default_rng(0)


def encoder(**changed):
    return TableEncoder(SCHEMA, **{"bins": "auto", **changed})


def drawn(one):
    return rng.normal(size=len(one.get_feature_names_out()))


def table_of(**columns):
    """Records with the given values, and constant ones in other columns."""
    given = {
        "age": 50, "balance": 0.0, "job": "clerk", "shop": "a", "since": datetime(2000, 6, 5),
        **columns,
    }  # fmt: skip
    n = max(len(values) for values in columns.values())
    return pd.DataFrame(
        {name: values if name in columns else [values] * n for name, values in given.items()}
    )


@pytest.mark.parametrize(
    "changed", [{}, {"bins": None}, {"bins": 3}, {"indicators": False}, {"row_norm": 1.0}]
)
@pytest.mark.parametrize("name", ["age", "balance", "job"])
def test_differences_of_effects_are_those_of_predictions(name, changed):
    one = encoder(**changed)
    coefficients = drawn(one)
    shape = one.shapes(coefficients)[name]
    values = shape.values[:3] if name == "job" else shape.values
    predicted = one.fit_transform(table_of(**{name: list(values)})) @ coefficients
    effects = shape.effects[0][: len(values)]
    np.testing.assert_allclose(effects - effects[0], predicted - predicted[0], atol=1e-9)


def test_an_unknown_value_stands_beside_a_value_of_that_name():
    one = encoder()
    coefficients = drawn(one)
    shape = one.shapes(coefficients)["job"]
    assert list(shape.values) == ["clerk", "nurse", "unknown", "unknown"]
    predicted = one.fit_transform(table_of(job=["clerk", "pilot"])) @ coefficients
    assert shape.effects[0][3] - shape.effects[0][0] == pytest.approx(predicted[1] - predicted[0])


def test_months_and_weekdays_have_shapes_of_their_own_that_add_up_to_the_prediction():
    one = encoder()
    coefficients = drawn(one)
    shapes = one.shapes(coefficients, columns=["since"])
    assert list(shapes) == ["since", "since_month", "since_weekday"]
    places = [0, 40, -1]
    days = pd.DatetimeIndex(shapes["since"].values[places])
    predicted = one.fit_transform(table_of(since=list(days))) @ coefficients
    whole, months, weekdays = (shape.effects[0] for shape in shapes.values())
    found = whole[places] + months[days.month - 1] + weekdays[days.day_of_week]
    np.testing.assert_allclose(found - found[0], predicted - predicted[0], atol=1e-6)


def test_the_curve_has_both_sides_of_each_edge_and_both_ends():
    shape = encoder().shapes(drawn(encoder()), columns=["age"])["age"]
    assert shape.values[0] == 20
    assert shape.values[-1] == 80
    assert np.all(np.diff(shape.values) > 0)
    for edge in (30, 60):
        place = np.flatnonzero(shape.values == edge)[0]
        assert edge - shape.values[place - 1] < 1e-6
        assert abs(shape.effects[0][place] - shape.effects[0][place - 1]) > 0.01
    assert not shape.of_list


def test_the_mean_effect_over_the_public_range_or_list_is_zero():
    one = encoder()
    shapes = one.shapes(drawn(one))
    age = shapes["age"]
    grid = np.linspace(20, 80, 60_001)
    assert np.interp(grid, age.values, age.effects[0]).mean() == pytest.approx(0.0, abs=1e-3)
    # the indicator has no share
    assert shapes["job"].effects[0][:3].sum() == pytest.approx(0.0, abs=1e-12)
    assert shapes["shop"].effects[0][:4].sum() == pytest.approx(0.0, abs=1e-12)
    assert list(shapes["shop"].values) == [0, 1, 2, 3, "missing"]


def test_noise_is_that_of_the_effects_under_noise_in_the_coefficients():
    one = encoder()
    mean, spread = drawn(one), 0.1 + rng.uniform(size=len(one.get_feature_names_out()))
    noisy = one.shapes(mean + spread * rng.normal(size=(4000, len(mean))))
    for name, shape in one.shapes(mean, spread).items():
        assert shape.noise.shape == shape.effects.shape
        # relative error of a standard deviation of 4,000 draws: 0.011; six of them
        np.testing.assert_allclose(noisy[name].effects.std(axis=0), shape.noise[0], rtol=0.07)


def test_one_number_is_the_noise_of_all_coefficients_and_none_is_not_known():
    one = encoder()
    coefficients = drawn(one)
    same = one.shapes(coefficients, np.full(len(coefficients), 0.3))
    for name, shape in one.shapes(coefficients, 0.3).items():
        np.testing.assert_array_equal(shape.noise, same[name].noise)
    assert all(shape.noise is None for shape in one.shapes(coefficients).values())


def test_wrong_widths_and_columns_are_named():
    match = r"coefficients of shape \(1, 3\); shape \(1, \d+\) is needed"
    with pytest.raises(ValueError, match=match):
        encoder().shapes([1.0, 2.0, 3.0])
    with pytest.raises(KeyError, match="no column 'jobs' in the schema"):
        encoder().shapes(drawn(encoder()), columns=["jobs"])
    with pytest.raises(KeyError, match="no column 'jobs' in the schema"):
        SCHEMA.only("jobs")
