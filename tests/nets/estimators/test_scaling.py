"""Public bounds map values to [-1, 1] and back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from sklearn_dpsearch.nets.estimators import table_records
from sklearn_dpsearch.nets.estimators.table_records import Bounds, single_rows


@pytest.mark.parametrize("given", [(-3, 5), ([-3.0, 0.0], [5.0, 1e-3])])
def test_values_inside_the_bounds_come_back(given):
    bounds = Bounds.of("bounds", given)
    values = bounds.lower + np.random.default_rng(0).uniform(size=(20, 2)) * (bounds.upper - bounds.lower)
    assert abs(bounds.scaled(values)).max() <= 1.0
    np.testing.assert_allclose(bounds.restored(bounds.scaled(values)), values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("beyond", [1.0, 1e6, np.inf])
def test_values_beyond_the_bounds_are_clipped_both_ways(beyond):
    bounds = Bounds.of("bounds", (0.1, 0.7))
    assert bounds.scaled(np.array([-beyond, beyond])).tolist() == [-1.0, 1.0]
    assert bounds.restored(np.array([-beyond, beyond])).tolist() == pytest.approx([0.1, 0.7], rel=1e-12)
    restored = bounds.restored(np.linspace(-2, 2, 1001))
    assert (restored >= 0.1).all()
    assert (restored <= 0.7).all()


@pytest.mark.parametrize(
    ("given", "values", "wanted"),
    [
        ((0, 200), [-5, 0, 50, 100, 200, 300], [-0.5, -0.5, 0, 0.5, 1.5, 1.5]),  # amounts: a quarter of the way up
        ((10, 30), [0, 10, 15, 20, 99], [-0.5, -0.5, 0, 0.5, 1.5]),
        ((-8, 8), [-10, -8, 0, 4], [-1, -1, 0, 0.5]),
        ((-4, 0), [-5, -1, 0, 3], [-1, 0.5, 1, 1]),
    ],
)
def test_bounds_of_amounts_map_a_quarter_of_the_way_up_to_zero_and_others_the_middle(given, values, wanted):
    bounds = Bounds.of_features("bounds_X", given)
    np.testing.assert_allclose(bounds.scaled(np.array(values, float)), wanted)
    rows = single_rows(np.array(values, float)[:, None], bounds)
    np.testing.assert_allclose(rows[:, 0].numpy(), wanted, rtol=1e-6)


def test_bounds_of_each_feature_map_their_middle_to_zero():
    bounds = Bounds.of_features("bounds_X", ([0, -1], [10, 3]))
    np.testing.assert_allclose(
        bounds.scaled(np.array([[0.0, -1.0], [5.0, 1.0], [20.0, 3.0]])), [[-1, -1], [0, 0], [1, 1]]
    )


def test_bounds_of_targets_map_their_middle_to_zero_and_back():
    bounds = Bounds.of("bounds_y", (0, 10))
    np.testing.assert_allclose(bounds.scaled(np.array([0.0, 5.0, 12.0])), [-1, 0, 1])
    np.testing.assert_allclose(bounds.restored(np.array([-1.0, 0.0, 3.0])), [0, 5, 10])


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("given", [None, (-3, 5), (10, 20), ([-3.0, 0.0, 1e6], [5.0, 1e-3, 1e6 + 2])])
def test_rows_are_scaled_block_by_block_as_all_at_once(kind, given):
    values = (np.random.default_rng(0).uniform(size=(3 * table_records.BLOCK + 7, 3)) * 100).astype(kind)
    values[:, 2] = 10**6 + 1 if kind is not np.uint8 else 255
    bounds = None if given is None else Bounds.of_features("bounds", given)
    expected = values.astype(float) if bounds is None else bounds.scaled(values.astype(float))
    rows = single_rows(values, bounds)
    np.testing.assert_allclose(rows.numpy(), expected, rtol=2e-7, atol=2e-7)
    assert rows.dtype == torch.float32


def test_rows_at_the_bounds_and_beyond_are_exactly_one():
    values = np.array([[0.1], [0.7], [-1e300], [1e300]])
    assert single_rows(values, Bounds.of("bounds", (0.1, 0.7))).squeeze(1).tolist() == [-1.0, 1.0, -1.0, 1.0]


def test_scaled_rows_are_a_copy():
    values = np.ones((3, 2), np.float32)
    rows = single_rows(values, None)
    assert rows.shape == (3, 2)
    rows.zero_()
    assert values.all()
