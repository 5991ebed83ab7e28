"""What a fitted model is made of: its own parts, and the copies that ``fit`` made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

#: Parameters that hold randomness: the state of a generator tells what it drew, a seed lets everyone draw it again.
SEEDS = ("random_state", "noise_seed")


def fitted_parts(model: Any) -> Iterator[Any]:
    """The model and every estimator that its attributes hold, at any depth, in lists, dicts and arrays of objects."""
    left, seen = [model], set[int]()
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


def forget_seeds(model: Any) -> None:
    """Take away the randomness that a fitted model, or a part of it, was fitted with.

    Parameters
    ----------
    model : estimator
        Changed in place.
    """
    for part in fitted_parts(model):
        for name in SEEDS:
            if vars(part).get(name) is not None:
                setattr(part, name, None)


def _is_estimator(found: Any) -> bool:
    return not isinstance(found, type) and hasattr(found, "get_params") and hasattr(found, "__dict__")
