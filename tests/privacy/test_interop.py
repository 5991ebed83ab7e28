"""To and from dp_accounting: pessimistic both ways."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from sklearn_dpsearch.privacy import (
    DPSGD,
    ApproxDP,
    GaussianDP,
    Geometric,
    Guarantee,
    ProfileDP,
    PureDP,
    best_of,
    compose,
)
from sklearn_dpsearch.privacy.interop import to_pld
from sklearn_dpsearch.privacy.numerics.pld_conversion import pair_from_pld

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


@pytest.mark.parametrize(
    "ours",
    [
        PureDP(epsilon=0.7),
        ApproxDP(epsilon=0.7, delta=1e-3),
        GaussianDP(mu=0.6),
        DPSGD(noise_multiplier=1.2, sample_rate=0.05, steps=50),
        best_of(PureDP(epsilon=0.2), Geometric(5)),
        compose(PureDP(epsilon=0.3), GaussianDP(mu=0.2)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_written_to_dp_accounting_it_is_never_below_ours_and_close(ours: Guarantee) -> None:
    theirs = to_pld(ours, interval=1e-3)
    delta = np.array([theirs.get_delta_for_epsilon(float(epsilon)) for epsilon in GRID])
    assert np.all(delta >= ours.pair.delta_at(GRID) - 2e-12)
    assert delta == pytest.approx(ours.pair.delta_at(GRID), abs=1e-3)


def test_both_directions_survive_the_round_trip() -> None:
    base = DPSGD(noise_multiplier=0.8, sample_rate=0.1, steps=5)
    back = pair_from_pld(to_pld(base, interval=1e-3))
    assert back.removed is not back.added
    for ours, one in ((base.pair.removed, back.removed), (base.pair.added, back.added)):
        assert one.delta_at(GRID) == pytest.approx(ours.delta_at(GRID), abs=1e-3)
    symmetric = pair_from_pld(to_pld(GaussianDP(mu=1.0), interval=1e-3))
    assert symmetric.removed is symmetric.added


def test_optimistic_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match="pessimistic"):
        ProfileDP.from_pld(pld.from_laplace_mechanism(1.0, pessimistic_estimate=False))
