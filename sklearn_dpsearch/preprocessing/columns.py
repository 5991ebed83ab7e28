"""What a column may hold by its schema, and the numbers it becomes.

Every value of every record becomes some number, whatever it is: an error would tell that the value is there. Only what
concerns the whole column, its type, may be an error.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MISSING, UNKNOWN = "missing", "unknown"
#: Kinds of values, by NumPy's letters.
KINDS = {
    "b": "flags", "i": "integers", "u": "integers", "f": "numbers", "c": "complex numbers", "M": "dates",
    "m": "durations", "T": "text",
}  # fmt: skip
FLAGS = {"true": True, "false": False}
#: Dates as numbers: days, whose fractions are the time of day.
DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")


class Unit(NamedTuple):
    """What one output stands for: value × ``half`` + ``middle`` is the value in the column's own unit."""

    name: str
    middle: float = 0.0
    half: float = 1.0


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table."""

    @abstractmethod
    def encoded(self, values: NDArray[Any], extra: bool) -> Array:
        """Numbers of shape (n_samples, number of outputs); with ``extra`` a last one for what has no other."""

    @abstractmethod
    def outputs(self, name: str, extra: bool) -> Iterator[Unit]:
        """The outputs, in order."""

    @abstractmethod
    def refuse(self, name: str, kind: str) -> None:
        """Raise if values of this kind (a letter of NumPy's) can never be what the schema says."""

    @abstractmethod
    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """Values that the schema allows, shape (n,)."""

    @abstractmethod
    def stated(self) -> Any:
        """What the user wrote."""

    @property
    @abstractmethod
    def lowest(self) -> float:
        """The smallest number that an output for a value becomes; the largest is 1."""


@dataclass(frozen=True)
class Range(Column):
    """What lies between two ends: they become -1 and 1. What lies outside is clipped, what is missing becomes 0."""

    lower: Any
    upper: Any

    @abstractmethod
    def numbers(self, values: Any) -> Array:
        """The values as numbers, nan where they are none."""

    def encoded(self, values: NDArray[Any], extra: bool) -> Array:
        found = self.numbers(values)
        missing = np.isnan(found)
        unit = self._unit("")
        with np.errstate(over="ignore"):  # what overflows is far outside, and is clipped
            inside = np.where(missing, 0.0, np.clip((found - unit.middle) / unit.half, -1.0, 1.0))
        return np.column_stack([inside, missing]) if extra else inside[:, np.newaxis]

    def outputs(self, name: str, extra: bool) -> Iterator[Unit]:
        yield self._unit(name)
        if extra:
            yield Unit(f"{name}_{MISSING}")

    def stated(self) -> Any:
        return self.lower, self.upper

    @property
    def lowest(self) -> float:
        return -1.0

    def _unit(self, name: str) -> Unit:
        lower, upper = (float(end) for end in self.numbers(np.array([self.lower, self.upper], dtype=object)))
        return Unit(name, lower / 2 + upper / 2, upper / 2 - lower / 2)


@dataclass(frozen=True)
class NumberRange(Range):
    """Numbers."""

    def numbers(self, values: Any) -> Array:
        if values.dtype.kind in "biuf":
            found: Array = values.astype(np.float64)
            return found
        return np.fromiter((_number(value) for value in values), np.float64, len(values))

    def refuse(self, name: str, kind: str) -> None:
        if kind not in "biufOT":  # a single entry of text makes text of a column: it is read, and the entry missing
            raise TypeError(
                f"Found {_said(kind)} in column {name!r}, and ({self.lower}, {self.upper}) in the schema: "
                "numbers are needed. List its values in the schema, or convert the column."
            )

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        drawn = rng.uniform(self.lower, self.upper, n)
        whole = isinstance(self.lower, numbers.Integral) and isinstance(self.upper, numbers.Integral)
        return np.rint(drawn).astype(np.int64) if whole else drawn


@dataclass(frozen=True)
class DateRange(Range):
    """Dates, with or without a time of day; those with a time zone are taken in UTC."""

    def numbers(self, values: Any) -> Array:
        if values.dtype.kind == "M":
            return _days(values)
        return _days(np.array([_instant(value) for value in values], dtype="datetime64[us]"))

    def refuse(self, name: str, kind: str) -> None:
        if kind not in "MOT":
            raise TypeError(
                f"Found {_said(kind)} in column {name!r}, and dates in the schema: dates, or text "
                "such as 2024-05-31, are needed."
            )

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        unit = self._unit("")
        days = unit.middle + unit.half * rng.uniform(-1.0, 1.0, n)
        return np.asarray(np.floor(days * DAY).astype("datetime64[us]"))


@dataclass(frozen=True)
class Choice(Column):
    """One of several values, each with an output of its own that is 1 where it is the value and else 0."""

    values: tuple[Hashable, ...]

    def encoded(self, values: NDArray[Any], extra: bool) -> Array:
        places = {value: place for place, value in enumerate(self.values)}
        unknown = len(places)
        found = np.fromiter((_place(value, places, unknown) for value in values.tolist()), np.intp, len(values))
        return np.eye(unknown + 1)[found][:, : unknown + extra]

    def outputs(self, name: str, extra: bool) -> Iterator[Unit]:
        for value in (*self.values, *([UNKNOWN] if extra else [])):
            yield Unit(f"{name}_{value}")

    def refuse(self, name: str, kind: str) -> None:
        text = [isinstance(value, str) for value in self.values]
        if all(text) and kind in "biufM":
            raise TypeError(
                f"Found {_said(kind)} in column {name!r}, and {list(self.values)!r} in the schema: none "
                "of them can be in it. Write the values in the schema as the column has them, or convert it."
            )

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """Every value at least once, as far as there are records."""
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return rng.permutation(np.resize(values, n))

    def stated(self) -> Any:
        return list(self.values)

    @property
    def lowest(self) -> float:
        return 0.0


def column_of(name: str, stated: Any) -> Column:
    """The column that an entry of a schema describes.

    Raises
    ------
    ValueError
        If it is neither two ends in order nor a list of different values.
    """
    if isinstance(stated, Column):
        return stated
    if isinstance(stated, tuple) and len(stated) == 2:
        for kind, are in ((NumberRange, _is_number), (DateRange, _is_date)):
            if all(are(end) for end in stated):
                return _in_order(name, kind(*stated))
    if isinstance(stated, list) and stated:
        return _all_different(name, stated)
    raise ValueError(
        f"Found {stated!r} for column {name!r} of the schema. A tuple of two numbers or two dates (the smallest and "
        "the largest) is needed, or a list of all values."
    )


def _in_order(name: str, column: Range) -> Range:
    unit = column._unit(name)
    if not (math.isfinite(unit.middle) and unit.half > 0):
        raise ValueError(
            f"Found ({column.lower}, {column.upper}) for column {name!r} of the schema: the smallest value and then "
            "the largest are needed, both finite."
        )
    return column


def _all_different(name: str, values: list[Any]) -> Choice:
    bad = [value for value in values if not isinstance(value, Hashable) or value is None or value != value]
    if bad or len(set(values)) < len(values):
        raise ValueError(
            f"Found {values!r} for column {name!r} of the schema: different values are needed, and none for missing "
            "ones, which have an output of their own."
        )
    return Choice(tuple(values))


def _said(kind: str) -> str:
    return KINDS.get(kind, "something else")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    return isinstance(value, (date, np.datetime64))


def _number(value: Any) -> float:
    try:
        return float(_read(value) if isinstance(value, str) else value)
    except Exception:  # whatever it is, it is no number: an error would tell that it is there
        return math.nan


def _read(text: str) -> Any:
    """A flag or a number that a reader of CSV files left as text, because something else in its column is text."""
    flag = FLAGS.get(text.strip().lower())
    return float(text) if flag is None else flag


def _instant(value: Any) -> np.datetime64:
    """A date as NumPy has it; not a time for anything else."""
    try:
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        return np.datetime64(value, "us")
    except Exception:  # as with numbers
        return np.datetime64("NaT", "us")


def _days(values: Any) -> Array:
    micros = values.astype("datetime64[us]")
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / DAY)


def _place(value: Any, places: dict[Hashable, int], unknown: int) -> int:
    try:
        found = places.get(value, unknown)
        return places.get(_read(value), unknown) if found == unknown and isinstance(value, str) else found
    except Exception:  # not hashable, not comparable, no number
        return unknown
