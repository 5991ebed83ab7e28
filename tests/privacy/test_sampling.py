"""Exact noise: the algorithms' own probabilities, enumerated, and their draws, counted."""

from __future__ import annotations

import ast
import inspect
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch.privacy import sampling
from sklearn_dpsearch.privacy.sampling import bernoulli, bernoulli_exp, discrete_gaussian, discrete_laplace, geometric_exp

# --- every path of an algorithm, with its exact probability --------------------------------------------------------


class Pruned(Exception):
    """A path was too improbable to follow."""


class Replay:
    """A source of integers that follows a script, then always answers 0, and notes how many answers were possible."""

    def __init__(self, script: list[int], least: Fraction) -> None:
        self.script, self.asked, self.probability, self.least = script, [], Fraction(1), least

    def randrange(self, n: int) -> int:
        self.asked.append(n)
        self.probability /= n
        if self.probability < self.least:
            raise Pruned
        return self.script[len(self.asked) - 1] if len(self.asked) <= len(self.script) else 0


def paths(draw: Callable, least: Fraction) -> Iterator[tuple[object, Fraction]]:
    """Every (result, probability) of ``draw(rng)`` that is at least as probable as ``least``, depth first."""
    script: list[int] | None = []
    while script is not None:
        rng = Replay(script, least)
        try:
            yield draw(rng), rng.probability
        except Pruned:
            pass
        answers = (script + [0] * len(rng.asked))[:len(rng.asked)]
        while answers and answers[-1] + 1 >= rng.asked[len(answers) - 1]:
            answers.pop()
        script = answers[:-1] + [answers[-1] + 1] if answers else None


def law(draw: Callable, least: Fraction = Fraction(1, 10**5)) -> tuple[Counter, float]:
    """Probabilities of the results, from below, and the mass that was pruned."""
    found: Counter = Counter()
    for result, probability in paths(draw, least):
        found[result] += probability
    return found, float(1 - sum(found.values()))


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(2, 7), Fraction(5, 8)])
def test_bernoulli_has_exactly_the_stated_probability(p):
    found, pruned = law(lambda rng: bernoulli(p, rng))
    assert pruned == 0 and found[True] == p


class Coins:
    """In place of ``bernoulli``: follows a script of coins and multiplies their probabilities."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, chance: Callable[[Fraction], float], least: float) -> None:
        self.script: list[bool] = []
        self.seen: list[bool] = []
        self.probability, self.chance, self.least = 1.0, chance, least
        monkeypatch.setattr(sampling, name, self.toss)

    def toss(self, parameter: Fraction, rng: object) -> bool:
        index = len(self.seen)
        side = self.script[index] if index < len(self.script) else True
        chance = self.chance(parameter)
        self.probability *= chance if side else 1 - chance
        self.seen.append(side)
        if self.probability <= self.least:
            raise Pruned
        return side

    def paths(self, draw: Callable[[], object]) -> Iterator[tuple[object, float]]:
        """Every result with its probability, up to those less probable than ``least``."""
        while True:
            self.seen, self.probability = [], 1.0
            try:
                yield draw(), self.probability
            except Pruned:
                pass
            while self.seen and not self.seen[-1]:
                self.seen.pop()
            if not self.seen:
                return
            self.script = [*self.seen[:-1], False]


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(5)])
def test_bernoulli_exp_succeeds_with_probability_exp_minus_gamma(monkeypatch, gamma):
    coins = Coins(monkeypatch, "bernoulli", float, least=1e-15)
    success = sum(probability for result, probability in coins.paths(lambda: bernoulli_exp(gamma, None)) if result)
    assert success == pytest.approx(math.exp(-gamma), rel=1e-9)


def test_bernoulli_exp_agrees_with_the_series_when_every_integer_is_enumerated():
    found, pruned = law(lambda rng: bernoulli_exp(Fraction(1, 2), rng))
    assert float(found[True]) <= math.exp(-0.5) <= float(found[True]) + pruned
    assert pruned < 0.01


def test_geometric_exp_has_the_stated_law(monkeypatch):
    coins = Coins(monkeypatch, "bernoulli_exp", lambda gamma: math.exp(-gamma), least=1e-12)
    for value, probability in coins.paths(lambda: geometric_exp(None)):
        assert probability == pytest.approx((1 - math.exp(-1)) * math.exp(-value), rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 3), Fraction(5, 2), Fraction(7)])
def test_one_round_of_the_discrete_laplace_algorithm_has_exactly_the_stated_ratios(monkeypatch, scale):
    found: Counter = Counter()
    for remainder in range(scale.numerator):
        source = Replay([remainder] + [0] * 10**3, Fraction(0))
        with monkeypatch.context() as patched:
            coins = Coins(patched, "bernoulli_exp", lambda gamma: math.exp(-gamma), least=1e-14)

            def one_round(source=source, coins=coins, patched=patched):
                source.asked.clear()
                patched.setattr(sampling, "bernoulli", lambda p, rng: coins.tossed_fair(p))
                return sampling._try_discrete_laplace(scale, source)

            coins.tossed_fair = lambda p: Coins.toss_with(coins, float(p))
            for value, probability in coins.paths(one_round):
                found[value] += probability
    del found[None]
    for value in range(-6, 7):
        assert found[value] / found[0] == pytest.approx(math.exp(-abs(value) / scale), rel=1e-6)
