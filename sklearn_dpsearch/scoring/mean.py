"""The mean over the records of a value between public bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ..data.labels import as_array
from ..privacy._checks import require
from ..privacy._types import Array, Neighboring
from .base import PrivateScorer, check_relation, check_resolution
from .contributions import Evaluate, contributions, finite, quantised, response_function
from .noise import Sensitivity
from .record_values import Match, OfPredictions, RecordValues


@dataclass(frozen=True, kw_only=True)
class MeanScorer(PrivateScorer):
    """The mean over the records of a value between public bounds.

    ``private_scorer`` and ``make_private_scorer`` build it.

    Values are clipped to [lower, upper] and rounded to x ∈ {0, …, R} (R = ``resolution``). The sum, and its
    sensitivity to one record:

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
        """True if records may have several targets: rows of labels that must all be right, or a user's own metric."""
        return isinstance(self.values, (Match, OfPredictions))

    def __post_init__(self) -> None:
        if not isinstance(self.response_method, str):
            object.__setattr__(self, "response_method", tuple(self.response_method))
        finite_bounds = isfinite(self.lower) and isfinite(self.upper - self.lower) and self.lower < self.upper
        require(finite_bounds, "finite lower < upper", lower=self.lower, upper=self.upper)
        object.__setattr__(self, "resolution", check_resolution(self.resolution))

    @property
    def worst(self) -> float:
        """The value of a record that cannot be scored."""
        return self.lower if self.greater_is_better else self.upper

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        check_relation(neighboring)
        respond, evaluate = response_function(estimator, self.response_method), self._evaluate(estimator)
        values = contributions(respond, evaluate, X, y, [self.worst])[:, 0]
        levels = quantised(values, self.lower, self.upper, self.resolution)
        total = int(levels.sum())
        return [total if neighboring == "replace_one" else 2 * total - self.resolution * len(levels)]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(self.resolution, self.resolution**2)

    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        check_relation(neighboring)
        total, whole = finite(noisy)[0], self.resolution * n_scored
        share = 0.5  # the middle, if no record was scored
        if whole:
            share = total / whole if neighboring == "replace_one" else 0.5 + total / (2 * whole)
        mean = self.lower + (self.upper - self.lower) * share
        return mean if self.greater_is_better else -mean

    def _evaluate(self, estimator: object) -> Evaluate:
        classes = getattr(estimator, "classes_", None)
        return lambda y, response: self.values(y, response, classes)

    def _values(self, estimator: object, X: Any, y: Any) -> Array:
        response = response_function(estimator, self.response_method)(X)
        return np.asarray(self._evaluate(estimator)(as_array(y), response), dtype=float)

    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        values = self._values(estimator, X, y)
        values = np.where(np.isfinite(values), values, self.worst)
        mean = float(np.mean(np.clip(values, self.lower, self.upper)))
        return mean if self.greater_is_better else -mean

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean of the values as they are, without clipping and also if some are not finite."""
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
    """A private scorer from a function of one record's truth and prediction.

    Parameters
    ----------
    score_func : callable
        (y_true, y_pred) ↦ the value of one record. It is called with arrays of one row, so that no record enters the
        value of another: a few seconds for a million records.
    lower, upper : float
        Public bounds; values beyond are clipped, values that are not finite count as the worst bound. The
        narrower, the less noise.
    response_method : str or sequence of str
        ``"predict"``, ``"predict_proba"`` (all columns), ``"decision_function"``, or several in order of
        preference.
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
            f"Found score_func={score_func!r} of sklearn.metrics, which is about all records at once; the "
            "value of one record is needed. Return the values before averaging, e.g. lambda y_true, y_pred: (y_true - "
            "y_pred) ** 2."
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
