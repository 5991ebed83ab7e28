"""From the presence of a record to its change: exact small chains x, z, x', where z holds neither
record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._calibration import gaussian_target
from sklearn_dpsearch.privacy._guarantees.neighboring_relations import (
    ChangedRecord,
    delta_of_two_steps,
)
from sklearn_dpsearch.privacy._numerics.loss_distribution import DominatingPair
from sklearn_dpsearch.privacy._spent import PrivacySpent
from tests.privacy.brute_force import (
    EPSILONS,
    Mechanism,
    Violation,
    exact_pair,
    hockey_stick,
    interesting_epsilons,
    largest_loss,
    renyi,
    size,
)

Chain = tuple[np.ndarray, np.ndarray, np.ndarray]
Curve = Callable[[np.ndarray], np.ndarray]


def random_chain(rng: np.random.Generator) -> Chain:
    """Distributions of the output with one record, with none, and with another; some outcomes are
    impossible."""
    n = int(rng.integers(2, 7))
    distributions = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), size=3)
    if rng.random() < 0.4:
        distributions = distributions * (rng.random((3, n)) > 0.15)
        distributions[:, 0] = np.maximum(distributions[:, 0], 0.05)
    # what pushes away from nothing in one direction pushes back in the other
    if rng.random() < 0.4:
        distributions[2] = distributions[1] ** 2 / np.maximum(distributions[0], 1e-3)
    first, none, last = distributions / distributions.sum(axis=1, keepdims=True)
    return first, none, last


def presence_of(chain: Chain) -> dp.Guarantee:
    """Exactly what the mechanism promises for the presence of either record."""
    first, none, last = chain
    pairs = [
        exact_pair(Mechanism(distribution, none, np.zeros(none.size)))
        for distribution in (first, last)
    ]
    return dp.envelope([dp.ProfileDP.from_pair(pair, "zero_out") for pair in pairs])


def check_chain(stated: Curve, chain: Chain) -> None:
    """Raise ``Violation`` if changing the record shows more than is stated."""
    first, _, last = chain
    for p, q in ((first, last), (last, first)):
        epsilons = interesting_epsilons(p, q)
        shown = np.array([hockey_stick(p, q, epsilon) for epsilon in epsilons])
        if np.any(shown > stated(epsilons) + 1e-13):
            raise Violation(f"{shown} > {stated(epsilons)} at {epsilons}")


def check_random_chains(stated: Callable[[DominatingPair], Curve], number: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(number):
        chain = random_chain(rng)
        check_chain(stated(presence_of(chain).pair), chain)


def canonical_chain(presence: dp.Guarantee, cells: int = 600) -> Chain:
    """The chain that loses most with a symmetric guarantee, on cells: x' uniform, z and x stacked
    to its end."""
    level = np.concatenate(
        [[0.0], np.geomspace(1e-12, 0.5, cells), 1 - np.geomspace(0.5, 1e-12, cells)[1:], [1.0]]
    )
    epsilon = np.linspace(-30.0, 30.0, 3001)
    delta = presence.pair.removed.delta_at(epsilon)

    def power(size: np.ndarray) -> np.ndarray:
        """Largest probability of an event under one distribution that has this probability under
        the other."""
        return np.array([min(1.0, float(np.min(delta + np.exp(epsilon) * s))) for s in size])

    middle = power(level)
    above = power(middle)
    start = [np.concatenate([[values[0]], np.diff(values)]) for values in (above, middle, level)]
    first, none, last = (np.maximum(masses, 0.0) / masses.sum() for masses in start)
    return first, none, last


# --- by the profile -------------------------------------------------------------------------------


@pytest.mark.slow
def test_changing_a_record_never_shows_more_than_two_steps_do() -> None:
    check_random_chains(lambda pair: partial(delta_of_two_steps, pair), size(10_000, 50))


@pytest.mark.slow
def test_changing_a_record_never_shows_more_than_is_stated() -> None:
    rng = np.random.default_rng(2)
    for _ in range(size(300, 5)):
        chain = random_chain(rng)
        check_chain(dp.as_replace_one(presence_of(chain)).delta_at, chain)


@pytest.mark.slow
def test_the_statement_is_reached_by_the_worst_chain() -> None:
    cases = (dp.GaussianDP(mu=0.8), dp.ApproxDP(epsilon=0.7, delta=1e-4), dp.PureDP(epsilon=1.0))
    for presence in cases:
        first, _, last = canonical_chain(presence)
        stated = ChangedRecord(presence=presence).delta_at(EPSILONS[:9])
        exact = np.array([hockey_stick(first, last, epsilon) for epsilon in EPSILONS[:9]])
        assert np.all(exact >= 0.97 * stated - 1e-9)


@pytest.mark.parametrize("wrong", [
    lambda pair, e: np.min(
        [pair.delta_at(s * e) + pair.delta_at((1 - s) * e) for s in np.linspace(0, 1, 99)], 0
    ),
    lambda pair, e: 2 * pair.delta_at(e), lambda pair, e: pair.delta_at(e / 2),
], ids=["the factor forgotten", "deltas added", "epsilon halved"])  # fmt: skip
def test_wrong_ways_to_carry_a_guarantee_over_are_noticed(wrong: Callable[..., np.ndarray]) -> None:
    with pytest.raises(Violation):
        check_random_chains(lambda pair: partial(wrong, pair), 100)


@pytest.mark.slow
def test_parts_of_a_bound_are_not_carried_over_one_by_one() -> None:
    """A net that keeps a Gaussian target is no composition of its parts: one by one they would
    promise too much."""
    target = gaussian_target(1.0, "zero_out", slack=1e-4)
    chain = canonical_chain(target)
    exact = presence_of(chain)
    assert np.all(exact.delta_at(EPSILONS) <= 1.001 * target.delta_at(EPSILONS) + 1e-12)
    check_chain(dp.as_replace_one(exact).delta_at, chain)
    with pytest.raises(Violation):
        check_chain(dp.compose(*(dp.as_replace_one(part) for part in target.parts)).delta_at, chain)  # type: ignore[attr-defined]


def test_a_gaussian_target_is_carried_over_as_a_whole() -> None:
    target = gaussian_target(1.0, "zero_out")
    assert dp.as_replace_one(target) == ChangedRecord(presence=target)
    assert 1e-7 < dp.as_replace_one(target).delta_at(100.0) < 1e-6


# --- kinds that stay what they are ----------------------------------------------------------------


def test_parameters_of_known_kinds() -> None:
    changed = {"neighboring": "replace_one"}
    for given, expected in [
        (dp.PureDP(epsilon=0.3), dp.PureDP(epsilon=0.6, **changed)),
        (dp.BoundedRangeDP(epsilon=0.3), dp.BoundedRangeDP(epsilon=0.6, **changed)),
        (dp.GaussianDP(mu=0.3, neighboring="zero_out"), dp.GaussianDP(mu=0.6, **changed)),
        (dp.ZCDP(rho=0.1), dp.ZCDP(rho=0.4, **changed)),
        (dp.NonPrivate(), dp.NonPrivate(**changed)),
        (dp.PureDP(epsilon=0.3, **changed), dp.PureDP(epsilon=0.3, **changed)),
    ]:
        assert dp.as_replace_one(given) == expected
    spent = PrivacySpent(guarantee=dp.PureDP(epsilon=1.0), delta=0.0)
    assert dp.as_replace_one(spent) == dp.PureDP(epsilon=2.0, **changed)


@pytest.mark.slow
def test_no_kind_is_below_a_chain_that_keeps_it() -> None:
    """Pure, bounded-range, concentrated and Rényi guarantees, read from random chains."""
    rng = np.random.default_rng(3)
    orders = np.array([1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 16.0, 40.0])
    for _ in range(size(1500, 40)):
        first, none, last = chain = tuple(
            0.97 * distribution + 0.03 / distribution.size for distribution in random_chain(rng)
        )
        pairs = [(first, none), (none, first), (last, none), (none, last)]
        curve = [max(renyi(p, q, order) for p, q in pairs) for order in orders]
        largest = max(largest_loss(p, q) for p, q in pairs)
        rho = max(
            renyi(p, q, order) / order for p, q in pairs for order in np.geomspace(1.001, 60, 60)
        )
        widest = max(float(np.ptp(np.log(p / q))) for p, q in pairs)
        kept = [
            dp.PureDP(epsilon=largest),
            dp.BoundedRangeDP(epsilon=widest),
            dp.RenyiDP(orders=orders, epsilons=curve),
            dp.ZCDP(rho=max(1.01 * rho, largest / 60)),
        ]
        for guarantee in kept:
            check_chain(dp.as_replace_one(guarantee).delta_at, chain)
        changed = dp.as_replace_one(kept[2])
        for order in (1.25, 1.5, 2.0, 3.0, 8.0):
            assert renyi(first, last, order) <= float(changed.renyi(order)) + 1e-12
            bound = float(ChangedRecord(presence=kept[3]).renyi(order)) + 1e-12
            assert renyi(first, last, order) <= bound


def test_a_renyi_curve_of_concentrated_privacy_counts_four_times() -> None:
    orders = np.array([1.5, 2.0, 5.0, 30.0])
    expected = pytest.approx(dp.as_replace_one(dp.ZCDP(rho=0.1)).renyi(orders))
    assert ChangedRecord(presence=dp.ZCDP(rho=0.1)).renyi(orders) == expected


def test_a_renyi_curve_that_is_known_near_one_alone_still_promises_what_its_profile_does() -> None:
    near = dp.as_replace_one(dp.RenyiDP(orders=[1.5], epsilons=[0.01]))
    assert near.epsilon_at(0.1) < np.inf


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(2.0, 0.01, 500), (1.5, 1.0, 3), pytest.param(1.0, 0.02, 1500, marks=pytest.mark.slow)],
)
def test_dp_sgd_has_its_own_accounting_which_costs_less_than_the_chain(noise, rate, steps):
    options = {"sample_rate": rate, "steps": steps, "neighboring": "zero_out"}
    presence = dp.DPSGD(noise_multiplier=noise, **options)
    ours = dp.as_replace_one(presence).epsilon_at(1e-5)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=1e-3,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    ).self_compose(steps).get_epsilon_for_delta(1e-5)  # fmt: skip
    assert 0.995 * theirs <= ours <= 1.01 * theirs
    assert ours <= ChangedRecord(presence=presence).epsilon_at(1e-5) * 1.0001
    twice = dp.as_replace_one(dp.compose(presence, presence))
    assert twice == dp.compose(dp.as_replace_one(presence), dp.as_replace_one(presence))


def test_replaced_records_of_dp_sgd_in_any_direction_are_covered() -> None:
    """Gradients in the plane, of any length: the worst are two that pull in opposite directions."""
    rate, noise, side = 0.3, 0.8, np.linspace(-6.0, 6.0, 201)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)

    def distribution(angle: float, length: float = 1.0) -> np.ndarray:
        gradient = length * np.array([np.cos(angle), np.sin(angle)])
        with_record = np.exp(-((grid - gradient) ** 2).sum(1) / (2 * noise**2))
        masses = rate * with_record + (1 - rate) * np.exp(-(grid**2).sum(1) / (2 * noise**2))
        return masses / masses.sum()

    step = dp.DPSGD(noise_multiplier=noise, sample_rate=rate, steps=1, neighboring="replace_one")
    # the last: opposite, of full length
    others = [
        distribution(part * np.pi, length) for part in (0.5, 0.8, 1) for length in (0, 0.5, 1)
    ]
    for epsilon, stated in zip(EPSILONS[:9], step.delta_at(EPSILONS[:9])):
        shown = [hockey_stick(distribution(0.0), other, epsilon) for other in others]
        assert max(shown) <= 1.005 * stated
        assert shown[-1] >= 0.995 * stated


# --- in company -----------------------------------------------------------------------------------


def test_the_value_itself_holds_under_one_relation_alone() -> None:
    with pytest.raises(ValueError, match="replace_one"):
        ChangedRecord(presence=dp.PureDP(epsilon=1.0), neighboring="zero_out")
    with pytest.raises(ValueError, match="presence"):
        ChangedRecord(presence=dp.PureDP(epsilon=1.0, neighboring="replace_one"))
