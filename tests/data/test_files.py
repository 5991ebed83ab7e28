"""Files are split into records so that none decides how another is read, and none is an error."""

from __future__ import annotations

import os

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._partitions import PartitionReader
from sklearn_dpsearch.data._files import read_file
from sklearn_dpsearch.errors import TrainingError

pd = pytest.importorskip("pandas")
pytest.importorskip("fsspec")

HEADER = b"age,job,label,other\n"
ROWS = [b"30,clerk,1,x", b"41,nurse,0,y", b"52,clerk,1,z"]
#: Lines that do not fit, or cannot be read.
ODD = [
    b"60,clerk,1,x,1", b"60,clerk", b"", b",,,", b'"60,clerk,1,x', b'60,"clerk,1,x',
    b'60,cl"erk,1,x', b'60,"a""b",1,x', b"60,\xff\xfe,1,x", b"\xff", b"60,\x00,1,x",
    b"60,clerk,1,x\r", b"x" * 200_000 + b",clerk,1,x", b"10000-01-01,clerk,1,x",
    "60,\ud800,1,x".encode("utf-8", "surrogatepass"), b"9" * 5000 + b",clerk,1,x", b"60,clerk,99,x",
    b"'60,clerk,1,x",
]  # fmt: skip
SCHEMA = {"age": (18, 90), "job": ["clerk", "nurse"]}


def written(folder, rows):
    path = folder / "table.csv"
    path.write_bytes(HEADER + b"\n".join(rows) + b"\n")
    return str(path)


def codes(path, **options):
    model = DPGradientBoostingClassifier(SCHEMA, classes=[0, 1], target_mu=1.0)
    model._loss_and_targets(np.empty(0))
    records, _ = PartitionReader("fit", model, "label", None, b"key", **options).records(path)
    return np.vstack([records._codes, records._targets])


@pytest.mark.parametrize("odd", ODD, ids=lambda row: repr(row[:24]))
@pytest.mark.filterwarnings("error")
def test_no_line_of_a_file_changes_another(odd, tmp_path):
    expected = codes(written(tmp_path, ROWS))
    for place in range(4):
        found = codes(written(tmp_path, [*ROWS[:place], odd, *ROWS[place:]]))
        np.testing.assert_array_equal(np.delete(found, place, axis=1), expected)


def test_quotes_end_with_their_line_unless_it_is_said_otherwise(tmp_path):
    path = written(tmp_path, [b'30,clerk,1,"two', b'lines"', *ROWS])
    assert codes(path).shape[1] == 5
    assert codes(path, newlines_in_values=True).shape[1] == 4


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    local = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster):
        yield


def fitted(*files, **options):
    seeds = {"random_state": 0, "noise_seed": 0, "max_iter": 2}
    model = DPGradientBoostingClassifier(SCHEMA, classes=[0, 1], target_mu=1.0, **seeds)
    return model.fit(list(files), "label", **options)


def test_a_fit_says_what_it_takes_for_an_end_of_a_record(client, tmp_path):
    path = written(tmp_path, ROWS * 20)
    parquet = str(tmp_path / "table.PARQUET")
    read_file(path, ["age", "job", "label"]).astype({"age": int, "label": int}).to_parquet(parquet)
    for options, files, sentence in (
        ({}, [path], "each record is one line: a quoted end of line makes several of one."),
        ({}, [parquet], None),
        ({"newlines_in_values": True}, [path], "every quote is closed"),
    ):
        told = fitted(*files, **options).privacy_spent_.assumptions
        about_files = [text for text in told if "the files" in text]
        assert len(about_files) == (sentence is not None)
        assert all(sentence in text for text in about_files)


def test_paths_are_whatever_the_system_takes_for_them_and_wrong_ones_are_named(client, tmp_path):
    expected = fitted(written(tmp_path, ROWS * 20)).weights_[-1]
    for paths in (tmp_path.iterdir(), os.scandir(tmp_path), os.scandir(os.fsencode(tmp_path))):
        np.testing.assert_array_equal(fitted(*paths).weights_[-1], expected)
    for name in ("nowhere.csv", "."):
        with pytest.raises(TrainingError, match=f"/{name}', which a worker cannot open.*needed"):
            fitted(f"{tmp_path}/{name}")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"Age,job,label\n30,clerk,1\n", r"\['Age', 'job', 'label'\]. Did you mean 'Age' for"),
        (b"age;job;label\n30;clerk;1\n", r"\['age;job;label'\].*with commas between them"),
        ("age,job,label\n30,clerk,1\n".encode("utf-16"), r"\[\].*in UTF-8"),
        (b"age,job,label\r30,clerk,1\r", r"\[\].*lines that end with \\n"),
        (b'"age,job,label\n30,clerk,1\n', r"\['age,job,label\\n'\]\..* A CSV file"),
    ],
)
@pytest.mark.parametrize("newlines_in_values", [False, True])
def test_a_missing_column_is_told_with_all_names(content, names, newlines_in_values, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=f"(?s)/table.csv.*missing from.*{names}") as caught:
        read_file(path, ["age", "job", "label"], newlines_in_values)
    assert "clerk" not in str(caught.value)


def test_parquet_reads_the_columns_of_the_schema_alone(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    bytes_as_text = pyarrow.array([b"\xff", b"a"]).view(pyarrow.string())
    table = pyarrow.table({"age": [30, 41], "other": bytes_as_text, "job": bytes_as_text})
    parquet.write_table(table, tmp_path / "table.parquet")
    assert read_file(tmp_path / "table.parquet", ["age"]).column_names == ["age"]
    assert read_file(tmp_path / "table.parquet", ["age", "job"])["age"].to_pylist() == [30, 41]


@pytest.mark.parametrize("text", ["", "NA", "nan", "null", "None"])
def test_texts_of_missing_values_are_missing(text, tmp_path):
    frame = read_file(written(tmp_path, [b"30," + text.encode() + b",1,x"]), ["job"])
    assert frame["job"].tolist() == [None]
