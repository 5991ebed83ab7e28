"""What is done to estimators and records of any make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from .._chosen_rows import ChosenRows


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """The estimator itself, with these parameters. One that is no scikit-learn class is not called with nothing."""
    if parameters:
        estimator.set_params(**parameters)
    return estimator


def n_records(X: Any) -> int:
    """Number of records, without reading any."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(data: Any, indices: np.ndarray) -> Any:
    """Some of the records. A container may multiply their numbers, so these have eight bytes: four may wrap around."""
    return None if data is None else _safe_indexing(data, np.asarray(indices, np.intp))


def rows_of(data: Any, indices: np.ndarray) -> Any:
    """The same without a copy, as far as that can be."""
    return ChosenRows(data, indices) if type(data) in (np.ndarray, np.memmap) else take(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Parameters with one entry per record follow the records."""
    per_record = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == n_records(X)
    return take(value, indices) if per_record else value
