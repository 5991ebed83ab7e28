"""Exact noise: the algorithms' own probabilities, enumerated, and their draws, counted."""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch.privacy import _checks
from sklearn_dpsearch.privacy._mechanisms import exact_sampling
from sklearn_dpsearch.privacy._mechanisms.exact_sampling import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric_exp,
)
from sklearn_dpsearch.privacy._numerics import arithmetic
from tests.privacy.brute_force import size

# --- every path of an algorithm, with its probability ---------------------------------------------


class Pruned(Exception):
    """A path was too improbable to follow."""


class Tree:
    """A source of integers and coins that walks through every path of an algorithm, depth first."""

    def __init__(self, least: float) -> None:
        self.least, self.script, self.seen = least, [], []

    def choose(self, probabilities: list) -> int:
        step = len(self.seen)
        chosen = self.script[step] if step < len(self.script) else 0
        self.seen.append((chosen, len(probabilities)))
        self.probability *= probabilities[chosen]
        if self.probability <= self.least:
            raise Pruned
        return chosen

    def randrange(self, n: int) -> int:
        return self.choose([Fraction(1, n)] * n)

    def toss(self, chance: float) -> bool:
        return self.choose([chance, 1 - chance]) == 0

    def paths(self, draw: Callable) -> Iterator[tuple]:
        """Every (result, probability) that is more probable than ``least``."""
        while True:
            self.seen, self.probability = [], Fraction(1)
            with contextlib.suppress(Pruned):
                yield draw(self), self.probability
            while self.seen and self.seen[-1][0] == self.seen[-1][1] - 1:
                self.seen.pop()
            if not self.seen:
                return
            self.script = [chosen for chosen, _ in self.seen]
            self.script[-1] += 1


def distribution(draw: Callable, least: float = 1e-13) -> tuple[Counter, float]:
    """The probability of each result, from below, and the mass that was pruned."""
    found: Counter = Counter()
    for result, probability in Tree(least).paths(draw):
        found[result] += probability
    return found, float(1 - sum(found.values()))


@pytest.fixture
def coins(monkeypatch):
    """Rational coins are tossed by the tree instead of being made of integers."""
    monkeypatch.setattr(exact_sampling, "bernoulli", lambda p, rng: rng.toss(p))


@pytest.fixture
def exponential_coins(coins, monkeypatch):
    """Coins with probability exp(−γ) too."""
    monkeypatch.setattr(
        exact_sampling, "bernoulli_exp", lambda gamma, rng: rng.toss(math.exp(-gamma))
    )


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(2, 7), Fraction(5, 8)])
def test_bernoulli_has_exactly_the_stated_probability(p):
    found, pruned = distribution(lambda rng: bernoulli(p, rng))
    assert pruned == 0
    assert found[True] == p


@pytest.mark.slow
@pytest.mark.parametrize(
    "gamma", [0, Fraction(1, 1000), Fraction(1, 2), 1, Fraction(7, 3), size(5, 3)]
)
def test_bernoulli_exp_succeeds_with_probability_exp_minus_gamma(coins, gamma):
    found, pruned = distribution(lambda rng: bernoulli_exp(gamma, rng))
    assert pruned < 1e-9
    assert float(found[True]) == pytest.approx(math.exp(-gamma), abs=1e-9)


def test_geometric_exp_has_the_stated_distribution(exponential_coins):
    found, _ = distribution(geometric_exp)
    for value in range(20):
        assert found[value] == pytest.approx((1 - math.exp(-1)) * math.exp(-value), rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 3), Fraction(5, 2), Fraction(7)])
def test_a_round_of_the_discrete_laplace_algorithm_has_exactly_the_stated_ratios(
    exponential_coins, scale
):
    found, pruned = distribution(lambda rng: exact_sampling._try_discrete_laplace(scale, rng))
    assert pruned < 1e-9
    for value in range(-6, 7):
        assert found[value] / found[0] == pytest.approx(math.exp(-abs(value) / scale), rel=1e-5)


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 5), Fraction(1), Fraction(10, 3)])
def test_a_round_of_the_discrete_gaussian_algorithm_has_exactly_the_stated_ratios(
    exponential_coins, monkeypatch, sigma_squared
):
    """The proposal is replaced by one that offers each of −9 … 9 with its discrete Laplace
    probability."""
    support = range(-9, 10)

    class Again(Exception):
        """The draw was rejected and the algorithm started its second round."""

    def draw(rng):
        offered = []

        def propose(scale, rng):
            if offered:
                raise Again
            weights = [math.exp(-abs(k) / scale) for k in support]
            offered.append(support[rng.choose([weight / sum(weights) for weight in weights])])
            return offered[0]

        monkeypatch.setattr(exact_sampling, "discrete_laplace", propose)
        try:
            return discrete_gaussian(sigma_squared, rng)
        except Again:
            return None

    found, pruned = distribution(draw, least=0.0)
    assert pruned == pytest.approx(0, abs=1e-12)
    for value in support:
        expected = pytest.approx(math.exp(-(value**2) / (2 * sigma_squared)), rel=1e-9)
        assert found[value] / found[0] == expected


# --- draws ----------------------------------------------------------------------------------------


def masses(log_weight: Callable[[np.ndarray], np.ndarray], reach: int) -> dict[int, float]:
    support = np.arange(-reach, reach + 1)
    weights = np.exp(log_weight(support))
    return dict(zip(support.tolist(), weights / weights.sum(), strict=True))


#: Draws for a look at their frequencies.
NUMBERS = (size(20_000, 3_000),)


def goodness_of_fit(draws: list[int], expected: dict[int, float]) -> float:
    """p-value of the G test, values with fewer than five expected draws pooled."""
    counts = Counter(draws)
    cells = [value for value, mass in expected.items() if mass * len(draws) >= 5]
    observed = [counts[value] for value in cells]
    awaited = [expected[value] * len(draws) for value in cells]
    return stats.power_divergence(
        [*observed, len(draws) - sum(observed)],
        [*awaited, len(draws) - sum(awaited)],
        lambda_="log-likelihood",
    ).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(22, 7)])
def test_draws_follow_the_discrete_laplace_distribution(scale, number):
    rng = random.Random(0)
    draws = [discrete_laplace(scale, rng) for _ in range(number)]
    assert goodness_of_fit(draws, masses(lambda k: -np.abs(k) / float(scale), 200)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 4), Fraction(2), Fraction(50, 3)])
def test_draws_follow_the_discrete_gaussian_distribution(sigma_squared, number):
    rng = random.Random(1)
    draws = [discrete_gaussian(sigma_squared, rng) for _ in range(number)]
    actual = goodness_of_fit(draws, masses(lambda k: -(k**2) / (2 * float(sigma_squared)), 100))
    assert actual > 1e-3


@pytest.mark.slow
def test_a_huge_scale_is_drawn_as_fast_and_is_the_continuous_distribution():
    rng = random.Random(3)
    laplace = np.array([discrete_laplace(Fraction(10**6), rng) for _ in range(3000)]) / 10**6
    gaussian = np.array([discrete_gaussian(Fraction(10**12), rng) for _ in range(3000)]) / 10**6
    assert stats.kstest(laplace, "laplace").pvalue > 1e-3
    assert stats.kstest(gaussian, "norm").pvalue > 1e-3


def test_a_scale_that_came_from_a_float_is_used_to_the_last_bit():
    rng = random.Random(4)
    assert isinstance(discrete_laplace(1 / Fraction(0.1), rng), int)
    assert isinstance(discrete_gaussian(Fraction(1e-300), rng), int)


def test_the_operating_system_is_the_default_source():
    assert len({discrete_gaussian(Fraction(10**20)) for _ in range(5)}) == 5
    assert len({discrete_laplace(Fraction(10**20)) for _ in range(5)}) == 5


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [bernoulli, bernoulli_exp, discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("value", [0.5, np.float64(0.5), True, "1/2", None])
def test_only_exact_numbers_are_accepted(draw, value):
    with pytest.raises(TypeError, match="Fraction or an int"):
        draw(value)


@pytest.mark.parametrize(("draw", "value"), [
    (bernoulli, Fraction(3, 2)), (bernoulli, -1), (bernoulli_exp, -1), (discrete_laplace, 0),
    (discrete_gaussian, Fraction(-1, 2)),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(draw, value):
    with pytest.raises(ValueError, match="Expected"):
        draw(value)


def test_no_float_enters_the_module():
    borrowed = (
        arithmetic.positive_fraction, arithmetic.exact_fraction, arithmetic._ratio, _checks.require,
    )  # fmt: skip
    tree = ast.parse("\n".join(map(inspect.getsource, (exact_sampling, *borrowed))))
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    ]
    assert not [
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "float"
    ]
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    numbers = {"exact_fraction", "positive_fraction"}
    assert imported <= {"annotations", "Fraction", "isqrt", "Protocol", "require", *numbers}


def test_integers_of_numpy_inside_of_a_fraction_do_not_wrap_around() -> None:
    """Their products would, and the noise would follow no distribution that a proof speaks of."""
    variance = Fraction(np.int64(10**13), np.int64(7))
    assert type(variance.numerator) is not int
    ours, plain = (
        [discrete_gaussian(one, random.Random(seed)) for seed in range(20)]
        for one in (variance, Fraction(10**13, 7))
    )
    assert ours == plain
    assert all(type(one) is int for one in ours)
