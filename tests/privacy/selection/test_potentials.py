"""Theorem 5: any potential bounds the loss of any order; a good one is close to a certificate near
ε = 0."""

from __future__ import annotations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._selection import potentials
from sklearn_dpsearch.privacy._selection.potentials import (
    Mesh,
    bound_by_potential,
    fine_mesh,
    mesh_of,
    potential_basis,
    potential_values,
    theorem_5,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import Violation, check, random_distribution, random_mechanism

EPSILONS = (0.0, 0.2, 0.7, 1.5)


def check_many(cases: int, seed: int) -> float:
    """The bound by a random potential, and by a good one, for random mechanisms in both directions;
    tightest ratio."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(cases):
        one = random_mechanism(rng)
        distribution = random_distribution(rng)
        epsilon = float(rng.choice(EPSILONS))
        pair = brute_force.exact_pair(one)
        for side, direction in enumerate((one, one.reversed)):
            exact = brute_force.exact_loss(direction, distribution, epsilon)
            good = theorem_5(pair, side, distribution, epsilon)
            other = by_random_potential(rng, pair, side, distribution, epsilon)
            if exact > min(good, other) + 1e-13:
                raise Violation(
                    f"{exact:.10g} > {good:.10g}, {other:.10g}: {one}, {distribution}, {epsilon}"
                )
            tightest = max(tightest, exact / good if good > 0 else 0.0)
    return tightest


def by_random_potential(
    rng, pair, side: int, distribution: dp.CountDistribution, epsilon: float
) -> float:
    """Small coefficients, so that the bound is not 1."""
    pld, reverse = pair.directions[side], pair.directions[-1 - side]
    mesh = mesh_of(pld, np.append(np.linspace(0, 0.9, 30), [0.95, 0.99, 1.0]), np.linspace(0, 1, 7))
    number = potential_basis(distribution, np.zeros(1), np.zeros(1))[0].shape[1]
    return bound_by_potential(
        pld, reverse, distribution, epsilon, mesh,
        potential_values(mesh, distribution, rng.normal(0, 0.03, number)),
    )  # fmt: skip


@pytest.mark.parametrize(
    "cases", [12, pytest.param(brute_force.size(400, 20), marks=pytest.mark.slow)]
)
def test_bound_by_any_potential_is_never_below_the_exact_loss(cases: int) -> None:
    assert 0.75 < check_many(cases, seed=cases) <= 1.0 + 1e-9


@pytest.mark.slow
def test_a_bound_without_the_reversed_curve_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = brute_force.loss_distribution(np.ones(1), np.ones(1))
    monkeypatch.setattr(
        potentials,
        "bound_by_potential",
        lambda pld, _, *rest: bound_by_potential(pld, nothing, *rest),
    )
    with pytest.raises(Violation):
        check_many(40, seed=1)


# --- the mesh -------------------------------------------------------------------------------------


def test_mesh_covers_the_testing_region() -> None:
    rng = np.random.default_rng(4)
    for _ in range(15):
        one = random_mechanism(rng)
        mesh = mesh_of(
            brute_force.exact_pair(one).removed, np.linspace(0, 1, 14), np.linspace(0, 1, 4)
        )
        below = np.sort(rng.random((300, one.p.size)), axis=1)[:, rng.permutation(one.p.size)]
        u, v = below @ one.p, below @ one.q
        assert np.all(_inside(mesh, u, v))
        edge = np.linspace(0, 1, 200)
        assert np.all(_inside(mesh, edge, 1.0 - brute_force.lower_edge(one, 1.0 - edge)))


def _inside(mesh: Mesh, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether each point lies in some triangle."""
    x, y = mesh.u[mesh.triangles], mesh.v[mesh.triangles]
    found = np.zeros(u.size, dtype=bool)
    for a, b in zip(x, y):
        area = (a[1] - a[0]) * (b[2] - b[0]) - (a[2] - a[0]) * (b[1] - b[0])
        first = ((u - a[0]) * (b[2] - b[0]) - (a[2] - a[0]) * (v - b[0])) / area
        second = ((a[1] - a[0]) * (v - b[0]) - (u - a[0]) * (b[1] - b[0])) / area
        found |= (first > -1e-9) & (second > -1e-9) & (first + second < 1 + 1e-9)
    return found


def test_potential_0_gives_theorem_1() -> None:
    base, distribution = dp.GaussianDP(mu=0.7), dp.Geometric(5)
    mesh = fine_mesh(base.pair.removed)
    first = dp.best_of(base, distribution).bounds["Theorem 1"].delta_at(1.5)
    zero = bound_by_potential(
        base.pair.removed, base.pair.added, distribution, 1.5, mesh, np.zeros(mesh.u.size)
    )
    assert first * (1 - 1e-6) <= zero <= first * 1.2


# --- what it is for -------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "distribution", "close"), [
    (dp.GaussianDP(mu=0.3), dp.Geometric(10), 1.15),
    pytest.param(
        *(dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=1000), dp.Geometric(10), 1.2),
        marks=pytest.mark.slow,
    ),
    (dp.PureDP(epsilon=0.5), dp.Geometric(10), 1.4),
], ids=repr)  # fmt: skip
def test_delta_at_0_is_close_to_a_certificate(base, distribution, close):
    search = dp.best_of(base, distribution)
    certain, reported = dp.witness(base, distribution, 0.0), search.delta_at(0.0)
    assert certain <= reported <= close * certain
    assert reported < 0.55 * search.bounds["Theorem 1"].delta_at(0.0)


@pytest.mark.parametrize(
    "cases", [3, pytest.param(brute_force.size(150, 6), marks=pytest.mark.slow)]
)
def test_whole_profile_is_above_the_exact_one(cases: int) -> None:
    rng = np.random.default_rng(cases)
    for _ in range(cases):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        if distribution != dp.Fixed(1):
            base = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
            check(dp.best_of(base, distribution).bounds["Theorem 5"], distribution, one)


@pytest.mark.slow
def test_losses_beyond_the_last_place_where_it_is_worked_out_are_not_understated() -> None:
    """Randomised response whose truth scores lowest: both of two runs must tell it, so the loss is
    that of two."""
    search = dp.best_of(dp.PureDP(epsilon=400.0), dp.Fixed(2))
    at = np.array([500.0, 650.0, 799.0])
    assert np.all(search.delta_at(at) >= -np.expm1(at - 800.0) * (1.0 - 1e-9))
    assert search.epsilon_at(0.3) >= 800.0 + np.log(0.7)
