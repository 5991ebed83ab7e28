"""Some records of an array, without a copy of them."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

#: Numbers of records.
Numbers: TypeAlias = NDArray[np.integer[Any]]


def rows_at(values: Any, places: slice) -> Any:
    """Rows of a plain container at these places."""
    return values.iloc[places] if hasattr(values, "iloc") else values[places]


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several plain containers of one kind in one: arrays, sparse matrices, or frames."""
    if len(parts) == 1:
        return parts[0]
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    if hasattr(parts[0], "iloc"):
        return sys.modules["pandas"].concat(parts)
    return np.concatenate(parts)


def rows_in_file(X: Any, n_bytes: int) -> ChosenRows | None:
    """Rows of an array in a file of at least so many bytes; None for other containers."""
    rows = ChosenRows(X) if type(X) is np.memmap else X
    in_file = isinstance(rows, ChosenRows) and rows.bytes_in_file >= n_bytes
    return rows if in_file else None


def array_in_memory(X: Any) -> Any:
    """Copy of an array in a file, which may change meanwhile; other containers as they are."""
    return np.array(X) if type(X) is np.memmap else X


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Chosen rows of an array, copied as they are read: a block, or a batch, at a time.

    ``np.asarray`` copies all of the rows, so other code may treat the object as an array.

    Parameters
    ----------
    data : ndarray of shape (n, ...)
    numbers : integer ndarray of shape (m,) or None
        The rows, in order; None: all of them.
    converted : dict
        Conversions of the rows, by kind: nets that train on the same rows convert them once.
    """

    data: NDArray[Any]
    numbers: Numbers | None = None
    converted: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the chosen rows."""
        return (len(self), *self.data.shape[1:])

    @property
    def bytes_in_file(self) -> int:
        """Bytes of the whole array, if it is in a file; else 0."""
        return self.data.nbytes if isinstance(self.data, np.memmap) else 0

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries of the rows."""
        return self.data.dtype

    def __len__(self) -> int:
        return len(self.data) if self.numbers is None else len(self.numbers)

    def __getitem__(self, places: slice | Numbers) -> NDArray[Any]:
        """The rows at these places among the chosen ones."""
        return np.asarray(self.data[places if self.numbers is None else self.numbers[places]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype) if copy else np.asarray(self[:], dtype=dtype)

    def blocks(self, size: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the chosen rows in blocks of at most ``size`` rows, with their places."""
        for start in range(0, len(self), size):
            places = slice(start, min(start + size, len(self)))
            yield places, self[places]
