"""Public facts about the columns of a table."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from ..data._columns import Given, columns_of
from ..errors import did_you_mean
from ._code_books import columns_of_book, entry_error, entry_of, read_book, yaml_module
from ._columns import (
    DIRECTIONS,
    Choice,
    Column,
    Detail,
    Hashed,
    are_neighbours,
    is_date,
    is_number,
    looks_like_ends,
    python_value,
    range_end,
)
from ._ranges import AUTO, LINEAR, LOG, DateRange, NumberRange, Range

#: Most listed values of a column that are shown where a model says how it reads a table.
SHOWN_VALUES = 6
#: Assumption of a model with a schema.
PUBLIC_FACTS = "the schema was not taken from the records, and the types of its columns are public."
#: Remedy for a schema that is still to be written.
DRAFT = "preprocessing.schema_of(table_of_public_examples) drafts one."


def check_stated_once(model: Any, facts: Mapping[str, Any]) -> None:
    """Raise for an argument of a model about whose target the schema states such a fact, too."""
    for name, stated in facts.items():
        if (argument := getattr(model, name)) is not None:
            remedy = f"for which the schema states {stated!r}. Leave one of them out."
            raise ValueError(f"Found {name}={argument!r} and target={model.target!r}, {remedy}")


class Schema(Mapping[str, Any]):
    """Public knowledge about the columns of a table.

    By name: a range of numbers or dates as a tuple, or all values as a list.

    Parameters
    ----------
    columns : mapping of str to (lower, upper), list or dict; or a file of JSON or YAML
        ``{"age": (17, 90), "job": ["clerk", "nurse"], "since": (date(2000, 1, 1), date(2030, 1,
        1))}``. A dictionary says more: ``{"lower": 17, "upper": 90, "bins": [25, 35, 50]}`` (inner
        edges, a number, "auto" or None), ``{"lower": -500, "upper": 10_000, "scale": "log"}``
        (equally spaced by sign(x)·log(1 + abs(x))), ``{"buckets": 64}`` for a column of very many
        values, each hashed into a bucket, and ``{"values": [0, 5]}`` for two values that look like
        the ends of a range: as a list alone they are refused. ``"direction": "increasing"`` (or
        "decreasing") beside ends or values says that the target rises with the column, in the order
        of a list: a public fact that boosting keeps. Code books are read as they are:
        ``{"min": 2, "max": 9}``, ``{"1": "flat", "2": "house"}`` (codes with labels), JSON Schema
        (``minimum``, ``maximum``, ``enum``, ``type``) and Frictionless Table Schema (``fields``
        with ``constraints``).

    Raises
    ------
    ValueError
        For an entry that is neither two ends in order nor a list of different values, and for a
        list of two dates or of two numbers that are no neighbouring whole numbers: files of JSON
        and YAML have no tuples.

    Examples
    --------
    >>> schema = Schema({"age": (17, 90), "job": ["clerk", "nurse"], "income": ["low", "high"]})
    >>> schema.classes("income"), list(schema.without("income"))
    (['low', 'high'], ['age', 'job'])
    >>> print(schema.without("income").to_yaml().strip())
    age: {lower: 17, upper: 90}
    job: [clerk, nurse]
    """

    columns: Mapping[str, Column]

    def __init__(self, columns: Mapping[str, Any] | str | Path) -> None:
        book = read_book(columns) if isinstance(columns, (str, Path)) else columns
        entries = columns_of_book(book)
        is_mapping = isinstance(entries, Mapping) and bool(entries)
        if not is_mapping or not all(isinstance(name, str) for name in entries):
            raise ValueError(
                f"Found {entries!r} as a schema; a dictionary from names of columns to their "
                'values is needed, e.g. {"age": (17, 90), "job": ["clerk", "nurse"]}, or a file of '
                f"JSON or YAML. {DRAFT}"
            )
        if isinstance(entries, Schema):
            entries = entries.columns
        built = {name: column_of(name, stated) for name, stated in entries.items()}
        self.columns = MappingProxyType(built)

    @staticmethod
    def of(schema: Schema | Mapping[str, Any]) -> Schema:
        """Return a schema, built from a mapping if need be; a file has to be read before."""
        if isinstance(schema, (str, Path)):
            path = repr(str(schema))
            raise TypeError(
                f"Found schema={path}; a file is read by Schema: schema=Schema({path})."
            )
        return schema if isinstance(schema, Schema) else Schema(schema)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name].stated()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        title = f"Schema of {len(self)} column{'s' * (len(self) > 1)}"
        return "\n  ".join([title, *self.described()])

    def described(
        self, bins: Mapping[str, int] | None = None, max_values: int | None = None
    ) -> list[str]:
        """Lines that describe each column as it was understood.

        Parameters
        ----------
        bins : mapping of str to int, optional
            Numbers of bins of ranges, as a model uses them; by default those that the schema
            states.
        max_values : int, optional
            Most listed values that are shown.
        """
        bins = numbers_of_bins(self.columns, Detail()) if bins is None else bins
        columns = self.columns.items()
        return [
            f"{key}: {column.described(bins.get(key, 0), max_values)}" for key, column in columns
        ]

    def __reduce__(self) -> Any:
        return Schema, (dict(self.columns),)

    def without(self, *names: str) -> Self:
        """Schema without some columns, such as the target."""
        for name in names:
            self._column_named(name)
        return self.only(*(name for name in self.columns if name not in names))

    def only(self, *names: str) -> Self:
        """Schema of some columns, in the order given."""
        if not names:
            raise ValueError("Found no column that is left of the schema; at least one is needed.")
        return self._with_columns({name: self._column_named(name) for name in names})

    def directed(self, directions: Mapping[str, int]) -> Self:
        """Schema in which the target falls (-1) or rises (1) with some columns.

        Raises
        ------
        KeyError, ValueError
            For a column that the schema lacks, is of buckets, or has another direction there.
        """
        ways = {name: way for name, way in directions.items() if way}
        changed = {
            name: _directed(name, self._column_named(name), way) for name, way in ways.items()
        }
        return self._with_columns({**self.columns, **changed})

    def _with_columns(self, columns: Mapping[str, Column]) -> Self:
        """Schema of these columns, which were checked before."""
        schema = object.__new__(type(self))
        schema.columns = MappingProxyType(columns)
        return schema

    def read_columns(self, X: Any) -> Mapping[str, Given]:
        """Read the columns of a table that the schema names.

        Raises
        ------
        ValueError, TypeError
            As ``columns_of``, and for a column whose type can never fit its entry.
        """
        listed = [name for name, column in self.columns.items() if isinstance(column, Choice)]
        columns = columns_of(X, list(self), listed)
        for name, column in self.columns.items():
            column.refuse(name, columns[name].kind)
        return columns

    def classes(self, name: str) -> list[Any]:
        """Values of a column, for ``classes=`` of a classifier."""
        column = self._column_named(name)
        if not isinstance(column, Choice):
            needed = "a list of values has classes."
            raise ValueError(f"Found the range {self[name]!r} for column {name!r}; {needed}")
        return list(column.values)

    def bounds(self, name: str) -> tuple[Any, Any]:
        """Ends of a column, for ``bounds_y=`` of a regressor."""
        column = self._column_named(name)
        if not isinstance(column, Range):
            needed = "a range has bounds."
            raise ValueError(f"Found the values {self[name]!r} for column {name!r}; {needed}")
        return column.lower, column.upper

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Convert the schema to YAML, to be edited or kept.

        It is written to ``path`` if given. This needs PyYAML.
        """
        entries = {name: column.stated() for name, column in self.columns.items()}
        for name, stated in entries.items():
            if isinstance(stated, tuple):  # which YAML does not have
                entries[name] = dict(zip(("lower", "upper"), stated))
        text: str = yaml_module().safe_dump(
            entries, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
        )
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """Read a schema from a file of YAML, or its text.

        The text needs more than one line. This needs PyYAML.
        """
        return cls(yaml_module().safe_load(_text_of_source(source, "\n")))

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read a schema from a file of JSON, or its text.

        ``{"age": {"lower": 18, "upper": 90}, "job": ["clerk"]}``.

        Ends that are text, such as "2024-05-31", are dates.
        """
        return cls(json.loads(_text_of_source(source, "{")))

    def facts_of(self, target: str | None, *, numeric: bool) -> dict[str, Any]:
        """Facts about a target: its classes or its bounds.

        Parameters
        ----------
        target : str or None
            None: every column is a feature.
        numeric : bool
            Whether numbers are predicted.

        Returns
        -------
        dict
            ``classes`` or ``bounds_y``, by the names of estimators' parameters.

        Raises
        ------
        KeyError
            For a target that the schema lacks.
        """
        if target is None:
            return {}
        if target not in self.columns:
            raise KeyError(
                f"Found target={target!r}, and no column {target!r} in the schema of {list(self)}. "
                f"Add {target!r}: {'(0, 100)' if numeric else '[0, 1]'} to it, with what is "
                f"publicly known of the target."
            )
        return {"bounds_y": self.bounds(target)} if numeric else {"classes": self.classes(target)}

    def _column_named(self, name: str) -> Column:
        """Column of the schema by name, or an error."""
        if name not in self.columns:
            raise KeyError(
                f"Found no column {name!r} in the schema of "
                f"{list(self)}.{did_you_mean(name, list(self))}"
            )
        return self.columns[name]


def _text_of_source(source: str | Path, mark: str) -> str:
    """Text of a file; or the source itself, if it is text with this mark."""
    is_text = isinstance(source, str) and mark in source
    return str(source) if is_text else Path(source).read_text(encoding="utf-8")


# --- entries --------------------------------------------------------------------------------------


def column_of(name: str, stated: Any) -> Column:
    """Build the column that an entry of a schema describes.

    Raises
    ------
    ValueError
        If the entry is neither two ends in order nor a list of different values, or its options fit
        neither.
    """
    if isinstance(stated, Column):
        return stated
    stated, declared = entry_of(name, stated)
    if isinstance(stated, Mapping) and "direction" in stated:
        word = stated["direction"]
        entry = {key: value for key, value in stated.items() if key != "direction"}
        if not isinstance(word, str) or word not in DIRECTIONS:
            needed = f"; one of {sorted(DIRECTIONS)} is needed."
            raise entry_error(name, f"direction={word!r}", needed)
        return _directed(name, _undirected_column(name, entry, declared), DIRECTIONS[word])
    return _undirected_column(name, stated, declared)


def _undirected_column(name: str, stated: Any, declared: str) -> Column:
    """Column of an entry in a schema's words, without a direction, of a declared kind."""
    if isinstance(stated, tuple) and len(stated) == 2:
        stated = dict(zip(("lower", "upper"), stated))
    words = set(stated) if isinstance(stated, Mapping) else set()
    if words == {"buckets"}:
        if not is_number_of_bins(stated["buckets"]):
            needed = "; a whole number from 2 is needed."
            raise entry_error(name, f"buckets={stated['buckets']!r}", needed)
        return Hashed(int(stated["buckets"]))
    if words == {"values"} and isinstance(stated["values"], list):
        return _choice_of_values(name, stated["values"], declared, confirmed=True)
    if {"lower", "upper"} <= words <= {"lower", "upper", "bins", "scale"}:
        ends = range_end(stated["lower"]), range_end(stated["upper"])
        for kind, fits in ((NumberRange, is_number), (DateRange, is_date)):
            if all(map(fits, ends)):
                return _range_with_bins(name, _scaled_range(name, kind, ends, stated), stated)
        stated = ends
    if isinstance(stated, list) and looks_like_ends(stated):
        raise ValueError(_ambiguous_list(name, *stated))
    if isinstance(stated, list) and stated:
        return _choice_of_values(name, stated, declared)
    raise ValueError(
        f"Found {stated!r} for column {name!r} of the schema. A tuple of two numbers or two dates "
        "(the smallest and the largest), a list of all values, or a dictionary is needed: "
        f"{{'lower': 0, 'upper': 9, 'bins': [2, 5], 'scale': 'log'}}, {{'values': [0, 5]}} or "
        f"{{'buckets': 64}}. {DRAFT}"
    )


def _directed(name: str, column: Column, direction: int) -> Column:
    """Column in whose values the target falls or rises."""
    if not isinstance(column, (Range, Choice)) or column.direction not in (0, direction):
        needed = "a range, or a list in order, without the opposite direction is needed."
        problem = f", which is {column.described()}; {needed}"
        raise entry_error(name, f"the direction {direction}", problem)
    return replace(column, direction=direction)


def _ambiguous_list(name: str, first: Any, second: Any) -> str:
    """Text of an error for a list that may be a range."""
    key = str if is_date(first) or isinstance(first, str) else float
    lower, upper = sorted([first, second], key=key)
    return (
        f"Found the list [{first}, {second}] for column {name!r} of the schema, which says that "
        f"{first} and {second} are the only values. For all values from {lower} to {upper} write "
        f"({lower}, {upper}) or {{lower: {lower}, upper: {upper}}}; for these two values alone "
        f"write {{values: [{first}, {second}]}}."
    )


def numbers_of_bins(columns: Mapping[str, Column], detail: Detail) -> dict[str, int]:
    """Number of bins of each range that has any, with these options of an encoder."""
    ranges = {name: column for name, column in columns.items() if isinstance(column, Range)}
    edges = {name: column.edges(detail) for name, column in ranges.items()}
    return {name: len(inner) + 1 for name, inner in edges.items() if len(inner)}


def _scaled_range(
    name: str, kind: type[Range], ends: tuple[Any, Any], options: Mapping[str, Any]
) -> Range:
    """Range with the scale of its entry, whose ends are finite and in order, or an error."""
    scale = options.get("scale", LINEAR)
    if scale not in (LINEAR, LOG) or (scale == LOG and kind is not NumberRange):
        needed = "; 'linear', or 'log' of numbers, is needed."
        raise entry_error(name, f"scale={scale!r}", needed)
    column = kind(*ends, scale=scale)
    unit = column._value_unit(name)
    if not (math.isfinite(unit.middle) and unit.half > 0):
        needed = ": the smallest value and then the largest are needed, both finite."
        raise entry_error(name, f"({column.lower}, {column.upper})", needed)
    return column


def _range_with_bins(name: str, column: Range, options: Mapping[str, Any]) -> Range:
    """Range with the bins of its entry, checked."""
    if "bins" not in options:
        return column
    bins = python_value(options["bins"])
    if isinstance(bins, np.ndarray) and bins.ndim == 1:
        bins = list(bins)
    if bins is None or (isinstance(bins, str) and bins == AUTO) or is_number_of_bins(bins):
        return replace(column, bins=bins)
    if isinstance(bins, (list, tuple)) and bins:
        with_bins = replace(column, bins=tuple(map(python_value, bins)))
        edges = np.concatenate([column.ends()[:1], with_bins.edges(Detail()), column.ends()[1:]])
        if np.all(np.diff(edges) > 0):  # not so with nan
            return with_bins
    edges_needed = f"rising edges between {column.lower} and {column.upper} are needed."
    needed = f"; a number of bins from 2, 'auto', None, or {edges_needed}"
    raise entry_error(name, f"bins={bins!r}", needed)


def is_number_of_bins(bins: Any) -> bool:
    """Return whether a value is a number of bins."""
    return isinstance(bins, numbers.Integral) and not isinstance(bins, bool) and int(bins) >= 2


def _choice_of_values(
    name: str, values: list[Any], kind: str = "", *, confirmed: bool = False
) -> Choice:
    """Column with a list of different values, or an error."""
    values = list(map(python_value, values))
    values_fit = all(
        isinstance(value, Hashable) and value is not None and value == value for value in values
    )
    if not values_fit or len(set(values)) < len(values):
        needed = "different values are needed, and none for missing ones"
        raise entry_error(name, repr(values), f": {needed}, which have an output of their own.")
    return Choice(tuple(values), kind == "numbers", confirmed and are_neighbours(values))
