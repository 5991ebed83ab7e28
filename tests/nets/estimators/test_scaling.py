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
