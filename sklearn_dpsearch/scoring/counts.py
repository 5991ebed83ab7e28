"""Ratios of noisy counts: balanced accuracy, precision, recall and F₁."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _num_samples

from ..data.labels import as_array, positions
from ..privacy._checks import require
from ..privacy._types import Neighboring
from .base import PrivateScorer, check_relation
from .contributions import Flags, Places, Respond, contributions, equal, finite, response_function
from .noise import Sensitivity


def _unasked(X: Any) -> npt.NDArray[Any]:
    """No answers, one for each record."""
    return np.zeros(_num_samples(X))


class HistogramScorer(PrivateScorer):
    """A function of a histogram: every record falls into at most one cell.

    A record that is added, removed or blanked out changes one count by 1. A record that is changed may move from one
    cell to another, which changes two counts by 1 each.
    """

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of counts."""

    @abstractmethod
    def responding(self, estimator: object) -> Respond:
        """Return X ↦ what the cells are of, one row for each record."""

    @abstractmethod
    def cells(self, y: Any, response: Any) -> npt.NDArray[Any]:
        """The cell of each record, shape (n,), from that record alone; −1: none, nan: failure."""

    @abstractmethod
    def cell_of_failure(self, y: Any) -> Places:
        """The cell of records that the model cannot answer, from their labels."""

    @abstractmethod
    def of_counts(self, counts: npt.NDArray[np.float64]) -> float:
        """The metric, from noisy counts, some of them negative."""

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        check_relation(neighboring)
        cells = contributions(self.responding(estimator), self.cells, X, y, [np.nan])[:, 0]
        if np.isnan(cells).any():
            worst = contributions(_unasked, lambda y, _: self.cell_of_failure(y), X, y, [-1.0])[:, 0]
            cells = np.where(np.isnan(cells), worst, cells)
        return self._histogram(cells)

    def _histogram(self, cells: npt.NDArray[Any]) -> list[int]:
        counted = np.bincount(1 + cells.astype(np.int64), minlength=1 + self.n_cells)
        return [int(count) for count in counted[1:]]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(2, 2, (1, 1)) if neighboring == "replace_one" else Sensitivity(1, 1)

    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        check_relation(neighboring)
        return self.of_counts(np.array(finite(noisy), dtype=np.float64))

    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        return self._of_records(estimator, X, y, None)

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        return self._of_records(estimator, X, y, sample_weight)

    def _of_records(self, estimator: object, X: Any, y: Any, sample_weight: Any) -> float:
        """The metric of exact counts, or of sums of weights."""
        labels = as_array(y)
        cells = self.cells(labels, self.responding(estimator)(X))
        cells = np.where(np.isnan(cells), self.cell_of_failure(labels), cells).astype(np.int64)
        return self.of_counts(np.bincount(1 + cells, sample_weight, 1 + self.n_cells)[1:].astype(np.float64))


class CountScorer(HistogramScorer):
    """A function of counts by label and predicted label."""

    @abstractmethod
    def value(self, counts: Sequence[float]) -> float:
        """The metric, from counts ≥ 0."""

    def responding(self, estimator: object) -> Respond:
        return response_function(estimator, "predict")

    def of_counts(self, counts: npt.NDArray[np.float64]) -> float:
        return self.value(np.maximum(counts, 0.0).tolist())


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracyScorer(CountScorer):
    """Mean over the classes of their share of right predictions.

    Right and wrong predictions of each class are counted, without records of other labels. A class with noisy counts of
    0 and 0 is left out, as scikit-learn leaves out a class without records.

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
        return self._cells(y, ~equal(y, response))

    def cell_of_failure(self, y: Any) -> Places:
        return self._cells(y, np.ones(len(y), dtype=bool))

    def _cells(self, y: Any, wrong: Flags) -> Places:
        place = positions(y, self.classes)
        return np.asarray(np.where(place >= 0, 2 * place + wrong, -1))

    def value(self, counts: Sequence[float]) -> float:
        pairs = np.reshape(counts, (-1, 2))
        pairs = pairs[pairs.sum(axis=1) > 0]
        return float(np.mean(pairs[:, 0] / pairs.sum(axis=1))) if len(pairs) else 1.0 / len(self.classes)


#: Score of (true positives, false positives, false negatives) as numerator and denominator.
RETRIEVAL: dict[str, Callable[[float, float, float], tuple[float, float]]] = {
    "precision": lambda hit, alarm, miss: (hit, hit + alarm),
    "recall": lambda hit, alarm, miss: (hit, hit + miss),
    "f1": lambda hit, alarm, miss: (2 * hit, 2 * hit + alarm + miss),
}


@dataclass(frozen=True, kw_only=True)
class RetrievalScorer(CountScorer):
    """Precision, recall or F₁ of one class, from noisy counts of its hits, false alarms and misses.

    Parameters
    ----------
    kind : {"precision", "recall", "f1"}
    pos_label : label
        The class to be found.
    """

    kind: str
    pos_label: Any

    def __post_init__(self) -> None:
        require(self.kind in RETRIEVAL, f"kind to be one of {list(RETRIEVAL)}", kind=self.kind)

    @property
    def n_cells(self) -> int:
        return 3

    def cells(self, y: Any, response: Any) -> Places:
        return self._cells(self._positive(y), self._positive(response))

    def cell_of_failure(self, y: Any) -> Places:
        positive = self._positive(y)
        return self._cells(positive, ~positive)

    def _positive(self, labels: Any) -> Flags:
        return np.asarray(positions(labels, [self.pos_label]) == 0)

    def _cells(self, positive: Flags, found: Flags) -> Places:
        return np.asarray(np.select([positive & found, found, positive], [0, 1, 2], default=-1))

    def value(self, counts: Sequence[float]) -> float:
        numerator, denominator = RETRIEVAL[self.kind](*counts)
        return numerator / denominator if denominator > 0 else 0.0
