"""The testing region on a grid, and sums of hinges: never above, or below, what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.convolution import convolve
from sklearn_dpsearch.privacy._selection.testing_region import (
    AffineLines,
    Nodes,
    cell_lines,
    lower_edge,
    nodes,
    slope_ratio,
    upper_envelope,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import loss_distribution, random_distribution, random_mechanism


@pytest.mark.slow
def test_hinges_are_the_upper_envelope_of_their_lines() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 30))
        lines = AffineLines(rng.random(n) * 10, rng.random(n) * (rng.random(n) > 0.1))
        hinges = upper_envelope(lines)
        for z in np.append(0.0, rng.exponential(5.0, 20)):
            envelope = max(0.0, float(np.max(lines.height - z * lines.fall)))
            value = float(np.sum(hinges.weights * np.maximum(1 - z / hinges.ends, 0.0)))
            assert value == pytest.approx(envelope, rel=1e-9, abs=1e-12)


DISTRIBUTIONS = [
    dp.Geometric(10), dp.Logarithmic(300), dp.Poisson(5), dp.Fixed(2), dp.Fixed(20),
    dp.FromPMF([0.1, 0.0, 0.4, 0.5]),
]  # fmt: skip


def random_nodes(rng: np.random.Generator, number: int = 400) -> Nodes:
    """Points near 0, near 1 and between, with their complements."""
    small = np.exp(rng.uniform(-38, np.log(0.5), number))
    return Nodes(np.append(small, 1 - small), np.append(1 - small, small))


def largest_line(one, distribution: dp.CountDistribution, z: np.ndarray) -> np.ndarray:
    parts = cell_lines(one, distribution, nodes())
    return np.max([np.max(part.height - z[:, None] * part.fall, axis=1) for part in parts], axis=0)


# --- nodes ----------------------------------------------------------------------------------------


def test_nodes_cover_the_unit_interval_in_order_and_know_their_complements() -> None:
    grid = nodes()
    assert (grid.q[0], grid.u[0], grid.q[-1], grid.u[-1]) == (0.0, 1.0, 1.0, 0.0)
    assert np.all(np.diff(grid.q) >= 0)
    assert np.all(np.diff(grid.u) <= 0)
    assert np.all(grid.gaps > 0)
    assert grid.q + grid.u == pytest.approx(np.ones(grid.q.size), abs=3e-16)
    assert np.min(grid.u[grid.u > 0]) == pytest.approx(1e-18)


# --- lower edge -----------------------------------------------------------------------------------


def test_lower_edge_is_just_below_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        one = random_mechanism(rng)
        at = random_nodes(rng, 50)
        edge, slope = lower_edge(loss_distribution(one.p, one.q), at)
        exact = brute_force.lower_edge(one, at.q)
        rounding = 4e-15 + 4e-16 * slope  # of q itself, near 1
        assert np.all(edge.q <= exact + rounding)
        assert np.all(edge.q >= exact * (1 - 1e-9) - 2e-12 * (1 + slope))


def test_lower_edge_keeps_its_digits_near_both_ends() -> None:
    """A Gaussian pair: q_min = Φ(Φ⁻¹(q) − μ), to a part in a thousand from 1e-15 to 1 − 1e-15."""
    from scipy import special

    small = np.geomspace(1e-15, 0.5, 60)
    one = dp.GaussianDP(mu=1.0).pair.removed
    edge, _ = lower_edge(one, Nodes(small, 1 - small))
    assert edge.q == pytest.approx(special.ndtr(special.ndtri(small) - 1), rel=2e-3)
    edge, _ = lower_edge(one, Nodes(1 - small, small))
    assert edge.u == pytest.approx(special.ndtr(special.ndtri(small) + 1), rel=2e-3)


@pytest.mark.slow
def test_slope_of_the_lower_edge_is_a_tangent_to_it() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        one = random_mechanism(rng)
        at = random_nodes(rng, 30)
        edge, slope = lower_edge(loss_distribution(one.p, one.q), at)
        for q in rng.random(20):
            tangent = edge.q + slope * (q - at.q)
            assert np.all(
                tangent <= brute_force.lower_edge(one, np.array([q])) + 4e-15 + 4e-16 * slope
            )


@pytest.mark.parametrize("mu", [1.0, 6.0, 9.0])
def test_lower_edge_of_a_composed_pair_is_safe_where_its_slope_is_enormous(mu: float) -> None:
    """With losses of −40 a sum of probabilities that is wrong by 1e-15 would move the edge from 0
    to 1."""
    from scipy import special

    half = dp.GaussianDP(mu=mu / 2**0.5).pair.removed
    small = np.geomspace(1e-18, 0.5, 400)
    edge, _ = lower_edge(convolve([half], [2]), Nodes(1 - small, small))
    exact_complement = special.ndtr(special.ndtri(small) + mu)
    assert np.all(edge.u >= exact_complement * (1 - 1e-12))


# --- lines ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lines_are_above_what_they_bound_at_random_points() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        at = random_nodes(rng, 200)
        edge = brute_force.lower_edge(one, at.q)
        with np.errstate(divide="ignore"):
            height = np.exp(distribution.log_slope(at.q, at.u))
            fall = np.exp(distribution.log_slope(edge, 1 - edge))
        z = np.exp(rng.uniform(-5, 5, 30))
        exact = np.maximum(np.max(height - z[:, None] * fall, axis=1), 0.0)
        assert np.all(
            np.maximum(largest_line(loss_distribution(one.p, one.q), distribution, z), 0)
            >= exact * (1 - 1e-12)
        )


@pytest.mark.parametrize("delta", [1e-6, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_lines_are_above_the_kink_where_open_failures_end(delta, distribution):
    """q_min is 0 up to q = δ, a point inside a cell: for large z the value there, f'(δ) − z·f'(0),
    is the largest."""
    one = dp.ApproxDP(epsilon=1.0, delta=delta).pair.removed
    for z in (1.0, 1e2, 1e6):
        exact = distribution.pgf_slope(delta) - z * distribution.pgf_slope(0.0)
        assert largest_line(one, distribution, np.array([z]))[0] >= exact


def test_slope_ratio_is_above_the_ratio_inside_each_cell() -> None:
    rng = np.random.default_rng(3)
    for base, distribution in [
        (dp.PureDP(epsilon=1.0), dp.Geometric(10)),
        (dp.GaussianDP(mu=0.5), dp.Poisson(5)),
        (dp.PureDP(epsilon=3.0), dp.Fixed(4)),
    ]:
        one, grid = base.pair.removed, nodes(spacing=1.05)
        bound = slope_ratio(one, distribution, grid)
        for _ in range(20):
            share = rng.random(grid.q.size - 1)
            inside = Nodes(
                grid.q[:-1] + share * np.diff(grid.q), grid.u[:-1] + share * np.diff(grid.u)
            )
            edge, _ = lower_edge(one, inside)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = distribution.log_slope(inside.q, inside.u) - distribution.log_slope(
                    edge.q, edge.u
                )
            told = np.isfinite(ratio)
            assert np.all(bound[told] >= ratio[told] - 1e-9)


@pytest.mark.parametrize("base", [
    dp.GaussianDP(mu=0.3),
    dp.DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=200),
    dp.PureDP(epsilon=50.0),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_lines_of_heavy_and_light_distributions_are_finite_numbers(base: dp.Guarantee) -> None:
    for distribution in (dp.Logarithmic(1e6), dp.Geometric(1e6), dp.Fixed(1000), dp.Poisson(1e4)):
        for one in base.pair.directions:
            for part in cell_lines(one, distribution, nodes()):
                assert np.all(np.isfinite(part.height))
                assert np.all(np.isfinite(part.fall))
                assert np.all(part.fall >= 0)
