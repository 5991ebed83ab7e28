"""Published bounds: as dp_accounting computes them, as the papers print them, and above Theorem
1."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.single_mechanisms import ORDERS
from sklearn_dpsearch.privacy._selection import published_bounds as published
from sklearn_dpsearch.privacy._selection.published_bounds import BEST_OF
from tests.privacy.never_smallest import bounds as never_smallest

EVERY = {**BEST_OF, **never_smallest.THEOREMS}
GAUSSIAN, LAPLACE = dp_event.GaussianDpEvent(2.0), dp_event.LaplaceDpEvent(2.0)
SHAPES_AND_MEANS = [(0.0, 10.0), (1.0, 10.0), (0.5, 1000.0), (5.0, 3.0), (1.0, 1.5)]

BASES = [
    dp.PureDP(epsilon=0.5), dp.ApproxDP(epsilon=0.5, delta=1e-9), dp.ZCDP(rho=0.1),
    dp.ZCDP(rho=0.5), dp.GaussianDP(mu=0.3), dp.RenyiDP(orders=ORDERS, epsilons=0.1 * ORDERS),
    dp.DPSGD(noise_multiplier=1.5, sample_rate=0.02, steps=300),
]  # fmt: skip
COUNTS = [
    dp.Geometric(10), dp.Logarithmic(100), dp.NegativeBinomial(-0.5, 50), dp.Poisson(6),
    dp.Binomial(8, 0.3), dp.Geometric(10).capped(15),
]  # fmt: skip


def renyi_of(event: dp_event.DpEvent) -> np.ndarray:
    """What dp_accounting says about an event at our orders."""
    neighboring_relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = RdpAccountant(orders=ORDERS, neighboring_relation=neighboring_relation)
    accountant.compose(event)
    return np.asarray(accountant._rdp)


# --- PS22 against dp_accounting -------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "mean"), SHAPES_AND_MEANS)
@pytest.mark.parametrize("event", [GAUSSIAN, LAPLACE], ids=["Gaussian", "Laplace"])
def test_theorem_2_agrees_with_dp_accounting_at_every_order(event, shape: float, mean: float):
    """Both take the smallest value over all higher orders, ours when it is asked for it."""
    base = dp.RenyiDP(orders=ORDERS, epsilons=renyi_of(event))
    ours = never_smallest.renyi_negative_binomial(base, dp.NegativeBinomial(shape, mean), ORDERS)
    theirs = renyi_of(dp_event.RepeatAndSelectDpEvent(event, mean, shape))
    assert ours.renyi(ORDERS) == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("mean", [1.0, 10.0, 300.0])
@pytest.mark.parametrize("event", [GAUSSIAN, LAPLACE], ids=["Gaussian", "Laplace"])
def test_theorem_6_agrees_with_dp_accounting_at_every_order(event, mean: float) -> None:
    """A base known only by its Rényi curve at the same orders, so that both convert it to δ(ε̂)
    alike.

    Theirs also tries δ ≤ √(1 − e^{−KL}) at each order, which is smaller only where ε̂ is far below
    the divergences; ours is then the larger, and by at most what that conversion gains.
    """
    base = dp.RenyiDP(orders=ORDERS, epsilons=renyi_of(event))
    ours = published.renyi_poisson(base, dp.Poisson(mean), ORDERS)
    theirs = renyi_of(dp_event.RepeatAndSelectDpEvent(event, mean, np.inf))
    assert ours.epsilons == pytest.approx(theirs, abs=1e-8)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("distribution", "epsilon"), [
    (dp.Logarithmic(10), 3.45), (dp.Geometric(10), 4.07), (dp.Geometric(1000), 5.84),
    (dp.Poisson(10), 4.61),
], ids=repr)  # fmt: skip
def test_points_of_figure_4(distribution: dp.CountDistribution, epsilon: float) -> None:
    """Papernot & Steinke, figure 4: a 0.1-zCDP run at δ = 1e-6."""
    if isinstance(distribution, dp.Poisson):
        theorem = published.renyi_poisson
    else:
        theorem = never_smallest.renyi_negative_binomial
    expected = pytest.approx(epsilon, abs=6e-3)
    assert theorem(dp.ZCDP(rho=0.1), distribution).epsilon_at(1e-6) == expected


# --- as printed -----------------------------------------------------------------------------------


def test_lemma_7_is_at_most_the_theorems_that_follow_from_it() -> None:
    for base in (dp.GaussianDP(mu=0.4), dp.PureDP(epsilon=0.5)):
        for distribution, theorem in [
            (dp.Geometric(10), never_smallest.renyi_negative_binomial),
            (dp.Logarithmic(100), never_smallest.renyi_negative_binomial),
            (dp.Poisson(10), published.renyi_poisson),
        ]:
            seven = published.renyi_any_distribution(base, distribution).renyi(ORDERS)
            assert np.all(seven <= theorem(base, distribution).renyi(ORDERS) * 1.03)


def test_corollary_3_is_theorem_2_as_the_order_grows() -> None:
    distribution, orders = dp.NegativeBinomial(0.5, 10), np.array([1e7, 1e8])
    assert never_smallest.renyi_negative_binomial(
        dp.PureDP(epsilon=0.3), distribution, orders
    ).renyi(1e7) == pytest.approx(2.5 * 0.3, abs=1e-5)
    expected = dp.PureDP(epsilon=0.75)
    assert never_smallest.pure_negative_binomial(dp.PureDP(epsilon=0.3), distribution) == expected


def test_lemma_20_fails_exactly_when_some_run_fails() -> None:
    """1 − f(1 − δ₀): the probability that at least one of K runs fails."""
    distribution, base = dp.Geometric(10), dp.ApproxDP(epsilon=0.2, delta=1e-3)
    ours = published.approx_negative_binomial(base, distribution)
    k = np.arange(1, 4000)
    assert ours.epsilon_at(0.9) == 0.0
    expected = pytest.approx(float(distribution.pmf(k) @ (1 - 0.999**k)), rel=1e-9)
    assert ours.delta_at(3 * 0.2) == expected


def test_corollary_21_holds_its_formula() -> None:
    base, distribution = dp.ApproxDP(epsilon=0.2, delta=1e-5), dp.Poisson(10)
    odds = np.expm1(0.2)
    curve = dp.RenyiDP(orders=[1 + 1 / odds], epsilons=[0.2 + odds * np.log(10)])
    expected = pytest.approx(-np.expm1(-1e-4) + curve.delta_at(1.5), rel=1e-9)
    assert published.approx_poisson(base, distribution).delta_at(1.5) == expected


def test_corollary_5_8_is_the_limit_of_theorem_5_7() -> None:
    """Binomial(n, m/n) becomes Poisson(m)."""
    base = dp.GaussianDP(mu=0.3)
    poisson = never_smallest.profile_poisson(base, dp.Poisson(5)).epsilon_at(1e-6)
    gaps = [
        published.profile_binomial(base, dp.Binomial(n, 5 / n)).epsilon_at(1e-6) - poisson
        for n in (50, 1000, 10**6)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert abs(gaps[2]) < 1e-3


def test_condition_on_a_run_scales_delta_and_the_exponential_of_the_divergence() -> None:
    base, distribution = dp.GaussianDP(mu=0.4), dp.Poisson(2)
    factor = 1 / -np.expm1(-2.0)
    cases = (distribution, distribution.at_least_one())
    free, given = (never_smallest.profile_poisson(base, one) for one in cases)
    assert given.delta_at(2.0) == pytest.approx(factor * free.delta_at(2.0))
    choices = (distribution, distribution.at_least_one())
    free, given = (published.renyi_poisson(base, one, ORDERS) for one in choices)
    assert (ORDERS - 1) * (given.epsilons - free.epsilons) == pytest.approx(
        np.full(ORDERS.size, np.log(factor))
    )  # type: ignore[attr-defined]


@pytest.mark.parametrize("base", BASES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("distribution", COUNTS, ids=repr)
def test_bounds_outside_of_the_accountant_are_never_the_smallest(base, distribution) -> None:
    """Else they would belong inside."""
    search, bounds = dp.best_of(base, distribution), never_smallest.all_bounds(base, distribution)
    for name in never_smallest.THEOREMS.keys() & bounds.keys():
        for delta in (1e-3, 1e-5, 1e-8):
            assert search.epsilon_at(delta) <= bounds[name].epsilon_at(delta) * (1 + 1e-4), name


#: A case for each bound of the accountant in which it is the smallest.
SMALLEST = [
    ("Theorem 1 (pure)", dp.PureDP(epsilon=0.5), dp.NegativeBinomial(-0.5, 50), 1e-3),
    ("PS22 Theorem 6", dp.ZCDP(rho=0.01), dp.Poisson(15).at_least_one(), 1e-3),
    ("PS22 Lemma 7", dp.ZCDP(rho=0.01), dp.Binomial(40, 0.5), 1e-3),
    ("PS22 Lemma 20", dp.ApproxDP(epsilon=0.5, delta=1e-9), dp.Geometric(10), 1e-8),
    ("PS22 Corollary 21", dp.ApproxDP(epsilon=0.01, delta=1e-12), dp.Poisson(300), 1e-8),
    ("KRW24 Theorem 5.7", dp.ZCDP(rho=0.5), dp.Binomial(10, 0.9), 1e-12),
]


@pytest.mark.parametrize(("name", "base", "distribution", "delta"), SMALLEST)
def test_bounds_of_the_accountant_are_each_the_smallest_somewhere(name, base, distribution, delta):
    """Else they would belong outside."""
    entries = dp.best_of(base, distribution).bounds.items()
    found = {which: float(one.epsilon_at(delta)) for which, one in entries}
    assert found.pop(name) * (1 + 1e-4) < min(found.values())


def test_each_bound_of_the_accountant_has_such_a_case() -> None:
    assert {name for name, *_ in SMALLEST} == {"Theorem 1 (pure)", *BEST_OF}


def test_every_theorem_that_a_distribution_names_is_a_bound() -> None:
    named = {
        name for count in [*COUNTS, dp.Fixed(3), dp.FromPMF([0.5, 0.5])] for name in count.theorems
    }
    known = {"Theorem 6", "composition", "PS22 Corollary 3", *BEST_OF} - {"PS22 Lemma 7"}
    assert named == known


def test_a_condition_and_a_cap_keep_only_the_bounds_that_count_them() -> None:
    assert dp.Poisson(6).at_least_one().theorems == ("Theorem 6", "PS22 Theorem 6")
    assert dp.Binomial(8, 0.3).at_least_one().theorems == ("Theorem 6", "KRW24 Theorem 5.7")
    assert dp.Poisson(6).capped(9).theorems == ("Theorem 6",)
    assert dp.Geometric(10).capped(15).theorems == ()


# --- which bounds apply, and where they lie -------------------------------------------------------


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("mean", [1.0, 1.0000001, 10.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 3e-16, 1e-12, 1e-6, 1e-3])
def test_failures_of_many_runs_keep_their_digits(shape: float, mean: float, delta: float) -> None:
    """1 − f(1 − δ₀) is reached by a run whose failures are its best scores; 0 would claim pure
    privacy."""
    distribution, run = dp.NegativeBinomial(shape, mean), dp.ApproxDP(epsilon=1.0, delta=delta)
    with mpmath.workdps(400):
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(shape)
        base = gamma + (1 - gamma) * mpmath.mpf(delta)
        if mean == 1:
            exact = mpmath.mpf(delta)
        elif shape == 0:
            exact = 1 - mpmath.log(base) / mpmath.log(gamma)
        else:
            exact = 1 - (base**-eta - 1) / (gamma**-eta - 1)
        if exact > 0.999:
            return
        reported = published.approx_negative_binomial(run, distribution).delta_at(500.0)
        assert exact <= reported <= exact * (1 + 1e-9)
        # open failures at the top reach it; the smallest of all bounds is no exception
        assert exact * (1 - 1e-15) <= dp.best_of(run, distribution).delta_at(500.0)
    assert dp.best_of(run, distribution).pure_epsilon is None
    assert dp.best_of(run, distribution).epsilon_at(0.0) == np.inf
