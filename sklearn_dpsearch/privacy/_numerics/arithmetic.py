"""Numbers that keep their digits: fractions, doubles rounded up, exponentials."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nextafter
from numbers import Rational
from typing import TypeAlias

import numpy as np
from scipy import special

from .._checks import Array, ArrayLike, require

Number: TypeAlias = Fraction | int | float


def fraction(value: Number) -> Fraction:
    """Exact fraction of a number; infinities and not-a-number raise ``ValueError``."""
    if isinstance(value, Rational):
        return _ratio(value)
    require(isfinite(value), "a finite number", number=value)
    return Fraction(float(value))


def _ratio(value: Rational | Fraction | int) -> Fraction:
    """Fraction of Python's integers.

    NumPy's integers would stay in the fraction and wrap around.
    """
    return Fraction(int(value.numerator), int(value.denominator))


def exact_fraction(value: object, name: str) -> Fraction:
    """Fraction of an exact number; a float is an error.

    A float may differ from the decimal number in the source.
    """
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise TypeError(
            f"Expected {name} as a Fraction or an int, got {value!r} ({type(value).__name__}). "
            "Write it as Fraction(numerator, denominator)."
        )
    return _ratio(value)


def positive_fraction(value: object, name: str) -> Fraction:
    """Fraction of an exact number above 0; a float is an error."""
    exact = exact_fraction(value, name)
    if exact <= 0:
        require(False, f"{name} > 0", **{name: exact})
    return exact


def float_above(value: Fraction) -> float:
    """The least double of at least ``value``; infinity above the largest."""
    try:
        nearest = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


LARGEST_EXPONENT = 700.0  # exp of more overflows a double


def safe_exp(x: ArrayLike) -> Array:
    """exp(x), with large arguments cut at ``LARGEST_EXPONENT`` instead of overflowing."""
    return np.exp(np.minimum(x, LARGEST_EXPONENT))


def log_expm1(x: ArrayLike) -> Array:
    """log(exp(x) − 1) for x > 0, accurate for tiny and for huge x."""
    x = np.asarray(x, dtype=float)
    small = np.minimum(x, 1.0)
    below_one = np.log(np.expm1(np.where(small > 0, small, 1.0)))
    return np.where(x < 1.0, below_one, x + np.log1p(-np.exp(-np.maximum(x, 1.0))))


def log_mills_ratio(x: ArrayLike) -> Array:
    """log of (1 − Φ(x)) / φ(x), the Mills ratio of the standard normal distribution."""
    x = np.asarray(x, dtype=float)
    log_erfcx = np.log(special.erfcx(np.maximum(x, -5.0) / np.sqrt(2.0)))
    right_tail = log_erfcx + 0.5 * np.log(np.pi / 2.0)
    left_tail = special.log_ndtr(-x) + 0.5 * x**2 + 0.5 * np.log(2.0 * np.pi)
    return np.asarray(np.where(x > -5.0, right_tail, left_tail))
