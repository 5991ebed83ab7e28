"""Noise matched to a training run, or to a guarantee given for one scoring."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.scoring import DiscreteGaussianNoise, DiscreteLaplaceNoise, Sensitivity
from sklearn_dpsearch.scoring._noise_matching import matched_noise

from .distributions import EPSILONS

ONE = Sensitivity(1, 1)
#: ε itself is searched.
MIXED = dp.mixture(
    [dp.PureDP(epsilon=0.2), dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=2.0)], [1 / 3, 1 / 3, 1 / 3]
)
TRAININGS = [
    dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=2000),
    dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=10, neighboring="zero_out"),
    dp.GaussianDP(mu=0.7),
    dp.GaussianDP(mu=6.0),
    dp.RenyiDP(orders=np.arange(2, 60), epsilons=0.1 * np.arange(2, 60)),
    dp.compose(dp.GaussianDP(mu=0.5), dp.PureDP(epsilon=0.3)),
    dp.ApproxDP(epsilon=0.0, delta=0.01),
    pytest.param(
        dp.ProfileDP(profile=lambda epsilon: np.clip(0.2 - 0.3 * epsilon, 0, 1)),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "sensitivity", [ONE, Sensitivity(2, 2, (1, 1)), Sensitivity(1000, 10**6)], ids=str
)
def test_matched_noise_is_nowhere_less_private_than_the_training(training, sensitivity):
    noise = matched_noise(training, sensitivity)
    epsilons = np.unique(np.concatenate([np.linspace(0, 15, 1501), np.geomspace(1e-4, 60, 700)]))
    score = noise.guarantee(sensitivity, training.neighboring)
    assert np.all(
        score.delta_at(epsilons) <= np.maximum(training.delta_at(epsilons) * (1 + 1e-9), 1.001e-12)
    )


@pytest.mark.parametrize("training", TRAININGS[:4], ids=lambda one: type(one).__name__)
def test_a_little_less_noise_would_not_match(training):
    noise = matched_noise(training, ONE)
    less = DiscreteGaussianNoise(noise.sigma_squared * Fraction(97, 100)).guarantee(
        ONE, training.neighboring
    )
    epsilons = np.linspace(0, 30, 6001)
    assert np.any(less.delta_at(epsilons) > np.maximum(training.delta_at(epsilons), 1e-12))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3, 1e-3])
def test_noise_matched_to_a_pure_training_has_exactly_its_epsilon(epsilon):
    training = dp.PureDP(epsilon=epsilon, neighboring="replace_one")
    for sensitivity in (ONE, Sensitivity(1000, 10**6), Sensitivity(2, 2, (1, 1))):
        score = matched_noise(training, sensitivity).guarantee(sensitivity, "replace_one")
        assert score == training
        assert dp.envelope([training, score]) is training


def test_noise_matched_to_an_approximate_training_is_laplace_of_the_same_epsilon():
    expected = DiscreteLaplaceNoise(Fraction(2))
    assert matched_noise(dp.ApproxDP(epsilon=0.5, delta=1e-6), ONE) == expected


def test_noise_matched_to_a_composition_of_pure_steps_is_pure():
    training = dp.compose(dp.PureDP(epsilon=0.5), dp.PureDP(epsilon=0.25))
    assert isinstance(matched_noise(training, ONE), DiscreteLaplaceNoise)


@pytest.mark.parametrize("sensitivity", [ONE, Sensitivity(4, 6)])
def test_noise_matched_to_a_concentrated_training_has_exactly_its_rho(sensitivity):
    training = dp.ZCDP(rho=0.3)
    score = matched_noise(training, sensitivity).guarantee(sensitivity, training.neighboring)
    assert score.concentrated == training
    assert np.all(score.delta_at(EPSILONS) <= training.delta_at(EPSILONS))


@pytest.mark.slow
@pytest.mark.parametrize("training", [
    dp.PureDP(epsilon=0.4), dp.ZCDP(rho=0.05), dp.GaussianDP(mu=0.4),
    dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=2000), MIXED,
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_matched_noise_is_free_in_a_search(training):
    score = matched_noise(training, ONE).guarantee(ONE, training.neighboring)
    free = dp.best_of(training, dp.Geometric(5)).epsilon_at(1e-6)
    paid = dp.best_of(dp.envelope([training, score]), dp.Geometric(5)).epsilon_at(1e-6)
    assert paid == pytest.approx(free, rel=2e-3)


def test_noise_matched_to_candidates_with_different_epsilons_is_free_at_delta_0_too():
    noise = matched_noise(MIXED, ONE)
    score = noise.guarantee(ONE, MIXED.neighboring)
    grid = np.linspace(0.0, 2.5, 2001)
    assert np.all(score.delta_at(grid) <= MIXED.delta_at(grid) * (1 + 1e-6))
    assert score.delta_at(0.0) == pytest.approx(MIXED.delta_at(0.0), rel=1e-6)
    assert isinstance(noise, DiscreteLaplaceNoise)
    search = dp.best_of(dp.envelope([MIXED, score]), dp.Geometric(5)).epsilon_at(0.0)
    assert search == pytest.approx(dp.best_of(MIXED, dp.Geometric(5)).epsilon_at(0.0), abs=1e-6)


def test_a_given_gaussian_guarantee_needs_a_little_more_than_continuous_noise():
    assert 16 <= matched_noise(dp.GaussianDP(mu=0.25), ONE).sigma_squared <= 16.5


def test_no_noise_matches_no_promise():
    with pytest.raises(dp.PrivacyError, match="NonPrivate"):
        matched_noise(dp.NonPrivate(), ONE)


@pytest.mark.parametrize("training", [
    dp.PureDP(epsilon=0.0),
    dp.ZCDP(rho=0.0),
    dp.GaussianDP(mu=0.0),
    dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=0),
])  # fmt: skip
def test_no_finite_noise_matches_a_training_that_reveals_nothing(training):
    with pytest.raises(dp.PrivacyError, match="score_noise=PureDP"):
        matched_noise(training, ONE)
