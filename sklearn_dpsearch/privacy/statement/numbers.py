"""Numbers for people: short, and never below the computed value."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

#: More digits than any double has on either side of its point.
EXACT = Context(prec=700)


def up(value: float, digits: int = 3) -> str:
    """A bound with ``digits`` decimals: read as a float it is at least ``value``."""
    if not math.isfinite(value):
        return "infinity"
    return format(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING, EXACT), "f")


def hundredths_up(probability: float) -> str:
    """A probability times 100 with two decimals, rounded up, at most 100."""
    exact = min(Decimal(repr(float(probability))).scaleb(2), Decimal(100))
    return format(exact.quantize(Decimal("0.01"), ROUND_CEILING, EXACT), "f")


def percent_up(probability: float) -> str:
    """A probability in per cent with two decimals, rounded up, at most 100."""
    return f"{hundredths_up(probability)} %"


def short_up(value: float, digits: int = 6) -> str:
    """A small probability as it was given; with more digits than these, rounded up."""
    return _short(value, digits, ROUND_CEILING)


def short_down(value: float, digits: int = 6) -> str:
    """A number with at most these digits, rounded down."""
    return _short(value, digits, ROUND_FLOOR)


def _short(value: float, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).plus(Decimal(repr(float(value))))):.{digits}g}"


def plain(value: float) -> float | None:
    """A number for JSON, which has no infinity: None in its place."""
    return float(value) if math.isfinite(value) else None
