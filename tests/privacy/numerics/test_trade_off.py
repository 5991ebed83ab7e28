"""Error rates of attacks on small mechanisms, worked out exactly, against what a profile says about them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from sklearn_dpsearch.privacy.guarantees.risk import TradeOff, trade_off
from sklearn_dpsearch.privacy.numerics.basic_mechanisms import delta_of_gaussian
from tests.privacy.brute_force import Mechanism, exact_pair, interesting_epsilons, lower_edge, random_mechanism, size

RATES = np.concatenate([[0.0], np.geomspace(1e-9, 0.01, 15), np.linspace(0.02, 0.98, 49), [0.999, 1.0]])
EPSILONS = np.linspace(0.0, 12.0, 241)
CASES = size(2000, 100)


def cases() -> list[tuple[Mechanism, TradeOff]]:
    rng = np.random.default_rng(5)
    mechanisms = [random_mechanism(rng) for _ in range(CASES)]
    return [(one, trade_off(exact_pair(one).delta_at)) for one in mechanisms]


@pytest.fixture(scope="module")
def curves() -> list[tuple[Mechanism, TradeOff]]:
    return cases()


def missed(one: Mechanism) -> np.ndarray:
    """The least false negative rate of the best attack, whichever neighbour it takes for the null hypothesis."""
    accepted = 1.0 - RATES + 1e-15  # the corners of the exact curve are rounded, and its slope may be 1e9
    return np.minimum(lower_edge(one.reversed, accepted), lower_edge(one, accepted))


@pytest.mark.slow
def test_no_attack_misses_less_than_the_curve_says(curves) -> None:
    for one, curve in curves:
        stated = np.array([curve.false_negative_rate(rate) for rate in RATES])
        assert np.all(stated <= missed(one) + 1e-15)
        found = np.array([curve.true_positive_rate(rate) for rate in RATES])
        assert np.all(found >= 1.0 - missed(one) - 1e-15)


@pytest.mark.slow
def test_the_curve_is_the_largest_of_all_lines_but_for_the_tolerance(curves) -> None:
    for one, curve in curves:
        epsilons = interesting_epsilons(*np.where(one.p > one.q, (one.p, one.q), (one.q, one.p)))
        left, c = 1.0 - exact_pair(one).delta_at(epsilons), np.exp(epsilons)
        for rate in RATES[::4]:
            best = max(np.max(left - c * rate), np.max((left - rate) / c), 0.0)
            assert curve.false_negative_rate(rate) >= best - 3e-4 * (1.0 - best) - 1e-11


def test_both_readings_of_the_curve_agree(curves) -> None:
    for _, curve in curves[:20]:
        for rate in RATES:
            assert curve.true_positive_rate(rate) + curve.false_negative_rate(rate) == pytest.approx(1.0, abs=1e-10)


def test_the_advantage_is_the_total_variation_distance(curves) -> None:
    for one, curve in curves:
        exact = 0.5 * (np.abs(one.p / one.p.sum() - one.q / one.q.sum())).sum()
        assert exact - 1e-13 <= curve.advantage() <= exact + 1e-9


def test_no_guess_of_membership_is_right_more_often_than_stated(curves) -> None:
    for one, curve in curves:
        for prior in (0.0, 1e-4, 0.1, 0.37, 0.5, 0.9, 1.0):
            for p, q in ((one.p, one.q), (one.q, one.p)):
                exact = float(np.maximum(prior * p, (1.0 - prior) * q).sum())
                assert exact - 1e-12 <= curve.right_guess(prior)


def test_a_small_rate_keeps_its_digits() -> None:
    curve = trade_off(lambda epsilon: delta_of_gaussian(1.0, epsilon))
    for rate in (1e-11, 1e-8, 1e-4):
        exact = norm.sf(norm.isf(rate) - 1.0)
        assert exact <= curve.true_positive_rate(rate) <= exact * 1.001


def test_a_profile_that_is_no_longer_convex_is_still_read_on_the_safe_side() -> None:
    """A step instead of a slope: the smallest of several bounds may look like this."""
    curve = trade_off(lambda epsilon: np.where(epsilon < 1.0, 0.9, np.maximum(delta_of_gaussian(1.0, epsilon), 1e-6)))
    assert curve.advantage() <= (np.e - 1 + 2 * delta_of_gaussian(1.0, np.array(1.0))) / (np.e + 1) * (1 + 1e-4)
    for rate in RATES[1:-1]:
        assert curve.false_negative_rate(rate) <= norm.cdf(norm.isf(rate) - 1.0) + 1e-12
