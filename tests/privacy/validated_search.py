"""Searches on a random subset that validate on the rest, of a few records, worked out exactly.

Nothing here uses the accountant's numerics. ``tune[T, V]`` are the outcome probabilities of tuning that trains on the
records T and scores on the records V; ``train[t][S]`` those of training on S after tuning returned t. The record in
question is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from sklearn_dpsearch.privacy import Guarantee, ProfileDP, best_of, envelope
from tests.privacy.brute_force import Mechanism, exact_pair, random_distribution, random_mechanism
from tests.privacy.brute_force import release as release_of_best
from tests.privacy.subset_search import Records, _envelope, _random_distributions, subsets

Roles = tuple[Records, Records]


class Search(NamedTuple):
    """Distributions of both parts, how many records there are, and what each part promises."""

    tune: dict[Roles, np.ndarray]
    train: list[dict[Records, np.ndarray]]
    number: int
    tune_guarantee: Guarantee
    validate_guarantee: Guarantee
    train_guarantee: Guarantee


def roles(records: Records, fraction: float, share: float) -> Iterator[tuple[float, Records, Records]]:
    """Every way in which the records draw their roles: probability, who trains candidates, who validates."""
    chances = (fraction, (1 - fraction) * share, (1 - fraction) * (1 - share))
    for drawn in product(range(3), repeat=len(records)):
        mine = dict(zip(sorted(records), drawn))
        weight = float(np.prod([chances[role] for role in drawn]))
        yield weight, *(frozenset(one for one, role in mine.items() if role == wanted) for wanted in (0, 1))


def release(search: Search, records: Records, fraction: float, share: float, train_on: str) -> np.ndarray:
    """Probabilities of (result of tuning, result of training)."""
    total = np.zeros(1)
    for weight, trains, validates in roles(records, fraction, share):
        on = records - trains if train_on == "rest" else records
        both = [p * distribution[on] for p, distribution in zip(search.tune[trains, validates], search.train)]
        total = total + weight * np.concatenate(both)
    return total


def neighbours(search: Search, fraction: float, share: float, train_on: str) -> tuple[np.ndarray, np.ndarray]:
    """The distribution of the release with the last record and without it."""
    everyone = frozenset(range(search.number))
    with_record = release(search, everyone, fraction, share, train_on)
    return with_record, release(search, everyone - {search.number - 1}, fraction, share, train_on)


# --- random cases -------------------------------------------------------------------------------------------------


def of_one_record(rng: np.random.Generator, order: str = "") -> Search:
    """One output with two ratios, coupled at random or as ``order`` says; training is one mechanism, renamed."""
    without, tuned, scored = two_ratios(rng, order or str(rng.choice(["together", "apart", "anyhow"])))
    return _with_training(rng, without, tuned, scored, _exact(tuned, without), _exact(scored, without))


def of_best_runs(rng: np.random.Generator) -> Search:
    """Tuning is the best of K runs, each with an outcome and a score; the guarantees are those of Theorem 1."""
    without, tuned, scored = two_ratios(rng, str(rng.choice(["together", "anyhow"])))
    scores, count = rng.permutation(without.size), random_distribution(rng).at_least_one()
    promised = [best_of(_exact(distribution, without), count) for distribution in (tuned, scored)]
    released = [release_of_best(count, distribution, scores) for distribution in (without, tuned, scored)]
    return _with_training(rng, *released, *promised)


def _with_training(
    rng: np.random.Generator,
    without: np.ndarray,
    tuned: np.ndarray,
    scored: np.ndarray,
    tune_guarantee: Guarantee,
    validate_guarantee: Guarantee,
) -> Search:
    nobody, somebody = frozenset[int](), frozenset([0])
    train = random_mechanism(rng)
    orders = [rng.permutation(train.p.size) for _ in without]
    return Search(
        {(nobody, nobody): without, (somebody, nobody): tuned, (nobody, somebody): scored},
        [{somebody: train.p[order], nobody: train.q[order]} for order in orders],
        1,
        tune_guarantee,
        validate_guarantee,
        ProfileDP.from_pair(exact_pair(train)),
    )


def of_many_records(rng: np.random.Generator) -> Search:
    """Two records, distributions for every assignment of roles, training that differs after each result of tuning."""
    number, size = 2, int(rng.integers(2, 5))
    last, others = number - 1, frozenset(range(number - 1))
    tune = {
        (trains, validates): distribution
        for trains in subsets(frozenset(range(number)))
        for validates, distribution in _random_distributions_of(rng, number, size).items()
        if not trains & validates
    }
    pairs: dict[int, list[Guarantee]] = {0: [], 1: []}
    for trains, validates in [(t, v) for t in subsets(others) for v in subsets(others - t)]:
        for role, joined in enumerate([(trains | {last}, validates), (trains, validates | {last})]):
            pairs[role].append(_exact(tune[joined], tune[trains, validates]))
    train = [_random_distributions(rng, number) for _ in range(size)]
    return Search(tune, train, number, envelope(pairs[0]), envelope(pairs[1]), _envelope(train, number))


def _random_distributions_of(rng: np.random.Generator, number: int, size: int) -> dict[Records, np.ndarray]:
    while True:
        distributions = _random_distributions(rng, number)
        if next(iter(distributions.values())).size == size:
            return distributions


def _exact(distribution: np.ndarray, without: np.ndarray) -> Guarantee:
    return ProfileDP.from_pair(exact_pair(Mechanism(distribution, without, np.arange(distribution.size))))


def two_ratios(rng: np.random.Generator, order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distributions of one output: without the record, if it trains, if it validates; with zeros on either side."""
    size = int(rng.integers(2, 7))
    without = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
    ratios = [np.exp(rng.normal(size=size) * rng.choice([0.1, 0.6, 2.0])) for _ in range(2)]
    for ratio in ratios:
        if rng.random() < 0.25:
            ratio[rng.integers(size)] = 0.0
    if order in ("together", "apart"):
        ratios = [np.sort(ratio) for ratio in ratios]
    if order == "apart":
        ratios[1] = ratios[1][::-1]
    distributions = [without * ratio for ratio in ratios]
    distributions = [distribution / distribution.sum() for distribution in distributions]
    impossible = [rng.choice([0.0, 0.02, 0.3]) for _ in distributions]
    distributions = [
        np.append((1 - lost) * distribution, lost) for distribution, lost in zip(distributions, impossible)
    ]
    return np.append(without, 0.0), *distributions
