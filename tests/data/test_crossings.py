"""Whole fits with one odd record: no error, no warning, and no other record is read otherwise."""

from __future__ import annotations

import io
import struct
import threading
import warnings
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.data._persons import persons_in
from sklearn_dpsearch.data._plain_values import plain_value
from sklearn_dpsearch.data._records import Declared, read_parameter, read_records
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.report import schema_report

pd = pytest.importorskip("pandas")
dateutil_tz = pytest.importorskip("dateutil.tz")

N = 80
WEAK = PureDP(epsilon=1.0)
LABELS = np.arange(N) % 2


class Noted(ClassifierMixin, BaseEstimator):
    """Learns nothing."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], int)


class Telling(Noted):
    def fit(self, X, y):
        raise ValueError(f"the type of y is {y.dtype}")


def table(cell):
    column = np.array(["a", "b"] * (N // 2), dtype=object)
    column[7] = cell
    return pd.DataFrame({"job": pd.Series(column, dtype=object), "age": np.arange(N)})


class Zone(tzinfo):
    """A time zone of the user's own, which cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def utcoffset(self, instant):
        return timedelta(0)


#: An hour before UTC, in a zone from a file, which cannot be pickled either.
FILE = b"TZif" + bytes(16) + struct.pack(">6l lbb 4s", 0, 0, 0, 0, 1, 4, 3600, 0, 0, b"ONE")
UNNAMED = ZoneInfo.from_file(io.BytesIO(FILE))
STRUCTURED = np.array([(1, threading.Lock())], [("a", int), ("b", object)])[0]
NOON = datetime(2026, 1, 1, 12)


class Comparing(type):
    """Type that is equal to all types, and has no hash."""

    def __eq__(cls, other):
        return True

    __hash__ = None


class Cell(metaclass=Comparing):
    """Value of such a type."""


ODD = [
    *(threading.Lock(), lambda: 1, (n for n in ()), "\ud800", b"\xff", [1, [2]], 10**5000, Cell()),
    *(STRUCTURED, NOON.replace(tzinfo=Zone()), time(12, tzinfo=Zone()), NOON.astimezone(UNNAMED)),
    *(pd.Timestamp(NOON, tz=Zone()), {NOON.replace(tzinfo=Zone()): 1}),
    NOON.replace(tzinfo=dateutil_tz.tzoffset(None, 10**6)),  # of more than a day
]


@pytest.mark.processes
@pytest.mark.parametrize("cell", ODD, ids=lambda cell: type(cell).__name__)
def test_a_cell_of_any_type_makes_no_search_fail(cell):
    encode = OneHotEncoder(categories=[["a", "b"], list(range(N))], handle_unknown="ignore")
    search = DPRandomSearchCV(make_pipeline(encode, Noted()), {}, n_iter=2, guarantee=WEAK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(table(cell), LABELS)
    assert hasattr(search, "best_estimator_")


def test_plain_values_are_what_they_were_and_instants_stay():
    instant, zoned = pd.Timestamp(NOON), NOON.replace(tzinfo=UTC).astimezone(UNNAMED)
    of_pandas = [instant, instant - instant, instant.to_period("D"), pd.Interval(instant, instant)]
    tuples = [{("a", 1): 2, ("b", 2): 3}, {(1, 2)}]
    cells = [1, "a", None, NOON, time(12), NOON.replace(tzinfo=UTC), *tuples, *of_pandas]
    assert [plain_value(cell) for cell in cells] == cells
    assert plain_value(pd.NaT) is pd.NaT
    assert plain_value(zoned) == plain_value(pd.Timestamp(zoned)) == NOON.replace(tzinfo=UTC)
    assert type(plain_value(zoned).tzinfo) is timezone
    assert plain_value(pd.Interval(pd.Timestamp(zoned), pd.Timestamp(zoned))) is None
    assert plain_value({("a", Zone()): 1, ("b",): [Zone()]}) == {("a", None): 1, ("b",): [None]}


@pytest.mark.parametrize("long", ["c" * 1000, "c"])
def test_the_longest_text_is_nowhere(long):
    texts = np.array(["a", "b"] * 40)
    labels = np.array([*texts[:-1], long])
    records = read_records(labels[:, None], labels, Declared(classes=("a", "b")))
    assert records.X.dtype == records.y.dtype == object
    assert [header.dtype for header in records.headers] == [object, object]
    search = DPRandomSearchCV(Telling(classes=("a", "b")), {}, n_iter=2, guarantee=WEAK)
    # in the rehearsal, which shows errors
    with pytest.raises(ValueError, match="^the type of y is object"):
        search.fit(np.arange(2.0 * N).reshape(N, 2), labels)


def test_an_index_names_persons_by_its_type():
    """One missing name would make doubles of all, and one person of many."""
    names = [2**53 + 1, 2**53 + 2, 2**53 + 3, None] * 5
    for dtype in ("Int64", "int64[pyarrow]"):
        if "pyarrow" in dtype:
            pytest.importorskip("pyarrow")
        index = pd.Index(pd.array(names, dtype=dtype))
        np.testing.assert_array_equal(
            persons_in(index, 20), persons_in(pd.Series(names, dtype="Int64"), 20)
        )
    with pytest.raises(TypeError, match="MultiIndex"):
        persons_in(pd.MultiIndex.from_arrays([names, names]), 20)


def test_sample_weights_of_an_unknown_container_are_refused():
    class Weights(list):
        pass

    for given in (Weights([1.0] * 5), np.ma.masked_array(np.ones(5)), range(5), {1, 2}):
        with pytest.raises(TypeError, match="Found sample_weight of type"):
            read_parameter("sample_weight", given)
    assert read_parameter("sample_weight", [1.0, 2.0]).tolist() == [1.0, 2.0]
    X, y = np.ones((2, 1)), [0, 1]
    for pair in (read_parameter("eval_set", (X, y)), *read_parameter("eval_set", [(X, y)])):
        assert isinstance(pair, tuple)
        assert [part.shape for part in pair] == [(2, 1), (2,)]
    assert read_parameter("verbose", True) is True


@pytest.mark.parametrize(
    "text", ["10:30 AM", "2024-05-01 10:00 EST", "now", "2024-05-01T10:00[Europe/Paris]"]
)
def test_no_warning_tells_of_a_date(text):
    from datetime import date

    days = pd.Series(["2024-05-01", "2024-06-01"] * 40)
    days[7] = text
    schema = {"day": (date(2024, 1, 1), date(2025, 1, 1))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPGradientBoostingClassifier(schema, classes=[0, 1], target_mu=1.0, max_iter=2).fit(
            pd.DataFrame({"day": days}), LABELS
        )
        schema_report(pd.DataFrame({"day": days}), schema, epsilon=1.0)


class Start(ClassifierMixin, BaseEstimator):
    """A public model that reads what it is given in its own way."""

    classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        chance = 1 / (1 + np.exp(-np.asarray(X, dtype=float)[:, 0]))
        return np.column_stack([1 - chance, chance])


@pytest.mark.parametrize("row", [np.array([0.1]), [0.1], np.array([0.1], np.float64), (0.1,)])
def test_no_row_of_a_list_decides_at_which_values_others_start(row):
    rows = [np.array([number / N], np.float32) for number in range(N)]
    options = {"classes": [0, 1], "target_mu": 1.0, "init": Start()}
    model = DPGradientBoostingClassifier({"a": (0.0, 1.0)}, **options)
    model.classes_ = np.array([0, 1])
    starts = [
        model._init_outputs(table, N, fitting=True) for table in (rows, [*rows[:7], row, *rows[8:]])
    ]
    np.testing.assert_array_equal(*(np.delete(start, 7, axis=1) for start in starts))
