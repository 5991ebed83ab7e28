"""Every record is read on its own: what others hold changes no number that encodes it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from sklearn_dpsearch.boosting._features import CodedColumns
from sklearn_dpsearch.preprocessing import Schema, TableEncoder

pd = pytest.importorskip("pandas")

LARGE = 2**53
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
#: Values some of which are equal, or are stored alike, and yet are not the same.
ANYTHING = [
    0.0, -0.0, 0, "0", False, "x", b"x", 1, 1.0, "1", True, "True", 1 + 0j, (1, 2), (1.0, 2.0), 2.5,
    "2.5", None, float("nan"), float("inf"), LARGE + 1, float(LARGE), 10**400, date(2024, 5, 1),
    "2024-05-01", datetime(2024, 5, 1), NOON, NOON.astimezone(timezone(timedelta(hours=9))), pd.NA,
    pd.NaT, np.float32(0.1), 0.1, [1], "nan",
]  # fmt: skip
ENTRIES = {
    "numbers": (0.0, 3.0),
    "whole numbers": (LARGE, LARGE + 8),
    "dates": (date(2020, 1, 1), date(2030, 1, 1)),
    "list": ["x", 0, 2.5, LARGE + 1, LARGE + 3],
    "buckets": {"buckets": 4096},
}
WHOLE = [1, LARGE + 1, LARGE + 3, None, 0]


def of_pandas(values, kind):
    return pd.DataFrame({"a": pd.array(values, dtype=kind)})


def of_categories(values):
    kept = sorted(value for value in WHOLE if value is not None)
    return pd.DataFrame({"a": pd.Categorical(values, categories=kept)})


def of_polars(values, kind):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"a": values}, schema={"a": getattr(pl, kind)})


TABLES = {
    "Int64": lambda values: of_pandas(values, "Int64"),
    "category": of_categories,
    "polars Int64": lambda values: of_polars(values, "Int64"),
}


def objects(values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_value_changes_how_another_is_read(entry):
    """Records in two orders, and each of them alone, have the same numbers and the same codes."""
    schema = {"a": ENTRIES[entry]}
    cases = (TableEncoder(schema).transform, lambda X: CodedColumns(Schema(schema), 16).codes(X).T)
    for read in cases:
        together, backwards = read(objects(ANYTHING)), read(objects(ANYTHING[::-1]))[::-1]
        alone = [read(objects([value]))[0].tolist() for value in ANYTHING]
        assert together.tolist() == backwards.tolist() == alone


@pytest.mark.parametrize("kind", TABLES)
def test_listed_whole_numbers_are_not_rounded(kind):
    found = TableEncoder({"a": {"values": [LARGE + 1, LARGE + 3]}}).transform(TABLES[kind](WHOLE))
    assert found.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_numbers_share_a_bucket_with_their_text():
    encoder = TableEncoder({"a": {"buckets": 4096}})
    cases = ([1, 1.0, "1", True, np.int8(1)], [0.0, -0.0, 0, "-0"], [None, float("nan"), pd.NA])
    for same in cases:
        assert len({tuple(row) for row in encoder.transform(objects(same)).tolist()}) == 1


def test_no_warning_tells_of_a_number_beyond_all_doubles():
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long doubles are doubles here")
    values = np.array([["1e4000"]]).astype(np.longdouble)
    assert TableEncoder({"a": (0, 1)}).transform(values).tolist() == [[1.0, 0.0]]
