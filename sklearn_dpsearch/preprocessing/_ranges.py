"""Ranges of numbers and dates: a value between -1 and 1, and one-hot bins beside it."""

from __future__ import annotations

import itertools
import math
import numbers
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data._lists import doubles, number_of, objects
from ._columns import ABOVE, BELOW, MISSING, Array, Column, CurvePoints, Detail, Unit, kind_in_words

#: Scales of numbers; bins as the encoder says, or by the rule; bins of the rule.
LINEAR, LOG, ENCODER, AUTO, AUTO_BINS = "linear", "log", "encoder", "auto", 16
#: Dates as numbers: days, whose fractions are the time of day.
DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")
#: Text of a date of ISO 8601, with or without a time of day and its offset.
_OFFSET = r"(?P<offset>[zZ]|[+-]\d\d(:?\d\d(:?\d\d)?)?)?"
DATE = re.compile(
    rf"[+-]?\d{{4,6}}(-\d\d(-\d\d([Tt ]\d\d(:?\d\d(:?\d\d([.,]\d+)?)?)?{_OFFSET})?)?)?"
)
#: Days in a range of dates from which months, and weekdays, are worth outputs.
SPAN_OF_MONTHS, SPAN_OF_WEEKDAYS = 60, 14
#: Places within a bin at which a curve is computed: from its edge to just below the next one, where
#: the curve may jump.
PLACES_IN_BIN = np.append(np.arange(8) / 8, 1.0 - 1e-9)


class DatePart(NamedTuple):
    """Part of a date with one-hot outputs, such as its month.

    It has ``size`` outputs, of which the first stands for the number ``first``; ``place`` maps days
    since 1970 to their places.
    """

    name: str
    size: int
    first: int
    place: Callable[[Array], NDArray[np.int64]]


def _month(days: Array) -> NDArray[np.int64]:
    """Month of days since 1970, 0 is January."""
    months = np.floor(days).astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64) % 12


def _weekday(days: Array) -> NDArray[np.int64]:
    """Weekday of days since 1970, a Thursday; 0 is Monday."""
    return (np.floor(days).astype(np.int64) + 3) % 7


def _hour(days: Array) -> NDArray[np.int64]:
    """Hour of days since 1970."""
    return np.minimum(np.floor((days - np.floor(days)) * 24 + 1e-9), 23).astype(np.int64)


MONTH, WEEKDAY = DatePart("month", 12, 1, _month), DatePart("weekday", 7, 1, _weekday)
HOUR = DatePart("hour", 24, 0, _hour)


@dataclass(frozen=True)
class Range(Column):
    """Column of values between two ends, which become -1 and 1.

    Values outside are clipped, missing ones become 0.

    Parameters
    ----------
    lower, upper : number or date
    bins : int, "auto", None, tuple or "encoder"
        Number of equal bins, or the inner edges in the column's own units; "encoder": as the
        encoder says.
    scale : {"linear", "log"}
        "log", of numbers alone: equally spaced by sign(x)·log(1 + |x|).
    direction : {-1, 0, 1}
        Whether the target falls or rises with the values; 0: not stated.
    """

    ways_to_misfit = (MISSING, BELOW, ABOVE)
    mean_square, lowest = 1.0 / 3.0, -1.0
    #: Kind of the values, in a word.
    noun: ClassVar[str]

    lower: Any
    upper: Any
    bins: Any = ENCODER
    scale: str = LINEAR
    direction: int = 0

    @abstractmethod
    def to_numbers(self, values: Any) -> Array:
        """Convert values of the column to numbers; nan for others."""

    def auto_edges(self) -> Array:
        """Inner edges of the bins for "auto"."""
        return replace(self, bins=AUTO_BINS).edges(Detail())

    def warp(self, numbers: Array) -> Array:
        """Map numbers to the scale of equal spacing, linear or logarithmic."""
        return np.sign(numbers) * np.log1p(np.abs(numbers)) if self.scale == LOG else numbers

    def unwarp(self, numbers: Array) -> Array:
        """Map numbers back from the scale of equal spacing."""
        return np.sign(numbers) * np.expm1(np.abs(numbers)) if self.scale == LOG else numbers

    def parts(self) -> Sequence[DatePart]:
        """Parts of a date with one-hot outputs of their own."""
        return ()

    def to_values(self, numbers: Array) -> NDArray[Any]:
        """Convert numbers inside of the range back to values."""
        return numbers

    def encoded(self, values: NDArray[Any], detail: Detail) -> Array:
        return self._encode_numbers(self.to_numbers(values), detail)

    def misfits(self, values: NDArray[Any]) -> NDArray[np.intp]:
        numbers, (lower, upper) = self.to_numbers(values), self.ends()
        return np.select([np.isnan(numbers), numbers < lower, numbers > upper], [1, 2, 3], 0)

    def _encode_numbers(self, numbers: Array, detail: Detail) -> Array:
        """Outputs of numbers, nan for missing ones."""
        missing = np.isnan(numbers)
        unit = self._value_unit("")
        with np.errstate(over="ignore"):  # overflow is far outside the range, and is clipped
            share = np.clip((self.warp(numbers) - unit.middle) / unit.half, -1.0, 1.0)
        inside = np.where(missing, 0.0, share)
        outputs, edges = [inside[:, np.newaxis]], self.edges(detail)
        if len(edges):  # one-hot outputs, all zero where a number is missing
            warped, present = inside * unit.half + unit.middle, ~missing[:, np.newaxis]
            places = np.searchsorted(self.warp(edges), warped, side="right")
            outputs.append(np.eye(len(edges) + 1)[places] * present)
            for part in self.parts():
                outputs.append(np.eye(part.size)[part.place(self.unwarp(warped))] * present)
        if detail.indicators:
            outputs.append(missing[:, np.newaxis])
        return np.hstack(outputs)

    def edges(self, detail: Detail) -> Array:
        """Inner edges of the bins in the column's own numbers, none without bins."""
        bins = detail.bins if self.bins == ENCODER else self.bins
        if bins is None:
            return np.empty(0)
        if bins == AUTO:
            return self.auto_edges()
        if isinstance(bins, tuple):
            return self.to_numbers(np.array(bins, dtype=object))
        lower, upper = self.warp(self.ends())
        return self.unwarp(np.linspace(lower, upper, int(bins) + 1)[1:-1])

    def outputs(self, name: str, detail: Detail) -> Iterator[Unit]:
        yield self._value_unit(name)
        edges = self.edges(detail)
        if len(edges):
            ends = [self.lower, *map(self.edge_label, edges), self.upper]
            for low, high in itertools.pairwise(ends):
                yield Unit(f"{name}_{low}_to_{high}", beside=True)
            for part in self.parts():
                for place in range(part.size):
                    yield Unit(f"{name}_{part.name}_{place + part.first}", beside=True)
        if detail.indicators:
            yield Unit(f"{name}_{MISSING}")

    def curves(self, name: str, detail: Detail) -> Iterator[CurvePoints]:
        """Yield the curve of the value with its bins, and of each date part."""
        edges, (lower, upper) = self.edges(detail), self.ends()
        ends = self.warp(np.array([lower, *edges, upper]))
        inside = ends[:-1, np.newaxis] + np.diff(ends)[:, np.newaxis] * PLACES_IN_BIN
        inside[-1, -1] = ends[-1]
        numbers = self.unwarp(inside.ravel())
        rows = self._encode_numbers(numbers, detail)
        width, first = rows.shape[1], len(edges) + 2
        rows[:, first:] = 0.0
        weights = np.repeat(np.diff(ends), len(PLACES_IN_BIN))
        yield CurvePoints(name, self.to_values(numbers), rows, weights)
        for part in self.parts() if len(edges) else ():
            labels = range(part.first, part.first + part.size)
            one_hot = np.eye(part.size, width, first)
            yield CurvePoints(f"{name}_{part.name}", objects(labels), one_hot, np.ones(part.size))
            first += part.size

    def squared_norm(self, detail: Detail) -> float:
        return 1.0 + (1.0 + len(self.parts()) if len(self.edges(detail)) else 0.0)

    def edge_label(self, edge: float) -> str:
        """Text of an edge, as part of the name of a bin."""
        return f"{edge:.6g}"

    def stated(self) -> Any:
        options: dict[str, Any] = {}
        if self.bins != ENCODER:
            options["bins"] = list(self.bins) if isinstance(self.bins, tuple) else self.bins
        if self.scale != LINEAR:
            options["scale"] = self.scale
        options |= self.stated_direction()
        ends = self.lower, self.upper
        return {**dict(zip(("lower", "upper"), ends)), **options} if options else ends

    def described(self, bins: int = 0, max_values: int | None = None) -> str:
        words = [f"{self.noun} from {self.lower} to {self.upper}"]
        if self.scale == LOG:
            words.append("on a logarithmic scale")
        if isinstance(self.bins, tuple):
            words.append(f"cut at {', '.join(map(str, self.bins))}")
        if self.bins is None:
            words.append("without bins")
        if bins:
            words.append(f"{bins} bins")
        return ", ".join([*words, *self.direction_in_words()])

    def ends(self) -> Array:
        """Both ends of the range as numbers."""
        return self.to_numbers(np.array([self.lower, self.upper], dtype=object))

    def _value_unit(self, name: str) -> Unit:
        """Unit of the output for the value itself."""
        lower, upper = (float(end) for end in self.warp(self.ends()))
        return Unit(name, lower / 2 + upper / 2, upper / 2 - lower / 2)


@dataclass(frozen=True)
class NumberRange(Range):
    """Column of numbers between two ends."""

    noun = "number"

    def auto_edges(self) -> Array:
        """Edges of 16 bins, or of one for each whole number.

        Two or fewer whole numbers need none.
        """
        count = self.upper - self.lower + 1
        if self.of_whole_numbers and count <= AUTO_BINS:
            return np.arange(self.lower + 0.5, self.upper) if count > 2 else np.empty(0)
        return super().auto_edges()

    @property
    def of_whole_numbers(self) -> bool:
        """True if both ends are whole numbers.

        All values are then taken for whole numbers.
        """
        return isinstance(self.lower, numbers.Integral) and isinstance(self.upper, numbers.Integral)

    def to_numbers(self, values: Any) -> Array:
        if values.dtype.kind in "biuf":
            return doubles(values)
        return np.fromiter((number_of(value) for value in values), np.float64, len(values))

    def refuse(self, name: str, kind: str) -> None:
        if kind not in "biufO":  # entries of a column of objects are read one by one
            raise TypeError(
                f"Found {kind_in_words(kind)} in column {name!r}, and ({self.lower}, {self.upper}) "
                "in the schema: numbers are needed. List its values in the schema, or convert the "
                "column: pandas.to_numeric(column, errors='coerce') reads each entry on its own."
            )

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        drawn = rng.uniform(self.lower, self.upper, n)
        return np.rint(drawn).astype(np.int64) if self.of_whole_numbers else drawn


@dataclass(frozen=True)
class DateRange(Range):
    """Column of dates between two ends, with or without time.

    Those with a time zone are taken in UTC.
    """

    noun = "date"

    def to_numbers(self, values: Any) -> Array:
        """Convert dates to days since 1970; nan for others."""
        if values.dtype.kind != "M":
            values = np.array([_as_instant(value) for value in values], dtype="datetime64[us]")
        instants = values.astype("datetime64[us]")
        return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / DAY)

    def to_values(self, numbers: Array) -> NDArray[Any]:
        return np.asarray((numbers * DAY).astype("datetime64[us]"))

    def refuse(self, name: str, kind: str) -> None:
        if kind not in "MOT":
            needed = "and dates in the schema: dates, or text such as 2024-05-31, are needed."
            raise TypeError(f"Found {kind_in_words(kind)} in column {name!r}, {needed}")

    def parts(self) -> Sequence[DatePart]:
        """Month, weekday and hour of dates, as far as useful.

        Month and weekday if the range is long enough, and hour if it has a time of day.
        """
        lower, upper = self.ends()
        timed = any(isinstance(end, datetime) for end in (self.lower, self.upper))
        long_enough = (upper - lower >= SPAN_OF_MONTHS, upper - lower >= SPAN_OF_WEEKDAYS, timed)
        return [part for part, wanted in zip((MONTH, WEEKDAY, HOUR), long_enough) if wanted]

    def edge_label(self, edge: float) -> str:
        return str(np.datetime64(math.floor(edge), "D"))

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        unit = self._value_unit("")
        days = unit.middle + unit.half * rng.uniform(-1.0, 1.0, n)
        return np.asarray(np.floor(days * DAY).astype("datetime64[us]"))


def _as_instant(value: Any) -> np.datetime64:
    """Date in NumPy's type; NaT for any other value."""
    try:
        if isinstance(value, (str, bytes)):
            value = _parsed_date(value.decode() if isinstance(value, bytes) else value)
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(value, "us")
    except Exception:  # as with numbers
        return np.datetime64("NaT", "us")


def _parsed_date(text: str) -> datetime | str:
    """Time with an offset, or text that NumPy reads without a warning; others are errors."""
    match = DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError
    return datetime.fromisoformat(text.strip().upper()) if match["offset"] else text.strip()
