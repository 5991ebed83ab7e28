"""Splits never depend on the data, and are accounted by how one record may be used."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from sklearn_dpsearch.scoring._validation import (
    Exposure,
    HoldOut,
    IndexFolds,
    PublicValidation,
    RandomFolds,
    validation_of,
)


def test_each_record_validates_with_the_stated_probability_and_never_does_both():
    folds = [HoldOut(0.3).folds(5000, os.urandom)[0] for _ in range(40)]
    share = np.mean([len(test) / 5000 for _, test in folds])
    assert abs(share - 0.3) < 6 * np.sqrt(0.3 * 0.7 / (40 * 5000))
    for train, test in folds:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(5000))


def test_coins_are_the_records_own():
    """One record more changes no other record's part: the coins of the first n are the first n
    coins."""
    coins = np.random.default_rng(0).bytes(8 * 101)
    for kind in (HoldOut(0.4), RandomFolds(3)):
        fewer = kind.folds(100, lambda n: coins[:n])
        more = kind.folds(101, lambda n: coins[:n])
        for (_, before), (_, after) in zip(fewer, more):
            assert np.array_equal(before, after[after < 100])


def test_random_folds_partition_the_records_evenly():
    sizes = [len(test) for _, test in RandomFolds(4).folds(20_000, os.urandom)]
    assert sum(sizes) == 20_000
    assert max(abs(size - 5000) for size in sizes) < 6 * np.sqrt(20_000 * 0.25 * 0.75)


def test_exposures_of_the_standard_splits():
    assert PublicValidation().exposures() == (Exposure(1, 0),)
    assert HoldOut(0.25).exposures() == (Exposure(1, 0, 0.75), Exposure(0, 1, 0.25))
    assert RandomFolds(5).exposures() == (Exposure(4, 1),)


def test_index_folds_keep_the_uses_that_no_other_use_exceeds():
    folds = validation_of([([0, 1], [2]), ([0, 2], [1, 3]), ([1], [0, 3])], 4, public=False)
    # records: 0 and 1 train twice and score once; 2 trains once and scores once; 3 scores twice
    assert folds.exposures() == (Exposure(0, 2), Exposure(2, 1))
    apart = validation_of([([0], [1])], 2, public=False)
    assert apart.exposures() == (Exposure(0, 1), Exposure(1, 0))


def test_boolean_masks_are_indices():
    mask = np.array([True, False, True])
    ((train, test),) = validation_of([(mask, ~mask)], 3, public=False).fixed_folds
    assert (train.tolist(), test.tolist()) == ([0, 2], [1])


@pytest.mark.parametrize("splitter", [KFold(3), ShuffleSplit(2, test_size=0.5)])
def test_splitters_of_record_numbers_are_welcome_where_the_number_is_public(splitter):
    assert isinstance(validation_of(splitter, 30, public=False), IndexFolds)


def test_more_folds_than_records_is_refused_for_splitters_too():
    with pytest.raises(ValueError, match="cannot split 2 records"):
        validation_of(KFold(3), 2, public=False)


def test_folds_of_no_known_number_of_records_are_refused():
    with pytest.raises(ValueError, match="Give n_samples"):
        validation_of(KFold(2), None, public=False)


def test_a_record_that_is_in_a_fold_twice_would_count_twice():
    """Folds of users cannot hold one; whoever makes them otherwise must not pay for one use
    alone."""
    folds = IndexFolds(4, ((np.array([0, 0, 1]), np.array([2])), (np.array([2]), np.array([3]))))
    assert folds.exposures() == (Exposure(1, 1), Exposure(2, 0))
    often = IndexFolds(3, ((np.array([0]), np.array([1, 1, 1, 1])),))
    assert often.exposures() == (Exposure(0, 4), Exposure(1, 0))
