"""Composition against exact sums, in the bulk and far out, and every bound on the way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import fft, stats

from sklearn_dpsearch.privacy import GaussianDP, PureDP, compose
from sklearn_dpsearch.privacy._numerics import basic_mechanisms, convolution, grid_sums
from sklearn_dpsearch.privacy._numerics.basic_mechanisms import (
    delta_of_gaussian,
    randomized_response,
)
from sklearn_dpsearch.privacy._numerics.convolution import TAIL_MASS, convolve, cut_off
from sklearn_dpsearch.privacy._numerics.grid_sums import GridPart
from sklearn_dpsearch.privacy._numerics.loss_distribution import (
    LossDistribution,
    on_grid,
    on_points,
)
from tests.privacy.brute_force import cases, hockey_stick, loss_distribution, random_mechanism, size

ALL_EPSILONS = np.linspace(-6, 6, 241)


# --- exact compositions ---------------------------------------------------------------------------


def composed_exactly(parts, counts) -> tuple[np.ndarray, np.ndarray]:
    """Output probabilities of a product of discrete mechanisms, on both neighbours."""
    p = q = np.ones(1)
    for (one_p, one_q), count in zip(parts, counts):
        for _ in range(count):
            p, q = np.outer(p, one_p).ravel(), np.outer(q, one_q).ravel()
    return p, q


@pytest.mark.slow
def test_convolution_is_above_the_exact_composition_and_close() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        parts = [random_mechanism(rng)[:2] for _ in range(int(rng.integers(1, 3)))]
        counts = [int(rng.integers(1, 4)) for _ in parts]
        p, q = composed_exactly(parts, counts)
        ours = convolve([loss_distribution(*one) for one in parts], counts).delta_at(ALL_EPSILONS)
        exact = np.array([hockey_stick(p, q, epsilon) for epsilon in ALL_EPSILONS])
        assert np.all(ours >= exact - 1e-15)
        assert np.all(ours <= exact + 2e-2)


def binomial_curve(epsilon: float, number: int, at: np.ndarray) -> np.ndarray:
    """Profile of so many randomised responses, from logarithms of binomial probabilities."""
    k = np.arange(number + 1)
    truth = 1 / (1 + np.exp(-epsilon))
    log_p = stats.binom.logpmf(k, number, truth)
    losses = (2 * k - number) * epsilon
    return np.array([np.sum(np.exp(log_p) * -np.expm1(np.minimum(e - losses, 0.0))) for e in at])


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "number"), [(0.1, 200), (0.01, 20_000), (1e-3, 10**6)])
def test_composed_randomised_responses_keep_their_digits_far_out(epsilon: float, number: int):
    ours = convolve([randomized_response(epsilon, 0.0)], [number])
    deviation = epsilon * number**0.5
    at = 0.5 * deviation**2 + deviation * np.array([0.0, 3.0, 5.0, 7.0, 8.0, 9.0])
    exact, found = binomial_curve(epsilon, number, at), ours.delta_at(at)
    assert exact[-1] < 1e-19
    assert np.all(found >= exact * (1 - 1e-9))  # what the logarithms may be off
    assert np.all(found <= 1.01 * exact + 3 * convolution.TAIL_MASS)


@pytest.mark.parametrize("number", [2, 11, pytest.param(1000, marks=pytest.mark.slow)])
def test_composed_randomised_responses_are_above_the_exact_curve_at_any_epsilon(number: int):
    """Once a bulk without spread had a grid whose indices no double could tell apart: 1.0 became
    4e-5."""
    for epsilon in (*np.geomspace(1e-3, 20, 12), 8.882):
        at = number * epsilon * np.array([0.0, 0.25, 0.5, 0.9])
        found = compose(*[PureDP(epsilon=epsilon)] * number).delta_at(at)
        exact = binomial_curve(epsilon, number, at)
        assert np.all(found >= exact * (1 - 1e-9))


@pytest.mark.parametrize(("mu", "number"), [(0.1, 100), (0.02, 2500), (1e-3, 10**6)])
def test_composed_gaussians_keep_their_digits_far_out(mu: float, number: int) -> None:
    ours = convolve([GaussianDP(mu=mu).pair.removed], [number])
    at = np.linspace(0.0, 9.0, 19)
    exact = delta_of_gaussian(mu * number**0.5, at)
    assert exact[-1] < 1e-18
    assert np.all(ours.delta_at(at) >= exact * (1 - 1e-11))
    assert np.all(ours.delta_at(at) <= 1.01 * exact)


def sampled(sigma: float, rate: float, steps: int) -> GridPart:
    """Steps of DP-SGD on the grid of their composition."""
    one = basic_mechanisms._subsampled_gaussian_step(sigma, rate).removed
    interval = convolution._grid_interval([one], [steps])
    return GridPart(*on_grid(one, interval), steps)


# --- every mass is an upper bound -----------------------------------------------------------------


def lattice(epsilon: float, number: int) -> tuple[GridPart, np.ndarray]:
    """Randomised responses on the grid that they lie on, and the exact masses of their sum from its
    lowest index on."""
    step = GridPart(*on_grid(randomized_response(epsilon, 0.0), epsilon), number)
    exact = np.zeros(2 * number + 1)
    exact[::2] = stats.binom.pmf(np.arange(number + 1), number, 1 / (1 + np.exp(-epsilon)))
    return step, exact


@pytest.mark.parametrize("tilt", [-0.3, -0.05, 0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize(("low", "high"), [(-400, 400), (-40, 40), (100, 180)])
def test_every_tilt_bounds_every_mass_whatever_goes_around_the_circle(tilt, low, high):
    step, exact = lattice(0.05, 400)
    bounds = grid_sums.masses_by(tilt, [step], low, high)
    assert np.all(bounds >= exact[low + 400 : high + 401] * (1 - 1e-10))


def test_what_lies_outside_of_the_circle_goes_around_it() -> None:
    step = GridPart(*on_grid(GaussianDP(mu=1.0).pair.removed, 0.01), 1)
    low, high = 0, 60
    exact = step.masses[low - step.first : high - step.first + 1]
    for tilt in (-0.01, 0.0, 0.01):
        assert np.all(grid_sums.masses_by(tilt, [step], low, high) >= exact * (1 - 1e-12))


def test_what_lies_beyond_the_window_goes_to_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "TAIL_MASS", 1e-3)
    ours = convolve([GaussianDP(mu=0.1).pair.removed], [100])
    at = np.linspace(-6, 8, 141)
    assert ours.losses[-1] < 5.0
    assert np.all(ours.delta_at(at) >= delta_of_gaussian(1.0, at))


@pytest.mark.parametrize(("sigma", "rate", "steps", "tilt"), [
    (1.1, 0.00427, 2000, 0.0), (2.0, 0.01, 5000, 2e-3), (1.0, 1.0, 3, -1e-3),
    (0.7, 0.05, 500, 1e-3),
])  # fmt: skip
def test_what_the_transform_gets_wrong_is_far_below_the_allowance(sigma, rate, steps, tilt):
    """Against the same transform with 64-bit mantissas, at every point."""
    step = sampled(sigma, rate, steps)
    low, high = grid_sums.tail_window([step], TAIL_MASS)
    size = fft.next_fast_len(high - low + 1, real=True)
    short, allowed = grid_sums.tilted_power([step], tilt, size)
    square = fft.rfft(step.tilted_on_circle(tilt, size).astype(np.longdouble), size)
    power, left = np.ones_like(square), steps
    while left:
        power = power * square if left & 1 else power
        square, left = square * square, left >> 1
    error = float(np.abs(short - fft.irfft(power, size)).max())
    assert 3 * error < allowed < 1e-9 * float(short.max())


def test_tilts_reach_both_ends_of_the_window() -> None:
    """Of a distribution with a heavy tail too: the last bulk is near the end, and neighbours' bulks
    meet."""
    for sigma, rate, steps in ((1.0, 1e-4, 10_000), (2.0, 0.01, 1000)):
        step = sampled(sigma, rate, steps)
        low, high = grid_sums.tail_window([step], TAIL_MASS)
        tilts = sorted(grid_sums.tilts([step], low, high))
        means, widths = zip(*(grid_sums.bulk_of([step], tilt) for tilt in tilts))
        assert means[0] - 5 * widths[0] <= low
        assert means[-1] + 5 * widths[-1] >= high
        for i in range(len(tilts) - 1):
            assert means[i + 1] - means[i] <= 4 * (widths[i] + widths[i + 1])


# --- grids, tails, infinity -----------------------------------------------------------------------


def test_window_leaves_out_next_to_nothing_in_either_tail() -> None:
    one = GaussianDP(mu=1.0).pair.removed
    for count in (1, 7, 50):
        ours = convolve([one], [count])
        assert 1 <= ours.infinity + ours.masses.sum() <= 1 + 1e-10


def test_convolution_with_an_open_secret_promises_nothing() -> None:
    nothing = LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)
    assert convolve([nothing, GaussianDP(mu=1.0).pair.removed], [1, 2]).delta_at(50.0) == 1.0
    nearly = LossDistribution(np.array([0.0, 0.1]), np.array([1e-9, 1e-9]), 1.0 - 1e-9)
    assert convolve([nearly], [10]).delta_at(50.0) == 1.0


def test_composition_too_large_for_the_grid_takes_a_coarser_one_and_stays_above(monkeypatch):
    one, grid = GaussianDP(mu=1.0).pair.removed, np.linspace(0, 900, 91)
    exact = delta_of_gaussian(1000**0.5, grid)
    fine = convolve([one], [1000]).delta_at(grid)
    monkeypatch.setattr(convolution, "MOST_POINTS", 2**12)
    coarse = convolve([one], [1000])
    assert coarse.losses.size <= 2**12 + 1
    assert np.all(coarse.delta_at(grid) >= exact)
    assert np.all(fine >= exact)
    assert np.all(coarse.delta_at(grid) <= fine + 0.1)


def test_convolution_keeps_all_of_infinity_where_masses_exceed_one():
    """A stated pair may hold more than mass 1 (an upper bound near ε = 0); its product is that of
    the measures."""
    one = LossDistribution(np.array([0.0, 1.0]), np.array([0.9, 0.4]), 0.02)
    other = LossDistribution(np.array([-0.5, 0.5]), np.array([0.5, 0.8]), 0.03)
    composed = convolve([one, other], [1, 1])
    losses = (one.losses[:, None] + other.losses).ravel()
    masses = (one.masses[:, None] * other.masses).ravel()
    infinity = (one.masses.sum() + 0.02) * (
        other.masses.sum() + 0.03
    ) - one.masses.sum() * other.masses.sum()
    for epsilon in (0.9, 1.2, 1.45, 2.0, 5.0):
        exact = infinity + float(masses @ np.maximum(1 - np.exp(epsilon - losses), 0))
        assert exact <= composed.delta_at(epsilon) < exact + 0.01


def with_rare_outcomes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A mechanism whose outcomes are common with tiny losses, or rare with large losses of either
    sign."""
    common, rare = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    p = np.append(rng.dirichlet(np.ones(common)), 10 ** rng.uniform(-9, -2, rare))
    scale = 10 ** rng.uniform(-5, -2)
    losses = np.append(scale * rng.normal(size=common), rng.uniform(-4, 4, rare))
    q = p * np.exp(-losses)
    return p / p.sum(), q / q.sum()


@pytest.fixture
def several_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """No composition fits on one grid."""
    monkeypatch.setattr(convolution, "BULK_POINTS", 2)


def check_bound(parts, counts, p: np.ndarray, q: np.ndarray) -> None:
    """Above the exact curve, and below that of larger losses: with few runs the common part of each
    run weighs much."""
    ours = convolve([loss_distribution(*one) for one in parts], counts).delta_at(ALL_EPSILONS)
    exact = np.array([hockey_stick(p, q, epsilon) for epsilon in ALL_EPSILONS])
    before = np.array(
        [hockey_stick(p, q, epsilon - 0.1 * abs(epsilon) - 0.02) for epsilon in ALL_EPSILONS]
    )
    assert np.all(ours >= exact - 1e-15)
    assert np.all(ours <= before * 1.05 + 1e-8)


@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(60, 15)))
def test_bound_is_above_the_exact_composition_and_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, count = with_rare_outcomes(rng), int(rng.integers(2, 6))
    check_bound([one], [count], *composed_exactly([one], [count]))


@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(30, 8)))
def test_bound_of_several_parts_is_above_their_exact_composition(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    one, other = with_rare_outcomes(rng), with_rare_outcomes(rng)
    check_bound([one, other], [3, 2], *composed_exactly([one, other], [3, 2]))


@pytest.mark.slow
@pytest.mark.usefixtures("several_grids")
@pytest.mark.parametrize("seed", range(size(20, 5)))
def test_compositions_of_compositions_are_above_the_exact_one(seed, monkeypatch):
    monkeypatch.setattr(convolution, "LONG_COMPOSITION", 3)
    rng = np.random.default_rng(200 + seed)
    one, count = with_rare_outcomes(rng), int(rng.integers(4, 8))
    check_bound([one], [count], *composed_exactly([one], [count]))


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
def test_two_scales_of_losses_around_any_mean_are_above_the_exact_composition(mean, small):
    """Up to what a double can tell of the sum."""
    for far, rare in itertools.product((1e-6, 1e-2, 1.0, 50.0, 1e4), (1e-9, 1e-4, 0.05)):
        losses, places = np.unique(
            [mean - small, mean + small, mean + far, mean - far], return_inverse=True
        )
        masses = np.bincount(places, [0.5 - rare, 0.5 - rare, rare, rare])
        sums, exact = np.zeros(1), np.ones(1)
        for _ in range(3):
            sums, exact = np.add.outer(sums, losses).ravel(), np.outer(exact, masses).ravel()
        epsilons = 3 * mean + np.array(
            [-far, -small, 0.0, small, far / 2, far, 1e-3, -1e-3, -3 * mean]
        )
        reach = epsilons[:, None] - sums + 1e-11 * max(1.0, abs(3 * mean))
        ours = convolve([LossDistribution(losses, masses)], [3]).delta_at(epsilons)
        assert np.all(ours >= -np.expm1(np.minimum(reach, 0.0)) @ exact * (1 - 1e-6) - 1e-20)


def test_points_are_around_losses_that_rounding_cannot_tell_apart() -> None:
    one = LossDistribution(np.array([1000.0, np.nextafter(1000.0, 2000.0)]), np.array([0.5, 0.5]))
    thinned = convolution._spread_on_growing_gaps(one, 1000.0, 0.0)
    assert np.all(np.diff(thinned.losses) > 0)
    assert np.all(np.abs(thinned.losses - 1000.0) < 1e-9)
    epsilons = 1000.0 + np.array([-700.0, -1.0, -1e-6])
    assert np.all(thinned.delta_at(epsilons) >= one.delta_at(epsilons) * (1 - 1e-12))


# --- one level ------------------------------------------------------------------------------------


def test_what_the_transforms_get_wrong_is_below_the_allowance() -> None:
    """Against direct sums of one, two and three losses."""
    start = GridPart(-2, np.array([0.1, 0.2, 0.4, 0.2, 0.1]), 1)
    jump = GridPart(30, 1e-3 * np.array([0.5, 0.0, 0.3, 0.2]), 3)
    once = np.convolve(start.masses, jump.masses)
    twice = np.convolve(once, jump.masses)
    thrice = np.convolve(np.convolve(once, jump.masses), jump.masses)
    exact = np.zeros(200)
    for first, masses, ways in ((28, once, 3), (58, twice, 3), (88, thrice, 1)):
        exact[first : first + masses.size] += ways * masses
    for tilt in (-0.2, 0.0, 0.1, 0.3):
        bounds = convolution._masses_with_jumps(tilt, start, [jump], 0, 199)
        untilt = np.exp(
            start.log_moment(tilt)
            + convolution._log_jump_rate([jump], tilt)
            - tilt * np.arange(200)
        )
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
    step = basic_mechanisms._subsampled_gaussian_step(0.5, 1e-6).removed
    cut = cut_off([step], [10_000])
    jumps = [pld for level in cut.levels for pld, _ in level.jumps]
    assert len(jumps) >= 2
    assert cut.bulk[0].losses.size + sum(pld.losses.size for pld in jumps) == step.losses.size
    for level in cut.levels:
        for pld, _ in level.jumps:
            assert np.min(np.abs(pld.losses)) > 0.9 * convolution.RATIO * level.interval
