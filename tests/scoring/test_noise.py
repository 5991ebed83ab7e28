"""What discrete noise promises, against sums over its own law, and how it is matched to a training run."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    GaussianDP,
    Geometric,
    NonPrivate,
    PrivacyError,
    ProfileDP,
    PureDP,
    RenyiDP,
    best_of,
    compose,
    envelope,
)
from sklearn_dpsearch.scoring import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Sensitivity,
    matched_noise,
    noise_for,
)
from sklearn_dpsearch.scoring.noise import float_above
from sklearn_dpsearch.scoring.tails import LARGEST_SUM, _integrated, _summed, shifted_profile, upper_tail

EPSILONS = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 1.0, 1.7, 2.0, 3.0, 5.0, 8.0])


def gaussian_masses(variance: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * variance))
    return weights / math.fsum(weights)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).ravel())


def moved(masses: np.ndarray, shift: int) -> np.ndarray:
    """Masses of X + shift, cut at the same ends, where they vanish."""
    return np.roll(masses, shift)


# --- the profile of one component ---------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.04, 0.3, 1.0, 7.3, 400.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_profile_is_the_hockey_stick_divergence_of_the_two_laws(variance, shift):
    masses = gaussian_masses(variance, reach=int(12 * math.sqrt(variance)) + 4 * shift + 10)
    for epsilon, delta in zip(EPSILONS, shifted_profile(variance, shift, EPSILONS), strict=True):
        exact = hockey_stick(moved(masses, shift), masses, epsilon)
        assert exact * (1 - 1e-13) <= delta <= exact * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize(("sigma", "shift"), [(0.7, 1), (3.0, 1), (5.0, 4)])
def test_the_profile_agrees_with_the_reference_implementation(sigma, shift):
    reference = privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(sigma, sensitivity=shift)
    expected = [reference.get_delta_for_epsilon(epsilon) for epsilon in EPSILONS]
    assert shifted_profile(sigma**2, shift, EPSILONS) == pytest.approx(expected, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("mu", [0.01, 0.5, 2.0])
def test_fine_integers_are_as_good_as_continuous_gaussian_noise(mu):
    for shift in (1000, 10**6):
        profile = shifted_profile((shift / mu) ** 2, shift, EPSILONS)
        assert profile == pytest.approx(GaussianDP(mu=mu).delta_at(EPSILONS), rel=1e-4, abs=1e-11)


def test_sums_and_integrals_of_tails_agree_where_one_takes_over_from_the_other():
    first = np.array([1, 2, 500, 1000, 3000, 10_000, 20_000], dtype=float)
    assert _integrated(LARGEST_SUM, first) == pytest.approx(_summed(LARGEST_SUM**2, first), rel=5e-13, abs=0)


def test_tails_of_a_wide_law_are_sums_of_its_masses():
    sigma = 2500.0
    k = np.arange(-40_000, 40_001)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    for first in (-3000, 0, 1, 777, 20_000):
        expected = math.fsum(weights[k >= first]) / math.fsum(weights)
        assert float(upper_tail(sigma**2, first)) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("variance", [0.01, 1.0, 1e3, 1e5, 1e9])
def test_the_profile_never_rises(variance):
    profile = shifted_profile(variance, 3, np.linspace(0, 50 / math.sqrt(variance), 3000))
    assert np.all(np.diff(profile) <= 1e-12 * profile[:-1])
    assert np.all((profile >= 0) & (profile <= 1))


# --- several components -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.15, 0.6, 2.0])
@pytest.mark.parametrize("change", [(1, 1), (1, -1), (2, 1), (1, 3), (-2, 2), (1, 1, 1), (1, -1, 2)])
def test_no_change_is_worse_than_the_same_change_of_one_component(variance, change):
    reach = 14 if len(change) == 2 else 9
    one = gaussian_masses(variance, reach)
    joint, shifted = np.ones(()), np.ones(())
    for part in change:
        joint, shifted = np.multiply.outer(joint, one), np.multiply.outer(shifted, moved(one, part))
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
    noise = DiscreteGaussianNoise(Fraction(20))
    one = noise.guarantee(sensitivity, "zero_out")
    by_l1 = shifted_profile(20.0, sensitivity.l1, EPSILONS)
    by_l2 = ZCDP(rho=sensitivity.l2_squared / 40, neighboring="zero_out").delta_at(EPSILONS)
    assert one.delta_at(EPSILONS) == pytest.approx(np.minimum(by_l1, by_l2), rel=1e-9)
    assert float(one.renyi(3.0)) == pytest.approx(3 * sensitivity.l2_squared / 40)


@pytest.mark.parametrize("change", [(1,), (3,), (1, 1), (2, -1), (1, 1, -1)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_laplace_noise_has_the_stated_loss_and_reaches_it(change, scale):
    stated = DiscreteLaplaceNoise(scale).guarantee(
        Sensitivity(sum(map(abs, change)), sum(c * c for c in change)), "add_remove"
    )
    largest = max(
        sum((abs(k - c) - abs(k)) / float(scale) for k, c in zip(point, change, strict=True))
        for point in itertools.product(range(-5, 6), repeat=len(change))
    )
    assert largest == pytest.approx(stated.epsilon, rel=1e-12)
    assert stated.epsilon >= largest * (1 - 1e-15)


def test_a_guarantee_rounds_up():
    for numerator, denominator in [(1, 3), (2, 3), (10**30 + 1, 10**30), (1, 10), (5, 7)]:
        value = Fraction(numerator, denominator)
        assert Fraction(float_above(value)) >= value
        assert Fraction(math.nextafter(float_above(value), 0)) < value


# --- matching -----------------------------------------------------------------------------------------------

ONE = Sensitivity(1, 1)
TRAININGS = [
    DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=2000),
    DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=10, neighboring="zero_out"),
    GaussianDP(mu=0.7),
    GaussianDP(mu=6.0),
    RenyiDP(orders=np.arange(2, 60), epsilons=0.1 * np.arange(2, 60)),
    compose(GaussianDP(mu=0.5), PureDP(epsilon=0.3)),
    ApproxDP(epsilon=0.0, delta=0.01),
    ProfileDP(profile=lambda epsilon: np.clip(0.2 - 0.3 * epsilon, 0, 1)),
]


@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("sensitivity", [ONE, Sensitivity(2, 2, (1, 1)), Sensitivity(1000, 10**6)], ids=str)
def test_matched_noise_is_nowhere_less_private_than_the_training(training, sensitivity):
    noise = matched_noise(training, sensitivity)
    epsilons = np.unique(np.concatenate([np.linspace(0, 15, 1501), np.geomspace(1e-4, 60, 700)]))
    score = noise.guarantee(sensitivity, training.neighboring)
    assert np.all(score.delta_at(epsilons) <= np.maximum(training.delta_at(epsilons) * (1 + 1e-9), 1.001e-12))


@pytest.mark.parametrize("training", TRAININGS[:4], ids=lambda one: type(one).__name__)
def test_a_little_less_noise_would_not_match(training):
    noise = matched_noise(training, ONE)
    less = DiscreteGaussianNoise(noise.sigma_squared * Fraction(97, 100)).guarantee(ONE, training.neighboring)
    epsilons = np.linspace(0, 30, 6001)
    assert np.any(less.delta_at(epsilons) > np.maximum(training.delta_at(epsilons), 1e-12))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3, 1e-3])
def test_noise_matched_to_a_pure_training_has_exactly_its_epsilon(epsilon):
    training = PureDP(epsilon=epsilon, neighboring="replace_one")
    for sensitivity in (ONE, Sensitivity(1000, 10**6), Sensitivity(2, 2, (1, 1))):
        score = matched_noise(training, sensitivity).guarantee(sensitivity, "replace_one")
        assert score == training
        assert envelope([training, score]) is training


def test_noise_matched_to_an_approximate_training_is_laplace_of_the_same_epsilon():
    assert matched_noise(ApproxDP(epsilon=0.5, delta=1e-6), ONE) == DiscreteLaplaceNoise(Fraction(2))


def test_noise_matched_to_a_composition_of_pure_steps_is_pure():
    assert isinstance(matched_noise(compose(PureDP(epsilon=0.5), PureDP(epsilon=0.25)), ONE), DiscreteLaplaceNoise)


@pytest.mark.parametrize("sensitivity", [ONE, Sensitivity(4, 6)])
def test_noise_matched_to_a_concentrated_training_has_exactly_its_rho(sensitivity):
    training = ZCDP(rho=0.3)
    score = matched_noise(training, sensitivity).guarantee(sensitivity, "add_remove")
    assert score.concentrated == training
    assert np.all(score.delta_at(EPSILONS) <= training.delta_at(EPSILONS))


@pytest.mark.parametrize(
    "training",
    [
        PureDP(epsilon=0.4),
        ZCDP(rho=0.05),
        GaussianDP(mu=0.4),
        DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=2000),
    ],
    ids=lambda one: type(one).__name__,
)
def test_matched_noise_is_free_in_a_search(training):
    score = matched_noise(training, ONE).guarantee(ONE, training.neighboring)
    free = best_of(training, Geometric(5)).epsilon_at(1e-6)
    paid = best_of(envelope([training, score]), Geometric(5)).epsilon_at(1e-6)
    assert paid == pytest.approx(free, rel=2e-3)


def test_a_guarantee_given_for_one_scoring_is_kept():
    for given in (
        PureDP(epsilon=0.7),
        ApproxDP(epsilon=0.7, delta=1e-5),
        ZCDP(rho=0.1),
        GaussianDP(mu=0.5),
        TRAININGS[0],
    ):
        kept = noise_for(given, ONE).guarantee(ONE, given.neighboring)
        assert np.all(kept.delta_at(EPSILONS) <= np.maximum(given.delta_at(EPSILONS) * (1 + 1e-9), 1.001e-12))


def test_a_given_gaussian_guarantee_needs_a_little_more_than_continuous_noise():
    variance = noise_for(GaussianDP(mu=0.25), ONE).sigma_squared
    assert 16 <= variance <= 16.5


@pytest.mark.parametrize("matching", [matched_noise, noise_for])
def test_no_noise_matches_no_promise(matching):
    with pytest.raises(PrivacyError, match="NonPrivate"):
        matching(NonPrivate(), ONE)


@pytest.mark.parametrize(
    "training",
    [
        PureDP(epsilon=0.0),
        ZCDP(rho=0.0),
        GaussianDP(mu=0.0),
        DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=0),
    ],
)
def test_no_finite_noise_matches_a_training_that_reveals_nothing(training):
    with pytest.raises(PrivacyError, match="score_noise=PureDP"):
        matched_noise(training, ONE)


# --- the values ---------------------------------------------------------------------------------------------


def test_noise_and_guarantees_are_values():
    for noise in (DiscreteLaplaceNoise(Fraction(3, 2)), DiscreteGaussianNoise(9)):
        guarantee = noise.guarantee(ONE, "zero_out")
        assert pickle.loads(pickle.dumps(noise)) == noise
        again = pickle.loads(pickle.dumps(guarantee))
        assert again == guarantee
        assert hash(again) == hash(guarantee)
        assert again.epsilon_at(1e-5) == guarantee.epsilon_at(1e-5)
        assert guarantee.neighboring == "zero_out"


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
    assert all(type(one) is int for one in (given.l1, given.l2_squared, *given.parts))
    assert matched_noise(ZCDP(rho=0.1), given) == DiscreteGaussianNoise(Fraction(60_000**2) / (2 * Fraction(0.1)))
    inside = DiscreteGaussianNoise(Fraction(np.int64(7), np.int64(3)))
    assert type(inside.sigma_squared.numerator) is int
    with pytest.raises(TypeError, match="Expected l1 as an int"):
        Sensitivity(1.5, 3)
