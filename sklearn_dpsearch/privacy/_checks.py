"""Checks of the accountant's arguments: one function for each kind of mistake."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from numbers import Real
from typing import Any

import numpy as np

from ..errors import PrivacyError
from ._types import NEIGHBORING, Array


def require(condition: bool, expected: str, **found: object) -> None:
    """Raise ``ValueError("Expected …, got name=value.")`` unless ``condition`` holds."""
    if not condition:
        got = ", ".join(f"{name}={value!r}" for name, value in found.items())
        raise ValueError(f"Expected {expected}, got {got}.")


def check_kind(name: str, value: object, kind: type, example: str) -> None:
    """Raise ``TypeError`` unless a value is of this kind."""
    if not isinstance(value, kind):
        raise TypeError(f"Found {name}={value!r} ({type(value).__name__}); {example} is needed.")


def check_neighboring(neighboring: object) -> None:
    """Raise ``ValueError`` unless this is one of the neighbouring relations."""
    require(neighboring in NEIGHBORING, f"neighboring to be one of {NEIGHBORING}", neighboring=neighboring)


def without_numpy(value: Any) -> None:
    """Replace NumPy's numbers in the fields of a frozen dataclass by Python's.

    Single precision would round what is computed from them to seven digits, and small integers wrap around.
    """
    for field in fields(value):
        number = getattr(value, field.name, None)
        if isinstance(number, np.generic):
            object.__setattr__(value, field.name, number.item())


def check_size_of_delta(name: str, delta: float, n: float) -> None:
    """Raise for a δ that is meaningless for n records, a public number.

    Publishing one record, picked at random, in full is (0, 1/n)-private.
    """
    if delta * n >= 1 - 1e-9:  # 1/n is refused for every n: in doubles (1/32561)·32561 is less than 1
        raise PrivacyError(
            f"Found {name}={delta:g} for {n:g} records: publishing one of them in full, picked at random, is private "
            f"at delta = 1/n = {1 / n:.3g}, so this delta promises nothing. Give a delta well below it, e.g. "
            f"{name}={0.01 / n:.0e}."
        )


#: Fields of guarantees for which a smaller number is the safer one.
SAFER_BELOW = ("noise_multiplier", "stop_probability")


def plain_numbers(value: Any) -> None:
    """Make floats or ints of all fields of a frozen dataclass that are annotated as numbers, or raise."""
    for field in fields(value):
        if field.type in ("float", "int"):
            number = plain_number(field.name, getattr(value, field.name))
            object.__setattr__(value, field.name, number)


def as_numbers(name: str, values: Any) -> Array:
    """A number, or an array of numbers, as floats; anything else raises ``TypeError``."""
    try:
        given = np.asarray(values)
        if given.dtype.kind in "bUSMmOV":  # booleans, text, dates; objects may be numbers of other kinds
            given = np.reshape([float(plain_number(name, value)) for value in given.ravel().tolist()], given.shape)
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"Found {name}={values!r} ({type(values).__name__}); a number or an array of numbers is needed, e.g. "
            f"{name}=1."
        ) from None


def plain_number(name: str, value: Any) -> float:
    """A number of any kind as a float, rounded to the private side."""
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
