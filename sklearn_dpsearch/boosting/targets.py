"""Bounds of numbers: public facts about targets."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np


def bounds_of(given: Any) -> tuple[float, float]:
    """Public bounds of numbers.

    Raises
    ------
    ValueError
        Unless there are two finite numbers in order.
    """
    if isinstance(given, Sequence) and len(given) == 2 and all(isinstance(end, numbers.Real) for end in given):
        lower, upper = float(given[0]), float(given[1])
        if -np.inf < lower < upper < np.inf:
            return lower, upper
    raise ValueError(
        f"Found bounds_y={given!r}; two finite numbers, lower < upper, that y lies between are needed, as bounds_y or "
        "from a target in the schema."
    )
