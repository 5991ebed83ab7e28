"""Containers share memory or not by addresses alone: no entry is read, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.data._memory import share_memory

pd = pytest.importorskip("pandas")

N = 64


def frame(kind, values):
    return pd.DataFrame({"a": pd.Series(values, dtype=kind)})


def of_polars(values):
    return pytest.importorskip("polars").DataFrame({"a": values})


def of_arrow(values):
    return pytest.importorskip("pyarrow").table({"a": values})


NUMBERS, TEXTS = list(range(N)), [f"text {number}" for number in range(N)]
TABLES = {
    "array": lambda: np.arange(2.0 * N).reshape(N, 2),
    "objects": lambda: np.array([[text] for text in TEXTS], dtype=object),
    "frame": lambda: pd.DataFrame(np.arange(2.0 * N).reshape(N, 2), columns=["a", "b"]),
    "Int64": lambda: frame("Int64", NUMBERS), "texts": lambda: frame(object, TEXTS),
    "categories": lambda: frame("category", TEXTS),
    "instants": lambda: frame("datetime64[us, UTC]", NUMBERS), "polars": lambda: of_polars(NUMBERS),
    "polars texts": lambda: of_polars(TEXTS), "arrow": lambda: of_arrow(NUMBERS),
    "arrow texts": lambda: of_arrow(TEXTS),
}  # fmt: skip


def rows(table, start, stop):
    return table.iloc[start:stop] if isinstance(table, pd.DataFrame) else table[start:stop]


@pytest.mark.parametrize("name", TABLES)
def test_a_slice_shares_memory_and_other_rows_do_not(name):
    pytest.importorskip("pyarrow")
    table, other = TABLES[name](), TABLES[name]()
    assert share_memory(table, table)
    assert share_memory(rows(table, 8, 40), table)
    assert not share_memory(rows(table, 0, 32), rows(table, 32, N))
    assert name == "objects" or not share_memory(table, other)


def test_other_columns_of_a_table_are_other_memory():
    table = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)})
    assert not share_memory(table[["a"]], table[["b"]])
    assert share_memory(table["a"].to_frame("c"), table)


def test_memory_is_shared_between_libraries():
    torch, values = pytest.importorskip("torch"), np.arange(9.0)
    assert share_memory(torch.from_numpy(values), values)
    assert share_memory(pd.DataFrame({"a": values}, copy=False), values)


def test_lists_share_their_rows():
    table = [[1.0, 2.0], [3.0, 4.0]]
    assert share_memory(table, table[:1])
    assert not share_memory(table, [[1.0, 2.0]])


@pytest.mark.filterwarnings("error")
def test_no_entry_is_read():
    class Odd:
        def __array__(self, *given, **options):
            raise AssertionError("read")

        __eq__ = __len__ = __str__ = __repr__ = __array__

    odd = np.empty((2, 1), dtype=object)
    odd[0, 0] = Odd()
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.table({"a": arrow.array([b"\xff", b"a"]).view(arrow.string())})
    late = arrow.table({"a": arrow.array([2**62, 0]).view(arrow.timestamp("s"))})
    for table in (odd, pd.DataFrame(odd, columns=["a"]), texts, late):
        assert not share_memory(table, np.zeros((2, 1)))
        assert share_memory(table, table[:1])
