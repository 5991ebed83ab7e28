"""Bins, logarithmic scales, parts of dates, hashed values: from public facts alone, and nothing of
a record shows."""

from __future__ import annotations

import decimal
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dpsearch.preprocessing import Schema, TableEncoder

pd = pytest.importorskip("pandas")


def encoded(schema, table, **options):
    encoder = TableEncoder(schema, **options).set_output(transform="pandas")
    return encoder.fit_transform(pd.DataFrame(table))


def test_equal_bins_stand_beside_the_value():
    found = encoded({"age": (0, 80)}, {"age": [0, 19, 20, 79, 99, -5, None]}, bins=4)
    names = ["age", "age_0_to_20", "age_20_to_40", "age_40_to_60", "age_60_to_80", "age_missing"]
    assert list(found.columns) == names
    assert found["age"].tolist()[:3] == [-1, 19 / 40 - 1, 20 / 40 - 1]
    assert found[names[1:]].to_numpy().argmax(axis=1).tolist() == [0, 0, 1, 3, 3, 0, 4]
    assert (found[names[1:]].sum(axis=1) == 1).all()


@pytest.mark.parametrize(("column", "number"), [
    ((0.0, 1.0), 16), ((0, 100), 16), ((1, 16), 16), ((0, 4), 5), ((0, 1), 0),
])  # fmt: skip
def test_the_number_of_bins_follows_from_the_range(column, number):
    names = TableEncoder({"a": column}, bins="auto", indicators=False).get_feature_names_out()
    assert len(names) == 1 + number


def test_each_of_few_whole_numbers_has_its_own_bin():
    found = encoded({"a": (2, 5)}, {"a": [2, 3, 4, 5]}, bins="auto", indicators=False)
    assert found.to_numpy()[:, 1:].tolist() == np.eye(4).tolist()


def test_a_column_states_its_own_bins():
    schema = {
        "age": {"lower": 17, "upper": 90, "bins": [25, 35.5, 50]},
        "n": {"lower": 0, "upper": 9, "bins": None},
    }
    found = encoded(schema, {"age": [24, 25, 36, 90], "n": [0, 1, 2, 3]}, bins=3, indicators=False)
    expected = ["age", "age_17_to_25", "age_25_to_35.5", "age_35.5_to_50", "age_50_to_90", "n"]
    assert list(found.columns) == expected
    assert found.to_numpy()[:, 1:5].tolist() == np.eye(4).tolist()


def test_logarithmic_scales_are_signed():
    schema = {"balance": {"lower": -1000, "upper": 1000, "scale": "log"}}
    found = encoded(
        schema, {"balance": [-1000, -1, 0, 1, 1000, 1e9]}, bins=4, indicators=False
    ).to_numpy()
    step = np.log(2) / np.log(1001)
    np.testing.assert_allclose(found[:, 0], [-1, -step, 0, step, 1, 1], atol=1e-12)
    assert found[:, 1:].argmax(axis=1).tolist() == [0, 1, 2, 2, 3, 3]
    expected = ["balance_-1000_to_0", "balance_0_to_1000"]
    assert list(TableEncoder(schema, bins=2).get_feature_names_out())[1:3] == expected


def test_dates_have_months_weekdays_and_hours_where_they_differ():
    days = {"since": (date(2020, 1, 1), date(2022, 1, 1))}
    found = encoded(days, {"since": ["2020-02-03", "2021-12-31", None]}, bins=2)
    assert found["since_month_2"].tolist() == [1, 0, 0]
    assert found["since_month_12"].tolist() == [0, 1, 0]
    assert found["since_weekday_1"].tolist() == [1, 0, 0]  # a Monday
    assert found["since_weekday_5"].tolist() == [0, 1, 0]
    assert not any("hour" in name for name in found.columns)
    assert found.to_numpy()[2].tolist() == [0] * 22 + [1]
    timed = {"at": (datetime(2020, 1, 1), datetime(2020, 1, 3))}
    found = encoded(
        timed, {"at": ["2020-01-01 00:30", "2020-01-02 23:59:59", "2020-01-02 07:00"]}, bins=2
    )
    assert not any("month" in name or "weekday" in name for name in found.columns)
    expected = np.eye(3).tolist()
    assert [found[name].tolist() for name in ("at_hour_0", "at_hour_23", "at_hour_7")] == expected


def test_many_values_share_public_buckets():
    values = [f"town {i}" for i in np.random.default_rng(0).integers(0, 5000, 1000)]
    found = encoded({"town": {"buckets": 64}}, {"town": [*values, None]})
    assert list(found.columns) == [*(f"town_bucket_{i}" for i in range(64)), "town_missing"]
    assert (found.sum(axis=1) == 1).all()
    assert found["town_missing"].tolist() == [0] * 1000 + [1]
    assert 60 <= (found.sum() > 0).sum() <= 65
    again = encoded({"town": {"buckets": 64}}, {"town": values[:3]})
    np.testing.assert_array_equal(again.to_numpy(), found.to_numpy()[:3])


SCHEMA = {
    "age": {"lower": 17, "upper": 90, "bins": [25, 35, 50]},
    "balance": {"lower": -100.0, "upper": 1000.0, "scale": "log"},
    "since": {"lower": date(2000, 1, 1), "upper": date(2030, 1, 1), "bins": [date(2010, 1, 1)]},
    "town": {"buckets": 8},
    "job": ["clerk", "nurse"],
    "plain": {"lower": 0, "upper": 1},
}


class Raising:
    """Compares, hashes and converts with errors."""

    def _raises(self, *given):
        raise RuntimeError

    __eq__ = __hash__ = __float__ = _raises


ODD = [
    None, np.nan, pd.NA, pd.NaT, np.inf, -np.inf, -1e308, 10**400, 2**70, 25, 17, 90, True, 1j, "",
    "x", "25", "1e999", "2020-13-45", b"clerk", np.str_("nurse"), (1,), [2], {}, set(), object(),
    Raising(), float, date(1, 1, 1), decimal.Decimal("sNaN"), datetime.max,
    datetime(9999, 12, 31, tzinfo=timezone(timedelta(hours=-12))), np.datetime64("NaT", "s"),
]  # fmt: skip


@pytest.mark.slow
@given(
    st.lists(st.tuples(*[st.integers(0, len(ODD))] * len(SCHEMA)), min_size=1, max_size=5),
    st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(
        lambda e: e[1] - e[0] > 1e-300
    ),
    st.one_of(st.floats(), st.integers(), st.text(max_size=3)),
)
def test_no_value_is_an_error_and_no_row_is_longer_than_stated(rows, ends, value):
    """Nor does a value leave the bounds, whatever the range of its column."""
    values = [value, *ODD]  # drawn by number: Hypothesis compares what it draws
    table = pd.DataFrame(
        [[values[i] for i in row] for row in rows], columns=list(SCHEMA), dtype=object
    )
    for options in ({}, {"bins": "auto"}, {"bins": 3, "row_norm": 2.0}):
        encoder = TableEncoder({**SCHEMA, "plain": ends}, **options)
        found = encoder.fit_transform(table)
        assert found.shape[1] == len(encoder.get_feature_names_out())
        assert (np.linalg.norm(found, axis=1) <= encoder.max_norm * (1 + 1e-12)).all()
        lowest, largest = encoder.bounds
        assert ((found >= lowest) & (found <= largest)).all()
        alone = np.vstack([encoder.transform(table.iloc[[i]]) for i in range(len(table))])
        np.testing.assert_array_equal(alone, found)


def test_the_longest_row_is_as_long_as_stated():
    schema = {"a": (0, 1), "b": ["x"], "c": (0.0, 1.0)}
    found = encoded(schema, {"a": [1], "b": ["x"], "c": [1]}, bins=4)
    expected = pytest.approx(TableEncoder(schema, bins=4).max_norm)
    assert np.linalg.norm(found) == expected == pytest.approx(np.sqrt(5))


def test_a_schema_with_options_is_what_was_stated():
    schema = Schema(SCHEMA)
    assert dict(schema) == {**SCHEMA, "plain": (0, 1)}
    assert schema.bounds("balance") == (-100.0, 1000.0)
    made = TableEncoder(SCHEMA, bins="auto").made_up(50)
    assert TableEncoder(SCHEMA, bins="auto").fit_transform(made).shape[0] == 50


@pytest.mark.parametrize(("stated", "match"), [
    ({"lower": 0, "upper": 9, "bins": [5, 3]}, "rising edges"),
    ({"lower": 0, "upper": 9, "bins": [9]}, "rising edges"),
    ({"lower": 0, "upper": 9, "bins": ["a"]}, "rising edges"),
    ({"lower": 0, "upper": 9, "bins": 1}, "number of bins from 2"),
    ({"lower": 0, "upper": 9, "bins": True}, "number of bins from 2"),
    ({"lower": 0, "upper": 9, "bins": np.eye(2)}, "rising edges"),
    ({"lower": 0, "upper": 9, "scale": "lgo"}, "'linear', or 'log'"),
    ({"lower": 0, "upper": 9, "direction": ["increasing"]}, "'increasing'.* is needed"),
    ({"lower": date(2020, 1, 1), "upper": date(2021, 1, 1), "scale": "log"}, "'linear', or 'log'"),
    ({"lower": 0, "upper": 9, "bin": 3}, "'bins': "),
    ({"buckets": 1}, "whole number from 2"),
    ({"buckets": 8, "lower": 0}, "'buckets': 64"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(stated, match):
    with pytest.raises(ValueError, match=f"column 'a' of the schema.*{match}|{match}"):
        Schema({"a": stated})


def test_bins_of_the_encoder_are_checked():
    with pytest.raises(ValueError, match="bins.*parameter of TableEncoder"):
        TableEncoder({"a": (0, 1)}, bins=1).fit(pd.DataFrame({"a": [0]}))
