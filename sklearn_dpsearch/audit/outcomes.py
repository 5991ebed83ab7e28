"""Outcomes of many fits as a table: columns of numbers and columns of labels, the same for both data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

#: What a failing fit leaves.
FAILED: dict[str, Any] = {"failed": True}
#: Label of a part that an outcome does not have.
MISSING = "(missing)"


@dataclass(frozen=True)
class Table:
    """One row per fit.

    Parameters
    ----------
    numbers : mapping of str to ndarray of shape (n, d)
        NaN where an outcome does not have the part.
    labels : mapping of str to ndarray of shape (n,)
        Texts.
    """

    numbers: Mapping[str, np.ndarray]
    labels: Mapping[str, np.ndarray]

    def rows(self, chosen: Any) -> Table:
        """Some of the rows."""
        return Table(
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column[chosen] for name, column in self.labels.items()},
        )


def tabulate(outcomes: Sequence[Any], others: Sequence[Any]) -> tuple[Table, Table]:
    """Tables of both samples with the same columns; columns that never vary are left out."""
    rows = [_parts(one) for one in [*outcomes, *others]]
    names = sorted({name for row in rows for name in row})
    numbers, labels = {}, {}
    for name in names:
        values = [row.get(name) for row in rows]
        if all(_is_number(one) for one in values):
            numbers[name] = _stacked(values)
        else:
            labels[name] = np.array([MISSING if one is None else repr(one) for one in values])
    numbers = {name: column for name, column in numbers.items() if _varies(column)}
    labels = {name: column for name, column in labels.items() if np.any(column != column[0])}
    both = Table(numbers, labels)
    first, second = np.arange(len(outcomes)), np.arange(len(outcomes), len(rows))
    return both.rows(first), both.rows(second)


def has_failed(outcome: Any) -> bool:
    """Whether it is the outcome of a failing fit."""
    return isinstance(outcome, Mapping) and outcome.get("failed") is True


def _parts(outcome: Any) -> Mapping[str, Any]:
    return outcome if isinstance(outcome, Mapping) else {"outcome": outcome}


def _is_number(value: Any) -> bool:
    """Whether a part is a number or an array of numbers (or missing)."""
    if value is None or isinstance(value, (np.ndarray, list)):
        return value is None or np.asarray(value).dtype.kind in "iufb"
    return isinstance(value, Number) and not isinstance(value, (bool, np.bool_, complex))


def _stacked(values: Iterable[Any]) -> np.ndarray:
    """Rows of equal length: shorter ones and missing ones are filled with NaN."""
    flat = [np.array([]) if one is None else np.asarray(one, dtype=float).ravel() for one in values]
    filled = np.full((len(flat), max(one.size for one in flat)), np.nan)
    for row, one in zip(filled, flat):
        row[: one.size] = one
    return filled


def _varies(column: np.ndarray) -> bool:
    if column.shape[1] == 0:
        return False
    return not np.all((column == column[0]) | (np.isnan(column) & np.isnan(column[0])))
