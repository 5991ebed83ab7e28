"""Rare large losses on grids of their own: above the exact composition, and close to it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sklearn_dpsearch.privacy.numerics import basic_mechanisms, convolution
from sklearn_dpsearch.privacy.numerics.convolution import convolve, cut_off
from sklearn_dpsearch.privacy.numerics.grid_sums import GridPart
from sklearn_dpsearch.privacy.numerics.loss_distribution import LossDistribution, on_points
from tests.privacy.brute_force import cases, hockey_stick, loss_distribution, size

ALL_EPSILONS = np.linspace(-6, 6, 241)


def with_rare_outcomes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A mechanism whose outcomes are common with tiny losses, or rare with large losses of either sign."""
    common, rare = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    p = np.append(rng.dirichlet(np.ones(common)), 10 ** rng.uniform(-9, -2, rare))
    scale = 10 ** rng.uniform(-5, -2)
    losses = np.append(scale * rng.normal(size=common), rng.uniform(-4, 4, rare))
    q = p * np.exp(-losses)
    return p / p.sum(), q / q.sum()


def composed(one: tuple[np.ndarray, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    p = q = np.ones(1)
    for _ in range(count):
        p, q = np.outer(p, one[0]).ravel(), np.outer(q, one[1]).ravel()
    return p, q


@pytest.fixture
def several_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """No composition fits on one grid."""
    monkeypatch.setattr(convolution, "BULK_POINTS", 2)


def check_bound(parts, counts, p: np.ndarray, q: np.ndarray) -> None:
    """Above the exact curve, and below that of larger losses: with few runs the common part of each run weighs much."""
    ours = convolve([loss_distribution(*one) for one in parts], counts).delta_at(ALL_EPSILONS)
    exact = np.array([hockey_stick(p, q, epsilon) for epsilon in ALL_EPSILONS])
    before = np.array([hockey_stick(p, q, epsilon - 0.1 * abs(epsilon) - 0.02) for epsilon in ALL_EPSILONS])
    assert np.all(ours >= exact - 1e-15)
    assert np.all(ours <= before * 1.05 + 1e-8)


@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(60, 15)))
def test_bound_is_above_the_exact_composition_and_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, count = with_rare_outcomes(rng), int(rng.integers(2, 6))
    check_bound([one], [count], *composed(one, count))


@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(30, 8)))
def test_bound_of_several_parts_is_above_their_exact_composition(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    one, other = with_rare_outcomes(rng), with_rare_outcomes(rng)
    both = [np.outer(x, y).ravel() for x, y in zip(composed(one, 3), composed(other, 2))]
    check_bound([one, other], [3, 2], both[0], both[1])


@pytest.mark.slow
@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(20, 5)))
def test_compositions_of_compositions_are_above_the_exact_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "LONG", 3)
    rng = np.random.default_rng(200 + seed)
    one, count = with_rare_outcomes(rng), int(rng.integers(4, 8))
    check_bound([one], [count], *composed(one, count))


@pytest.mark.usefixtures("several_grids")
def test_common_losses_may_be_so_large_that_their_other_mass_is_below_all_floats() -> None:
    """e^{-800} is 0 for a processor, and the rare loss is relative to its logarithm."""
    losses, masses = 800.0 + np.array([-1e-3, 1e-3, 4.0]), np.array([0.5, 0.5 - 1e-4, 1e-4])
    sums, exact = np.zeros(1), np.ones(1)
    for _ in range(3):
        sums, exact = np.add.outer(sums, losses).ravel(), np.outer(exact, masses).ravel()
    epsilons = 2400.0 + np.linspace(-1, 12.5, 136)
    at = [exact @ np.maximum(0.0, -np.expm1(epsilon - sums)) for epsilon in epsilons]
    ours = convolve([LossDistribution(losses, masses)], [3]).delta_at(epsilons)
    assert np.all(ours >= np.array(at) * (1 - 1e-12))
    assert ours[-1] < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("mean", cases([0.0, 10.0, 1e3, 1e5, -10.0, -1e3], 0, 3, 5))
@pytest.mark.parametrize("small", cases([1e-1, 1e-4, 1e-7, 1e-10, 1e-12, 0.0], 0, 3, 5))
def test_two_scales_of_losses_around_any_mean_are_above_the_exact_composition(mean: float, small: float) -> None:
    """Up to what a double can tell of the sum."""
    for far, rare in itertools.product((1e-6, 1e-2, 1.0, 50.0, 1e4), (1e-9, 1e-4, 0.05)):
        losses, places = np.unique([mean - small, mean + small, mean + far, mean - far], return_inverse=True)
        masses = np.bincount(places, [0.5 - rare, 0.5 - rare, rare, rare])
        sums, exact = np.zeros(1), np.ones(1)
        for _ in range(3):
            sums, exact = np.add.outer(sums, losses).ravel(), np.outer(exact, masses).ravel()
        epsilons = 3 * mean + np.array([-far, -small, 0.0, small, far / 2, far, 1e-3, -1e-3, -3 * mean])
        reach = epsilons[:, None] - sums + 1e-11 * max(1.0, abs(3 * mean))
        ours = convolve([LossDistribution(losses, masses)], [3]).delta_at(epsilons)
        assert np.all(ours >= -np.expm1(np.minimum(reach, 0.0)) @ exact * (1 - 1e-6) - 1e-20)


def test_points_are_around_losses_that_rounding_cannot_tell_apart() -> None:
    one = LossDistribution(np.array([1000.0, np.nextafter(1000.0, 2000.0)]), np.array([0.5, 0.5]))
    thinned = convolution._thinned(one, 1000.0, 0.0)
    assert np.all(np.diff(thinned.losses) > 0)
    assert np.all(np.abs(thinned.losses - 1000.0) < 1e-9)
    epsilons = 1000.0 + np.array([-700.0, -1.0, -1e-6])
    assert np.all(thinned.delta_at(epsilons) >= one.delta_at(epsilons) * (1 - 1e-12))


# --- one level ----------------------------------------------------------------------------------------------------


def test_what_the_transforms_get_wrong_is_below_the_allowance() -> None:
    """Against direct sums of one, two and three losses."""
    start = GridPart(-2, np.array([0.1, 0.2, 0.4, 0.2, 0.1]), 1)
    jump = GridPart(30, 1e-3 * np.array([0.5, 0.0, 0.3, 0.2]), 3)
    once = np.convolve(start.masses, jump.masses)
    twice, thrice = np.convolve(once, jump.masses), np.convolve(np.convolve(once, jump.masses), jump.masses)
    exact = np.zeros(200)
    for first, masses, ways in ((28, once, 3), (58, twice, 3), (88, thrice, 1)):
        exact[first : first + masses.size] += ways * masses
    for tilt in (-0.2, 0.0, 0.1, 0.3):
        bounds = convolution._masses_by(tilt, start, [jump], 0, 199)
        untilt = np.exp(start.log_moment(tilt) + convolution._log_rate([jump], tilt) - tilt * np.arange(200))
        assert np.all(bounds >= exact * (1 - 1e-12))
        assert np.all(bounds <= exact * (1 + 1e-9) + 1e-13 * untilt)


@pytest.mark.slow
def test_losses_rarer_than_the_tails_are_infinite() -> None:
    """Where both tails have all sums with a rare loss, none of them is put anywhere else."""
    step = LossDistribution(np.array([-3.0, -1e-4, 1e-4]), np.array([1e-27, 0.5, 0.5]))
    composed = convolve([step], [500])
    assert np.ptp(composed.losses) < 1.0
    assert np.isfinite(composed.delta_at(0.01))
    for sigma, rate, steps in ((0.6, 1e-6, 10**5), (0.4, 1e-7, 10)):
        for pld in basic_mechanisms.dpsgd_pair(sigma, rate, steps, False).directions:
            assert np.all(np.isfinite(pld.masses))
            assert np.max(np.abs(pld.losses)) < 100


def test_points_keep_both_masses() -> None:
    rng = np.random.default_rng(0)
    one = LossDistribution(np.sort(rng.normal(size=50)), rng.dirichlet(np.ones(50)))
    points = np.sort(np.append(rng.normal(size=30), [-6.0, 6.0]))
    masses = on_points(one, points)
    assert masses.sum() == pytest.approx(1.0, rel=1e-12)
    assert masses @ np.exp(-points) == pytest.approx(one.masses @ np.exp(-one.losses), rel=1e-12)
    spread = LossDistribution(points, masses)
    assert np.all(spread.delta_at(ALL_EPSILONS) >= one.delta_at(ALL_EPSILONS) * (1 - 1e-9) - 1e-15)


def test_every_loss_is_in_the_bulk_or_on_one_level() -> None:
    step, _ = basic_mechanisms._subsampled_step(0.5, 1e-6)
    cut = cut_off([step], [10_000])
    jumps = [pld for level in cut.levels for pld, _ in level.jumps]
    assert len(jumps) >= 2
    assert cut.bulk[0].losses.size + sum(pld.losses.size for pld in jumps) == step.losses.size
    for level in cut.levels:
        for pld, _ in level.jumps:
            assert np.min(np.abs(pld.losses)) > 0.9 * convolution.RATIO * level.interval
