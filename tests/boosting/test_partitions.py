"""Partitions that never move: the model of one process, whatever the cut, and whichever workers are
lost."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._partitions import (
    PartitionedRecords,
    PartitionFacts,
    PartitionReader,
    WorkerPartition,
    is_partitioned,
)
from sklearn_dpsearch.boosting._random_cells import SINGLE_CELL

from ..clusters import told_by
from .models import MODELS, STARTS, TABLE


@pytest.fixture(scope="module")
def told():
    return told_by("boosting.over_partitions")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*MODELS, "other ways"])
def test_weights_are_those_of_one_process_for_any_cut(told, kind):
    assert told["same"][kind] == dict.fromkeys(told["same"][kind], True)
    assert len(told["same"][kind]) == (7 if kind == "other ways" else 3)


@pytest.mark.slow
def test_lost_partitions_are_read_again_and_change_nothing(told):
    assert told["after losses"] == {"two classes": True, "numbers": True}


@pytest.mark.slow
def test_predictions_for_frames_of_dask_are_lazy_and_the_same(told):
    assert told["lazy"] == dict.fromkeys(MODELS, True)


@pytest.mark.slow
def test_persons_in_several_partitions_count_in_the_first(told):
    assert told["persons"] == dict.fromkeys(("together", "apart", "apart as other types"), True)


@pytest.mark.slow
def test_wrong_partitions_are_refused_and_no_record_is_written_anywhere(told):
    found = told["refused"]
    assert all(found.values()), found
    assert "missing from the table" in found["no column"]
    assert "the name of a column" in found["labels elsewhere"]
    assert "to_dask_dataframe" in found["an array"]
    assert "Found groups of type Series" in found["persons elsewhere"]
    assert "shuffle" in found["persons elsewhere"]
    assert "2 partitions of X and 3 of y" in found["fewer partitions of y"]
    assert "no record in 2 partitions" in found["no records"]
    assert found["no file"].startswith("TrainingError: Found 'a secret.csv', which a worker cannot")
    assert "missing from the table" in found["no text"]  # its first line is public
    assert "Give target='price'" in found["a target among features"]
    assert "target_delta" in found["large delta"]
    assert "DPSubsetSearchCV is needed" in found["a search"]
    assert found["a search of files"].startswith("TypeError: Found y of type str")
    assert found["nothing spent"] == "True"
    assert "a label of nobody else" not in told["written"]
    assert "secret bytes" not in told["written"]
    assert "0xff" not in told["written"]
    assert told["left"] == 0


def test_partitions_are_known_by_their_kind_alone():
    assert is_partitioned(["a.csv", Path("b.parquet")])
    for X in (TABLE, TABLE.to_numpy(), [], [[1.0, 2.0]], ["a.csv", 1.0], None):
        assert not is_partitioned(X)


@pytest.mark.slow  # it imports Dask
def test_partitions_need_a_client_before_anything_is_read():
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="No global client found"):
        MODELS["two classes"]().fit(["nowhere.csv"], "pay")


def test_a_call_that_comes_twice_is_made_once():
    """A cluster repeats a task whose answer was lost: a step must not be added a second time."""
    model = MODELS["numbers"]()
    kept, other = (WorkerPartition(model._records(TABLE, TABLE["price"])) for _ in range(2))
    calls = [("sums", (np.array([[step]]), SINGLE_CELL)) for step in (0.0, 2.5, 0.25)]
    answers = [kept.catch_up(number, [call]) for number, call in enumerate(calls)]
    np.testing.assert_array_equal(kept.catch_up(2, calls[2:]), answers[2])
    np.testing.assert_array_equal(kept.records.outputs, 2.75)
    np.testing.assert_array_equal(other.catch_up(0, calls), answers[2])  # one that was read again
    assert not np.array_equal(answers[1], answers[2])


@pytest.mark.parametrize("kind", MODELS)
def test_records_have_one_fingerprint_in_any_order_and_cut(kind):
    """So that a seed of noise, for tests, gives one process and any partitions the same noise."""
    model = MODELS[kind](init=STARTS[kind])
    target = TABLE[model.target]
    model._loss_and_targets(target.to_numpy())
    persons = np.arange(len(TABLE)) // 7

    def found(rows, **given):
        groups = persons[rows] if given else None
        return model._records(TABLE.iloc[rows], target.iloc[rows], groups).fingerprint()

    rows = np.random.default_rng(0).permutation(len(TABLE))
    for given in ({}, {"persons": True}):
        cut = [found(rows[persons[rows] % 3 == part], **given) for part in range(3)]
        np.testing.assert_array_equal(found(np.arange(len(TABLE)), **given), sum(cut))
    whole = found(np.arange(len(TABLE)))
    assert len(set(whole.tolist())) == 4
    assert not np.any(whole == found(np.arange(1, len(TABLE))))
    assert not np.any(whole == found(np.arange(len(TABLE)), persons=True))


@pytest.mark.parametrize("kind", MODELS)
def test_each_entry_of_a_file_is_read_by_itself(kind, tmp_path):
    """One text among numbers would make texts of all, in that file alone."""
    pytest.importorskip("pyarrow")
    model = MODELS[kind]()
    table = TABLE[:50].astype({"age": object}).copy()
    table.loc[7, "age"] = "unknown"
    table.to_csv(tmp_path / "table.csv", index=False)
    TABLE[:50].to_parquet(tmp_path / "table.parquet")
    model._loss_and_targets(np.empty(0))
    expected = TABLE[:50].copy()
    for name in ("table.parquet", "table.csv"):
        records, _ = PartitionReader("fit", model, model.target, None, b"key").records(
            str(tmp_path / name)
        )
        here = model._records(expected, expected[model.target])
        np.testing.assert_array_equal(records.fingerprint(), here.fingerprint())
        expected.loc[7, "age"] = np.nan


@pytest.mark.parametrize("odd", ["2020-01-01T00:00:00.123456789", "10000-01-01", "x", ""])
def test_no_date_of_a_file_decides_how_others_are_read(odd, tmp_path):
    pytest.importorskip("fsspec")  # Dask brings it
    dates = ["2500-06-01", "1700-01-31", "2024-05-31T12:00:00+02:00", odd]
    model = DPGradientBoostingClassifier(
        {"day": (date(1600, 1, 1), date(2600, 1, 1))}, classes=[0, 1], target_mu=1.0
    )
    model._loss_and_targets(np.empty(0))

    def codes(rows):
        pd.DataFrame({"day": rows, "label": 1}).to_csv(tmp_path / "table.csv", index=False)
        reader = PartitionReader("fit", model, "label", None, b"key")
        return reader.records(str(tmp_path / "table.csv"))[0]._codes

    np.testing.assert_array_equal(codes(dates)[:, :3], codes(dates[:3]))
    assert (codes(dates)[0, :3] < codes([""])[0]).all()  # none of them is missing


def test_a_missing_name_of_a_file_leaves_others_what_they_are(tmp_path):
    """As doubles the two names would be one."""
    pytest.importorskip("pyarrow")
    names = pd.array([2**62 + 1, 2**62 + 2, None], dtype="Int64")
    pd.DataFrame({"a": [0.1, 0.2, 0.3], "who": names, "label": 1}).to_parquet(
        tmp_path / "table.parquet"
    )
    model = DPGradientBoostingClassifier({"a": (0.0, 1.0)}, classes=[0, 1], target_mu=1.0)
    model._loss_and_targets(np.empty(0))
    records, persons = PartitionReader("fit", model, "label", "who", b"key").records(
        str(tmp_path / "table.parquet")
    )
    assert len(set(persons.tolist())) == 3
    assert records.n_units == 3


def test_persons_have_one_pseudonym_in_all_partitions():
    def pseudonyms(names, key=b"key"):
        reader = PartitionReader("fit", MODELS["numbers"](), None, "who", key)
        return set(reader._pseudonyms(np.array(names, dtype=object)).tolist())

    for names in ([1.0], [True], [1, 1], ["1", "01", " 1.0"], [Decimal(1), Fraction(1), 1 + 0j]):
        assert pseudonyms(names) == pseudonyms([1])
    names = ["2", 1, 1.5, "a", 2**63, float(2**60), 10**5000, float("inf"), "\ud800", np.int32(7)]
    names += [
        -1,
        -2,
        Decimal("7.1"),
        b"a",
        date(2020, 1, 1),
        UUID(int=1),
        UUID(int=2),
        None,
        np.nan,
    ]
    assert len(pseudonyms(names)) == len(names)
    assert pseudonyms(["a"]) != pseudonyms(["a"], b"another")
    # no name stops a fit: all odd ones are one person, whom no partition parts
    assert len(pseudonyms([{"a": 1}, {2}, ("a", "b"), pd.Timestamp(0), "", ""])) == 2
    with pytest.raises(TypeError, match=r"persons of type datetime64\[s\]; numbers or texts"):
        PartitionReader("fit", None, None, "who", b"key")._pseudonyms(np.zeros(1, "M8[s]"))


def test_a_person_counts_in_the_first_of_several_partitions(monkeypatch):
    model, names = MODELS["numbers"](), np.r_[0:20, 0:20, 10:60, [None] * 2]
    table = TABLE[: len(names)].assign(who=names)
    reader = PartitionReader("fit", model, "price", "who", b"key")
    first, _ = reader.records(table[:40])
    second, persons = reader.records(table[40:], place=1)
    assert len(persons) == 52
    facts = [PartitionFacts("", len(each), each) for each in (first.persons, persons)]
    monkeypatch.setattr(PartitionedRecords, "_read_partitions", lambda *given: facts)
    together = PartitionedRecords(None, reader, [(None,)] * 2, None).__enter__()
    ((_, apart),) = together._calls
    assert together.n_units == 62
    for records, counted in ((first, range(40)), (second, range(50, 92))):
        records.leave_out(*apart)
        expected, _ = reader.records(table.iloc[counted])
        sums = (each.sums(np.zeros((1, 1)), SINGLE_CELL) for each in (records, expected))
        np.testing.assert_array_equal(*sums)


def test_the_key_of_persons_is_not_shown():
    assert "a key" not in repr(PartitionReader("fit", MODELS["numbers"](), None, "who", b"a key"))
