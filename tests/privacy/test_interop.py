"""Privacy loss distributions of dp_accounting: read as they are, and composed alike."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.pld_pmf import DensePLDPmf

from sklearn_dpsearch.privacy import DPSGD, GaussianDP, ProfileDP, compose
from sklearn_dpsearch.privacy.numerics.loss_distribution import DominatingPair, on_grid

GRID = np.linspace(0, 4, 41)


@pytest.mark.parametrize(
    "theirs",
    [
        pld.from_laplace_mechanism(1.5),
        pld.from_gaussian_mechanism(1.2),
        pld.from_gaussian_mechanism(1.2, sampling_prob=0.1),
        pld.from_randomized_response(0.4, 3),
        pld.from_privacy_parameters(pld.common.DifferentialPrivacyParameters(0.5, 1e-3)),
    ],
    ids=["Laplace", "Gaussian", "subsampled Gaussian", "randomised response", "epsilon and delta"],
)
def test_profile_read_from_dp_accounting_is_theirs(theirs) -> None:
    ours = ProfileDP.from_pld(theirs)
    exact = np.array([theirs.get_delta_for_epsilon(float(epsilon)) for epsilon in GRID])
    assert ours.delta_at(GRID) == pytest.approx(exact, abs=1e-10)
    assert np.all(ours.delta_at(GRID) >= exact - 1e-13)


def to_pld(pair: DominatingPair, interval: float) -> pld.PrivacyLossDistribution:
    """Theirs of a pair of ours, rounded up to multiples of the interval."""
    both = [DensePLDPmf(interval, *on_grid(one, interval), one.infinity, True) for one in pair.directions]
    return pld.PrivacyLossDistribution(*both)


def test_composed_there_it_agrees_with_composed_here() -> None:
    base = DPSGD(noise_multiplier=1.2, sample_rate=0.05, steps=50)
    theirs = to_pld(base.pair, 1e-3).self_compose(3)
    assert compose(base, base, base).epsilon_at(1e-5) == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=2e-3)


def test_both_directions_survive_the_round_trip() -> None:
    base = DPSGD(noise_multiplier=0.8, sample_rate=0.1, steps=5)
    back = ProfileDP.from_pld(to_pld(base.pair, 1e-3)).pair
    assert back.removed is not back.added
    for ours, one in ((base.pair.removed, back.removed), (base.pair.added, back.added)):
        assert one.delta_at(GRID) == pytest.approx(ours.delta_at(GRID), abs=1e-3)
    symmetric = ProfileDP.from_pld(to_pld(GaussianDP(mu=1.0).pair, 1e-3)).pair
    assert symmetric.removed is symmetric.added


def test_optimistic_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match="pessimistic"):
        ProfileDP.from_pld(pld.from_laplace_mechanism(1.0, pessimistic_estimate=False))
