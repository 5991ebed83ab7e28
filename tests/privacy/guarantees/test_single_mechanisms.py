"""Guarantees as values: checked when built, rounded up, consistent with themselves."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._selection.best_of import BestOf
from tests.privacy.brute_force import exact_pair, random_mechanism

ORDERS = np.concatenate([[1.25, 1.5], np.arange(2.0, 65.0)])
SIMPLE = [
    dp.PureDP(epsilon=0.7),
    dp.PureDP(epsilon=0.0),
    dp.ApproxDP(epsilon=0.7, delta=1e-6),
    dp.ApproxDP(epsilon=0.5, delta=0.0),
    dp.ZCDP(rho=0.1),
    dp.ZCDP(rho=0.0),
    dp.GaussianDP(mu=0.8),
    dp.GaussianDP(mu=0.0),
    dp.GaussianDP(mu=0.003),
    dp.RenyiDP(orders=ORDERS, epsilons=0.1 * ORDERS),
    dp.RenyiDP(orders=[2.0, 4.0], epsilons=[0.3, np.inf]),
    dp.DPSGD(noise_multiplier=1.5, sample_rate=0.02, steps=300),
    dp.DPSGD(noise_multiplier=1.5, sample_rate=0.02, steps=300, neighboring="replace_one"),
    dp.DPSGD(noise_multiplier=1.5, sample_rate=0.02, steps=0),
    dp.ProfileDP.from_pair(exact_pair(random_mechanism(np.random.default_rng(3)))),
]
DERIVED = [
    dp.compose(dp.PureDP(epsilon=0.5), dp.GaussianDP(mu=0.4)),
    dp.mixture([dp.GaussianDP(mu=0.3), dp.PureDP(epsilon=1.0)], [0.5, 0.5]),
    dp.envelope([dp.GaussianDP(mu=0.3), dp.PureDP(epsilon=0.4)]),
    dp.best_of(dp.GaussianDP(mu=0.4), dp.Geometric(5)),
    dp.best_of(dp.PureDP(epsilon=0.4), dp.Poisson(5)),
    dp.best_of(dp.ApproxDP(epsilon=0.4, delta=1e-6), dp.Geometric(5)),
    dp.as_replace_one(dp.ApproxDP(epsilon=0.4, delta=1e-6)),
    dp.as_replace_one(dp.compose(dp.PureDP(epsilon=0.5), dp.GaussianDP(mu=0.4))),
]


def named(one: dp.Guarantee) -> str:
    return repr(one)[:60]


# --- consistent with themselves -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("one", [*SIMPLE, *DERIVED], ids=named)
def test_delta_at_the_stated_epsilon_is_at_most_the_stated_delta(one: dp.Guarantee) -> None:
    for delta in (0.3, 1e-2, 1e-5, 1e-8, 1e-12):
        epsilon = one.epsilon_at(delta)
        if np.isfinite(epsilon):
            assert one.delta_at(epsilon) <= delta
            if epsilon > 1e-6:
                assert one.delta_at(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("one", [*SIMPLE, *DERIVED], ids=named)
def test_profile_never_rises_and_stays_a_probability(one: dp.Guarantee) -> None:
    values = one.delta_at(np.linspace(0, 40, 801))
    assert np.all(np.diff(values) <= 1e-12 * values[:-1] + 1e-300)
    assert 0 <= values.min() <= values.max() <= 1


@pytest.mark.parametrize("one", [*SIMPLE, *DERIVED], ids=named)
def test_dominating_pair_is_above_the_profile_and_close_to_it(one: dp.Guarantee) -> None:
    """A smallest of several bounds need not be convex; its pair is then below it, and still above
    the truth."""
    grid = np.linspace(0.0, 5.0, 313)
    pair, profile = one.pair.delta_at(grid), one._profile(grid)
    if not isinstance(one, BestOf):
        assert np.all(pair <= profile * 1.06 + 1e-9)
    if not isinstance(one, dp.RenyiDP | dp.ZCDP | BestOf):
        assert np.all(pair >= profile * (1 - 1e-11))


@pytest.mark.parametrize("one", [*SIMPLE, *DERIVED], ids=named)
def test_only_a_pure_guarantee_has_an_epsilon_at_delta_zero(one: dp.Guarantee) -> None:
    """A Gaussian profile underflows to 0 at ε ≈ 39; that is no promise."""
    pure = one.pure_epsilon
    assert one.epsilon_at(0.0) == (np.inf if pure is None else pure)
    if pure is not None:
        assert one.delta_at(pure) == 0.0
    else:
        assert one.delta_at(np.array([500.0, 5000.0])).min() > 0


@pytest.mark.parametrize("one", [*SIMPLE, *DERIVED], ids=named)
def test_arrays_are_answered_entry_by_entry(one: dp.Guarantee) -> None:
    epsilons, deltas = np.array([[0.0, 0.5], [1.0, 2.0]]), np.array([[1e-3, 1e-5]])
    assert one.delta_at(epsilons).shape == (2, 2)
    assert one.delta_at(epsilons)[1, 0] == one.delta_at(1.0)
    assert one.epsilon_at(deltas).shape == (1, 2)
    assert one.epsilon_at(deltas)[0, 1] == one.epsilon_at(1e-5)
    assert isinstance(one.delta_at(1.0), float)
    assert isinstance(one.epsilon_at(1e-3), float)


@pytest.mark.parametrize("one", [one for one in (*SIMPLE, *DERIVED) if one.has_renyi], ids=named)
def test_renyi_curve_grows_with_its_order_and_bounds_the_profile(one: dp.Guarantee) -> None:
    curve = one.renyi(ORDERS)
    if not isinstance(one, BestOf):  # a smallest of several bounds
        assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-12))
    route = dp.RenyiDP(orders=ORDERS, epsilons=curve).delta_at(np.linspace(0.2, 4, 20))
    assert np.all(route >= one.delta_at(np.linspace(0.2, 4, 20)) * (1 - 5e-3) - 1e-11)
    # the curve of DP-SGD is that of an added record; a changed one has none
    assert not dp.DPSGD(
        noise_multiplier=1.0, sample_rate=0.1, steps=10, neighboring="replace_one"
    ).has_renyi


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(1e-4, 8.0), st.floats(1e-12, 0.5))
def test_gaussian_epsilon_is_within_a_billionth_of_the_exact_one_from_above(mu, delta):
    from scipy import optimize

    from sklearn_dpsearch.privacy._numerics.basic_mechanisms import delta_of_gaussian

    ours = dp.GaussianDP(mu=mu).epsilon_at(delta)
    if ours == 0:
        assert delta_of_gaussian(mu, np.array(0.0)) <= delta
        return
    exact = optimize.brentq(
        lambda e: float(delta_of_gaussian(mu, np.array(e))) - delta, 0.0, ours + 1.0, xtol=1e-15
    )
    assert exact - 1e-12 <= ours <= exact * (1 + 2e-9) + 2e-10


# --- profiles of one's own ------------------------------------------------------------------------


def test_profile_of_ones_own_is_reported_as_given_and_dominated_between() -> None:
    base = dp.GaussianDP(mu=0.6)
    own = dp.ProfileDP(profile=base.delta_at)
    assert own.delta_at(1.0) == base.delta_at(1.0)
    grid = np.linspace(0, 5, 999)
    assert np.all(own.pair.delta_at(grid) >= base.delta_at(grid) * (1 - 1e-11))
    expected = pytest.approx(dp.best_of(base, 10).epsilon_at(1e-6), rel=1e-3)
    assert dp.best_of(own, 10).epsilon_at(1e-6) == expected


def test_profile_that_stops_falling_keeps_its_floor_at_infinity() -> None:
    own = dp.ProfileDP(profile=lambda epsilon: np.maximum(np.exp(-epsilon), 0.01))
    assert own.epsilon_at(0.005) == np.inf
    assert own.pair.removed.infinity == pytest.approx(0.01)


def test_profile_of_ones_promises_nothing() -> None:
    own = dp.ProfileDP(profile=np.ones_like)
    assert own.epsilon_at(0.5) == np.inf
    assert dp.best_of(own, 3).epsilon_at(0.5) == np.inf
    assert dp.compose(own, dp.PureDP(epsilon=1.0)).epsilon_at(0.5) == np.inf


def test_no_promise_is_an_infinite_epsilon_and_a_delta_of_one() -> None:
    assert dp.NonPrivate().epsilon_at(0.999) == np.inf
    assert dp.NonPrivate().delta_at(100.0) == 1.0


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_losses_beyond_the_range_of_doubles_are_not_understated() -> None:
    assert dp.PureDP(epsilon=800.0).epsilon_at(1e-5) == 800.0
    assert dp.PureDP(epsilon=800.0).delta_at(750.0) == 1.0
    expected = pytest.approx(800 + 2 * np.log(10))
    assert dp.best_of(dp.PureDP(epsilon=800.0), dp.Geometric(10)).epsilon_at(0.0) == expected
    with mpmath.workdps(60):
        mu, e = mpmath.mpf(100), mpmath.mpf(dp.GaussianDP(mu=100.0).epsilon_at(1e-5))
        exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        assert 0.999e-5 < exact <= 1e-5
    assert dp.best_of(dp.GaussianDP(mu=100.0), dp.Geometric(10)).epsilon_at(1e-5) > float(e)
    assert dp.DPSGD(noise_multiplier=0.1, sample_rate=0.01, steps=1000).epsilon_at(1e-5) > 100


def test_renyi_curve_is_used_at_the_next_stated_order_above() -> None:
    one = dp.RenyiDP(orders=[2.0, 8.0], epsilons=[0.1, 0.5])
    assert one.renyi([1.5, 2.0, 2.1, 8.0, 9.0]).tolist() == [0.1, 0.1, 0.5, 0.5, np.inf]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "match"), [
    (lambda: dp.PureDP(epsilon=-0.1), "0 <= epsilon < inf.*epsilon=-0.1"),
    (lambda: dp.PureDP(epsilon=np.nan), "0 <= epsilon < inf.*epsilon=nan"),
    (lambda: dp.ApproxDP(epsilon=1.0, delta=1.0), "0 <= delta < 1.*delta=1.0"),
    (lambda: dp.ZCDP(rho=-1.0), "0 <= rho < inf.*rho=-1.0"),
    (lambda: dp.GaussianDP(mu=np.nan), "0 <= mu < inf.*mu=nan"),
    (lambda: dp.RenyiDP(orders=[1.0, 2.0], epsilons=[0.1, 0.2]), "orders > 1.*smallest"),
    (lambda: dp.RenyiDP(orders=[2.0], epsilons=[0.1, 0.2]), "same shape.*epsilons="),
    (lambda: dp.RenyiDP(orders=[2.0], epsilons=[np.nan]), "epsilons >= 0.*nan"),
    (lambda: dp.RenyiDP(orders=[], epsilons=[]), "n >= 1.*orders=.0,."),
    (
        lambda: dp.DPSGD(noise_multiplier=0.0, sample_rate=0.1, steps=1),
        "0 < noise_multiplier.*noise_multiplier=0.0",
    ),
    (
        lambda: dp.DPSGD(noise_multiplier=1.0, sample_rate=1.1, steps=1),
        "0 < sample_rate <= 1.*sample_rate=1.1",
    ),
    (
        lambda: dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=1.5),
        "an integer steps.*steps=1.5",
    ),
    (
        lambda: dp.PureDP(epsilon=1.0, neighboring="swap"),
        "neighboring to be one of.*neighboring='swap'",
    ),  # type: ignore[arg-type]
    (lambda: dp.PureDP(epsilon=1.0).delta_at(np.nan), "epsilon >= 0.*nan"),
    (lambda: dp.PureDP(epsilon=1.0).epsilon_at([0.1, -0.1]), "0 <= delta < 1.*-0.1"),
])  # fmt: skip
def test_bad_parameters_say_what_was_expected_and_found(build, match: str) -> None:
    with pytest.raises(ValueError, match=f"(?s)Expected .*{match}"):
        build()


def test_guarantees_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        dp.PureDP(epsilon=1.0).epsilon = 0.1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        dp.RenyiDP(orders=[2.0], epsilons=[0.1]).epsilons[0] = 0.0


def test_numbers_of_numpy_do_not_bring_their_precision() -> None:
    """In single precision half of all results would be rounded down, in the seventh digit."""
    number = np.float32(0.7)
    same = float(number)

    def of_numbers(number, delta, rate, steps):
        return [
            dp.PureDP(epsilon=number),
            dp.ApproxDP(epsilon=number, delta=delta),
            dp.compose(*[dp.GaussianDP(mu=number)] * 3),
            dp.compose(*[dp.ZCDP(rho=number)] * 3),
            dp.DPSGD(noise_multiplier=number, sample_rate=rate, steps=steps),
        ]

    numbers = (number, np.float32(1e-6), np.float32(0.1), np.int8(100))
    plain_numbers = (float(one) for one in numbers[:3])
    for given_, plain in zip(of_numbers(*numbers), of_numbers(*plain_numbers, 100)):
        assert given_.delta_at(0.3) == plain.delta_at(0.3)
        assert given_.epsilon_at(1e-6) == plain.epsilon_at(1e-6)
        assert given_ == plain
    assert dp.GaussianDP(mu=number).renyi(2.0) == dp.GaussianDP(mu=same).renyi(2.0)
