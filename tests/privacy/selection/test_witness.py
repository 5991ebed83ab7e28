"""Witnesses: true lower bounds, from mechanisms that exist."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.arithmetic import safe_exp
from sklearn_dpsearch.privacy._numerics.loss_distribution import LossDistribution
from sklearn_dpsearch.privacy._selection.witness import (
    cuts,
    gaussian_tails,
    largest_gain,
    pgf_increase,
    probabilities,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import random_distribution, random_mechanism

DISTRIBUTIONS = [
    dp.Geometric(10), dp.Logarithmic(100), dp.NegativeBinomial(-0.5, 20), dp.Poisson(5),
    dp.Poisson(5).at_least_one(), dp.Binomial(6, 0.4), dp.Fixed(3), dp.Geometric(40).capped(10),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_witness_of_a_pure_base_is_a_mechanism_one_can_write_down(distribution, epsilon: float):
    """Randomised response whose outcomes are cut in three: the best cut by brute force is no better
    and as good."""
    truth = 1 / (1 + np.exp(-epsilon))
    for at in (0.0, epsilon):
        c, s = np.meshgrid(
            np.append(0.0, np.geomspace(1e-6, 1 - truth, 60)), np.geomspace(1e-6, truth, 60)
        )
        p = np.stack([1 - c - s, s, c], axis=-1)
        less, more = s * np.exp(-epsilon), c * np.exp(epsilon)
        q = np.stack([1 - less - more, less, more], axis=-1)
        ours, theirs = (
            brute_force.releases(distribution, np.maximum(side, 0.0))[..., 1] for side in (p, q)
        )
        best = float(np.max(ours - np.exp(at) * theirs))
        found = largest_gain(
            cuts(probabilities(dp.PureDP(epsilon=epsilon).pair.removed)), distribution, at
        )
        assert best * (1 - 1e-6) <= found <= best * 1.02 + 1e-6
        assert found <= dp.witness(dp.PureDP(epsilon=epsilon), distribution, at)


@pytest.mark.parametrize(
    "cases", [2, pytest.param(brute_force.size(25, 10), marks=pytest.mark.slow)]
)
def test_witness_is_never_above_theorem_1_for_random_mechanisms_and_distributions(cases: int):
    rng = np.random.default_rng(0)
    for _ in range(cases):
        one, distribution = random_mechanism(rng), random_distribution(rng)
        base = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        for epsilon in (0.0, 0.5, 1.5):
            if distribution != dp.Fixed(1):
                bound = dp.best_of(base, distribution).bounds["Theorem 1"].delta_at(epsilon) + 1e-12
                assert dp.witness(base, distribution, epsilon) <= bound


#: Masses of its composed pair, the record added, have a total of 1 + 1.2e-8 under Q.
TOO_MUCH = dp.DPSGD(noise_multiplier=0.8482, sample_rate=0.02, steps=1500)


def random_base(rng: np.random.Generator):
    """A guarantee of each kind that has a certificate."""
    makers = [
        lambda: dp.DPSGD(
            noise_multiplier=float(rng.uniform(0.5, 3)),
            sample_rate=float(10 ** rng.uniform(-3, 0)),
            steps=int(10 ** rng.uniform(0, 3)),
            neighboring=str(rng.choice(["add_remove", "replace_one"])),
        ),
        lambda: dp.PureDP(epsilon=float(rng.uniform(0, 6))),
        lambda: dp.GaussianDP(mu=float(rng.uniform(0.05, 4))),
        lambda: dp.compose(
            dp.PureDP(epsilon=float(rng.uniform(0, 1))),
            dp.GaussianDP(mu=float(rng.uniform(0.05, 3))),
        ),
        lambda: dp.compose(
            dp.ApproxDP(epsilon=float(rng.uniform(0, 3)), delta=float(10 ** rng.uniform(-9, -3))),
            dp.LaplaceDP(epsilon=float(rng.uniform(0, 2))),
        ),
    ]
    return makers[int(rng.integers(len(makers)))]()


def check_that_no_certificate_exceeds_a_bound(base, distribution, rng: np.random.Generator) -> None:
    total, delta = dp.best_of(base, distribution), float(10 ** rng.uniform(-9, -2))
    for epsilon in rng.uniform(0, 30, 3):
        assert dp.witness(base, distribution, float(epsilon)) <= total.delta_at(float(epsilon))
    assert dp.witness_epsilon(base, distribution, delta) <= total.epsilon_at(delta)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", [
    *DISTRIBUTIONS, dp.Logarithmic(10), dp.NegativeBinomial(-0.5, 10), dp.NegativeBinomial(2, 15),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("base", [TOO_MUCH, random_base], ids=["too much", "random"])
def test_no_certificate_exceeds_a_proved_bound(base, distribution) -> None:
    rng = np.random.default_rng(7)
    base = base(rng) if callable(base) else base
    check_that_no_certificate_exceeds_a_bound(base, distribution, rng)


@pytest.mark.slow
def test_a_mass_above_one_certifies_no_more_than_is_reported() -> None:
    cases = ((dp.Logarithmic(10), 1.001), (dp.NegativeBinomial(-0.5, 10), 1.002))
    for distribution, close in cases:
        certain = dp.witness_epsilon(TOO_MUCH, distribution, 1e-6)
        assert certain <= dp.best_of(TOO_MUCH, distribution).epsilon_at(1e-6) <= close * certain


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_of_rounded_masses_have_totals_of_one_and_a_curve_nowhere_above(seed: int):
    rng = np.random.default_rng(seed)
    losses = np.sort(rng.uniform(-5, 5, 8))
    masses = rng.dirichlet(np.ones(8)) * 0.99
    masses[rng.integers(4)] *= 1 + 10 ** rng.uniform(-9, -2)
    pld = LossDistribution(losses, masses, 0.02)
    # A true curve is at least 1 − c. Where this one would be below, its least atom has the ratio
    # that is missing.
    low = 1.0 - float((masses[1:] * np.exp(-losses[1:])).sum())
    masses[0] = max(low * np.exp(losses[0]) * (1 + 1e-6), masses[0])
    found = probabilities(pld)
    assert found.p.sum() == pytest.approx(1.0, abs=1e-14)
    assert found.q.sum() == pytest.approx(1.0, abs=1e-14)
    for epsilon in np.linspace(-6, 6, 121):
        stated = (
            float(np.sum(np.maximum(masses - np.exp(epsilon) * masses * safe_exp(-losses), 0.0)))
            + 0.02
        )
        if stated >= 1 - np.exp(epsilon):
            assert brute_force.hockey_stick(found.p, found.q, epsilon) <= stated + 1e-13


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_witness_of_a_gaussian_base_is_below_the_same_cut_of_a_fine_discrete_gaussian(mu: float):
    """A finely binned Gaussian is a mechanism with hardly less than the same guarantee."""
    from scipy import special

    distribution, epsilon = dp.Geometric(10), 1.5
    edges = np.linspace(-8, 8 + mu, 20001)
    p, q = np.diff(special.ndtr(edges - mu)), np.diff(special.ndtr(edges))
    low, high = np.meshgrid(np.arange(2000, 14000, 100), np.arange(2100, 20000, 100))
    low, high = low[high > low], high[high > low]

    def middle(side: np.ndarray) -> np.ndarray:
        """Probability of releasing the highest bins, which score between the rest and the lowest
        ones."""
        below = np.append(0.0, np.cumsum(side))[low]
        above = np.append(np.cumsum(side[::-1])[::-1], 0.0)[high]
        return brute_force.releases(
            distribution, np.stack([1 - below - above, above, below], axis=-1)
        )[:, 1]

    best = float(np.max(middle(p) - np.exp(epsilon) * middle(q)))
    assert largest_gain(gaussian_tails(mu), distribution, epsilon) == pytest.approx(best, rel=0.02)
    assert dp.witness(dp.GaussianDP(mu=mu), distribution, epsilon) >= best - 1e-9


@pytest.mark.slow
def test_witness_falls_with_epsilon_and_its_epsilon_meets_it() -> None:
    base, distribution = dp.GaussianDP(mu=0.4), dp.Geometric(10)
    values = [dp.witness(base, distribution, epsilon) for epsilon in np.linspace(0, 5, 9)]
    assert np.all(np.diff(values) <= 1e-9)
    certain = dp.witness_epsilon(base, distribution, 1e-6)
    actual = dp.witness(base, distribution, certain * 1.001)
    assert actual < 1e-6 <= dp.witness(base, distribution, certain * 0.999)
    assert dp.witness_epsilon(dp.ZCDP(rho=0.08), distribution, 1e-6) == certain


@pytest.mark.slow
def test_witness_of_a_base_that_fails_openly_never_vanishes() -> None:
    base = dp.ApproxDP(epsilon=0.5, delta=1e-3)
    assert dp.witness(base, dp.Geometric(5), 20.0) == pytest.approx(5e-3, rel=0.02)
    assert dp.witness_epsilon(base, dp.Geometric(5), 1e-6) == np.inf
    assert dp.witness_epsilon(dp.NonPrivate(), dp.Geometric(5), 1e-6) == np.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    "base", [dp.PureDP(epsilon=700.0), dp.PureDP(epsilon=601.0), dp.GaussianDP(mu=100.0)], ids=repr
)
def test_large_losses_are_not_taken_for_infinite_ones(base) -> None:
    reported = dp.best_of(base, dp.Fixed(2)).epsilon_at(0.3)
    assert 500 < dp.witness_epsilon(base, dp.Fixed(2), 0.3) <= 600 < reported < np.inf
    assert dp.witness(base, dp.Fixed(2), 2 * reported) == 0.0
    assert dp.witness(base, dp.Fixed(2), 600.0) <= dp.best_of(base, dp.Fixed(2)).delta_at(600.0)
    assert dp.verify(base, dp.Fixed(2), 0.999 * reported, 0.3) == "undecided"


def test_renyi_curve_has_no_known_worst_mechanism() -> None:
    with pytest.raises(dp.PrivacyError, match="No worst mechanism"):
        dp.witness(dp.RenyiDP(orders=[2.0], epsilons=[0.1]), 10, 1.0)


@pytest.mark.parametrize("distribution", [
    dp.Geometric(1000), dp.Logarithmic(50), dp.NegativeBinomial(-0.5, 10),
    dp.NegativeBinomial(3, 100), dp.Poisson(20), dp.Binomial(30, 0.2),
], ids=repr)  # fmt: skip
def test_rise_of_the_generating_function_is_bracketed_with_sixty_digits(distribution) -> None:
    def exact(z):
        if isinstance(distribution, dp.Poisson):
            return mpmath.exp(mpmath.mpf(distribution.mean) * (z - 1))
        if isinstance(distribution, dp.Binomial):
            return (1 - mpmath.mpf(distribution.p) * (1 - z)) ** distribution.n
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(distribution.eta)
        if eta == 0:
            return mpmath.log(1 - (1 - gamma) * z) / mpmath.log(gamma)
        return ((1 - (1 - gamma) * z) ** -eta - 1) / (gamma**-eta - 1)

    with mpmath.workdps(60):
        for top in (0.0, 1e-12, 1e-5, 0.3):
            for width in (1e-15, 1e-9, 1e-3, 0.5):
                exactly = exact(1 - mpmath.mpf(top)) - exact(
                    1 - mpmath.mpf(top) - mpmath.mpf(width)
                )
                least, most = pgf_increase(distribution, np.array(top), np.array(width))
                assert float(least) <= exactly <= float(most)
