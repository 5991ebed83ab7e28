"""From a target to a parameter: it meets the target, closely, or the error says what would be
possible."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._calibration import covers, gaussian_target, noise_multiplier_under
from tests.privacy.brute_force import cases

FAMILIES = {
    "pure": (lambda x: dp.PureDP(epsilon=x), (1e-4, 50.0)),
    "zcdp": (lambda x: dp.ZCDP(rho=x), (1e-6, 100.0)),
    "gaussian": (lambda x: dp.GaussianDP(mu=x), (1e-4, 20.0)),
    "approx": (lambda x: dp.ApproxDP(epsilon=x, delta=1e-9), (1e-4, 50.0)),
    "noise multiplier": (
        lambda x: dp.DPSGD(noise_multiplier=x, sample_rate=0.02, steps=300), (0.3, 50.0),
    ),
    "search of pure": (lambda x: dp.best_of(dp.PureDP(epsilon=x), dp.Geometric(10)), (1e-4, 50.0)),
    "search of Gaussian": (
        lambda x: dp.best_of(dp.GaussianDP(mu=x), dp.Poisson(5).at_least_one()), (1e-3, 10.0),
    ),
    "search and final training": (
        lambda x: dp.compose(dp.best_of(dp.GaussianDP(mu=x), 5), dp.GaussianDP(mu=x)), (1e-2, 5.0),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", [0.5, 3.0])
def test_result_meets_the_target_and_is_within_the_tolerance(family: str, target: float) -> None:
    guarantee_of, bracket = FAMILIES[family]
    for order in (bracket, bracket[::-1]):
        found = dp.calibrate(guarantee_of, target, 1e-5, order)
        assert target * (1 - 1e-3) <= guarantee_of(found).epsilon_at(1e-5) <= target


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", [pytest.param(0.05, marks=pytest.mark.slow), 20.0])
def test_without_a_bracket_one_is_found(family: str, target: float) -> None:
    guarantee_of, _ = FAMILIES[family]
    found = dp.calibrate(guarantee_of, target, 1e-5)
    assert target * (1 - 1e-3) <= guarantee_of(found).epsilon_at(1e-5) <= target


def test_a_start_whose_epsilon_is_infinite_says_nothing_about_the_direction() -> None:
    """GaussianDP(mu=1000/x) has no finite ε at x = 1, nor at x = 1/8."""
    found = dp.calibrate(lambda x: dp.GaussianDP(mu=1000 / x), 1.0, 1e-5)
    assert 0.999 <= dp.GaussianDP(mu=1000 / found).epsilon_at(1e-5) <= 1.0


@pytest.mark.parametrize("power", [1, -1])
@pytest.mark.parametrize("smallest", [0.5, 0.02, 0.9999])
def test_parameters_that_no_mechanism_has_are_kept_off(power: int, smallest: float) -> None:
    """A tree with public classes, say, can add only so much noise: below that there is no
    guarantee."""

    def guarantee_of(x: float) -> dp.Guarantee:
        if x**power < smallest:
            raise dp.BudgetUnreachableError("so much noise it cannot add")
        return dp.PureDP(epsilon=4 * x**power)

    for target in (4 * smallest * 1.01, 4 * smallest * 1.5, 30.0):
        found = dp.calibrate(guarantee_of, target, 0.0)
        assert target * (1 - 1e-3) <= 4 * found**power <= target
    with pytest.raises(dp.BudgetUnreachableError) as caught:
        dp.calibrate(guarantee_of, 4 * smallest * 0.9, 0.0)
    said = float(re.search(r"possible here is ([0-9.]+)\.", str(caught.value)).group(1))  # type: ignore[union-attr]
    assert said == pytest.approx(4 * smallest, rel=2e-3)


def test_no_parameter_is_asked_twice() -> None:
    asked: list[float] = []

    def guarantee_of(x: float) -> dp.Guarantee:
        asked.append(x)
        return dp.GaussianDP(mu=x)

    dp.calibrate(guarantee_of, 0.3, 1e-5)
    assert len(asked) == len(set(asked)) < 15


def test_a_target_that_everything_meets_gives_the_largest_parameter_tried() -> None:
    assert dp.calibrate(lambda x: dp.PureDP(epsilon=0.1 * x / (1 + x)), 1.0, 0.0) == 1e9


def test_pure_search_calibrates_at_delta_zero() -> None:
    found = dp.calibrate(
        lambda x: dp.best_of(dp.PureDP(epsilon=x), dp.Geometric(10)), 1.0, 0.0, (1e-3, 10.0)
    )
    assert 0.999 <= dp.best_of(dp.PureDP(epsilon=found), dp.Geometric(10)).epsilon_at(0.0) <= 1.0


def test_target_that_everything_meets_gives_the_least_private_end() -> None:
    assert dp.calibrate(lambda x: dp.PureDP(epsilon=x), 100.0, 1e-5, (0.1, 2.0)) == 2.0
    assert dp.calibrate(lambda s: dp.GaussianDP(mu=1 / s), 100.0, 1e-5, (0.5, 9.0)) == 0.5


def test_target_out_of_reach_says_the_smallest_epsilon_possible() -> None:
    with pytest.raises(dp.BudgetUnreachableError) as caught:
        dp.calibrate(lambda x: dp.best_of(dp.PureDP(epsilon=x), 10), 0.01, 1e-9, (0.1, 1.0))
    said = float(re.search(r"possible here is ([0-9.]+)\.", str(caught.value)).group(1))  # type: ignore[union-attr]
    assert said == pytest.approx(dp.best_of(dp.PureDP(epsilon=0.1), 10).epsilon_at(1e-9), rel=1e-3)
    assert "Give another bracket than (0.1, 1.0), or a larger epsilon or delta" in str(caught.value)


@pytest.mark.parametrize(
    "family", ["gaussian", "zcdp", "noise multiplier", "search of Gaussian", "approx"]
)
def test_pure_target_for_a_base_that_is_not_pure_asks_for_delta(family: str) -> None:
    guarantee_of, bracket = FAMILIES[family]
    with pytest.raises(dp.MissingDeltaError, match="a delta > 0 is needed"):
        dp.calibrate(guarantee_of, 1.0, 0.0, bracket)


def test_failures_above_delta_are_out_of_reach_whatever_the_noise() -> None:
    with pytest.raises(dp.BudgetUnreachableError, match="possible here is inf"):
        dp.calibrate(lambda x: dp.ApproxDP(epsilon=x, delta=1e-3), 1.0, 1e-5, (0.1, 2.0))


@pytest.mark.parametrize(("target", "delta", "bracket"), [
    (0.0, 1e-5, (0.1, 1.0)), (np.inf, 1e-5, (0.1, 1.0)), (1.0, 1.0, (0.1, 1.0)),
    (1.0, -0.1, (0.1, 1.0)), (1.0, 1e-5, (0.0, 1.0)), (1.0, 1e-5, (0.1, np.inf)),
    (np.nan, 1e-5, (0.1, 1.0)),
])  # fmt: skip
def test_bad_parameters_are_refused(target: float, delta: float, bracket: tuple[float, float]):
    with pytest.raises(ValueError, match="Expected"):
        dp.calibrate(lambda x: dp.PureDP(epsilon=x), target, delta, bracket)


RUN = dp.DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=20)
LIGHT = dp.best_of(dp.GaussianDP(mu=0.3), dp.Poisson(40))


@pytest.mark.slow
def test_bounds_that_take_long_are_asked_in_the_last_steps_alone() -> None:
    """Theorem 1 leads to the neighbourhood of the target; whose prices were worked out is seen on
    the guarantee."""
    asked = []

    def search(factor: float):
        asked.append(dp.best_of(dp.GaussianDP(mu=factor), dp.Poisson(60)))
        return asked[-1]

    found = dp.calibrate(search, 1.0, 1e-6)
    costly = {id(one) for one in asked if "anchors" in vars(one.bounds["Theorem 6"])}
    assert 1 <= len(costly) <= 3 < len({id(one) for one in asked})
    assert 0.9995 <= search(found).epsilon_at(1e-6) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("one", [
    LIGHT, dp.compose(LIGHT, dp.PureDP(epsilon=0.1)),
    dp.mixture([LIGHT, dp.PureDP(epsilon=0.1)], [0.5, 0.5]),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_a_rough_bound_is_never_below_and_spares_the_prices(one) -> None:
    rough = one._roughly()
    assert rough is not one
    for delta in (1e-8, 1e-5, 1e-2):
        actual = one.epsilon_at(delta) * (1 - 1e-9)
        assert actual <= rough.epsilon_at(delta) <= 1.5 * one.epsilon_at(delta)
    for quick in (
        dp.GaussianDP(mu=0.3),
        dp.best_of(dp.GaussianDP(mu=0.3), dp.Geometric(40)),
        dp.compose(dp.PureDP(epsilon=1.0), RUN),
    ):
        assert quick._roughly() is quick


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
    run = dp.DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps)
    # not the points that were compared
    epsilons = np.concatenate([[0.0], np.geomspace(1e-4, 60, 4000)])
    assert np.all(
        run.delta_at(epsilons) <= gaussian_target(mu).delta_at(epsilons) * (1 + 1e-9) + 1e-15
    )


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "rate", "steps"), SETTINGS)
def test_a_little_less_noise_would_not_be_enough(mu, rate, steps):
    noise = noise_multiplier_under(mu, rate, steps)
    less = dp.DPSGD(noise_multiplier=noise * 0.995, sample_rate=rate, steps=steps)
    assert not covers(dp.GaussianDP(mu=mu), less, slack=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "sensitivity"), [("add_remove", 1), ("replace_one", 2)])
def test_full_batches_need_the_noise_of_the_gaussian_mechanism(relation, sensitivity):
    found = noise_multiplier_under(0.5, 1.0, 4, neighboring=relation)
    assert found == pytest.approx(2 * sensitivity / 0.5, rel=5e-3)


@pytest.mark.slow
def test_a_search_costs_no_less_with_any_candidate_than_with_the_target():
    total = dp.best_of(gaussian_target(0.5), dp.Geometric(10)).epsilon_at(1e-5)
    for rate, steps in ((0.05, 400), (0.2, 100)):
        noise_multiplier = noise_multiplier_under(0.5, rate, steps)
        run = dp.DPSGD(noise_multiplier=noise_multiplier, sample_rate=rate, steps=steps)
        assert 0.9 * total < dp.best_of(run, dp.Geometric(10)).epsilon_at(1e-5) <= total


def test_the_slack_is_part_of_the_guarantee():
    assert gaussian_target(0.5, slack=1e-4).delta_at(50.0) == pytest.approx(1e-4, rel=1e-6)


def test_a_target_that_is_not_positive_is_an_error():
    with pytest.raises((ValueError, dp.PrivacyError), match="mu"):
        noise_multiplier_under(0.0, 0.1, 10)


@pytest.mark.parametrize(
    ("mu", "rate", "steps", "slack"),
    [pytest.param(0.5, 0.01, 1000, 0.1, marks=pytest.mark.slow), (4.0, 1.0, 1, 0.2)],
)
def test_target_with_a_large_slack_is_kept_too(mu: float, rate: float, steps: int, slack: float):
    noise = noise_multiplier_under(mu, rate, steps, slack)
    run = dp.DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps)
    target = gaussian_target(mu, slack=slack)
    epsilons = np.linspace(0.0, 1.5 * target.epsilon_at(1.001 * slack), 500)
    assert np.all(run.delta_at(epsilons) <= target.delta_at(epsilons))


@pytest.mark.parametrize(
    ("mu", "rate", "steps"), [(2.0, 0.3, 1), pytest.param(1.0, 0.05, 100, marks=pytest.mark.slow)]
)
def test_a_target_for_changed_records_is_kept_and_needs_more_noise(mu, rate, steps):
    noise = noise_multiplier_under(mu, rate, steps, neighboring="replace_one")
    target = gaussian_target(mu, "replace_one")
    epsilons = np.concatenate([[0.0], np.geomspace(1e-4, 60, 300)])

    def stays_under(multiplier):
        options = {"sample_rate": rate, "steps": steps, "neighboring": "replace_one"}
        run = dp.DPSGD(noise_multiplier=multiplier, **options)
        return np.all(run.delta_at(epsilons) <= target.delta_at(epsilons) * (1 + 1e-9) + 1e-15)

    assert stays_under(noise)
    assert not stays_under(0.99 * noise)
    assert not stays_under(noise_multiplier_under(mu, rate, steps))
