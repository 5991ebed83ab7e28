"""Numbers that people read are never below what was computed."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from sklearn_dpsearch.privacy.statement.content import hundredths_up, percent_up, plain, short_up, up


@given(st.floats(0.0, 1e6))
@example(math.nextafter(0.001, 1.0))
@example(math.nextafter(0.043, 1.0))  # times 1000 it is 43 in double precision
@example(5e-324)
def test_an_epsilon_is_never_printed_below_itself_nor_far_above(epsilon: float) -> None:
    assert epsilon <= float(up(epsilon)) <= epsilon + 0.001 * (1 + 1e-9)


@given(st.floats(0.0, 1.0))
@example(math.nextafter(0.0001, 1.0))
@example(0.99999999)
def test_a_risk_is_never_printed_below_itself_nor_above_a_hundred_per_cent(risk: float) -> None:
    shown = float(hundredths_up(risk))
    assert 100 * risk <= shown * (1 + 1e-15)
    assert shown <= min(100 * risk + 0.01 * (1 + 1e-9), 100.0)
    assert percent_up(risk) == f"{hundredths_up(risk)} %"


@given(st.floats(1e-300, 1.0))
@example(1.23456789e-5)
def test_a_delta_is_never_printed_below_itself(delta: float) -> None:
    assert delta <= float(short_up(delta)) <= delta * (1 + 1e-5)


def test_what_was_given_with_few_digits_is_printed_as_it_was_given() -> None:
    assert [short_up(delta) for delta in (1e-5, 0.0, 2.5e-7)] == ["1e-05", "0", "2.5e-07"]
    assert [up(epsilon) for epsilon in (3.0, 0.1, math.inf)] == ["3.000", "0.100", "infinity"]
    assert (plain(math.inf), plain(1.0)) == (None, 1.0)
