"""Scores that are not means of one value: ratios of noisy counts, and R² from noisy sums."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from .noise import Sensitivity
from .records import as_array, contributions, equal, finite, positions, quantised, response_function
from .scorers import PrivateScorer, check_relation, check_resolution, known


class CountScorer(PrivateScorer):
    """A function of a histogram: every record falls into at most one cell.

    One record more, less or blanked out changes one count by 1. One record changed may move from one cell to
    another: two counts by 1 each.
    """

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of counts."""

    @abstractmethod
    def cells(self, y: Any, prediction: Any) -> np.ndarray:
        """The cell of each record, shape (n,); −1 for none."""

    @abstractmethod
    def cell_of_failure(self, y: Any) -> np.ndarray:
        """The cell of records whose prediction cannot be had, from their labels."""

    @abstractmethod
    def value(self, counts: Sequence[float]) -> float:
        """The metric, from counts ≥ 0."""

    def statistic(self, estimator: Any, X: Any, y: Any, neighboring: str) -> list[int]:
        check_relation(neighboring)
        predict = response_function(estimator, "predict")
        cells = contributions(lambda X, y: self.cells(as_array(y), predict(X)), X, y, [np.nan])[:, 0]
        if np.isnan(cells).any():
            failed = np.isnan(cells)
            worst = contributions(lambda X, y: self.cell_of_failure(as_array(y)), X, y, [-1.0])[:, 0]
            cells = np.where(failed, worst, cells)
        return self._histogram(cells)

    def _histogram(self, cells: np.ndarray) -> list[int]:
        counted = np.bincount(1 + cells.astype(np.int64), minlength=1 + self.n_cells)
        return [int(count) for count in counted[1:]]

    def sensitivity(self, neighboring: str) -> Sensitivity:
        check_relation(neighboring)
        return Sensitivity(2, 2, (1, 1)) if neighboring == "replace_one" else Sensitivity(1, 1)

    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: str) -> float:
        check_relation(neighboring)
        return self.value([float(max(count, 0)) for count in finite(noisy)])

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return self.value([float(count) for count in self._histogram(self.cells(as_array(y), estimator.predict(X)))])


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracyScorer(CountScorer):
    """Mean over the classes of the share of their records that is predicted right.

    Counts right and wrong predictions of each class. Records with other labels are not counted, and a class
    whose noisy counts are both 0 is left out, as scikit-learn leaves out a class without records.

    Parameters
    ----------
    classes : sequence
        The labels, named in advance: learning them from the records would reveal them.
    """

    classes: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(as_array(self.classes).tolist()))
        if not self.classes or len(set(self.classes)) < len(self.classes):
            raise ValueError(f"Expected classes without repetition, at least one, got classes={self.classes!r}.")

    @property
    def n_cells(self) -> int:
        return 2 * len(self.classes)

    def cells(self, y: Any, prediction: Any) -> np.ndarray:
        return self._cells(y, ~equal(y, prediction))

    def cell_of_failure(self, y: Any) -> np.ndarray:
        return self._cells(y, np.ones(len(y), dtype=bool))

    def _cells(self, y: Any, wrong: np.ndarray) -> np.ndarray:
        place = positions(y, self.classes)
        return np.where(place >= 0, 2 * place + wrong, -1)

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
        if self.kind not in RETRIEVAL:
            raise ValueError(f"Expected kind to be one of {list(RETRIEVAL)}, got kind={self.kind!r}.")

    @property
    def n_cells(self) -> int:
        return 3

    def cells(self, y: Any, prediction: Any) -> np.ndarray:
        return self._cells(self._positive(y), self._positive(prediction))

    def cell_of_failure(self, y: Any) -> np.ndarray:
        positive = self._positive(y)
        return self._cells(positive, ~positive)

    def _positive(self, labels: Any) -> np.ndarray:
        return positions(labels, [self.pos_label]) == 0

    def _cells(self, positive: np.ndarray, found: np.ndarray) -> np.ndarray:
        return np.select([positive & found, found, positive], [0, 1, 2], default=-1)

    def value(self, counts: Sequence[float]) -> float:
        part, whole = RETRIEVAL[self.kind](*counts)
        return part / whole if whole > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class R2Scorer(PrivateScorer):
    r"""R² = 1 − SSE/SST with clipped errors and targets, from noisy sums.

    With the middle m and half-width h of ``y_range``, t = (y − m)/h clipped to [−1, 1] and e = min((y − ŷ)²,
    clip²)/clip², every record contributes x_e, x_t, x_q: e, t and t² in units of 1/R (R = ``resolution``).
    Then

        SSE = clip²·Σe,   SST = h²·(Σt² − (Σt)²/n).

    Where the number of records n is public, x_e and x_q are taken from their middle; under add/remove a
    fourth sum, of R − x_q, gives n for nothing: it and x_q together move by R.

    Parameters
    ----------
    y_range : tuple of two floats
        Public bounds of the target; targets beyond are clipped.
    clip : float, optional
        Largest absolute error that counts; default half the width of ``y_range``, the worst error of
        predicting its middle.
    score_range : tuple of two floats
        The score is clipped to it; its lower end stands for an SST that is not positive after noise.
    resolution : int
        R ≥ 10.
    """

    y_range: tuple[float, float]
    clip: float | None = None
    score_range: tuple[float, float] = (-1.0, 1.0)
    resolution: int = 1000

    def __post_init__(self) -> None:
        for name in ("y_range", "score_range"):
            low, high = (float(end) for end in getattr(self, name))
            if not (isfinite(low) and isfinite(high - low) and low < high):
                raise ValueError(f"Expected {name} as finite (low, high) with low < high, got ({low!r}, {high!r}).")
            object.__setattr__(self, name, (low, high))
        if self.clip is not None and not 0 < self.clip < float("inf"):
            raise ValueError(f"Expected 0 < clip < inf, got clip={self.clip!r}.")
        object.__setattr__(self, "resolution", check_resolution(self.resolution, least=10))

    @property
    def half(self) -> float:
        """Half the width of ``y_range``."""
        return 0.5 * (self.y_range[1] - self.y_range[0])

    @property
    def largest_error(self) -> float:
        """The clipping bound of |y − ŷ|."""
        return self.half if self.clip is None else float(self.clip)

    def _rows(self, y: Any, prediction: Any) -> np.ndarray:
        """(e, t) of each record, not yet clipped to [0, 1] and [−1, 1]."""
        y, prediction = (np.asarray(one, dtype=float).reshape(len(one), -1)[:, 0] for one in (y, prediction))
        middle = self.y_range[0] + self.half
        return np.column_stack([((y - prediction) / self.largest_error) ** 2, (y - middle) / self.half])

    def statistic(self, estimator: Any, X: Any, y: Any, neighboring: str) -> list[int]:
        check_relation(neighboring)
        predict = response_function(estimator, "predict")
        rows = contributions(lambda X, y: self._rows(as_array(y), predict(X)), X, y, [1.0, 0.0])
        error = quantised(rows[:, 0], 0.0, 1.0, self.resolution)
        target = quantised(rows[:, 1], -1.0, 1.0, 2 * self.resolution) - self.resolution
        square = (2 * target**2 + self.resolution) // (2 * self.resolution)
        sums, n = [int(one.sum()) for one in (error, target, square)], len(rows)
        if neighboring == "add_remove":
            return [*sums, self.resolution * n - sums[2]]
        middle = (self.resolution // 2) * n
        return [sums[0] - middle, sums[1], sums[2] - middle]

    def sensitivity(self, neighboring: str) -> Sensitivity:
        """Proofs: docs/theory/scoring.md, "R²"."""
        check_relation(neighboring)
        whole = self.resolution
        half = whole - whole // 2
        if neighboring == "add_remove":
            return Sensitivity(3 * whole, 3 * whole**2, (whole, whole, whole))
        if neighboring == "zero_out":
            return Sensitivity(2 * half + whole, 2 * half**2 + whole**2, (half, whole, half))
        return Sensitivity(whole + (9 * whole) // 4 + 1, 5 * whole**2, (whole, 2 * whole, whole))

    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: str) -> float:
        check_relation(neighboring)
        error, target, square, *rest = finite(noisy)
        if neighboring == "add_remove":
            return self._ratio(error, target, square, (square + rest[0]) / self.resolution)
        middle = (self.resolution // 2) * known(n_scored)
        return self._ratio(error + middle, target, square + middle, known(n_scored))

    def _ratio(self, error: float, target: float, square: float, n: float) -> float:
        """1 − SSE/SST from sums in units of 1/R, clipped."""
        low, high = self.score_range
        total = square / self.resolution - (target / self.resolution) ** 2 / n if n > 0 else 0.0
        if total <= 0:
            return low
        share = (self.largest_error / self.half) ** 2 * max(error, 0) / self.resolution / total
        return float(min(max(1.0 - share, low), high))

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        rows = self._rows(as_array(y), estimator.predict(X))
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, [1.0, 0.0])
        error, target = np.minimum(rows[:, 0], 1.0), np.clip(rows[:, 1], -1.0, 1.0)
        scale = self.resolution
        return self._ratio(scale * error.sum(), scale * target.sum(), scale * (target**2).sum(), len(rows))

    def plain(self, estimator: Any, X: Any, y: Any) -> float:
        """R² as scikit-learn has it: nothing is clipped, neither errors nor targets nor the score."""
        return float(r2_score(y, estimator.predict(X)))
