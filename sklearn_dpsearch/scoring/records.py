"""What each record contributes to a score, as a function of that record and the model alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

#: Noise beyond this is as good as infinite; keeps every quotient of integers a finite number.
LARGEST = 10**30


def response_function(estimator: Any, methods: str | Sequence[str]) -> Callable[[Any], Any]:
    """The first of the methods that the estimator has."""
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise AttributeError(
        f"{type(estimator).__name__} has none of {names}, which the scorer needs. Use an estimator that has, or "
        f"a scorer that asks for predict."
    )


def contributions(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, worst: Sequence[float]) -> np.ndarray:
    """``evaluate(X, y)`` of shape (n, d), or record by record where it fails on all of them together.

    A record on which evaluating fails, or gives anything but finite numbers, contributes ``worst``: whether
    one record is spoilt may not decide what the others contribute, nor whether there is an error.

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
            rows = np.concatenate([default[None] if one is None else one for one in each])
    return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, default)


def _rows(evaluate: Callable[[Any, Any], Any], X: Any, y: Any, n: int, width: int) -> np.ndarray | None:
    """The contributions of n records, or None if they cannot be had."""
    try:
        return np.asarray(evaluate(X, y), dtype=float).reshape(n, width)
    except NotFittedError:
        raise
    except Exception:
        return None


def quantised(values: np.ndarray, lower: float, upper: float, resolution: int) -> np.ndarray:
    """The nearest of ``resolution + 1`` levels from lower (0) to upper (``resolution``)."""
    share = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(np.rint(share * resolution), 0, resolution).astype(np.int64)


def finite(noisy: Sequence[int]) -> list[int]:
    """Noisy integers, cut off where no double could hold them."""
    return [max(-LARGEST, min(LARGEST, int(value))) for value in noisy]


def as_array(y: Any) -> np.ndarray:
    """``y`` as an array in which no label changes its type because of another (numpy has [1, "a"] as strings)."""
    array = np.asarray(y)
    return np.array(y, dtype=object) if array.dtype.kind in "USO" and not hasattr(y, "dtype") else array


def equal(first: Any, second: Any) -> np.ndarray:
    """Record-wise equality of labels of any kind; rows of several labels must agree in all."""
    first, second = _column(as_array(first)), _column(as_array(second))
    if first.dtype.kind != second.dtype.kind and not {first.dtype.kind, second.dtype.kind} <= set("biuf"):
        first, second = first.astype(object), second.astype(object)
    same = np.asarray(first == second, dtype=bool)
    return same if same.ndim == 1 else same.all(axis=tuple(range(1, same.ndim)))


def _column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def positions(y: Any, labels: Sequence[Any]) -> np.ndarray:
    """The place of each label in ``labels``, −1 for others."""
    place = {label: i for i, label in enumerate(as_array(labels).tolist())}
    return np.array([place.get(label, -1) for label in _column(as_array(y)).tolist()], dtype=np.int64)


# --- values of single records -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """1 where the prediction is the label."""

    def __call__(self, y: Any, response: Any, classes: Any) -> np.ndarray:
        return equal(y, response)


@dataclass(frozen=True)
class InTopK:
    """1 where the label is among the k classes with the largest scores; of equal scores the later class counts more."""

    k: int

    def __call__(self, y: Any, response: Any, classes: Any) -> np.ndarray:
        scores = np.asarray(response, dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        place = positions(y, classes)
        own = np.take_along_axis(scores, np.maximum(place, 0)[:, None], axis=1)
        later = np.arange(scores.shape[1]) > place[:, None]
        ahead = np.sum((scores > own) | ((scores == own) & later), axis=1)
        spoilt = np.isnan(scores).any(axis=1)
        return (place >= 0) & (ahead < self.k) & ~spoilt


@dataclass(frozen=True)
class LogLoss:
    """−log of the probability given to the label; infinite for a label that the model does not know.

    A probability of 0 counts as the smallest step of a double, as in scikit-learn.
    """

    def __call__(self, y: Any, response: Any, classes: Any) -> np.ndarray:
        place = positions(y, classes)
        given = np.take_along_axis(np.asarray(response, dtype=float), np.maximum(place, 0)[:, None], axis=1)[:, 0]
        smallest = np.finfo(float).eps
        return np.where(place >= 0, -np.log(np.where(given < smallest, smallest, given)), np.inf)


@dataclass(frozen=True)
class ErrorPower:
    """|y − prediction|^power."""

    power: int

    def __call__(self, y: Any, response: Any, classes: Any) -> np.ndarray:
        difference = _column(np.asarray(y, dtype=float)) - _column(np.asarray(response, dtype=float))
        return np.abs(difference) ** self.power


@dataclass(frozen=True)
class OfPredictions:
    """A caller's own ``score_func(y_true, y_pred)``."""

    score_func: Callable[[Any, Any], Any]

    def __call__(self, y: Any, response: Any, classes: Any) -> Any:
        return self.score_func(y, response)

    def __repr__(self) -> str:
        return f"OfPredictions({getattr(self.score_func, '__qualname__', repr(self.score_func))})"
