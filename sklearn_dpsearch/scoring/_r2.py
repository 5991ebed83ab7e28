"""R² from noisy sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from ..privacy._checks import Array, Neighboring, as_numbers, number_in, require
from ._base import PrivateScorer, check_relation, check_resolution
from ._contributions import contributions, finite, numbers, quantised, response_function
from ._noise import Sensitivity


@dataclass(frozen=True, kw_only=True)
class R2Scorer(PrivateScorer):
    r"""Scorer of R² = 1 − SSE/SST, from noisy sums.

    Errors and targets are clipped.

    With the middle m and half-width h of ``y_range``, t = (y − m)/h clipped to [−1, 1] and e =
    min((y − ŷ)², clip²)/clip², every record contributes x_e, x_t, x_q: e, t and t² in units of 1/R
    (R = ``resolution``). Then

        SSE = clip²·Σe,   SST = h²·(Σt² − (Σt)²/n).

    The number of records n is public, and x_e and x_q are measured from their middle.

    Parameters
    ----------
    y_range : tuple of two floats
        Public bounds of the target; targets beyond are clipped.
    clip : float, optional
        Largest absolute error that counts; default half the width of ``y_range``, the worst error
        of predicting its middle.
    score_range : tuple of two floats
        The score is clipped to it. Where SST is not positive after noise, the score is the lower
        end.
    resolution : int
        R ≥ 10.
    """

    y_range: tuple[float, float]
    clip: float | None = None
    score_range: tuple[float, float] = (-1.0, 1.0)
    resolution: int = 1000

    def __post_init__(self) -> None:
        for name in ("y_range", "score_range"):
            ends = as_numbers(name, getattr(self, name))
            require(ends.shape == (2,), f"{name} as (low, high)", **{name: getattr(self, name)})
            low, high = ends.tolist()
            usable = isfinite(low) and isfinite(high - low) and low < high
            require(usable, f"{name} as finite (low, high) with low < high", **{name: (low, high)})
            object.__setattr__(self, name, (low, high))
        if self.clip is not None:
            number_in("(0, inf)", clip=self.clip)
        object.__setattr__(self, "resolution", check_resolution(self.resolution, minimum=10))

    @property
    def half(self) -> float:
        """Half the width of ``y_range``."""
        return 0.5 * (self.y_range[1] - self.y_range[0])

    @property
    def largest_error(self) -> float:
        """The clipping bound of the absolute error."""
        return self.half if self.clip is None else float(self.clip)

    def _rows(self, y: Any, prediction: Any) -> Array:
        """Clipped error and target of each record, as shares.

        They are (e, t), not yet clipped to [0, 1] and [−1, 1].
        """
        y, middle = numbers(y), self.y_range[0] + self.half
        error = ((y - numbers(prediction)) / self.largest_error) ** 2
        return np.column_stack([error, (y - middle) / self.half])

    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        rows = contributions(response_function(estimator, "predict"), self._rows, X, y, [1.0, 0.0])
        error = quantised(rows[:, 0], 0.0, 1.0, self.resolution)
        target = quantised(rows[:, 1], -1.0, 1.0, 2 * self.resolution) - self.resolution
        square = (2 * target**2 + self.resolution) // (2 * self.resolution)
        sums, n = [int(levels.sum()) for levels in (error, target, square)], len(rows)
        middle = (self.resolution // 2) * n
        return [sums[0] - middle, sums[1], sums[2] - middle]

    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        """Sensitivity of the sums behind R² to one record.

        Proofs: docs/theory/score_noise.md, "R²".
        """
        check_relation(neighboring)
        unit = self.resolution
        half = unit - unit // 2
        if neighboring == "zero_out":
            return Sensitivity(2 * half + unit, 2 * half**2 + unit**2, (half, unit, half))
        return Sensitivity(unit + (9 * unit) // 4 + 1, 5 * unit**2, (unit, 2 * unit, unit))

    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        error, target, square = finite(noisy)
        middle = (self.resolution // 2) * n_scored
        return self._ratio(error + middle, target, square + middle, n_scored)

    def _ratio(self, error: float, target: float, square: float, n: float) -> float:
        """Clipped R² = 1 − SSE/SST from sums in units of 1/R."""
        low, high = self.score_range
        total = square / self.resolution - (target / self.resolution) ** 2 / n if n > 0 else 0.0
        if total <= 0:
            return low
        share = (self.largest_error / self.half) ** 2 * max(error, 0) / self.resolution / total
        return float(min(max(1.0 - share, low), high))

    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        rows = self._rows(y, response_function(estimator, "predict")(X))
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, [1.0, 0.0])
        error, target = np.minimum(rows[:, 0], 1.0), np.clip(rows[:, 1], -1.0, 1.0)
        sums = (self.resolution * float(values.sum()) for values in (error, target, target**2))
        sum_of_errors, sum_of_targets, sum_of_squares = sums
        return self._ratio(sum_of_errors, sum_of_targets, sum_of_squares, len(rows))

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² as scikit-learn has it: errors, targets and the score are not clipped."""
        prediction = response_function(estimator, "predict")(X)
        return float(r2_score(y, prediction, sample_weight=sample_weight))
