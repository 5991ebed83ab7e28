"""Report noisy max: exact distributions of the winner on neighbours, and the draws that follow
them."""

from __future__ import annotations

import ast
import inspect
import math
import random
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest

from sklearn_dpsearch.privacy import PrivacyError, PureDP
from sklearn_dpsearch.privacy._guarantees.pure import BoundedRangeDP
from sklearn_dpsearch.privacy._numerics.arithmetic import fraction, positive_fraction
from sklearn_dpsearch.privacy._selection import noisy_max as report_noisy_max
from sklearn_dpsearch.privacy._selection.noisy_max import GumbelNoise, noisy_max
from tests.privacy import brute_force
from tests.privacy.brute_force import hockey_stick, largest_loss, renyi

#: Utilities are integers here; one record moves each by at most STEPS.
STEPS = 2
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 1.6, 2.4])


# --- exact distributions of the winner ------------------------------------------------------------


def exponential_mechanism(utilities: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((utilities - utilities.max()) / scale)
    return weights / weights.sum()


NOISE = GumbelNoise(scale=Fraction(4))


def neighbours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Utilities of two neighbours, moved in any direction, often one against all others."""
    n = int(rng.integers(2, 6))
    utilities = rng.integers(0, 12, n)
    moved = rng.integers(-STEPS, STEPS + 1, n)
    if rng.random() < 0.5:
        moved = np.full(n, STEPS)
        moved[rng.integers(n)] = -STEPS
    return utilities, utilities + moved


def test_guarantee_is_never_below_the_exact_loss() -> None:
    rng = np.random.default_rng(0)
    tightest = 0.0
    for _ in range(brute_force.size(2000, 60)):
        one, other = neighbours(rng)
        p, q = exponential_mechanism(one, 4.0), exponential_mechanism(other, 4.0)
        choice = noisy_max(one.size, STEPS, NOISE)
        values = choice.delta_at(EPSILONS)
        for ours, theirs in ((p, q), (q, p)):
            exact = np.array([hockey_stick(ours, theirs, epsilon) for epsilon in EPSILONS])
            assert np.all(exact <= values + 1e-12)
            tightest = max([tightest, *(exact[values > 1e-4] / values[values > 1e-4])])
        assert max(largest_loss(p, q), largest_loss(q, p)) <= choice.epsilon_at(0.0) + 1e-9
    assert tightest > 0.35


# --- bounded range --------------------------------------------------------------------------------


def test_exponential_mechanism_has_bounded_range() -> None:
    rng = np.random.default_rng(2)
    orders = np.array([1.1, 2.0, 5.0, 30.0])
    widest = 0.0
    for _ in range(brute_force.size(2000, 80)):
        one, other = neighbours(rng)
        p, q = exponential_mechanism(one, 4.0), exponential_mechanism(other, 4.0)
        widest = max(widest, float(np.ptp(np.log(p / q))))
        bound = BoundedRangeDP(epsilon=2 * STEPS / 4.0)
        assert np.all(
            np.array([renyi(p, q, order) for order in orders]) <= bound.renyi(orders) + 1e-12
        )
    assert widest == pytest.approx(2 * STEPS / 4.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_profile_of_bounded_range_is_the_worst_of_two_losses(epsilon: float) -> None:
    """Losses t and t − ε with the probabilities that make both totals 1."""
    t = np.linspace(0, epsilon, 20001)[1:-1]
    p = np.expm1(epsilon - t) / (np.expm1(epsilon - t) - np.expm1(-t))
    bound = BoundedRangeDP(epsilon=epsilon)
    for at in np.linspace(0, epsilon, 7)[:-1]:
        first, second = (np.maximum(1 - np.exp(at - loss), 0) for loss in (t, t - epsilon))
        exact = float(np.max(p * first + (1 - p) * second))
        assert exact <= bound.delta_at(at) <= exact * (1 + 1e-5) + 1e-12
        assert bound.delta_at(at) <= bound.pair.delta_at(at) * (1 + 1e-9)
        assert bound.delta_at(at) <= PureDP(epsilon=epsilon).delta_at(at)


def test_bounded_range_of_nothing_and_of_too_much() -> None:
    assert BoundedRangeDP(epsilon=0.0).epsilon_at(1e-6) == 0.0
    assert BoundedRangeDP(epsilon=5000.0).delta_at(1.0) == 1.0
    assert BoundedRangeDP(epsilon=5000.0).epsilon_at(0.0) == 5000.0


# --- what is promised -----------------------------------------------------------------------------


def test_one_candidate_costs_nothing() -> None:
    assert noisy_max(1, Fraction(1), GumbelNoise(scale=Fraction(1))).epsilon_at(0.0) == 0.0


def test_guarantee_rounds_up() -> None:
    third = noisy_max(3, Fraction(1, 3), GumbelNoise(scale=Fraction(2)))
    assert Fraction(third.epsilon_at(0.0)) >= Fraction(1, 3)


def test_a_subclass_may_draw_differently_and_is_refused() -> None:
    class Quieter(GumbelNoise):
        pass

    with pytest.raises(PrivacyError, match="Nothing is known"):
        noisy_max(3, Fraction(1), Quieter(scale=Fraction(1)))


@pytest.mark.parametrize("value", [0.1, True, "1"])
def test_only_exact_numbers_are_accepted(value) -> None:
    with pytest.raises(TypeError, match="Fraction"):
        GumbelNoise(scale=value)
    with pytest.raises(TypeError, match="Fraction"):
        noisy_max(3, value, GumbelNoise(scale=Fraction(1)))


@pytest.mark.parametrize("utilities", [[], [1.0, float("inf")], [float("nan")]])
def test_utilities_are_finite_and_at_least_one(utilities) -> None:
    with pytest.raises(ValueError, match="Expected a finite number|Expected at least one"):
        GumbelNoise(scale=Fraction(1)).select(utilities)


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        GumbelNoise(scale=Fraction(-1))
    with pytest.raises(ValueError, match="n_candidates"):
        noisy_max(0, Fraction(1), GumbelNoise(scale=Fraction(1)))


# --- draws ----------------------------------------------------------------------------------------


class Coins:
    """Walks through every sequence of fair integers and coins, with its probability."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script, self.at, self.probability = script, 0, 1.0

    def randrange(self, n: int) -> int:
        return self._choose([1.0 / n for _ in range(n)])

    def toss(self, chance: float) -> bool:
        return self._choose([1.0 - chance, chance]) == 1

    def _choose(self, chances: list[float]) -> int:
        chosen = self.script[self.at] if self.at < len(self.script) else 0
        self.at += 1
        self.probability *= chances[chosen]
        if self.probability == 0:
            raise IndexError("an impossible path")
        return chosen


def test_a_try_of_the_exponential_mechanism_has_exactly_the_stated_ratios(monkeypatch):
    monkeypatch.setattr(
        report_noisy_max, "bernoulli_exp", lambda gamma, bits: bits.toss(math.exp(-gamma))
    )
    noise, utilities = GumbelNoise(scale=Fraction(2)), (1, 4, 2)
    distribution = np.zeros(3)
    for index in range(3):
        coins = Coins((index, 1))
        assert noise.select(utilities, coins) == index
        distribution[index] = coins.probability
    expected = pytest.approx(exponential_mechanism(np.array(utilities), 2.0), rel=1e-12)
    assert distribution / distribution.sum() == expected


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_integers_of_numpy_do_not_wrap_around(kind: type) -> None:
    largest = np.iinfo(kind).max
    assert fraction(kind(largest)) / Fraction(1, 10**20) == int(largest) * 10**20
    scale = positive_fraction(Fraction(kind(largest), kind(7)), "scale")
    assert scale * 10**20 == Fraction(int(largest), 7) * 10**20
    actual = GumbelNoise(scale=Fraction(1, 1000)).select([kind(1), kind(largest)], random.Random(0))
    assert actual == 1


def test_no_float_is_made_where_the_winner_is_drawn() -> None:
    tree = ast.parse(inspect.getsource(GumbelNoise))
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    ]
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in ("float", "exp", "log")
    ]


def test_agrees_with_opendp_on_the_price_of_the_exponential_mechanism() -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    ours = noisy_max(3, STEPS, GumbelNoise(scale=Fraction(4)))
    pure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=4.0)
    assert ours.epsilon_at(0.0) == pytest.approx(pure.map(STEPS))
    concentrated = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=4.0)
    assert float(ours.renyi(2.0)) <= 2.0 * concentrated.map(STEPS) + 1e-9
