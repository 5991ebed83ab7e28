"""One odd value among usual ones: no other record is read otherwise, nothing is said of it, and no
type changes.

Containers by declared types, odd values by type, at the front, in the middle and at the end,
through every reader.
"""

from __future__ import annotations

import itertools
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.boosting._features import CodedColumns
from sklearn_dpsearch.data._columns import frame_of, is_frame
from sklearn_dpsearch.data._labels import as_array, positions, targets_like
from sklearn_dpsearch.preprocessing import Schema, TableEncoder

pd = pytest.importorskip("pandas")

N = 7
PLACES = (0, N // 2, N - 1)
TOKYO = timezone(timedelta(hours=9))
BIG = 2**53 + 1


class Evil:
    """Raises whatever is asked of it."""

    def _raises(self, *given):
        raise RuntimeError("secret")

    __eq__ = __ne__ = __hash__ = __float__ = __bool__ = __str__ = __repr__ = __len__ = __iter__ = (
        __array__
    ) = _raises


class Liar:
    """Equal to all, and some number for everybody."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __float__(self):
        return float("inf")

    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


def tensors():
    torch = pytest.importorskip("torch")
    return [
        torch.tensor(1.0, requires_grad=True),
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor(3),
    ]


def nested():
    endless: list = []
    endless.append(endless)
    return [
        [1, 2], (1.0,), {"a": 1}, {1, 2}, [[]], endless, np.arange(2), np.array(1), np.array("x"),
    ]  # fmt: skip


FLOATS = [
    0.0, -0.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, float(BIG), 0.1, 1e-300, -3.7,
    np.frombuffer(np.array(0x7FF8DEADBEEF0001, np.uint64).tobytes(), np.float64)[0],
]  # fmt: skip
WHOLES = [0, 1, -1, 2**63 - 1, -(2**63), BIG, 255, 17]
TEXTS = [
    "", " ", "a" * 5000, "\ud800", "nan", "1e400", "0", "1", "True", "é\u0301", "\x00",
    "2024-05-01T00:00:00+09:00", "9" * 400, "10:30 AM", "2024-05-01 10:00 EST", "now", "today",
    "2024-05-01T10:00[Europe/Paris]", "20240501",
]  # fmt: skip
INSTANTS = [
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), datetime(1970, 1, 1),
    datetime(1677, 1, 1), datetime(2263, 1, 1), datetime(2024, 2, 29, 12, 30, 1, 999999),
]  # fmt: skip
AWARE = [
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
    datetime(2024, 5, 1, 3, tzinfo=UTC),
]
OBJECTS = [
    *FLOATS, *WHOLES, *TEXTS, *INSTANTS, date(1, 1, 1), date(9999, 12, 31),
    datetime(2024, 5, 1, tzinfo=TOKYO), None, True, False, 10**400, b"", b"\xff", b"1", 1j,
    np.complex128(1), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999"), Fraction(1, 3),
    np.float16(7), np.longdouble("1e400"), np.int8(-3), np.datetime64("NaT", "us"),
    np.timedelta64(3, "D"), pd.NA, pd.NaT, pd.Timestamp("2024-05-01", tz="UTC"), pd.Timedelta(1),
    Evil(), Liar(), object(), int, ..., *nested(),
]  # fmt: skip
USUAL = {
    "floats": [0.5, 2.0, 1.0, 0.25, 3.0, 1.5, 0.75],
    "wholes": [1, BIG, 3, 1, BIG + 2, 3, 1],  # whole numbers that doubles cannot tell apart
    "flags": [True, False, True, True, False, True, False],
    "texts": ["x", "yy", "x", "z", "yy", "x", "z"],
    "instants": [datetime(2020 + i, 1, 1 + i, i) for i in range(N)],
    "aware": [datetime(2020 + i, 1, 1 + i, i, tzinfo=UTC) for i in range(N)],
    "objects": [1, "x", 2.5, None, "yy", True, 0],
    "counts": [1, 2, 3, 4, 5, 6, 7],
    "bytes": [b"x", b"yy", b"x", b"z", b"yy", b"x", b"z"],
}
ODD = {
    "floats": FLOATS, "wholes": WHOLES, "flags": [True, False], "texts": TEXTS,
    "instants": INSTANTS, "aware": AWARE, "objects": OBJECTS, "counts": [0, -1, 2**62, -(2**62)],
    "bytes": [b"", b"\xff", b"\xf0\x9f", "é".encode("latin-1")],
}  # fmt: skip


def objects(values):
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def of_pandas(dtype):
    return lambda values: pd.Series(pd.array(values, dtype=dtype), name="a")


def of_polars(dtype):
    def make(values):
        pl = pytest.importorskip("polars")
        return pl.Series("a", values, eval(dtype, {"pl": pl}))

    return make


def of_pyarrow(dtype, chunks=False):
    def make(values):
        pa = pytest.importorskip("pyarrow")
        array = pa.array(values, eval(dtype, {"pa": pa}), from_pandas=True)
        return pa.chunked_array([array[:3], array[3:]]) if chunks else array

    return make


def of_arrow_in_pandas(dtype):
    def make(values):
        pa = pytest.importorskip("pyarrow")
        return pd.Series(pd.array(values, dtype=pd.ArrowDtype(eval(dtype, {"pa": pa}))), name="a")

    return make


def categorical(categories):
    return lambda values: pd.Series(pd.Categorical(values, categories=categories))


def seen_as(kind, dtype, in_pandas=False):
    """Values of one type of PyArrow, seen as another: Python cannot hold all of them."""

    def make(values):
        pa = pytest.importorskip("pyarrow")
        array = pa.array(values, eval(kind, {"pa": pa})).view(eval(dtype, {"pa": pa}))
        return pd.Series(pd.arrays.ArrowExtensionArray(array), name="a") if in_pandas else array

    return make


RAGGED = (
    "ValueError: Found y as a list of rows that differ in shape; lists must be rectangular where "
    "no width is declared. Fill them up, or give y as an array.",
    "ValueError: Found y as a list of lists, which may differ in length; one label for each "
    "record, or an array of shape (n_samples, n_labels), is needed.",
)
#: Container ↦ kind of values, maker, and whether a value may be missing.
SERIES = {
    "float64": ("floats", lambda values: np.array(values, np.float64), False),
    "float32": ("floats", lambda values: np.array(values, np.float64).astype(np.float32), False),
    "longdouble": ("floats", lambda values: np.array(values, np.longdouble), False),
    "int64": ("wholes", lambda values: np.array(values, np.int64), False),
    "bool": ("flags", lambda values: np.array(values, bool), False),
    "U": ("texts", lambda values: np.array(values, str), False),
    "S": (
        "texts", lambda values: np.array([text.encode(errors="replace") for text in values]), False,
    ),
    "datetime64[us]": ("instants", lambda values: np.array(values, "datetime64[us]"), False),
    "datetime64[s]": ("instants", lambda values: np.array(values, "datetime64[s]"), False),
    "objects": ("objects", objects, True),
    "list": ("objects", list, True),
    "tuple": ("objects", tuple, True),
    "pandas object": ("objects", lambda values: pd.Series(objects(values), dtype=object), True),
    "index of pandas": ("objects", lambda values: pd.Index(objects(values), dtype=object), True),
    "index of numbers": ("wholes", lambda values: pd.Index(pd.array(values, dtype="Int64")), True),
    "pandas float": ("floats", lambda values: pd.Series(values, dtype=float), False),
    "pandas Int64": ("wholes", of_pandas("Int64"), True),
    "pandas Float64": ("floats", of_pandas("Float64"), True),
    "pandas boolean": ("flags", of_pandas("boolean"), True),
    "pandas string": ("texts", of_pandas("string"), True),
    "pandas datetime": (
        "instants", lambda values: pd.Series(np.array(values, "datetime64[us]")), False,
    ),
    "pandas datetime of a zone": ("aware", of_pandas("datetime64[us, Asia/Tokyo]"), True),
    "pandas categories": ("wholes", categorical(sorted({*WHOLES, *USUAL["wholes"]})), True),
    "pandas categories of text": (
        "texts", categorical(["x", "yy", "z", *TEXTS[:3], *TEXTS[4:]]), True,
    ),
    "arrow integers in pandas": ("wholes", of_arrow_in_pandas("pa.int64()"), True),
    "arrow text in pandas": ("texts", of_arrow_in_pandas("pa.string()"), True),
    "arrow instants in pandas": ("aware", of_arrow_in_pandas("pa.timestamp('us', 'UTC')"), True),
    **{f"polars {name}": (kind, of_polars(f"pl.{name}"), True) for name, kind in (
        ("Int64", "wholes"), ("Float64", "floats"), ("Boolean", "flags"), ("String", "texts"),
        ("Categorical", "texts"), ("Datetime('us')", "instants"),
        ("Datetime('us', 'Asia/Tokyo')", "aware"),
    )},
    **{f"pyarrow {name}": (kind, of_pyarrow(f"pa.{name}", chunks), True) for name, kind, chunks in (
        ("int64()", "wholes", False), ("int64()", "wholes", True), ("float64()", "floats", True),
        ("bool_()", "flags", True), ("string()", "texts", True),
        ("timestamp('us')", "instants", True), ("timestamp('us', 'UTC')", "aware", True),
        ("dictionary(pa.int32(), pa.string())", "texts", False),
    )},
    "durations": ("counts", seen_as("pa.int64()", "pa.duration('s')"), True),
    "durations in pandas": (
        "counts", seen_as("pa.int64()", "pa.duration('us')", in_pandas=True), True,
    ),
    "times of a day": ("counts", seen_as("pa.int64()", "pa.time64('us')"), True),
    "bytes as text": ("bytes", seen_as("pa.binary()", "pa.string()"), True),
    "bytes as text in pandas": (
        "bytes", seen_as("pa.binary()", "pa.string()", in_pandas=True), True,
    ),
}  # fmt: skip
ENTRIES = {
    "numbers": (0.0, 3.0),
    "dates": (date(2020, 1, 1), date(2030, 1, 1)),
    "list": {"values": ["x", 1, 2.5, BIG]},
    "buckets": {"buckets": 64},
}


def table(column):
    """A table of one column, in the library of the column."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"a": column})
    kind = type(column).__module__.partition(".")[0]
    if kind == "polars":
        return column.to_frame()
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table({"a": column})
    if isinstance(column, np.ndarray):
        return column[:, np.newaxis]
    return [[value] for value in column]


def unless_refused(read):
    def tried(column):
        try:
            return read(table(column))
        except TypeError as error:  # the type of the column cannot fit, whatever its values
            return str(error)

    return tried


def encoded(entry):
    return unless_refused(lambda X: TableEncoder({"a": entry}).transform(X))


def coded(entry):
    return unless_refused(lambda X: CodedColumns(Schema({"a": entry}), 8).codes(X).T)


def framed(column):
    X = table(column)
    return frame_of(X)["a"].to_numpy() if is_frame(X) else None


READERS = {
    **{f"encoder, {name}": encoded(entry) for name, entry in ENTRIES.items()},
    **{f"boosting, {name}": coded(entry) for name, entry in ENTRIES.items()}, "frame": framed,
    "labels": as_array, "places": lambda y: positions(y, ["x", 1, 2.5, BIG]),
    "labels by classes": lambda y: targets_like(y, [1, 2, 3], False),
    "labels by classes of text": lambda y: targets_like(y, ["x", "yy"], False),
    "targets": lambda y: targets_like(y, None, True),
}  # fmt: skip


def seen(read, container):
    """What comes out of a reader, and all that it says."""
    with warnings.catch_warnings(record=True) as said, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            found = read(container)
        except Exception as error:  # compared below
            found = f"{type(error).__name__}: {error}"
    return found, [str(one.message) for one in said]


def made(make, values):
    """The container; None where its own library does not take a value, or warns of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(values)
    except pytest.skip.Exception:
        raise
    except Exception:
        return None


def same(first, second):
    """Equal entries, bit for bit."""
    if first.dtype == np.longdouble:  # some of its bytes mean nothing
        return np.array_equal(first, second, equal_nan=True)
    if first.dtype != object:
        return first.tobytes() == second.tobytes()
    return all(
        one is other or (type(one) is type(other) and repr(one) == repr(other))
        for one, other in zip(first.flat, second.flat)
    )


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", SERIES)
def test_one_odd_value_changes_nothing_else(name, reader):
    kind, make, may_miss = SERIES[name]
    read, usual = READERS[reader], USUAL[kind]
    expected, before = seen(read, make(usual))
    odd = [*ODD[kind], *([None] if may_miss else []), *(tensors() if kind == "objects" else [])]
    tried = 0
    for value, place in itertools.product(odd, PLACES):
        container = made(make, [*usual[:place], value, *usual[place + 1 :]])
        if container is None:
            continue
        tried += 1
        found, said = seen(read, container)
        told = f"{type(value).__name__} at {place}"
        if isinstance(found, str) and name in ("list", "tuple") and not np.isscalar(value):
            assert found in RAGGED, told  # nested lists have no declared shape
            continue
        assert said == before, told
        assert type(found) is type(expected), told
        if not isinstance(expected, np.ndarray):
            assert found is expected or found == expected, told
            continue
        kinds = {found.dtype.kind, expected.dtype.kind}
        assert found.dtype == expected.dtype or kinds <= {"U"} or kinds <= {"S"}, told
        others = np.delete(np.arange(N), place)
        if kinds <= {"U", "S"}:
            assert found[others].tolist() == expected[others].tolist(), told
        else:
            assert same(found[others], expected[others]), told
    assert tried
