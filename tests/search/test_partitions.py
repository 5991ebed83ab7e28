"""Subset searches over partitions of Dask: the release of one machine, and refusals before anything
is spent."""

from __future__ import annotations

import pytest

from ..clusters import told_by

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told():
    return told_by("search.over_partitions")


def test_releases_are_those_of_records_in_one_place(told):
    assert told["same"] == dict.fromkeys(told["same"], True)
    assert len(told["same"]) == 12


def test_workers_keep_nothing_and_are_trusted_by_the_statement(told):
    assert told["left"] == told["results left"] == 0
    assert len(told["stated"]) == 1
    assert "trusted as the caller is" in told["stated"][0]


def test_searches_that_need_all_records_are_refused_before_anything_is_spent(told):
    found = told["refused"]
    assert found.pop("spent") is False
    assert "DPSubsetSearchCV is needed" in found["a random search"]
    assert "Give the share of them that validates, e.g. cv=0.1" in found["all that is left"]
    assert "Leave it out, or give records in one place" in found["persons"]
    assert "the name of a column of X is needed" in found["labels elsewhere"]
    assert "Found 'wages' as y" in found["no column"]
    assert "dd.read_parquet(files)" in found["files"]
    assert "Leave checkpoint=None" in found["a checkpoint"]
    assert "missing from the table" in found["too few columns"]
    assert "Give target='pay'" in found["a target among features"]
    assert "Write Client(n_workers=2)" in told["without a cluster"]


def test_a_table_that_cannot_be_read_spends_nothing_and_is_not_quoted(told):
    message, spent = told["failing"]
    assert message.startswith("TrainingStoppedError: ")
    assert "nobody else" not in message
    assert not spent


def test_rows_in_another_order_at_each_computation_are_no_rest_of_a_subset(told):
    assert told["shuffled"].startswith(
        "TableChangedError: Found a partition with other rows, or another order of rows"
    )
    assert "X = X.persist()" in told["shuffled"]
