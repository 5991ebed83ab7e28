"""Columns of a schema: their values, and the numbers that encode them.

Every value of every record becomes some number, because an error would reveal the value. Only
column problems raise an error: a missing column, or a wrong type.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data._lists import number_of, objects, places_of
from ..data._persons import missing_among

Array = NDArray[np.float64]

MISSING, UNKNOWN = "missing", "unknown"
#: Fit of a value to its entry in the schema, beside missing and unknown values.
FITS, BELOW, ABOVE = "fits", "below", "above"
#: Directions of a target along a column, as schemas have them.
DIRECTIONS = {"decreasing": -1, "increasing": 1}
#: Kinds of values, by NumPy's letters.
KINDS = {
    **{"b": "flags", "i": "integers", "u": "integers", "f": "numbers", "c": "complex numbers"},
    **{"M": "dates", "m": "durations", "T": "text"},
}


class CurvePoints(NamedTuple):
    """Points of a curve of a linear model: values of a column and their encoding.

    ``weights`` says how much each value counts in the mean effect. Values without an order are
    objects.
    """

    name: str
    values: NDArray[Any]
    rows: Array
    weights: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnShape:
    """Effects of a column's values in an additive model, less their public mean.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        In the column's own unit. Numbers and dates rise, with two values where the curve jumps;
        others are objects.
    effects : ndarray of shape (n_curves, n_values)
        In the unit of the model's output, such as log odds.
    noise : ndarray of shape (n_curves, n_values) or None
        Standard deviation of the privacy noise in each effect; None if it is not known.
    """

    values: NDArray[Any]
    effects: Array
    noise: Array | None

    @property
    def of_list(self) -> bool:
        """True for values without an order, as of a list."""
        return bool(self.values.dtype == object)


def shape_of(points: CurvePoints, coefficients: Array, noise: Array | None) -> ColumnShape:
    """Effects of a column from the coefficients of its outputs.

    Parameters
    ----------
    points : CurvePoints
    coefficients : ndarray of shape (n_curves, n_outputs)
    noise : ndarray of shape (n_curves, n_outputs) or None
        Standard deviations of independent noise in the coefficients.
    """
    rows = points.rows - np.average(points.rows, axis=0, weights=points.weights)
    spread = None if noise is None else np.sqrt(noise**2 @ (rows**2).T)
    return ColumnShape(values=points.values, effects=coefficients @ rows.T, noise=spread)


class Unit(NamedTuple):
    """Unit of one output of the encoder, and its place in a range.

    value × ``half`` + ``middle`` is the value in the column's own unit.

    ``beside`` tells outputs for a part of a range (a bin, a month) from the value itself.
    """

    name: str
    middle: float = 0.0
    half: float = 1.0
    beside: bool = False


@dataclass(frozen=True)
class Detail:
    """Options of the encoder: indicators of missing values, and bins.

    Parameters
    ----------
    indicators : bool
        Whether missing or unknown values have an output.
    bins : int, "auto" or None
        Bins of each range without bins in the schema.
    """

    indicators: bool = True
    bins: int | str | None = None


@dataclass(frozen=True)
class Column(ABC):
    """Base class of columns of a schema."""

    #: Names of what values of this column may be that the schema does not describe.
    ways_to_misfit: ClassVar[tuple[str, ...]]
    #: Mean of the sum of squares of the outputs without bins, if all values are equally likely.
    mean_square: ClassVar[float] = 1.0
    #: Smallest number of an output for a value; the largest is 1.
    lowest: ClassVar[float]
    #: Whether the target falls (-1) or rises (1) with the values; 0: not stated.
    direction = 0

    def stated_direction(self) -> dict[str, str]:
        """Option of a schema's entry that states the direction; empty without one."""
        words = {direction: word for word, direction in DIRECTIONS.items()}
        return {"direction": words[self.direction]} if self.direction else {}

    def direction_in_words(self) -> list[str]:
        """Direction of the target in words; empty without one."""
        return [f"the target is {word} in it" for word in self.stated_direction().values()]

    @abstractmethod
    def encoded(self, values: NDArray[Any], detail: Detail) -> Array:
        """Encode values as numbers of shape (n_samples, n_outputs)."""

    @abstractmethod
    def outputs(self, name: str, detail: Detail) -> Iterator[Unit]:
        """Yield the outputs of the column, in order."""

    def squared_norm(self, detail: Detail) -> float:
        """Largest sum of squares of a record's outputs."""
        return 1.0

    @abstractmethod
    def refuse(self, name: str, kind: str) -> None:
        """Raise if values of this kind (a letter of NumPy's) can never fit the schema."""

    @abstractmethod
    def misfits(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """Code of how each value misfits the schema, shape (n,).

        0 if it fits, else 1 + its place in ``ways_to_misfit``.
        """

    @abstractmethod
    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """Make up values that the schema allows, shape (n,)."""

    @abstractmethod
    def curves(self, name: str, detail: Detail) -> Iterator[CurvePoints]:
        """Yield the points of the curves of a linear model, by the schema alone."""

    @abstractmethod
    def stated(self) -> Any:
        """Entry of the schema as the user wrote it."""

    @abstractmethod
    def described(self, bins: int = 0, max_values: int | None = None) -> str:
        """Column of the schema in words.

        With a number of bins, and with at most this many listed values.
        """


@dataclass(frozen=True)
class OneHot(Column):
    """Column with one output for each of several places.

    The last place is for values that have no other.
    """

    lowest = 0.0

    @abstractmethod
    def labels(self) -> Sequence[Any]:
        """Value, or kind of values, of each place."""

    @abstractmethod
    def places(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """Place of each value, shape (n,).

        A function of the value alone, whatever others are there.
        """

    @property
    def n_places(self) -> int:
        """Number of one-hot places."""
        return len(self.labels())

    def encoded(self, values: NDArray[Any], detail: Detail) -> Array:
        return np.eye(self.n_places)[self.places(values)][:, : self._width(detail)]

    def curves(self, name: str, detail: Detail) -> Iterator[CurvePoints]:
        labels = self.labels()[: self._width(detail)]
        counted = np.arange(len(labels)) < self.n_places - 1
        yield CurvePoints(name, objects(labels), np.eye(len(labels)), counted.astype(float))

    def _width(self, detail: Detail) -> int:
        """Number of outputs, without the last place if not wanted."""
        return self.n_places - (not detail.indicators)


@dataclass(frozen=True)
class Choice(OneHot):
    """Column with a list of values, one-hot encoded.

    Parameters
    ----------
    values : tuple
    of_numbers : bool
        Whether the column is declared to hold numbers, so that text contradicts it.
    confirmed : bool
        Whether two neighbouring whole numbers are known to be all values, and no ends of a range.
    direction : {-1, 0, 1}
        Whether the target falls or rises in the order of the list; 0: not stated.
    """

    ways_to_misfit = (MISSING, UNKNOWN)

    values: tuple[Hashable, ...]
    of_numbers: bool = False
    confirmed: bool = False
    direction: int = 0

    def labels(self) -> Sequence[Any]:
        return (*self.values, UNKNOWN)

    def places(self, values: NDArray[Any]) -> NDArray[np.intp]:
        places = {value: place for place, value in enumerate(self.values)}
        return places_of(values.tolist(), places, len(places))

    def outputs(self, name: str, detail: Detail) -> Iterator[Unit]:
        for label in self.labels()[: self._width(detail)]:
            yield Unit(f"{name}_{label}")

    def refuse(self, name: str, kind: str) -> None:
        if all(isinstance(value, str) for value in self.values) and kind in "biufM":
            raise TypeError(
                f"Found {kind_in_words(kind)} in column {name!r}, and {list(self.values)!r} in the "
                "schema: none of them can be in it. Write the values in the schema as the column "
                "has them, or convert it."
            )
        if kind == "T" and all(isinstance(value, bool) for value in self.values):
            as_yaml = ["yes" if value else "no" for value in self.values]
            raise TypeError(
                f"Found text in column {name!r}, and {list(self.values)} in the schema: YAML makes "
                f"flags of yes and no. Write the texts in quotes, {as_yaml} or "
                f"{list(map(str, self.values))}, as the column has them."
            )
        if kind == "T" and self.of_numbers:
            raise TypeError(
                f"Found text in column {name!r}, and the numbers {list(self.values)} in the "
                f"schema. If the texts are numbers, such as {str(self.values[0])!r}, convert the "
                "column: pandas.to_numeric(column, errors='coerce'). If they are labels, such as "
                "'flat', write all of them in the schema in place of the numbers."
            )
        if kind == "f" and not self.confirmed and are_neighbours(self.values):
            lower, upper = sorted(self.values)  # type: ignore[type-var]
            raise TypeError(
                f"Found real numbers in column {name!r}, and the list [{lower}, {upper}] in the "
                f"schema, which says that they are the only values. For all values from {lower} to "
                f"{upper} write ({lower}, {upper}); for these two alone write {{'values': "
                f"[{lower}, {upper}]}}."
            )

    def misfits(self, values: NDArray[Any]) -> NDArray[np.intp]:
        fits = self.places(values) < len(self.values)
        return np.where(fits, 0, np.where(missing_among(values), 1, 2))

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """Every value at least once, if there are enough records."""
        return rng.permutation(np.resize(objects(self.values), n))

    def stated(self) -> Any:
        values = list(self.values)
        options = {"type": "number"} if self.of_numbers else {}
        options |= self.stated_direction()
        is_plain = not (self.confirmed or options or looks_like_ends(values))
        return values if is_plain else {"values": values, **options}

    def described(self, bins: int = 0, max_values: int | None = None) -> str:
        shown = ", ".join(map(repr, self.values[:max_values]))
        n = len(self.values)
        more = "" if max_values is None or n <= max_values else f" and {n - max_values} more"
        return ", ".join([f"one of {n} values: {shown}{more}", *self.direction_in_words()])


@dataclass(frozen=True)
class Hashed(OneHot):
    """Column of any values, put into buckets by a public hash.

    Equal numbers share a bucket, and different values may.

    Parameters
    ----------
    buckets : int
    """

    ways_to_misfit = (MISSING,)

    buckets: int

    def labels(self) -> Sequence[Any]:
        return (*range(self.buckets), MISSING)

    def places(self, values: NDArray[Any]) -> NDArray[np.intp]:
        places = [self.buckets] * len(values)
        buckets: dict[bytes, int] = {}  # equal texts are hashed once
        for number, value in enumerate(values.tolist()):
            try:
                if value is None or value != value:
                    continue
                text = str.encode(value if isinstance(value, str) else _text_of(value))
                if text not in buckets:
                    # numbers have one text, because one entry of text makes text of a column
                    hashed = _text_of(text.decode()).encode()
                    digest = hashlib.blake2b(hashed, digest_size=8).digest()
                    buckets[text] = int.from_bytes(digest, "big") % self.buckets
                places[number] = buckets[text]
            except Exception:  # pandas' missing value, or no text at all
                continue
        return np.array(places, np.intp)

    def outputs(self, name: str, detail: Detail) -> Iterator[Unit]:
        for bucket in range(self.buckets):
            yield Unit(f"{name}_bucket_{bucket}")
        if detail.indicators:
            yield Unit(f"{name}_{MISSING}")

    def refuse(self, name: str, kind: str) -> None:
        if kind in "cmV":
            remedy = "and buckets in the schema: convert it to text."
            raise TypeError(f"Found {kind_in_words(kind)} in column {name!r}, {remedy}")

    def misfits(self, values: NDArray[Any]) -> NDArray[np.intp]:
        return np.where(self.places(values) == self.buckets, 1, 0)

    def made_up(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        numbers = rng.integers(0, 10 * self.buckets, n)
        return np.array([f"made up {number}" for number in numbers], dtype=object)

    def stated(self) -> Any:
        return {"buckets": self.buckets}

    def described(self, bins: int = 0, max_values: int | None = None) -> str:
        return f"any value, in {self.buckets} buckets"


def _text_of(value: Any) -> str:
    """Text of a value, equal for equal numbers, and for a number in text."""
    number = number_of(value)
    return str(value) if math.isnan(number) else repr(number + 0.0)  # -0.0 becomes 0.0


def looks_like_ends(values: Sequence[Any]) -> bool:
    """Return whether two values look like ends: dates, or numbers that are no neighbours."""
    if len(values) != 2:
        return False
    are_long = (not isinstance(value, str) or len(value) >= len("2024-05-31") for value in values)
    if all(are_long) and all(is_date(range_end(value)) for value in values):
        return True
    return all(map(is_number, values)) and not are_neighbours(values)


def are_neighbours(values: Sequence[Any]) -> bool:
    """Return whether two listed values are neighbouring whole numbers."""
    if len(values) != 2 or not all(map(is_number, values)):
        return False
    first, second = values
    return float(first).is_integer() and bool(abs(first - second) == 1)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, and no flag."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_date(value: Any) -> bool:
    """Return whether a value is a date."""
    return isinstance(value, (date, np.datetime64))


def range_end(end: Any) -> Any:
    """End of a range in Python's types; text is a date, as JSON has none."""
    if not isinstance(end, str):
        return python_value(end)
    try:
        instant = datetime.fromisoformat(end)
    except ValueError:
        return end
    return instant.date() if len(end) <= len("2024-05-31") else instant


def python_value(value: Any) -> Any:
    """Python's own form of a scalar of NumPy or pandas, as YAML has it; a day alone has no time."""
    if hasattr(value, "to_pydatetime"):
        return value.to_pydatetime(warn=False)
    if isinstance(value, np.datetime64):
        forms = value.item(), value.astype("datetime64[us]").item()
        return next(filter(is_date, forms), value)
    return value.item() if isinstance(value, np.generic) else value


def kind_in_words(kind: str) -> str:
    """Words for a kind of values, by NumPy's letter."""
    return KINDS.get(kind, "something else")
