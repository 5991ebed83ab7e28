"""Numbers that keep their digits: exact fractions, doubles rounded up, exponentials of tiny and huge numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import inf, nextafter
from numbers import Rational
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from .._checks import require
from .._types import Array, ArrayLike

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


LARGEST_EXPONENT = 700.0  # exp of more overflows a double


def safe_exp(x: ArrayLike) -> Array:
    """exp(x), with large arguments cut at ``LARGEST_EXPONENT`` instead of overflowing."""
    return np.exp(np.minimum(x, LARGEST_EXPONENT))


def log_expm1(x: ArrayLike) -> Array:
    """log(exp(x) − 1) for x > 0, accurate for tiny and for huge x."""
    x = np.asarray(x, dtype=float)
    small = np.minimum(x, 1.0)
    return np.where(
        x < 1.0, np.log(np.expm1(np.where(small > 0, small, 1.0))), x + np.log1p(-np.exp(-np.maximum(x, 1.0)))
    )


def log_mills_ratio(x: ArrayLike) -> Array:
    """log of (1 − Φ(x)) / φ(x), the Mills ratio of the standard normal distribution."""
    x = np.asarray(x, dtype=float)
    right = np.log(special.erfcx(np.maximum(x, -5.0) / np.sqrt(2.0))) + 0.5 * np.log(np.pi / 2.0)
    left = special.log_ndtr(-x) + 0.5 * x**2 + 0.5 * np.log(2.0 * np.pi)
    return np.asarray(np.where(x > -5.0, right, left))


class Turn(NamedTuple):
    """Interval in which a condition begins to hold.

    Parameters
    ----------
    fails : float or None
        The largest number known to fail; None if the condition holds at every tried number.
    holds : float or None
        The smallest number known to hold; None if the condition fails at every tried number.
    """

    fails: float | None
    holds: float | None


def geometric(start: float, factor: float, end: float) -> Iterator[float]:
    """start·factor, start·factor², …, up to ``end`` (or down to it, for a factor below 1), which comes last."""
    rising = factor > 1
    point = start
    while point < end if rising else point > end:
        point = min(point * factor, end) if rising else max(point * factor, end)
        yield point


def bracket(
    condition: Callable[[float], bool], start: float, falling: Iterable[float], rising: Iterable[float]
) -> Turn:
    """Two neighbours among the given points between which the condition begins to hold.

    Parameters
    ----------
    condition : callable
        Number ↦ bool; fails below some number and holds above it.
    start : float
        Tried first.
    falling, rising : iterable of float
        Points to try next, if the condition holds at ``start`` and if it fails there.
    """
    if condition(start):
        holds = start
        for point in falling:
            if not condition(point):
                return Turn(point, holds)
            holds = point
        return Turn(None, holds)
    fails = start
    for point in rising:
        if condition(point):
            return Turn(fails, point)
        fails = point
    return Turn(fails, None)


def mean(low: float, high: float) -> float:
    """The middle of an interval."""
    return 0.5 * (low + high)


def geometric_mean(low: float, high: float) -> float:
    """The middle of an interval of positive numbers, on a logarithmic scale."""
    return math.sqrt(low * high)


def whole_mean(low: float, high: float) -> float:
    """A whole number in the middle of an interval between whole numbers."""
    return (low + high) // 2


def within(relative: float = 0.0, absolute: float = 0.0) -> Callable[[float, float], bool]:
    """Predicate: two numbers are at most absolute + relative·(the larger one) apart."""
    return lambda low, high: high - low <= absolute + relative * high


def narrowed(
    condition: Callable[[float], bool],
    turn: Turn,
    close: Callable[[float, float], bool],
    middle: Callable[[float, float], float] = mean,
) -> Turn:
    """Narrow a turn until its ends are close to each other.

    Parameters
    ----------
    condition : callable
        As for ``bracket``.
    turn : Turn
        A turn without both ends is returned unchanged.
    close : callable
        (low, high) ↦ whether they are close enough, such as ``within(1e-9)``.
    middle : callable
        (low, high) ↦ a number between them, to be tried next.
    """
    if turn.fails is None or turn.holds is None:
        return turn
    low, high = turn.fails, turn.holds
    while not close(low, high):
        point = middle(low, high)
        low, high = (low, point) if condition(point) else (point, high)
    return Turn(low, high)
