"""Contributions of single records to a score, each a function of its record and the model alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from .._process import contained
from ..data._labels import as_array, column_of, label_of
from ..data._lists import objects
from ..privacy._checks import Array

Labels = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Respond = Callable[[Any], Labels]
Evaluate = Callable[[Labels, Labels], Any]

#: Number of records in a call of a model.
BLOCK = 2**10
#: Noise is cut off here, which is as good as infinite, so that every quotient of integers is
#: finite.
LARGEST_NOISE = 10**30


def response_function(estimator: Any, methods: str | Sequence[str]) -> Respond:
    """First available response method of an estimator, as a function.

    It maps X to an array with one row for each record.

    Whether the estimator is fitted follows from its attributes: an exception on a record says
    nothing about that.
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    method = next((getattr(estimator, name) for name in names if hasattr(estimator, name)), None)
    if method is None:
        raise AttributeError(
            f"{type(estimator).__name__} has none of {names}, one of which the scorer needs. Use "
            "an estimator that has one, or a scorer that asks for predict."
        )
    if isinstance(estimator, BaseEstimator):
        parameters = estimator.get_params(deep=False)
        if vars(estimator).keys() <= parameters.keys():
            check_is_fitted(estimator)
    return partial(_checked_answers, method)


def _checked_answers(method: Callable[[Any], Any], X: Any) -> Labels:
    """Responses of a model with one row for each record.

    Any other number would be broadcast, and mix records.
    """
    answers = method(X)
    are_several = hasattr(answers, "__len__") and getattr(answers, "ndim", 1) > 0
    n_records, n_answers = _num_samples(X), _num_samples(answers) if are_several else 1
    if n_answers != n_records:
        raise ValueError(
            f"Found {n_answers} answers of the estimator to {n_records} records; one for each is "
            "needed. Return an array of shape (n_samples,) or (n_samples, n_outputs)."
        )
    return as_array(answers)


def contributions(
    respond: Respond, evaluate: Evaluate, X: Any, y: Any, worst: Sequence[float]
) -> Array:
    """Contributions of records to a score, evaluated in equal blocks.

    ``evaluate(y, respond(X))`` of shape (n, d), in calls of always the same number of records.

    The last digit of a model's answer may depend on the size of a call and on the record's place in
    it, because linear algebra takes other routes for others. So every call has BLOCK records: the
    last block is filled up with its own. A record on which a function fails, or that gets numbers
    that are not finite, contributes ``worst``, and costs the others nothing: after a failure the
    two halves of the block are asked apart, each record in its place, and records of the half stand
    in for the other half.

    Parameters
    ----------
    respond : callable
        ``response_function`` of the model.
    evaluate : callable
        (labels, responses) ↦ array-like of shape (n,) or (n, d).
    X, y : array-like with n rows
        n = 0 is fine: nothing is evaluated then.
    worst : sequence of d floats
        Contribution of a record without finite numbers.

    Returns
    -------
    ndarray of shape (n, d)
    """
    if y is None:
        raise ValueError("A private score needs y. Pass fit(X, y).")
    check_consistent_length(X, y)
    n, labels, default = _num_samples(X), as_array(y), np.asarray(worst, dtype=float)
    rows = np.empty((n, default.size))

    def fill(start: int, part: slice) -> None:
        """Fill the rows of a part of the block that begins at ``start``."""
        inside = slice(part.start - start, part.stop - start)
        places = np.full(BLOCK, part.start)
        places[inside] = np.arange(part.start, part.stop)
        rows[part] = default
        with contained():  # a record may raise what is no ``Exception``
            response = respond(_safe_indexing(X, places))[inside]
            values = np.asarray(evaluate(labels[part], response), dtype=float)
            rows[part] = values.reshape(-1, default.size)
            return
        middle = (part.start + part.stop) // 2
        if part.start < middle:
            fill(start, slice(part.start, middle))
            fill(start, slice(middle, part.stop))

    with np.errstate(all="ignore"):
        for start in range(0, n, BLOCK):
            fill(start, slice(start, min(start + BLOCK, n)))
    usable: Array = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, default)
    return usable


def quantised(values: Array, lower: float, upper: float, resolution: int) -> Places:
    """Numbers rounded to one of the levels from 0 (``lower``) to ``resolution`` (``upper``)."""
    share = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(np.rint(share * resolution), 0, resolution).astype(np.int64)


def finite(noisy: Sequence[int]) -> list[int]:
    """Noisy integers cut off where no double could hold them."""
    return [max(-LARGEST_NOISE, min(LARGEST_NOISE, int(value))) for value in noisy]


def equal(first: Any, second: Any) -> Flags:
    """Mask of records whose labels are equal, of any kind.

    Rows of several labels must agree in all, and in their number.
    """
    first, second = column_of(as_array(first)), column_of(as_array(second))
    if first.shape[1:] != second.shape[1:]:
        first, second = (objects([*map(label_of, labels.tolist())]) for labels in (first, second))
    kinds = {first.dtype.kind, second.dtype.kind}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        first, second = first.astype(object), second.astype(object)
    equality = np.asarray(first == second, dtype=bool)
    if equality.ndim == 1:
        return equality
    return np.asarray(equality.all(axis=tuple(range(1, equality.ndim))))


def numbers(values: Any) -> Array:
    """Number of each record, shape (n,), nan for several."""
    column = column_of(as_array(values))
    return column.astype(float) if column.ndim == 1 else np.full(len(column), np.nan)
