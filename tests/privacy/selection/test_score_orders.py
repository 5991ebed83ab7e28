"""Orders of many groups: real losses of real scores, and the largest there are where all orders can
be tried."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._selection.witness import (
    ManyGroups,
    Outcomes,
    best_order,
    group_outcomes,
)
from tests.privacy.brute_force import hockey_stick, random_distribution, releases

SGD = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)


def random_outcomes(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses by rising likelihood ratio."""
    p = rng.dirichlet(np.full(number, rng.choice([0.3, 1.0, 4.0])))
    q = p * np.exp(rng.uniform(-1, 1, number) * rng.choice([0.2, 1.0, 2.5]))
    order = np.argsort(p / q)
    return p[order], (q / q.sum())[order]


def largest_of_all_orders(
    p: np.ndarray, q: np.ndarray, distribution: dp.CountDistribution, epsilon: float
) -> float:
    orders = np.array(list(permutations(range(p.size))))
    ours, theirs = releases(distribution, p[orders]), releases(distribution, q[orders])
    return float(np.max(np.sum(np.maximum(ours - np.exp(epsilon) * theirs, 0.0), axis=1)))


def ratio_to_all_orders(seed: int, cases: int) -> list[float]:
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(cases):
        p, q = random_outcomes(rng, int(rng.integers(2, 7)))
        distribution, epsilon = random_distribution(rng), float(rng.uniform(0, 2))
        exact = largest_of_all_orders(p, q, distribution, epsilon)
        found = max(
            best_order(Outcomes(p, q), cut, distribution, epsilon) for cut in range(1, p.size)
        )
        assert found <= exact + 1e-13
        if exact > 1e-6:
            ratios.append(found / exact)
    return ratios


@pytest.mark.slow
def test_best_order_is_never_above_all_orders_and_mostly_the_largest() -> None:
    ratios = ratio_to_all_orders(seed=1, cases=120)
    assert np.mean(np.array(ratios) > 1 - 1e-6) > 0.6
    assert np.mean(ratios) > 0.95


def test_gain_is_what_an_order_written_out_loses() -> None:
    """The order behind the best gain, found again by trying all mixtures of both sequences, and
    worked out exactly."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        p, q = random_outcomes(rng, 6)
        distribution, epsilon, counting = random_distribution(rng), float(rng.uniform(0, 1)), 3
        best = 0.0
        for mask in range(2**6):
            if bin(mask).count("1") == 3:
                lower, upper = iter([2, 1, 0]), iter([3, 4, 5])
                order = [next(upper if mask >> i & 1 else lower) for i in range(6)]
                ours, theirs = releases(distribution, p[order]), releases(distribution, q[order])
                counted = np.array(order) >= counting
                best = max(
                    best, float(np.sum(np.maximum(ours - np.exp(epsilon) * theirs, 0.0)[counted]))
                )
        expected = pytest.approx(best, abs=1e-11)
        assert best_order(Outcomes(p, q), counting, distribution, epsilon) == expected


def test_groups_are_a_coarser_mechanism() -> None:
    """Each is a part of neighbouring outcomes; to say only which group it is loses no more than the
    outcome itself."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = random_outcomes(rng, 6)
        few = group_outcomes(Outcomes(p, q), 10.0)
        assert few.p.sum() == pytest.approx(1, abs=1e-12)
        assert few.q.sum() == pytest.approx(1, abs=1e-12)
        told = np.minimum(few.p, few.q) > 1e-9
        assert np.all(np.diff(few.p[told] / few.q[told]) > -1e-5)
        for epsilon in (0.0, 0.3, 1.0):
            assert hockey_stick(few.p, few.q, epsilon) <= hockey_stick(p, q, epsilon) + 1e-13


def test_an_error_of_the_masses_counts_against_the_order() -> None:
    p, q = random_outcomes(np.random.default_rng(4), 6)
    distribution = dp.Poisson(8)
    exact, unsure = (
        best_order(Outcomes(p, q, error), 3, distribution, 0.2) for error in (0.0, 1e-3)
    )
    assert unsure < exact
    off = Outcomes(p + 5e-5, q - 5e-5, 5e-4)  # masses that are wrong by no more than is said
    assert best_order(off, 3, distribution, 0.2) <= exact


@pytest.mark.parametrize(("base", "distribution", "three", "close"), [
    pytest.param(SGD, dp.Poisson(30), 4.954, 1.03, marks=pytest.mark.slow),
    (dp.PureDP(epsilon=1.0), dp.Poisson(10), 4.996, 1.03),
    (dp.GaussianDP(mu=0.2**0.5), dp.Geometric(10), 2.880, 1.001),
    (dp.GaussianDP(mu=0.2**0.5), dp.Poisson(10), 3.625, 1.002),
], ids=repr)  # fmt: skip
def test_many_groups_certify_more_than_three_and_less_than_reported(
    base, distribution, three, close
) -> None:
    delta = 1e-5 if base == SGD else 1e-6
    certain = dp.witness_epsilon(base, distribution, delta)
    assert three < certain <= dp.best_of(base, distribution).epsilon_at(delta) <= close * certain
    assert dp.witness(base, distribution, certain) >= delta * (1 - 1e-3)


def test_one_outcome_gains_nothing() -> None:
    assert ManyGroups(Outcomes(np.array([1.0]), np.array([1.0])), dp.Geometric(10)).gain(0.1) == 0.0
