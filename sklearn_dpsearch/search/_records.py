"""Helpers for arbitrary estimators and record containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..data.rows import ChosenRows


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Set parameters and return the estimator. Without parameters, ``set_params`` of a foreign class is not called."""
    if parameters:
        estimator.set_params(**parameters)
    return estimator


def n_records(X: Any) -> int:
    """Number of records, without reading any."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(data: Any, indices: np.ndarray) -> Any:
    """Copy the chosen records. The indices have eight bytes: containers multiply indices, and four may wrap around."""
    return None if data is None else _safe_indexing(data, np.asarray(indices, np.intp))


def rows_of(data: Any, indices: np.ndarray) -> Any:
    """Choose records without a copy where the container allows it."""
    return ChosenRows(data, indices) if type(data) in (np.ndarray, np.memmap) else take(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Take the chosen records' entries of a parameter with one entry per record; leave other parameters as they are."""
    per_record = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == n_records(X)
    return take(value, indices) if per_record else value
