"""Theorem 1: never below the exact loss of any small mechanism, and close to what some mechanism
really loses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.base import CHORD
from sklearn_dpsearch.privacy._numerics.loss_distribution import DominatingPair
from sklearn_dpsearch.privacy._selection import best_of as best_of_file
from sklearn_dpsearch.privacy._selection.best_of import TheoremOne, best_of_pure
from sklearn_dpsearch.privacy._selection.testing_region import (
    AffineLines,
    Hinges,
    nodes,
    upper_envelope,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import (
    Mechanism,
    Violation,
    cases,
    check,
    random_distribution,
    random_mechanism,
    size,
)
from tests.privacy.never_smallest import bounds as published

DELTA = 1e-6


def theorem_one(base: dp.Guarantee, distribution: dp.CountDistribution) -> TheoremOne:
    return TheoremOne(one_run=base, count=distribution)


def check_many(number: int, seed: int) -> float:
    """Theorem 1 for the exact pair of ``number`` random mechanisms; the tightest ratio met."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(number):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        bound = theorem_one(dp.ProfileDP.from_pair(brute_force.exact_pair(one)), distribution)
        tightest = max(tightest, check(bound, distribution, one))
    return tightest


# --- oracle ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size(5, 2)))
def test_bound_is_never_below_the_exact_loss(seed: int) -> None:
    tightest = check_many(brute_force.size(2400, 240), seed)
    print(f"tightest exact/stated delta: {tightest}")
    assert 0.9 < tightest <= 1.0 + 1e-9


@pytest.mark.slow
def test_bound_holds_for_every_order_of_the_outcomes() -> None:
    rng = np.random.default_rng(11)
    for _ in range(brute_force.size(300, 15)):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        bound = theorem_one(dp.ProfileDP.from_pair(brute_force.exact_pair(one)), distribution)
        if one.p.size <= 4:
            for ordered in brute_force.all_orders(one):
                check(bound, distribution, ordered)


@pytest.mark.slow
def test_bound_holds_for_a_base_known_only_by_its_largest_loss() -> None:
    rng = np.random.default_rng(12)
    for _ in range(brute_force.size(1500, 30)):
        one, distribution = random_mechanism(rng, finite_loss=True), random_distribution(rng)
        loss = max(brute_force.largest_loss(one.p, one.q), brute_force.largest_loss(one.q, one.p))
        bound = dp.best_of(dp.PureDP(epsilon=loss * (1 + 1e-12)), distribution)
        check(bound, distribution, one)
        p, q = (brute_force.release(distribution, side, one.scores) for side in (one.p, one.q))
        told = np.minimum(p, q) > 1e-7  # smaller ones are lost in the rounding of the oracle itself
        assert np.all(np.abs(np.log(p[told] / q[told])) <= bound.epsilon_at(0.0) + 1e-7)


@pytest.mark.slow
def test_bound_holds_for_a_base_known_only_by_one_epsilon_and_delta() -> None:
    rng = np.random.default_rng(13)
    for _ in range(brute_force.size(1500, 30)):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        epsilon = float(rng.uniform(0, 3))
        delta = max(
            brute_force.hockey_stick(one.p, one.q, epsilon),
            brute_force.hockey_stick(one.q, one.p, epsilon),
        )
        if delta < 0.99:
            one_run = dp.ApproxDP(epsilon=epsilon, delta=delta + 1e-15)
            check(dp.best_of(one_run, distribution), distribution, one)


@pytest.mark.parametrize("mu", [33.0, 44.0])
def test_bound_holds_where_the_probability_of_the_lowest_ratios_underflows(mu: float) -> None:
    """The lowest of 30 Gaussian numbers: whether it is above t tells nearly all 30 losses at
    once."""
    t, runs = mu - 2.5, 30
    # the other's logarithm
    above, other = (np.exp(runs * special.log_ndtr(mu - t)), runs * special.log_ndtr(-t))
    assert above > 0.8
    bound = np.log(above - 0.3) - other
    assert dp.best_of(dp.GaussianDP(mu=mu), dp.Fixed(runs)).epsilon_at(0.3) >= bound


def test_a_search_whose_loss_is_next_to_infinite_composes_with_others() -> None:
    search = dp.best_of(dp.PureDP(epsilon=700.0), dp.Fixed(3))
    actual = dp.compose(search, dp.PureDP(epsilon=1.0)).epsilon_at(0.3)
    assert 2100.0 + np.log(0.7) <= actual <= 2101.0


@pytest.mark.slow
def test_every_published_bound_is_above_the_exact_loss_too() -> None:
    rng = np.random.default_rng(14)
    seen = set()
    for _ in range(brute_force.size(400, 25)):
        one, distribution = random_mechanism(rng, finite_loss=True), random_distribution(rng)
        loss = max(brute_force.largest_loss(one.p, one.q), brute_force.largest_loss(one.q, one.p))
        for base in (
            dp.PureDP(epsilon=loss * (1 + 1e-12)),
            dp.ProfileDP.from_pair(brute_force.exact_pair(one)),
        ):
            for name, bound in (
                published.all_bounds(base, distribution).items()
                if distribution != dp.Fixed(1)
                else ()
            ):
                check(bound, distribution, one)
                seen.add(name)
    of_2022 = {
        f"PS22 {name}" for name in ("Theorem 2", "Corollary 3", "Theorem 6", "Lemma 7", "Lemma 22")
    }
    actual = of_2022 | {"Theorem 1", "KRW24 Theorem 5.2", "KRW24 Corollary 5.8", "composition"}
    assert actual <= seen


@pytest.mark.slow
def test_renyi_curve_is_above_the_exact_divergence_also_when_no_run_is_possible() -> None:
    rng = np.random.default_rng(15)
    orders = np.array([1.1, 1.5, 2.0, 4.0, 9.0, 33.0])
    for _ in range(brute_force.size(600, 40)):
        one, distribution = random_mechanism(rng, finite_loss=True), random_distribution(rng)
        loss = max(brute_force.largest_loss(one.p, one.q), brute_force.largest_loss(one.q, one.p))
        bound = dp.best_of(dp.PureDP(epsilon=loss * (1 + 1e-12)), distribution)
        if not bound.has_renyi:
            continue
        none = 1.0 - sum(brute_force.release(distribution, one.p, one.scores))
        p, q = (
            np.append(brute_force.release(distribution, side, one.scores), max(none, 0.0))
            for side in (one.p, one.q)
        )
        kept = np.minimum(p, q) > 1e-9  # the oracle's own differences of f are exact to about 1e-16
        exact = np.array([brute_force.renyi(p[kept], q[kept], order) for order in orders])
        assert np.all(exact <= bound.renyi(orders) + 1e-6)


def test_renyi_bounds_of_a_search_that_mostly_runs_nothing_count_that_outcome() -> None:
    """The printed Theorem 6 would say 0 here, yet now and then a run of the base is released."""
    distribution, base = dp.Poisson(mean=0.01), dp.PureDP(epsilon=2.0)
    one = Mechanism(np.array([0.88, 0.12]), np.array([0.12, 0.88]), np.array([0, 1]))
    p, q = (
        np.append(brute_force.release(distribution, side, one.scores), np.exp(-distribution.mean))
        for side in (one.p, one.q)
    )
    exact = brute_force.renyi(p, q, 2.0)
    bound = dp.best_of(base, distribution)
    assert bound.bounds["PS22 Theorem 6"].renyi(2.0) < exact <= bound.renyi(2.0)


# --- the checker can fail -------------------------------------------------------------------------


def _slope_at_q_on_both_sides(one, distribution):
    """f'(q_min) forgotten: f'(q) on both sides."""
    height = np.exp(distribution.log_slope(*nodes(spacing=1.1)))
    return upper_envelope(AffineLines(height, height))


def _upper_edge_for_lower(one, distribution):
    """q_max in place of q_min."""
    (at, u), (above_p, above_q) = nodes(spacing=1.1), one.from_above
    height = np.exp(distribution.log_slope(at, u))
    edge = 1.0 - np.interp(u, (one.infinity + above_p)[::-1], above_q[::-1])
    return upper_envelope(AffineLines(height, np.exp(distribution.log_slope(edge, 1 - edge))))


def _half_the_expected_runs(one, distribution):
    good = ORIGINAL(one, distribution)
    return Hinges(0.5 * good.weights, good.ends)


ORIGINAL = best_of_file.theorem_1


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken", [_slope_at_q_on_both_sides, _upper_edge_for_lower, _half_the_expected_runs]
)
def test_a_broken_accountant_is_caught(monkeypatch: pytest.MonkeyPatch, broken) -> None:
    monkeypatch.setattr(best_of_file, "theorem_1", broken)
    with np.errstate(all="ignore"), pytest.raises(Violation):
        check_many(200, seed=1)


# --- the exact pure form --------------------------------------------------------------------------


PURE_DISTRIBUTIONS = [
    dp.Geometric(10), dp.Logarithmic(100), dp.NegativeBinomial(-0.5, 20), dp.NegativeBinomial(5, 7),
    dp.Poisson(4).at_least_one(), dp.Binomial(6, 0.4), dp.Fixed(3),
    dp.FromPMF([0.0, 0.5, 0.0, 0.5]), dp.Geometric(30).capped(12),
]  # fmt: skip


def brute_force_pure(epsilon: float, distribution: dp.CountDistribution) -> float:
    """sup over a fine grid of q, geometric towards 0 and 1, with the point where the edges of q_min
    meet."""
    small = np.geomspace(1e-13, 0.5, 400_000)
    kink = 1.0 / (1.0 + np.exp(epsilon))
    u = np.concatenate([small, 1.0 - small, [kink]])
    z = np.concatenate([1.0 - small, small, [1.0 - kink]])
    low = u >= kink  # where q_min = e^{−ε}q; above, 1 − q_min = e^ε·(1 − q)
    lower = np.where(low, np.exp(-epsilon) * z, 1.0 - np.exp(epsilon) * u)
    lower_u = np.where(low, 1.0 - np.exp(-epsilon) * z, np.exp(epsilon) * u)
    with np.errstate(divide="ignore"):
        return epsilon + float(
            np.max(distribution.log_slope(z, u) - distribution.log_slope(lower, lower_u))
        )


@pytest.mark.parametrize("distribution", PURE_DISTRIBUTIONS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_pure_form_is_the_supremum_over_the_testing_region(epsilon, distribution):
    brute = brute_force_pure(epsilon, distribution)
    exact = best_of_pure(epsilon, distribution)
    assert brute - 1e-9 <= exact <= brute + 1e-6
    assert dp.best_of(dp.PureDP(epsilon=epsilon), distribution).epsilon_at(0.0) <= exact


@pytest.mark.parametrize("distribution", [
    dp.Geometric(10), dp.Logarithmic(100), dp.NegativeBinomial(-0.5, 20), dp.NegativeBinomial(5, 7),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_pure_form_is_reached_by_a_mechanism_with_three_outcomes(epsilon, distribution):
    """All of the supremum but a part in a thousand: outcomes rest < sliver < top, the sliver with
    odds e^ε."""
    top = np.geomspace(1e-7, 1 / (1 + np.exp(epsilon)), 4000)
    sliver = 1e-4 * top
    p = np.stack([1 - top - sliver, sliver, top], axis=-1)
    above = sliver * np.exp(-epsilon), np.minimum(top * np.exp(epsilon), 1 - sliver)
    q = np.stack([1 - sum(above), *above], axis=-1)
    ours, theirs = (brute_force.releases(distribution, side)[:, 1] for side in (p, q))
    told = (q[:, 0] >= p[:, 0] * np.exp(-epsilon) * (1 - 1e-9)) & (ours > 1e-12) & (theirs > 0)
    best = float(np.max(np.log(ours[told] / theirs[told])))
    actual = best_of_pure(epsilon, distribution) * (1 - 5e-3)
    assert actual <= best <= best_of_pure(epsilon, distribution) + 1e-3


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("mean", [1.5, 10, 1000])
def test_pure_form_is_at_most_the_published_multiple(shape: float, mean: float) -> None:
    for epsilon in (0.05, 0.5, 2.0):
        bound = dp.best_of(dp.PureDP(epsilon=epsilon), dp.NegativeBinomial(shape, mean))
        assert epsilon < bound.epsilon_at(0.0) <= (2 + shape) * epsilon
        assert bound.delta_at(bound.epsilon_at(0.0)) == 0.0


# --- sandwich -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mu", cases([0.25, 0.2**0.5, 1.0], 0, 2))
@pytest.mark.parametrize("shape", cases([-0.5, 0.0, 0.5, 1.0, 5.0], 0, 3))
def test_gaussian_base_lies_between_witness_and_published_bounds(mu: float, shape: float) -> None:
    for mean in (10, 100, 1000):
        search = dp.best_of(dp.GaussianDP(mu=mu), dp.NegativeBinomial(shape, mean))
        reported = search.epsilon_at(DELTA)
        certain = dp.witness_epsilon(dp.GaussianDP(mu=mu), dp.NegativeBinomial(shape, mean), DELTA)
        assert certain <= reported <= 1.01 * certain
        rows = published.all_bounds(dp.GaussianDP(mu=mu), dp.NegativeBinomial(shape, mean)).items()
        for name, bound in rows:
            assert reported <= bound.epsilon_at(DELTA), name


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "theorem", "certain"), [
    (dp.Logarithmic(10), 2.74, 2.735), (dp.Geometric(10), 2.89, 2.888),
    (dp.Geometric(1000), 4.54, 4.527), (dp.Poisson(10), 3.67, 3.648),
], ids=repr)  # fmt: skip
def test_figures_of_the_documentation(distribution, theorem, certain):
    base = dp.GaussianDP(mu=0.2**0.5)
    assert dp.best_of(base, distribution).epsilon_at(DELTA) <= theorem
    assert dp.witness_epsilon(base, distribution, DELTA) == pytest.approx(certain, abs=2e-3)


# --- limits and properties ------------------------------------------------------------------------


BASES = [
    dp.PureDP(epsilon=0.5),
    dp.ApproxDP(epsilon=0.5, delta=1e-7),
    dp.ZCDP(rho=0.05),
    dp.GaussianDP(mu=0.4),
    dp.RenyiDP(orders=np.arange(2, 64), epsilons=0.05 * np.arange(2, 64)),
    dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=1000),
]


@pytest.mark.parametrize("base", BASES, ids=lambda one: type(one).__name__)
def test_one_run_for_certain_gives_the_base_back(base: dp.Guarantee) -> None:
    assert dp.best_of(base, dp.Fixed(1)) is base
    cases = (dp.FromPMF([0.0, 1.0]), dp.Binomial(1, 1.0), dp.Geometric(1), dp.Logarithmic(1))
    for distribution in cases:
        ours = theorem_one(base, distribution)
        assert ours.delta_at(0.7) == pytest.approx(base.pair.delta_at(0.7), rel=1e-7)
        assert ours.epsilon_at(1e-5) == pytest.approx(base.epsilon_at(1e-5), rel=2e-3)


def test_conditioning_on_a_run_multiplies_delta_by_the_same_factor() -> None:
    base, grid = dp.GaussianDP(mu=0.7), np.linspace(0.5, 4, 8)
    free, given = theorem_one(base, dp.Poisson(2)), theorem_one(base, dp.Poisson(2).at_least_one())
    assert given.delta_at(grid) == pytest.approx(free.delta_at(grid) / -np.expm1(-2.0), rel=1e-9)


def test_no_promise_stays_none() -> None:
    assert dp.best_of(dp.NonPrivate(), 10).epsilon_at(0.5) == np.inf


def test_a_base_that_may_fail_openly_fails_once_in_the_expected_number_of_runs() -> None:
    """As ε grows only openly failing runs count: with two of them the loss is at most 2δ and at
    least 1 − (1 − δ)²."""
    delta = theorem_one(dp.ApproxDP(epsilon=1.0, delta=0.1), dp.Fixed(2)).delta_at(40.0)
    assert delta >= 1 - 0.9**2


@pytest.mark.parametrize(
    "cases", [5, pytest.param(brute_force.size(150, 25), marks=pytest.mark.slow)]
)
def test_pair_of_a_search_is_above_the_release_at_every_real_epsilon(cases: int) -> None:
    """What a later composition or search builds on; below ε = 0 the outcome "no run" counts too."""
    rng = np.random.default_rng(16)
    grid = np.linspace(-5, 5, 41)
    for _ in range(cases):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        pair = theorem_one(dp.ProfileDP.from_pair(brute_force.exact_pair(one)), distribution).pair
        for stated, part in ((pair.removed, one), (pair.added, one.reversed)):
            released = [
                brute_force.release(distribution, side, one.scores) for side in (part.p, part.q)
            ]
            p, q = (np.append(side, max(1 - side.sum(), 0.0)) for side in released)
            exact = np.array([brute_force.hockey_stick(p, q, epsilon) for epsilon in grid])
            assert np.all(stated.delta_at(grid) >= exact - 1e-12)


@pytest.mark.parametrize(
    "cases", [4, pytest.param(brute_force.size(100, 15), marks=pytest.mark.slow)]
)
def test_search_of_searches_is_above_the_exact_loss(cases: int) -> None:
    """The best of several searches, each over a few runs of a small mechanism, with one and the
    same score."""
    rng = np.random.default_rng(17)
    for _ in range(cases):
        one = random_mechanism(rng)
        inner = random_distribution(rng).at_least_one()
        outer = random_distribution(rng)
        base = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        total = theorem_one(theorem_one(base, inner), outer)
        p, q = (brute_force.release(inner, side, one.scores) for side in (one.p, one.q))
        check(total, outer, Mechanism(p / p.sum(), q / q.sum(), one.scores))


@pytest.mark.slow
def test_both_orders_of_the_neighbours_count() -> None:
    """A mechanism that loses much more one way round costs the same whichever way it is given."""
    one = brute_force.exact_pair(
        Mechanism(np.array([0.98, 0.02]), np.array([0.7, 0.3]), np.array([0, 1]))
    )
    turned = DominatingPair(one.added, one.removed)
    epsilon = np.array([0.2, 1.0, 2.5])
    costs = [
        dp.best_of(dp.ProfileDP.from_pair(pair), dp.Poisson(3).at_least_one()).delta_at(epsilon)
        for pair in (one, turned)
    ]
    assert costs[0] == pytest.approx(costs[1])
    assert one.removed.delta_at(2.5)[()] < 1e-9 < 0.01 < costs[0][2]


def test_a_chord_between_two_bounds_is_named_as_one():
    search = dp.best_of(dp.ApproxDP(epsilon=0.5, delta=1e-7), dp.Geometric(10))
    for delta in np.logspace(-9, -1, 17):
        least = min(bound.epsilon_at(delta) for bound in search.bounds.values())
        below = search.epsilon_at(delta) < least * (1 - 1e-8)
        assert (search.tightest(delta) == CHORD) == below
    assert CHORD in {search.tightest(delta) for delta in np.logspace(-9, -1, 17)}
