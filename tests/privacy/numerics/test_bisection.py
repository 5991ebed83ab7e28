"""The one bisection: both ends it returns are what it says they are, wherever the condition
turns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dpsearch.privacy._checks import Array
from sklearn_dpsearch.privacy._guarantees.base import smallest_epsilon
from sklearn_dpsearch.privacy._numerics.bisection import (
    Turn,
    bracket,
    geometric,
    narrow,
    whole_midpoint,
    within,
)


def around(start: float, least: float, most: float, factor: float = 2.0) -> dict[str, object]:
    return {
        "falling": geometric(start, 1 / factor, least),
        "rising": geometric(start, factor, most),
    }


@pytest.mark.slow
@given(turn=st.floats(1e-5, 1e5), start=st.floats(1e-3, 1e3), strictly=st.booleans())
def test_the_condition_fails_at_one_end_and_holds_at_the_other(turn, start, strictly):
    def condition(x: float) -> bool:
        return x > turn if strictly else x >= turn

    wide = bracket(condition, start, **around(start, 1e-6, 1e6))
    for ends in (
        wide,
        narrow(condition, wide, within(1e-9)),
        narrow(condition, wide, within(absolute=1e-4)),
    ):
        assert ends.fails is not None
        assert ends.holds is not None
        assert not condition(ends.fails)
        assert condition(ends.holds)
    assert wide.holds <= 2 * wide.fails * (1 + 1e-12)
    assert narrow(condition, wide, within(1e-9)).holds <= turn * (1 + 2e-9)


def test_what_holds_or_fails_everywhere_has_one_end() -> None:
    assert bracket(lambda x: True, 1.0, **around(1.0, 0.1, 10.0)) == Turn(None, 0.1)
    assert bracket(lambda x: False, 1.0, **around(1.0, 0.1, 10.0)) == Turn(10.0, None)
    for turn in (Turn(None, 0.1), Turn(10.0, None)):
        assert narrow(lambda x: pytest.fail("tried again"), turn, within(1e-3)) == turn


def test_points_go_by_a_factor_and_end_at_the_end() -> None:
    assert list(geometric(1.0, 2.0, 5.0)) == [2.0, 4.0, 5.0]
    assert list(geometric(1.0, 0.5, 0.2)) == [0.5, 0.25, 0.2]
    assert list(geometric(5.0, 2.0, 5.0)) == []


def test_points_that_are_not_needed_are_not_tried() -> None:
    tried = []

    def condition(x: float) -> bool:
        tried.append(x)
        return x >= 3.0

    assert bracket(condition, 1.0, **around(1.0, 1e-6, 1e6)) == Turn(2.0, 4.0)
    assert tried == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("turn", [1, 2, 1000, 12345])
def test_whole_numbers_are_found_to_the_last_one(turn: int) -> None:
    wide = bracket(lambda n: n >= turn, 1, falling=(0,), rising=geometric(1, 2, 2**20))
    expected = Turn(turn - 1, turn)
    assert narrow(lambda n: n >= turn, wide, within(absolute=1), whole_midpoint) == expected


@given(
    turn=st.floats(0.01, 90.0),
    power=st.sampled_from([0.2, 1.0, 5.0]),
    scale=st.floats(1e-6, 1e6),
    flat=st.booleans(),
)
def test_the_smallest_epsilon_is_found_for_profiles_of_any_shape(turn, power, scale, flat):
    """Also where δ is on a flat part of the profile, of which the left end is the answer."""
    tried = []

    def profile(epsilon: Array) -> Array:
        tried.append(epsilon)
        away = scale * np.sign(turn - epsilon) * np.abs(turn - epsilon) ** power
        return 1e-6 * np.exp(
            np.where(epsilon < turn, 1.0, 0.0) if flat else np.clip(away, -500, 10)
        )

    found = smallest_epsilon(profile, 1e-6)
    assert profile(np.array([found])) <= 1e-6
    assert (
        profile(np.array([found - 2e-10 - 2e-9 * found])) > 1e-6
        or (found - turn) ** power * scale < 1e-9
    )
    assert len(tried) <= 200
