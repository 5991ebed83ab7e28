"""Rows given by users: tuples, mappings, or objects with attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fields_of(row: Any, kind: Any) -> dict[str, Any]:
    """Read the fields of a named tuple from a row; raise an error that names missing fields."""
    names, needed = kind._fields, [name for name in kind._fields if name not in kind._field_defaults]
    if isinstance(row, Mapping):
        found = {name: row[name] for name in names if name in row}
    elif hasattr(row, needed[0]):
        found = {name: getattr(row, name) for name in names if hasattr(row, name)}
    else:
        found = dict(zip(names, row))
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"Found a row {row!r} without {', '.join(missing)}; ({', '.join(names)}) are needed.")
    return found
