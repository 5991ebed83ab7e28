"""Codes of tables: each value has its own place, by the schema alone."""

from __future__ import annotations

import pickle
from datetime import date

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._base import FACTS
from sklearn_dpsearch.boosting._features import BinLookup, CodedColumns
from sklearn_dpsearch.data._rows import ChosenRows
from sklearn_dpsearch.preprocessing import Schema

pd = pytest.importorskip("pandas")


def codes(stated, values, max_bins=4):
    columns = CodedColumns(Schema({"a": stated}), max_bins)
    found = columns.codes(pd.DataFrame({"a": values}))
    assert found.max(axis=1).tolist() <= [feature.size - 1 for feature in columns.features]
    return found.tolist(), columns.features


def test_numbers_are_in_equal_bins_and_missing_ones_in_the_last():
    found, (feature,) = codes((0.0, 8.0), [-5.0, 0.0, 1.9, 2.0, 7.9, 99.0, np.nan, np.inf, -np.inf])
    assert found == [[0, 0, 0, 1, 3, 3, 4, 3, 0]]
    assert feature.size == 5
    assert [cut.tolist() for cut in feature.cuts] == [[0, 1, 2]]


def test_few_whole_numbers_have_bins_of_their_own_and_fractions_finer_ones():
    found, (feature,) = codes((0, 2), [0, 1, 2, None], max_bins=4)
    assert len(set(found[0])) == 4
    by_number, by_fraction = feature.cuts
    assert len(by_number) == 2
    assert len(by_fraction) == 3


def test_long_ranges_are_cut_on_a_logarithmic_scale_too():
    found, (feature,) = codes((0, 100_000), [0, 5, 20, 400, 30_000, 90_000], max_bins=8)
    assert len(set(found[0])) == 6
    assert len(feature.cuts) == 2
    assert len(codes({"lower": 0, "upper": 100_000, "scale": "log"}, [1])[1][0].cuts) == 1
    assert len(codes((0, 100), [1])[1][0].cuts) == 1


def test_bins_of_the_schema_are_kept():
    found, (feature,) = codes({"lower": 0, "upper": 100, "bins": [10, 50]}, [9, 10, 49, 50, 70])
    assert found == [[0, 1, 1, 2, 2]]
    assert feature.size == 4


def test_values_of_a_list_have_places_in_its_order_without_cuts():
    found, (feature,) = codes(["x", "y"], ["y", "x", "?", None])
    assert found == [[1, 0, 2, 2]]
    assert feature.cuts is None


def test_buckets_are_those_of_the_encoder():
    found, (feature,) = codes({"buckets": 5}, ["x", "y", "x", None])
    assert found[0][0] == found[0][2] < 5
    assert found[0][3] == 5
    assert feature.size == 6


def test_a_date_has_its_range_and_its_parts():
    values = pd.to_datetime(["2020-01-06", "2021-12-31", None])
    found, features = codes((date(2020, 1, 1), date(2022, 1, 1)), values)
    assert found == [[0, 3, 4], [0, 11, 12], [0, 4, 7]]  # a Monday in January, a Friday in December
    assert [feature.column for feature in features] == [0, 0, 0]


def test_codes_take_as_many_bytes_as_the_values_need():
    assert (
        CodedColumns(Schema({"a": {"buckets": 70_000}}), 4).codes(pd.DataFrame({"a": ["x"]})).dtype
        == np.uint32
    )
    assert (
        CodedColumns(Schema({"a": {"buckets": 300}}), 4).codes(pd.DataFrame({"a": ["x"]})).dtype
        == np.uint16
    )
    assert (
        CodedColumns(Schema({"a": {"buckets": 255}}), 4).codes(pd.DataFrame({"a": ["x"]})).dtype
        == np.uint8
    )


def test_chosen_rows_are_coded_like_a_copy_of_them_and_read_block_by_block(monkeypatch):
    X, chosen = np.random.default_rng(0).uniform(-1, 9, (50, 2)), np.arange(49, 0, -3)
    columns = CodedColumns(Schema({"a": (0.0, 8.0), "b": (0, 8)}), 4)
    copied = columns.codes(X[chosen])
    read, taken = [], ChosenRows.__getitem__

    def counting(rows, places):
        found = taken(rows, places)
        read.append(len(found))
        return found

    monkeypatch.setattr(ChosenRows, "__getitem__", counting)
    monkeypatch.setattr("sklearn_dpsearch.boosting._features.BLOCK", 7)
    np.testing.assert_array_equal(columns.codes(ChosenRows(X, chosen)), copied)
    assert read == [7, 7, 3]


@pytest.mark.parametrize("edges", [
    [], [1.0, 2.0], np.linspace(0, 1, 128),
    np.unique(np.concatenate([np.linspace(0, 1e5, 128), np.geomspace(1, 1e5, 128)])),
    [-1e308, -1e307, 0.0, 1e307, 1e308], np.arange(5) * 5e-324, 1e15 + np.arange(50.0),
])  # fmt: skip
def test_bins_are_looked_up_as_a_search_finds_them(edges):
    """Also at edges, next to them, and beyond all."""
    edges, rng = np.array(edges), np.random.default_rng(0)
    close = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    far = [-np.inf, -1e308, -1.0, -0.0, 0.0, 1e15, 1e308, np.inf]
    numbers = np.concatenate([*close, far, rng.uniform(size=1000), rng.uniform(-1e5, 2e5, 1000)])
    np.testing.assert_array_equal(
        BinLookup(edges).bins(numbers), np.searchsorted(edges, numbers, side="right")
    )


# --- facts about the table ------------------------------------------------------------------------


def classifier(**changed):
    schema = {"age": (0, 99), "pay": ["low", "high"]}
    return DPGradientBoostingClassifier(
        schema, **{"target": "pay", "target_mu": 5.0, "max_iter": 3, **changed}
    )


@pytest.mark.parametrize("directions", [None, {"age": 1}])
def test_a_fit_builds_the_schema_once_and_predictions_never(directions, monkeypatch):
    built, true = [], Schema.__init__
    monkeypatch.setattr(Schema, "__init__", lambda *given: built.append(given[1]) or true(*given))
    table = pd.DataFrame({"age": [10, 50, 90] * 9, "pay": ["low", "high", "high"] * 9})
    model = classifier(monotonic_cst=directions).fit(table, table["pay"])
    assert len(built) == 1
    model.predict(table), model.shapes(), model.columns_read()
    assert len(built) == 1


def test_facts_follow_a_changed_argument_and_a_fit_reads_a_changed_dictionary():
    model = classifier()
    assert model.public_facts == {"classes": ["low", "high"]}
    model.set_params(schema={"age": (0, 99), "pay": [1, 2, 3]})
    assert model.public_facts == {"classes": [1, 2, 3]}
    model.schema["income"] = (0, 9)
    model.privacy_guarantee()
    assert list(model._facts.features) == ["age", "income"]


def test_a_pickle_holds_no_resolved_facts():
    model = classifier()
    model.columns_read()
    assert FACTS in vars(model)
    assert FACTS not in vars(pickle.loads(pickle.dumps(model)))
