"""Columns of a table: of pandas, of polars, or of an array without names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..errors import not_once
from .columns import objects


class Given(NamedTuple):
    """A column: values of shape (n_samples,), and the letter by which NumPy calls their kind; "T" is text."""

    values: NDArray[Any]
    kind: str


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None for an array."""
    return None if isinstance(X, np.ndarray) or not hasattr(X, "columns") else [str(name) for name in X.columns]


def columns_of(X: Any, wanted: Sequence[str], exact: Collection[str] = ()) -> Mapping[str, Given]:
    """The wanted columns.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (n_samples, n_columns)
    wanted : sequence of str
    exact : collection of str
        Columns whose numbers must not be rounded, as those above 2⁵³ are in double precision.

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
    kinds = {name: _kind(X[name]) for name in wanted}
    return {name: Given(_values(X[name], kinds[name], name in exact), kinds[name]) for name in wanted}


def _values(column: Any, kind: str, exact: bool) -> NDArray[Any]:
    """Values of a column in a form that follows from its declared type.

    pandas and polars choose the form of their own types by the values: one missing value makes doubles of all whole
    numbers, so that a single record would change how others are read.
    """
    if isinstance(column.dtype, np.dtype) or kind not in "biuf":
        return np.asarray(column.to_numpy())
    of_polars = hasattr(column, "cast")
    if exact and kind != "f":
        return objects(column.to_list() if of_polars else column.astype(object).tolist())
    doubles = column.cast(float).to_numpy() if of_polars else column.to_numpy(np.float64, na_value=np.nan)
    return np.asarray(doubles)


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
