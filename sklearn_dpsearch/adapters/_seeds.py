"""Parameters that hold randomness, which no released model keeps."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def fitted_parts(model: object) -> Iterator[Any]:
    """Collect the model and all estimators in its attributes, at any depth.

    Estimators in lists, dicts and arrays of objects are collected too.
    """
    pending: list[Any] = [model]
    visited: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        is_object = hasattr(value, "__dict__") and not isinstance(value, type)
        if is_object and hasattr(value, "get_params"):
            yield value
            pending += vars(value).values()
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, (list, tuple, set)):
            pending += value
        elif isinstance(value, np.ndarray) and value.dtype == object:
            pending += value.ravel().tolist()


#: The state of a generator tells its earlier draws, and with a seed anyone can repeat the draws.
SEEDS = ("random_state", "noise_seed")
#: Attributes of fitted ensembles with the seeds of their parts.
SEEDS_OF_PARTS = ("_seeds",)
#: Kinds of generators, and of seeds.
GENERATORS = (
    *(np.random.RandomState, np.random.Generator, np.random.BitGenerator, np.random.SeedSequence),
    random.Random,
)


def seed_names(estimator: Any) -> list[str]:
    """Names of an estimator's parameters that hold randomness, at any depth.

    Parameters
    ----------
    estimator : estimator
        Not fitted; its parameters are looked at.

    Returns
    -------
    list of str
        Names for ``set_params``.
    """
    names = estimator.get_params(deep=True)
    return sorted(name for name in names if name.rpartition("__")[2] in SEEDS)


def forget_seeds(model: object) -> None:
    """Set all seeds and generators of a fitted model and its parts to None.

    Parameters
    ----------
    model : estimator
        Changed in place.
    """
    for part in fitted_parts(model):
        for name, value in list(vars(part).items()):
            if value is not None and (name in (*SEEDS, *SEEDS_OF_PARTS) or _holds_generator(value)):
                setattr(part, name, None)


def _holds_generator(value: object) -> bool:
    """Return whether a value is a generator, or holds one in lists and dictionaries."""
    if isinstance(value, Mapping):
        return any(map(_holds_generator, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(_holds_generator, value))
    of_torch = getattr(sys.modules.get("torch"), "Generator", None)
    return isinstance(value, GENERATORS) or (of_torch is not None and isinstance(value, of_torch))
