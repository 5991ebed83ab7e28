"""Metrics from noisy histograms: balanced accuracy, precision, recall, F₁ and those of rankings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.validation import _num_samples

from ..data._labels import as_array, positions
from ..privacy._checks import Array, Neighboring, require, require_whole
from ._base import PrivateScorer, check_relation
from ._contributions import Places, Respond, contributions, equal, finite, response_function
from ._noise import Sensitivity


def _no_answers(X: Any) -> npt.NDArray[Any]:
    """Responses for records that need none of the model."""
    return np.zeros(_num_samples(X))


class HistogramScorer(PrivateScorer):
    """Scorer from a noisy histogram of records in cells.

    Every record falls into at most one cell.

    A record that is added, removed or blanked out changes one count by 1. A record that is changed
    may move from one cell to another, which changes two counts by 1 each.
    """

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells of the histogram."""

    @abstractmethod
    def responding(self, estimator: object) -> Respond:
        """Response of a model that cells are made of, as a function.

        It maps X to one row for each record.
        """

    @abstractmethod
    def cells(self, y: Any, response: Any) -> npt.NDArray[Any]:
        """The cell of each record, shape (n,), from that record alone; −1: none, nan: failure.

        Without responses (None): the cells of records that the model cannot answer.
        """

    @abstractmethod
    def of_counts(self, counts: npt.NDArray[np.float64]) -> float:
        """Metric from noisy counts, some of them negative."""

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        cells = contributions(self.responding(estimator), self.cells, X, y, [np.nan])[:, 0]
        if np.isnan(cells).any():
            worst = contributions(_no_answers, lambda y, _: self.cells(y, None), X, y, [-1.0])[:, 0]
            cells = np.where(np.isnan(cells), worst, cells)
        counted = np.bincount(1 + cells.astype(np.int64), minlength=1 + self.n_cells)
        return [int(count) for count in counted[1:]]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(2, 2, (1, 1)) if neighboring == "replace_one" else Sensitivity(1, 1)

    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        return self.of_counts(np.array(finite(noisy), dtype=np.float64))

    def __call__(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of exact counts, or of sums of weights."""
        labels = as_array(y)
        cells = self.cells(labels, self.responding(estimator)(X))
        cells = np.where(np.isnan(cells), self.cells(labels, None), cells).astype(np.int64)
        counts = np.bincount(1 + cells, sample_weight, 1 + self.n_cells)[1:]
        return self.of_counts(counts.astype(np.float64))

    plain = __call__


class CountScorer(HistogramScorer):
    """Scorer from counts by label and predicted label."""

    @abstractmethod
    def value(self, counts: Sequence[float]) -> float:
        """Metric from counts that are at least 0."""

    def responding(self, estimator: object) -> Respond:
        return response_function(estimator, "predict")

    def of_counts(self, counts: npt.NDArray[np.float64]) -> float:
        return self.value(np.maximum(counts, 0.0).tolist())


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracyScorer(CountScorer):
    """Scorer of balanced accuracy, from noisy counts.

    It is the mean over the classes of their share of right predictions.

    Right and wrong predictions of each class are counted, without records of other labels. A class
    with noisy counts of 0 and 0 is left out, as scikit-learn leaves out a class without records.

    Parameters
    ----------
    classes : sequence
        The labels, named in advance: learning them from the records would reveal them.
    """

    classes: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(as_array(self.classes).tolist()))
        distinct = len(set(self.classes)) == len(self.classes) > 0
        require(distinct, "classes without repetition, at least one", classes=self.classes)

    @property
    def n_cells(self) -> int:
        return 2 * len(self.classes)

    def cells(self, y: Any, response: Any) -> Places:
        place, wrong = positions(y, self.classes), True if response is None else ~equal(y, response)
        return np.asarray(np.where(place >= 0, 2 * place + wrong, -1))

    def value(self, counts: Sequence[float]) -> float:
        pairs = np.reshape(counts, (-1, 2))
        pairs = pairs[pairs.sum(axis=1) > 0]
        if len(pairs):
            return float(np.mean(pairs[:, 0] / pairs.sum(axis=1)))
        return 1.0 / len(self.classes)


#: Score of (true positives, false positives, false negatives) as numerator and denominator.
RETRIEVAL: dict[str, Callable[[float, float, float], tuple[float, float]]] = {
    "precision": lambda hit, alarm, miss: (hit, hit + alarm),
    "recall": lambda hit, alarm, miss: (hit, hit + miss),
    "f1": lambda hit, alarm, miss: (2 * hit, 2 * hit + alarm + miss),
}


@dataclass(frozen=True, kw_only=True)
class RetrievalScorer(CountScorer):
    """Scorer of precision, recall or F₁ of one class, from noisy counts.

    It counts hits, false alarms and misses of the class.

    Parameters
    ----------
    kind : {"precision", "recall", "f1"}
    pos_label : label
        The class to be found.
    """

    kind: str
    pos_label: Any
    n_cells = 3

    def __post_init__(self) -> None:
        require(self.kind in RETRIEVAL, f"kind to be one of {list(RETRIEVAL)}", kind=self.kind)

    def cells(self, y: Any, response: Any) -> Places:
        positive = positions(y, [self.pos_label]) == 0
        retrieved = ~positive if response is None else positions(response, [self.pos_label]) == 0
        cases = [positive & retrieved, retrieved, positive]
        return np.asarray(np.select(cases, [0, 1, 2], default=-1))

    def value(self, counts: Sequence[float]) -> float:
        numerator, denominator = RETRIEVAL[self.kind](*counts)
        return numerator / denominator if denominator > 0 else 0.0


# --- metrics of a ranking -------------------------------------------------------------------------
#
# One record is compared with all others, so neither metric has a useful sensitivity itself. The
# histograms of positive and of negative records' scores have one: bin edges are fixed in advance,
# and each record is one count. Both metrics are computed from the histograms, as if all scores of
# one bin were equal.

#: Bins end at minus and plus this many nats of log-odds: probabilities of 1/56 and 55/56.
REACH = 4.0


def roc_auc(positive: Array, negative: Array) -> float:
    """Area under the ROC curve, from counts in bins of rising scores; ties count half.

    Counts may be negative, as noise makes them: cutting them at 0 would add records to every empty
    bin.
    """
    if min(positive.sum(), negative.sum()) <= 0:
        return 0.5
    below = np.cumsum(negative) - negative / 2
    return float(np.clip(positive @ below / (positive.sum() * negative.sum()), 0, 1))


def average_precision(positive: Array, negative: Array) -> float:
    """Mean over the positive records of the precision at their bin.

    The counts are those of bins of rising scores.
    """
    if positive.sum() <= 0:
        return 0.0
    hits, alarms = (np.maximum(np.cumsum(counts[::-1])[::-1], 0) for counts in (positive, negative))
    precision = hits / np.maximum(hits + alarms, np.finfo(float).tiny)
    return float(np.clip(positive @ precision / positive.sum(), 0, 1))


METRICS: dict[str, Callable[[Array, Array], float]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}

#: Metrics computed from all scores.
EXACT_METRICS = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}


@dataclass(frozen=True, kw_only=True)
class RankingScorer(HistogramScorer):
    """Scorer of ROC AUC or average precision of one class, from noisy histograms.

    Parameters
    ----------
    kind : {"roc_auc", "average_precision"}
    pos_label : label
        The class that should be ranked high.
    n_bins : int, default=16
        Number of bins, equally wide in log-odds (``predict_proba``, or ``decision_function``
        unchanged). More bins resolve more and have more noise.
    """

    kind: str
    pos_label: Any
    n_bins: int = 16

    def __post_init__(self) -> None:
        require(self.kind in METRICS, f"kind to be one of {list(METRICS)}", kind=self.kind)
        require_whole(2, n_bins=self.n_bins)
        require(self.n_bins <= 10_000, "2 <= n_bins <= 10000", n_bins=self.n_bins)

    @property
    def n_cells(self) -> int:
        return 2 * self.n_bins

    def responding(self, estimator: object) -> Respond:
        return _log_odds(estimator, self.pos_label)

    def cells(self, y: Any, response: Any) -> Any:
        negative = positions(y, [self.pos_label]) < 0
        # a positive record in the lowest bin, a negative record in the highest
        if response is None:
            return np.where(negative, 2 * self.n_bins - 1, 0)
        bins = np.searchsorted(np.linspace(-REACH, REACH, self.n_bins - 1), response, side="right")
        cells = np.where(negative, self.n_bins + bins, bins)
        return np.where(np.isnan(response), np.nan, cells)  # infinite scores have a bin

    def of_counts(self, counts: Array) -> float:
        return METRICS[self.kind](*counts.reshape(2, -1))

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        scores = _log_odds(estimator, self.pos_label)(X)
        positive = positions(as_array(y), [self.pos_label]) == 0
        # of probabilities 0 and 1 too
        finite = np.clip(scores, -np.finfo(float).max, np.finfo(float).max)
        return float(EXACT_METRICS[self.kind](positive, finite, sample_weight=sample_weight))


def _log_odds(estimator: Any, pos_label: Any) -> Callable[[Any], Array]:
    """Log-odds of one class by a model, as a function of records.

    It maps X to shape (n,), each entry from its record alone, nan if missing.
    """
    place = int(positions([pos_label], estimator.classes_)[0])
    if place < 0:  # a model that does not know the class
        return lambda X: np.full(_num_samples(X), np.nan)
    if hasattr(estimator, "predict_proba"):
        shares = response_function(estimator, "predict_proba")
        return lambda X: _logit(np.asarray(shares(X), dtype=float)[:, place])
    decide = response_function(estimator, "decision_function")
    return lambda X: _orient_to_class(np.asarray(decide(X), dtype=float), place)


def _logit(shares: Array) -> Array:
    """Log-odds of probabilities, infinite at 0 and 1."""
    with np.errstate(all="ignore"):
        log_odds: Array = np.log(shares) - np.log1p(-shares)
        return log_odds


def _orient_to_class(decisions: Array, place: int) -> Array:
    """Decision function turned towards one of two classes.

    The function of a model of two classes is for the second.
    """
    return decisions[:, place] if decisions.ndim == 2 else decisions if place == 1 else -decisions
