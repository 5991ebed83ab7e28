"""The mean over the records of a value between public bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from ..data.labels import as_array
from ..privacy._checks import check_neighboring, require
from ..privacy._types import Array, Neighboring
from .base import PrivateScorer, check_resolution, known_size
from .contributions import Evaluate, contributions, finite, quantised, records_per_call, response_function
from .noise import Sensitivity
from .record_values import Match, OfPredictions, RecordValues


@dataclass(frozen=True, kw_only=True)
class MeanScorer(PrivateScorer):
    """The mean over the records of a value between public bounds.

    ``private_scorer`` and ``make_private_scorer`` build it.

    Values are clipped to [lower, upper] and rounded to x ∈ {0, …, R} (R = ``resolution``). The sums, and their
    sensitivity to one record:

    ============================= =============== ==================
    relation                      integers        sensitivity
    ============================= =============== ==================
    replace_one                   Σx              R
    zero_out                      Σ(2x − R)       R (half the range)
    add_remove                    Σx, Σ(R − x)    R, in l1 and l2
    add_remove, ``expected_size`` Σ(2x − R)       R (half the range)
    ============================= =============== ==================

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
    expected_size : float, optional
        A public guess of the number of scored records, chosen without looking at the data. Used under
        add_remove only.
    name : str, optional
        For display.
    """

    values: RecordValues
    lower: float
    upper: float
    response_method: str | Sequence[str] = "predict"
    greater_is_better: bool = True
    resolution: int = 1000
    expected_size: float | None = None
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
        if self.expected_size is not None:
            require(0 < self.expected_size < inf, "0 < expected_size < inf", expected_size=self.expected_size)

    @property
    def worst(self) -> float:
        """The value of a record that cannot be scored."""
        return self.lower if self.greater_is_better else self.upper

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        check_neighboring(neighboring)
        respond, evaluate = response_function(estimator, self.response_method), self._evaluate(estimator)
        values = contributions(respond, evaluate, X, y, [self.worst], self.records_per_call(estimator))[:, 0]
        levels = quantised(values, self.lower, self.upper, self.resolution)
        up, whole = int(levels.sum()), self.resolution * len(levels)
        if neighboring == "replace_one":
            return [up]
        if neighboring == "zero_out" or self.expected_size is not None:
            return [2 * up - whole]
        return [up, whole - up]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        check_neighboring(neighboring)
        return Sensitivity(self.resolution, self.resolution**2)

    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: Neighboring) -> float:
        check_neighboring(neighboring)
        mean = self.lower + (self.upper - self.lower) * self._share(finite(noisy), n_scored, neighboring)
        return mean if self.greater_is_better else -mean

    def _share(self, noisy: list[int], n_scored: int | None, neighboring: Neighboring) -> float:
        """Position of the mean between lower (0) and upper (1); the middle if no record was counted."""
        if neighboring == "add_remove" and self.expected_size is None:
            up, down = (max(value, 0) for value in noisy)
            return up / (up + down) if up + down else 0.5
        n = self.expected_size if neighboring == "add_remove" else known_size(n_scored)
        if not n:
            return 0.5
        whole = self.resolution * n
        return noisy[0] / whole if neighboring == "replace_one" else 0.5 + noisy[0] / (2 * whole)

    def records_per_call(self, estimator: object) -> int:
        return records_per_call(estimator, self.response_method)

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
    expected_size: float | None = None,
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
    expected_size : float, optional
        A public guess of the number of scored records, for the add/remove relation (docs/theory/score_noise.md).
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
        expected_size=expected_size,
        name=name or getattr(score_func, "__name__", None),
    )
