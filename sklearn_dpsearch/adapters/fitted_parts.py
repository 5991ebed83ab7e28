"""The estimators inside a fitted model: its own parts, and the copies that ``fit`` made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def fitted_parts(model: object) -> Iterator[Any]:
    """The model and every estimator that its attributes hold, at any depth, in lists, dicts and arrays of objects."""
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
