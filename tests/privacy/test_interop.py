"""dp_accounting: its loss distributions are read as they are, and its events become our
guarantees."""

from __future__ import annotations

import math

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, RepeatAndSelectDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.pld_pmf import DensePLDPmf
from dp_accounting.rdp import RdpAccountant

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    GaussianDP,
    Geometric,
    LaplaceDP,
    Logarithmic,
    NegativeBinomial,
    NonPrivate,
    Poisson,
    ProfileDP,
    PureDP,
    UnknownGuaranteeError,
    best_of,
    compose,
)
from sklearn_dpsearch.privacy._numerics.loss_distribution import DominatingPair, on_grid
from sklearn_dpsearch.privacy.interop import from_event

GRID = np.linspace(0, 4, 41)


@pytest.mark.parametrize("theirs", [
    pld.from_laplace_mechanism(1.5),
    pld.from_gaussian_mechanism(1.2),
    pld.from_gaussian_mechanism(1.2, sampling_prob=0.1),
    pld.from_randomized_response(0.4, 3),
    pld.from_privacy_parameters(pld.common.DifferentialPrivacyParameters(0.5, 1e-3)),
], ids=[
    "Laplace", "Gaussian", "subsampled Gaussian", "randomised response", "epsilon and delta",
])  # fmt: skip
def test_profile_read_from_dp_accounting_is_theirs(theirs) -> None:
    ours = ProfileDP.from_pld(theirs)
    exact = np.array([theirs.get_delta_for_epsilon(float(epsilon)) for epsilon in GRID])
    assert ours.delta_at(GRID) == pytest.approx(exact, abs=1e-10)
    assert np.all(ours.delta_at(GRID) >= exact - 1e-13)


def to_pld(pair: DominatingPair, interval: float) -> pld.PrivacyLossDistribution:
    """Theirs of a pair of ours, rounded up to multiples of the interval."""
    both = [
        DensePLDPmf(interval, *on_grid(one, interval), one.infinity, True)
        for one in pair.directions
    ]
    return pld.PrivacyLossDistribution(*both)


def test_composed_there_it_agrees_with_composed_here() -> None:
    base = DPSGD(noise_multiplier=1.2, sample_rate=0.05, steps=50)
    theirs = to_pld(base.pair, 1e-3).self_compose(3)
    expected = pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=2e-3)
    assert compose(base, base, base).epsilon_at(1e-5) == expected


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


GAUSSIAN, LAPLACE = dp.GaussianDpEvent(2.0), dp.LaplaceDpEvent(1.5)
STEP = dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.1))
BOTH = dp.ComposedDpEvent([dp.SelfComposedDpEvent(STEP, 40), LAPLACE])


@pytest.mark.parametrize(("event", "expected"), [
    (dp.NoOpDpEvent(), PureDP(epsilon=0.0)),
    (dp.NonPrivateDpEvent(), NonPrivate()),
    (dp.GaussianDpEvent(0.0), NonPrivate()),
    (dp.LaplaceDpEvent(0.0), NonPrivate()),
    (GAUSSIAN, GaussianDP(mu=0.5)),
    (dp.LaplaceDpEvent(2.0), LaplaceDP(epsilon=0.5)),
    (STEP, DPSGD(noise_multiplier=1.1, sample_rate=0.05, steps=1)),
    (dp.SelfComposedDpEvent(STEP, 40), DPSGD(noise_multiplier=1.1, sample_rate=0.05, steps=40)),
    (
        dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(STEP, 4), 10),
        DPSGD(noise_multiplier=1.1, sample_rate=0.05, steps=40),
    ),
    (dp.SelfComposedDpEvent(GAUSSIAN, 16), GaussianDP(mu=2.0)),
    (dp.SelfComposedDpEvent(GAUSSIAN, 0), PureDP(epsilon=0.0)),
    (dp.ComposedDpEvent([]), PureDP(epsilon=0.0)),
    (dp.ZCDpEvent(0.1), ZCDP(rho=0.1)),
    (dp.ComposedDpEvent([GAUSSIAN, dp.NonPrivateDpEvent()]), NonPrivate()),
    (dp.PoissonSampledDpEvent(0.0, GAUSSIAN), PureDP(epsilon=0.0)),
    (dp.PoissonSampledDpEvent(1.0, LAPLACE), from_event(LAPLACE)),
    (RepeatAndSelectDpEvent(GAUSSIAN, 10, 1), best_of(GaussianDP(mu=0.5), Geometric(10))),
    (RepeatAndSelectDpEvent(GAUSSIAN, 10, 0), best_of(GaussianDP(mu=0.5), Logarithmic(10))),
    (RepeatAndSelectDpEvent(GAUSSIAN, 10, math.inf), best_of(GaussianDP(mu=0.5), Poisson(10))),
    (
        RepeatAndSelectDpEvent(STEP, 3, 0.5),
        best_of(from_event(STEP), NegativeBinomial(shape=0.5, mean=3)),
    ),
    (dp.ComposedDpEvent([GAUSSIAN, STEP]), compose(GaussianDP(mu=0.5), from_event(STEP))),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_an_event_is_read_by_its_structure(event, expected) -> None:
    assert from_event(event) == expected


@pytest.mark.slow
@pytest.mark.parametrize("event", [
    GAUSSIAN, LAPLACE, dp.SelfComposedDpEvent(STEP, 40), BOTH,
    dp.PoissonSampledDpEvent(0.1, LAPLACE),
], ids=["Gaussian", "Laplace", "DP-SGD", "composed", "sampled Laplace"])  # fmt: skip
def test_epsilon_is_that_of_their_loss_distributions(event) -> None:
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event)
    for delta in (1e-2, 1e-5):
        expected = pytest.approx(theirs.get_epsilon(delta), rel=2e-3, abs=2e-3)
        assert from_event(event).epsilon_at(delta) == expected


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
def test_the_best_of_several_runs_is_never_above_their_renyi_accounting(shape: float) -> None:
    event = RepeatAndSelectDpEvent(dp.SelfComposedDpEvent(STEP, 40), 10, shape)
    assert from_event(event).epsilon_at(1e-6) <= RdpAccountant().compose(event).get_epsilon(1e-6)


def test_noise_is_never_rounded_up() -> None:
    for noise in (3.0, 0.7, 1.1):
        assert from_event(dp.GaussianDpEvent(noise)).mu * noise >= 1.0
        assert from_event(dp.LaplaceDpEvent(noise)).epsilon * noise >= 1.0


def test_the_relation_is_the_presence_of_a_record() -> None:
    assert from_event(BOTH, "zero_out").neighboring == "zero_out"
    with pytest.raises(ValueError, match="for changed records: as_replace_one of the result"):
        from_event(BOTH, "replace_one")


def test_an_unknown_event_is_named_with_what_to_do() -> None:
    class GaussianDpEvent:  # of the same name, though another thing
        noise_multiplier = 1.0

    for event in (
        DiscreteLaplaceDpEvent(1.0, 1),
        dp.ComposedDpEvent([dp.UnsupportedDpEvent()]),
        GaussianDpEvent(),
    ):
        with pytest.raises(UnknownGuaranteeError, match="ProfileDP.from_pld"):
            from_event(event)


def test_numbers_that_no_event_has_are_refused() -> None:
    for wrong in (
        dp.GaussianDpEvent(-1.0),
        dp.LaplaceDpEvent(np.nan),
        dp.PoissonSampledDpEvent(1.5, LAPLACE),
        dp.SelfComposedDpEvent(GAUSSIAN, -1),
        dp.SelfComposedDpEvent(GAUSSIAN, 1.5),
        RepeatAndSelectDpEvent(GAUSSIAN, 0.5, 1),
    ):
        with pytest.raises(ValueError, match="Expected"):
            from_event(wrong)
