"""Metrics of a ranking, the area under the ROC curve and average precision, from noisy histograms of the scores.

One record is compared with all others, so neither metric has a useful sensitivity itself. The histograms of positive
and of negative records' scores have one: bin edges are fixed in advance, and each record is one count. Both metrics
are computed from the histograms, as if all scores of one bin were equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.validation import _num_samples

from ..data.labels import as_array, positions
from ..privacy._checks import require
from ..privacy._types import Array
from .contributions import Places, Respond, response_function
from .counts import HistogramScorer

#: Bins end at minus and plus this many nats of log-odds: probabilities of 1/56 and 55/56.
REACH = 4.0


def roc_auc(positive: Array, negative: Array) -> float:
    """Area under the ROC curve, from counts in bins of rising scores; ties count half.

    Counts may be negative, as noise makes them: cutting them at 0 would add records to every empty bin.
    """
    if min(positive.sum(), negative.sum()) <= 0:
        return 0.5
    below = np.cumsum(negative) - negative / 2
    return float(np.clip(positive @ below / (positive.sum() * negative.sum()), 0, 1))


def average_precision(positive: Array, negative: Array) -> float:
    """Mean over the positive records of the precision at their bin, from counts in bins of rising scores."""
    if positive.sum() <= 0:
        return 0.0
    hits, alarms = (np.maximum(np.cumsum(counts[::-1])[::-1], 0) for counts in (positive, negative))
    precision = hits / np.maximum(hits + alarms, np.finfo(float).tiny)
    return float(np.clip(positive @ precision / positive.sum(), 0, 1))


METRICS: dict[str, Callable[[Array, Array], float]] = {"roc_auc": roc_auc, "average_precision": average_precision}

#: Metrics computed from all scores.
EXACTLY = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}


@dataclass(frozen=True, kw_only=True)
class RankingScorer(HistogramScorer):
    """Area under the ROC curve, or average precision, of one class from noisy histograms.

    Parameters
    ----------
    kind : {"roc_auc", "average_precision"}
    pos_label : label
        The class that should be ranked high.
    n_bins : int, default=16
        Number of bins, equally wide in log-odds (``predict_proba``, or ``decision_function`` unchanged). More bins
        resolve more and have more noise.
    """

    kind: str
    pos_label: Any
    n_bins: int = 16

    def __post_init__(self) -> None:
        require(self.kind in METRICS, f"kind to be one of {list(METRICS)}", kind=self.kind)
        require(
            int(self.n_bins) == self.n_bins and 2 <= self.n_bins <= 10_000, "2 <= n_bins <= 10000", n_bins=self.n_bins
        )

    @property
    def n_cells(self) -> int:
        return 2 * self.n_bins

    def responding(self, estimator: object) -> Respond:
        return _log_odds(estimator, self.pos_label)

    def cells(self, y: Any, response: Any) -> Any:
        bins = np.searchsorted(np.linspace(-REACH, REACH, self.n_bins - 1), response, side="right")
        cells = np.where(positions(y, [self.pos_label]) < 0, self.n_bins + bins, bins)
        return np.where(np.isnan(response), np.nan, cells)  # infinite scores have a bin

    def cell_of_failure(self, y: Any) -> Places:
        """The lowest bin for a positive record, the highest bin for a negative record."""
        return np.where(positions(y, [self.pos_label]) < 0, 2 * self.n_bins - 1, 0).astype(np.int64)

    def of_counts(self, counts: Array) -> float:
        return METRICS[self.kind](*counts.reshape(2, -1))

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        scores, positive = _log_odds(estimator, self.pos_label)(X), positions(as_array(y), [self.pos_label]) == 0
        return float(EXACTLY[self.kind](positive, scores, sample_weight=sample_weight))


def _log_odds(estimator: Any, pos_label: Any) -> Callable[[Any], Array]:
    """X ↦ scores of one class, shape (n,), as log-odds; each from its record alone, nan if missing."""
    place = int(positions([pos_label], estimator.classes_)[0])
    if place < 0:  # a model that does not know the class
        return lambda X: np.full(_num_samples(X), np.nan)
    if hasattr(estimator, "predict_proba"):
        shares = response_function(estimator, "predict_proba")
        return lambda X: _logit(np.asarray(shares(X), dtype=float)[:, place])
    decide = response_function(estimator, "decision_function")
    return lambda X: _of_class(np.asarray(decide(X), dtype=float), place)


def _logit(shares: Array) -> Array:
    """Infinite at 0 and 1."""
    with np.errstate(all="ignore"):
        found: Array = np.log(shares) - np.log1p(-shares)
        return found


def _of_class(decisions: Array, place: int) -> Array:
    """A decision function of two classes is that of the second."""
    return decisions[:, place] if decisions.ndim == 2 else decisions if place == 1 else -decisions
