"""The profile of discrete Gaussian noise, against sums over its distribution and a reference
implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism

from sklearn_dpsearch.privacy import GaussianDP
from sklearn_dpsearch.scoring._noise import (
    LARGEST_SUM,
    _integrated_tail,
    _summed_tail,
    shifted_profile,
    upper_tail,
)

from .distributions import EPSILONS, gaussian_masses, hockey_stick, moved


@pytest.mark.parametrize("variance", [0.04, 0.3, 1.0, 7.3, 400.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_profile_is_the_hockey_stick_divergence_of_the_two_distributions(variance, shift):
    masses = gaussian_masses(variance, reach=int(12 * math.sqrt(variance)) + 4 * shift + 10)
    for epsilon, delta in zip(EPSILONS, shifted_profile(variance, shift, EPSILONS), strict=True):
        exact = hockey_stick(moved(masses, shift), masses, epsilon)
        assert exact * (1 - 1e-13) <= delta <= exact * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize(("sigma", "shift"), [(0.7, 1), (3.0, 1), (5.0, 4)])
def test_the_profile_agrees_with_the_reference_implementation(sigma, shift):
    reference = privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(sigma, sensitivity=shift)
    expected = [reference.get_delta_for_epsilon(epsilon) for epsilon in EPSILONS]
    actual = shifted_profile(sigma**2, shift, EPSILONS)
    assert actual == pytest.approx(expected, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("mu", [0.01, 0.5, 2.0])
def test_fine_integers_are_as_good_as_continuous_gaussian_noise(mu):
    for shift in (1000, 10**6):
        profile = shifted_profile((shift / mu) ** 2, shift, EPSILONS)
        assert profile == pytest.approx(GaussianDP(mu=mu).delta_at(EPSILONS), rel=1e-4, abs=1e-11)


def test_sums_and_integrals_of_tails_agree_where_one_takes_over_from_the_other():
    first = np.array([1, 2, 500, 1000, 3000, 10_000, 20_000], dtype=float)
    expected = pytest.approx(_summed_tail(LARGEST_SUM**2, first), rel=5e-13, abs=0)
    assert _integrated_tail(LARGEST_SUM, first) == expected


def test_tails_of_a_wide_distribution_are_sums_of_its_masses():
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
