"""Tables as small whole numbers: a bin, a value or a bucket of each column, by a public schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..data._lists import objects
from ..data._rows import ChosenRows
from ..preprocessing import Schema
from ..preprocessing._columns import Array, Column, Detail, OneHot
from ..preprocessing._ranges import AUTO, ENCODER, LOG, DatePart, NumberRange, Range
from ..privacy._checks import cached_property

#: Codes of a table, shape (n_features, n_samples); one byte each, unless a column has more than 256
#: values.
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
#: Numbers over a range at least this long are amounts, most of them small: cuts also come from a
#: logarithmic scale.
WIDE_RANGE = 1000
#: Bins of each range without bins in the schema, unless another number is given.
MAX_BINS = 128
#: Records coded at once.
BLOCK = 2**14
#: Codes of the index of all directed columns.
INDEX_SIZE = 256
#: Equal parts of the edges' range, for each edge, and most edges in one of them, with which bins
#: are looked up.
PARTS, MOST_EDGES = 8, 3
#: Places within a bin at which a curve is computed: its edge, and just below the next one.
PLACES_IN_BIN = np.array([0.0, 1.0 - 1e-9])
#: Arguments of a model from which the facts about its table follow.
ARGUMENTS = ("schema", "target", "monotonic_cst", "max_bins")


@dataclass(frozen=True)
class Feature:
    """Column of a schema, or part of a date, as codes.

    Codes are 0 … size − 1; the last one is for missing or unknown.

    Parameters
    ----------
    column : int
        Place in the schema.
    size : int
    cuts : tuple of arrays, or None
        For ordered codes: places between two codes at which a scale may be cut (place c is below
        code c + 1), an array for each scale. None: codes without an order.
    direction : {-1, 0, 1}
        Whether predictions fall or rise with the codes, or may do both.
    """

    column: int
    size: int
    cuts: tuple[NDArray[np.intp], ...] | None = None
    direction: int = 0

    def ramp(self) -> Array:
        """Number of each code, from 0 to ±1 in the column's direction; 0 for a missing value."""
        return np.append(np.linspace(0.0, float(self.direction), self.size - 1), 0.0)


class CodedValues(NamedTuple):
    """Values of a feature and their codes, for an effect curve.

    ``weights`` says how much each counts in the mean effect.
    """

    name: str
    values: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Array


class TableFacts:
    """Facts about a table that a model's arguments state, resolved once.

    Parameters
    ----------
    model : GradientBoosting

    Attributes
    ----------
    schema, features : Schema
        All columns, and those without the target, with their directions.
    of_target : dict
        Facts about the target, by the names of parameters.
    """

    def __init__(self, model: Any) -> None:
        self._arguments = {name: getattr(model, name) for name in ARGUMENTS}
        self.schema = Schema.of(model.schema)
        numeric = isinstance(model, RegressorMixin)
        self.of_target = self.schema.facts_of(model.target, numeric=numeric)
        columns = self.schema if model.target is None else self.schema.without(model.target)
        self.features = columns.directed(directions_of(model.monotonic_cst, list(columns)))

    @cached_property
    def coded(self) -> CodedColumns:
        """Features as codes."""
        return CodedColumns(self.features, int(self._arguments["max_bins"]))

    def follow_from(self, model: Any) -> bool:
        """Return whether a model's arguments are those of which these are the facts."""
        return all(getattr(model, name) is value for name, value in self._arguments.items())


def directions_of(stated: Any, columns: Sequence[str]) -> dict[str, int]:
    """Directions by column, from ``monotonic_cst``.

    Raises
    ------
    ValueError
        For other numbers than -1, 0 and 1, and for an array of another length than that of the
        columns.
    """
    if stated is None:
        return {}
    if isinstance(stated, dict):
        names, values = list(stated), list(stated.values())
    else:
        names, values = list(columns), np.asarray(stated, dtype=object).ravel().tolist()
    if len(names) != len(values) or any(value not in (-1, 0, 1) for value in values):
        raise ValueError(
            f"Found monotonic_cst={stated!r}; -1, 0 or 1 by the name of a column, or for each of "
            f"{list(columns)}, is needed."
        )
    return {name: int(value) for name, value in zip(names, values)}


class CodedColumns:
    """Columns of a schema as small whole-number codes for boosting.

    Parameters
    ----------
    schema : Schema
    max_bins : int
        Bins of each range without bins in the schema, on each of its scales.

    Attributes
    ----------
    features : tuple of Feature
    directed : bool
        Whether a column has a direction. Codes have one more row then: the index, which is the sum
        of the directed columns, as numbers of ``Feature.ramp``, in INDEX_SIZE equal bins.
    edges : list of ndarray
        Inner edges of the bins of each column of the schema, in its own numbers; none of other
        columns than ranges.
    """

    def __init__(self, schema: Schema, max_bins: int) -> None:
        self._schema = schema
        columns = schema.columns.values()
        scales = [_bin_edges(column, max_bins) for column in columns]
        self.edges = [np.unique(np.concatenate(edges)) for edges in scales]
        self._bins = [BinLookup(edges) for edges in self.edges]
        features: list[Feature] = []
        for place, (column, edges, column_scales) in enumerate(zip(columns, self.edges, scales)):
            if isinstance(column, Range):
                cuts = tuple(np.searchsorted(edges, scale) for scale in column_scales)
                features.append(Feature(place, len(edges) + 2, cuts, column.direction))
                sizes = [part.size for part in _parts(column)]
                features += [Feature(place, size + 1, (np.arange(size - 1),)) for size in sizes]
            elif isinstance(column, OneHot):
                order = (np.arange(column.n_places - 2),) if column.direction else None
                features.append(Feature(place, column.n_places, order, column.direction))
        self.features = tuple(features)
        self.directed = any(feature.direction for feature in features)

    def described(self, max_values: int) -> list[str]:
        """One line for each column of the schema.

        ``max_values`` is the largest number of listed values that are shown.
        """
        bins = {name: len(edges) + 1 for name, edges in zip(self._schema, self.edges)}
        return self._schema.described(bins, max_values)

    def codes(self, X: Any) -> Codes:
        """Codes of a table's columns, shape (n_features, n_samples)."""
        chosen = X if isinstance(X, ChosenRows) else None
        columns = self._schema.read_columns(X if chosen is None else chosen.data)
        values = [columns[name].values for name in self._schema]
        number = len(values[0]) if chosen is None else len(chosen)
        largest = max(feature.size for feature in self.features)
        shape = (len(self.features) + self.directed, number)
        codes = np.empty(shape, np.min_scalar_type(largest - 1))
        for start in range(0, number, BLOCK):
            rows = slice(start, start + BLOCK)
            block = [column[rows] for column in values] if chosen is None else list(chosen[rows].T)
            coded = map(_codes_of_column, self._schema.columns.values(), self._bins, block)
            for place, column_codes in enumerate(itertools.chain.from_iterable(coded)):
                codes[place, rows] = column_codes
            if self.directed:
                codes[-1, rows] = self._index(codes[:-1, rows])
        return codes

    def values(self) -> Iterator[CodedValues]:
        """Values and codes of each feature, by the schema alone."""
        for (name, column), edges in zip(self._schema.columns.items(), self.edges):
            if isinstance(column, Range):
                yield from _values_of_range(name, column, edges)
            else:
                (points,) = column.curves(name, Detail())
                codes = np.arange(len(points.values))
                yield CodedValues(name, points.values, codes, points.weights)

    def _index(self, codes: Codes) -> NDArray[np.intp]:
        """Bin of the sum of all directed columns, which rises with each, shape (n_samples,)."""
        directed = [place for place, feature in enumerate(self.features) if feature.direction]
        total = np.zeros(codes.shape[1])
        for place in directed:
            total += self.features[place].ramp()[codes[place]]
        rising = sum(self.features[place].direction > 0 for place in directed)
        falling, bound = len(directed) - rising, np.sqrt(len(directed))  # sums beyond it are rare
        lower, upper = -min(falling, bound), min(rising, bound)
        share = (np.clip(total, lower, upper) - lower) / (upper - lower)
        return np.asarray(np.minimum((share * INDEX_SIZE).astype(np.intp), INDEX_SIZE - 1))


def _parts(column: Range) -> Sequence[DatePart]:
    """Parts of a date with codes of their own; none with a direction, which months would break."""
    return () if column.direction else column.parts()


def _bin_edges(column: Column, max_bins: int) -> list[NDArray[np.float64]]:
    """Inner edges of a column's bins in its own numbers, for each scale; none without a range."""
    if not isinstance(column, Range):
        return [np.empty(0)]
    if column.bins not in (ENCODER, AUTO, None):
        return [column.edges(Detail())]
    lower, upper = (float(end) for end in column.ends())
    integers = isinstance(column, NumberRange) and column.of_whole_numbers
    scales = [column.edges(Detail(bins=max_bins))]
    if integers and upper - lower < max_bins:
        return [np.arange(lower + 0.5, upper), *scales]
    if isinstance(column, NumberRange) and column.scale != LOG and upper - lower >= WIDE_RANGE:
        scales.append(NumberRange(column.lower, column.upper, max_bins, LOG).edges(Detail()))
    return [np.unique(np.floor(edges) + 0.5) for edges in scales] if integers else scales


class BinLookup:
    """Bins of numbers as ``np.searchsorted`` finds them on the right side, many times as fast.

    The range of the edges has equal parts, and a number is compared with the edges in its own part
    alone. The part of a number never falls as the number grows, so that no rounding matters.

    Parameters
    ----------
    edges : ndarray
        In order.
    """

    def __init__(self, edges: NDArray[np.float64]) -> None:
        self.edges, self._ends = edges, np.append(edges, np.nan)  # no number is beyond the last one
        self._scale, self._most = 0.0, len(edges)
        if len(edges) > MOST_EDGES:
            with np.errstate(over="ignore", divide="ignore"):
                self._scale = PARTS * len(edges) / (edges[-1] - edges[0])
        if 0.0 < self._scale < np.inf:
            parts = self._part(edges)
            self._first = np.searchsorted(parts, np.arange(PARTS * len(edges) + 1))
            self._most = int(np.bincount(parts).max())

    def bins(self, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
        """Bin of each number, none of which is missing."""
        if self._most > MOST_EDGES:
            return np.searchsorted(self.edges, numbers, side="right")
        bins: NDArray[np.intp] = np.zeros(numbers.shape, np.intp)
        if self._scale:
            bins = self._first.take(self._part(numbers))
        for _ in range(self._most):
            bins += self._ends.take(bins) <= numbers
        return bins

    def _part(self, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
        with np.errstate(over="ignore"):
            parts: NDArray[np.float64] = (numbers - self.edges[0]) * self._scale
        return np.clip(parts, 0, PARTS * len(self.edges), out=parts).astype(np.intp)


def _codes_of_column(
    column: Column, bins: BinLookup, values: NDArray[Any]
) -> Iterator[NDArray[np.intp]]:
    """Yield the codes of each feature of a column."""
    if isinstance(column, OneHot):
        yield column.places(values)
        return
    assert isinstance(column, Range)
    numbers = column.to_numbers(values)
    missing = np.isnan(numbers)
    present = np.where(missing, 0.0, numbers)
    yield np.where(missing, len(bins.edges) + 1, bins.bins(present))
    inside = np.clip(present, *column.ends())
    for part in _parts(column):
        yield np.where(missing, part.size, part.place(inside))


def _values_of_range(name: str, column: Range, edges: NDArray[np.float64]) -> Iterator[CodedValues]:
    """Values and codes of a range: ends of bins, and date parts.

    A curve is flat between the ends of a bin.
    """
    lower, upper = column.ends()
    ends = np.array([lower, *edges, upper])
    inside = ends[:-1, np.newaxis] + np.diff(ends)[:, np.newaxis] * PLACES_IN_BIN
    inside[-1, -1] = upper
    codes, lengths = np.arange(len(edges) + 1), np.diff(column.warp(ends))
    yield CodedValues(name, column.to_values(inside.ravel()), codes.repeat(2), lengths.repeat(2))
    for part in _parts(column):
        labels = objects(range(part.first, part.first + part.size))
        yield CodedValues(f"{name}_{part.name}", labels, np.arange(part.size), np.ones(part.size))
