"""Scores that one record can move only so far, computed from exact integers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from .noise import Sensitivity
from .records import OfPredictions, as_array, contributions, finite, quantised, response_function

RELATIONS = ("add_remove", "zero_out", "replace_one")


class PrivateScorer(ABC):
    """A score of a fitted model on private records, through a vector of integers of known sensitivity.

    The search computes ``statistic``, adds noise drawn for ``sensitivity`` to each integer, and passes them
    to ``score``, which sees nothing else of the data. All three are told the neighbouring relation of the
    whole search: under ``"add_remove"`` the number of records is private too, so the integers have to speak
    for it.

    A record's contribution must depend on that record and the model alone. Sample weights are not supported:
    they change the sensitivity.
    """

    @abstractmethod
    def statistic(self, estimator: Any, X: Any, y: Any, neighboring: str) -> list[int]:
        """The integers before noise: NOT private.

        A record that cannot be scored, or not with finite numbers, contributes the worst value.
        """

    @abstractmethod
    def sensitivity(self, neighboring: str) -> Sensitivity:
        """How far one record can move them."""

    @abstractmethod
    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: str) -> float:
        """The score, from noisy integers and public numbers. Greater is better; always finite.

        Parameters
        ----------
        noisy : sequence of int
            Statistic plus noise.
        n_scored : int or None
            The public number of scored records; not used under ``"add_remove"``, where that number is
            private.
        neighboring : str
            The relation given to ``statistic``.
        """

    @abstractmethod
    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The same metric without noise or quantisation, for public data: NOT private. Greater is better.

        With the bounds of the private score, so that candidates on public data are ordered by what was asked for.
        """

    def plain(self, estimator: Any, X: Any, y: Any) -> float:
        """The metric without noise and without any bound: what ``search.score`` says of the caller's own test data.

        NOT private. A scorer that moves values to public bounds says here what they are without; by default there are
        none, and this is the same as calling the scorer.
        """
        return float(self(estimator, X, y))


@dataclass(frozen=True, kw_only=True)
class MeanScorer(PrivateScorer):
    """Mean over the records of a value between public bounds. Built by ``private_scorer`` and
    ``make_private_scorer``.

    Values are clipped to [lower, upper] and rounded to x ∈ {0, …, R} (R = ``resolution``). What is summed,
    and by how much one record moves it:

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

    values: Callable[[Any, Any, Any], Any]
    lower: float
    upper: float
    response_method: str | tuple[str, ...] = "predict"
    greater_is_better: bool = True
    resolution: int = 1000
    expected_size: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.response_method, str):
            object.__setattr__(self, "response_method", tuple(self.response_method))
        if not (isfinite(self.lower) and isfinite(self.upper - self.lower) and self.lower < self.upper):
            raise ValueError(f"Expected finite lower < upper, got lower={self.lower!r}, upper={self.upper!r}.")
        object.__setattr__(self, "resolution", check_resolution(self.resolution))
        if self.expected_size is not None and not 0 < self.expected_size < float("inf"):
            raise ValueError(f"Expected 0 < expected_size < inf, got expected_size={self.expected_size!r}.")

    @property
    def worst(self) -> float:
        """The value of a record that cannot be scored."""
        return self.lower if self.greater_is_better else self.upper

    def statistic(self, estimator: Any, X: Any, y: Any, neighboring: str) -> list[int]:
        check_relation(neighboring)
        values = contributions(self._evaluate(estimator), X, y, [self.worst])[:, 0]
        levels = quantised(values, self.lower, self.upper, self.resolution)
        up, whole = int(levels.sum()), self.resolution * len(levels)
        if neighboring == "replace_one":
            return [up]
        if neighboring == "zero_out" or self.expected_size is not None:
            return [2 * up - whole]
        return [up, whole - up]

    def sensitivity(self, neighboring: str) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(self.resolution, self.resolution**2)

    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: str) -> float:
        check_relation(neighboring)
        mean = self.lower + (self.upper - self.lower) * self._share(finite(noisy), n_scored, neighboring)
        return mean if self.greater_is_better else -mean

    def _share(self, noisy: list[int], n_scored: int | None, neighboring: str) -> float:
        """Where the mean lies between lower (0) and upper (1); the middle if there is nothing to go by."""
        if neighboring == "add_remove" and self.expected_size is None:
            up, down = (max(value, 0) for value in noisy)
            return up / (up + down) if up + down else 0.5
        n = self.expected_size if neighboring == "add_remove" else known(n_scored)
        if not n:
            return 0.5
        whole = self.resolution * n
        return noisy[0] / whole if neighboring == "replace_one" else 0.5 + noisy[0] / (2 * whole)

    def _evaluate(self, estimator: Any) -> Callable[[Any, Any], Any]:
        respond = response_function(estimator, self.response_method)
        classes = getattr(estimator, "classes_", None)
        return lambda X, y: self.values(as_array(y), respond(X), classes)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        values = np.asarray(self._evaluate(estimator)(X, y), dtype=float)
        values = np.where(np.isfinite(values), values, self.worst)
        mean = float(np.mean(np.clip(values, self.lower, self.upper)))
        return mean if self.greater_is_better else -mean

    def plain(self, estimator: Any, X: Any, y: Any) -> float:
        """The mean of the values as they are: beyond the bounds, and not a number where a value is none."""
        mean = float(np.mean(np.asarray(self._evaluate(estimator)(X, y), dtype=float)))
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
        (y_true, y_pred) ↦ one value per record, shape (n,). A record's value may depend on that record only:
        no normalising by the mean, the number or the spread of the records.
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
        A public guess of the number of scored records, for the add/remove relation (docs/theory/scoring.md).
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
    Sensitivity(l1=1000, l2_squared=1000000, parts=())
    """
    _check_record_wise(score_func, response_method)
    return MeanScorer(
        values=OfPredictions(score_func),
        lower=lower,
        upper=upper,
        response_method=response_method,  # type: ignore[arg-type]
        greater_is_better=greater_is_better,
        resolution=resolution,
        expected_size=expected_size,
        name=name or getattr(score_func, "__name__", None),
    )


def _check_record_wise(score_func: Callable[[Any, Any], Any], response_method: str | Sequence[str]) -> None:
    """Try the function on three made-up records; a function that does not take those is taken at its word."""
    truth, response = np.array([0, 1, 1]), np.array([1, 1, 0])
    if response_method == "predict_proba":
        response = np.array([[0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            together = np.asarray(score_func(truth, response), dtype=float)
            alone = [
                np.ravel(np.asarray(score_func(truth[i : i + 1], response[i : i + 1]), dtype=float)) for i in range(3)
            ]
    except Exception:
        return
    if together.shape != (3,):
        raise ValueError(
            f"Expected score_func to return one value per record, shape (n,), got shape {together.shape} for "
            f"n=3. Return the values before averaging, e.g. lambda y_true, y_pred: (y_true - y_pred) ** 2."
        )
    if not np.allclose(together, np.concatenate(alone), equal_nan=True):
        raise ValueError(
            "Expected a score_func whose value for a record depends on that record only, got one that gives a "
            "record another value when the other records are left out. Remove what is computed over records."
        )


def known(n_scored: int | None) -> int:
    """The public number of scored records, or an error."""
    if n_scored is None or n_scored < 0:
        raise ValueError(
            f"Expected the number of scored records, which is public under this relation, got {n_scored!r}."
        )
    return int(n_scored)


def check_relation(neighboring: str) -> None:
    if neighboring not in RELATIONS:
        raise ValueError(f"Expected neighboring to be one of {RELATIONS}, got {neighboring!r}.")


def check_resolution(resolution: int, least: int = 1) -> int:
    """``resolution`` as an integer that does not wrap around, as those of NumPy would, or an error."""
    if isinstance(resolution, bool) or int(resolution) != resolution or not least <= resolution <= 10**9:
        raise ValueError(f"Expected an integer {least} <= resolution <= 10**9, got resolution={resolution!r}.")
    return int(resolution)
