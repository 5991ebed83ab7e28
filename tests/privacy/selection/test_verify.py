"""Verdicts: never "true" where a mechanism loses more, never "false" where none does."""

from __future__ import annotations

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.loss_distribution import (
    DominatingPair,
    LossDistribution,
    symmetric_pair,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import (
    Mechanism,
    hockey_stick,
    random_distribution,
    release,
    small_mechanism,
)

#: One run with ε = 2.00 at δ = 1e-6, as in the table of docs/theory/witness.md.
GAUSSIAN = dp.GaussianDP(mu=0.2**0.5)


def worst_of_orders(one: Mechanism, distribution, epsilon: float) -> float:
    """The largest δ of the release, over all orders of the outcomes and both orders of the
    neighbours."""
    worst = 0.0
    for order in brute_force.all_orders(one):
        ours, theirs = (release(distribution, side, order.scores) for side in (one.p, one.q))
        worst = max(worst, hockey_stick(ours, theirs, epsilon), hockey_stick(theirs, ours, epsilon))
    return worst


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(one, marks=pytest.mark.slow) for one in (0, 2, 3, 4, 5))]
)
def test_a_claim_below_what_a_mechanism_loses_is_never_found_true(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(brute_force.size(60, 6)):
        one, distribution = small_mechanism(rng), random_distribution(rng)
        base = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        for epsilon in (0.0, 0.7, 1.6):
            exact = worst_of_orders(one, distribution, epsilon)
            if exact > 1e-9:
                actual = dp.verify(base, distribution, epsilon, min(exact * (1 - 1e-6), 0.999))
                assert actual != "true"


def best_of_three_blocks(one: Mechanism, distribution, epsilon: float, pieces: int = 60) -> float:
    """The largest A(S) − e^ε·A'(S) over all cuts of the outcomes, each split in ``pieces``, into C
    (lowest ratios, best scores), B (lowest scores) and S (highest ratios): a mechanism that one can
    write down."""
    with np.errstate(divide="ignore"):
        order = np.argsort(
            np.where(one.q > 0, one.p / np.where(one.q > 0, one.q, 1.0), np.inf), kind="stable"
        )
    below = [
        np.append(0.0, np.cumsum(np.repeat(side[order] / pieces, pieces)))
        for side in (one.p, one.q)
    ]
    ours, theirs = (
        distribution.pgf(np.clip(1 - side, 0, 1))[:, None]
        - distribution.pgf(np.clip(side[None, :] - side[:, None], 0, 1))
        for side in below
    )
    # C is everything before ``first``, S everything from ``last`` on
    first, last = np.indices(ours.shape)
    return float(np.max(np.where(first <= last, ours - np.exp(epsilon) * theirs, 0.0)))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2, 3))]
)
def test_a_claim_is_found_false_only_where_a_mechanism_that_can_be_written_down_loses_more(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(brute_force.size(60, 4)):
        one = small_mechanism(rng)
        distribution = random_distribution(rng)
        epsilon = float(rng.uniform(0, 1.5))
        base = dp.ProfileDP.from_pair(brute_force.exact_pair(one))
        found = max(
            best_of_three_blocks(side, distribution, epsilon) for side in (one, one.reversed)
        )
        assert dp.verify(base, distribution, epsilon, 0.0).witness <= found * 1.1 + 0.01
        if found > 1e-3:
            assert dp.verify(base, distribution, epsilon, found * 0.9) == "false"


@pytest.mark.parametrize(("distribution", "proved", "certain"), [
    (dp.Logarithmic(10), 2.745, 2.73), (dp.Geometric(10), 2.895, 2.878),
    (dp.Geometric(1000), 4.545, 4.51), (dp.Poisson(10), 3.675, 3.62),
])  # fmt: skip
def test_the_table_of_the_certificates_is_reproduced(distribution, proved: float, certain: float):
    """docs/theory/witness.md: Theorem 1 and the witness, for a Gaussian base with ε = 2 at δ =
    1e-6."""
    assert dp.verify(GAUSSIAN, distribution, proved, 1e-6) == "true"
    assert dp.verify(GAUSSIAN, distribution, certain, 1e-6) == "false"
    between = dp.verify(GAUSSIAN, distribution, (proved + certain) / 2, 1e-6)
    assert between.witness <= between.certified_delta
    assert dp.verify(dp.ZCDP(rho=0.1), distribution, certain, 1e-6) == "false"


def test_a_mechanism_that_refutes_a_bound_is_an_error_and_not_a_verdict() -> None:
    """A profile of somebody's own that says less than the pair that is given with it."""
    pair = dp.PureDP(epsilon=1.0).pair
    wrong = dp.ProfileDP(profile=lambda epsilon: 0.01 * pair.delta_at(epsilon), given_pair=pair)
    with pytest.raises(dp.PrivacyError, match=r"contradiction .* Believe neither"):
        dp.verify(wrong, dp.Fixed(1), 0.5, 0.1)


def test_the_epsilon_of_one_run_is_false_for_the_search() -> None:
    for base in (GAUSSIAN, dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)):
        one = base.epsilon_at(1e-5)
        assert dp.verify(base, dp.Fixed(1), one, 1e-5) == "true"
        assert dp.verify(base, dp.Geometric(10), one, 1e-5) == "false"


def delta_of_one_step(noise: float, rate: float, relation: str, epsilon: float) -> float:
    """By integration of the densities."""
    from scipy import integrate, stats

    def with_record(x):
        return (1 - rate) * stats.norm.pdf(x, 0, noise) + rate * stats.norm.pdf(x, 1, noise)

    def without(x):
        return with_record(-x) if relation == "replace_one" else stats.norm.pdf(x, 0, noise)

    def excess(x, p, q):
        return max(p(x) - np.exp(epsilon) * q(x), 0.0)

    both = (with_record, without), (without, with_record)
    return max(integrate.quad(excess, -12, 12, args=pair, limit=500)[0] for pair in both)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("noise", "rate", "steps"), [(2.0, 1.0, 7), (0.8, 1.0, 1), (1.1, 0.1, 1)])
def test_the_mechanism_that_refutes_dp_sgd_loses_no_more_than_dp_sgd(relation, noise, rate, steps):
    """Against closed forms: many steps with all records are one Gaussian; one step is a mixture of
    two."""
    far = 2.0 if relation == "replace_one" else 1.0
    base = dp.DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps, neighboring=relation)
    for epsilon in (0.1, 0.6):
        if rate == 1.0:
            exact = dp.GaussianDP(mu=far * steps**0.5 / noise).delta_at(epsilon)
        else:
            exact = delta_of_one_step(noise, rate, relation, epsilon)
        floor = dp.verify(base, dp.Fixed(1), epsilon, 0.0).witness
        assert exact * 0.985 - 1e-9 <= floor <= exact * (1 + 1e-6)


def test_dp_sgd_is_refuted_nearly_up_to_what_the_accountant_reports() -> None:
    base = dp.DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    reported = dp.best_of(base, dp.Geometric(10)).epsilon_at(1e-5)
    assert dp.verify(base, dp.Geometric(10), reported, 1e-5) == "true"
    assert dp.verify(base, dp.Geometric(10), reported * 0.98, 1e-5) == "false"


def test_an_open_failure_is_refuted_at_every_epsilon() -> None:
    assert dp.verify(dp.ApproxDP(epsilon=0.5, delta=1e-3), dp.Geometric(5), 30.0, 4e-3) == "false"
    assert dp.verify(dp.ApproxDP(epsilon=0.5, delta=1e-3), dp.Geometric(5), 30.0, 6e-3) == "true"
    assert dp.verify(dp.NonPrivate(), 3, 50.0, 0.5) == "false"


@pytest.mark.slow
def test_without_a_known_mechanism_nothing_is_refuted() -> None:
    curve = dp.RenyiDP(orders=[2.0, 8.0], epsilons=[0.1, 0.5])
    assert dp.verify(curve, 10, 0.1, 1e-9) == "undecided"
    assert dp.verify(curve, 10, 0.1, 1e-9).witness == 0.0
    assert dp.verify(dp.compose(dp.PureDP(epsilon=1.0), GAUSSIAN), 10, 0.1, 1e-9) == "undecided"
    assert dp.verify(dp.ProfileDP(profile=GAUSSIAN.delta_at), 10, 0.1, 1e-9) == "undecided"


@pytest.mark.slow
def test_a_pair_that_no_mechanism_has_refutes_nothing() -> None:
    """Masses above 1, and an order of the neighbours that the other one forbids."""
    heavy = LossDistribution(np.array([0.0, 1.0]), np.array([0.7, 0.7]))
    assert dp.verify(dp.ProfileDP.from_pair(symmetric_pair(heavy)), 10, 0.1, 0.5) != "false"
    mild = LossDistribution(np.array([0.0]), np.array([1.0]), 0.0, 0.0)
    # the rest of Q lies where P is impossible
    missing = LossDistribution(np.array([0.5]), np.array([1.0]))
    actual = dp.verify(dp.ProfileDP.from_pair(DominatingPair(missing, mild)), 10, 0.1, 0.01)
    assert actual != "false"
    assert dp.verify(dp.ProfileDP.from_pair(symmetric_pair(missing)), 10, 0.1, 0.01) != "false"
    strong = LossDistribution(
        np.array([-2.0, 2.0]), np.array([1, np.exp(2)]) / (1 + np.exp(2)), 0.0, 0.0
    )
    assert dp.verify(dp.ProfileDP.from_pair(DominatingPair(strong, mild)), 10, 0.1, 0.5) != "false"
    assert dp.verify(dp.ProfileDP.from_pair(symmetric_pair(strong)), 10, 0.1, 0.5) == "false"


@pytest.mark.parametrize(("change", "message"), [
    ({"one_run": 1.0}, "Found 1.0 .float. as one_run"),
    ({"epsilon": -1.0}, "0 <= epsilon"),
    ({"epsilon": np.inf}, "epsilon < inf"),
    ({"delta": 1.0}, "delta < 1"),
    ({"count": -3}, "mean"),
])  # fmt: skip
def test_a_claim_that_makes_no_sense_is_refused(change, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        dp.verify(**{"one_run": GAUSSIAN, "count": 10, "epsilon": 1.0, "delta": 1e-6, **change})
