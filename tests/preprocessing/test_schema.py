"""Schemas: what may be stated, kept as YAML, and drafted from a public sample."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dpsearch.preprocessing import Schema, TableEncoder, schema_of

pd = pytest.importorskip("pandas")
STATED = {
    "age": (17, 90), "share": (0.0, 0.25), "job": ["clerk", "nurse"], "code": [1, 2, 7],
    "flag": [False, True], "since": (date(2000, 1, 1), date(2030, 12, 31)),
    "at": (datetime(2000, 1, 1, 12), datetime(2000, 1, 2)),
}  # fmt: skip


def test_a_schema_is_what_was_stated():
    schema = Schema(STATED)
    assert dict(schema) == STATED == schema == dict(Schema(schema))


DAYS = (np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
EVERY_COLUMN = STATED | {
    "codes": {"1": "flat", "2": "house", "7": "boat"}, "two codes": {"1": "flat", "2": "house"},
    "directed": {"type": "integer", "enum": [1, 2, 3], "direction": "increasing"},
    "confirmed": {"values": [0, 1]}, "ends": {"values": [0, 5]}, "texts": {"values": ["b", "a"]},
    "flags": {"type": "boolean"}, "numbers as text": {"type": "string", "enum": ["1", "2"]},
    "hashed": {"buckets": 8}, "log": {"lower": -1, "upper": 9, "scale": "log", "bins": None},
    "bins": {"lower": 0, "upper": 9, "bins": np.array([2.5, 5.0]), "direction": "decreasing"},
    "days": DAYS, "hours": tuple(day.astype("datetime64[h]") for day in DAYS),
    "numpy": (np.float64(0), np.int64(3)), "numpy's texts": list(np.array(["a", "b"])),
    "pandas": tuple(map(pd.Timestamp, DAYS)),
}  # fmt: skip


@pytest.mark.parametrize("copied", [
    copy.copy, copy.deepcopy, lambda schema: pickle.loads(pickle.dumps(schema)), Schema,
    lambda schema: Schema(dict(schema)), lambda schema: Schema.from_yaml(schema.to_yaml()),
    lambda schema: clone(TableEncoder(schema)).schema, lambda schema: schema.only(*schema),
], ids=["copy", "deepcopy", "pickle", "Schema", "dict", "YAML", "clone", "only"])  # fmt: skip
def test_a_copy_has_all_fields_of_every_kind_of_column(copied):
    """A copy that forgot a declared kind let searches spend on a misread column."""
    schema = Schema(EVERY_COLUMN)
    for name, column in copied(schema).columns.items():
        assert repr(column) == repr(schema.columns[name])
    texts = pd.Series(["flat", "boat"], dtype="string")
    with pytest.raises(TypeError, match="Found text in column 'codes', and the numbers"):
        copied(schema).only("codes").read_columns(pd.DataFrame({"codes": texts}))
    assert list(copied(schema)) == list(EVERY_COLUMN)


def test_a_schema_survives_yaml(tmp_path):
    schema = Schema(STATED)
    assert schema.to_yaml(tmp_path / "schema.yaml") == schema.to_yaml()
    assert Schema.from_yaml(tmp_path / "schema.yaml") == schema


PAIRS = [[18, 90], [90, 18], [0.5, 1.5], [0.0, 0.25], [0, 2], [date(2020, 1, 1), date(2020, 1, 2)]]


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_a_list_that_looks_like_the_ends_of_a_range_is_an_error_with_both_spellings(pair):
    """Files have lists alone: read as two categories, a range costs much of the score, and nothing
    tells."""
    first, second = pair
    low, high = sorted(pair)
    with pytest.raises(ValueError, match="column 'x'") as caught:
        Schema({"x": pair})
    for spelling in (
        f"({low}, {high})",
        f"{{lower: {low}, upper: {high}}}",
        f"{{values: [{first}, {second}]}}",
    ):
        assert spelling in str(caught.value)
    assert Schema({"x": {"values": pair}}).classes("x") == pair
    assert Schema({"x": {"lower": low, "upper": high}}) == Schema({"x": (low, high)})


@pytest.mark.parametrize("pair", [
    [0, 1], [1, 2], [2, 1], [0.0, 1.0], [-1, 0], [False, True], ["18", "90"], [0, 1, 9], [7],
])  # fmt: skip
def test_other_lists_are_values(pair):
    assert Schema({"x": pair})["x"] == pair


def test_a_code_book_in_json_is_read(tmp_path):
    text = """{"age": {"lower": 18, "upper": 90}, "job": ["clerk", "nurse"],
               "code": {"values": [0, 5]}, "seen": {"lower": "2020-01-01", "upper": "2021-01-01"},
               "paid": {"lower": 0, "upper": 9, "scale": "log"}}"""
    stated = {
        "age": (18, 90),
        "job": ["clerk", "nurse"],
        "code": {"values": [0, 5]},
        "seen": (date(2020, 1, 1), date(2021, 1, 1)),
        "paid": {"lower": 0, "upper": 9, "scale": "log"},
    }
    (tmp_path / "code_book.json").write_text(text)
    assert Schema.from_json(text) == Schema(stated) == Schema.from_json(tmp_path / "code_book.json")
    with pytest.raises(ValueError, match=r"\(18, 90\)"):
        Schema.from_json('{"age": [18, 90]}')
    with pytest.raises(ValueError, match=r"\(18, 90\)"):
        Schema.from_yaml("age: [18, 90]\njob: [clerk]\n")
    with pytest.raises(ValueError, match="dictionary from names"):
        Schema.from_json("[{}]")


def test_parts_of_a_schema_serve_the_target():
    schema = Schema(STATED)
    assert "job" not in schema.without("job", "age")
    assert schema.classes("job") == ["clerk", "nurse"]
    assert schema.bounds("share") == (0.0, 0.25)
    with pytest.raises(ValueError, match=r"range .*'age'.*list of values"):
        schema.classes("age")
    with pytest.raises(ValueError, match="'job'; a range"):
        schema.bounds("job")
    with pytest.raises(KeyError, match="'jobs'.*Did you mean 'job'"):
        schema.without("jobs")


BAD = [
    (3, 1), (1, 1), (0, float("inf")), (float("nan"), 1), (0, 1, 2), (0,), "text", 5, None, [],
    ["a", "a"], ["a", None], [1, float("nan")], [["a"]], (0, date(2020, 1, 1)),
    (date(2021, 1, 1), date(2020, 1, 1)), ("a", "b"), {"lower": 1}, (False, True),
]  # fmt: skip


@pytest.mark.parametrize("stated", BAD, ids=repr)
def test_what_is_no_range_and_no_list_is_refused_by_name(stated):
    with pytest.raises(ValueError, match="column 'x'"):
        Schema({"x": stated})


@pytest.mark.parametrize("columns", [{}, None, [("a", (0, 1))], {1: (0, 1)}])
def test_what_is_no_dictionary_is_refused(columns):
    with pytest.raises(ValueError, match="dictionary from names"):
        Schema(columns)


def test_a_draft_covers_the_public_sample():
    sample = pd.DataFrame(
        {
            "age": [23, 61, 34],
            "rate": [0.013, 0.21, None],
            "job": ["nurse", None, "clerk"],
            "flag": [True, False, True],
            "coded": [0, 1, 1],
            "since": pd.to_datetime(["2021-05-06", "2019-01-02", None]),
        }
    )
    draft = schema_of(sample)
    assert draft["job"] == ["clerk", "nurse"]
    assert (draft["flag"], draft["coded"]) == ([False, True], [0, 1])
    assert schema_of(pd.DataFrame({"coded": [9, 2, 9]}))["coded"] == (2, 9)
    assert draft["since"] == (date(2019, 1, 2), date(2021, 5, 7))
    for name in ("age", "rate"):
        lower, upper = draft[name]
        assert lower <= sample[name].min() < sample[name].max() <= upper
        assert upper - lower < 2 * (sample[name].max() - sample[name].min())


def test_a_draft_refuses_what_nobody_could_list():
    with pytest.raises(ValueError, match="60 different values in column 'name'.*max_values"):
        schema_of(pd.DataFrame({"name": [f"person {i}" for i in range(60)]}))
    with pytest.raises(ValueError, match="no value in column 'x'"):
        schema_of(pd.DataFrame({"x": [np.nan]}))
    with pytest.raises(ValueError, match="0 different values"):
        schema_of(pd.DataFrame({"x": [None, None]}, dtype=object))
    with pytest.raises(TypeError, match="data frame"):
        schema_of(np.zeros((3, 2)))
