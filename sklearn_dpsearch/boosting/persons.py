"""Sums over persons: the records of each are added up first, and clipped to what one record may add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import CellNumbers
from .losses import Array, Loss
from .noise import UNIT, squared_distance, squares, sums_of

#: Records, and pairs of a person and a cell, that are summed at once.
BLOCK, PAIRS = 2**16, 2**20
#: Number of the person of each record, in order, from 0 on.
Numbers = NDArray[np.int64]


class Persons:
    """Records in the order of their persons.

    Parameters
    ----------
    codes : int64 ndarray of shape (n_samples,)
        Person of each record, 0 … n_persons − 1.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Numbers of the records, person by person.
    """

    def __init__(self, codes: Numbers) -> None:
        self.order = np.argsort(codes, kind="stable")
        self._numbers = codes[self.order]
        self._starts = np.append(0, np.cumsum(np.bincount(codes)))

    def sums_of_several(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the records of each person who has several, from shape (k, n_samples) in this order."""
        several = np.diff(self._starts) > 1
        return np.add.reduceat(values, self._starts[:-1], axis=1)[:, several]

    def blocks(self, n_cells: int) -> Iterator[tuple[slice, Numbers]]:
        """Records of whole persons, and the number of the person of each; of one person all are in one block."""
        first, most = 0, max(PAIRS // n_cells, 1)
        while first < len(self._starts) - 1:
            fitting = int(np.searchsorted(self._starts, self._starts[first] + BLOCK, side="right")) - 1
            last = min(max(fitting, first + 1), first + most)
            rows = slice(*self._starts[[first, min(last, len(self._starts) - 1)]].tolist())
            yield rows, self._numbers[rows] - first
            first = last


def clipped(values: Array, cells: CellNumbers, n_cells: int, persons: Numbers, loss: Loss) -> Array:
    """Sums over the records of each person in each cell, clipped to the norm of one record over all cells.

    Parameters
    ----------
    values : ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers of records.
    cells : ndarray of shape (n_samples,)
    n_cells : int
    persons : ndarray of shape (n_samples,)
        From 0 to n_persons − 1, in order.
    loss : Loss

    Returns
    -------
    ndarray of shape (2 · n_outputs, n_samples)
        Whole numbers: each sum at the place of one record of that person and cell, and 0 at the others.
    """
    if persons[-1] == len(persons) - 1:  # one record of each
        return values
    pairs = persons * n_cells + cells.astype(np.int64)
    places = np.empty(int(persons[-1] + 1) * n_cells, np.uint32)
    places[pairs] = np.arange(len(pairs), dtype=np.uint32)
    return _short(sums_of(values, places.take(pairs), len(pairs)), persons, int(squared_distance(loss) * UNIT**2))


def _short(values: Array, persons: Numbers, most: int) -> Array:
    """Scale persons whose squared norm is larger, and round towards zero; set to 0 those that are still longer.

    Squared norms up to 2⁵³ are exact sums of whole numbers, and larger ones are no smaller than that.
    """
    norms = np.bincount(persons, squares(values))
    if (norms > most).any():
        values *= np.sqrt(most / np.maximum(norms, most)).take(persons)
        np.trunc(values, out=values)
        if (longer := np.bincount(persons, squares(values)) > most).any():
            values[:, longer[persons]] = 0.0
    return values
