"""Outcomes of fits: what an attacker reads off a model, and many outcomes as a table of numbers and labels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from ..privacy._types import Array

Statistic = Callable[[Any], Any]

#: Outcome of a failing fit.
FAILED: dict[str, Any] = {"failed": True}
#: Label where an outcome has no entry of that name.
MISSING = "(missing)"
#: The most numbers that are read from one attribute.
LARGEST = 5_000
#: Methods whose answers for the canary are read.
ANSWERS = ("decision_function", "predict_proba", "predict", "score_samples", "transform")


@dataclass(frozen=True)
class Everything:
    """The default attack: parameters and scores found, every fitted number, and the answers for the canary.

    Parameters
    ----------
    canary : array-like of shape (k, n_features)
    """

    canary: Any

    def __call__(self, model: Any) -> dict[str, Any]:
        found = dict(_fitted("", model, 0))
        for name in ANSWERS:
            with contextlib.suppress(Exception):  # a model that cannot answer is read by its parameters alone
                found.update(_read(f"{name}(canary)", getattr(model, name)(self.canary)))
        return found


def _fitted(prefix: str, model: object, depth: int) -> Iterator[tuple[str, Any]]:
    """Names and values of fitted attributes: numbers, texts, parameters; also of inner models."""
    for name, value in sorted(getattr(model, "__dict__", {}).items()):
        if not name.endswith("_") or name.startswith("_") or name == "privacy_spent_":
            continue
        yield from _read(f"{prefix}{name}", value)
        if depth < 3 and hasattr(value, "fit"):
            yield from _fitted(f"{prefix}{name}.", value, depth + 1)
    if depth < 3:
        for name, step in (entry[:2] for entry in getattr(model, "steps", ())):
            yield from _fitted(f"{prefix}{name}.", step, depth + 1)


def _read(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value as entries of an outcome, without all that is neither number nor text."""
    if isinstance(value, (bool, np.bool_, str)):
        yield name, str(value)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(key, str) and not isinstance(entry, Mapping):
                yield from _read(f"{name}[{key}]", entry)
    elif callable(getattr(value, "parameters", None)):  # a torch module
        with contextlib.suppress(Exception):
            flat = [weights.detach().cpu().numpy().ravel() for weights in value.parameters()]
            yield from _read(name, np.concatenate(flat))
    else:
        with contextlib.suppress(Exception):
            array = np.asarray(value.toarray() if issparse(value) else value)
            if array.dtype.kind in "iufb" and 0 < array.size <= LARGEST:
                yield name, float(array) if array.ndim == 0 else array.astype(float).ravel()
            elif array.dtype.kind in "US" and array.size <= 8:
                yield name, str(array.tolist())


# --- many outcomes ----------------------------------------------------------------------------------------------------


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
    numbers: dict[str, Array] = {}
    labels: dict[str, npt.NDArray[np.str_]] = {}
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name) for row in rows]
        if all(map(_is_number, values)):
            column = _stacked(values)
            numbers |= {name: column} if _varies(column) else {}
        else:
            texts = np.array([MISSING if value is None else repr(value) for value in values])
            labels |= {name: texts} if np.any(texts != texts[0]) else {}
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
    return not bool(np.all((column == column[0]) | (np.isnan(column) & np.isnan(column[0]))))
