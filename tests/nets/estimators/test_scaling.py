"""Public bounds map values to [-1, 1] and back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from sklearn_dpsearch.nets.estimators.scaling import Bounds, to_single


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


def test_what_single_precision_cannot_hold_becomes_infinite_in_silence():
    assert to_single(np.array([1e39, 1.5])).tolist() == [np.inf, 1.5]


@pytest.mark.parametrize(
    ("given", "values", "wanted"),
    [
        ((0, 255), [-5, 0, 51, 255, 300], [0, 0, 0.2, 1, 1]),
        ((-8, 8), [-10, -8, 0, 4], [-1, -1, 0, 0.5]),
        ((-1, 20), [-7, -1, 0, 20], [-0.05, -0.05, 0, 1]),
        ((-4, 0), [-5, -1, 0, 3], [-1, -0.25, 0, 0]),
        ((10, 20), [0, 10, 15, 20, 99], [-1, -1, 0, 1, 1]),  # zero is none of them
    ],
)
def test_two_numbers_for_all_features_keep_zero_where_it_is(given, values, wanted):
    bounds = Bounds.of_features("bounds_X", given)
    np.testing.assert_allclose(bounds.scaled(np.array(values, float)), wanted)


def test_bounds_of_each_feature_map_their_middle_to_zero():
    bounds = Bounds.of_features("bounds_X", ([0, -1], [10, 3]))
    np.testing.assert_allclose(
        bounds.scaled(np.array([[0.0, -1.0], [5.0, 1.0], [20.0, 3.0]])), [[-1, -1], [0, 0], [1, 1]]
    )


def test_bounds_of_targets_map_their_middle_to_zero_and_back():
    bounds = Bounds.of("bounds_y", (0, 10))
    np.testing.assert_allclose(bounds.scaled(np.array([0.0, 5.0, 12.0])), [-1, 0, 1])
    np.testing.assert_allclose(bounds.restored(np.array([-1.0, 0.0, 3.0])), [0, 5, 10])
