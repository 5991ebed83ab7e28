"""ε itself in the grid: the exact largest loss of a search over candidates with different pure
guarantees."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._selection.best_of import best_of_pure

GRID, THIRDS = (0.2, 1.0, 2.0), (1 / 3, 1 / 3, 1 / 3)
DISTRIBUTIONS = [
    dp.Geometric(10), dp.Logarithmic(100), dp.NegativeBinomial(-0.5, 20),
    dp.Poisson(10).at_least_one(), dp.Poisson(3), dp.FromPMF([0.0, 0.5, 0.0, 0.5]), dp.Fixed(3),
]  # fmt: skip


def mixed(epsilons: tuple[float, ...], weights: tuple[float, ...]) -> dp.Guarantee:
    return dp.mixture([dp.PureDP(epsilon=one) for one in epsilons], weights)


def outcomes(
    epsilons: tuple[float, ...], weights: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response with each ε, which is told: probabilities on both neighbours."""
    truth = 1.0 / (1.0 + np.exp(-np.array(epsilons)))
    p = np.concatenate([weights * truth, weights * (1 - truth)])
    return p, np.concatenate([weights * (1 - truth), weights * truth])


def largest_loss_of_all_orders(
    epsilons: tuple[float, ...], weights: tuple[float, ...], distribution: dp.CountDistribution
) -> float:
    """Every order of the outcomes, and a sliver of the one with the largest loss anywhere within
    it.

    As the sliver shrinks, its loss tends to ε + log f'(q)/f'(q'), with (q, q') the probabilities of
    what scores less.
    """
    p, q = outcomes(epsilons, weights)
    best = -np.inf
    for order in permutations(range(p.size)):
        places = (
            np.append(0.0, np.cumsum(p[list(order)])),
            np.append(0.0, np.cumsum(q[list(order)])),
        )
        at = np.interp(
            np.linspace(0, p.size, 31), np.arange(p.size + 1), np.minimum(places[0], 1.0)
        )
        there = np.interp(
            np.linspace(0, p.size, 31), np.arange(p.size + 1), np.minimum(places[1], 1.0)
        )
        told = (at > 0) & (there > 0)
        ratio = distribution.log_slope(at[told], 1 - at[told]) - distribution.log_slope(
            there[told], 1 - there[told]
        )
        best = max(best, float(np.max(ratio)))
    return max(epsilons) + best


def largest_loss_of_all_cuts(
    epsilons: tuple[float, ...], weights: tuple[float, ...], distribution: dp.CountDistribution
) -> float:
    """The same over all sets of whole outcomes below, and any share of one more, finely."""
    p, q = outcomes(epsilons, weights)
    share = np.linspace(0.0, 1.0, 20_001)
    best = -np.inf
    for chosen in range(2**p.size):
        below = np.array([bool(chosen >> i & 1) for i in range(p.size)])
        for i in np.flatnonzero(~below):
            at, there = (np.minimum(side[below].sum() + share * side[i], 1.0) for side in (p, q))
            told = (at > 1e-9) & (there > 1e-9)
            ratio = distribution.log_slope(at[told], 1 - at[told]) - distribution.log_slope(
                there[told], 1 - there[told]
            )
            best = max(best, float(np.max(ratio)))
    return max(epsilons) + best


@pytest.mark.slow
def test_a_grid_of_epsilons_costs_what_the_worst_of_all_orders_loses() -> None:
    exact = dp.best_of(mixed(GRID, THIRDS), dp.Geometric(10)).epsilon_at(0.0)
    assert exact == pytest.approx(3.984, abs=5e-4)
    assert exact < 0.82 * best_of_pure(2.0, dp.Geometric(10))
    assert largest_loss_of_all_cuts(GRID, THIRDS, dp.Geometric(10)) <= exact


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_exact_form_agrees_with_all_orders_of_two_candidates(distribution: dp.CountDistribution):
    epsilons, weights = (0.3, 1.5), (0.6, 0.4)
    exact = dp.best_of(mixed(epsilons, weights), distribution).epsilon_at(0.0)
    brute = largest_loss_of_all_cuts(epsilons, weights, distribution)
    assert largest_loss_of_all_orders(epsilons, weights, distribution) <= brute + 1e-12
    assert brute - 1e-9 <= exact <= brute + 1e-6
