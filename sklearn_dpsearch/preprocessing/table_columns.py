"""Columns of a table: of pandas, of polars, or of an array without names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..errors import not_once


class Given(NamedTuple):
    """A column: values of shape (n_samples,), and the letter by which NumPy calls their kind; "T" is text."""

    values: NDArray[Any]
    kind: str


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None for an array."""
    return None if isinstance(X, np.ndarray) or not hasattr(X, "columns") else [str(name) for name in X.columns]


def columns_of(X: Any, wanted: Sequence[str]) -> Mapping[str, Given]:
    """The wanted columns.

    Raises
    ------
    ValueError
        If a column is missing or occurs twice, or an array has another number of columns.
    TypeError
        For sparse matrices.
    """
    if issparse(X):
        raise TypeError("Found a sparse matrix; a data frame, or an array with the schema's columns, is needed.")
    names = names_of(X)
    if names is None:
        return {name: Given(values, _kind(values)) for name, values in zip(wanted, _of_array(X, wanted).T)}
    if told := not_once(names, wanted):
        raise ValueError(told)
    return {name: Given(np.asarray(X[name].to_numpy()), _kind(X[name])) for name in wanted}


def _kind(column: Any) -> str:
    """Kind of a column by its declared type, not by its values."""
    if str(column.dtype).lower().startswith("str"):  # of pandas and of polars; NumPy would see any objects
        return "T"
    kind: str = np.asarray(column[:0].to_numpy() if hasattr(column, "to_numpy") else column[:0]).dtype.kind
    return "T" if kind == "U" else kind


def _of_array(X: Any, wanted: Sequence[str]) -> NDArray[Any]:
    found = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if found.ndim != 2 or found.shape[1] != len(wanted):
        raise ValueError(
            f"Found an array of shape {found.shape} without names; the schema has {len(wanted)} columns: shape "
            f"(n_samples, {len(wanted)}) in its order is needed, or a data frame."
        )
    return found
