"""Two data sets that differ in one record: given ones are checked, others are built with an extreme record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target

from ..privacy import PrivacyError
from ..privacy._checks import check_neighboring
from ..privacy._types import Array, Neighboring

Records = npt.NDArray[Any]
Dataset = tuple[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two neighbouring data sets.

    Parameters
    ----------
    X, y : array-like
        The first data set.
    other_X, other_y : array-like
        The second: one record more, less or changed.
    neighboring : {"add_remove", "zero_out", "replace_one"}
    steps : int
        Number of steps between the data sets. Under zero-out ``fit`` cannot receive an absent record, so two values of
        one record are two steps apart, unless one of the values counts as absent.
    canary : array-like of shape (k, n_features)
        The records in which they differ, k = 1 or 2.
    """

    X: Any
    y: Any
    other_X: Any
    other_y: Any
    neighboring: Neighboring
    steps: int
    canary: Any

    @classmethod
    def of(cls, data: Dataset, other: Dataset, neighboring: Neighboring, absent: bool = False) -> Neighbours:
        """Check two data sets given as (X, y).

        Parameters
        ----------
        absent : bool, default=False
            Under zero-out, the caller's assurance that one value of the changed record contributes nothing.

        Raises
        ------
        PrivacyError
            If the data sets are not neighbours.
        """
        check_neighboring(neighboring)
        (X, y), (other_X, other_y) = data, other
        first, second = _rows(X, y), _rows(other_X, other_y)
        places = _one_more(first, second) if neighboring == "add_remove" else _one_changed(first, second, neighboring)
        shown = [_safe_indexing(part, [place]) for part, place in zip((X, other_X), places) if place is not None]
        steps = 2 if neighboring == "zero_out" and not absent else 1
        return cls(
            X=X, y=y, other_X=other_X, other_y=other_y, neighboring=neighboring, steps=steps, canary=_stack(shown)
        )


def worst_case(
    X: Any, y: Any = None, *, neighboring: Neighboring, scale: float = 1.0, absent: bool = False
) -> Neighbours:
    """Neighbours that differ in one extreme record, whose target contradicts its features.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers.
    y : array-like of shape (n_samples,), optional
        Labels or numbers.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The extreme record is added; or replaces a record of zeros; or replaces a record with the same features and the
        opposite target (without y: the opposite features).
    scale : float, default=1.0
        Distance of the canary from the middle: 1 for the ends of the ranges. An estimator clips values
        beyond its stated bounds.
    absent : bool, default=False
        Under zero-out, the caller's assurance that a record of zeros contributes nothing.

    Returns
    -------
    Neighbours
        Both data sets, and the record in which they differ.

    Examples
    --------
    >>> pair = worst_case([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]], [0, 1, 1], neighboring="add_remove")
    >>> len(pair.X), len(pair.other_X), pair.canary.tolist()
    (3, 4, [[2.0, 3.0]])
    """
    check_neighboring(neighboring)
    values, target = _numbers(X), None if y is None else np.asarray(y)
    record, label, opposite, other_label = _extreme(values, target, scale)
    if neighboring == "add_remove":
        data = values, target
        other = np.vstack([values, record]), _appended(target, label)
    elif neighboring == "zero_out":
        data = _with(values, target, np.zeros_like(record), label)
        other = _with(values, target, record, label)
    else:
        data = _with(values, target, opposite, other_label)
        other = _with(values, target, record, label)
    return Neighbours.of(data, other, neighboring, absent)


def _extreme(values: Array, y: Records | None, scale: float) -> tuple[Array, Any, Array, Any]:
    """A record and its target, then the record and the target that they replace."""
    low, high = values.min(axis=0), values.max(axis=0)
    middle, reach = (low + high) / 2, scale * (high - low) / 2
    if y is None:
        return middle + reach, None, middle - reach, None
    label, other_label = _targets(y)
    if y.dtype.kind in "fiu" and not _is_classes(y):
        centred = y.astype(float) - y.astype(float).mean()
        against = -np.sign(centred @ (values - values.mean(axis=0)))
    else:
        against = np.sign(values.mean(axis=0) - values[y == label].mean(axis=0))
    record = middle + np.where(against >= 0, reach, -reach)
    return record, label, (middle - (record - middle) if label == other_label else record), other_label


def _targets(y: Records) -> tuple[Any, Any]:
    """A target for the canary and one as far away: the two rarest classes, or the ends."""
    if y.ndim > 1:
        raise ValueError("Found several targets for each record; give other=(X, y), a neighbour of your own.")
    if not _is_classes(y):
        return y.max(), y.min()
    classes, counts = np.unique(y, return_counts=True)
    order = np.argsort(counts, kind="stable")
    return classes[order[0]], classes[order[min(1, len(order) - 1)]]


def _is_classes(y: Records) -> bool:
    return str(type_of_target(y)) in ("binary", "multiclass")


def _with(values: Array, y: Records | None, record: Array, label: Any) -> tuple[Array, Records | None]:
    """The data with its first record replaced."""
    X = values.copy()
    X[0] = record
    if y is None:
        return X, None
    target = y.copy()
    target[0] = label
    return X, target


def _appended(y: Records | None, label: Any) -> Records | None:
    return None if y is None else np.append(y, np.asarray([label], dtype=y.dtype))


def _numbers(X: Any) -> Array:
    values = np.asarray(X.toarray() if issparse(X) else X)
    if values.ndim != 2 or values.dtype.kind not in "iufb" or len(values) < 2:
        raise ValueError(
            f"Found X of shape {values.shape} and type {values.dtype}; a canary can be built for a table of numbers "
            "with two records or more. Give other=(X, y), a neighbour of your own."
        )
    return values.astype(float)


# --- the check ---------------------------------------------------------------------------------------------------


def _rows(X: Any, y: Any) -> Records:
    """All records as rows of objects, targets included."""
    table = np.asarray(X.toarray() if issparse(X) else X, dtype=object)
    table = table.reshape(len(table), -1)
    if y is None:
        return table
    target = np.asarray(y, dtype=object).reshape(len(y), -1)
    if len(target) != len(table):
        raise ValueError(f"Found {len(table)} records and {len(target)} targets in one data set; give one for each.")
    return np.hstack([table, target])


def _one_more(first: Records, second: Records) -> tuple[int | None, int | None]:
    """Position of the record that only one data set has."""
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    if len(longer) == len(shorter) + 1 and longer.shape[1] == shorter.shape[1]:
        same = _equal(longer[:-1], shorter)
        place = len(shorter) if same.all() else int(np.argmin(same))
        if _equal(np.delete(longer, place, axis=0), shorter).all():
            return (place, None) if longer is first else (None, place)
    raise _not_neighbours(first, second, "add_remove", "one record more in one of them, the others in the same order")


def _one_changed(first: Records, second: Records, relation: Neighboring) -> tuple[int, int]:
    if first.shape == second.shape:
        changed = np.flatnonzero(~_equal(first, second))
        if changed.size == 1:
            return int(changed[0]), int(changed[0])
    raise _not_neighbours(first, second, relation, "the same number of records, one of them with other values")


def _equal(first: Records, second: Records) -> npt.NDArray[np.bool_]:
    """True for equal rows; missing values are equal to each other."""
    same = (first == second) | ((first != first) & (second != second))
    return np.asarray(np.asarray(same, dtype=bool).all(axis=1))


def _not_neighbours(first: Records, second: Records, relation: Neighboring, needed: str) -> PrivacyError:
    found = f"shapes {first.shape} and {second.shape}, targets included"
    if first.shape == second.shape:
        found = f"{int(np.sum(~_equal(first, second)))} of {len(first)} records differ"
    return PrivacyError(
        f"The two data sets are not neighbours under {relation!r}: {found}; needed are {needed}. Give such a pair, "
        "name the relation that holds (neighboring=), or leave other out to have a canary built."
    )


def _stack(rows: list[Any]) -> Any:
    if len(rows) == 1:
        return rows[0]
    if issparse(rows[0]):
        from scipy.sparse import vstack

        return vstack(rows)
    if hasattr(rows[0], "iloc"):
        import pandas as pd

        return pd.concat(rows)
    return np.concatenate([np.asarray(row) for row in rows])
