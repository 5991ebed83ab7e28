"""Rows of an array without a copy: as good as the copy, for nets and in searches, and no other row
is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.data._rows import ChosenRows

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(40, 3)).astype(np.float32)
NUMBERS = RNG.permutation(40)[:25].astype(np.int32)


@pytest.mark.parametrize("numbers", [NUMBERS, NUMBERS[:0], None], ids=["some", "none", "all"])
def test_it_is_the_array_of_the_rows(numbers):
    rows, expected = ChosenRows(DATA, numbers), DATA if numbers is None else DATA[numbers]
    actual = (len(rows), rows.shape, rows.ndim, rows.dtype)
    assert actual == (len(expected), expected.shape, 2, expected.dtype)
    assert np.array_equal(np.asarray(rows), expected)
    assert np.asarray(rows, dtype=float).dtype == float
    assert np.array_equal(rows[2:7], expected[2:7])
    assert np.array_equal(rows[np.arange(len(rows))[::-2]], expected[::-2])
    blocks = list(rows.blocks(7))
    assert sum(len(block) for _, block in blocks) == len(expected)
    assert all(np.array_equal(expected[places], block) for places, block in blocks)


def test_a_copy_is_one_and_a_slice_of_a_file_stays_in_it(tmp_path):
    copied = np.array(ChosenRows(DATA), copy=True)
    copied[:] = 0
    assert DATA.any()
    np.save(tmp_path / "x.npy", DATA)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(ChosenRows(mapped)[3:9], mapped)
