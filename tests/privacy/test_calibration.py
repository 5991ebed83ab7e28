"""Calibration: the target is met, nearly exactly, or the error says what would be possible."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    BudgetUnreachableError,
    GaussianDP,
    Geometric,
    Guarantee,
    MissingDeltaError,
    Poisson,
    PureDP,
    best_of,
    calibrate,
    compose,
)

FAMILIES = {
    "pure": (lambda x: PureDP(epsilon=x), (1e-4, 50.0)),
    "zcdp": (lambda x: ZCDP(rho=x), (1e-6, 100.0)),
    "gaussian": (lambda x: GaussianDP(mu=x), (1e-4, 20.0)),
    "approx": (lambda x: ApproxDP(epsilon=x, delta=1e-9), (1e-4, 50.0)),
    "noise multiplier": (lambda x: DPSGD(noise_multiplier=x, sample_rate=0.02, steps=300), (0.3, 50.0)),
    "search of pure": (lambda x: best_of(PureDP(epsilon=x), Geometric(10)), (1e-4, 50.0)),
    "search of Gaussian": (lambda x: best_of(GaussianDP(mu=x), Poisson(5).at_least_one()), (1e-3, 10.0)),
    "search and final": (lambda x: compose(best_of(GaussianDP(mu=x), 5), GaussianDP(mu=x)), (1e-2, 5.0)),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", [0.5, 3.0])
def test_result_meets_the_target_and_is_within_the_tolerance(family: str, target: float) -> None:
    guarantee_of, bracket = FAMILIES[family]
    for order in (bracket, bracket[::-1]):
        found = calibrate(guarantee_of, target, 1e-5, order)
        assert target * (1 - 1e-3) <= guarantee_of(found).epsilon_at(1e-5) <= target
        if family == "search and final":
            break


def test_finer_tolerance_comes_closer() -> None:
    found = calibrate(lambda mu: GaussianDP(mu=mu), 1.0, 1e-6, (0.01, 10.0), tolerance=1e-8)
    assert 1 - 1e-8 <= GaussianDP(mu=found).epsilon_at(1e-6) <= 1


def test_pure_search_calibrates_at_delta_zero() -> None:
    found = calibrate(lambda x: best_of(PureDP(epsilon=x), Geometric(10)), 1.0, 0.0, (1e-3, 10.0))
    assert 0.999 <= best_of(PureDP(epsilon=found), Geometric(10)).epsilon_at(0.0) <= 1.0


def test_steps_of_a_jumping_guarantee_still_meet_the_target() -> None:
    """With a discontinuity at the target the safe side is returned."""

    def jumping(x: float) -> Guarantee:
        return PureDP(epsilon=0.5 if x < 2 else 5.0)

    assert jumping(calibrate(jumping, 1.0, 0.0, (0.1, 10.0))).epsilon_at(0.0) == 0.5


def test_target_that_everything_meets_gives_the_least_private_end() -> None:
    assert calibrate(lambda x: PureDP(epsilon=x), 100.0, 1e-5, (0.1, 2.0)) == 2.0
    assert calibrate(lambda s: GaussianDP(mu=1 / s), 100.0, 1e-5, (0.5, 9.0)) == 0.5


def test_target_out_of_reach_says_the_smallest_epsilon_possible() -> None:
    with pytest.raises(BudgetUnreachableError) as caught:
        calibrate(lambda x: best_of(PureDP(epsilon=x), 10), 0.01, 1e-9, (0.1, 1.0))
    said = float(re.search(r"possible here is ([0-9.]+)\.", str(caught.value)).group(1))  # type: ignore[union-attr]
    assert said == pytest.approx(best_of(PureDP(epsilon=0.1), 10).epsilon_at(1e-9), rel=1e-3)
    assert "Give a larger epsilon or delta" in str(caught.value)


@pytest.mark.parametrize("family", ["gaussian", "zcdp", "noise multiplier", "search of Gaussian", "approx"])
def test_pure_target_for_a_base_that_is_not_pure_asks_for_delta(family: str) -> None:
    guarantee_of, bracket = FAMILIES[family]
    with pytest.raises(MissingDeltaError, match="a delta > 0 is needed"):
        calibrate(guarantee_of, 1.0, 0.0, bracket)


def test_failures_above_delta_are_out_of_reach_whatever_the_noise() -> None:
    with pytest.raises(BudgetUnreachableError, match="possible here is inf"):
        calibrate(lambda x: ApproxDP(epsilon=x, delta=1e-3), 1.0, 1e-5, (0.1, 2.0))


@pytest.mark.parametrize(
    ("target", "delta", "bracket"),
    [
        (0.0, 1e-5, (0.1, 1.0)),
        (np.inf, 1e-5, (0.1, 1.0)),
        (1.0, 1.0, (0.1, 1.0)),
        (1.0, -0.1, (0.1, 1.0)),
        (1.0, 1e-5, (0.0, 1.0)),
        (1.0, 1e-5, (0.1, np.inf)),
        (np.nan, 1e-5, (0.1, 1.0)),
    ],
)
def test_bad_parameters_are_refused(target: float, delta: float, bracket: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        calibrate(lambda x: PureDP(epsilon=x), target, delta, bracket)
