"""Bounds on attacks: below the exact curves, in closed forms, and against attacks that are carried
out."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
)
from scipy.stats import norm

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.risk import TradeOff, trade_off
from sklearn_dpsearch.privacy._numerics.basic_mechanisms import delta_of_gaussian
from sklearn_dpsearch.privacy._spent import PrivacySpent
from tests.privacy.brute_force import (
    Mechanism,
    exact_pair,
    interesting_epsilons,
    lower_edge,
    random_mechanism,
    size,
)

ALL_RATES = np.concatenate(
    [[0.0], np.geomspace(1e-9, 0.01, 15), np.linspace(0.02, 0.98, 49), [0.999, 1.0]]
)
EPSILONS = np.linspace(0.0, 12.0, 241)
CASES = size(2000, 100)


def cases() -> list[tuple[Mechanism, TradeOff]]:
    rng = np.random.default_rng(5)
    mechanisms = [random_mechanism(rng) for _ in range(CASES)]
    return [(one, trade_off(exact_pair(one).delta_at)) for one in mechanisms]


@pytest.fixture(scope="module")
def curves() -> list[tuple[Mechanism, TradeOff]]:
    return cases()


def missed(one: Mechanism) -> np.ndarray:
    """The least false negative rate of the best attack, whichever neighbour it takes for the null
    hypothesis."""
    # the corners of the exact curve are rounded, and its slope may be 1e9
    accepted = 1.0 - ALL_RATES + 1e-15
    return np.minimum(lower_edge(one.reversed, accepted), lower_edge(one, accepted))


@pytest.mark.slow
def test_no_attack_misses_less_than_the_curve_says(curves) -> None:
    for one, curve in curves:
        stated = np.array([curve.false_negative_rate(rate) for rate in ALL_RATES])
        assert np.all(stated <= missed(one) + 1e-15)
        found = np.array([curve.true_positive_rate(rate) for rate in ALL_RATES])
        assert np.all(found >= 1.0 - missed(one) - 1e-15)


@pytest.mark.slow
def test_the_curve_is_the_largest_of_all_lines_but_for_the_tolerance(curves) -> None:
    for one, curve in curves:
        epsilons = interesting_epsilons(*np.where(one.p > one.q, (one.p, one.q), (one.q, one.p)))
        left, c = 1.0 - exact_pair(one).delta_at(epsilons), np.exp(epsilons)
        for rate in ALL_RATES[::4]:
            best = max(np.max(left - c * rate), np.max((left - rate) / c), 0.0)
            assert curve.false_negative_rate(rate) >= best - 3e-4 * (1.0 - best) - 1e-11


def test_both_readings_of_the_curve_agree(curves) -> None:
    for _, curve in curves[:20]:
        for rate in ALL_RATES:
            expected = pytest.approx(1.0, abs=1e-10)
            assert curve.true_positive_rate(rate) + curve.false_negative_rate(rate) == expected


def test_the_advantage_is_the_total_variation_distance(curves) -> None:
    for one, curve in curves:
        exact = 0.5 * (np.abs(one.p / one.p.sum() - one.q / one.q.sum())).sum()
        assert exact - 1e-13 <= curve.advantage() <= exact + 1e-9


def test_no_guess_of_membership_is_right_more_often_than_stated(curves) -> None:
    for one, curve in curves:
        for prior in (0.0, 1e-4, 0.1, 0.37, 0.5, 0.9, 1.0):
            for p, q in ((one.p, one.q), (one.q, one.p)):
                exact = float(np.maximum(prior * p, (1.0 - prior) * q).sum())
                assert exact - 1e-12 <= curve.right_guess(prior)


def test_a_small_rate_keeps_its_digits() -> None:
    curve = trade_off(lambda epsilon: delta_of_gaussian(1.0, epsilon))
    for rate in (1e-11, 1e-8, 1e-4):
        exact = norm.sf(norm.isf(rate) - 1.0)
        assert exact <= curve.true_positive_rate(rate) <= exact * 1.001


def test_a_profile_that_is_no_longer_convex_is_still_read_on_the_safe_side() -> None:
    """A step instead of a slope: the smallest of several bounds may look like this."""
    gaussian = lambda epsilon: np.maximum(delta_of_gaussian(1.0, epsilon), 1e-6)  # noqa: E731
    curve = trade_off(lambda epsilon: np.where(epsilon < 1.0, 0.9, gaussian(epsilon)))
    bound = (np.e - 1 + 2 * delta_of_gaussian(1.0, np.array(1.0))) / (np.e + 1) * (1 + 1e-4)
    assert curve.advantage() <= bound
    for rate in ALL_RATES[1:-1]:
        assert curve.false_negative_rate(rate) <= norm.cdf(norm.isf(rate) - 1.0) + 1e-12


RATES = np.array([1e-6, 1e-3, 0.01, 0.1, 0.3, 0.45, 0.7, 0.95])
PRIORS = np.array([0.01, 0.1, 0.5, 0.8])
#: σ, sampling rate, steps.
RUNS = [(1.0, 1.0, 1), (1.0, 0.01, 1000), (2.0, 0.05, 300)]


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_trade_off_is_its_closed_form(mu: float) -> None:
    one = dp.GaussianDP(mu=mu)
    exact = norm.cdf(norm.isf(RATES) - mu)
    assert np.all(one.trade_off(RATES) <= exact)
    assert one.trade_off(RATES) == pytest.approx(exact, abs=3e-5)
    assert one.advantage() == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-10)
    assert one.bayes_risk(PRIORS) == pytest.approx(norm.cdf(norm.ppf(PRIORS) + mu), rel=2e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 0.0), (0.3, 0.01), (4.0, 1e-6), (0.0, 0.2), (0.001, 1e-5)]
)
def test_trade_off_of_an_epsilon_and_a_delta_is_its_closed_form(epsilon: float, delta: float):
    one = dp.ApproxDP(epsilon=epsilon, delta=delta)
    lines = np.maximum(1 - delta - np.exp(epsilon) * RATES, np.exp(-epsilon) * (1 - delta - RATES))
    assert one.trade_off(RATES) == pytest.approx(np.maximum(lines, 0.0), abs=3e-5)
    assert np.all(one.trade_off(RATES) <= np.maximum(lines, 0.0) + 1e-15)
    expected = pytest.approx((np.expm1(epsilon) + 2 * delta) / (np.exp(epsilon) + 1), rel=1e-9)
    assert one.advantage() == expected


def test_nothing_is_hidden_without_privacy_and_all_with_no_loss() -> None:
    assert dp.NonPrivate().trade_off(RATES).max() == 0.0
    assert (dp.NonPrivate().advantage(), dp.NonPrivate().bayes_risk(0.1)) == (1.0, 1.0)
    nothing = dp.PureDP(epsilon=0.0)
    assert nothing.trade_off(RATES) == pytest.approx(1 - RATES, abs=1e-11)
    assert nothing.advantage() == 0.0
    assert nothing.bayes_risk(PRIORS, "any") == pytest.approx(PRIORS, abs=1e-11)
    expected = pytest.approx(np.maximum(PRIORS, 1 - PRIORS), abs=1e-11)
    assert nothing.bayes_risk(PRIORS, "membership") == expected


# --- exact attacks --------------------------------------------------------------------------------


def test_no_reconstruction_succeeds_more_often_than_stated() -> None:
    """The best guess of which of several values a record has, from the output; without the record
    it follows q."""
    rng = np.random.default_rng(8)
    for _ in range(size(500, 20)):
        values, n = int(rng.integers(2, 6)), int(rng.integers(2, 8))
        distributions = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), size=values + 1)
        distributions, none = distributions[1:], distributions[0]
        if rng.random() < 0.5:  # what is nearly nothing about each value
            distributions = none * np.exp(rng.normal(0, 0.3, distributions.shape))
            distributions /= distributions.sum(axis=1, keepdims=True)
        prior = rng.dirichlet(np.ones(values))
        pairs = [
            exact_pair(Mechanism(distribution, none, np.zeros(n))) for distribution in distributions
        ]
        stated = dp.envelope([dp.ProfileDP.from_pair(pair) for pair in pairs]).bayes_risk(
            float(prior.max())
        )
        assert np.max(prior[:, None] * distributions, axis=0).sum() <= stated + 1e-12


def test_membership_is_never_above_any_attack_with_the_same_best_guess() -> None:
    for one in (
        dp.GaussianDP(mu=0.7),
        dp.ApproxDP(epsilon=0.5, delta=1e-3),
        dp.DPSGD(noise_multiplier=1, sample_rate=0.1, steps=9),
    ):
        for prior in (0.05, 0.3, 0.5, 0.8):
            bound = one.bayes_risk(max(prior, 1 - prior)) + 1e-12
            assert one.bayes_risk(prior, "membership") <= bound
        expected = pytest.approx(0.5 * (1 + one.advantage()), rel=1e-9)
        assert one.bayes_risk(0.5, "membership") == expected


# --- other libraries ------------------------------------------------------------------------------


def theirs(sigma: float, rate: float, steps: int) -> PrivacyLossDistribution:
    return from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-3
    ).self_compose(steps)


def ours(sigma: float, rate: float, steps: int) -> dp.DPSGD:
    return dp.DPSGD(noise_multiplier=sigma, sample_rate=rate, steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_riskcal_reads_the_same_risks(run: tuple[float, float, int]) -> None:
    """Not at smaller rates: for a rate of 1e-5 riskcal finds fewer than by chance (its directions
    do not match)."""
    analysis = pytest.importorskip("riskcal.analysis")
    pld, one, rates = theirs(*run), ours(*run), RATES[RATES >= 1e-3]
    expected = pytest.approx(analysis.get_beta_from_pld(pld, alpha=rates), abs=3e-4)
    assert one.trade_off(rates) == expected
    assert one.advantage() == pytest.approx(analysis.get_advantage_from_pld(pld), rel=1e-3)
    likely = np.array([0.5, 0.6, 0.9])
    # it states how often the best attack is wrong
    right = 1.0 - analysis.get_bayes_risk_from_pld(pld, prior=likely)
    assert one.bayes_risk(likely, "membership") == pytest.approx(right, rel=2e-4)


def test_riskcal_is_not_above_zero_concentrated_dp_read_from_its_profile() -> None:
    """Its curve comes from the Rényi divergences of the two errors, and is the better one; ours is
    never above it."""
    analysis = pytest.importorskip("riskcal.analysis")
    rates = np.array([0.01, 0.1, 0.3])
    assert np.all(
        dp.ZCDP(rho=0.2).trade_off(rates) <= analysis.get_beta_from_zcdp(0.2, rates) + 1e-6
    )


# --- whole searches -------------------------------------------------------------------------------


SEARCHES = {
    "best of K": dp.best_of(dp.GaussianDP(mu=0.5), dp.Geometric(10)),
    "pure best of K": dp.best_of(dp.PureDP(epsilon=0.3), dp.Geometric(5)),
    "composed": dp.compose(dp.GaussianDP(mu=0.3), dp.PureDP(epsilon=0.5)),
    "subset": dp.subset_then_train(dp.PureDP(epsilon=1.5), dp.PureDP(epsilon=1.0), 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_every_stated_epsilon_and_delta_bounds_the_risks_of_a_search(search: dp.Guarantee) -> None:
    """No line that a stated (ε, δ) gives lies above the curve by more than the tolerance."""
    curve, rates = search.trade_off(RATES), RATES
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        delta = search.delta_at(epsilon)
        line = np.maximum(
            1 - delta - np.exp(epsilon) * rates, np.exp(-epsilon) * (1 - delta - rates)
        )
        assert np.all(curve >= line - 3e-4)
    assert search.advantage() <= search.delta_at(0.0) * (1 + 1e-9)
    rising, falling = np.diff(search.bayes_risk(PRIORS)), np.diff(curve)
    assert np.all(rising >= 0)
    assert np.all(falling <= 0)


def test_the_statement_reads_the_risk_of_its_total() -> None:
    spent = PrivacySpent(guarantee=dp.GaussianDP(mu=0.5), delta=1e-6)
    assert spent.trade_off(0.1) == spent.guarantee.trade_off(0.1)
    assert spent.advantage() == spent.guarantee.advantage()
    assert spent.bayes_risk([0.1, 0.2]).shape == (2,)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    one = dp.PureDP(epsilon=1.0)
    with pytest.raises(ValueError, match="0 <= false_positive_rate <= 1"):
        one.trade_off(wrong)
    with pytest.raises(ValueError, match="0 <= prior <= 1"):
        one.bayes_risk(wrong)
