"""The least noise whose whole profile stays under a Gaussian target."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.privacy import DPSGD, GaussianDP, PrivacyError, best_of
from sklearn_dpsearch.privacy.calibration import covers, gaussian_target, noise_multiplier_under
from sklearn_dpsearch.privacy.count_distributions.negative_binomial import Geometric
from tests.privacy.brute_force import cases

SETTINGS = cases(
    [
        (0.5, 0.05, 400),
        pytest.param(1.0, 0.01, 1000, marks=pytest.mark.slow),
        (0.3, 0.5, 40),
        (2.0, 1.0, 5),
        pytest.param(0.7, 0.004, 5000, marks=pytest.mark.slow),
    ],
    0,
    -1,
)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "rate", "steps"), SETTINGS)
def test_the_profile_stays_under_the_target_at_every_epsilon(mu, rate, steps):
    noise = noise_multiplier_under(mu, rate, steps)
    run = DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-4, 60, 4000)])  # not the points that were compared
    assert np.all(run.delta_at(epsilons) <= gaussian_target(mu).delta_at(epsilons) * (1 + 1e-9) + 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "rate", "steps"), SETTINGS)
def test_a_little_less_noise_would_not_be_enough(mu, rate, steps):
    noise = noise_multiplier_under(mu, rate, steps)
    less = DPSGD(noise_multiplier=noise * 0.995, sample_rate=rate, steps=steps)
    assert not covers(GaussianDP(mu=mu), less, slack=1e-9)


@pytest.mark.slow
def test_full_batches_need_the_noise_of_the_gaussian_mechanism():
    assert noise_multiplier_under(0.5, 1.0, 4) == pytest.approx(2 / 0.5, rel=5e-3)


@pytest.mark.slow
def test_a_search_costs_no_less_with_any_candidate_than_with_the_target():
    total = best_of(gaussian_target(0.5), Geometric(10)).epsilon_at(1e-5)
    for rate, steps in ((0.05, 400), (0.2, 100)):
        run = DPSGD(noise_multiplier=noise_multiplier_under(0.5, rate, steps), sample_rate=rate, steps=steps)
        exact = best_of(run, Geometric(10)).epsilon_at(1e-5)
        assert 0.9 * total < exact <= total


def test_the_slack_is_part_of_the_guarantee():
    assert gaussian_target(0.5, slack=1e-4).delta_at(50.0) == pytest.approx(1e-4, rel=1e-6)


def test_a_target_that_is_not_positive_is_an_error():
    with pytest.raises((ValueError, PrivacyError), match="mu"):
        noise_multiplier_under(0.0, 0.1, 10)


@pytest.mark.parametrize(
    ("mu", "rate", "steps", "slack"), [pytest.param(0.5, 0.01, 1000, 0.1, marks=pytest.mark.slow), (4.0, 1.0, 1, 0.2)]
)
def test_target_with_a_large_slack_is_kept_too(mu: float, rate: float, steps: int, slack: float) -> None:
    noise = noise_multiplier_under(mu, rate, steps, slack)
    run, target = DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps), gaussian_target(mu, slack=slack)
    epsilons = np.linspace(0.0, 1.5 * target.epsilon_at(1.001 * slack), 500)
    assert np.all(run.delta_at(epsilons) <= target.delta_at(epsilons))


@pytest.mark.parametrize(("mu", "rate", "steps"), [(2.0, 0.3, 1), pytest.param(1.0, 0.05, 100, marks=pytest.mark.slow)])
def test_a_target_for_changed_records_is_kept_and_needs_more_noise(mu, rate, steps):
    noise = noise_multiplier_under(mu, rate, steps, neighboring="replace_one")
    target, epsilons = gaussian_target(mu, "replace_one"), np.concatenate([[0.0], np.geomspace(1e-4, 60, 300)])

    def stays_under(multiplier):
        run = DPSGD(noise_multiplier=multiplier, sample_rate=rate, steps=steps, neighboring="replace_one")
        return np.all(run.delta_at(epsilons) <= target.delta_at(epsilons) * (1 + 1e-9) + 1e-15)

    assert stays_under(noise)
    assert not stays_under(0.99 * noise)
    assert not stays_under(noise_multiplier_under(mu, rate, steps))


@pytest.mark.slow
def test_changed_records_need_the_noise_of_twice_the_sensitivity_in_full_batches():
    assert noise_multiplier_under(0.5, 1.0, 4, neighboring="replace_one") == pytest.approx(4 / 0.5, rel=5e-3)
