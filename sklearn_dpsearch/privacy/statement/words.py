"""Words of a statement: its sentences, and mechanisms for people who do not read code."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..guarantees.base import Guarantee
from .content import short_down, short_up, template

#: Section ↦ name ↦ sentences, some with words to fill in.
SENTENCES: dict[str, Any] = tomllib.loads(template("sentences.toml"))
#: Most different parts that are named.
MOST = 4


def in_words(guarantee: Guarantee) -> str:
    """Mechanism of a guarantee in words.

    Losses are rounded up, and noise is rounded down.
    """
    words = WORDS.get(type(guarantee).__name__)
    if words is None:
        return f"a mechanism with a {type(guarantee).__name__} guarantee"
    return words(guarantee)


def _parts_in_words(parts: Sequence[Guarantee]) -> str:
    """Mechanisms of several parts in words, equal ones together; at most ``MOST`` different
    ones."""
    counted = Counter(map(in_words, parts))
    named = [text if number == 1 else f"{number} × ({text})" for text, number in counted.items()]
    more = f"; and {len(named) - MOST} more" if len(named) > MOST else ""
    return "; ".join(named[:MOST]) + more


def _best_of_in_words(search: Any) -> str:
    """Best of K runs in words."""
    return (
        f"best of K runs, with K drawn from {search.count!r}; each run: {in_words(search.one_run)}"
    )


def _subset_in_words(search: Any) -> str:
    """Subset search in words."""
    part = "all records" if search.train_on == "all" else "the rest"
    words = (
        f"tuning on a random share of {100 * search.fraction:.4g} % of the records "
        f"({in_words(search.tune)}), then a training on {part} ({in_words(search.train)})"
    )
    if search.validate is None:
        return words
    return (
        f"{words}; scores on a random {100 * search.share:.4g} % of the rest "
        f"({in_words(search.validate)})"
    )


#: Class of a guarantee ↦ words. By name: the modules of searches import this package.
WORDS: dict[str, Callable[[Any], str]] = {
    "ApproxDP": lambda one: (
        f"any mechanism with ε = {short_up(one.epsilon)} at δ = {short_up(one.delta)}"
    ),
    "PureDP": lambda one: f"any mechanism with ε = {short_up(one.epsilon)} at δ = 0",
    "LaplaceDP": lambda one: f"Laplace noise with ε = {short_up(one.epsilon)}",
    "BoundedRangeDP": lambda one: f"exponential mechanism with ε = {short_up(one.epsilon)}",
    "ZCDP": lambda one: f"any mechanism with zero-concentrated ρ = {short_up(one.rho)}",
    "GaussianDP": lambda one: (
        f"Gaussian noise with μ = {short_up(one.mu)} (sensitivity ÷ standard deviation)"
    ),
    "RenyiDP": lambda one: f"any mechanism with a Rényi curve, known at {len(one.orders)} orders",
    "DPSGD": lambda one: (
        f"DP-SGD: noise of {short_down(one.noise_multiplier)} clipping norms, sampling rate "
        f"{short_up(one.sample_rate)}, {one.steps} steps"
    ),
    "ProfileDP": lambda one: "any mechanism with a known privacy profile",
    "NonPrivate": lambda one: "a mechanism without a guarantee",
    "Composition": lambda one: f"released together: {_parts_in_words(one.parts)}",
    "Mixture": lambda one: f"one of these at random: {_parts_in_words(one.parts)}",
    "Envelope": lambda one: f"one of these, whichever it is: {_parts_in_words(one.parts)}",
    "ChangedRecord": lambda one: f"{in_words(one.presence)}, for a record that is replaced",
    "OfGroup": lambda one: f"{in_words(one.one_record)}, for {one.records} records at once",
    "BestOf": _best_of_in_words,
    "UntilAbove": lambda one: (
        f"runs until a private score reaches the threshold, or with probability "
        f"{one.stop_probability:.4g} before each run; each run: {in_words(one.one_run)}"
    ),
    "SubsetThenTrain": _subset_in_words,
    "DoublingWalk": lambda one: (
        f"doubling walk of at most {one.max_rounds} rounds, each with ε = "
        f"{short_up(one.round_epsilon)}"
    ),
}
