"""Plain values: entries of object columns that travel between processes, each decided by itself.

A cell of another type may fail to be pickled, compare in its own way, or hold code. It is missing
behind the door.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._lists import MAX_DEPTH, objects

#: Types of plain values, exactly: a subclass may do anything.
SCALAR_TYPES = frozenset(
    {bool, int, float, complex, Decimal, Fraction}
    | {str, bytes, type(None), datetime, date, time, timedelta}
)
#: Containers of plain values: tokens of a text, features by name.
CONTAINER_TYPES = (list, tuple, set, frozenset, dict)


def plain_objects(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Array of plain values: None in place of others. It is not copied if all are plain."""
    if set(map(type, values.flat)) <= SCALAR_TYPES:
        return values
    return objects([plain_value(value) for value in values.flat]).reshape(values.shape)


def plain_value(value: Any, depth: int = 0) -> Any:
    """Value itself, or its parts, if they are plain; None for others."""
    kind = type(value)
    if kind in SCALAR_TYPES:
        return value
    if kind.__module__ == "numpy" and isinstance(value, np.generic):
        return str(value) if kind is np.str_ else value
    if kind.__module__.startswith("pandas._libs.") and kind.__name__ in PANDAS_SCALARS:
        return value
    if kind not in CONTAINER_TYPES or depth >= MAX_DEPTH:
        return None
    if kind is dict:
        pairs = value.items()
        return {plain_value(name, MAX_DEPTH): plain_value(part, depth + 1) for name, part in pairs}
    part_depth = MAX_DEPTH if kind in (set, frozenset) else depth + 1
    return kind(plain_value(part, part_depth) for part in value)


#: Scalars of pandas, by name.
PANDAS_SCALARS = ("Timestamp", "Timedelta", "Period", "Interval", "NaTType", "NAType")
