"""Features that an attacker reads off a fitted model: by default every number, and predictions on the canary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

#: The most numbers that are read from one attribute.
LARGEST = 5_000
#: Methods whose answers for the canary are read.
ANSWERS = ("decision_function", "predict_proba", "predict", "score_samples", "transform")

Statistic = Callable[[Any], Any]


@dataclass(frozen=True)
class Everything:
    """The default attack: parameters and scores found, every fitted number, and the answers for the canary.

    Parameters
    ----------
    canary : array-like of shape (k, n_features)
    """

    canary: Any

    def __call__(self, model: Any) -> dict[str, Any]:
        found = dict(_fitted("", model, 0))
        for name in ANSWERS:
            with contextlib.suppress(Exception):  # a model that cannot answer is read by its parameters alone
                found.update(_read(f"{name}(canary)", getattr(model, name)(self.canary)))
        return found


def _fitted(prefix: str, model: object, depth: int) -> Iterator[tuple[str, Any]]:
    """Names and values of fitted attributes: numbers, texts, parameters; also of inner models."""
    for name, value in sorted(getattr(model, "__dict__", {}).items()):
        if not name.endswith("_") or name.startswith("_") or name == "privacy_spent_":
            continue
        yield from _read(f"{prefix}{name}", value)
        if depth < 3 and hasattr(value, "fit"):
            yield from _fitted(f"{prefix}{name}.", value, depth + 1)
    if depth < 3:
        for name, step in (entry[:2] for entry in getattr(model, "steps", ())):
            yield from _fitted(f"{prefix}{name}.", step, depth + 1)


def _read(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value as entries of an outcome, without all that is neither number nor text."""
    if isinstance(value, (bool, np.bool_, str)):
        yield name, str(value)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(key, str) and not isinstance(entry, Mapping):
                yield from _read(f"{name}[{key}]", entry)
    elif callable(getattr(value, "parameters", None)):  # a torch module
        with contextlib.suppress(Exception):
            flat = [weights.detach().cpu().numpy().ravel() for weights in value.parameters()]
            yield from _read(name, np.concatenate(flat))
    else:
        yield from _numbers(name, value)


def _numbers(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    value = value.toarray() if issparse(value) else value
    with contextlib.suppress(Exception):
        array = np.asarray(value)
        if array.dtype.kind in "iufb" and 0 < array.size <= LARGEST:
            yield name, float(array) if array.ndim == 0 else array.astype(float).ravel()
        elif array.dtype.kind in "US" and array.size <= 8:
            yield name, str(array.tolist())
