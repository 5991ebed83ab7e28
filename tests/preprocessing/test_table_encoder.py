"""The table encoder: unit scale, nothing learned, no value of a record that shows as an error."""

from __future__ import annotations

import io
import pickle
from datetime import date

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch.boosting import DPGradientBoostingRegressor
from sklearn_dpsearch.preprocessing import Schema, TableEncoder
from sklearn_dpsearch.preprocessing import _ranges as ranges

from ..search.toys import refuses_to_fit

pd = pytest.importorskip("pandas")
ENDS, DAYS = (date(2020, 1, 1), date(2020, 1, 11)), ["2020-01-06", "2019-07-01", None]
SCHEMA = {"age": (20, 80), "job": ["clerk", "nurse"], "since": ENDS}
ROWS = {"age": [50, 95, None], "job": ["clerk", "pilot", None], "since": DAYS}
NAMES = ["age", "age_missing", "job_clerk", "job_nurse", "job_unknown", "since", "since_missing"]
EXPECTED = [[0, 0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, -1, 0], [0, 1, 0, 0, 1, 0, 1]]


def tables():
    frame = pd.DataFrame(ROWS)
    yield "text", frame
    yield "dates", frame.assign(since=pd.to_datetime(frame["since"]))
    utc = pd.to_datetime(frame["since"], utc=True)
    yield "zone", frame.assign(since=utc.dt.tz_convert("Asia/Tokyo"))
    yield "category", frame.astype({"job": "category", "age": "Int64"})
    yield "string", frame.astype({"job": "string", "since": "string"})
    yield "objects", frame.astype(object)
    yield "more columns", frame.assign(other="?")[["other", "since", "job", "age"]]
    yield "array", frame.to_numpy(dtype=object)
    yield "list", frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def polars_tables():
    pl = pytest.importorskip("polars")
    yield pl.DataFrame(ROWS)
    yield pl.DataFrame(ROWS).with_columns(
        pl.col("since").str.to_date(), pl.col("job").cast(pl.Categorical)
    )


@pytest.mark.parametrize(("kind", "table"), tables(), ids=[kind for kind, _ in tables()])
def test_every_kind_of_table_becomes_the_same_numbers(kind, table):
    encoder = TableEncoder(SCHEMA)
    assert encoder.transform(table).tolist() == EXPECTED == encoder.fit_transform(table).tolist()
    assert encoder.get_feature_names_out().tolist() == NAMES


def test_polars_is_read_and_made():
    for table in polars_tables():
        assert TableEncoder(SCHEMA).fit_transform(table).tolist() == EXPECTED
        made = TableEncoder(SCHEMA).set_output(transform="polars").fit_transform(table)
        assert made.columns == NAMES
        assert made.to_numpy().tolist() == EXPECTED


def test_one_entry_of_text_makes_no_other_entry_missing():
    """Readers of CSV files make objects of a column with a single entry of text: that may not
    show."""
    table = pd.DataFrame({"age": ["50", "95", "?"], "code": ["1", "2", "?"]}, dtype=object)
    encoded = TableEncoder({"age": (20, 80), "code": [1, 2]}).fit_transform(table)
    assert encoded.tolist() == [[0, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]


@pytest.mark.parametrize("text", ["str", "string", "polars", "array"])
def test_a_range_for_a_column_of_words_is_an_error_before_anything_is_spent(text):
    """All of its entries would be missing, and the whole budget be spent on nothing."""
    words = ["clerk", "nurse"] * 50
    table = {
        "str": lambda: pd.DataFrame({"job": pd.Series(words, dtype="str")}),
        "string": lambda: pd.DataFrame({"job": pd.Series(words, dtype="string")}),
        "polars": lambda: pytest.importorskip("polars").DataFrame({"job": words}),
        "array": lambda: np.array(words)[:, np.newaxis],
    }[text]()
    if text == "str" and table["job"].dtype == object:
        pytest.skip("before pandas 3 text is objects")
    for model in (
        TableEncoder({"job": (0, 9)}),
        DPGradientBoostingRegressor({"job": (0, 9)}, bounds_y=(0, 1), target_mu=1),
    ):
        message = r"Found text in column 'job', and \(0, 9\) in the schema.*to_numeric"
        refuses_to_fit(model, TypeError, message, table, np.zeros(100))


@pytest.mark.parametrize("flags", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
@pytest.mark.parametrize("stated", [(0, 1), [False, True], [0, 1]])
def test_one_entry_of_text_leaves_the_flags_beside_it_what_they_were(stated, flags):
    encoder, (yes, no) = TableEncoder({"flag": stated}), flags
    files = (f"flag\n{yes}\n{no}\n{last}\n" for last in (no, "?"))
    clean, spoilt = (
        encoder.fit_transform(pd.read_csv(io.StringIO(file)).astype(object)) for file in files
    )
    assert (clean[:2] == spoilt[:2]).all()
    assert not (clean[2] == spoilt[2]).all()


def test_without_indicators_what_is_missing_or_unknown_is_zero():
    encoder = TableEncoder(SCHEMA, indicators=False)
    expected = [[0, 1, 0, 0], [1, 0, 0, -1], [0, 0, 0, 0]]
    assert encoder.fit_transform(pd.DataFrame(ROWS)).tolist() == expected
    assert encoder.get_feature_names_out().tolist() == ["age", "job_clerk", "job_nurse", "since"]


def test_nothing_is_learned():
    frame = pd.DataFrame(ROWS)
    fitted, other = TableEncoder(SCHEMA).fit(frame), TableEncoder(SCHEMA).fit(frame.iloc[:1])
    assert vars(fitted).keys() == vars(other).keys()
    expected = {k: str(v) for k, v in vars(other).items()}
    assert {k: str(v) for k, v in vars(fitted).items()} == expected
    one_by_one = np.vstack([fitted.transform(frame.iloc[[i]]) for i in range(len(frame))])
    assert (one_by_one == fitted.transform(frame)).all()


def test_it_is_an_estimator_like_others():
    encoder = TableEncoder(Schema(SCHEMA), indicators=False, row_norm=1.0)
    copy = pickle.loads(pickle.dumps(clone(encoder)))
    assert copy.get_params() == encoder.get_params()
    assert "TableEncoder(indicators=False" in repr(encoder)
    frame = pd.DataFrame(ROWS)
    assert make_pipeline(copy).fit(frame).transform(frame).shape == (3, 4)
    some = make_column_transformer(
        (TableEncoder({"age": (20, 80)}), ["age"]), verbose_feature_names_out=False
    )
    assert some.fit_transform(frame).tolist() == [[0, 0], [1, 0], [0, 1]]
    assert some.get_feature_names_out().tolist() == ["age", "age_missing"]
    assert (copy.fit(frame).n_features_in_, list(copy.feature_names_in_)) == (3, list(ROWS))
    assert not hasattr(copy.fit(frame.to_numpy()), "feature_names_in_")
    try:
        clone(encoder).transform(frame)
    except NotFittedError:  # pragma: no cover
        pytest.fail("it needs no fit")


FRAME = pd.DataFrame(ROWS)
TWICE = pd.DataFrame(np.zeros((2, 4)), columns=["age", "job", "since", "age"])
RENAMED = FRAME.rename(columns={"job": "jobs", "age": "aged"})
WRONG = [
    (FRAME.drop(columns="job"), ValueError, r"'job' of the schema missing.*\['age', 'since'\]"),
    (RENAMED, ValueError, "Did you mean 'aged' for 'age'.*Did you mean 'jobs' for 'job'"),
    (TWICE, ValueError, "'age' of the schema twice.*a name of its own"),
    (np.zeros((3, 2)), ValueError, r"shape \(3, 2\) without names; the schema has 3"),
    (csr_matrix(np.eye(3)), TypeError, "csr_matrix|csr_array"),
    (FRAME.assign(age=pd.to_datetime(["2020-01-01"] * 3)), TypeError, "dates in column 'age'"),
    (
        FRAME.assign(job=[1, 2, 3]), TypeError,
        r"integers in column 'job', and \['clerk', 'nurse'\]",
    ),
    (FRAME.assign(since=[1.0, 2.0, 3.0]), TypeError, "numbers in column 'since', and dates"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "error", "match"), WRONG)
@pytest.mark.parametrize("method", ["fit", "transform"])
def test_columns_that_are_not_those_of_the_schema_are_named(method, table, error, match):
    with pytest.raises(error, match=match):
        getattr(TableEncoder(SCHEMA), method)(table)


def test_names_that_meet_are_numbered():
    encoder = TableEncoder(
        {"a_b": (0, 1), "a": ["b", "unknown", "missing"], "job": ["unknown", "unknown_2"]}
    )
    names = list(encoder.get_feature_names_out())
    assert names == [
        "a_b", "a_b_missing", "a_b_2", "a_unknown", "a_missing", "a_unknown_2",
        "job_unknown", "job_unknown_2", "job_unknown_3",
    ]  # fmt: skip
    frame = pd.DataFrame(
        {"a_b": [1, None, 0], "a": ["unknown", "missing", "other"], "job": ["unknown", None, "x"]}
    )
    found = encoder.set_output(transform="pandas").fit_transform(frame)
    assert list(found.columns) == names
    assert found["a_unknown"].tolist() == [1, 0, 0]
    assert found["a_unknown_2"].tolist() == [0, 0, 1]
    assert found["job_unknown"].tolist() == [1, 0, 0]
    assert encoder.in_units(np.arange(9.0))[0].keys() == set(names)


def test_a_row_norm_is_one_constant_for_all():
    frame = pd.DataFrame(ROWS)
    plain = TableEncoder(SCHEMA).transform(frame)
    short = TableEncoder(SCHEMA, row_norm=0.5).transform(frame)
    np.testing.assert_allclose(short, plain * 0.5 / np.sqrt(3))
    assert np.linalg.norm(short, axis=1).max() <= 0.5 == TableEncoder(SCHEMA, row_norm=0.5).max_norm


@pytest.mark.parametrize("row_norm", [None, 2.0])
def test_coefficients_in_units_predict_the_same(row_norm):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, 50), "job": rng.choice(["clerk", "nurse"], 50)}
    )
    encoder = TableEncoder({"age": (20, 80), "job": ["clerk", "nurse"]}, row_norm=row_norm)
    model = LinearRegression().fit(
        encoder.transform(frame), 3 * frame["age"] + (frame["job"] == "nurse")
    )
    own, intercept = encoder.in_units(model.coef_, model.intercept_)
    by_hand = (
        intercept + own["age"] * frame["age"] + frame["job"].map(lambda job: own[f"job_{job}"])
    )
    np.testing.assert_allclose(by_hand, model.predict(encoder.transform(frame)))
    assert own["age"] == pytest.approx(3.0)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        encoder.in_units([1.0, 2.0, 3.0])


def test_made_up_records_fit_the_schema_and_have_nothing_else():
    schema = {**SCHEMA, "share": (0.0, 0.5), "flag": [False, True]}
    encoder = TableEncoder(schema)
    table = encoder.made_up(300, random_state=1)
    assert list(table) == list(schema)
    assert table.equals(encoder.made_up(300, random_state=1))
    assert set(table["job"]) == {"clerk", "nurse"}
    assert table["age"].dtype.kind == "i"
    assert table["age"].between(20, 80).all()
    assert table["share"].between(0.0, 0.5).all()
    assert table["since"].between(pd.Timestamp(2020, 1, 1), pd.Timestamp(2020, 1, 11)).all()
    names = list(encoder.get_feature_names_out())
    unused = [place for place, name in enumerate(names) if name.endswith(("_missing", "_unknown"))]
    assert not encoder.transform(table)[:, unused].any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("text", "read"), [
    ("2024-05-31T10:00Z", "2024-05-31T10:00"),
    ("2024-05-31T10:00z", "2024-05-31T10:00"),
    ("2024-05-31 10:00:00+02:00", "2024-05-31T08:00"),
    (b"2024-05-31T10:00-01:30", "2024-05-31T11:30"),
    (" 2024-05-31", "2024-05-31"),
    ("2024-05-31T10:00", "2024-05-31T10:00"),
    ("2024-05", "2024-05-01"),
    ("10000-01-01T00:00Z", "NaT"),
    ("2024-05-31T10:00+99", "NaT"),
    ("no date - at all", "NaT"),
])  # fmt: skip
def test_dates_in_text_are_read_in_utc_and_warn_of_nothing(text, read):
    assert str(ranges._as_instant(text)) == str(np.datetime64(read, "us"))
