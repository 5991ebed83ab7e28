"""Draft of a schema from a public table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data._columns import columns_of, names_of
from ._columns import looks_like_ends
from ._ranges import DateRange, NumberRange
from ._schema import Schema

#: A column with at most this many different numbers, neighbours if two, is a list of values.
FEW_NUMBERS = 2


def schema_of(public_sample: Any, *, max_values: int = 50) -> Schema:
    """Draft a schema from a **public** sample, to be edited.

    Never give it private records: the schema is used as public knowledge, and shows values of
    records.

    Parameters
    ----------
    public_sample : DataFrame of pandas or polars
        Public records: a published extract, a synthetic file, last decade's census.
    max_values : int, default=50
        The most values that are listed for a column of text.

    Returns
    -------
    Schema
        Numbers and dates: a range that is rounded outwards. Text and flags: all values that occur.

    Raises
    ------
    ValueError
        For a column that is empty, or has too many values.
    """
    names = names_of(public_sample)
    if names is None:
        needed = "a data frame, which names its columns, is needed."
        raise TypeError(f"Found {type(public_sample).__name__}; {needed}")
    entries = columns_of(public_sample, names).items()
    return Schema({name: _draft_column(name, entry.values, max_values) for name, entry in entries})


def _draft_column(name: str, values: NDArray[Any], max_values: int) -> Any:
    """Entry of a schema drafted from public values."""
    if values.dtype.kind == "M":
        return _draft_date_range(name, values)
    if values.dtype.kind in "iuf":
        return _draft_number_range(name, values)
    present = {value for value in values.tolist() if value is not None and value == value}
    entries = sorted(present, key=str)
    if not 0 < len(entries) <= max_values:
        raise ValueError(
            f"Found {len(entries)} different values in column {name!r}; 1 to {max_values} can be "
            "listed. Leave the column out, convert it, or give a larger max_values."
        )
    return entries


def _draft_number_range(name: str, values: NDArray[Any]) -> Any:
    """Range of numbers, rounded outwards, or few listed values."""
    finite = _finite_values(name, NumberRange(0, 1).to_numbers(values))
    different = np.unique(finite)
    first = different[: FEW_NUMBERS + 1].tolist()
    few = [int(value) if value.is_integer() else value for value in first]
    if len(few) <= FEW_NUMBERS and not looks_like_ends(few):
        return few
    step = 10.0 ** math.floor(math.log10(finite.max() - finite.min())) / 2
    ends = math.floor(finite.min() / step) * step, math.ceil(finite.max() / step) * step
    return tuple(int(end) if float(end).is_integer() else float(f"{end:.12g}") for end in ends)


def _draft_date_range(name: str, values: NDArray[Any]) -> Any:
    """Range of dates, rounded outwards."""
    dates = DateRange(np.datetime64(0, "D"), np.datetime64(1, "D"))
    days = _finite_values(name, dates.to_numbers(values))
    ends = math.floor(days.min()), math.floor(days.max()) + 1
    return tuple(np.datetime64(end, "D").item() for end in ends)


def _finite_values(name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Finite values of a column, or an error if none."""
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        raise ValueError(f"Found no value in column {name!r}. Leave it out.")
    return finite
