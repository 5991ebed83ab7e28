"""What noise on several integers promises, against sums over its distribution; noise and its
guarantee as values."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.privacy import ZCDP
from sklearn_dpsearch.scoring import DiscreteGaussianNoise, DiscreteLaplaceNoise, Sensitivity
from sklearn_dpsearch.scoring._noise import shifted_profile
from sklearn_dpsearch.scoring._noise_matching import matched_noise

from .distributions import EPSILONS, gaussian_masses, hockey_stick, moved

ONE = Sensitivity(1, 1)

# --- several components ---------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.15, 0.6, 2.0])
@pytest.mark.parametrize(
    "change", [(1, 1), (1, -1), (2, 1), (1, 3), (-2, 2), (1, 1, 1), (1, -1, 2)]
)
def test_no_change_is_worse_than_the_same_change_of_one_component(variance, change):
    one = gaussian_masses(variance, 14 if len(change) == 2 else 9)
    joint, shifted = np.ones(()), np.ones(())
    for shift in change:
        joint = np.multiply.outer(joint, one)
        shifted = np.multiply.outer(shifted, moved(one, shift))
    for epsilon in (0.0, 0.2, 1.0, 2.5, 4.0):
        exact = hockey_stick(shifted, joint, epsilon)
        assert exact <= shifted_profile(variance, sum(map(abs, change)), epsilon) + 1e-9


@pytest.mark.parametrize("variance", [0.15, 0.6, 2.0, 30.0])
def test_a_record_that_moves_between_two_counts_is_accounted_exactly(variance):
    noise = DiscreteGaussianNoise(Fraction(variance))
    one = gaussian_masses(variance, int(9 * math.sqrt(variance)) + 6)
    joint, shifted = np.outer(one, one), np.outer(moved(one, 1), moved(one, -1))
    epsilons = np.array([0.0, 0.3, 1.0, 2.0, 4.0])
    delta = noise.guarantee(Sensitivity(2, 2, (1, 1)), "replace_one").delta_at(epsilons)
    exact = np.array([hockey_stick(shifted, joint, epsilon) for epsilon in epsilons])
    assert np.all(exact <= delta + 1e-10)
    assert np.all(delta <= 1.05 * exact + 1e-9)


@pytest.mark.parametrize("sensitivity", [Sensitivity(2, 2), Sensitivity(4, 6), Sensitivity(7, 7)])
def test_the_bound_for_several_components_is_the_smaller_of_both(sensitivity):
    one = DiscreteGaussianNoise(Fraction(20)).guarantee(sensitivity, "zero_out")
    by_l1 = shifted_profile(20.0, sensitivity.l1, EPSILONS)
    by_l2 = ZCDP(rho=sensitivity.l2_squared / 40, neighboring="zero_out").delta_at(EPSILONS)
    assert one.delta_at(EPSILONS) == pytest.approx(np.minimum(by_l1, by_l2), rel=1e-9)
    assert float(one.renyi(3.0)) == pytest.approx(3 * sensitivity.l2_squared / 40)


@pytest.mark.parametrize("change", [(1,), (3,), (1, 1), (2, -1), (1, 1, -1)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_laplace_noise_has_the_stated_loss_and_reaches_it(change, scale):
    stated = DiscreteLaplaceNoise(scale).guarantee(
        Sensitivity(sum(map(abs, change)), sum(c * c for c in change)), "zero_out"
    )
    largest = max(
        sum((abs(k - c) - abs(k)) / float(scale) for k, c in zip(point, change, strict=True))
        for point in itertools.product(range(-5, 6), repeat=len(change))
    )
    assert largest == pytest.approx(stated.epsilon, rel=1e-12)
    assert stated.epsilon >= largest * (1 - 1e-15)


def test_a_guarantee_rounds_up():
    for numerator, denominator in [(1, 3), (2, 3), (10**30 + 1, 10**30), (1, 10), (5, 7)]:
        exact = Fraction(numerator, denominator)
        stated = DiscreteLaplaceNoise(1 / exact).guarantee(ONE, "zero_out").epsilon
        assert Fraction(stated) >= exact
        assert Fraction(math.nextafter(stated, 0)) < exact


# --- the values -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_noise_is_drawn_exactly_from_the_given_source():
    for noise in (DiscreteLaplaceNoise(Fraction(50)), DiscreteGaussianNoise(Fraction(2500))):
        assert noise.sample(random.Random(0)) == noise.sample(random.Random(0))
        draws = [noise.sample(random.Random(seed)) for seed in range(2000)]
        assert all(type(draw) is int for draw in draws)
        assert abs(np.mean(draws)) < 8


@pytest.mark.parametrize("kind", [DiscreteLaplaceNoise, DiscreteGaussianNoise])
def test_noise_takes_exact_positive_numbers_only(kind):
    with pytest.raises(TypeError, match="Fraction"):
        kind(0.5)
    with pytest.raises(ValueError, match="> 0"):
        kind(Fraction(0))


@pytest.mark.parametrize("impossible", [(0, 0, ()), (2, 1, ()), (2, 5, ()), (2, 2, (0, 2))])
def test_sensitivities_that_no_integers_have_are_refused(impossible):
    with pytest.raises(ValueError, match="Expected"):
        Sensitivity(*impossible)


def test_integers_of_numpy_do_not_wrap_around() -> None:
    given = Sensitivity(np.int32(60_000), np.int64(60_000) ** 2, (np.int16(300),))
    assert given == Sensitivity(60_000, 60_000**2, (300,))
    assert all(type(number) is int for number in (given.l1, given.l2_squared, *given.l1_of_blocks))
    expected = DiscreteGaussianNoise(Fraction(60_000**2) / (2 * Fraction(0.1)))
    assert matched_noise(ZCDP(rho=0.1), given) == expected
    inside = DiscreteGaussianNoise(Fraction(np.int64(7), np.int64(3)))
    assert type(inside.sigma_squared.numerator) is int
    with pytest.raises(ValueError, match="Expected an integer l1 >= 1"):
        Sensitivity(1.5, 3)
