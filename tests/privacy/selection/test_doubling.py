"""The doubling walk: one round enumerated, short walks enumerated, and the worst case over all
walks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product

import mpmath
import numpy as np
import pytest

from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.privacy._selection import doubling
from sklearn_dpsearch.privacy._selection.doubling import (
    AboveThreshold,
    DoublingRounds,
    DoublingSteps,
    default_max_rounds,
    doubling_search,
    lowest_levels,
)
from tests.privacy import brute_force
from tests.privacy.brute_force import Violation, hockey_stick
from tests.privacy.threshold_rounds import STEPS, neighbours, noise_distribution, one_round

# --- short walks, enumerated ----------------------------------------------------------------------


def transcripts(
    round_distribution: Callable[[int], np.ndarray], walk: DoublingSteps
) -> list[float]:
    """Probability of every sequence of results, in a fixed order; ``round_distribution`` is that of
    one round.

    The walk is the one that runs: only its rounds are replaced by their distribution.
    """
    if walk.over:
        return [1.0]
    *accepted, rejected = round_distribution(walk.asked)
    found: list[float] = []
    for chance in accepted:
        found += [
            chance * rest for rest in transcripts(round_distribution, walk.after(accepted=True))
        ]
    return found + [
        rejected * rest for rest in transcripts(round_distribution, walk.after(accepted=False))
    ]


def started(levels: int, max_rounds: int) -> DoublingSteps:
    return DoublingSteps(levels=levels, max_rounds=max_rounds)


def walk_distributions(
    one: np.ndarray,
    other: np.ndarray,
    epsilon: float,
    levels: int,
    max_rounds: int,
    **changed: float,
) -> tuple[np.ndarray, np.ndarray]:
    cache: dict[tuple[bool, int], np.ndarray] = {}

    def distribution(first: bool, level: int) -> np.ndarray:
        if (first, level) not in cache:
            cache[first, level] = one_round(one if first else other, 8 * level, epsilon, **changed)
        return cache[first, level]

    start = started(levels, max_rounds)
    return tuple(  # type: ignore[return-value]
        np.array(transcripts(partial(distribution, first), start)) for first in (True, False)
    )


def check_walks(number: int, seed: int, cost: Callable[..., float], **changed: float) -> float:
    """Raise ``Violation`` if a walk loses more than stated; the largest share of the stated pure
    loss that was seen."""
    rng = np.random.default_rng(seed)
    seen = 0.0
    for _ in range(number):
        levels, rounds = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        epsilon = float(rng.choice([0.3, 1.0]))
        one, other = neighbours(
            rng, int(rng.integers(1, 4)) if rounds > 3 else int(rng.choice([2, 6, 12]))
        )
        p, q = walk_distributions(one, other, epsilon, levels, rounds, **changed)
        assert p.sum() == pytest.approx(1.0)
        stated = cost(epsilon, levels, rounds)
        told = p > 1e-12
        loss = float(np.max(np.abs(np.log(p[told] / q[told]))))
        if loss > stated * (1 + 1e-9):
            raise Violation(
                f"loss {loss}, stated {stated}: {one}, {other}, {levels} levels, {rounds} rounds"
            )
        seen = max(seen, loss / stated)
    return seen


def worst_case(epsilon: float, levels: int, rounds: int) -> float:
    return doubling_search(epsilon, levels, rounds).epsilon_at(0.0)


def test_walks_never_lose_more_than_the_worst_case() -> None:
    assert 0.5 < check_walks(brute_force.size(300, 15), 2, worst_case) <= 1.0 + 1e-9


def test_profile_of_walks_is_never_above_the_stated_one() -> None:
    rng = np.random.default_rng(3)
    for _ in range(brute_force.size(200, 10)):
        levels, rounds = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        one, other = neighbours(rng, int(rng.integers(1, 4)))
        p, q = walk_distributions(one, other, 0.7, levels, rounds)
        walk = doubling_search(0.7, levels, rounds)
        for ours, theirs in ((p, q), (q, p)):
            for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
                assert hockey_stick(ours, theirs, epsilon) <= walk.delta_at(epsilon) + 1e-13


@pytest.mark.parametrize("cost", [
    lambda epsilon, levels, rounds: epsilon * rounds / 3,  # as if most rounds were free
    # as if the walk behaved
    lambda epsilon, levels, rounds: epsilon * max(1.0, np.log2(levels)) / 2,
    # an accept for a reject's price
    lambda epsilon, levels, rounds: 0.55 * worst_case(epsilon, levels, rounds),
])  # fmt: skip
def test_a_cost_for_walks_that_behave_is_caught(cost: Callable[..., float]) -> None:
    with pytest.raises(Violation):
        check_walks(60, 2, cost)


def one_draw_for_all(utilities: np.ndarray, epsilon: float, levels: int, rounds: int) -> np.ndarray:
    """Distribution of the transcripts where the threshold's noise z is drawn once: given z, then
    averaged over z."""
    total = 0.0
    for z, mass in zip(*noise_distribution(2 * STEPS / epsilon)):
        if mass > 1e-9:
            distributions = {
                m: one_round(utilities - z, 8 * m, epsilon, threshold_scale=0.0)
                for m in range(1, 2 * levels + 2)
            }
            total = total + mass * np.array(
                transcripts(distributions.__getitem__, started(levels, rounds))
            )
    return np.asarray(total)


@pytest.mark.slow
def test_with_one_draw_for_the_threshold_an_accept_costs_half_and_a_reject_nothing() -> None:
    rng = np.random.default_rng(4)
    seen = 0.0
    for _ in range(brute_force.size(60, 6)):
        levels, rounds = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        one, other = neighbours(rng, int(rng.integers(1, 3)))
        p = one_draw_for_all(one, 1.0, levels, rounds)
        q = one_draw_for_all(other, 1.0, levels, rounds)
        stated = doubling_search(1.0, levels, rounds, threshold_noise="once").epsilon_at(0.0)
        told = np.minimum(p, q) > 1e-6
        loss = float(np.max(np.abs(np.log(p[told] / q[told]))))
        assert loss <= stated + 1e-2  # what lies beyond the cut of z
        seen = max(seen, loss / stated)
    assert seen > 0.25


# --- the worst case -------------------------------------------------------------------------------


def every_walk(levels: int, max_rounds: int) -> list[tuple[int, int]]:
    """Accepts and rejects of every sequence of answers that the rules allow, by trying all answers.

    The rules are written out once more here, and compared with those of the walk that runs.
    """
    found = set()
    for answers in product((True, False), repeat=max_rounds):
        level, step, accepts, rejects = 0, 1, 0, 0
        runs = started(levels, max_rounds)
        for accepted in answers:
            assert not runs.over
            assert runs.asked == level + step
            runs = runs.after(accepted)
            if accepted:
                level, step, accepts = level + step, 2 * step, accepts + 1
            else:
                step, rejects = step // 2, rejects + 1
            if step == 0 or level >= levels:
                break
        assert runs.over
        assert (runs.level, runs.step, runs.rounds) == (level, step, accepts + rejects)
        found.add((accepts, rejects))
    return sorted(found)


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("max_rounds", [1, 2, 5, 9])
def test_cost_is_that_of_the_worst_of_all_walks(levels: int, max_rounds: int) -> None:
    walks = every_walk(levels, max_rounds)
    walk = doubling_search(1.0, levels, max_rounds)
    assert walk.epsilon_at(0.0) == max(accepts + rejects / 2 for accepts, rejects in walks)
    once = doubling_search(1.0, levels, max_rounds, threshold_noise="once")
    assert once.epsilon_at(0.0) == (max(accepts for accepts, _ in walks) + 1) / 2


def random_tree(
    rng: np.random.Generator,
    epsilon: float,
    levels: int,
    rounds: int,
    level: int = 0,
    step: int = 1,
):
    """Distribution of a walk whose rounds have losses within ±ε at accepts and ±ε/2 at rejects,
    chosen by round."""
    if rounds == 0 or step == 0 or level >= levels:
        return np.array([1.0]), np.array([1.0])
    kinds = [True, True, False]
    # Q/P
    ratio = np.exp([rng.choice([-1, 1]) * epsilon * (1.0 if accept else 0.5) for accept in kinds])
    if np.all(ratio > 1) or np.all(ratio < 1):
        ratio[0] = 1 / ratio[0]
    up = int(rng.choice(np.flatnonzero(ratio > 1)))
    down = int(rng.choice(np.flatnonzero(ratio < 1)))
    p = np.zeros(3)
    p[up] = (1 - ratio[down]) / (ratio[up] - ratio[down])
    p[down] = 1 - p[up]
    after = {True: (level + step, 2 * step), False: (level, step // 2)}
    distribution = [
        random_tree(rng, epsilon, levels, rounds - 1, *after[accept]) for accept in kinds
    ]
    ours = np.concatenate([mass * branch for mass, (branch, _) in zip(p, distribution)])
    theirs = np.concatenate([mass * branch for mass, (_, branch) in zip(p * ratio, distribution)])
    return ours, theirs


def test_profile_is_above_that_of_every_tree_of_rounds_and_close_to_the_worst_of_them() -> None:
    rng = np.random.default_rng(5)
    closest = 0.0
    for _ in range(brute_force.size(1000, 40)):
        levels = int(rng.integers(1, 6))
        rounds = int(rng.integers(1, 4))
        epsilon = float(rng.choice([0.2, 1.0]))
        p, q = random_tree(rng, epsilon, levels, rounds)
        assert p.sum() == pytest.approx(1.0)
        assert q.sum() == pytest.approx(1.0)
        walk = doubling_search(epsilon, levels, rounds)
        for at in (0.0, 0.5 * epsilon, epsilon, 1.3 * epsilon):
            exact, stated = hockey_stick(p, q, at), walk.delta_at(at)
            assert exact <= stated + 1e-12
            closest = max(closest, exact / stated if stated > 1e-9 else 0.0)
    assert closest > 0.99


def test_figures_of_the_documentation() -> None:
    walk = doubling_search(0.1, levels=100)
    assert walk.epsilon_at(0.0) == pytest.approx(2.95)
    assert walk.epsilon_at(1e-6) == pytest.approx(2.258, abs=2e-3)
    expected = pytest.approx(1.15)
    assert doubling_search(0.1, levels=100, threshold_noise="once").epsilon_at(0.0) == expected


@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 40.0, 100.0, 400.0])
def test_both_masses_of_a_round_keep_their_digits(epsilon: float) -> None:
    for up, down in product((1, 2), repeat=2):
        p, rest = doubling._opposite_loss_masses(up, down, epsilon / 2)
        with mpmath.workdps(700):
            a, b = (mpmath.mpf(loss) * epsilon / 2 for loss in (up, down))
            exact = mpmath.expm1(b) / (mpmath.exp(b) - mpmath.exp(-a))
            assert [p, rest] == pytest.approx([float(exact), float(1 - exact)], rel=1e-12)


def test_lowest_levels_are_those_of_the_cheapest_order_of_answers() -> None:
    lowest = lowest_levels(100, 7)
    assert lowest[3, 0] == 7
    assert lowest[3, 2] == 3  # accept, reject, accept, reject, accept
    assert (2, 3) not in lowest


@pytest.mark.parametrize(
    ("levels", "expected"), [(1, 2), (2, 7), (3, 12), (4, 12), (100, 37), (128, 37), (129, 42)]
)
def test_default_number_of_rounds(levels: int, expected: int) -> None:
    assert default_max_rounds(levels) == expected


@pytest.mark.parametrize(("arguments", "message"), [
    ((0.0, 10), "round_epsilon"), ((0.1, 0), "levels"), ((0.1, 10, 0), "max_rounds"),
    ((0.1, 2.5), "levels"),
])  # fmt: skip
def test_impossible_walks_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        doubling_search(*arguments)


# --- the mechanism --------------------------------------------------------------------------------


def walked(
    answers: Callable[[int], bool], levels: int, max_rounds: int | None = None
) -> tuple[list[int], int]:
    """The levels that a walk asks about, and where it ends."""
    walk = started(levels, default_max_rounds(levels) if max_rounds is None else max_rounds)
    asked = []
    while not walk.over:
        asked.append(walk.asked)
        walk = walk.after(answers(walk.asked))
    return asked, walk.level


def test_a_walk_ends_at_the_highest_level_that_is_found_above() -> None:
    assert walked(lambda level: False, levels=10) == ([1], 0)
    assert walked(lambda level: True, levels=10)[1] >= 10
    for best in range(1, 40):
        assert walked(lambda level, best=best: level <= best, levels=100, max_rounds=100)[1] == best


def drawn_walk(rng: random.Random, threshold_noise: str, lower: int = 0) -> tuple[int | None, ...]:
    """The results of a walk that really runs: candidates 3 and 14 of utilities in multiples of the
    grid."""
    settings = {"round_epsilon": Fraction(1), "sensitivity": Fraction(STEPS), "grid": Fraction(1)}
    question = AboveThreshold(**settings)
    options = {"threshold_noise": threshold_noise, "bits": rng}
    rounds = DoublingRounds(question, started(3, 3), lower=lower, granularity=8, **options)
    found = []
    while not rounds.over:
        found.append(rounds.ask([3 + lower, 14 + lower]))
    return tuple(found)


def results(walk: DoublingSteps) -> list[tuple[int | None, ...]]:
    """Every sequence of results of a walk over two candidates, in the order of ``transcripts``."""
    if walk.over:
        return [()]
    after = [(0, walk.after(True)), (1, walk.after(True)), (None, walk.after(False))]
    return [(answer, *rest) for answer, then in after for rest in results(then)]


@pytest.mark.parametrize("lower", [pytest.param(0, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("threshold_noise", ["fresh", pytest.param("once", marks=pytest.mark.slow)])
def test_walks_that_run_follow_the_enumerated_distribution(threshold_noise: str, lower: int):
    utilities, walk, runs = np.array([3, 14]), started(3, 3), 3000
    if threshold_noise == "fresh":
        distribution = np.array(
            transcripts(lambda level: one_round(utilities, 8 * level, 1.0), walk)
        )
    else:
        distribution = one_draw_for_all(utilities, 1.0, 3, 3)
    rng = random.Random(7)
    counts = Counter(drawn_walk(rng, threshold_noise, lower) for _ in range(runs))
    places = results(walk)
    assert set(counts) <= set(places)
    seen = np.array([counts[place] for place in places]) / runs
    assert np.all(
        np.abs(seen - distribution) < 5 * np.sqrt(np.maximum(distribution, 1 / runs) / runs)
    )
    assert np.sum(distribution > 0.02) > 4


def test_the_threshold_that_is_released_is_the_one_passed_last() -> None:
    question = AboveThreshold(round_epsilon=Fraction(10**6), sensitivity=Fraction(1, 50))
    rounds = DoublingRounds(
        question, started(10, 20), lower=Fraction(1, 10), granularity=Fraction(9, 100)
    )
    released = [rounds.threshold]
    while not rounds.over:
        found = rounds.ask([Fraction(5, 8)])
        released.append(rounds.threshold)
        assert (found is None) == (released[-1] == released[-2])
    assert released[0] == Fraction(1, 10)
    assert released[-1] == Fraction(1, 10) + 5 * Fraction(9, 100) <= Fraction(5, 8)


def test_a_walk_that_has_ended_answers_nothing_more() -> None:
    question = AboveThreshold(round_epsilon=Fraction(10**6), sensitivity=Fraction(1, 50))
    rounds = DoublingRounds(question, started(10, 1), granularity=Fraction(1, 10))
    rounds.ask([Fraction(1)])
    steps = rounds.steps
    match = "ended after 1 of them; more are not paid for. Begin another"
    with pytest.raises(PrivacyError, match=match):
        rounds.ask([Fraction(1)])
    assert rounds.steps == steps


def test_a_threshold_noise_that_is_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold_noise 'fresh' or 'once'"):
        doubling_search(1.0, levels=10, threshold_noise="twice")
