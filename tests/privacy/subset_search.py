"""Searches on a random subset of a few records, worked out exactly.

Nothing here uses the accountant's numerics. ``tune[S]`` are the outcome probabilities of tuning on the records S, and
``train[t][S]`` those of training on S after tuning returned t. The record in question is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sklearn_dpsearch.privacy import Guarantee, ProfileDP, envelope
from sklearn_dpsearch.privacy.selection.subset import TheoremTwo
from sklearn_dpsearch.privacy.selection.subset_validated import TheoremFour
from tests.privacy.brute_force import Mechanism, Violation, exact_pair, hockey_stick, random_mechanism

Records = frozenset[int]
EPSILONS = np.array([0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0])
VARIANTS = ("rest", "all")


class Search(NamedTuple):
    """Distributions of both parts on every set of records, how many there are, and the guarantee of each part."""

    tune: dict[Records, np.ndarray]
    train: list[dict[Records, np.ndarray]]
    number: int
    tune_guarantee: Guarantee
    train_guarantee: Guarantee


def subsets(records: Records) -> Iterator[Records]:
    for size in range(len(records) + 1):
        yield from (frozenset(one) for one in combinations(sorted(records), size))


def release(search: Search, records: Records, fraction: float, train_on: str, reveal: str = "") -> np.ndarray:
    """Probabilities of (result of tuning, result of training); with the last record's coin if ``reveal`` says so."""
    outcomes: dict[bool, np.ndarray] = {}
    for subset in subsets(records):
        weight = fraction ** len(subset) * (1 - fraction) ** (len(records) - len(subset))
        on = records - subset if train_on == "rest" else records
        both = np.concatenate([p * distribution[on] for p, distribution in zip(search.tune[subset], search.train)])
        seen = reveal == "coin" and search.number - 1 in subset
        outcomes[seen] = outcomes.get(seen, 0.0) + weight * both
    return np.concatenate([outcomes.get(seen, np.zeros(both.size)) for seen in (False, True)])


def neighbours(search: Search, fraction: float, train_on: str, reveal: str = "") -> tuple[np.ndarray, np.ndarray]:
    """The distribution of the release with the last record and without it."""
    everyone = frozenset(range(search.number))
    with_record = release(search, everyone, fraction, train_on, reveal)
    without = release(search, everyone - {search.number - 1}, fraction, train_on, reveal)
    if reveal == "coin":  # without the record its coin is still thrown
        nobody = without[: without.size // 2]
        without = np.concatenate([(1 - fraction) * nobody, fraction * nobody])
    return with_record, without


# --- random cases -------------------------------------------------------------------------------------------------


def of_one_record(rng: np.random.Generator) -> Search:
    """Two random mechanisms; training after each result of tuning is one of them with its outcomes renamed."""
    nobody: Records = frozenset()
    somebody = frozenset([0])
    tune, train = random_mechanism(rng), random_mechanism(rng)
    orders = [rng.permutation(train.p.size) for _ in tune.p]
    return Search(
        {somebody: tune.p, nobody: tune.q},
        [{somebody: train.p[order], nobody: train.q[order]} for order in orders],
        1,
        ProfileDP.from_pair(exact_pair(tune)),
        ProfileDP.from_pair(exact_pair(train)),
    )


def of_many_records(rng: np.random.Generator) -> Search:
    """Two or three records, a different mechanism after each result of tuning; the guarantees are envelopes."""
    number = int(rng.integers(2, 4))
    tune = _random_distributions(rng, number)
    train = [_random_distributions(rng, number) for _ in range(next(iter(tune.values())).size)]
    return Search(tune, train, number, _envelope([tune], number), _envelope(train, number))


def _random_distributions(rng: np.random.Generator, number: int) -> dict[Records, np.ndarray]:
    """A tilt of one distribution by the records in the set; sometimes an outcome needs the last record, or lacks it."""
    size = int(rng.integers(2, 5))
    base = rng.dirichlet(np.ones(size))
    tilts = rng.normal(size=(number, size)) * rng.choice([0.1, 0.5, 2.0])
    impossible = rng.random((2, size)) < 0.1
    impossible[:, 0] = False
    distributions = {}
    for records in subsets(frozenset(range(number))):
        distribution = base * np.exp(sum((tilts[one] for one in records), np.zeros(size)))
        distribution[impossible[int(number - 1 in records)]] = 0.0
        distributions[records] = distribution / distribution.sum()
    return distributions


def _envelope(families: list[dict[Records, np.ndarray]], number: int) -> Guarantee:
    """Of every distribution with the last record against the same without it."""
    last = number - 1
    others = list(subsets(frozenset(range(last))))
    pairs = [(distributions[one | {last}], distributions[one]) for distributions in families for one in others]
    return envelope([ProfileDP.from_pair(exact_pair(Mechanism(p, q, np.arange(p.size)))) for p, q in pairs])


# --- the checker --------------------------------------------------------------------------------------------------


def check(guarantee: Guarantee, p: np.ndarray, q: np.ndarray) -> float:
    """Raise ``Violation`` if (p, q), in either order, is further apart than stated; return the tightest δ ratio."""
    stated = guarantee.delta_at(EPSILONS)
    tightest = 0.0
    for index, (one, other) in enumerate([(p, q), (q, p)]):
        exact = np.array([hockey_stick(one, other, epsilon) for epsilon in EPSILONS])
        claims = {"delta_at": stated}
        if isinstance(guarantee, TheoremTwo | TheoremFour):
            claims["in_direction"] = guarantee.in_direction(index, EPSILONS)
        for name, claimed in claims.items():
            if np.any(exact > claimed + 1e-14 * (1 + np.exp(EPSILONS))):
                worst = int(np.argmax(exact - claimed))
                raise Violation(f"{name}({EPSILONS[worst]}) is {exact[worst]:.10g}, stated {claimed[worst]:.10g}")
        told = exact > 1e-9
        tightest = max([tightest, *(exact[told] / stated[told])])
    return tightest
