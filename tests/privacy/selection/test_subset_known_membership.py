"""Known membership: the average over a record's coin holds however the parts use who is in the subset."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from sklearn_dpsearch.privacy import Guarantee, PureDP, compose, envelope, mixture
from sklearn_dpsearch.privacy.guarantees.values import ProfileDP
from sklearn_dpsearch.privacy.selection.subset import TheoremTwo, subset_then_train
from tests.privacy import brute_force
from tests.privacy.brute_force import Mechanism, Violation, exact_pair, random_mechanism
from tests.privacy.subset_search import VARIANTS, check

SLOTS = 3
Coins = tuple[bool, ...]


class Counting(NamedTuple):
    """Distributions of both parts for every outcome of the coins, with the last record and with none."""

    tune: dict[Coins, Mechanism]
    train: dict[Coins, list[Mechanism]]
    tune_guarantee: Guarantee
    train_guarantee: Guarantee


def random_search(rng: np.random.Generator) -> Counting:
    """Every set of slots has mechanisms of its own: a part may use which slots it has, so also how many."""
    coins = list(product([False, True], repeat=SLOTS))
    outcomes = int(rng.integers(2, 4))
    tune = {one: _of_size(rng, outcomes) for one in coins}
    train = {one: [_of_size(rng, 3) for _ in range(outcomes)] for one in coins}
    flat = [mechanism for several in train.values() for mechanism in several]
    return Counting(tune, train, _worst(list(tune.values())), _worst(flat))


def _of_size(rng: np.random.Generator, outcomes: int) -> Mechanism:
    while True:
        one = random_mechanism(rng)
        if one.p.size == outcomes:
            return one


def _worst(mechanisms: list[Mechanism]) -> Guarantee:
    return envelope([ProfileDP.from_pair(exact_pair(one), "zero_out") for one in mechanisms])


def release(search: Counting, fraction: float, train_on: str) -> tuple[np.ndarray, np.ndarray]:
    """Distributions of (result of tuning, result of training) with the record and without it; the coins stay secret."""
    distributions = [np.zeros(1), np.zeros(1)]
    for coins, tune in search.tune.items():
        weight = float(np.prod([fraction if one else 1 - fraction for one in coins]))
        tuned = coins[-1]
        trained = train_on == "all" or not tuned
        for k, present in enumerate((True, False)):
            first = tune.p if present and tuned else tune.q
            rows = [p * (one.p if present and trained else one.q) for p, one in zip(first, search.train[coins])]
            distributions[k] = distributions[k] + weight * np.concatenate(rows)
    return distributions[0], distributions[1]


@pytest.mark.slow
def test_the_average_over_a_known_coin_is_never_below_the_exact_loss() -> None:
    rng = np.random.default_rng(41)
    tightest = 0.0
    for _ in range(brute_force.size(2000, 20)):
        search, fraction = random_search(rng), float(rng.choice([0.05, 0.3, 0.6, 0.9]))
        for train_on in VARIANTS:
            total = subset_then_train(
                search.tune_guarantee, search.train_guarantee, fraction, train_on, secret_membership=False
            )
            tightest = max(tightest, check(total, *release(search, fraction, train_on)))
    print(f"tightest exact/stated delta: {tightest}")
    assert 0.3 < tightest <= 1.0 + 1e-9


@pytest.mark.parametrize("train_on", VARIANTS)
def test_theorem_two_fails_for_parts_that_use_who_is_in_the_subset(train_on: str) -> None:
    """One slot, and parts that tell whether it is theirs: then the record's coin is known."""

    def told(one: Mechanism, there: bool) -> Mechanism:
        silent = np.zeros_like(one.p)
        p, q = (
            np.concatenate([distribution, silent] if there else [silent, distribution])
            for distribution in (one.p, one.q)
        )
        return Mechanism(p, q, np.arange(p.size))

    def search_all() -> None:
        rng = np.random.default_rng(42)
        for _ in range(50):
            tune, train = random_mechanism(rng), random_mechanism(rng)
            parts = [ProfileDP.from_pair(exact_pair(one)) for one in (tune, train)]
            inside, outside = told(tune, True), told(tune, False)
            distributions = []
            for present in (True, False):
                first = inside.p if present else inside.q
                second = train.p if present else train.q
                alone = train.q if train_on == "rest" else second
                distributions.append(0.3 * np.outer(first, alone).ravel() + 0.7 * np.outer(outside.q, second).ravel())
            known = subset_then_train(parts[0], parts[1], 0.3, train_on, secret_membership=False)
            check(known, *distributions)
            check(TheoremTwo(tune=parts[0], train=parts[1], fraction=0.3, train_on=train_on), *distributions)

    with pytest.raises(Violation):
        search_all()


def test_known_membership_is_the_mixture_and_cost_more() -> None:
    tune, train = (PureDP(epsilon=one, neighboring="zero_out") for one in (2.0, 1.0))
    for train_on, with_record in (("rest", tune), ("all", compose(tune, train))):
        known = subset_then_train(tune, train, 0.1, train_on, secret_membership=False)
        expected = mixture([with_record, train], [0.1, 0.9])
        assert known.tightest(0.0) == "mixture"
        for delta in (0.0, 1e-3):
            assert known.epsilon_at(delta) == expected.epsilon_at(delta)
        assert known.epsilon_at(0.0) > subset_then_train(tune, train, 0.1, train_on).epsilon_at(0.0)
        assert compose(known, train).epsilon_at(0.0) == pytest.approx(known.epsilon_at(0.0) + 1.0)
