"""What each record contributes to a score, as a function of that record and the model alone."""

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

#: Noise beyond this is as good as infinite. Cut off there, every quotient of integers is a finite number.
LARGEST = 10**30
#: From here on a double may stand for several integers: 2⁵³ + 1 becomes 2⁵³.
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


def contributions(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, worst: Sequence[float]) -> Array:
    """``evaluate(X, y)`` of shape (n, d), or record by record where it fails on all of them together.

    A record on which ``evaluate`` fails, or gives anything but finite numbers, contributes ``worst``: one bad record
    must not change what the others contribute, nor decide whether there is an error.

    Parameters
    ----------
    evaluate : callable
        (X, y) ↦ array-like of shape (n,) or (n, d).
    X, y : array-like with n rows
        n = 0 is fine: nothing is evaluated then.
    worst : sequence of d floats
        In place of what is not finite.

    Returns
    -------
    ndarray of shape (n, d)
    """
    if y is None:
        raise ValueError("A private score needs y. Pass fit(X, y).")
    check_consistent_length(X, y)
    n, default = _num_samples(X), np.asarray(worst, dtype=float)
    if n == 0:
        return np.zeros((0, default.size))
    with np.errstate(all="ignore"):
        rows = _rows(evaluate, X, y, n, default.size)
        if rows is None:
            each = [_rows(evaluate, _safe_indexing(X, [i]), _safe_indexing(y, [i]), 1, default.size) for i in range(n)]
            rows = np.concatenate([default[None] if row is None else row for row in each])
    usable: Array = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, default)
    return usable


def _rows(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, n: int, width: int) -> Array | None:
    """The contributions of n records, or None if ``evaluate`` fails."""
    try:
        return np.asarray(evaluate(X, y), dtype=float).reshape(n, width)
    except NotFittedError:
        raise
    except Exception:
        return None


def quantised(values: Array, lower: float, upper: float, resolution: int) -> Places:
    """The nearest of ``resolution + 1`` levels from lower (0) to upper (``resolution``)."""
    share = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(np.rint(share * resolution), 0, resolution).astype(np.int64)


def finite(noisy: Sequence[int]) -> list[int]:
    """Noisy integers, cut off where no double could hold them."""
    return [max(-LARGEST, min(LARGEST, int(value))) for value in noisy]


def as_array(y: Any) -> Labels:
    """``y`` as an array in which no label changes because of another.

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
