"""Cells: every record in exactly one, whatever was drawn, and nothing but the schema and a seed
decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sklearn_dpsearch.boosting._capacity import MOST_CELLS, parts_by_cell_width
from sklearn_dpsearch.boosting._features import CodedColumns
from sklearn_dpsearch.boosting._random_cells import (
    EXPLORATION,
    GAIN_SHARE,
    SINGLE_CELL,
    PartitionDraws,
)
from sklearn_dpsearch.preprocessing import Schema

from .tables import SCHEMA, table

COLUMNS = CodedColumns(SCHEMA.without("pay", "grade", "price"), 16)


def drawn(*given):
    """Partitions of rounds that gain nothing."""
    return list(PartitionDraws(*given))


GROUPS = parts_by_cell_width(16, 4)
PARTITIONS = drawn(COLUMNS.features, 300, GROUPS, np.random.default_rng(0))


def test_every_combination_of_codes_has_one_cell_and_every_cell_a_combination():
    for partition in PARTITIONS:
        sizes = [COLUMNS.features[place].size for place in partition.features]
        assert [len(lookup) for lookup in partition.lookups] == sizes
        groups = [np.unique(lookup).tolist() for lookup in partition.lookups]
        cells = sorted(sum(each) for each in itertools.product(*groups))
        assert cells == list(range(partition.n_cells))


def test_cells_of_records_are_sums_over_their_own_features():
    codes = COLUMNS.codes(table(50))
    for partition in PARTITIONS[:20]:
        lookups = zip(partition.features, partition.lookups)
        parts = [lookup[codes[place]].astype(int) for place, lookup in lookups]
        assert partition.cells(codes).tolist() == np.sum(parts, axis=0).tolist()


def test_the_start_has_one_cell_and_rounds_have_one_to_four_features():
    assert SINGLE_CELL.n_cells == 1
    assert set(SINGLE_CELL.cells(COLUMNS.codes(table(5)))) == {0}
    assert {len(partition.features) for partition in PARTITIONS} == set(GROUPS) == {1, 2, 3, 4}
    only = drawn(COLUMNS.features, 20, parts_by_cell_width(16, 1), np.random.default_rng(0))
    assert {len(partition.features) for partition in only} == {1}


def test_a_round_names_a_feature_once():
    assert all(len(set(partition.features)) == len(partition.features) for partition in PARTITIONS)


def test_values_in_order_are_cut_and_missing_ones_are_apart_in_rounds_of_one_feature():
    for partition in PARTITIONS:
        for place, lookup in zip(partition.features, partition.lookups):
            if COLUMNS.features[place].cuts is not None:
                assert np.all(np.diff(lookup[:-1].astype(int)) >= 0)
                if len(partition.features) == 1:
                    assert lookup[-1] == partition.n_cells - 1 > lookup[-2]


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 8, 64, 128, 300, 10**6])
def test_cells_are_numbered_in_as_few_bytes_as_hold_them(parts):
    fine = CodedColumns(SCHEMA.without("pay", "grade", "price"), 300)
    groups = parts_by_cell_width(parts, 4)
    assert max(count**width for width, count in groups.items()) < MOST_CELLS
    for partition in drawn(fine.features, 40, groups, np.random.default_rng(0)):
        found = partition.cells(fine.codes(table(50)))
        assert found.dtype == (np.uint8 if partition.n_cells <= 256 else np.uint16)
        assert all(lookup.dtype == found.dtype for lookup in partition.lookups)


def test_fewer_features_than_a_cell_could_have_are_enough():
    alone = CodedColumns(
        SCHEMA.without("pay", "grade", "price", "since", "shop", "wealth", "job"), 16
    )
    parts = drawn(alone.features, 20, GROUPS, np.random.default_rng(0))
    assert {partition.features for partition in parts} == {(0,)}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_repeats_the_cells(seed):
    one, other = (drawn(COLUMNS.features, 9, GROUPS, np.random.default_rng(seed)) for _ in range(2))
    for mine, theirs in zip(one, other):
        assert mine.features == theirs.features
        for lookup, same in zip(mine.lookups, theirs.lookups):
            np.testing.assert_array_equal(lookup, same)


def test_later_rounds_take_features_that_gained_more_often():
    draws = PartitionDraws(COLUMNS.features, 2000, {1: 8}, np.random.default_rng(0))
    first = int(EXPLORATION * 2000)
    for partition in draws:
        draws.see({0: 4.0, 1: 1.0, 2: -50.0}.get(partition.features[0], 0.0))
    parts = draws.drawn[first:]
    counts = np.bincount([one.features[0] for one in parts], minlength=len(COLUMNS.features)) / 1600
    equal = (1 - GAIN_SHARE) / len(COLUMNS.features)
    expected = [
        equal + GAIN_SHARE * 2 / 3, equal + GAIN_SHARE / 3, *[equal] * (len(COLUMNS.features) - 2),
    ]  # fmt: skip
    np.testing.assert_allclose(counts, expected, atol=0.05)
    parts = draws.drawn[:first]
    early = np.bincount([one.features[0] for one in parts], minlength=len(COLUMNS.features)) / first
    np.testing.assert_allclose(early, 1 / len(COLUMNS.features), atol=0.06)


def test_columns_of_many_values_are_alone_in_half_of_all_rounds_more():
    shops, numbers = [f"shop {place}" for place in range(100)], dict.fromkeys("abcd", (0.0, 1.0))
    schema = Schema({"shop": shops, "town": {"buckets": 64}, **numbers})
    features = CodedColumns(schema, 16).features
    draws = PartitionDraws(features, 1000, {1: 20, 2: 6, 4: 2}, np.random.default_rng(0))
    for _ in draws:
        draws.see(0.0)
    alone = [one.features[0] for one in draws.drawn if len(one.features) == 1]
    share = np.bincount(alone, minlength=6) / 1000
    assert share[:2] == pytest.approx([0.25 + 1 / 36, 0.25 + 1 / 36], abs=0.04)
    assert share[2:] == pytest.approx([1 / 36] * 4, abs=0.02)
