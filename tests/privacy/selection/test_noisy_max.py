"""Report noisy max: exact distributions of the winner on neighbours, and the draws that follow them."""

from __future__ import annotations

import ast
import inspect
import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import opendp.prelude as dp
import pytest

from sklearn_dpsearch.privacy import GaussianDP, Guarantee, PrivacyError, ProfileDP, PureDP, compose
from sklearn_dpsearch.privacy.guarantees.pure import BoundedRangeDP
from sklearn_dpsearch.privacy.mechanisms import report_noisy_max
from sklearn_dpsearch.privacy.mechanisms.report_noisy_max import (
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
    MaxNoise,
)
from sklearn_dpsearch.privacy.numerics.exact_numbers import fraction, positive_fraction
from sklearn_dpsearch.privacy.numerics.loss_distribution import symmetric
from sklearn_dpsearch.privacy.selection.noisy_max import NoisyMax, moved_gaussian, moved_laplace, noisy_max, top_share
from tests.privacy import brute_force
from tests.privacy.brute_force import hockey_stick, largest_loss, renyi

#: Utilities are integers here; one record moves each by at most STEPS.
STEPS = 2
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 1.6, 2.4])


# --- exact distributions of the winner
# -------------------------------------------------------------------------------------


def exponential_mechanism(utilities: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((utilities - utilities.max()) / scale)
    return weights / weights.sum()


def permute_and_flip(utilities: np.ndarray, scale: float) -> np.ndarray:
    """The average over all orders of the first coin that succeeds."""
    coins = np.exp((utilities - utilities.max()) / scale)
    chances = np.zeros(utilities.size)
    orders = list(permutations(range(utilities.size)))
    for order in orders:
        left = 1.0
        for i in order:
            chances[i] += left * coins[i] / len(orders)
            left *= 1.0 - coins[i]
    return chances


def on_integers(weight: Callable[[np.ndarray], np.ndarray], reach: int) -> Callable[[np.ndarray, float], np.ndarray]:
    """The distribution of the first of the largest of integers with independent noise."""
    k = np.arange(-reach, reach + 1)

    def winner(utilities: np.ndarray, scale: float) -> np.ndarray:
        mass = weight(k / scale)
        mass = mass / mass.sum()
        values = np.arange(utilities.min() - reach, utilities.max() + reach + 1)
        density = np.array([np.interp(values - u, k, mass, left=0.0, right=0.0) for u in utilities])
        upto = np.cumsum(density, axis=1)
        below = upto - density
        others = [
            np.prod([below[j] if j < i else upto[j] for j in range(utilities.size) if j != i], axis=0)
            for i in range(utilities.size)
        ]
        return np.array([density[i] @ others[i] for i in range(utilities.size)])

    return winner


laplace_winner = on_integers(lambda z: np.exp(-np.abs(z)), 200)
gaussian_winner = on_integers(lambda z: np.exp(-(z**2) / 2), 60)

MECHANISMS = [
    (GumbelNoise(scale=Fraction(4)), exponential_mechanism),
    (ExponentialNoise(scale=Fraction(4)), permute_and_flip),
    (LaplaceNoise(scale=Fraction(4), grid=Fraction(1)), laplace_winner),
    (GaussianNoise(scale=Fraction(5), grid=Fraction(1)), gaussian_winner),
]
NAMED = pytest.mark.parametrize(("noise", "winner"), MECHANISMS, ids=lambda one: type(one).__name__)


def neighbours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Utilities of two neighbours, moved in any direction, often one against all others."""
    n = int(rng.integers(2, 6))
    utilities = rng.integers(0, 12, n)
    moved = rng.integers(-STEPS, STEPS + 1, n)
    if rng.random() < 0.5:
        moved = np.full(n, STEPS)
        moved[rng.integers(n)] = -STEPS
    return utilities, utilities + moved


@pytest.mark.slow
@NAMED
def test_guarantee_is_never_below_the_exact_loss(noise: MaxNoise, winner: Callable) -> None:
    rng = np.random.default_rng(0)
    stated: dict[int, NoisyMax] = {}
    tightest = 0.0
    for _ in range(brute_force.size(2000, 150)):
        one, other = neighbours(rng)
        p, q = winner(one, float(noise.scale)), winner(other, float(noise.scale))
        assert p.sum() == pytest.approx(1.0)
        choice = stated.setdefault(one.size, noisy_max(one.size, STEPS, noise))  # type: ignore[arg-type]
        for name, bound in choice.bounds.items():
            values = bound.delta_at(EPSILONS)
            for ours, theirs in ((p, q), (q, p)):
                exact = np.array([hockey_stick(ours, theirs, epsilon) for epsilon in EPSILONS])
                assert np.all(exact <= values + 1e-12), name
                tightest = max([tightest, *(exact[values > 1e-4] / values[values > 1e-4])])
        if choice.pure_epsilon is not None:
            assert max(largest_loss(p, q), largest_loss(q, p)) <= choice.pure_epsilon + 1e-9
    assert tightest > 0.35


def test_two_sensitivities_are_needed() -> None:
    """One candidate rises while all others fall: the price of one sensitivity would be too low."""
    one, other = np.zeros(40, dtype=int), np.full(40, -STEPS)
    other[0] = STEPS
    for noise, winner in MECHANISMS[::2]:
        p, q = winner(one, float(noise.scale)), winner(other, float(noise.scale))
        loss = largest_loss(q, p)
        assert STEPS / float(noise.scale) < loss <= noisy_max(40, STEPS, noise).epsilon_at(0.0)


@NAMED
def test_a_guarantee_for_half_the_sensitivity_is_caught(noise: MaxNoise, winner: Callable) -> None:
    rng = np.random.default_rng(1)
    violated = False
    for _ in range(150):
        if violated:
            break
        one, other = neighbours(rng)
        half = noisy_max(one.size, STEPS, type(noise)(**{**vars(noise), "scale": 2 * noise.scale}))
        p, q = winner(one, float(noise.scale)), winner(other, float(noise.scale))
        violated |= any(hockey_stick(p, q, epsilon) > half.delta_at(epsilon) + 1e-9 for epsilon in EPSILONS)
    assert violated


# --- bounded range ------------------------------------------------------------------------------------------------


def test_exponential_mechanism_has_bounded_range() -> None:
    rng = np.random.default_rng(2)
    orders = np.array([1.1, 2.0, 5.0, 30.0])
    widest = 0.0
    for _ in range(brute_force.size(2000, 200)):
        one, other = neighbours(rng)
        p, q = exponential_mechanism(one, 4.0), exponential_mechanism(other, 4.0)
        widest = max(widest, float(np.ptp(np.log(p / q))))
        bound = BoundedRangeDP(epsilon=2 * STEPS / 4.0)
        assert np.all(np.array([renyi(p, q, order) for order in orders]) <= bound.renyi(orders) + 1e-12)
    assert widest == pytest.approx(2 * STEPS / 4.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_profile_of_bounded_range_is_the_worst_of_two_losses(epsilon: float) -> None:
    """Losses t and t − ε with the probabilities that make both totals 1."""
    t = np.linspace(0, epsilon, 20001)[1:-1]
    p = np.expm1(epsilon - t) / (np.expm1(epsilon - t) - np.expm1(-t))
    bound = BoundedRangeDP(epsilon=epsilon)
    for at in np.linspace(0, epsilon, 7)[:-1]:
        exact = float(
            np.max(p * np.maximum(1 - np.exp(at - t), 0) + (1 - p) * np.maximum(1 - np.exp(at - t + epsilon), 0))
        )
        assert exact <= bound.delta_at(at) <= exact * (1 + 1e-5) + 1e-12
        assert bound.delta_at(at) <= bound.pair.delta_at(at) * (1 + 1e-9)
        assert bound.delta_at(at) <= PureDP(epsilon=epsilon).delta_at(at)


def test_bounded_range_composes_better_than_pure_privacy() -> None:
    final = GaussianDP(mu=0.4)
    totals = [compose(one, final).epsilon_at(1e-6) for one in (BoundedRangeDP(epsilon=1.0), PureDP(epsilon=1.0))]
    assert final.epsilon_at(1e-6) < totals[0] < totals[1] - 0.2


def test_bounded_range_of_nothing_and_of_too_much() -> None:
    assert BoundedRangeDP(epsilon=0.0).epsilon_at(1e-6) == 0.0
    assert BoundedRangeDP(epsilon=5000.0).delta_at(1.0) == 1.0
    assert BoundedRangeDP(epsilon=5000.0).epsilon_at(0.0) == 5000.0


# --- top share ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_top_share_is_below_the_published_bound_and_never_above_one(n: int) -> None:
    bounds = noisy_max(n, Fraction(1, 50), GaussianNoise(scale=Fraction(1, 5), grid=Fraction(1, 400))).bounds  # type: ignore[attr-defined]
    grid = np.linspace(0, 2, 41)
    ours, published = bounds["top share"].delta_at(grid), bounds["KRW24 Theorem 3.2"].delta_at(grid)
    assert np.all(ours <= published * (1 + 1e-9))
    assert ours[0] < min(published[0], 0.6)
    assert ours[-1] == pytest.approx(published[-1], rel=1e-9)


def test_top_share_is_the_supremum_over_all_distributions_of_the_winner() -> None:
    """n·max over s ≤ 1/n of (s − e^ε·q_min(s)), on a fine grid of s."""
    noise, n = moved_gaussian(9.0, 4), 7
    s = np.append(np.linspace(0, 1 / n, 20001), 1 / n)
    above_p, above_q = noise.from_above
    q_min = np.interp(s, above_p[::-1], above_q[::-1])
    for epsilon in (-0.5, 0.0, 0.3, 1.0, 2.0):
        exact = n * float(np.max(s - np.exp(epsilon) * q_min))
        assert top_share(noise, n).delta_at(epsilon) == pytest.approx(exact, rel=1e-6)


def test_few_candidates_are_better_off_with_the_gaussian_mechanism() -> None:
    noise = GaussianNoise(scale=Fraction(1, 5), grid=Fraction(1, 400))
    assert noisy_max(2, Fraction(1, 50), noise).tightest(1e-6) == "Gaussian mechanism"  # type: ignore[attr-defined]
    assert noisy_max(100, Fraction(1, 50), noise).tightest(1e-6) == "top share"  # type: ignore[attr-defined]


def test_tables_of_moved_noise_are_those_of_the_distributions() -> None:
    k = np.arange(-60, 61)
    for table, weights in (
        (moved_laplace(0.4, 3), np.exp(-0.4 * np.abs(k))),
        (moved_gaussian(6.0, 3), np.exp(-(k**2) / 12)),
    ):
        p = weights / weights.sum()
        for epsilon in (-1.0, 0.0, 0.3, 0.9):
            exact = hockey_stick(p[:-3], p[3:], epsilon)
            assert table.delta_at(epsilon) == pytest.approx(exact, rel=1e-6)


def test_gaussian_noise_on_a_fine_grid_costs_what_continuous_noise_costs() -> None:
    noise = GaussianNoise(scale=Fraction(1, 5), grid=Fraction(1, 5000))
    one = ProfileDP.from_pair(symmetric(moved_gaussian(1000.0**2, 200)))
    grid = np.linspace(0, 1.5, 7)
    assert one.delta_at(grid) == pytest.approx(GaussianDP(mu=0.2).delta_at(grid), rel=1e-3)
    assert noisy_max(50, Fraction(1, 50), noise).delta_at(1.0) == pytest.approx(50 * one.delta_at(1.0), rel=1e-6)


def test_laplace_noise_is_pure_and_the_published_bound_never_better() -> None:
    choice = noisy_max(5, Fraction(1, 50), LaplaceNoise(scale=Fraction(1, 25), grid=Fraction(1, 1000)))
    assert choice.epsilon_at(0.0) == 1.0
    assert choice.tightest(1e-3) == "pure"  # type: ignore[attr-defined]


# --- what is promised ---------------------------------------------------------------------------------------------


def test_one_candidate_costs_nothing() -> None:
    assert noisy_max(1, Fraction(1), GumbelNoise(scale=Fraction(1))).epsilon_at(0.0) == 0.0


def test_rounding_to_a_grid_that_does_not_divide_the_sensitivity_is_paid_for() -> None:
    fits = noisy_max(3, Fraction(1, 50), LaplaceNoise(scale=Fraction(1, 25), grid=Fraction(1, 100)))
    misses = noisy_max(3, Fraction(1, 50), LaplaceNoise(scale=Fraction(1, 25), grid=Fraction(3, 200)))
    assert fits.epsilon_at(0.0) == 1.0
    assert misses.epsilon_at(0.0) == 1.5


def test_guarantee_rounds_up() -> None:
    third = noisy_max(3, Fraction(1, 3), GumbelNoise(scale=Fraction(2)))
    assert Fraction(third.epsilon_at(0.0)) >= Fraction(1, 3)


def test_choice_and_final_training_compose_and_keep_their_neighbours() -> None:
    choice: Guarantee = noisy_max(20, Fraction(1, 50), GumbelNoise(scale=Fraction(1, 25)), neighboring="replace_one")
    total = compose(choice, GaussianDP(mu=0.4, neighboring="replace_one"))
    assert total.neighboring == "replace_one"
    assert total.epsilon_at(1e-6) < 1.0 + GaussianDP(mu=0.4).epsilon_at(1e-6)


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


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        LaplaceNoise(scale=Fraction(-1), grid=Fraction(1))
    with pytest.raises(ValueError, match="n_candidates"):
        noisy_max(0, Fraction(1), GumbelNoise(scale=Fraction(1)))
    with pytest.raises(ValueError, match="a grid of at least"):
        noisy_max(3, Fraction(1), GaussianNoise(scale=Fraction(1), grid=Fraction(1, 10**6))).delta_at(1.0)


# --- draws --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@NAMED
@pytest.mark.parametrize("utilities", [(3, 0, 7, 6), (5, 5), (0, 1, 2, 3, 4)], ids=str)
def test_draws_follow_the_exact_distribution(noise: MaxNoise, winner: Callable, utilities: tuple[int, ...]) -> None:
    source, number = random.Random(sum(utilities)), brute_force.size(20_000, 1200)
    counts = Counter(noise.select(utilities, source) for _ in range(number))
    for index, chance in enumerate(winner(np.array(utilities), float(noise.scale))):
        assert abs(counts[index] / number - chance) < 4.5 * math.sqrt(chance * (1 - chance) / number)


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


def test_permute_and_flip_has_exactly_the_stated_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every order and every coin of three candidates, none drawn."""
    monkeypatch.setattr(report_noisy_max, "bernoulli_exp", lambda gamma, bits: bits.toss(math.exp(-gamma)))
    noise, utilities = ExponentialNoise(scale=Fraction(2)), (1, 4, 2)
    distribution = np.zeros(3)
    seen = set()
    for script in product(range(3), range(2), range(2), range(2), range(1), range(2)):
        coins = Coins(script)
        try:
            index = noise.select(utilities, coins)
        except IndexError:  # a script that no source gives
            continue
        if script[: coins.at] not in seen:
            seen.add(script[: coins.at])
            distribution[index] += coins.probability
    assert distribution == pytest.approx(permute_and_flip(np.array(utilities), 2.0), rel=1e-12)


def test_a_try_of_the_exponential_mechanism_has_exactly_the_stated_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_noisy_max, "bernoulli_exp", lambda gamma, bits: bits.toss(math.exp(-gamma)))
    noise, utilities = GumbelNoise(scale=Fraction(2)), (1, 4, 2)
    distribution = np.zeros(3)
    for index in range(3):
        coins = Coins((index, 1))
        assert noise.select(utilities, coins) == index
        distribution[index] = coins.probability
    assert distribution / distribution.sum() == pytest.approx(
        exponential_mechanism(np.array(utilities), 2.0), rel=1e-12
    )


@pytest.mark.parametrize("noise", [noise for noise, _ in MECHANISMS], ids=lambda one: type(one).__name__)
def test_draws_from_the_operating_system_and_from_a_seed(noise: MaxNoise) -> None:
    assert noise.select([Fraction(1, 3), 0.25, 1]) in (0, 1, 2)
    assert noise.select([0.5]) == 0
    first, second = ([noise.select([0.1, 0.2, 0.3], random.Random(5)) for _ in range(5)] for _ in range(2))
    assert first == second


def test_utilities_may_be_far_apart_or_many() -> None:
    noise = GumbelNoise(scale=Fraction(1, 1000))
    assert noise.select([0.0, 1000.0], random.Random(0)) == 1
    assert 0 <= GumbelNoise(scale=Fraction(1)).select([0.0] * 5000, random.Random(0)) < 5000


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_integers_of_numpy_do_not_wrap_around(kind: type) -> None:
    largest = np.iinfo(kind).max
    assert fraction(kind(largest)) / Fraction(1, 10**20) == int(largest) * 10**20
    scale = positive_fraction(Fraction(kind(largest), kind(7)), "scale")
    assert scale * 10**20 == Fraction(int(largest), 7) * 10**20
    noise = GaussianNoise(scale=Fraction(1, 1000), grid=Fraction(1, 10000))
    assert noise.select([kind(1), kind(largest)], random.Random(0)) == 1


def test_no_float_is_made_where_the_winner_is_drawn() -> None:
    tree = ast.parse(inspect.getsource(report_noisy_max))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in ("float", "exp", "log")]


def test_agrees_with_opendp_on_the_price_of_the_exponential_mechanism() -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    ours = noisy_max(3, STEPS, GumbelNoise(scale=Fraction(4)))
    pure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=4.0)
    assert ours.epsilon_at(0.0) == pytest.approx(pure.map(STEPS))
    concentrated = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=4.0)
    assert float(ours.renyi(2.0)) <= 2.0 * concentrated.map(STEPS) + 1e-9
