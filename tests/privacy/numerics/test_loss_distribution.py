"""Loss distributions: exact where they can be, above the truth everywhere else."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_dpsearch.privacy import GaussianDP
from sklearn_dpsearch.privacy._numerics import basic_mechanisms
from sklearn_dpsearch.privacy._numerics.arithmetic import log_expm1, log_mills_ratio, safe_exp
from sklearn_dpsearch.privacy._numerics.basic_mechanisms import (
    delta_of_gaussian,
    randomized_response,
)
from sklearn_dpsearch.privacy._numerics.loss_distribution import (
    LossDistribution,
    connect_the_dots,
    mix,
    on_grid,
)
from tests.privacy.brute_force import exact_pair, hockey_stick, loss_distribution, random_mechanism

ALL_EPSILONS = np.linspace(-6, 6, 97)


# --- hockey-stick curves --------------------------------------------------------------------------


@pytest.mark.slow
def test_curve_of_a_discrete_pair_is_its_hockey_stick_divergence() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        one = random_mechanism(rng)
        ours = loss_distribution(one.p, one.q).delta_at(ALL_EPSILONS)
        exact = np.array([hockey_stick(one.p, one.q, epsilon) for epsilon in ALL_EPSILONS])
        assert np.all(ours >= exact - 1e-15)
        assert ours == pytest.approx(exact, abs=3e-12)


def test_one_direction_is_the_dual_of_the_other() -> None:
    """H_{e^{−ε}}(P‖Q) = 1 − e^{−ε} + e^{−ε}·H_{e^ε}(Q‖P)."""
    rng = np.random.default_rng(1)
    pairs = [GaussianDP(mu=0.7).pair, *(exact_pair(random_mechanism(rng)) for _ in range(50))]
    for pair in pairs:
        dual = 1 - np.exp(ALL_EPSILONS) + np.exp(ALL_EPSILONS) * pair.added.delta_at(-ALL_EPSILONS)
        assert pair.removed.delta_at(ALL_EPSILONS) == pytest.approx(dual, abs=1e-9)


def test_curve_never_rises_and_never_leaves_the_unit_interval() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        values = loss_distribution(*random_mechanism(rng)[:2]).delta_at(
            np.linspace(-800, 800, 3001)
        )
        assert np.all(np.diff(values) <= 1e-12)
        assert 0 <= values.min() <= values.max() <= 1


# --- the Gaussian curve ---------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 0.7, 3.0, 10.0])
def test_gaussian_curve_is_above_sixty_digits_and_close(mu: float) -> None:
    with mpmath.workdps(60):
        for epsilon in 0.5 * mu**2 + mu * np.linspace(-6, 12, 25):
            m, e = mpmath.mpf(mu), mpmath.mpf(float(epsilon))
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            ours = float(delta_of_gaussian(mu, np.array(float(epsilon))))
            assert exact <= ours <= exact * (1 + mpmath.mpf(1e-11) + mpmath.mpf(5e-14) / m)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.5, 0.2), (4.0, 0.5), (2.0, 1.0)])
def test_subsampled_step_is_above_sixty_digits_at_and_between_its_dots(sigma: float, rate: float):
    step = basic_mechanisms._subsampled_gaussian_step(sigma, rate)
    removed, added = step.removed, step.added
    rng = np.random.default_rng(4)
    with mpmath.workdps(60):
        mu, q = 1 / mpmath.mpf(sigma), mpmath.mpf(rate)

        def gaussian(e):
            return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

        cases = np.append(0.0, rng.uniform(0, 3 * rate * np.expm1(min(1 / sigma**2, 3)) ** 0.5, 40))
        for epsilon in cases:
            c = mpmath.exp(float(epsilon))
            forward = q * gaussian(mpmath.log((c - 1 + q) / q))
            left = 1 - c * (1 - q)
            backward = left * gaussian(mpmath.log(c * q / left)) if left > 0 else mpmath.mpf(0)
            for ours, exact in ((removed, forward), (added, backward)):
                value = float(ours.delta_at(float(epsilon)))
                assert exact <= value <= float(exact) * 1.01 + 1e-2 * rate


# --- connecting the dots --------------------------------------------------------------------------


def true_curves(mu: float, weight: float):
    """A mixture of a Gaussian and a randomised-response curve, as functions of real ε."""
    response = randomized_response(1.0, 1e-4)
    return lambda epsilon: (
        weight * delta_of_gaussian(mu, epsilon) + (1 - weight) * response.delta_at(epsilon)
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.floats(0.1, 3.0),
    st.floats(0.0, 1.0),
    st.integers(2, 80),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["exact", "factors", "offsets", "tiny", "first", "step"]),
)
def test_dots_are_connected_above_the_true_profile(mu, weight, number, seed, kind):
    """Upper bounds of any shape, convex or not, the same or different for both directions: checked
    between dots too."""
    rng = np.random.default_rng(seed)
    curve = true_curves(mu, weight)
    grid = np.append(0.0, np.sort(rng.uniform(0.01, 8.0, number)))
    grid = grid[np.append(True, np.diff(grid) > 1e-6)]
    exact = curve(grid)

    def raised():
        return {
            "exact": exact,
            "factors": exact * (1 + rng.exponential(0.5, grid.size)),
            "offsets": exact + rng.exponential(0.02, grid.size),
            "tiny": exact * (1 + 1e-8 * rng.random(grid.size)),
            "first": np.append(exact[0] * (1 + rng.random()), exact[1:]),
            "step": np.where(grid < rng.uniform(0, 4), np.maximum(exact, 0.9), exact),
        }[kind]

    ours = connect_the_dots(grid, *(np.minimum(raised(), 1.0) for _ in range(2)))
    fine = np.linspace(-9, 9, 721)
    # of the curve itself, which is rounded up (delta_of_gaussian)
    allowance = 2e-12 + 2e-15 * (fine / mu) ** 2
    assert np.all(ours.delta_at(fine) >= curve(fine) * (1 - allowance) - 1e-13)
    assert ours.infinity + ours.masses.sum() >= 1 - 1e-12


def test_unequal_distances_at_zero_do_not_lower_the_curve_below_zero_epsilon() -> None:
    grid = np.linspace(0, 5, 501)
    exact = delta_of_gaussian(1.0, grid)
    for excess in (1e-9, 1e-5, 1e-2):
        raised = exact + np.append(excess, np.zeros(500))
        for one in (connect_the_dots(grid, exact, raised), connect_the_dots(grid, raised, exact)):
            assert np.all(
                one.delta_at(ALL_EPSILONS) >= delta_of_gaussian(1.0, ALL_EPSILONS) - 1e-13
            )


def test_dots_of_a_smooth_profile_cost_next_to_nothing() -> None:
    grid = np.linspace(0, 10.5, 21001)
    values = delta_of_gaussian(1.0, grid)
    one, fine = connect_the_dots(grid, values, values), np.linspace(0, 6, 1234)
    assert one.delta_at(fine) == pytest.approx(delta_of_gaussian(1.0, fine), rel=1e-6)
    assert one.infinity < 1e-22


def test_dots_of_a_constant_profile_promise_nothing() -> None:
    one = connect_the_dots(np.array([0.0, 1.0]), np.ones(2), np.ones(2))
    assert one.infinity == 1.0
    assert np.all(one.delta_at(np.array([0.0, 5.0, 100.0])) == 1.0)


# --- mixing, and grids ----------------------------------------------------------------------------


def test_rounding_to_a_grid_keeps_both_masses_and_only_raises_the_curve() -> None:
    rng = np.random.default_rng(6)
    for _ in range(100):
        one = loss_distribution(*random_mechanism(rng)[:2])
        interval = float(np.exp(rng.uniform(-7, -0.5)))
        first, masses = on_grid(one, interval)
        losses = (first + np.arange(masses.size)) * interval
        assert masses.sum() == pytest.approx(one.masses.sum(), rel=1e-12)
        assert masses @ np.exp(-losses) == pytest.approx(one.masses @ np.exp(-one.losses), rel=1e-9)
        spread = LossDistribution(losses, masses, one.infinity)
        # less its own slack
        assert np.all(spread.delta_at(ALL_EPSILONS) >= one.delta_at(ALL_EPSILONS) - 2e-12)


def test_mixed_curve_is_the_average_of_the_curves() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        parts = [loss_distribution(*random_mechanism(rng)[:2]) for _ in range(3)]
        weights = rng.dirichlet(np.ones(3))
        average = sum(w * one.delta_at(ALL_EPSILONS) for w, one in zip(weights, parts))
        assert mix(parts, list(weights)).delta_at(ALL_EPSILONS) == pytest.approx(average, abs=1e-11)


# --- log space ------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.5, 1.0, 30.0, 700.0, 1e6])
def test_log_of_expm1_is_right_where_expm1_is_tiny_or_infinite(x: float) -> None:
    with mpmath.workdps(400):
        assert float(log_expm1(x)) == pytest.approx(
            float(mpmath.log(mpmath.expm1(mpmath.mpf(x)))), rel=1e-13, abs=1e-14
        )


@pytest.mark.parametrize("x", [-30.0, -5.0, -4.9, 0.0, 2.0, 40.0, 1e5])
def test_log_of_mills_ratio_is_right_far_out(x: float) -> None:
    with mpmath.workdps(60):
        y = mpmath.mpf(x)
        exact = mpmath.log(mpmath.erfc(y / mpmath.sqrt(2)) / 2 / mpmath.npdf(y))
        assert float(log_mills_ratio(x)) == pytest.approx(float(exact), rel=1e-13)


def test_exponential_does_not_overflow() -> None:
    assert np.isfinite(safe_exp(np.array([1e4]))).all()
    assert safe_exp(1.0) == np.exp(1.0)
