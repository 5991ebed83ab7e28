"""How arguments are checked, wherever the accountant takes one: one function for each kind of mistake."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from numbers import Real
from typing import Any

import numpy as np

from ._types import NEIGHBORING


def require(condition: bool, expected: str, **found: object) -> None:
    """Raise ``ValueError("Expected …, got name=value.")`` unless ``condition`` holds."""
    if not condition:
        got = ", ".join(f"{name}={value!r}" for name, value in found.items())
        raise ValueError(f"Expected {expected}, got {got}.")


def check_neighboring(neighboring: object) -> None:
    """Raise ``ValueError`` unless this is one of the neighbouring relations."""
    require(neighboring in NEIGHBORING, f"neighboring to be one of {NEIGHBORING}", neighboring=neighboring)


def without_numpy(value: Any) -> None:
    """Numbers of NumPy among the fields of a frozen dataclass become Python's.

    Single precision would round what is computed from them to seven digits, and small integers wrap around.
    """
    for field in fields(value):
        number = getattr(value, field.name, None)
        if isinstance(number, np.generic):
            object.__setattr__(value, field.name, number.item())


#: Fields of guarantees for which a smaller number is the safer one.
SAFER_BELOW = ("noise_multiplier", "stop_probability")


def plain_numbers(value: Any) -> None:
    """Fields of a frozen dataclass that are annotated as numbers become floats or ints; what is no number raises."""
    for field in fields(value):
        if field.type in ("float", "int"):
            number = _plain_number(field.name, getattr(value, field.name))
            object.__setattr__(value, field.name, number)


def _plain_number(name: str, value: Any) -> float:
    """A number that is no float, as a float on the private side."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
        raise TypeError(f"Found {name}={value!r} ({type(value).__name__}); a number is needed, e.g. {name}=1.")
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= 2**53):
        return value
    if not isinstance(value, int | Fraction) and not isfinite(value):
        return float(value)
    exact = Fraction(value) if isinstance(value, int | Fraction | Decimal) else Fraction(float(value))
    try:
        nearest = float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
    if Fraction(nearest) == exact:
        return nearest
    below = Fraction(nearest) < exact
    if name in SAFER_BELOW:
        return nearest if below else nextafter(nearest, -inf)
    return nextafter(nearest, inf) if below else nearest
