"""No mechanism has more right guesses than its own curve allows: brute force, linear programs,
Gaussian sums."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

from sklearn_dpsearch.audit._right_guesses import ClaimedCurve, Guesses
from sklearn_dpsearch.privacy import GaussianDP

EPSILONS = np.linspace(0.0, 6.0, 61)


def channel(rng, m, outcomes, sharpness):
    """P[outcome | coins] of a random mechanism, of shape (2,) * m + (outcomes,)."""
    chances = rng.dirichlet(np.full(outcomes, 1.0 / sharpness), size=(2,) * m)
    return 0.97 * chances + 0.03 / outcomes


def own_curve(chances, m):
    """The exact curve of a mechanism: the largest δ(ε) over all coins, all others' values and both
    directions."""
    deltas = np.zeros_like(EPSILONS)
    for i in range(m):
        one, other = np.moveaxis(chances, i, 0)
        for p, q in ((one, other), (other, one)):
            lost = np.maximum(p[..., None] - np.exp(EPSILONS) * q[..., None], 0.0).sum(axis=-2)
            deltas = np.maximum(deltas, lost.reshape(-1, len(EPSILONS)).max(axis=0))
    return ClaimedCurve(EPSILONS, deltas)


def tails(chances, m, r):
    """P[W ≥ v] for v = 0, …, r, if the r coins about which most is known are guessed as is
    likelier."""
    number, outcomes = 2.0**-m, chances.shape[-1]
    joint = chances * number
    found = np.zeros(r + 1)
    for outcome in range(outcomes):
        here = joint[..., outcome]
        ones = np.array([np.moveaxis(here, i, 0)[1].sum() for i in range(m)]) / here.sum()
        guessed = np.argsort(-np.abs(ones - 0.5), kind="stable")[:r]
        for coins in product((0, 1), repeat=m):
            right = sum(coins[i] == (ones[i] >= 0.5) for i in guessed)
            found[right] += here[coins]
    return np.cumsum(found[::-1])[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_no_random_mechanism_has_more_right_guesses_than_its_own_curve_allows(m):
    rng = np.random.default_rng(m)
    for _ in range(60):
        chances = channel(rng, m, int(rng.integers(2, 9)), float(rng.uniform(0.3, 6.0)))
        curve = own_curve(chances, m)
        for r in range(1, m + 1):
            for right, tail in enumerate(tails(chances, m, r)):
                if tail > 0.0:
                    assert not Guesses(m, r, right).refute(curve, tail)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_all_coins_told_by_randomised_response_reach_what_their_curve_allows(m):
    """The theorem is tight there: a claim that is false by one percent is refuted."""
    one = np.array([[0.8, 0.2], [0.2, 0.8]])
    chances = one
    for _ in range(m - 1):
        chances = np.multiply.outer(chances, one)
    chances = np.moveaxis(chances, range(0, 2 * m, 2), range(m)).reshape((2,) * m + (2**m,))
    tail = tails(chances, m, m)[m]
    assert tail == pytest.approx(0.8**m)
    truth = ClaimedCurve(np.array([np.log(4.0)]), np.array([0.0]))
    assert not Guesses(m, m, m).refute(truth, tail)
    assert Guesses(m, m, m).refute(truth.times(0.99), tail)
    assert not Guesses(m, m, m).refute(own_curve(chances, m), tail)


@pytest.mark.parametrize(("m", "r", "right"), [(6, 6, 5), (12, 8, 7), (25, 20, 13), (40, 10, 10)])
def test_the_recursion_is_the_linear_program_of_the_theorem(m, r, right):
    """The smallest total of all chances with P[W ≥ right] = level, of all distributions that the
    theorem allows."""
    curve, level = ClaimedCurve(np.array([0.2, 1.0, 1.7]), np.array([0.15, 0.02, 1e-3])), 0.2
    slopes, offsets = curve.lines()
    counts = np.arange(r + 1)
    rows, bounds = [], []
    for j in range(1, r + 1):
        correct, wrong = counts * (counts >= j) / m, (r - counts) * (counts >= j - 1) / m
        rows += [slope * correct - wrong for slope in slopes]
        bounds += list(-offsets)
    options = {"A_eq": [(counts >= right).astype(float)], "b_eq": [level], "method": "highs"}
    best = linprog(np.ones(r + 1), A_ub=rows, b_ub=bounds, **options)
    found = Guesses(m, r, right)
    assert best.status == 0
    for share, refuted in ((0.999, False), (1.001, True)):
        scaled = share / best.fun
        if best.fun > 1.0 or refuted is False:
            assert found.refute_by_sums(curve, level) == (best.fun > 1.0)
        at = linprog(
            np.ones(r + 1), A_ub=rows, b_ub=bounds, A_eq=[(counts >= right).astype(float)],
            b_eq=[min(level * scaled, 1.0)], method="highs",
        )  # fmt: skip
        assert found.refute_by_sums(curve, min(level * scaled, 1.0)) == (at.fun > 1.0)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("m", [20, 400])
def test_a_bound_on_gaussian_sums_exceeds_the_truth_in_five_of_a_hundred_runs_at_most(mu, m):
    """Exactly: each coin is guessed from a normal of its own, so the number of right guesses is
    binomial."""
    points, right = GaussianDP(mu=mu)._trade_off, np.arange(m + 1)
    curve = ClaimedCurve(points.epsilons, points.deltas)
    refuted = np.array([Guesses(m, m, int(v)).refute(curve, 0.05) for v in right])
    assert refuted[m] == (mu < 2.0)  # 2.5-GDP allows that all coins are told at once now and then
    assert binom.pmf(right, m, norm.cdf(mu / 2))[refuted].sum() <= 0.05


def test_a_whole_curve_refutes_what_one_of_its_pairs_does_not():
    points = GaussianDP(mu=0.92)._trade_off
    curve, guesses = ClaimedCurve(points.epsilons, points.deltas), Guesses(20_000, 4000, 3600)
    pair = GaussianDP(mu=0.92).epsilon_at(1e-5)
    assert guesses.epsilon(1e-5, 0.01) < pair
    assert guesses.ratio(curve, 0.01) > guesses.epsilon(1e-5, 0.01) / pair


def test_what_is_claimed_for_no_finite_epsilon_is_never_refuted():
    nothing = ClaimedCurve(np.array([np.inf, 1e6]), np.array([0.0, 0.0]))
    assert Guesses(1000, 1000, 1000).ratio(nothing, 0.05) == 0.0


def test_a_claim_of_nothing_lost_is_refuted_at_any_multiple():
    actual = Guesses(1000, 1000, 900).ratio(ClaimedCurve(np.array([0.0]), np.array([0.0])), 0.05)
    assert actual >= 1e6


def test_canaries_that_are_exposed_together_keep_the_curve_and_reach_the_limit():
    """Each canary is told with certainty .9 in a quarter of all runs and .6 in the others: alone,
    or all at once."""
    m, exposed, certain = 3, 0.25, (0.6, 0.9)
    signs = np.array(list(product([0, 1], repeat=m)))
    told = [
        np.where(signs[:, np.newaxis] == signs, sure, 1.0 - sure).prod(axis=-1) for sure in certain
    ]
    together = np.hstack([(1.0 - exposed) * told[0], exposed * told[1]]).reshape((2,) * m + (-1,))
    one = np.array([[(1 - exposed) * 0.6, (1 - exposed) * 0.4, exposed * 0.9, exposed * 0.1]])
    one = np.vstack([one, one[:, [1, 0, 3, 2]]])
    alone = one
    for _ in range(m - 1):
        alone = np.multiply.outer(alone, one)
    alone = np.moveaxis(alone, range(0, 2 * m, 2), range(m)).reshape((2,) * m + (4**m,))
    np.testing.assert_allclose(
        own_curve(together, m).deltas, own_curve(alone, m).deltas, rtol=0, atol=1e-12
    )
    assert tails(together, m, m)[m] == pytest.approx(0.75 * 0.6**m + 0.25 * 0.9**m)
    assert tails(together, m, m)[m] > 1.1 * tails(alone, m, m)[m]


@pytest.mark.parametrize(("m", "r", "right", "epsilon", "delta"), [
    (50, 20, 15, 0.7, 1e-3), (9, 9, 8, 1.5, 0.01), (4, 3, 0, 0.0, 0.1),
])  # fmt: skip
def test_the_binomial_bound_is_the_sum_in_the_paper(m, r, right, epsilon, delta):
    """Steinke, Nasr & Jagielski 2023, Theorem 5.2, term by term."""
    q = np.exp(epsilon) / (1.0 + np.exp(epsilon))
    chance = [comb(r, k) * q**k * (1.0 - q) ** (r - k) for k in range(r + 1)]
    shares = [sum(chance[right - i : right]) / i for i in range(1, right + 1)]
    bound = sum(chance[right:]) + 2.0 * m * delta * max(shares, default=0.0)
    claim = ClaimedCurve(np.array([epsilon]), np.array([delta]))
    assert not Guesses(m, r, right).refute_by_binomial(claim, bound * 0.999999)
    assert Guesses(m, r, right).refute_by_binomial(claim, bound * 1.000001)


@pytest.mark.parametrize("delta", [0.0, 1e-7, 1e-5, 1e-3])
def test_a_lower_bound_is_the_larger_of_the_two(delta):
    guesses = Guesses(2000, 400, 340)

    def curve(at):
        return ClaimedCurve(np.array([at]), np.array([delta]))

    at = guesses.epsilon(delta, 0.05)
    ways = [
        way(curve(at * 0.999), 0.05) for way in (guesses.refute_by_sums, guesses.refute_by_binomial)
    ]
    assert any(ways)
    assert not any(
        way(curve(at * 1.001), 0.05) for way in (guesses.refute_by_sums, guesses.refute_by_binomial)
    )


@pytest.mark.parametrize("m", [3, 8])
def test_coins_told_outright_with_probability_delta_do_not_exceed_the_binomial_bound(m):
    """Each coin is told outright with probability δ, and else by randomised response: the guesses
    are independent."""
    for epsilon, delta in product((0.0, 0.5, 2.0), (0.0, 0.01, 0.2)):
        p = delta + (1.0 - delta) / (1.0 + np.exp(-epsilon))
        claim = ClaimedCurve(np.array([epsilon]), np.array([delta]))
        for right in range(m + 1):
            tail = float(binom.sf(right - 1, m, p))
            assert not Guesses(m, m, right).refute(claim, tail)
