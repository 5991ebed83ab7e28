"""Outcomes of many fits as a table: columns of numbers and columns of labels, the same for both data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from ..privacy._types import Array

#: Outcome of a failing fit.
FAILED: dict[str, Any] = {"failed": True}
#: Label where an outcome has no entry of that name.
MISSING = "(missing)"


@dataclass(frozen=True)
class Table:
    """One row per fit.

    Parameters
    ----------
    n_rows : int
    numbers : mapping of str to ndarray of shape (n_rows, d)
        NaN where an outcome has no entry of that name.
    labels : mapping of str to ndarray of shape (n_rows,)
        Texts.
    """

    n_rows: int
    numbers: Mapping[str, Array]
    labels: Mapping[str, npt.NDArray[np.str_]]

    def rows(self, chosen: npt.NDArray[np.int64]) -> Table:
        """Some of the rows."""
        return Table(
            len(chosen),
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column[chosen] for name, column in self.labels.items()},
        )


def tabulate(outcomes: Sequence[Any], others: Sequence[Any]) -> tuple[Table, Table]:
    """Tables of both samples with the same columns; columns that never vary are left out."""
    rows = [_entries(outcome) for outcome in [*outcomes, *others]]
    names = sorted({name for row in rows for name in row})
    numbers: dict[str, Array] = {}
    labels: dict[str, npt.NDArray[np.str_]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if all(_is_number(value) for value in values):
            numbers[name] = _stacked(values)
        else:
            labels[name] = np.array([MISSING if value is None else repr(value) for value in values])
    numbers = {name: column for name, column in numbers.items() if _varies(column)}
    labels = {name: column for name, column in labels.items() if np.any(column != column[0])}
    both = Table(len(rows), numbers, labels)
    first, second = np.arange(len(outcomes)), np.arange(len(outcomes), len(rows))
    return both.rows(first), both.rows(second)


def has_failed(outcome: object) -> bool:
    """Return whether this is the outcome of a failing fit."""
    return isinstance(outcome, Mapping) and outcome.get("failed") is True


def _entries(outcome: Any) -> Mapping[str, Any]:
    return outcome if isinstance(outcome, Mapping) else {"outcome": outcome}


def _is_number(value: object) -> bool:
    """Return whether an entry is a number or an array of numbers (or missing)."""
    if value is None or isinstance(value, (np.ndarray, list)):
        return value is None or np.asarray(value).dtype.kind in "iufb"
    return isinstance(value, Number) and not isinstance(value, (bool, np.bool_, complex))


def _stacked(values: Sequence[Any]) -> Array:
    """Rows of equal length: shorter ones and missing ones are filled with NaN."""
    flat = [np.array([]) if value is None else np.asarray(value, dtype=float).ravel() for value in values]
    filled = np.full((len(flat), max(numbers.size for numbers in flat)), np.nan)
    for row, numbers in zip(filled, flat):
        row[: numbers.size] = numbers
    return filled


def _varies(column: Array) -> bool:
    if column.shape[1] == 0:
        return False
    return not bool(np.all((column == column[0]) | (np.isnan(column) & np.isnan(column[0]))))
