"""Searches on a random subset of a few records, worked out exactly.

Nothing here uses the accountant's numerics. ``tune[T, V]`` are the outcome probabilities of tuning
that trains on the records T and scores on the records V; ``train[t][S]`` those of training on S
after tuning returned t. The record in question is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from sklearn_dpsearch.privacy import Guarantee, ProfileDP, best_of, envelope
from sklearn_dpsearch.privacy._selection.subset import TheoremFour
from tests.privacy.brute_force import (
    Mechanism,
    Violation,
    exact_pair,
    hockey_stick,
    random_distribution,
    random_mechanism,
)
from tests.privacy.brute_force import release as release_of_best

Records = frozenset[int]
EPSILONS = np.array([0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0])
VARIANTS = ("rest", "all")


class Search(NamedTuple):
    """Distributions of both parts, how many records there are, and what each part promises.

    Without a guarantee of validation no record outside the subset is used for tuning (Theorem 2).
    """

    tune: dict[tuple[Records, Records], np.ndarray]
    train: list[dict[Records, np.ndarray]]
    number: int
    tune_guarantee: Guarantee
    validate_guarantee: Guarantee | None
    train_guarantee: Guarantee


def subsets(records: Records) -> Iterator[Records]:
    for size in range(len(records) + 1):
        yield from (frozenset(one) for one in combinations(sorted(records), size))


def roles(
    records: Records, fraction: float, share: float
) -> Iterator[tuple[float, Records, Records]]:
    """Every way in which the records draw their roles: probability, who trains candidates, who
    validates."""
    chances = (fraction, (1 - fraction) * share, (1 - fraction) * (1 - share))
    for drawn in product(range(3), repeat=len(records)):
        mine = dict(zip(sorted(records), drawn))
        weight = float(np.prod([chances[role] for role in drawn]))
        yield (
            weight,
            *(frozenset(one for one, role in mine.items() if role == wanted) for wanted in (0, 1)),
        )


def release(
    search: Search, records: Records, fraction: float, share: float, train_on: str
) -> np.ndarray:
    """Probabilities of (result of tuning, result of training), in two rows: the last record
    outside, and inside."""
    both = [np.zeros(1), np.zeros(1)]
    for weight, trains, validates in roles(records, fraction, share):
        on = records - trains if train_on == "rest" else records
        pairs = zip(search.tune[trains, validates], search.train)
        rows = [p * distribution[on] for p, distribution in pairs]
        inside = search.number - 1 in trains
        both[inside] = both[inside] + weight * np.concatenate(rows)
    return np.stack(np.broadcast_arrays(*both))


def neighbours(
    search: Search, fraction: float, train_on: str, share: float = 1.0, reveal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The distribution of the release with the last record and without it; its coin is told if
    ``reveal`` says so."""
    everyone = frozenset(range(search.number))
    with_record = release(search, everyone, fraction, share, train_on)
    without = release(search, everyone - {search.number - 1}, fraction, share, train_on)[0]
    if not reveal:
        return with_record.sum(axis=0), without
    return with_record.ravel(), np.concatenate([(1 - fraction) * without, fraction * without])


# --- random cases ---------------------------------------------------------------------------------


def of_one_record(rng: np.random.Generator, order: str = "") -> Search:
    """One output with two ratios, coupled at random or as ``order`` says; training is one
    mechanism, renamed."""
    order = order or str(rng.choice(["together", "apart", "anyhow", "silent"]))
    without, tuned, scored = two_ratios(rng, order)
    validation = None if order == "silent" else _exact(scored, without)
    return _with_training(rng, without, tuned, scored, _exact(tuned, without), validation)


def silent(rng: np.random.Generator) -> Search:
    """One record, and scores that do not depend on it."""
    return of_one_record(rng, "silent")


def of_best_runs(rng: np.random.Generator) -> Search:
    """Tuning is the best of K runs, each with an outcome and a score; the guarantees are those of
    Theorem 1."""
    without, tuned, scored = two_ratios(rng, str(rng.choice(["together", "anyhow"])))
    scores, count = rng.permutation(without.size), random_distribution(rng).at_least_one()
    promised = [best_of(_exact(distribution, without), count) for distribution in (tuned, scored)]
    released = [
        release_of_best(count, distribution, scores) for distribution in (without, tuned, scored)
    ]
    return _with_training(rng, *released, *promised)


def _with_training(
    rng: np.random.Generator,
    without: np.ndarray,
    tuned: np.ndarray,
    scored: np.ndarray,
    tune_guarantee: Guarantee,
    validate_guarantee: Guarantee | None,
) -> Search:
    nobody, somebody = frozenset[int](), frozenset([0])
    train = random_mechanism(rng)
    orders = [rng.permutation(train.p.size) for _ in without]
    return Search(
        {(nobody, nobody): without, (somebody, nobody): tuned, (nobody, somebody): scored},
        [{somebody: train.p[order], nobody: train.q[order]} for order in orders], 1, tune_guarantee,
        validate_guarantee, ProfileDP.from_pair(exact_pair(train)),
    )  # fmt: skip


def of_many_records(rng: np.random.Generator) -> Search:
    """Two records, distributions for every assignment of roles, training that differs after each
    result of tuning."""
    number, size = 2, int(rng.integers(2, 5))
    last, others = number - 1, frozenset(range(number - 1))
    validates_none = bool(rng.random() < 0.5)
    tune = {}
    for trains in subsets(frozenset(range(number))):
        for validates, distribution in _random_distributions_of(rng, number, size).items():
            silent_ = (trains, frozenset[int]()) if validates_none else (trains, validates)
            tune[trains, validates] = tune.get(silent_, distribution)
    pairs: dict[int, list[Guarantee]] = {0: [], 1: []}
    for trains, validates in [(t, v) for t in subsets(others) for v in subsets(others - t)]:
        for role, joined in enumerate([(trains | {last}, validates), (trains, validates | {last})]):
            pairs[role].append(_exact(tune[joined], tune[trains, validates]))
    train = [_random_distributions(rng, number) for _ in range(size)]
    validation = None if validates_none else envelope(pairs[1])
    return Search(tune, train, number, envelope(pairs[0]), validation, _envelope(train, number))


def _random_distributions_of(
    rng: np.random.Generator, number: int, size: int
) -> dict[Records, np.ndarray]:
    while True:
        distributions = _random_distributions(rng, number)
        if next(iter(distributions.values())).size == size:
            return distributions


def _random_distributions(rng: np.random.Generator, number: int) -> dict[Records, np.ndarray]:
    """A tilt of one distribution by the records in the set; sometimes an outcome needs the last
    record, or lacks it."""
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


def _exact(distribution: np.ndarray, without: np.ndarray) -> Guarantee:
    return ProfileDP.from_pair(
        exact_pair(Mechanism(distribution, without, np.arange(distribution.size)))
    )


def _envelope(families: list[dict[Records, np.ndarray]], number: int) -> Guarantee:
    """Of every distribution with the last record against the same without it."""
    last = number - 1
    others = list(subsets(frozenset(range(last))))
    return envelope(
        [_exact(family[one | {last}], family[one]) for family in families for one in others]
    )


def two_ratios(rng: np.random.Generator, order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distributions of one output: without the record, if it trains, if it validates; with zeros on
    either side."""
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
    pairs = zip(distributions, impossible)
    distributions = [np.append((1 - lost) * distribution, lost) for distribution, lost in pairs]
    without = np.append(without, 0.0)
    return without, distributions[0], without if order == "silent" else distributions[1]


# --- the checker ----------------------------------------------------------------------------------


def check(guarantee: Guarantee, p: np.ndarray, q: np.ndarray) -> float:
    """Raise ``Violation`` if (p, q), in either order, is further apart than stated; return the
    tightest δ ratio."""
    stated = guarantee.delta_at(EPSILONS)
    tightest = 0.0
    for index, (one, other) in enumerate([(p, q), (q, p)]):
        exact = np.array([hockey_stick(one, other, epsilon) for epsilon in EPSILONS])
        claims = {"delta_at": stated}
        if isinstance(guarantee, TheoremFour):
            claims["direction"] = guarantee.direction(index)(EPSILONS)
        for name, claimed in claims.items():
            if np.any(exact > claimed + 1e-14 * (1 + np.exp(EPSILONS))):
                worst = int(np.argmax(exact - claimed))
                raise Violation(
                    f"{name}({EPSILONS[worst]}) is {exact[worst]:.10g}, stated "
                    f"{claimed[worst]:.10g}"
                )
        told = exact > 1e-9
        tightest = max([tightest, *(exact[told] / stated[told])])
    return tightest
