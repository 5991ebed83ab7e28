"""Lower bounds from outcomes alone: below the truth, and near it for every kind of outcome."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.audit import lower_bound
from sklearn_dpsearch.privacy import GaussianDP

TRUE = GaussianDP(mu=1.0).epsilon_at(1e-5)


def response(epsilon, n, rng):
    truth = 1 / (1 + np.exp(-epsilon))
    return rng.uniform(size=n) < truth, rng.uniform(size=n) < 1 - truth


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [bool, int, str, lambda one: ("answer", bool(one)), lambda one: {"a": int(one), "b": 3}]
)
def test_randomised_response_is_found_in_every_form(form) -> None:
    yes, no = response(2.0, 20_000, np.random.default_rng(0))
    found = lower_bound([form(one) for one in yes], [form(one) for one in no])
    assert 1.85 < found.epsilon_lower <= 2.0


@pytest.mark.slow
def test_bounds_are_wrong_no_more_often_than_stated() -> None:
    """400 audits of 60 runs a side, with the event chosen each time: 95 % of them or more are below
    the truth."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        yes, no = response(0.7, 60, rng)
        noise = rng.normal(size=(60, 2))
        outcomes, others = (
            [{"a": int(a), "b": b} for a, b in zip(side, noise)] for side in (yes, no)
        )
        wrong += lower_bound(outcomes, others).epsilon_lower > 0.7
    assert wrong <= 20 + 3 * np.sqrt(20)


def test_equal_distributions_give_next_to_nothing() -> None:
    rng = np.random.default_rng(2)
    found = lower_bound(rng.normal(size=(2000, 5)), rng.normal(size=(2000, 5)))
    assert found.epsilon_lower < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, -1])
def test_a_shifted_gaussian_is_found_on_either_side(turn) -> None:
    rng = np.random.default_rng(3)
    found = lower_bound(
        turn * rng.normal(1, 1, 40_000), turn * rng.normal(0, 1, 40_000), delta=1e-5
    )
    assert 2.0 < found.epsilon_lower <= TRUE
    assert found.delta == 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 300])
def test_a_shift_that_is_spread_over_many_numbers_is_found_along_their_sum(size) -> None:
    rng = np.random.default_rng(4)
    shifted = rng.normal(1.5 / np.sqrt(size), 1, (4000, size))
    found = lower_bound(shifted, rng.normal(0, 1, (4000, size)), delta=1e-5)
    alone = lower_bound(shifted[:, 0], rng.normal(0, 1, 4000), delta=1e-5)
    assert found.epsilon_lower > max(1.0, 2 * alone.epsilon_lower)
    assert "difference of means" in found.event


def test_labels_count_together_where_each_alone_says_nothing() -> None:
    """The parity of two coins."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, (2, 4000))
    parity = rng.uniform(size=(2, 4000)) < np.array([[0.9], [0.1]])
    both = [
        [{"a": bool(a), "b": bool(a) ^ bool(p)} for a, p in zip(coins, odd)]
        for coins, odd in zip(first, parity)
    ]
    assert 1.9 < lower_bound(*both).epsilon_lower <= np.log(9) + 1e-9


def test_missing_and_infinite_numbers_are_outcomes_like_any_other() -> None:
    often, seldom = np.random.default_rng(6).uniform(size=(2, 3000))
    for gone in (np.nan, np.inf, -np.inf, None):
        first = [gone if one < 0.5 else 1.0 for one in often]
        second = [gone if one < 0.05 else 1.0 for one in seldom]
        assert 1.7 < lower_bound(first, second).epsilon_lower <= np.log(10) + 1e-9


TEXTS = [f"text {place}" for place in range(2001)]


@pytest.mark.parametrize(("outcome", "other"), [
    (2**53, 2**53 + 1), (np.array([2**53]), np.array([2**53 + 1])), (10**400, 1), ([10**5000], [2]),
    ([[1], [2, 3]], [[1], [2, 4]]), (Fraction(1, 3), 1 / 3), ([2**64, -1], [2**64 + 1, -1]),
    (np.array(TEXTS), np.array([*TEXTS[:1000], "another", *TEXTS[1001:]])), ({3: 1}, {"a": 2}),
    ((np.array([1.0, 2.0]),), (np.array([1.0, 2.0 + 1e-15]),)),
])  # fmt: skip
def test_outcomes_of_any_kind_are_told_apart(outcome, other) -> None:
    """Rounded, abbreviated or of no common shape: an outcome is told from another in full."""
    found = lower_bound([outcome] * 100, [other] * 100)
    assert found.epsilon_lower > 2.0
    assert len(found.event) < 700


def test_outcomes_that_come_sorted_prove_no_more() -> None:
    """The halves are drawn: the end of a sorted sample is not a sample."""
    rng = np.random.default_rng(7)
    one, other = rng.normal(size=3000), rng.normal(size=3000)
    assert lower_bound(np.sort(one), np.sort(other)[::-1]).epsilon_lower < 0.3


def test_the_choice_of_the_event_does_not_see_the_runs_that_count() -> None:
    """With as many random labels as runs, an event chosen on all of them would prove much."""
    rng = np.random.default_rng(8)
    outcomes, others = ([str(one) for one in rng.integers(0, 10**9, 400)] for _ in range(2))
    assert lower_bound(outcomes, others).epsilon_lower < 0.3


def test_a_constant_proves_nothing() -> None:
    found = lower_bound([1.0] * 20, [1.0] * 20)
    assert (found.epsilon_lower, found.event) == (0.0, "no outcome differs between runs")
    assert found.consistent is None


@pytest.mark.parametrize(("change", "message"), [
    ({"outcomes": [1.0] * 9}, "Found 9 runs"), ({"delta": 1.0}, "delta=1.0"),
    ({"confidence": 1.0}, "confidence=1.0"), ({"confidence": 0.2}, "confidence=0.2"),
])  # fmt: skip
def test_samples_from_which_nothing_follows_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        lower_bound(**{"outcomes": [1.0] * 20, "others": [2.0] * 20, **change})
