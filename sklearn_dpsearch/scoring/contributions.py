"""Contributions of single records to a score, each a function of its record and the model alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from ..privacy._types import Array

Labels = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

#: Number of records in every call of a model: a multiple of the block size of linear algebra.
BLOCK = 256
#: Number of records in a call of a method that answers each record alone, bit for bit, as its class states.
LARGE_BLOCK = 2**14
#: Noise is cut off here, which is as good as infinite, so that every quotient of integers is finite.
LARGEST = 10**30
#: From here on one double stands for several integers: 2⁵³ + 1 becomes 2⁵³.
AMBIGUOUS = 2.0**53


def response_function(estimator: object, methods: str | Sequence[str]) -> Callable[[Any], Any]:
    """The first of the methods that the estimator has."""
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        if hasattr(estimator, name):
            found: Callable[[Any], Any] = getattr(estimator, name)
            return found
    raise AttributeError(
        f"{type(estimator).__name__} has none of {names}, one of which the scorer needs. Use an estimator that has "
        "one, or a scorer that asks for predict."
    )


def records_per_call(method: object) -> int:
    """Number of records in each call of an estimator's method.

    It is large where the class of the estimator is of this library and names the method in ``answers_alone``: the
    answer about a record is then the same in every call. A subclass from elsewhere may have changed that.
    """
    kind = type(getattr(method, "__self__", None))
    ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    alone = ours and getattr(method, "__name__", None) in getattr(kind, "answers_alone", ())
    return LARGE_BLOCK if alone else BLOCK


def contributions(
    evaluate: Callable[[Any, Any], Any], X: Any, y: Any, worst: Sequence[float], size: int = BLOCK
) -> Array:
    """``evaluate(X, y)`` of shape (n, d), in blocks of always the same number of records.

    The last digit of a model's answer may depend on the number of records in the call, because linear algebra takes
    other routes for other sizes. One more record could then break ties differently for *all* records. So every call has
    BLOCK records; a partial block is filled up with its own records. A record on which ``evaluate`` fails, or returns
    numbers that are not finite, contributes ``worst``: if a block fails, each of its records is evaluated in a separate
    block that repeats it BLOCK times. Methods that answer each record alone may get more records at once; if such a
    large block fails, blocks of BLOCK take its place.

    Parameters
    ----------
    evaluate : callable
        (X, y) ↦ array-like of shape (n,) or (n, d).
    X, y : array-like with n rows
        n = 0 is fine: nothing is evaluated then.
    worst : sequence of d floats
        Contribution of a record without finite numbers.
    size : int, default=BLOCK
        ``records_per_call`` of the estimator's method.

    Returns
    -------
    ndarray of shape (n, d)
    """
    if y is None:
        raise ValueError("A private score needs y. Pass fit(X, y).")
    check_consistent_length(X, y)
    n, default = _num_samples(X), np.asarray(worst, dtype=float)
    rows = np.empty((n, default.size))
    with np.errstate(all="ignore"):
        for start in range(0, n, size):
            places = np.arange(start, min(start + size, n))
            rows[places] = _rows(evaluate, X, y, places, default)
    usable: Array = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, default)
    return usable


def _rows(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, places: Places, default: Array) -> Array:
    """Contributions of a block; after a failure those of smaller blocks, and at last those of single records."""
    found = _block(evaluate, X, y, places, default.size)
    if found is not None:
        return found
    if len(places) <= BLOCK:
        return np.array([_alone(evaluate, X, y, place, default) for place in places])
    parts = np.split(places, np.arange(BLOCK, len(places), BLOCK))
    return np.concatenate([_rows(evaluate, X, y, part, default) for part in parts])


def _alone(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, place: int, default: Array) -> Array:
    """Contribution of one record, or the default if ``evaluate`` fails on it."""
    found = _block(evaluate, X, y, np.array([place]), default.size)
    return default if found is None else found[0]


def _block(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, places: Places, width: int) -> Array | None:
    """The contributions of a block, filled up to a multiple of BLOCK records, or None if ``evaluate`` fails."""
    full = np.resize(places, -(-len(places) // BLOCK) * BLOCK)
    try:
        found = np.asarray(evaluate(_safe_indexing(X, full), _safe_indexing(y, full)), dtype=float)
        return found.reshape(len(full), width)[: len(places)]
    except NotFittedError:
        raise
    except Exception:
        return None


def quantised(values: Array, lower: float, upper: float, resolution: int) -> Places:
    """The nearest of ``resolution + 1`` levels from lower (0) to upper (``resolution``)."""
    share = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(np.rint(share * resolution), 0, resolution).astype(np.int64)


def finite(noisy: Sequence[int]) -> list[int]:
    """Cut off noisy integers that no double could hold."""
    return [max(-LARGEST, min(LARGEST, int(value))) for value in noisy]


def as_array(y: Any) -> Labels:
    """``y`` as an array that keeps the type of each label.

    NumPy makes strings of [1, "a"], and doubles of [2**60, 0.5], which do not hold all integers.
    """
    array = np.asarray(y)
    if hasattr(y, "dtype"):
        return array
    kind = array.dtype.kind
    changed = kind in "USO" or (kind in "fc" and bool(np.any(np.abs(array) >= AMBIGUOUS)))
    return np.array(y, dtype=object) if changed else array


def equal(first: Any, second: Any) -> Flags:
    """Record-wise equality of labels of any kind; rows of several labels must agree in all."""
    first, second = column(as_array(first)), column(as_array(second))
    if first.dtype.kind != second.dtype.kind and not {first.dtype.kind, second.dtype.kind} <= set("biuf"):
        first, second = first.astype(object), second.astype(object)
    same = np.asarray(first == second, dtype=bool)
    return same if same.ndim == 1 else np.asarray(same.all(axis=tuple(range(1, same.ndim))))


def column(values: Labels) -> Labels:
    """A table of one column as that column."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def positions(y: Any, labels: Sequence[Any]) -> Places:
    """The place of each label in ``labels``, −1 for others."""
    place = {label: i for i, label in enumerate(as_array(labels).tolist())}
    return np.array([place.get(label, -1) for label in column(as_array(y)).tolist()], dtype=np.int64)
