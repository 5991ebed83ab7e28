"""Values of single records that are averaged: right or wrong, an error, a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..data.labels import as_array, positions
from ..privacy._types import Array
from .contributions import Flags, Labels, equal, numbers


class RecordValues(Protocol):
    """Values that are averaged: (labels, the model's responses, its ``classes_`` or None) ↦ one value per record."""

    def __call__(self, y: Any, response: Any, classes: Any, /) -> Any: ...


@dataclass(frozen=True)
class Match:
    """1 where the prediction is the label."""

    def __call__(self, y: Any, response: Any, classes: Any) -> Flags:
        return equal(y, response)


@dataclass(frozen=True)
class InTopK:
    """1 where the label is among the k classes with the largest scores; of equal scores the later class wins."""

    k: int

    def __call__(self, y: Any, response: Any, classes: Any) -> Flags:
        scores = np.asarray(response, dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        place = positions(y, classes)
        own = np.take_along_axis(scores, np.maximum(place, 0)[:, None], axis=1)
        later = np.arange(scores.shape[1]) > place[:, None]
        ahead = np.sum((scores > own) | ((scores == own) & later), axis=1)
        spoilt = np.isnan(scores).any(axis=1)
        return np.asarray((place >= 0) & (ahead < self.k) & ~spoilt, dtype=bool)


@dataclass(frozen=True)
class LogLoss:
    """−log of the probability given to the label; infinite for a label that the model does not know.

    A probability of 0 counts as the smallest step of a double, as in scikit-learn.
    """

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        place = positions(y, classes)
        given = np.take_along_axis(np.asarray(response, dtype=float), np.maximum(place, 0)[:, None], axis=1)[:, 0]
        smallest = np.finfo(float).eps
        loss: Array = np.where(place >= 0, -np.log(np.where(given < smallest, smallest, given)), np.inf)
        return loss


@dataclass(frozen=True)
class ErrorPower:
    """|y − prediction|^power."""

    power: int

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        return np.asarray(np.abs(numbers(y) - numbers(response)) ** self.power, dtype=float)


@dataclass(frozen=True)
class OfPredictions:
    """A caller's own ``score_func(y_true, y_pred)``, called with one record at a time, so that it sees no other."""

    score_func: Callable[[Any, Any], Any]

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        y, response = as_array(y), as_array(response)
        return np.array([self._of_one(y[i : i + 1], response[i : i + 1]) for i in range(len(y))], dtype=float)

    def _of_one(self, y: Labels, response: Labels) -> float:
        found = np.asarray(self.score_func(_plain(y), _plain(response)), dtype=float)
        if found.size != 1:
            raise ValueError(
                f"Found {found.size} values of score_func for one record; one is needed. It is called with arrays of "
                "one row: return an array of shape (1,), or a number."
            )
        return float(found.item())

    def __repr__(self) -> str:
        return f"OfPredictions({getattr(self.score_func, '__qualname__', repr(self.score_func))})"


def _plain(one: Labels) -> Labels:
    """Objects of a single record as an array of its own type, which no other record decides."""
    return np.array(one.tolist()) if one.dtype == object else one
