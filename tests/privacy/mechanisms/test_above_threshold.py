"""One round of the sparse vector technique: what it costs, and that it is drawn as stated."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.privacy._selection.doubling import AboveThreshold
from tests.privacy import brute_force
from tests.privacy.threshold_rounds import (
    STEPS,
    laplace_tail,
    neighbours,
    noise_distribution,
    one_round,
)


def test_tail_used_here_is_the_tail_of_the_distribution() -> None:
    k, mass = noise_distribution(2.5)
    for first in range(-8, 9):
        expected = pytest.approx(mass[k >= first].sum(), rel=1e-12)
        assert laplace_tail(2.5, np.array(first)) == expected


@pytest.mark.slow
def test_an_accept_costs_epsilon_and_a_reject_half_of_it() -> None:
    rng = np.random.default_rng(0)
    accepts, rejects = 0.0, 0.0
    for _ in range(brute_force.size(3000, 300)):
        epsilon = float(rng.choice([0.3, 1.0, 2.5]))
        one, other = neighbours(rng, int(rng.integers(1, 12)))
        threshold = int(rng.integers(-20, 60))
        p, q = one_round(one, threshold, epsilon), one_round(other, threshold, epsilon)
        # what is rarer feels where the enumeration of z ends
        losses = np.abs(np.log(p / q)) * (p > 1e-8)
        accepts = max(accepts, losses[:-1].max() / epsilon)
        rejects = max(rejects, losses[-1] / epsilon)
    assert 0.8 < accepts <= 1.0 + 1e-9
    assert 0.45 < rejects <= 0.5 + 1e-9


def test_a_threshold_without_noise_is_caught() -> None:
    rejects = 0.0
    for threshold in range(0, 60, 5):
        one, other = np.full(30, 20), np.full(30, 20 + STEPS)
        p, q = (one_round(side, threshold, 1.0, threshold_scale=0.0)[-1] for side in (one, other))
        rejects = max(rejects, abs(float(np.log(p / q))))
    assert rejects > 1.0


def test_if_all_utilities_move_alike_an_accept_costs_three_quarters() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        one = rng.integers(0, 40, 6)
        other = one + rng.integers(0, STEPS + 1, 6)
        p, q = (one_round(side, 30, 1.0)[:-1] for side in (one, other))
        assert np.max(np.abs(np.log(p / q))) <= 0.75 + 1e-9


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rounds_follow_the_enumerated_distribution() -> None:
    utilities, epsilon = np.array([5, 12, 9]), 1.0
    options = {"round_epsilon": Fraction(1), "sensitivity": Fraction(STEPS), "grid": Fraction(1)}
    mechanism = AboveThreshold(**options)
    source, number = random.Random(7), brute_force.size(20_000, 2000)
    counts = Counter(mechanism.first_above(utilities.tolist(), 10, source) for _ in range(number))
    for result, chance in zip([0, 1, 2, None], one_round(utilities, 10, epsilon)):
        assert abs(counts[result] / number - chance) < 4.5 * np.sqrt(chance * (1 - chance) / number)


def test_rounding_to_the_grid_is_paid_for() -> None:
    """Utilities that are no multiples of the grid may move by one multiple more."""
    assert AboveThreshold(round_epsilon=Fraction(1), sensitivity=Fraction(1, 50)).steps == 1024
    grid = Fraction(3, 200)
    coarse = AboveThreshold(round_epsilon=Fraction(1), sensitivity=Fraction(1, 50), grid=grid)
    assert coarse.steps == 2


def test_one_draw_for_the_threshold_is_used_as_given() -> None:
    grid = Fraction(1, 100)
    mechanism = AboveThreshold(round_epsilon=Fraction(1000), sensitivity=Fraction(1, 50), grid=grid)
    assert mechanism.first_above([0.5], 0.4, random.Random(0), threshold_noise=10**6) is None
    assert mechanism.first_above([0.5], 0.6, random.Random(0), threshold_noise=-(10**6)) == 0


def test_only_exact_parameters_are_accepted() -> None:
    with pytest.raises(TypeError, match="Fraction"):
        AboveThreshold(round_epsilon=0.1, sensitivity=Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sensitivity"):
        AboveThreshold(round_epsilon=Fraction(1), sensitivity=Fraction(0))
