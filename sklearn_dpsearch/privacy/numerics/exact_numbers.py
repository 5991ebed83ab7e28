"""Exact numbers: fractions for draws, doubles rounded up for reports."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from numbers import Rational
from typing import TypeAlias

from .._checks import require

Number: TypeAlias = Fraction | int | float


def fraction(value: Number) -> Fraction:
    """The exact number in ``value``. Infinities and not-a-number raise."""
    return _ratio(value) if isinstance(value, Rational) else Fraction(float(value))


def _ratio(value: Rational | Fraction | int) -> Fraction:
    """Fraction of Python's integers; NumPy's would stay in the fraction and wrap around."""
    return Fraction(int(value.numerator), int(value.denominator))


def exact_fraction(value: object, name: str) -> Fraction:
    """``value`` as a fraction, or an error for a float, which may differ from the decimal number in the source."""
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise TypeError(
            f"Expected {name} as a Fraction or an int, got {value!r} ({type(value).__name__}). "
            f"Write it as Fraction(numerator, denominator)."
        )
    return _ratio(value)


def positive_fraction(value: object, name: str) -> Fraction:
    """``exact_fraction``, above 0."""
    exact = exact_fraction(value, name)
    require(exact > 0, f"{name} > 0", **{name: exact})
    return exact


def float_above(value: Fraction) -> float:
    """The least double of at least ``value``; infinity above the largest."""
    try:
        nearest = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)
