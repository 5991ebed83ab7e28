"""Composition, averages and envelopes against exact small cases."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees import composition
from tests.privacy.brute_force import (
    EPSILONS,
    Mechanism,
    exact_pair,
    hockey_stick,
    random_mechanism,
    renyi,
)

SGD = dp.DPSGD(noise_multiplier=1.5, sample_rate=0.02, steps=300)


# --- composition ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_composition_is_above_the_exact_product_of_discrete_mechanisms() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        one, two = random_mechanism(rng), random_mechanism(rng)
        total = dp.compose(*(dp.ProfileDP.from_pair(exact_pair(part)) for part in (one, two, two)))
        for p, q in ((one, two), (one.reversed, two.reversed)):
            first = np.outer(np.outer(p.p, q.p), q.p).ravel()
            second = np.outer(np.outer(p.q, q.q), q.q).ravel()
            exact = np.array([hockey_stick(first, second, epsilon) for epsilon in EPSILONS])
            assert np.all(total.delta_at(EPSILONS) >= exact - 1e-14)


def test_pure_guarantees_add_up_at_delta_zero_and_gain_above() -> None:
    parts = [dp.PureDP(epsilon=0.1) for _ in range(10)] + [dp.PureDP(epsilon=0.7)]
    total = dp.compose(*parts)
    assert total.epsilon_at(0.0) == pytest.approx(1.7, rel=1e-15)
    assert Fraction(total.epsilon_at(0.0)) >= sum(Fraction(one.epsilon) for one in parts)
    assert total.epsilon_at(1e-3) < 1.5
    assert dp.compose(dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=0.5)).epsilon_at(0.0) == 1.5


def test_closed_forms_add_up_exactly() -> None:
    assert dp.compose(dp.GaussianDP(mu=3.0), dp.GaussianDP(mu=4.0)) == dp.GaussianDP(mu=5.0)
    assert dp.compose(dp.ZCDP(rho=0.25), dp.ZCDP(rho=0.5)) == dp.ZCDP(rho=0.75)
    left = dp.RenyiDP(orders=[2.0, 4.0], epsilons=[0.1, 0.3])
    right = dp.RenyiDP(orders=[3.0, 8.0], epsilons=[0.2, 0.5])
    assert dp.compose(left, right).renyi([2.0, 3.0, 4.0]) == pytest.approx([0.3, 0.5, 0.8])


def test_failures_of_parts_add_up() -> None:
    total = dp.compose(dp.ApproxDP(epsilon=0.1, delta=1e-3), dp.ApproxDP(epsilon=0.1, delta=2e-3))
    assert total.delta_at(5.0) == pytest.approx(1 - (1 - 1e-3) * (1 - 2e-3), rel=1e-6)


def test_composition_with_no_promise_is_no_promise() -> None:
    assert isinstance(dp.compose(SGD, dp.NonPrivate()), dp.NonPrivate)


@pytest.mark.slow
def test_composition_is_never_above_its_renyi_route() -> None:
    total = dp.compose(SGD, dp.PureDP(epsilon=0.2), dp.ZCDP(rho=0.01))
    route = dp.RenyiDP(orders=np.arange(2, 200), epsilons=total.renyi(np.arange(2, 200)))
    assert total.epsilon_at(1e-6) <= route.epsilon_at(1e-6)


def test_composing_with_a_search_that_may_not_run_is_above_the_exact_loss() -> None:
    """The Rényi route has to know the outcome "no run", which a hockey-stick curve at ε ≥ 0 may
    forget."""
    from sklearn_dpsearch.privacy import Poisson
    from tests.privacy.brute_force import release

    response = Mechanism(np.array([0.9, 0.1]), np.array([0.1, 0.9]), np.array([0, 1]))
    for mean in (0.01, 0.3, 2.0):
        distribution = Poisson(mean)
        p, q = (
            np.append(release(distribution, side, response.scores), np.exp(-mean))
            for side in (response.p, response.q)
        )
        total = dp.compose(
            dp.best_of(dp.PureDP(epsilon=np.log(9.0)), distribution), dp.PureDP(epsilon=np.log(9.0))
        )
        for epsilon in EPSILONS[:-1]:
            exact = hockey_stick(np.outer(p, response.p), np.outer(q, response.q), epsilon)
            assert exact <= total.delta_at(epsilon) + 1e-14


# --- mixtures -------------------------------------------------------------------------------------


def test_mixture_is_the_exact_average_of_discrete_mechanisms() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        parts = [random_mechanism(rng) for _ in range(3)]
        weights = rng.dirichlet(np.ones(3))
        cases = ([one.p for one in parts], [one.q for one in parts])
        p, q = (np.concatenate([w * side for w, side in zip(weights, sides)]) for sides in cases)
        pair = dp.mixture(
            [dp.ProfileDP.from_pair(exact_pair(one)) for one in parts], list(weights)
        ).pair
        for one, (first, second) in ((pair.removed, (p, q)), (pair.added, (q, p))):
            exact = np.array([hockey_stick(first, second, epsilon) for epsilon in EPSILONS])
            assert one.delta_at(EPSILONS) == pytest.approx(exact, abs=1e-11)
            assert np.all(one.delta_at(EPSILONS) >= exact - 1e-14)


def test_mixture_of_renyi_curves_is_above_the_exact_divergence() -> None:
    losses, weights = [0.2, 1.0, 2.5], np.random.default_rng(2).dirichlet(np.ones(3))
    truth = [1 / (1 + np.exp(-one)) for one in losses]
    p = np.concatenate([w * np.array([t, 1 - t]) for w, t in zip(weights, truth)])
    q = np.concatenate([w * np.array([1 - t, t]) for w, t in zip(weights, truth)])
    ours = dp.mixture([dp.PureDP(epsilon=one) for one in losses], list(weights))
    for order in (1.5, 2.0, 7.0, 40.0):
        assert ours.renyi(order) == pytest.approx(renyi(p, q, order), rel=1e-9)
    assert ours.epsilon_at(0.0) == 2.5


def test_mixture_with_no_promise_fails_as_often_as_it_is_drawn() -> None:
    half = dp.mixture([dp.NonPrivate(), dp.PureDP(epsilon=1.0)], [0.01, 0.99])
    assert half.delta_at(2.0) == pytest.approx(0.01)
    assert dp.best_of(half, dp.Geometric(3)).delta_at(30.0) == pytest.approx(0.03, rel=0.1)


# --- envelopes ------------------------------------------------------------------------------------


def test_envelope_is_the_largest_profile_and_its_pair_is_above_both_ways() -> None:
    parts = [
        dp.GaussianDP(mu=0.5), dp.PureDP(epsilon=0.9), SGD, dp.ApproxDP(epsilon=0.1, delta=1e-4),
    ]  # fmt: skip
    grid = np.linspace(0, 4, 333)
    worst = dp.envelope(parts)
    expected = pytest.approx(np.max([one.delta_at(grid) for one in parts], axis=0))
    assert worst.delta_at(grid) == expected
    both_signs = np.linspace(-4, 4, 401)
    for one, parts_of in ((worst.pair.removed, "removed"), (worst.pair.added, "added")):
        for part in parts:
            assert np.all(
                one.delta_at(both_signs)
                >= getattr(part.pair, parts_of).delta_at(both_signs) - 1e-11
            )


def test_the_pair_of_an_envelope_through_few_of_its_losses_is_above_all_parts(monkeypatch) -> None:
    monkeypatch.setattr(composition, "MOST_LOSSES", 101)
    parts = [dp.GaussianDP(mu=0.5), dp.PureDP(epsilon=0.9), SGD]
    whole, epsilon = dp.envelope(parts).pair, np.linspace(-4, 4, 401)
    assert whole.removed.losses.size < 210 < SGD.pair.removed.losses.size
    for name in ("removed", "added"):
        largest = np.max([getattr(part.pair, name).delta_at(epsilon) for part in parts], axis=0)
        found = getattr(whole, name).delta_at(epsilon)
        assert np.all(found[epsilon >= 0] >= largest[epsilon >= 0] * (1 - 1e-12))
        # below 0 both are above the truth, each by its own rounding
        assert np.all(found >= largest - 1e-9)
        assert np.all(found <= largest + 0.01)


def test_envelope_of_pure_guarantees_is_the_largest() -> None:
    assert dp.envelope([dp.PureDP(epsilon=0.1), dp.PureDP(epsilon=0.3)]) == dp.PureDP(epsilon=0.3)
    assert dp.envelope([SGD, SGD]) == SGD
    assert isinstance(dp.envelope([SGD, dp.NonPrivate()]), dp.NonPrivate)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "combine",
    [dp.compose, lambda *parts: dp.mixture(parts, [0.5, 0.5]), lambda *parts: dp.envelope(parts)],
)
def test_guarantees_under_different_neighbouring_relations_never_combine(combine) -> None:
    relations = ("add_remove", "zero_out", "replace_one")
    for left, right in combinations(relations, 2):
        with pytest.raises(dp.MixedNeighborsError, match=f"PureDP.{left}.*GaussianDP.{right}"):
            combine(
                dp.PureDP(epsilon=1.0, neighboring=left), dp.GaussianDP(mu=1.0, neighboring=right)
            )


@pytest.mark.parametrize(("build", "message"), [
    (dp.compose, "at least one guarantee"),
    (lambda: dp.envelope([]), "at least one guarantee"),
    (lambda: dp.mixture([SGD], [0.5, 0.5]), "as many weights as guarantees"),
    (lambda: dp.mixture([SGD, dp.PureDP(epsilon=1.0)], [0.5, 0.6]), "weights >= 0 with sum 1"),
    (lambda: dp.mixture([SGD, dp.PureDP(epsilon=1.0)], [-0.5, 1.5]), "weights >= 0 with sum 1"),
])  # fmt: skip
def test_bad_combinations_say_what_was_expected(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_tiny_parts_of_a_composition_do_not_vanish() -> None:
    """The square of a tiny μ is 0, and no loss at all would be promised."""
    total = dp.compose(dp.GaussianDP(mu=1e-170), dp.GaussianDP(mu=1e-170))
    assert isinstance(total, dp.GaussianDP)
    assert total.mu > 1.4e-170
    assert total.pure_epsilon is None


def test_sum_of_zcdp_parameters_is_rounded_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts = rng.uniform(0, 1, 5)
        total = dp.compose(*(dp.ZCDP(rho=float(rho)) for rho in parts))
        assert isinstance(total, dp.ZCDP)
        assert Fraction(total.rho) >= sum(Fraction(float(rho)) for rho in parts)


def test_average_of_failures_is_rounded_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts, weight = rng.uniform(0, 1, 2), Fraction(int(rng.integers(1, 64)), 64)
        total = dp.mixture(
            [dp.ApproxDP(epsilon=1.0, delta=float(d)) for d in parts],
            [float(weight), float(1 - weight)],
        )
        exact = weight * Fraction(float(parts[0])) + (1 - weight) * Fraction(float(parts[1]))
        assert Fraction(total.delta_at(2.0)) >= exact
