"""Tables in partitions: frames of Dask, delayed frames and files, which are read where they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import not_once
from ._columns import columns_in, is_frame, is_of_dask, names_of, read_column
from ._plain_values import digest_of_objects


def is_partitioned(X: Any) -> bool:
    """Return whether a table comes in partitions: Dask's, delayed frames, or files."""
    files = isinstance(X, (list, tuple)) and all(map(is_file, X))
    return (files and bool(X)) or is_of_dask(X)


def is_file(part: Any) -> bool:
    """Return whether a partition is named by a path."""
    return isinstance(part, (str, os.PathLike))


def is_frame_of_dask(X: Any) -> bool:
    """Return whether a table is a DataFrame of Dask, by type."""
    return is_of_dask(X) and hasattr(X, "to_delayed") and hasattr(X, "columns")


def parts_of(X: Any) -> list[Any]:
    """Delayed frames, or paths in text, of a table in partitions.

    Raises
    ------
    TypeError
        For other containers of Dask.
    """
    if is_frame_of_dask(X):
        return list(X.to_delayed())
    if isinstance(X, (list, tuple)):
        return [os.fsdecode(part) if is_file(part) else part for part in X]
    raise TypeError(
        f"Found X of type {type(X).__name__} of Dask; a DataFrame of Dask, delayed frames or files "
        "are needed: X.to_dask_dataframe(columns=[...])."
    )


def parts_of_targets(y: Any) -> list[Any] | None:
    """Delayed targets of a Series of Dask; None for others."""
    return list(y.to_delayed()) if is_of_dask(y) and hasattr(y, "to_delayed") else None


def header_of(X: Any, y: Any, owner: str) -> tuple[Any, Any, str]:
    """Columns and targets of a DataFrame of Dask, without records, and the name of the target.

    Raises
    ------
    TypeError
        For other tables, and for a target that is no column.
    """
    if not is_frame_of_dask(X):
        raise TypeError(
            f"Found X of type {type(X).__name__}; {owner} needs a DataFrame of Dask: "
            "dd.read_parquet(files), or dd.from_delayed(frames)."
        )
    if not (isinstance(y, str) and y in X.columns):
        name = repr(y) if isinstance(y, str) else f"an object of type {type(y).__name__}"
        raise TypeError(f"Found {name} as y for partitions; the name of a column of X is needed.")
    return X._meta, X._meta[y], y


def check_partition(frame: Any, names: Sequence[str]) -> Any:
    """A partition, if it is a table with each of these columns once.

    Raises
    ------
    TypeError, ValueError
        Which name columns and types alone.
    """
    if not is_frame(frame):
        raise TypeError(
            f"Found a partition of type {type(frame).__name__}; a data frame is needed."
        )
    if message := not_once(names_of(frame) or [], names):
        raise ValueError(message)
    return frame


def column_named(frame: Any, name: str) -> Any:
    """Column of a table by its name, unread."""
    return columns_in(frame)[(names_of(frame) or []).index(name)]


def partition_facts(frame: Any) -> tuple[int, bytes]:
    """Number of the rows of a partition, and a digest of them in their order."""
    return len(frame), _digest(frame)


def chosen_rows(frame: Any, digest: bytes, rows: np.ndarray) -> Any:
    """Rows of a partition, by place or by a mask; None if it has changed."""
    return frame.iloc[rows] if _digest(frame) == digest else None


def _digest(frame: Any) -> bytes:
    """Digest of the rows in their order; no entry makes it fail."""
    rows = hashlib.blake2b(repr(frame.shape).encode())
    for column in columns_in(frame):
        values = read_column(column, exact=True).values
        rows.update(digest_of_objects(values) if values.dtype.kind == "O" else values.tobytes())
    return rows.digest()
