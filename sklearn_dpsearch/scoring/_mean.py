"""The mean over the records of a value between public bounds: right or wrong, an error, a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np

from ..data._labels import as_array, positions
from ..privacy._checks import Array, Neighboring, require
from ._base import PrivateScorer, check_relation, check_resolution
from ._contributions import (
    Evaluate,
    Flags,
    Labels,
    contributions,
    equal,
    finite,
    numbers,
    quantised,
    response_function,
)
from ._noise import Sensitivity

# --- values of single records -------------------------------------------------------


class RecordValues(Protocol):
    """Values of records that a scorer averages.

    (labels, the model's responses, its ``classes_`` or None) ↦ one value per record.
    """

    def __call__(self, y: Any, response: Any, classes: Any, /) -> Any: ...


@dataclass(frozen=True)
class Match:
    """Value 1 where the prediction is the label."""

    def __call__(self, y: Any, response: Any, classes: Any) -> Flags:
        return equal(y, response)


@dataclass(frozen=True)
class InTopK:
    """Value 1 where the label has one of the k largest scores.

    Of equal scores the later class wins.
    """

    k: int

    def __call__(self, y: Any, response: Any, classes: Any) -> Flags:
        scores = np.asarray(response, dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        place = positions(y, classes)
        score = np.take_along_axis(scores, np.maximum(place, 0)[:, None], axis=1)
        later = np.arange(scores.shape[1]) > place[:, None]
        ahead = np.sum((scores > score) | ((scores == score) & later), axis=1)
        spoilt = np.isnan(scores).any(axis=1)
        return np.asarray((place >= 0) & (ahead < self.k) & ~spoilt, dtype=bool)


@dataclass(frozen=True)
class LogLoss:
    """Value −log of the probability given to the label.

    It is infinite for a label that the model does not know.

    A probability of 0 counts as the smallest step of a double, as in scikit-learn.
    """

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        place = positions(y, classes)
        probabilities, column = np.asarray(response, dtype=float), np.maximum(place, 0)[:, None]
        probability = np.take_along_axis(probabilities, column, axis=1)[:, 0]
        smallest = np.finfo(float).eps
        loss = -np.log(np.where(probability < smallest, smallest, probability))
        return np.asarray(np.where(place >= 0, loss, np.inf))


@dataclass(frozen=True)
class ErrorPower:
    """Value |y − prediction|^power of each record."""

    power: int

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        return np.asarray(np.abs(numbers(y) - numbers(response)) ** self.power, dtype=float)


@dataclass(frozen=True)
class OfPredictions:
    """Value of a caller's own ``score_func(y_true, y_pred)``, record by record.

    It is called with one record at a time, so that it sees no other.
    """

    score_func: Callable[[Any, Any], Any]

    def __call__(self, y: Any, response: Any, classes: Any) -> Array:
        y, response = as_array(y), as_array(response)
        values = [self._of_one(y[i : i + 1], response[i : i + 1]) for i in range(len(y))]
        return np.array(values, dtype=float)

    def _of_one(self, y: Labels, response: Labels) -> float:
        """Value of one record by the caller's function."""
        value = np.asarray(self.score_func(_plain(y), _plain(response)), dtype=float)
        if value.size != 1:
            raise ValueError(
                f"Found {value.size} values of score_func for one record; one is needed. It is "
                "called with arrays of one row: return an array of shape (1,), or a number."
            )
        return float(value.item())

    def __repr__(self) -> str:
        return f"OfPredictions({getattr(self.score_func, '__qualname__', repr(self.score_func))})"


def _plain(record: Labels) -> Labels:
    """Single record as an array of a type that no other record decides."""
    return np.array(record.tolist()) if record.dtype == object else record


# --- their mean -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MeanScorer(PrivateScorer):
    """Scorer of the mean of a bounded value over the records.

    The bounds are public.

    ``private_scorer`` and ``make_private_scorer`` build it.

    Values are clipped to [lower, upper] and rounded to x ∈ {0, …, R} (R = ``resolution``). The sum,
    and its sensitivity to one record:

    =========== ========= ==================
    relation    integer   sensitivity
    =========== ========= ==================
    replace_one Σx        R
    zero_out    Σ(2x − R) R (half the range)
    =========== ========= ==================

    Parameters
    ----------
    values : callable
        (y, response, classes) ↦ values of shape (n,).
    lower, upper : float
        Public bounds of a value.
    response_method : str or sequence of str
        The estimator's method that gives the responses, or several in order of preference.
    greater_is_better : bool
        If False, the score is minus the mean.
    resolution : int
        R.
    name : str, optional
        For display.
    """

    values: RecordValues
    lower: float
    upper: float
    response_method: str | Sequence[str] = "predict"
    greater_is_better: bool = True
    resolution: int = 1000
    name: str | None = None

    @property
    def several_targets(self) -> bool:
        """True if records may have several targets.

        It is so for rows of labels that must all be right, and for a user's own metric.
        """
        return isinstance(self.values, (Match, OfPredictions))

    def __post_init__(self) -> None:
        if not isinstance(self.response_method, str):
            object.__setattr__(self, "response_method", tuple(self.response_method))
        has_width = isfinite(self.upper - self.lower) and self.lower < self.upper
        require(
            isfinite(self.lower) and has_width,
            "finite lower < upper",
            lower=self.lower,
            upper=self.upper,
        )
        object.__setattr__(self, "resolution", check_resolution(self.resolution))

    @property
    def worst(self) -> float:
        """Worst value, for a record that cannot be scored."""
        return self.lower if self.greater_is_better else self.upper

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        respond = response_function(estimator, self.response_method)
        evaluate = self._evaluate(estimator)
        values = contributions(respond, evaluate, X, y, [self.worst])[:, 0]
        levels = quantised(values, self.lower, self.upper, self.resolution)
        total = int(levels.sum())
        from_middle = 2 * total - self.resolution * len(levels)
        return [total if neighboring == "replace_one" else from_middle]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(self.resolution, self.resolution**2)

    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        total, largest = finite(noisy)[0], self.resolution * n_scored
        share = 0.5  # the middle, if no record was scored
        if largest:
            share = total / largest if neighboring == "replace_one" else 0.5 + total / (2 * largest)
        mean = self.lower + (self.upper - self.lower) * share
        return mean if self.greater_is_better else -mean

    def _evaluate(self, estimator: object) -> Evaluate:
        """Function from labels and responses to the value of each record."""
        classes = getattr(estimator, "classes_", None)
        return lambda y, response: self.values(y, response, classes)

    def _values(self, estimator: object, X: Any, y: Any) -> Array:
        """Values of records by a model's responses."""
        response = response_function(estimator, self.response_method)(X)
        return np.asarray(self._evaluate(estimator)(as_array(y), response), dtype=float)

    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        values = self._values(estimator, X, y)
        values = np.where(np.isfinite(values), values, self.worst)
        mean = float(np.mean(np.clip(values, self.lower, self.upper)))
        return mean if self.greater_is_better else -mean

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean of the values, without clipping, as they are, also if some are not finite."""
        mean = float(np.average(self._values(estimator, X, y), weights=sample_weight))
        return mean if self.greater_is_better else -mean


def make_private_scorer(
    score_func: Callable[[Any, Any], Any],
    *,
    lower: float,
    upper: float,
    response_method: str | Sequence[str] = "predict",
    greater_is_better: bool = True,
    resolution: int = 1000,
    name: str | None = None,
) -> MeanScorer:
    """Make a private scorer from a function of one record's truth and prediction.

    Parameters
    ----------
    score_func : callable
        (y_true, y_pred) ↦ the value of one record. It is called with arrays of one row, so that no
        record enters the value of another: a few seconds for a million records.
    lower, upper : float
        Public bounds; values beyond are clipped, values that are not finite count as the worst
        bound. The narrower, the less noise.
    response_method : str or sequence of str
        ``"predict"``, ``"predict_proba"`` (all columns), ``"decision_function"``, or several in
        order of preference.
    greater_is_better : bool
        If False, the score is minus the mean.
    resolution : int
        Number of steps from lower to upper to which values are rounded.
    name : str, optional
        For display.

    Returns
    -------
    MeanScorer

    Examples
    --------
    >>> def pinball(y_true, y_pred):
    ...     return np.maximum(0.9 * (y_true - y_pred), 0.1 * (y_pred - y_true))
    >>> scorer = make_private_scorer(pinball, lower=0, upper=50, greater_is_better=False)
    >>> scorer.sensitivity("replace_one")
    Sensitivity(l1=1000, l2_squared=1000000, l1_of_blocks=())
    """
    if str(getattr(score_func, "__module__", "")).startswith("sklearn.metrics"):
        raise ValueError(
            f"Found score_func={score_func!r} of sklearn.metrics, which is about all records at "
            "once; the value of one record is needed. Return the values before averaging, e.g. "
            "lambda y_true, y_pred: (y_true - y_pred) ** 2."
        )
    return MeanScorer(
        values=OfPredictions(score_func),
        lower=lower,
        upper=upper,
        response_method=response_method,
        greater_is_better=greater_is_better,
        resolution=resolution,
        name=name or getattr(score_func, "__name__", None),
    )
