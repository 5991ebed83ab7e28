"""Bisection: the place at which a monotone condition turns.

ε from a profile, a noise multiplier from a budget, a scale from a share. The condition
fails up to some number and holds from there on. Both ends around that number are returned, and the
caller takes the conservative end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

#: Condition on a number, closeness of the ends of an interval, and a point between them.
Condition: TypeAlias = Callable[[float], bool]
Closeness: TypeAlias = Callable[[float, float], bool]
Middle: TypeAlias = Callable[[float, float], float]


class Turn(NamedTuple):
    """Interval in which a monotone condition begins to hold.

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
    """Geometric sequence of numbers from a start to an end.

    It is start·factor, start·factor², …, up to ``end`` (or down to it, for a factor below 1), which
    comes last.
    """
    rising = factor > 1
    point = start
    while point < end if rising else point > end:
        point = min(point * factor, end) if rising else max(point * factor, end)
        yield point


def bracket(
    condition: Condition, start: float, falling: Iterable[float], rising: Iterable[float]
) -> Turn:
    """Bracket the number from which a condition holds, among given points.

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


def midpoint(low: float, high: float) -> float:
    """Middle of an interval."""
    return 0.5 * (low + high)


def geometric_mean(low: float, high: float) -> float:
    """Middle of an interval of positive numbers, on a logarithmic scale."""
    return math.sqrt(low * high)


def whole_midpoint(low: float, high: float) -> float:
    """Whole number in the middle of an interval."""
    return (low + high) // 2


def within(relative: float = 0.0, absolute: float = 0.0) -> Closeness:
    """Predicate: two numbers are at most absolute + relative·(the larger one) apart."""
    return lambda low, high: high - low <= absolute + relative * high


def narrow(condition: Condition, turn: Turn, close: Closeness, middle: Middle = midpoint) -> Turn:
    """Narrow a bracket of a condition by bisection.

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
