"""Published bounds for searches on a random subset: as printed, above brute force, and above
Theorem 2."""

from __future__ import annotations

from math import comb

import mpmath
import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._selection import published_bounds as published
from sklearn_dpsearch.privacy._selection.published_bounds import (
    INTEGER_ORDERS,
    SUBSET,
    renyi_all,
    renyi_rest,
)
from sklearn_dpsearch.privacy._selection.subset import subset_then_train
from tests.privacy import brute_force, subset_search
from tests.privacy.brute_force import largest_loss, renyi
from tests.privacy.subset_search import VARIANTS, check, neighbours

SGD = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)
DELTA = 1e-5


# --- the papers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "rest", "on_all"), [(15, 2.455, 2.914), (45, 6.988, 6.946)])
def test_points_of_figure_1(mean: float, rest: float, on_all: float) -> None:
    """Koskela & Kulkarni, figure 1 at q = 0.1: Rényi curves all the way, PS22 Theorem 6 for the
    tuning."""
    base = dp.RenyiDP(orders=INTEGER_ORDERS, epsilons=SGD.renyi(INTEGER_ORDERS))
    tune = published.renyi_poisson(base, dp.Poisson(mean), INTEGER_ORDERS)
    assert renyi_rest(tune, base, 0.1).epsilon_at(DELTA) == pytest.approx(rest, abs=2e-3)
    assert renyi_all(tune, base, 0.1).epsilon_at(DELTA) == pytest.approx(on_all, abs=2e-3)


def test_bounds_hold_their_formulas() -> None:
    tune, train, q, order = dp.GaussianDP(mu=1.1), dp.GaussianDP(mu=0.6), 0.3, 7
    m_tune, m_train = (
        [
            np.exp(max(k - 1, 0) * (float(one.renyi(float(k))) if k > 1 else 0.0))
            for k in range(order + 1)
        ]
        for one in (tune, train)
    )
    more = sum(
        comb(order, j) * q ** (order - j) * (1 - q) ** j * m_tune[order - j] * m_train[j]
        for j in range(order + 1)
    )
    less = sum(
        comb(order - 1, j) * q**j * (1 - q) ** (order - 1 - j) * m_tune[j + 1] * m_train[order - j]
        for j in range(order)
    )
    orders = np.array([float(order)])
    expected = pytest.approx(np.log(max(more, less)) / (order - 1))
    assert renyi_rest(tune, train, q, orders).renyi(7.0) == expected
    amplified = (1 - q) ** (order - 1) * (order * q - q + 1)
    amplified += comb(order, 2) * q**2 * (1 - q) ** (order - 2) * m_tune[2]
    amplified += 3 * sum(
        comb(order, j) * q**j * (1 - q) ** (order - j) * m_tune[j] for j in range(3, order + 1)
    )
    actual = renyi_all(tune, train, q, orders).renyi(7.0)
    assert actual == pytest.approx(np.log(amplified) / (order - 1) + train.renyi(7.0))


@pytest.mark.parametrize("fraction", [1e-17, 1.1393127483383263e-13, 3e-9, 0.3, 1 - 1e-9])
def test_curves_are_never_below_forty_digits_and_close(fraction: float) -> None:
    tune, train = dp.ZCDP(rho=1.5), dp.ZCDP(rho=1e-9)
    for order in (2, 9, 40):
        with mpmath.workdps(40):
            q = mpmath.mpf(fraction)
            m_tune, m_train = (
                [mpmath.exp(one.rho * k * (k - 1)) for k in range(order + 1)]
                for one in (tune, train)
            )
            shares = [
                mpmath.binomial(order, j) * q**j * (1 - q) ** (order - j) for j in range(order + 1)
            ]
            fewer = [
                mpmath.binomial(order - 1, j) * q**j * (1 - q) ** (order - 1 - j)
                for j in range(order)
            ]
            more = mpmath.fsum(shares[j] * m_tune[j] * m_train[order - j] for j in range(order + 1))
            less = mpmath.fsum(fewer[j] * m_tune[j + 1] * m_train[order - j] for j in range(order))
            amplified = mpmath.fsum(
                shares[j] * (1 if j < 3 else 3) * m_tune[j] for j in range(order + 1)
            )
            exact = [mpmath.log(max(more, less)), mpmath.log(amplified * m_train[order])]
        orders = np.array([float(order)])
        for curve, least in zip((renyi_rest, renyi_all), exact):
            stated = mpmath.mpf(float(curve(tune, train, fraction, orders).renyi(order))) * (
                order - 1
            )
            assert least <= stated <= least * (1 + 1e-11) + 1e-11


# --- brute force ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_bounds_are_above_the_exact_divergence_and_the_exact_loss() -> None:
    rng = np.random.default_rng(41)
    orders = np.array([2.0, 3.0, 4.0, 6.0, 9.0, 17.0])
    seen = 0
    for _ in range(brute_force.size(3000, 220)):
        search, fraction = subset_search.of_many_records(rng), float(rng.uniform(0.02, 0.95))
        tuned = {trains: one for (trains, validates), one in search.tune.items() if not validates}
        parts = [_largest_loss(one, search.number) for one in (tuned, *search.train)]
        if search.validate_guarantee is not None or not np.all(np.isfinite(parts)):
            continue
        tune = dp.PureDP(epsilon=parts[0] * (1 + 1e-12))
        train = dp.PureDP(epsilon=max(parts[1:]) * (1 + 1e-12))
        for train_on in VARIANTS:
            p, q = neighbours(search, fraction, train_on)
            kept = (p > 0) & (q > 0)
            bound = SUBSET[train_on][1](tune, train, fraction, orders)  # type: ignore[call-arg]
            exact = [max(renyi(p[kept], q[kept], o), renyi(q[kept], p[kept], o)) for o in orders]
            assert np.all(exact <= bound.renyi(orders) + 1e-9)
            check(bound, p, q)
            seen += 1
    assert seen > 20


def _largest_loss(distributions: dict[frozenset[int], np.ndarray], number: int) -> float:
    last = number - 1
    parts = subset_search.subsets(frozenset(range(last)))
    pairs = [(distributions[one | {last}], distributions[one]) for one in parts]
    return max(max(largest_loss(p, q), largest_loss(q, p)) for p, q in pairs)


# --- sandwich -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("tune", "train_on", "fraction", "name"), [
    (dp.ZCDP(rho=0.01), "rest", 0.5, "KK23 Theorem 1"),
    (dp.best_of(dp.ZCDP(rho=0.01), dp.Geometric(10)), "rest", 0.5, "KK23 Theorem 1"),
    (dp.best_of(dp.ZCDP(rho=0.01), dp.Poisson(15)), "all", 0.01, "ZW19, composed"),
], ids=["rest", "rest, a search", "all"])  # fmt: skip
def test_published_bounds_are_the_smallest_for_weak_renyi_curves(tune, train_on, fraction, name):
    """By up to 3 %, which is why they are in the accountant."""
    search = subset_then_train(tune, dp.ZCDP(rho=0.01), fraction, train_on)
    found = {which: float(one.epsilon_at(DELTA)) for which, one in search.bounds.items()}
    assert found.pop(name) * (1 + 1e-3) < min(found.values())


# --- which bounds apply ---------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", VARIANTS)
def test_bounds_that_do_not_apply_are_left_out(train_on: str) -> None:
    known, unknown = dp.PureDP(epsilon=1.0), dp.ApproxDP(epsilon=1.0, delta=1e-6)
    changed = dp.PureDP(epsilon=1.0, neighboring="replace_one")
    name, bound = SUBSET[train_on]
    assert name in subset_then_train(known, known, 0.1, train_on).bounds
    for tune, train in ((unknown, known), (known, unknown), (changed, changed)):
        assert bound(tune, train, 0.1) is None
        assert name not in subset_then_train(tune, train, 0.1, train_on).bounds
