"""Code books as people write them mean what they say, or are asked about by an error that shows
both spellings."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.preprocessing import Schema, TableEncoder

pd = pytest.importorskip("pandas")

#: A code that no double holds, and codes with it.
LARGE = str(2**53 + 1)
CODES = {"values": [1, 2, 2**53 + 1], "type": "number"}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
YEAR = {"type": "date", "minimum": "2020-01-01", "maximum": "2021-01-01"}
#: Entry of a code book ↦ the entry of a schema that it means.
BOOKS = {
    "min and max": ({"min": 2, "max": 9}, (2, 9)),
    "with bins": ({"min": 2, "max": 9, "bins": [5]}, {"lower": 2, "upper": 9, "bins": [5]}),
    "codes with labels": ({"1": "flat", "2": "house", LARGE: "boat"}, CODES),
    "two codes": ({"1": "flat", "2": "house"}, {"values": [1, 2], "type": "number"}),
    "codes of text": ({"A1": "none", "B": "some", "-": "no answer"}, ["A1", "B", "-"]),
    "numbers as keys": ({1: "flat", 3: "house"}, {"values": [1, 3], "type": "number"}),
    "JSON Schema, numbers": ({"type": "integer", "minimum": 0, "maximum": 120}, (0, 120)),
    "JSON Schema, exclusive": ({"exclusiveMinimum": 0.5, "maximum": 2.5}, (0.5, 2.5)),
    "JSON Schema, enum": ({"type": ["string", "null"], "enum": ["a", "b", None]}, ["a", "b"]),
    "JSON Schema, codes with labels": (
        {"oneOf": [{"const": 1, "title": "a"}, {"const": 2}, {"type": "null"}]}, {"values": [1, 2]},
    ),
    "JSON Schema, texts with labels": (
        {"type": "string", "anyOf": [{"const": "f", "title": "flat"}, {"const": "h"}]}, ["f", "h"],
    ),
    "JSON Schema, a type or null": ({"anyOf": [DIGIT, {"type": "null"}], "title": "N"}, (0, 9)),
    "JSON Schema, flags": ({"type": "boolean"}, [False, True]),
    "JSON Schema, dates": (YEAR, (date(2020, 1, 1), date(2021, 1, 1))),
    "Table Schema": ({"type": "number", "constraints": {"minimum": 0, "maximum": 9}}, (0, 9)),
    "Table Schema, enum": (
        {"name": "x", "type": "string", "constraints": {"enum": ["1"], "required": True}}, ["1"],
    ),
    "numbers as texts": ({"type": "integer", "enum": ["1", "+2.0", LARGE]}, CODES),
    "two dates as texts": (("2020-01-01", "2021-12-31"), (date(2020, 1, 1), date(2021, 12, 31))),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOKS)
def test_an_entry_means_what_it_says(name, tmp_path):
    book, meant = BOOKS[name]
    assert Schema({"x": book}) == Schema({"x": meant})
    assert Schema(dict(Schema({"x": book}))) == Schema({"x": meant})
    if isinstance(book, dict):
        (tmp_path / "book.json").write_text(json.dumps({"x": book}))
        expected = Schema(str(tmp_path / "book.json"))
        assert Schema(tmp_path / "book.json") == expected == Schema({"x": meant})
        yaml = pytest.importorskip("yaml")
        (tmp_path / "book.yaml").write_text(yaml.safe_dump({"x": book}, sort_keys=False))
        assert Schema(tmp_path / "book.yaml") == Schema({"x": meant})


FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
    {"name": "ok", "type": "boolean"},
]
PROPERTIES = {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}}
MEANT = {"age": (0, 99), "ok": [False, True]}


@pytest.mark.parametrize("book", [
    {"fields": FIELDS, "missingValues": [""]},
    {"name": "people", "schema": {"fields": FIELDS}},
    {"resources": [{"path": "people.csv", "schema": {"fields": FIELDS}}]},
    {"type": "object", "required": ["age"], "properties": PROPERTIES},
], ids=["fields", "a resource", "a package", "JSON Schema"])  # fmt: skip
def test_descriptions_of_open_data_are_schemas(book):
    assert Schema(book) == Schema(MEANT)


def test_a_column_may_be_called_as_a_word_of_a_code_book():
    expected = ["type", "fields", "schema"]
    assert list(Schema({"type": ["a", "b"], "fields": (0, 9), "schema": [1, 2, 3]})) == expected


@pytest.mark.parametrize(("entry", "match"), [
    ({"type": "integer"}, "does not say what the column may hold.*minimum"),
    ({"type": "string"}, "does not say.*enum.*buckets"),
    ({"type": "number", "minimum": 0}, "minimum"),
    ({"type": "geopoint"}, "type='geopoint'.*integer"),
    (
        ["2020-01-01", "2021-12-31"],
        r"For all values from 2020-01-01 to 2021-12-31 write .*\{values:",
    ),
    ({"min": 9, "max": 2}, "smallest value"),
    ({"min": 2, "most": 9}, "schema_of"),
], ids=str)  # fmt: skip
def test_what_does_not_say_enough_is_an_error(entry, match):
    with pytest.raises(ValueError, match=match):
        Schema({"x": entry})


@pytest.mark.parametrize(("entry", "values", "match"), [
    ([0, 1], [0.1, 0.7], r"real numbers in column 'x'.*\(0, 1\).*\{'values': \[0, 1\]\}"),
    ([True, False], ["yes", "no"], r"YAML makes flags of yes and no.*\['yes', 'no'\]"),
    (
        {"1": "flat", "2": "house"}, ["flat", "house"],
        "Found text in column 'x', and the numbers.*labels",
    ),
    ({"type": "integer", "enum": [1, 2]}, ["1", "2"], "Found text in column 'x'"),
    ({"type": "string", "enum": ["1", "2"]}, [1, 2], "integers in column 'x'"),
    ({"type": "number", "minimum": 0, "maximum": 9}, ["a", "b"], "text in column 'x'"),
    (YEAR, [1, 2], "integers in column 'x'"),
], ids=str)  # fmt: skip
def test_a_declared_type_that_the_column_contradicts_is_an_error_before_a_fit(entry, values, match):
    table = pd.DataFrame(
        {"x": pd.Series(values, dtype="string" if isinstance(values[0], str) else None)}
    )
    with pytest.raises(TypeError, match=match):
        TableEncoder({"x": entry}).fit(table)
    model = DPGradientBoostingClassifier({"x": entry}, classes=[0, 1], target_mu=1.0)
    with pytest.raises(TypeError, match=match):
        model.fit(table, np.array([0, 1]))
    assert not hasattr(model, "privacy_spent_")


def test_a_path_in_place_of_a_schema_is_told_who_reads_it():
    boosting = DPGradientBoostingClassifier("book.json", target_mu=1.0)
    for use in (
        lambda: TableEncoder("book.json").fit([[1.0]]),
        lambda: boosting.set_params(classes=[0, 1]).fit([[1.0]], [0]),
        lambda: boosting.set_params(classes=None, target="x").made_up(),
    ):
        match = r"Found schema='book.json'.*schema=Schema\('book.json'\)"
        with pytest.raises(TypeError, match=match):
            use()


def test_two_values_that_are_meant_are_taken():
    encoder = TableEncoder({"x": {"values": [0, 1]}})
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert encoder.fit_transform(pd.DataFrame({"x": [0.0, 1.0, 0.5]})).tolist() == expected
    assert TableEncoder({"x": [0, 1]}).fit_transform(pd.DataFrame({"x": [0, 1]})).shape == (2, 3)


def test_whole_numbers_with_missing_ones_are_no_real_numbers():
    column = pd.array([0, 1, None], dtype="Int64")
    assert TableEncoder({"x": [0, 1]}).fit_transform(pd.DataFrame({"x": column})).shape == (3, 3)
