"""From one record to the records of one person: exact chains of small mechanisms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.neighboring_relations import OfGroup
from sklearn_dpsearch.privacy._spent import Component, PrivacySpent
from tests.privacy.brute_force import Mechanism, exact_pair, hockey_stick, interesting_epsilons

Chain = list[np.ndarray]


def random_chain(rng: np.random.Generator, steps: int) -> Chain:
    """Distributions of the output with all records of a person, with one less, …, with none."""
    n = int(rng.integers(2, 7))
    distributions = [rng.dirichlet(np.full(n, rng.choice([0.5, 1.0, 5.0])))]
    for _ in range(steps):
        near = distributions[-1] * np.exp(rng.normal(0.0, rng.choice([0.1, 0.5, 1.5]), n))
        if rng.random() < 0.4 and len(distributions) > 1:  # on in the same direction
            near = distributions[-1] ** 2 / np.maximum(distributions[-2], 1e-4)
        if rng.random() < 0.2:  # an outcome that is impossible from here on, or so far
            near[rng.integers(1, n)] = 0.0
        near[0] = max(near[0], 0.05)
        distributions.append(near / near.sum())
    return distributions


def of_one_record(chain: Chain) -> dp.Guarantee:
    """Exactly what the mechanism promises for one record of the chain."""
    pairs = [exact_pair(Mechanism(p, q, np.zeros(p.size))) for p, q in pairwise(chain)]
    return dp.envelope([dp.ProfileDP.from_pair(pair) for pair in pairs])


def check_chains(rng: np.random.Generator, number: int, longest: int) -> None:
    for _ in range(number):
        chain = random_chain(rng, int(rng.integers(2, longest + 1)))
        stated = dp.for_group(of_one_record(chain), len(chain) - 1)
        for p, q in ((chain[0], chain[-1]), (chain[-1], chain[0])):
            epsilons = interesting_epsilons(p, q)
            shown = np.array([hockey_stick(p, q, epsilon) for epsilon in epsilons])
            assert np.all(shown <= stated.delta_at(epsilons) + 1e-13)


@pytest.mark.slow
def test_a_person_never_loses_more_than_is_stated() -> None:
    check_chains(np.random.default_rng(3), 3, longest=3)


@pytest.mark.slow
@pytest.mark.parametrize("records", [2, 3, 7])
def test_the_bound_is_reached_by_a_gaussian_chain(records: int) -> None:
    """Means 0, μ, 2μ, …: the ends differ by records·μ, and the profile of one step says so to six
    digits."""
    by_profile = OfGroup(one_record=dp.GaussianDP(mu=0.4), records=records)
    exact = dp.GaussianDP(mu=0.4 * records)
    for delta in (1e-2, 1e-5):
        assert 1.0 <= by_profile.epsilon_at(delta) / exact.epsilon_at(delta) < 1.0 + 1e-5
    expected = pytest.approx(0.4 * records, rel=1e-15)
    assert dp.for_group(dp.GaussianDP(mu=0.4), records).mu == expected


@pytest.mark.slow
def test_an_epsilon_and_a_delta_grow_as_published() -> None:
    """mε, with δ·(1 + e^ε + … + e^{(m−1)ε}) (Dwork & Roth 2014, Theorem 2.2, and its
    refinement)."""
    five = dp.for_group(dp.ApproxDP(epsilon=0.3, delta=1e-6), 5)
    published = 1e-6 * np.exp(0.3 * np.arange(5)).sum()
    assert published * (1 - 1e-5) <= five.delta_at(1.5) <= published * (1 + 1e-5)


def test_pure_guarantees_are_multiplied_and_never_rounded_down() -> None:
    assert dp.for_group(dp.PureDP(epsilon=0.1), 3).epsilon == pytest.approx(0.3)
    assert dp.for_group(dp.PureDP(epsilon=0.1), 3).epsilon >= 3 * 0.1
    assert dp.for_group(dp.BoundedRangeDP(epsilon=0.5), 4) == dp.BoundedRangeDP(epsilon=2.0)
    assert dp.for_group(dp.ZCDP(rho=0.5), 3) == dp.ZCDP(rho=4.5)
    search = dp.best_of(dp.PureDP(epsilon=0.1), dp.Geometric(5))
    assert dp.for_group(search, 3).epsilon_at(0.0) == pytest.approx(3 * search.epsilon_at(0.0))
    assert dp.for_group(search, 3).epsilon_at(0.0) >= 3 * search.epsilon_at(0.0)
    assert dp.for_group(dp.NonPrivate(), 3) == dp.NonPrivate()


def test_parts_of_a_composition_are_carried_over_as_a_whole() -> None:
    total = dp.compose(dp.GaussianDP(mu=0.3), dp.ApproxDP(epsilon=0.0, delta=1e-9))
    assert dp.for_group(total, 3) == OfGroup(one_record=total, records=3)


def test_one_record_changes_nothing_and_no_record_is_refused() -> None:
    one = dp.GaussianDP(mu=1.0)
    assert dp.for_group(one, 1) is one
    for wrong in (0, 1.5, -2):
        with pytest.raises(ValueError, match="an integer records >= 1"):
            dp.for_group(one, wrong)


def test_a_statement_says_for_whom_it_holds() -> None:
    one = dp.ApproxDP(epsilon=0.5, delta=1e-8)
    components = (Component(name="training", guarantee=one),)
    spent = PrivacySpent(guarantee=one, delta=1e-6, components=components)
    person = spent.for_group(2)
    assert (spent.unit, person.unit) == ("record", "2 records of one person")
    assert person.epsilon == dp.for_group(one, 2).epsilon_at(1e-6)
    assert person.components[0].guarantee == dp.for_group(one, 2)
    assert person.assumptions == ("No person has more than 2 of the records.",)
    assert person.to_dict()["unit"] in str(person)
    with pytest.raises(dp.PrivacyError, match="2 records of one person"):
        person.for_group(2)


def test_statements_for_groups_and_for_records_never_mix() -> None:
    one = dp.PureDP(epsilon=0.5)
    spent = PrivacySpent(guarantee=one, delta=0.0)
    for combine in (
        dp.compose,
        lambda *several: dp.envelope(several),
        lambda *several: dp.mixture(several, [0.5, 0.5]),
    ):
        for other in (spent, one, spent.for_group(3)):
            match = "2 records of one person.*then call for_group"
            with pytest.raises(dp.MixedNeighborsError, match=match):
                combine(spent.for_group(2), other)
    assert dp.compose(spent.for_group(2), spent.for_group(2)).epsilon_at(0.0) == 2.0


@pytest.mark.parametrize("records", [3, 4])
def test_no_profile_rises_where_numbers_end(records):
    group = dp.for_group(dp.best_of(dp.GaussianDP(mu=4.0), dp.Geometric(5)), records)
    deltas = np.array([float(group.delta_at(epsilon)) for epsilon in np.arange(300.0, 900.0, 25.0)])
    assert np.all(np.diff(deltas) <= 0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [350.0, 720.0, 1500.0])
def test_guarantees_of_no_worth_overflow_nowhere(epsilon):
    useless = dp.ApproxDP(epsilon=epsilon, delta=1e-9)
    for total in (
        dp.best_of(useless, dp.Poisson(5)),
        dp.subset_then_train(useless, useless, 0.1),
        dp.for_group(useless, 3),
    ):
        assert all(0.0 < total.delta_at(at) <= 1.0 for at in (1.0, 800.0, 2000.0))
