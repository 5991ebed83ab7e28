"""Public facts of containers of records: type, length, shape, columns and types; no value of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, sparray, spmatrix

from ...data.columns import is_frame
from ...data.lists import is_list

#: Kinds of NumPy types that labels may have.
TEXT, NUMBERS = tuple("US"), tuple("biufc")


@dataclass(frozen=True, eq=False)
class ContainerFacts:
    """Public facts of the records, or of their targets.

    Parameters
    ----------
    type : type
        Type of the container.
    n : int
        Number of records.
    shape : tuple of int
        Empty for containers without a shape.
    dtype : object
        Type of the values, where the container tells one; else None.
    kind : str
        NumPy's letter for this type; empty where the type is unknown.
    dimensions : int
        0 where they are unknown before the records are read.
    empty : object
        The container without its records, which keeps columns and types; None for other containers than arrays and
        data frames.
    """

    type: type
    n: int
    shape: tuple[int, ...]
    dtype: Any
    kind: str
    dimensions: int
    empty: Any

    @property
    def width(self) -> int | None:
        """Number of columns of a table; None for other shapes."""
        return self.shape[1] if len(self.shape) == 2 else None

    @property
    def is_sparse(self) -> bool:
        """Return whether the container is a sparse matrix or array."""
        return issubclass(self.type, (sparray, spmatrix))

    @property
    def has_several_columns(self) -> bool:
        """Return whether records have several targets, or labels."""
        return (self.width or 0) > 1


def facts_of(values: Any, name: str = "X") -> ContainerFacts:
    """Read the public facts of a container.

    Raises
    ------
    TypeError
        For other objects than arrays, data frames and lists.
    """
    shape, dtype = tuple(getattr(values, "shape", ())), getattr(values, "dtype", None)
    has_shape = hasattr(values, "shape")
    if not shape and (has_shape or not is_list(values)):
        found = f"{type(values).__name__}{' with a single value' if has_shape else ''}"
        raise TypeError(
            f"Found {name} of type {found}; an array, a data frame or a list of records is needed."
            + how_to_wrap(type(values))
        )
    n = shape[0] if issparse(values) else len(values)  # the shape of a lazy collection may be unknown
    empty = values[:0] if isinstance(values, np.ndarray) or is_frame(values) else None
    return ContainerFacts(type(values), int(n), shape, dtype, kind_of(dtype), len(shape), empty)


def kind_of(dtype: Any) -> str:
    """NumPy's letter for a type of values; empty where the type is unknown."""
    if str(dtype).lower().startswith("str"):  # of pandas and polars; NumPy would see any objects
        return "U"
    found = getattr(dtype, "kind", "")
    return "" if found == "O" else str(found)


def how_to_wrap(found: type) -> str:
    """Hint at skorch's wrapper for records that cannot be split as they are."""
    if issubclass(found, (str, bytes, list, tuple)):
        return ""
    if issubclass(found, Mapping):
        return " Of a dict of arrays give skorch.helper.SliceDict(**X)."
    if found.__name__ == "DataLoader":
        return " Of a DataLoader give its data set: skorch.helper.SliceDataset(loader.dataset), and y."
    return (
        " Of a torch Dataset give skorch.helper.SliceDataset(dataset), and y." if hasattr(found, "__getitem__") else ""
    )
