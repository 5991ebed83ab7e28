"""Plain values: entries of object columns that travel between processes, each decided by itself.

A cell of another type may fail to be pickled, compare in its own way, or hold code. It is missing
behind the door.
"""

from __future__ import annotations

import contextlib
import hashlib
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._lists import MAX_DEPTH, objects

#: Types of plain values, exactly: a subclass may do anything, and so may its type when it is
#: compared or hashed.
SCALAR_TYPES = (bool, int, float, complex, Decimal, Fraction, str, bytes, date, timedelta)
SCALAR_IDS = frozenset(map(id, (*SCALAR_TYPES, type(None))))
#: Containers of plain values: tokens of a text, features by name.
CONTAINER_TYPES = (list, tuple, set, frozenset, dict)
#: Scalars of pandas, by name, that have no time zone.
PANDAS_SCALARS = ("Timedelta", "Period", "NaTType", "NAType")
#: Libraries of time zones, whose code tells the offset of an instant.
ZONE_LIBRARIES = ("zoneinfo", "pytz", "dateutil")


def plain_objects(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Array of plain values: None in place of others. It is not copied if all are plain."""
    if set(map(id, map(type, values.flat))) <= SCALAR_IDS:
        return values
    return objects([plain_value(value) for value in values.flat]).reshape(values.shape)


def plain_value(value: Any, depth: int = 0) -> Any:
    """Value itself, or its parts, if they are plain; None for others."""
    kind = type(value)
    if id(kind) in SCALAR_IDS:
        return value
    if kind.__module__ == "numpy" and isinstance(value, np.generic):
        return str(value) if kind is np.str_ else None if isinstance(value, np.void) else value
    of_pandas = kind.__module__.partition(".")[0] == "pandas"
    if kind is datetime or kind is time or (of_pandas and kind.__name__ == "Timestamp"):
        return _with_fixed_offset(value)
    if of_pandas and kind.__name__ == "Interval":
        return value if getattr(value.left, "tzinfo", None) is None else None
    if of_pandas and kind.__name__ in PANDAS_SCALARS:
        return value
    if not any(kind is container for container in CONTAINER_TYPES) or depth >= MAX_DEPTH:
        return None
    plain = partial(plain_value, depth=depth + 1)
    if kind is dict:
        return {plain(name): plain(part) for name, part in value.items()}
    return kind(map(plain, value))


def _with_fixed_offset(value: Any) -> Any:
    """The instant in a zone of a fixed offset; None where the zone may be code, or has none."""
    zone = value.tzinfo
    if zone is None or type(zone) is timezone:
        return value
    is_known = type(zone).__module__.partition(".")[0] in ZONE_LIBRARIES
    with contextlib.suppress(Exception):  # an offset of more than a day
        if is_known and type(value) is not time:
            return value.replace(tzinfo=timezone(value.utcoffset()))
    return None


def digest_of_objects(values: NDArray[np.object_]) -> bytes:
    """Digest of entries by their types and values, the same in every process."""
    return hashlib.blake2b("\0".join(map(_text_of, values.flat)).encode()).digest()


def _text_of(value: Any) -> str:
    """Text of an entry by its type and value; that of None for an entry that is not plain."""
    value = plain_value(value)
    kind = type(value)
    if kind in CONTAINER_TYPES:
        parts = map(_text_of, value.items() if kind is dict else value)
        text = ", ".join(sorted(parts) if kind in (set, frozenset) else parts)
    else:
        try:
            text = repr(value)
        except ValueError:  # of thousands of digits
            text = str(hash(value))
    return f"{kind.__name__}({text})"
