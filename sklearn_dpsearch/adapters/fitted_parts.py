"""Estimators inside a fitted model: its parts, and the copies of parts made by ``fit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def fitted_parts(model: object) -> Iterator[Any]:
    """Collect the model and all estimators in its attributes, at any depth, in lists, dicts and arrays of objects."""
    left: list[Any] = [model]
    seen: set[int] = set()
    while left:
        found = left.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if _is_estimator(found):
            yield found
            left += vars(found).values()
        elif isinstance(found, Mapping):
            left += found.values()
        elif isinstance(found, (list, tuple, set)) or (isinstance(found, np.ndarray) and found.dtype == object):
            left += list(np.ravel(found)) if isinstance(found, np.ndarray) else found


def _is_estimator(found: object) -> bool:
    return not isinstance(found, type) and hasattr(found, "get_params") and hasattr(found, "__dict__")
