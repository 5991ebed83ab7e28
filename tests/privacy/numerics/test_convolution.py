"""Composition: above the exact distribution of the sum, and close to it, as far out as doubles reach."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import fft, stats

from sklearn_dpsearch.privacy import GaussianDP, PureDP, compose
from sklearn_dpsearch.privacy.numerics import basic_mechanisms, convolution, grid_sums
from sklearn_dpsearch.privacy.numerics.basic_mechanisms import delta_of_gaussian, randomized_response
from sklearn_dpsearch.privacy.numerics.convolution import TAIL_MASS, convolve
from sklearn_dpsearch.privacy.numerics.grid_sums import GridPart
from sklearn_dpsearch.privacy.numerics.loss_distribution import LossDistribution, on_grid
from tests.privacy.brute_force import hockey_stick, loss_distribution, random_mechanism

ALL_EPSILONS = np.linspace(-6, 6, 97)


# --- exact compositions -------------------------------------------------------------------------------------------


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


def test_convolution_of_gaussians_is_the_gaussian_of_their_length() -> None:
    ours = convolve([GaussianDP(mu=0.1).pair.removed, GaussianDP(mu=0.3).pair.removed], [91, 1])
    grid = np.linspace(0, 6, 61)
    exact = delta_of_gaussian(1.0, grid)
    assert np.all(ours.delta_at(grid) >= exact)
    assert np.all(ours.delta_at(grid) <= exact * 1.001)


def binomial_curve(epsilon: float, number: int, at: np.ndarray) -> np.ndarray:
    """Profile of so many randomised responses, from logarithms of binomial probabilities."""
    k = np.arange(number + 1)
    truth = 1 / (1 + np.exp(-epsilon))
    log_p = stats.binom.logpmf(k, number, truth)
    losses = (2 * k - number) * epsilon
    return np.array([np.sum(np.exp(log_p) * -np.expm1(np.minimum(e - losses, 0.0))) for e in at])


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "number"), [(0.1, 200), (0.01, 20_000), (1e-3, 10**6)])
def test_composed_randomised_responses_keep_their_digits_far_out(epsilon: float, number: int) -> None:
    ours = convolve([randomized_response(epsilon, 0.0)], [number])
    deviation = epsilon * number**0.5
    at = 0.5 * deviation**2 + deviation * np.array([0.0, 3.0, 5.0, 7.0, 8.0, 9.0])
    exact, found = binomial_curve(epsilon, number, at), ours.delta_at(at)
    assert exact[-1] < 1e-19
    assert np.all(found >= exact * (1 - 1e-9))  # what the logarithms may be off
    assert np.all(found <= 1.01 * exact + 3 * convolution.TAIL_MASS)


@pytest.mark.parametrize("number", [2, 11, pytest.param(1000, marks=pytest.mark.slow)])
def test_composed_randomised_responses_are_above_the_exact_curve_at_any_epsilon(number: int) -> None:
    """Once a bulk without spread had a grid whose indices no double could tell apart: 1.0 became 4e-5."""
    for epsilon in (*np.geomspace(1e-3, 20, 12), 8.882):
        at = number * epsilon * np.array([0.0, 0.25, 0.5, 0.9])
        found, exact = compose(*[PureDP(epsilon=epsilon)] * number).delta_at(at), binomial_curve(epsilon, number, at)
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
    one, _ = basic_mechanisms._subsampled_step(sigma, rate)
    interval = convolution._interval([one], [steps])
    return GridPart(*on_grid(one, interval), steps)


# --- every mass is an upper bound ---------------------------------------------------------------------------------


def lattice(epsilon: float, number: int) -> tuple[GridPart, np.ndarray]:
    """Randomised responses on the grid that they lie on, and the exact masses of their sum from its lowest index on."""
    step = GridPart(*on_grid(randomized_response(epsilon, 0.0), epsilon), number)
    exact = np.zeros(2 * number + 1)
    exact[::2] = stats.binom.pmf(np.arange(number + 1), number, 1 / (1 + np.exp(-epsilon)))
    return step, exact


@pytest.mark.parametrize("tilt", [-0.3, -0.05, 0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize(("low", "high"), [(-400, 400), (-40, 40), (100, 180)])
def test_every_tilt_bounds_every_mass_whatever_goes_around_the_circle(tilt: float, low: int, high: int) -> None:
    step, exact = lattice(0.05, 400)
    bounds = grid_sums.masses_by(tilt, [step], low, high)
    assert np.all(bounds >= exact[low + 400 : high + 401] * (1 - 1e-10))


def test_what_lies_outside_of_the_circle_goes_around_it() -> None:
    one = GaussianDP(mu=1.0).pair.removed
    step = GridPart(*on_grid(one, 0.01), 1)
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


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "tilt"),
    [(1.1, 0.00427, 2000, 0.0), (2.0, 0.01, 5000, 2e-3), (1.0, 1.0, 3, -1e-3), (0.7, 0.05, 500, 1e-3)],
)
def test_what_the_transform_gets_wrong_is_far_below_the_allowance(
    sigma: float, rate: float, steps: int, tilt: float
) -> None:
    """Against the same transform with 64-bit mantissas, at every point."""
    step = sampled(sigma, rate, steps)
    low, high = grid_sums.window([step], TAIL_MASS)
    size = fft.next_fast_len(high - low + 1, real=True)
    short, allowed = grid_sums.power([step], tilt, size)
    square = fft.rfft(step.around(tilt, size).astype(np.longdouble), size)
    power, left = np.ones_like(square), steps
    while left:
        power = power * square if left & 1 else power
        square, left = square * square, left >> 1
    error = float(np.abs(short - fft.irfft(power, size)).max())
    assert 3 * error < allowed < 1e-9 * float(short.max())


def test_tilts_reach_both_ends_of_the_window() -> None:
    """Of a distribution with a heavy tail too: the last bulk is near the end, and neighbours' bulks meet."""
    for sigma, rate, steps in ((1.0, 1e-4, 10_000), (2.0, 0.01, 1000)):
        step = sampled(sigma, rate, steps)
        low, high = grid_sums.window([step], TAIL_MASS)
        tilts = sorted(grid_sums.tilts([step], low, high))
        means, widths = zip(*(grid_sums.bulk_of([step], tilt) for tilt in tilts))
        assert means[0] - 5 * widths[0] <= low
        assert means[-1] + 5 * widths[-1] >= high
        for i in range(len(tilts) - 1):
            assert means[i + 1] - means[i] <= 4 * (widths[i] + widths[i + 1])


# --- grids, tails, infinity ---------------------------------------------------------------------------------------


def test_window_leaves_out_next_to_nothing_in_either_tail() -> None:
    one = GaussianDP(mu=1.0).pair.removed
    for count in (1, 7, 50):
        ours = convolve([one], [count])
        total = ours.infinity + ours.masses.sum()
        assert 1 <= total <= 1 + 1e-10


def test_convolution_with_an_open_secret_promises_nothing() -> None:
    nothing = LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)
    assert convolve([nothing, GaussianDP(mu=1.0).pair.removed], [1, 2]).delta_at(50.0) == 1.0
    nearly = LossDistribution(np.array([0.0, 0.1]), np.array([1e-9, 1e-9]), 1.0 - 1e-9)
    assert convolve([nearly], [10]).delta_at(50.0) == 1.0


def test_composition_too_large_for_the_grid_takes_a_coarser_one_and_stays_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, grid = GaussianDP(mu=1.0).pair.removed, np.linspace(0, 900, 91)
    exact = delta_of_gaussian(1000**0.5, grid)
    fine = convolve([one], [1000]).delta_at(grid)
    monkeypatch.setattr(convolution, "MOST_POINTS", 2**12)
    coarse = convolve([one], [1000])
    assert coarse.losses.size <= 2**12 + 1
    assert np.all(coarse.delta_at(grid) >= exact)
    assert np.all(fine >= exact)
    assert np.all(coarse.delta_at(grid) <= fine + 0.1)


def test_convolution_agrees_with_dp_accounting() -> None:
    theirs = privacy_loss_distribution.from_laplace_mechanism(2.0).self_compose(10)
    one = privacy_loss_distribution.from_laplace_mechanism(2.0)
    from sklearn_dpsearch.privacy import ProfileDP

    ours = convolve([ProfileDP.from_pld(one).pair.removed], [10])
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        assert ours.delta_at(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=5e-3)


def test_convolution_keeps_all_of_infinity_where_masses_exceed_one():
    """A stated pair may hold more than mass 1 (an upper bound near ε = 0); its product is that of the measures."""
    one = LossDistribution(np.array([0.0, 1.0]), np.array([0.9, 0.4]), 0.02)
    other = LossDistribution(np.array([-0.5, 0.5]), np.array([0.5, 0.8]), 0.03)
    composed = convolve([one, other], [1, 1])
    losses = (one.losses[:, None] + other.losses).ravel()
    masses = (one.masses[:, None] * other.masses).ravel()
    infinity = (one.masses.sum() + 0.02) * (other.masses.sum() + 0.03) - one.masses.sum() * other.masses.sum()
    for epsilon in (0.9, 1.2, 1.45, 2.0, 5.0):
        exact = infinity + float(masses @ np.maximum(1 - np.exp(epsilon - losses), 0))
        assert exact <= composed.delta_at(epsilon) < exact + 0.01
