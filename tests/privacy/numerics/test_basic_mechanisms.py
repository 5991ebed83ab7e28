"""Curves of the basic mechanisms against closed forms, many digits and dp_accounting."""

from __future__ import annotations

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution, privacy_loss_mechanism

from sklearn_dpsearch.privacy import DPSGD, GaussianDP, PureDP, RenyiDP
from sklearn_dpsearch.privacy._numerics import basic_mechanisms
from tests.privacy.brute_force import FULL

ADD_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE


# --- randomised response --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("delta", [0.0, 1e-8, 0.2])
def test_randomised_response_has_the_profile_of_its_definition(epsilon: float, delta: float):
    """δ + (1−δ)·(e^{ε₀} − e^ε)/(1 + e^{ε₀}) up to ε₀, δ from there on."""
    grid = np.linspace(0, epsilon + 2, 41)
    exact = delta + (1 - delta) * np.maximum(np.exp(epsilon) - np.exp(grid), 0) / (
        1 + np.exp(epsilon)
    )
    expected = pytest.approx(exact, rel=1e-11, abs=1e-11)
    assert basic_mechanisms.randomized_response(epsilon, delta).delta_at(grid) == expected


# --- Rényi curves ---------------------------------------------------------------------------------


def test_conversion_from_renyi_is_above_the_mechanism_it_speaks_of() -> None:
    for mu in (0.1, 0.5, 2.0):
        orders = np.unique(np.concatenate([1 + np.geomspace(0.01, 1, 20), np.arange(2.0, 200.0)]))
        grid = np.linspace(0, 10, 41)
        assert np.all(
            basic_mechanisms.delta_of_renyi(orders, 0.5 * mu**2 * orders, grid)
            >= basic_mechanisms.delta_of_gaussian(mu, grid)
        )
        assert np.all(
            basic_mechanisms.delta_of_zcdp(0.5 * mu**2, grid)
            >= basic_mechanisms.delta_of_gaussian(mu, grid)
        )


def test_orders_with_an_infinite_bound_say_nothing() -> None:
    alone, more = np.array([2.0]), np.array([2.0, 3.0, 9.0])
    grid = np.linspace(0, 3, 13)
    ours = basic_mechanisms.delta_of_renyi(more, np.array([0.4, np.inf, np.inf]), grid)
    assert ours == pytest.approx(basic_mechanisms.delta_of_renyi(alone, np.array([0.4]), grid))
    assert np.all(basic_mechanisms.delta_of_renyi(more, np.full(3, np.inf), grid) == 1.0)


def test_order_infinity_means_a_largest_loss() -> None:
    values = basic_mechanisms.delta_of_renyi(
        np.array([2.0, np.inf]), np.array([0.5, 1.0]), np.array([0.0, 0.5, 1.0, 1.001])
    )
    assert values[:3] == pytest.approx(
        basic_mechanisms.delta_of_renyi(np.array([2.0]), np.array([0.5]), np.array([0.0, 0.5, 1.0]))
    )
    assert values[3] == 0.0


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 2.0, 50.0])
def test_concentrated_profile_holds_whatever_orders_are_tried(rho: float) -> None:
    """Never below the minimum over a much finer set of orders, and within a percent of it."""
    grid = rho + np.sqrt(rho) * np.linspace(0.1, 12, 15)
    orders = 1 + np.geomspace(1e-4, 1e7, 60001)

    def least(at: float) -> float:
        log_delta = (orders - 1) * (rho * orders + np.log1p(-1 / orders) - at) - np.log(orders)
        best = int(np.argmin(log_delta))
        around = np.linspace(orders[max(best - 1, 0)], orders[best + 1], 1001)
        return float(basic_mechanisms.delta_of_renyi(around, rho * around, np.array(at)))

    exact = np.array([least(at) for at in grid])
    ours = basic_mechanisms.delta_of_zcdp(rho, grid)
    assert np.all(ours >= exact * (1 - 1e-6))
    assert np.all(ours <= exact * 1.01)


@pytest.mark.parametrize(("sigma", "rate"), [
    (1.0, 0.01),
    pytest.param(2.0, 0.2, marks=pytest.mark.slow),
    pytest.param(0.8, 0.001, marks=pytest.mark.slow),
])  # fmt: skip
def test_renyi_curve_of_a_subsampled_step_is_above_the_integral(sigma: float, rate: float) -> None:
    """Exact at integer orders, an upper bound between them, in the worse of both directions."""
    with mpmath.workdps(30):
        s, q = mpmath.mpf(sigma), mpmath.mpf(rate)

        def density(x, shift):
            return mpmath.npdf(x, shift, s)

        for order in (1.2, 1.9, 2.0, 2.5, 3.0, 5.5, 8.0) if FULL else (1.2, 2.0, 2.5, 8.0):
            a = mpmath.mpf(order)

            def moment(x, a=a):
                return (1 - q + q * density(x, 1) / density(x, 0)) ** a * density(x, 0)

            exact = mpmath.log(mpmath.quad(moment, mpmath.linspace(-12 * s, 12 * s + a, 13))) / (
                a - 1
            )
            ours = float(basic_mechanisms.subsampled_gaussian_renyi(sigma, rate, np.array(order)))
            assert exact <= ours * (1 + mpmath.mpf(10) ** -7)
            if order == int(order):
                assert ours == pytest.approx(float(exact), rel=1e-7)


# --- DP-SGD ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate", "steps"), [
    (1.0, 0.01, 100), (2.0, 0.01, 1000), (1.1, 0.05, 20), (1.0, 1.0, 10),
])  # fmt: skip
@pytest.mark.parametrize(("ours", "theirs"), [
    ("add_remove", ADD_REMOVE), ("zero_out", ADD_REMOVE), ("replace_one", REPLACE_ONE),
])  # fmt: skip
def test_dpsgd_agrees_with_dp_accounting(sigma: float, rate: float, steps: int, ours: str, theirs):
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-3, neighboring_relation=theirs
    ).self_compose(steps)
    base = DPSGD(noise_multiplier=sigma, sample_rate=rate, steps=steps, neighboring=ours)  # type: ignore[arg-type]
    for delta in (1e-3, 1e-5, 1e-7):
        assert base.epsilon_at(delta) == pytest.approx(pld.get_epsilon_for_delta(delta), rel=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "rate"), [(1.0, 0.01), (2.0, 0.2), (0.5, 0.3), (1.0, 1.0), (5.0, 0.001), (1.0, 1e-9)]
)
def test_step_with_a_replaced_record_is_above_the_exact_one_at_all_epsilons(sigma, rate):
    exact = privacy_loss_mechanism.GaussianPrivacyLoss(
        sigma, sampling_prob=rate, adjacency_type=privacy_loss_mechanism.AdjacencyType.REPLACE
    )
    ours = basic_mechanisms._replaced_gaussian_step(sigma, rate).removed
    reach = min(2.0, 6 * rate / sigma)
    for epsilon in np.linspace(-reach, reach, 81):
        theirs = exact.get_delta_for_epsilon(float(epsilon))
        value = float(ours.delta_at(epsilon))
        assert theirs - 2e-16 <= value <= theirs * (1 + 1e-6) + 2e-11


def test_full_batches_are_plain_gaussian_noise() -> None:
    base = DPSGD(noise_multiplier=2.0, sample_rate=1.0, steps=4)
    assert base.epsilon_at(1e-6) == pytest.approx(GaussianDP(mu=1.0).epsilon_at(1e-6), rel=1e-3)
    assert base.epsilon_at(1e-6) >= GaussianDP(mu=1.0).epsilon_at(1e-6)


def test_replaced_record_costs_about_twice_an_added_one() -> None:
    both = [
        DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=1000, neighboring=one)
        for one in ("add_remove", "replace_one")
    ]
    one, two = (base.epsilon_at(1e-5) for base in both)
    assert 1.8 < two / one < 2.0


# --- digits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-6, 0.03, 1.0, 40.0, 1000.0, 4412.8, 1e5])
def test_gaussian_profile_is_never_below_many_digits_however_large_mu_is(mu: float) -> None:
    for a in np.random.default_rng(0).uniform(-35, 35, 60):
        epsilon = (a + 0.5 * mu) * mu
        if epsilon < 0:
            continue
        with mpmath.workdps(60):
            m, e = mpmath.mpf(mu), mpmath.mpf(float(epsilon))
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            assert basic_mechanisms.delta_of_gaussian(mu, np.array([epsilon]))[0] >= exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "rate"), [(0.1, 1.0), (0.2, 1.0), (0.1, 1 - 1e-12), (0.2, 0.999999), (0.3, 0.6)]
)
def test_both_directions_of_a_step_are_above_many_digits_at_a_rate_near_one(noise, rate):
    """1 − (1 − e^{−ε})/q has no digits left where e^{−ε} and 1 − q are small; at q = 1 both
    directions are the same."""
    pair = DPSGD(noise_multiplier=noise, sample_rate=rate, steps=1).pair
    for epsilon in np.random.default_rng(0).uniform(0, 100, 100):
        with mpmath.workdps(120):
            m = 1 / mpmath.mpf(noise)
            q = mpmath.mpf(rate)
            c = mpmath.exp(mpmath.mpf(float(epsilon)))

            def gaussian(e: mpmath.mpf, m: mpmath.mpf = m) -> mpmath.mpf:
                return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)

            left = (1 / c - 1 + q) / q
            added = c * q * left * gaussian(-mpmath.log(left)) if left > 0 else 0
            assert pair.added.delta_at(epsilon) >= added * (1 - mpmath.mpf("1e-9"))
            bound = q * gaussian(mpmath.log(1 + (c - 1) / q)) * (1 - 1e-9)
            assert pair.removed.delta_at(epsilon) >= bound


@pytest.mark.parametrize(
    ("noise", "rate"), [(1.0, 1e-7), (1.0, 1e-9), (10.0, 1e-5), (50.0, 1e-3), (2.0, 0.01)]
)
@pytest.mark.parametrize("order", [2, 3, 16, 64, 300])
def test_renyi_divergence_of_a_rare_step_keeps_its_digits(noise: float, rate: float, order: int):
    with mpmath.workdps(60):
        q, s = mpmath.mpf(rate), mpmath.mpf(noise)
        moment = mpmath.fsum(
            mpmath.binomial(order, k)
            * (1 - q) ** (order - k)
            * q**k
            * mpmath.exp(k * (k - 1) / (2 * s**2))
            for k in range(order + 1)
        )
        exact = mpmath.log(moment) / (order - 1)
        reported = DPSGD(noise_multiplier=noise, sample_rate=rate, steps=1).renyi(float(order))
        assert exact <= float(reported) <= exact * (1 + mpmath.mpf("1e-9"))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 0.1, 1.0, 30.0, 500.0])
def test_renyi_divergence_of_randomised_response_is_never_below_many_digits(epsilon: float) -> None:
    for order in (1.001, 1.5, 2.0, 17.0, 4096.0):
        with mpmath.workdps(60):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            exact = mpmath.log(
                (mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))
            ) / (a - 1)
            reported = float(PureDP(epsilon=epsilon).renyi(order))
            assert min(exact, e) <= reported <= exact * (1 + mpmath.mpf("1e-9"))


def test_profile_of_a_renyi_bound_is_rounded_up() -> None:
    """A run that loses one large loss with a small probability reaches it, but for e^{−(α−1)ρ} of
    it."""
    rng = np.random.default_rng(0)
    for order, bound in zip(rng.uniform(20, 2000, 200), rng.uniform(5, 300, 200)):
        epsilon = float(bound) * 1.01
        with mpmath.workdps(60):
            a, r, e = (mpmath.mpf(float(one)) for one in (order, bound, epsilon))
            exact = mpmath.exp((a - 1) * (r - e + mpmath.log(1 - 1 / a))) / a
            assert RenyiDP(orders=[order], epsilons=[bound]).delta_at(epsilon) >= exact


@pytest.mark.slow
@pytest.mark.parametrize("mu", [1e-300, 1e-160, 1e-20, 1e-17, 1e-15, 1e-13, 1e-12, 1e-11])
def test_gaussian_profile_does_not_vanish_however_small_mu_is(mu: float) -> None:
    for a in (0.0, 1e-3, 0.5, 1.0, 4.0, 20.0, 33.0):
        with mpmath.workdps(400):
            m, e = mpmath.mpf(mu), mpmath.mpf(a * mu)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        reported = basic_mechanisms.delta_of_gaussian(mu, np.array([a * mu]))[0]
        assert reported >= min(exact, 1.0) * (1 if exact > 1e-300 else 0)
        assert reported <= 1.6 * exact + 1e-300
    assert basic_mechanisms.delta_of_gaussian(mu, np.array([1.0, 1e6])).tolist() == [0.0, 0.0]
    assert GaussianDP(mu=mu).pair.delta_at(0.0) >= 0.39 * mu
