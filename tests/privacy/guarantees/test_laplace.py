"""Laplace noise: its closed forms against integrals, and several numbers against the one worst
case."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from sklearn_dpsearch.privacy import LaplaceDP, PureDP, as_replace_one, for_group
from sklearn_dpsearch.privacy._guarantees.neighboring_relations import ChangedRecord, OfGroup

ORDERS = np.array([1.1, 2.0, 5.0, 40.0])


def hockey_stick(shift: float, epsilon: float) -> float:
    """∫ (Lap(0) − e^ε·Lap(shift))₊, from the tails of the half-line on which it is positive."""
    if epsilon >= shift:
        return 0.0
    end = 0.5 * (shift - epsilon)  # the losses left of 0 are all the largest one
    return float(stats.laplace.cdf(end) - np.exp(epsilon) * stats.laplace.cdf(end, loc=shift))


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 8.0])
def test_profile_is_that_of_two_laplace_distributions(epsilon: float) -> None:
    one, grid = LaplaceDP(epsilon=epsilon), np.linspace(0.0, 1.2, 25) * epsilon
    exact = np.array([hockey_stick(epsilon, at) for at in grid])
    assert np.all(one.delta_at(grid) >= exact - 1e-15)
    assert one.delta_at(grid) == pytest.approx(exact, rel=1e-6, abs=1e-15)
    assert np.all(one.pair.delta_at(grid) >= exact - 1e-15)
    assert one.epsilon_at(0.0) == epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_renyi_curve_is_that_of_two_laplace_distributions(epsilon: float) -> None:
    def log_moment(order: float) -> float:
        def density(x: float) -> float:
            return float(0.5 * np.exp(-order * abs(x) + (order - 1) * abs(x - epsilon)))

        return np.log(
            integrate.quad(
                density, -40, 40, points=[0.0, epsilon], epsabs=0, epsrel=1e-11, limit=200
            )[0]
        )

    exact = np.array([log_moment(order) / (order - 1) for order in ORDERS])
    found = LaplaceDP(epsilon=epsilon).renyi(ORDERS)
    assert np.all(found >= exact * (1 - 1e-9))
    assert found == pytest.approx(exact, rel=1e-6)


def test_noise_on_several_numbers_is_no_worse_than_on_one() -> None:
    """Two numbers that move by a and by ε − a: the hockey-stick divergence of the product, by a
    fine grid of losses."""
    total, x = 1.5, np.linspace(-30, 30, 1201)
    for share in (0.1, 0.3, 0.5):
        distributions = []
        for shift in (share * total, (1 - share) * total):
            p = np.diff(stats.laplace.cdf(x))
            distributions.append((p, np.diff(stats.laplace.cdf(x, loc=shift))))
        p, q = (np.outer(distributions[0][side], distributions[1][side]) for side in (0, 1))
        for epsilon in (0.0, 0.4, 1.0):
            bound = LaplaceDP(epsilon=total).delta_at(epsilon) + 1e-12
            assert np.maximum(p - np.exp(epsilon) * q, 0.0).sum() <= bound


def test_chains_stay_laplace() -> None:
    one, grid = LaplaceDP(epsilon=0.4), np.linspace(0.0, 1.1, 23)
    assert as_replace_one(one) == LaplaceDP(epsilon=0.8, neighboring="replace_one")
    expected = pytest.approx(as_replace_one(one).delta_at(grid), abs=1e-5)
    assert ChangedRecord(presence=one).delta_at(grid) == expected
    actual = OfGroup(one_record=one, records=3).delta_at(grid)
    assert actual == pytest.approx(for_group(one, 3).delta_at(grid), abs=1e-5)


def test_it_is_between_nothing_and_pure() -> None:
    grid = np.linspace(0.0, 3.0, 31)
    for epsilon in (0.0, 1e-9, 1.0, 1000.0):
        assert np.all(
            LaplaceDP(epsilon=epsilon).delta_at(grid)
            <= PureDP(epsilon=epsilon).delta_at(grid) + 1e-15
        )
    assert LaplaceDP(epsilon=0.0).delta_at(0.0) == 0.0
    with pytest.raises(ValueError, match="0 <= epsilon < inf"):
        LaplaceDP(epsilon=-1.0)
