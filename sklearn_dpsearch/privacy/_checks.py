"""Helpers of frozen values: types, a check for each kind of mistake, and values computed once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyError

Array = npt.NDArray[np.float64]
ArrayLike = npt.ArrayLike
#: Several numbers at once.
Numbers: TypeAlias = Array | Sequence[float]
Neighboring = Literal["add_remove", "zero_out", "replace_one"]
NEIGHBORING: tuple[Neighboring, ...] = ("add_remove", "zero_out", "replace_one")


def require(condition: bool, expected: str, **values: object) -> None:
    """Raise ``ValueError("Expected …, got name=value.")`` unless ``condition`` holds."""
    if not condition:
        got = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise ValueError(f"Expected {expected}, got {got}.")


def require_in(interval: str, **numbers: Any) -> None:
    """Raise ``ValueError`` unless each number is in an interval, such as "[0, 1)"."""
    low, high = map(float, interval[1:-1].split(", "))
    closed_low, closed_high = interval[0] == "[", interval[-1] == "]"
    expected = f"{low:g} {'<=' if closed_low else '<'} {{}} {'<=' if closed_high else '<'} {high:g}"
    for name, number in numbers.items():
        above = low <= number if closed_low else low < number
        below = number <= high if closed_high else number < high
        require(above and below, expected.format(name), **{name: number})


def number_in(interval: str, **number: Any) -> float:
    """Number of Python's types in an interval, or ``TypeError`` or ``ValueError``."""
    ((name, value),) = number.items()
    plain = plain_number(name, value)
    require_in(interval, **{name: plain})
    return plain


def require_whole(minimum: int, **values: Any) -> None:
    """Raise unless each of these is a whole number of at least ``minimum``, of Python or NumPy."""
    for name, value in values.items():
        plain_number(name, value)
        valid = float(value).is_integer() and value >= minimum
        require(valid, f"an integer {name} >= {minimum}", **{name: value})


def check_kind(name: str, value: object, kind: type, example: str) -> None:
    """Raise ``TypeError`` unless a value is an instance of a class."""
    if not isinstance(value, kind):
        raise TypeError(f"Found {name}={value!r} ({type(value).__name__}); {example} is needed.")


def check_neighboring(neighboring: object) -> None:
    """Raise ``ValueError`` unless this is one of the neighbouring relations."""
    if neighboring not in NEIGHBORING:
        require(False, f"neighboring to be one of {NEIGHBORING}", neighboring=neighboring)


def check_size_of_delta(name: str, delta: float, n: float, unit: str = "record") -> None:
    """Raise for a δ that is meaningless for n records or persons, a public number.

    Publishing one of them, picked at random, in full is (0, 1/n)-private.
    """
    # 1/n is refused for every n: in doubles (1/32561)·32561 is less than 1
    if delta * n >= 1 - 1e-9:
        raise PrivacyError(
            f"Found {name}={delta:g} for {n:g} {unit}s: publishing one of them in full, picked at "
            f"random, is private at delta = 1/n = {1 / n:.3g}, so this delta promises nothing. "
            f"Give a delta well below it, e.g. {name}={0.01 / n:.0e}."
        )


def as_numbers(name: str, values: Any) -> Array:
    """A number, or an array of numbers, as floats; anything else raises ``TypeError``."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" and array.size:
            raise TypeError
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"Found {name}={values!r} ({type(values).__name__}); a number or an array of numbers "
            f"is needed, e.g. {name}=1."
        ) from None


def plain_number(name: str, value: Any) -> float:
    """Python's int or float of a number; ``TypeError`` for all else, a bool included.

    NumPy's integers wrap around, and its single precision would round what follows.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(
            f"Found {name}={value!r} ({type(value).__name__}); a number is needed, e.g. {name}=1."
        )
    return int(value) if isinstance(value, int | np.integer) else float(value)


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    def cached_property(function: Callable[[Any], Any]) -> functools.cached_property[Any]:
        """``functools.cached_property`` without its lock: two threads may both compute the value.

        In Python 3.11 it holds one lock for all objects of a class. A process that was forked while
        another thread held it would wait for ever, and threads would wait for each other's objects.
        """
        computed = functools.cached_property(function)
        computed.lock = contextlib.nullcontext()
        return computed


class FrozenValue:
    """Base of frozen dataclasses that check themselves when built.

    Numbers become Python's. Pickles hold fields alone; cached values are recomputed.
    """

    if TYPE_CHECKING:  # of subclasses, which are dataclasses
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in ("float", "int", float, int):
                if type(value) not in (int, float):
                    object.__setattr__(self, field.name, plain_number(field.name, value))
            elif field.name == "neighboring":
                check_neighboring(value)
        self._check()

    def _check(self) -> None:
        """Raise ``ValueError`` for fields that are impossible together or alone."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
