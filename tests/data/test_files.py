"""Files are split into records so that none decides how another is read, and none is an error."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._partitions import PartitionReader
from sklearn_dpsearch.data._files import read_file

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


def test_a_fit_that_takes_ends_of_lines_in_values_says_so(tmp_path):
    distributed = pytest.importorskip("distributed")
    path = written(tmp_path, ROWS * 20)
    model = DPGradientBoostingClassifier(SCHEMA, classes=[0, 1], target_mu=1.0, max_iter=2)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        model.fit([path], "label", newlines_in_values=True)
        assert any("every quote is closed" in said for said in model.privacy_spent_.assumptions)
        model.fit([path], "label")
        assert not any("quote" in said for said in model.privacy_spent_.assumptions)


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
