"""Theorem 3: never below the exact loss of any small mechanism, and reached by some score."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import mpmath
import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.loss_distribution import LossDistribution
from sklearn_dpsearch.privacy._selection import threshold
from sklearn_dpsearch.privacy._selection.published_bounds import renyi_threshold
from sklearn_dpsearch.privacy._selection.threshold import (
    TheoremThree,
    UntilAbove,
    until_above,
    until_above_pure,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import Mechanism, Violation, hockey_stick, random_mechanism

DELTA = 1e-6
BASE = dp.GaussianDP(mu=0.2**0.5)


@pytest.fixture
def coarse_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells ten times as wide: a bound that is a little larger, computed much faster."""
    monkeypatch.setattr(threshold, "STEP_X", 0.5)
    monkeypatch.setattr(threshold, "STEP_Y", 0.15)


def release(side: np.ndarray, accepted: np.ndarray, p: float) -> np.ndarray:
    """Distribution of the release: "none", then each outcome; ``accepted`` holds their chances of
    acceptance."""
    kept = np.append(p, (1 - p) * side * accepted)
    return kept / kept.sum()


def acceptances(rng: np.random.Generator, size: int) -> list[np.ndarray]:
    """Every threshold on every order of a few outcomes is a set of accepted outcomes; ties are
    split by coins."""
    sets = [np.array(one, dtype=float) for one in product((0.0, 1.0), repeat=size)]
    kept = sets if size <= 4 else [sets[int(i)] for i in rng.integers(len(sets), size=16)]
    return [*kept, *rng.random((6, size))]


def check(guarantee: dp.Guarantee, one: Mechanism, accepted: np.ndarray, p: float) -> float:
    """Raise ``Violation`` if the release loses more than ``guarantee`` says; return the tightest δ
    ratio."""
    tightest = 0.0
    for direction in (one, one.reversed):
        ours, theirs = (release(side, accepted, p) for side in (direction.p, direction.q))
        epsilons = brute_force.interesting_epsilons(ours, theirs)
        stated = guarantee.delta_at(epsilons)
        exact = np.array([hockey_stick(ours, theirs, epsilon) for epsilon in epsilons])
        if np.any(exact > stated + 4e-15 * (1 + np.exp(epsilons))):
            worst = int(np.argmax(exact - stated))
            raise Violation(
                f"delta({epsilons[worst]}) is {exact[worst]}, stated {stated[worst]}: {one}, "
                f"{accepted}, {p}"
            )
        told = exact > 1e-9
        tightest = max([tightest, *(exact[told] / stated[told])])
    return tightest


def random_stop(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(1e-3), np.log(0.9))))


def check_many(number: int, seed: int) -> float:
    """Theorem 3 for the exact pair of ``number`` random mechanisms; the tightest ratio met."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(number):
        one, p = random_mechanism(rng), random_stop(rng)
        one_run = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        bound = TheoremThree(one_run=one_run, stop_probability=p)
        parts = acceptances(rng, one.p.size)
        tightest = max([tightest, *(check(bound, one, accepted, p) for accepted in parts)])
    return tightest


# --- oracle ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_bound_is_never_below_the_exact_loss(coarse_cells: None, seed: int) -> None:
    assert check_many(brute_force.size(2500, 25), seed) <= 1.0 + 1e-9


@pytest.mark.slow
def test_bound_with_fine_cells_is_never_below_the_exact_loss_and_is_met() -> None:
    assert 0.98 < check_many(brute_force.size(200, 8), seed=5) <= 1.0 + 1e-9


def attained(one: Mechanism, p: float, epsilon: float) -> float:
    """The largest δ over scores that accept the outcomes of highest and of lowest likelihood
    ratio."""
    ratio = np.argsort(one.q / np.maximum(one.p, 1e-300))
    corners = np.concatenate([np.cumsum(one.p[ratio]), np.cumsum(one.p[ratio[::-1]])])
    cuts = np.unique(
        np.concatenate(
            [np.geomspace(1e-7, 0.1, 250), np.linspace(0.1, 1.0, 250), np.minimum(corners, 1.0)]
        )
    )
    q_min, q_max = brute_force.lower_edge(one, cuts), 1.0 - brute_force.lower_edge(one, 1.0 - cuts)
    e, r = np.append(0.0, cuts)[:, None], np.append(0.0, cuts)[None, :]
    low = np.append(0.0, q_min)[:, None]
    high = np.append(max(1.0 - one.q[one.p > 0].sum(), 0.0), q_max)[None, :]
    s, other = p + (1 - p) * (e + r), p + (1 - p) * (low + high)
    values = (1 - p) * (e / s - np.exp(epsilon) * low / other) + p * np.maximum(
        1 / s - np.exp(epsilon) / other, 0.0
    )
    return float(np.max(np.where(e + r <= 1.0 + 1e-12, values, 0.0)))


@pytest.mark.slow
def test_bound_is_reached_by_a_score_that_accepts_the_highest_and_the_lowest_ratios() -> None:
    rng = np.random.default_rng(6)
    for _ in range(brute_force.size(60, 4)):
        one, p = random_mechanism(rng), random_stop(rng)
        one_run = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        bound = TheoremThree(one_run=one_run, stop_probability=p)
        for epsilon in (0.0, 0.2, 0.7, 1.5):
            best = max(attained(one, p, epsilon), attained(one.reversed, p, epsilon))
            stated = bound.delta_at(epsilon)
            assert best <= stated + 1e-12
            shifted = max(attained(side, p, epsilon - 1e-3) for side in (one, one.reversed))
            assert stated <= shifted * 1.01 + 1e-7  # within 0.001 in ε and 1 % in δ


@pytest.mark.slow
def test_bound_holds_for_a_base_known_only_by_its_largest_loss(coarse_cells: None) -> None:
    rng = np.random.default_rng(7)
    for _ in range(brute_force.size(600, 20)):
        one, p = random_mechanism(rng, finite_loss=True), random_stop(rng)
        loss = max(brute_force.largest_loss(one.p, one.q), brute_force.largest_loss(one.q, one.p))
        bound = until_above(dp.PureDP(epsilon=loss * (1 + 1e-12)), p)
        for accepted in acceptances(rng, one.p.size):
            check(bound, one, accepted, p)
            ours, theirs = (release(side, accepted, p) for side in (one.p, one.q))
            told = ours > 0
            assert np.max(np.abs(np.log(ours[told] / theirs[told]))) <= bound.epsilon_at(0.0) + 1e-9


@dataclass(frozen=True)
class OnePoint:
    """What an ε-DP mechanism says of itself by its profile at ε alone."""

    epsilon: float

    def __call__(self, epsilon: np.ndarray) -> np.ndarray:
        return np.where(epsilon >= self.epsilon, 0.0, 1.0)


@pytest.mark.parametrize("loss", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_bound_holds_for_a_pair_whose_masses_exceed_one(loss: float, p: float) -> None:
    base = dp.ProfileDP(profile=OnePoint(loss))
    assert base.pair.removed.masses.sum() > 1.05
    epsilon = np.linspace(0.0, 2 * loss, 21)
    # some mechanism has it
    least = TheoremThree(one_run=dp.PureDP(epsilon=loss), stop_probability=p).delta_at(epsilon)
    assert np.all(until_above(base, p).delta_at(epsilon) >= least * (1 - 1e-3))
    assert np.all(until_above(base, p).pair.delta_at(epsilon) >= least * (1 - 1e-3))


@pytest.mark.slow
def test_published_curve_is_above_the_exact_divergence_and_profile(coarse_cells: None) -> None:
    rng = np.random.default_rng(9)
    orders = np.array([1.2, 1.5, 2.0, 3.0, 9.0, 33.0])
    for _ in range(brute_force.size(300, 12)):
        one, p = random_mechanism(rng, finite_loss=True), random_stop(rng)
        bound = renyi_threshold(brute_force_curve(one), p)
        for accepted in acceptances(rng, one.p.size)[::3]:
            check(bound, one, accepted, p)
            for direction in (one, one.reversed):
                ours, theirs = (release(side, accepted, p) for side in (direction.p, direction.q))
                kept = (ours > 0) & (theirs > 0)
                exact = [brute_force.renyi(ours[kept], theirs[kept], order) for order in orders]
                assert np.all(np.array(exact) <= bound.renyi(orders) + 1e-9)


def test_published_curve_is_the_smallest_for_weak_bases_and_long_searches() -> None:
    """Which is why it is in the accountant."""
    assert until_above(dp.ZCDP(rho=0.01), 1e-6).tightest(DELTA) == "PS22 Proposition 15"


def brute_force_curve(one: Mechanism) -> dp.RenyiDP:
    small, large = 1 + np.geomspace(0.05, 8, 60), np.geomspace(65, 4096, 40)
    orders = np.unique(np.concatenate([small, np.arange(2, 65), large]))
    worst = []
    for order in orders:
        both = np.log(one.p) - np.log(one.q)
        cases = ((one.p, 1), (one.q, -1))
        moments = [np.logaddexp.reduce(np.log(p) + (order - 1) * s * both) for p, s in cases]
        worst.append(max(moments) / (order - 1))
    return dp.RenyiDP(orders=orders, epsilons=np.maximum(worst, 0.0) + 1e-12)


@pytest.mark.slow
def test_pair_of_the_search_is_above_the_release_at_every_real_epsilon(coarse_cells: None) -> None:
    rng = np.random.default_rng(10)
    grid = np.linspace(-5, 5, 41)
    for _ in range(brute_force.size(150, 10)):
        one, p = random_mechanism(rng), random_stop(rng)
        pair = until_above(dp.ProfileDP.from_pair(brute_force.exact_pair(one)), p).pair
        for accepted in acceptances(rng, one.p.size)[::4]:
            for stated, part in ((pair.removed, one), (pair.added, one.reversed)):
                ours, theirs = (release(side, accepted, p) for side in (part.p, part.q))
                exact = np.array([hockey_stick(ours, theirs, epsilon) for epsilon in grid])
                assert np.all(stated.delta_at(grid) >= exact - 1e-12)


# --- the checker can fail -------------------------------------------------------------------------


def _half_of_the_lowest_ratios(one: LossDistribution, p: float) -> threshold.Polygon:
    """R may hold at most half of its worst probability on the other side."""
    here, there = UPPER_POLYGON(one, p)
    return threshold.Polygon(here, np.maximum(0.5 * there, np.minimum(here, there)))


UPPER_POLYGON = threshold.upper_polygon
BROKEN = {
    "conditioning forgotten but for its scale": (
        "release_curve",
        lambda one, p: LossDistribution(one.losses, one.masses / p * (1 - p), one.infinity / p),
    ),
    "one run alone": ("release_curve", lambda one, p: one),
    "half of the lowest ratios": ("upper_polygon", _half_of_the_lowest_ratios),
}


@pytest.mark.parametrize(("name", "broken"), BROKEN.values(), ids=BROKEN)
def test_a_broken_accountant_is_caught(coarse_cells, monkeypatch, name, broken):
    monkeypatch.setattr(threshold, name, broken)
    with pytest.raises(Violation):
        check_many(60, seed=1)


# --- the exact pure form --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("p", [1e-6, 0.01, 0.1, 0.6])
def test_pure_form_is_the_supremum_over_the_testing_region_and_less_than_twice_the_loss(epsilon, p):
    t = np.append(np.linspace(0, 1, 200_001), 1 / (1 + np.exp(epsilon)))
    other = np.minimum(np.exp(epsilon) * t, 1 - np.exp(-epsilon) * (1 - t))
    brute = epsilon + float(np.max(np.log((p + (1 - p) * other) / (p + (1 - p) * t))))
    assert brute - 1e-12 <= until_above_pure(epsilon, p) <= brute + 1e-9
    assert epsilon < until_above_pure(epsilon, p) < 2 * epsilon


@pytest.mark.parametrize("p", [1e-3, 0.1, 0.5])
def test_pure_form_is_reached_by_a_mechanism_with_four_outcomes(p: float) -> None:
    """A sliver of odds e^ε, the rest of those odds, and its mirror image; the score accepts sliver
    and mirror."""
    truth, sliver = 1 / (1 + np.exp(-1.0)), 1e-9
    one_side = np.array([sliver, truth - sliver, 1 - truth])
    other = one_side * np.exp([-1.0, -1.0, 1.0])
    ours, theirs = (release(side, np.array([1.0, 0.0, 1.0]), p) for side in (one_side, other))
    assert np.log(ours[1] / theirs[1]) == pytest.approx(until_above_pure(1.0, p), abs=1e-6)


def test_pure_form_is_never_below_many_digits_and_close() -> None:
    rng = np.random.default_rng(11)
    for _ in range(400):
        epsilon = 10 ** rng.uniform(-14, 2.7)
        p = rng.choice([10 ** -rng.uniform(0, 100), 1 - 10 ** -rng.uniform(1, 15)])
        with mpmath.workdps(260):
            grown = mpmath.exp(epsilon)
            exact = epsilon + mpmath.log((grown + p) / (1 + p * grown))
            actual = until_above_pure(float(epsilon), float(p))
            assert exact <= actual <= exact * (1 + mpmath.mpf(1e-14))


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gaussian_base_costs_what_the_documentation_says() -> None:
    search = until_above(BASE, 0.1)
    assert isinstance(search, UntilAbove)
    assert search.epsilon_at(DELTA) <= 2.535
    assert search.tightest(DELTA) == "Theorem 3"
    assert 3.40 < search.bounds["PS22 Proposition 15"].epsilon_at(DELTA) <= 3.49


def gaussian_witness(mu: float, p: float, epsilon: float) -> float:
    """δ of the Gaussian mechanism with a score that accepts both tails of the likelihood ratio: a
    lower bound."""
    from scipy.special import ndtr

    upper = np.linspace(-2, 8, 601)[:, None]  # E: z > upper under N(0, 1) against N(−μ, 1)
    lower = np.linspace(-6, 2, 401)[None, :]  # R: z < lower
    e, low, r, high = ndtr(-upper), ndtr(-upper - mu), ndtr(lower), ndtr(lower + mu)
    s, other = p + (1 - p) * (e + r), p + (1 - p) * (low + high)
    values = (1 - p) * (e / s - np.exp(epsilon) * low / other) + p * np.maximum(
        1 / s - np.exp(epsilon) / other, 0.0
    )
    return float(np.max(np.where(lower <= upper, values, 0.0)))


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.1, 0.2**0.5, 1.0])
@pytest.mark.parametrize("p", [1e-3, 0.1])
def test_gaussian_base_lies_between_what_a_score_reaches_and_the_published_bounds(mu, p):
    search = until_above(dp.GaussianDP(mu=mu), p)
    for delta in (1e-2, DELTA):
        epsilon = search.epsilon_at(delta)
        assert gaussian_witness(mu, p, epsilon) <= delta * (1 + 1e-9)
        assert gaussian_witness(mu, p, epsilon * 0.996 - 1e-4) > delta
        assert all(epsilon <= bound.epsilon_at(delta) for bound in search.bounds.values())


# --- limits and properties ------------------------------------------------------------------------


def test_no_promise_stays_none() -> None:
    assert until_above(dp.NonPrivate(), 0.1).epsilon_at(0.5) == np.inf


@pytest.mark.slow
def test_direction_that_loses_more_counts() -> None:
    search = until_above(dp.DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=20), 0.1)
    assert search.pair.removed is not search.pair.added
    assert search.delta_at(1.0) == pytest.approx(float(search.pair.delta_at(1.0)), rel=1e-4)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, np.nan])
def test_stop_probability_has_to_be_one(p: float) -> None:
    with pytest.raises(ValueError, match="stop_probability"):
        until_above(BASE, p)


def test_neighbours_of_the_base_are_those_of_the_search() -> None:
    one_run = dp.PureDP(epsilon=1.0, neighboring="replace_one")
    assert until_above(one_run, 0.2).neighboring == "replace_one"
