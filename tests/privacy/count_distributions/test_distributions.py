"""Distributions of K against series, direct conditioning and their own draws."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import islice

import mpmath
import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch import privacy
from sklearn_dpsearch.privacy import (
    Binomial,
    CountDistribution,
    Fixed,
    FromPMF,
    Geometric,
    Logarithmic,
    NegativeBinomial,
    Poisson,
)
from sklearn_dpsearch.privacy._count_distributions.base import Conditioned
from sklearn_dpsearch.privacy._count_distributions.distributions import as_count_distribution
from tests.privacy import brute_force

DISTRIBUTIONS: list[CountDistribution] = [
    Geometric(10), Geometric(1), Logarithmic(10), Logarithmic(1.3), NegativeBinomial(-0.5, 4),
    NegativeBinomial(0.5, 20), NegativeBinomial(5, 7), NegativeBinomial(1e-9, 5),
    NegativeBinomial(1e4, 10), NegativeBinomial(1e4, 1 + 1e-13), NegativeBinomial(2.0, 1 + 2e-16),
    NegativeBinomial(1e-300, 1 + 1e-9), NegativeBinomial(-1 + 1e-14, 1 + 1e-14), Poisson(4),
    Poisson(0.2), Binomial(8, 0.3), Binomial(1, 0.5), Binomial(4, 1.0), Fixed(5),
    FromPMF([0.1, 0.0, 0.4, 0.5]), Poisson(4).at_least_one(), Binomial(8, 0.3).at_least_one(),
    Geometric(10).capped(12), Poisson(4).capped(6), Poisson(4).at_least_one().capped(6),
    Poisson(4).capped(6).at_least_one(), Logarithmic(10).capped(3),
    FromPMF([0.1, 0.0, 0.4, 0.5]).at_least_one(),
    Binomial(400, 0.99).capped(399),  # whose first 180 probabilities are 0 in doubles
    Poisson(800).capped(900),
]  # fmt: skip
K = np.arange(0, 6000)
Z = np.concatenate([np.linspace(0, 1, 41), 1 - np.geomspace(1e-9, 1e-2, 8)])


def reach(distribution: CountDistribution) -> np.ndarray:
    """K so far out that what is left does not count."""
    return np.arange(0, int(min(distribution.highest, 40_000)) + 1)


def test_every_distribution_is_tried_here() -> None:
    public = (getattr(privacy, name) for name in privacy.__all__)
    kinds = {kind for kind in public if isinstance(kind, type)} - {CountDistribution}
    distributions = {kind for kind in kinds if issubclass(kind, CountDistribution)}
    assert distributions <= {type(distribution) for distribution in DISTRIBUTIONS}
    # the bounds that a distribution names are compared with exact losses there alone
    rng = np.random.default_rng(0)
    assert distributions <= {type(brute_force.random_distribution(rng)) for _ in range(400)}


# --- values against series ------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_probabilities_sum_to_one_and_give_the_mean(distribution: CountDistribution) -> None:
    k = reach(distribution)
    pmf = distribution.pmf(k)
    assert np.all(pmf >= 0)
    assert math.fsum(pmf) == pytest.approx(1.0, abs=1e-10)
    assert math.fsum(k * pmf) == pytest.approx(distribution.mean, rel=1e-7)
    assert distribution.pgf_slope(1.0) == pytest.approx(distribution.mean, rel=1e-9)
    assert distribution.pmf(distribution.lowest - 1) == 0.0
    assert distribution.pmf(0) == pytest.approx(distribution.probability_of_none, abs=1e-15)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_generating_function_and_its_slope_are_their_series(distribution: CountDistribution):
    k = reach(distribution)
    pmf = distribution.pmf(k)
    used = pmf > 0
    k, pmf = k[used], pmf[used]
    for z in Z[Z < 0.999]:
        with np.errstate(under="ignore"):
            assert distribution.pgf(z) == pytest.approx(float(pmf @ z**k), rel=1e-9, abs=1e-13)
            expected = float((pmf * k) @ z ** np.maximum(k - 1, 0))
            assert distribution.pgf_slope(z) == pytest.approx(expected, rel=1e-8, abs=1e-13)
            curvature = np.exp(distribution.log_curvature(np.array(z), np.array(1 - z)))
            expected = float((pmf * k * (k - 1)) @ z ** np.maximum(k - 2, 0))
            assert curvature == pytest.approx(expected, rel=1e-7, abs=1e-13)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_generating_function_ends_at_one_and_its_slope_is_convex(distribution: CountDistribution):
    assert distribution.pgf(1.0) == pytest.approx(1.0, abs=1e-15)
    slope = distribution.pgf_slope(np.linspace(0, 1, 201))
    assert np.all(np.diff(slope) >= -1e-12)
    assert np.all(np.diff(slope, 2) >= -1e-9 * slope.max())
    with np.errstate(divide="ignore"):
        assert distribution.log_pgf_slope(0.5) == pytest.approx(np.log(distribution.pgf_slope(0.5)))


def first_mass(gamma: mpmath.mpf, eta: mpmath.mpf) -> mpmath.mpf:
    """P[K = 1] of the negative binomial distribution."""
    return (1 - gamma) * (-1 / mpmath.log(gamma) if eta == 0 else eta / (gamma**-eta - 1))


@pytest.mark.parametrize("shape", [-0.9, -0.5, -1e-7, 0.0, 1e-7, 0.5, 1.0, 2.5, 5.9])
@pytest.mark.parametrize("mean", [1.01, 1.5, 10.0, 1e3, 1e6])
def test_mean_is_met_to_nine_digits(shape: float, mean: float) -> None:
    distribution = NegativeBinomial(shape, mean)
    with mpmath.workdps(80):
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(shape)
        first = first_mass(gamma, eta)
        assert float(first * gamma ** -(1 + eta)) == pytest.approx(mean, rel=1e-9)
    assert distribution.pgf_slope(1.0) == pytest.approx(mean, rel=1e-9)


def test_named_distributions_are_special_negative_binomials() -> None:
    for z in (0.0, 0.3, 0.99):
        assert Geometric(7).pgf(z) == pytest.approx(NegativeBinomial(1, 7).pgf(z))
        assert Logarithmic(7).pgf(z) == pytest.approx(NegativeBinomial(0, 7).pgf(z))
        expected = pytest.approx(NegativeBinomial(1e-7, 7).pgf_slope(z), rel=1e-5)
        assert Logarithmic(7).pgf_slope(z) == expected
    expected = pytest.approx(stats.geom.pmf(np.arange(1, 9), 1 / 7))
    assert Geometric(7).pmf(np.arange(1, 9)) == expected
    actual = Logarithmic(7).pmf(np.arange(1, 9))
    assert actual == pytest.approx(stats.logser.pmf(np.arange(1, 9), 1 - Logarithmic(7).gamma))
    assert Poisson(7).pmf(np.arange(9)) == pytest.approx(stats.poisson.pmf(np.arange(9), 7))
    expected = pytest.approx(stats.binom.pmf(np.arange(10), 9, 0.3))
    assert Binomial(9, 0.3).pmf(np.arange(10)) == expected
    assert as_count_distribution(7) == Geometric(7)
    assert as_count_distribution(Fixed(2)) == Fixed(2)


@pytest.mark.parametrize("distribution", [
    Geometric(1e6), Logarithmic(1e6), NegativeBinomial(2.5, 1e5), NegativeBinomial(-0.5, 1e4),
], ids=repr)  # fmt: skip
def test_probabilities_far_out_keep_their_digits(distribution: CountDistribution) -> None:
    """Where Γ-functions would cancel: against 50 digits."""
    with mpmath.workdps(50):
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(distribution.eta)
        first = first_mass(gamma, eta)
        for k in (1, 50, 99_999, 100_001, 10**6, 5 * 10**6):
            exact = first * (1 - gamma) ** (k - 1) * mpmath.gammaprod([k + eta], [1 + eta, k + 1])
            assert distribution.pmf(k) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_probabilities_with_many_digits_are_those_in_doubles(distribution: CountDistribution):
    with mpmath.workprec(160):
        exact = [float(one) for one in islice(distribution.exact_pmf(), 50)]
    expected = pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert distribution.pmf(distribution.lowest + np.arange(len(exact))) == expected


# --- utility --------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_expected_quantile_is_one_minus_the_mean_of_one_over_k_plus_one(distribution):
    k = reach(distribution)
    expected = pytest.approx(1 - math.fsum(distribution.pmf(k) / (k + 1)), abs=1e-8)
    assert distribution.expected_quantile() == expected


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_success_probability_is_that_of_at_least_one_success(distribution: CountDistribution):
    k = reach(distribution)
    for share in (0.0, 1e-3, 0.3, 1.0):
        with np.errstate(under="ignore"):
            assert distribution.success_probability(share) == pytest.approx(
                1 - math.fsum(distribution.pmf(k) * (1 - share) ** k), abs=1e-9
            )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_quantile_is_the_smallest_number_that_reaches_the_probability(distribution):
    cumulative = np.cumsum(distribution.pmf(reach(distribution)))
    for p in (0.0, 1e-3, 0.1, 0.5, 0.77, 0.99):
        found = distribution.quantile(p)
        assert found >= distribution.lowest
        assert cumulative[found] >= p - 1e-12
        assert found == distribution.lowest or cumulative[found - 1] < p + 1e-12


# --- conditioning ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution", [one for one in DISTRIBUTIONS if one.probability_of_none > 0], ids=repr
)
def test_input_records_at_least_one_run_probabilities_are_rescaled(distribution: CountDistribution):
    given, k = distribution.at_least_one(), np.arange(0, 30)
    expected = np.where(k > 0, distribution.pmf(k), 0.0) / (1 - distribution.probability_of_none)
    assert given.pmf(k) == pytest.approx(expected, rel=1e-9)
    expected = pytest.approx(distribution.mean / (1 - distribution.probability_of_none), rel=1e-9)
    assert given.mean == expected
    assert given.pgf(0.0) == pytest.approx(0.0, abs=1e-15)


def test_a_distribution_that_almost_never_runs_is_conditioned_to_full_accuracy() -> None:
    for distribution in (Poisson(1e-12), Poisson(1e-60), Binomial(3, 1e-50), Poisson(1e-300)):
        given = distribution.at_least_one()
        assert given.mean == pytest.approx(1.0, rel=1e-11)
        assert given.pmf(1) == pytest.approx(1.0, rel=1e-11)
        assert given.sample(Bits(2**255)) == 1


def test_a_cap_under_which_k_next_to_never_stays_is_refused() -> None:
    with pytest.raises(ValueError, match="a cap that K can stay under"):
        Poisson(770).capped(5)


@pytest.mark.parametrize("distribution", [
    Geometric(10), Poisson(4), Poisson(4).at_least_one(), Logarithmic(30), NegativeBinomial(3, 20),
], ids=repr)  # fmt: skip
def test_capped_distribution_is_the_distribution_given_that_it_stays_under_the_cap(distribution):
    for most in (2, 9, 200):
        k = np.arange(0, most + 3)
        inside = np.where(k <= most, distribution.pmf(k), 0.0)
        assert distribution.capped(most).pmf(k) == pytest.approx(inside / inside.sum(), rel=1e-9)
        assert distribution.capped(most).mean <= distribution.mean
    assert distribution.capped(200).capped(9).pmf(3) == pytest.approx(distribution.capped(9).pmf(3))


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [
    Geometric(10), Logarithmic(10), NegativeBinomial(-0.5, 4), NegativeBinomial(3, 12), Poisson(6),
    Poisson(6).at_least_one(), Binomial(12, 0.3), Geometric(10).capped(12),
    FromPMF([0.1, 0.0, 0.4, 0.5]),
], ids=repr)  # fmt: skip
def test_draws_follow_the_distribution(distribution: CountDistribution) -> None:
    rng, number = random.Random(20240607), brute_force.size(20_000, 4_000)
    counts = Counter(distribution.sample(rng) for _ in range(number))
    k = np.arange(0, max(counts) + 1)
    expected = number * distribution.pmf(k)
    assert all(expected[one] > 0 for one in counts)
    kept = expected >= 8
    observed = np.array([counts[int(one)] for one in k])
    observed = np.append(observed[kept], number - observed[kept].sum())
    expected = np.append(expected[kept], number - expected[kept].sum())
    used = expected > 1e-6 * number
    scale = observed[used].sum() / expected[used].sum()
    assert stats.chisquare(observed[used], scale * expected[used]).pvalue > 1e-4


class Bits:
    """A source whose bits are known."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def getrandbits(self, k: int) -> int:
        return self.bits


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_a_draw_is_the_quantile_that_its_bits_stand_for(distribution: CountDistribution) -> None:
    cumulative = np.cumsum(distribution.pmf(reach(distribution)))
    for share in np.linspace(0.003, 0.997, 41):
        drawn = distribution.sample(Bits(int(share * 2**256)))
        assert cumulative[drawn] >= share - 1e-9
        assert drawn == distribution.lowest or cumulative[drawn - 1] < share + 1e-9


def test_draws_at_a_step_are_exact() -> None:
    """Just below and just above P[K ≤ 1] = 1/10, by far less than a double can tell."""
    distribution = Geometric(10)
    with mpmath.workprec(320):
        step = int(next(distribution.exact_pmf()) * mpmath.mpf(2) ** 256)
    assert distribution.sample(Bits(step - 64)) == 1
    assert distribution.sample(Bits(step + 64)) == 2


def test_unseeded_draws_use_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Source(random.SystemRandom):
        def getrandbits(self, k: int) -> int:
            asked.append(k)
            return super().getrandbits(k)

    import secrets

    monkeypatch.setattr(secrets, "SystemRandom", Source)
    np.random.seed(0)
    random.seed(0)
    draws = [Geometric(1000).sample() for _ in range(20)]
    np.random.seed(0)
    random.seed(0)
    assert draws != [Geometric(1000).sample() for _ in range(20)]
    assert asked == [256] * 40


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "expected"), [
    (lambda: Geometric(0.9), "1 <= mean"),
    (lambda: Geometric(np.nan), "1 <= mean"),
    (lambda: NegativeBinomial(-1.0, 5), "-1 < shape <= 1e4"),
    (lambda: NegativeBinomial(1.1e4, 5), "nearly Poisson(…).at_least_one()"),
    (lambda: NegativeBinomial(-0.99, 1e6), "a lighter tail"),
    (lambda: Poisson(0.0), "0 < mean"),
    (lambda: Binomial(2.5, 0.5), "an integer n >= 1"),
    (lambda: Binomial(3, 0.0), "0 < p <= 1"),  # type: ignore[arg-type]
    (lambda: Fixed(0), "an integer k >= 1"),
    (lambda: FromPMF([1.0]), "probabilities"),
    (lambda: FromPMF([-0.5, 1.5]), "with sum 1"),
    (lambda: FromPMF([1.0, 0.0]), "P[K >= 1] > 0"),
    (lambda: Fixed(5).capped(4), "an integer most >= 5"),
    (lambda: Geometric(3).capped(1.5), "an integer most"),  # type: ignore[arg-type]
    (lambda: Geometric(3).quantile(1.0), "0 <= p < 1"),
    (lambda: Geometric(3).pgf(1.1), "0 <= z <= 1"),
    (lambda: Geometric(3).success_probability(-0.1), "0 <= share <= 1"),
    (lambda: FromPMF([0.5, 0.0, 0.0, 0.5]).at_least_one().capped(1), "a cap that K can stay under"),
    (lambda: Conditioned(distribution=Fixed(2)), "a distribution of K that may be 0"),
])  # fmt: skip
def test_bad_parameters_say_what_was_expected(build, expected: str) -> None:
    with pytest.raises(ValueError, match="Expected") as caught:
        build()
    assert expected in str(caught.value)


def test_integers_of_numpy_do_not_wrap_around() -> None:
    """20·19 does not fit into eight bits: the slope of the generating function would rise too
    slowly."""
    one = np.array([0.5])
    assert Fixed(np.uint8(20)).log_curvature(one, one) == Fixed(20).log_curvature(one, one)
    assert type(Fixed(np.uint8(20)).k) is int
    assert type(Binomial(np.int32(9), np.float32(0.5)).p) is float
    assert Geometric(np.float32(7.3)).gamma == Geometric(float(np.float32(7.3))).gamma


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("mean", [1 + 1e-12, 1 + 1e-9, 1.001, 10.0, 1e6])
def test_generating_function_keeps_its_digits_where_one_run_is_nearly_certain(shape, mean):
    """f(z) is nearly z there: it was wrong in the seventh digit, and with it what is said to be a
    lower bound."""
    distribution = NegativeBinomial(shape, mean)
    with mpmath.workdps(80):
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(shape)
        for z in (1e-9, 0.1, 0.5, 0.9, 1 - 1e-9):
            base = 1 - (1 - gamma) * mpmath.mpf(z)
            logarithmic = mpmath.log(base) / mpmath.log(gamma)
            exact = (base**-eta - 1) / (gamma**-eta - 1) if shape else logarithmic
            assert abs(distribution.pgf(z) - exact) <= 2e-15


@pytest.mark.parametrize(("distribution", "deviation"), [
    (Poisson(1000), 31.7), (Geometric(1000), 1000.0), (Fixed(700), 0.0),
])  # fmt: skip
def test_large_draws_are_as_large_as_the_distribution_says(distribution, deviation):
    """Nothing is cut off, however much work it makes."""
    rng = random.Random(7)
    drawn = [distribution.sample(rng) for _ in range(100)]
    assert abs(np.mean(drawn) - distribution.mean) <= 5 * deviation / 100**0.5
