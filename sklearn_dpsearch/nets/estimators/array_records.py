"""Arrays of numbers as records of the nets for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import nn

from ..._lazy_rows import ChosenRows
from ...boosting.targets import targets_in
from ..memory_mapped import CHECKED, MappedRecords, stays_in_file
from . import hidden_layers, layers, scaling, step_size
from .scaling import Array, Bounds
from .training_records import Given


class ArrayRecords:
    """Records as arrays of numbers, scaled to public bounds if there are any, for ``TableNet``."""

    _parameter_constraints: dict[str, Any] = {"bounds_X": [None, tuple, list]}
    bounds_X: scaling.Given | None
    n_features_in_: int
    # Of the rest of the net:
    device: Any
    module_: nn.Module
    weight_noise_: float | None
    _activation: Callable[[], nn.Module]

    def _check_records(self) -> None:
        self._scale()

    def _assumed_of_records(self) -> tuple[str, ...]:
        return ()

    def _scale(self) -> Bounds | None:
        return None if self.bounds_X is None else Bounds.of_features("bounds_X", self.bounds_X)

    def _checked(self, X: Any, y: Any, fresh: bool) -> tuple[Any, NDArray[Any]]:
        """Records and targets checked by scikit-learn: an array, or chosen rows without a look at others."""
        if stays_in_file(X, self.device) and not isinstance(X, ChosenRows):
            X = ChosenRows(X)
        numeric = isinstance(self, RegressorMixin)
        y = targets_in(y, numeric) if numeric and y is not None else y  # scikit-learn's error would quote a record
        if not isinstance(X, ChosenRows) or X.ndim != 2 or X.dtype.kind not in "fiub" or not len(X):
            checked: tuple[Any, NDArray[Any]] = validate_data(
                self, X, y, reset=fresh, dtype="numeric", y_numeric=numeric, multi_output=False
            )
            return checked
        validate_data(self, X.data, reset=fresh, skip_check_array=True)
        y = targets_in(y, numeric)
        check_consistent_length(X, y)
        scaling.check_finite(X)
        return X, y

    def _inputs(self, X: Any, targets: torch.Tensor) -> Given:
        bounds = self._bounds_of(X)
        if not stays_in_file(X, self.device):
            return scaling.single_rows(X, bounds), targets
        return MappedRecords(
            rows=X,
            convert=partial(scaling.single_block, bounds=bounds),
            how=None if bounds is None else bounds.key,
            inputs=torch.zeros((1, X.shape[1])),
            targets=targets,
        )

    def _blocks(self, X: Any) -> Iterator[torch.Tensor]:
        X = validate_data(self, X, reset=False, dtype="numeric")
        bounds = self._bounds_of(X)
        for _, block in ChosenRows(X).blocks(CHECKED):
            yield scaling.single_block(block, bounds)

    def _joined(self, ends: Sequence[int], hidden: Sequence[int], generator: torch.Generator) -> nn.Module:
        return layers.sequential([ends[0], *hidden, ends[1]], self._activation, generator)

    def _declared(self, name: str) -> Any:
        return getattr(self, name)

    def _n_inputs(self) -> int:
        return int(self.n_features_in_)

    def _hidden_by_rule(self, n: float) -> tuple[int, ...]:
        return hidden_layers.by_rule(n)

    def _gradient_of_residual(self) -> float:
        return math.hypot(step_size.likely_norm(self.n_features_in_), 1.0)

    def _bound_on_norm(self) -> float:
        return step_size.bound_on_norm(self.n_features_in_)

    def _bounds_of(self, X: NDArray[Any] | ChosenRows) -> Bounds | None:
        bounds = self._scale()
        if bounds is not None and bounds.lower.ndim and bounds.lower.shape != X.shape[1:]:
            raise ValueError(
                f"Found bounds_X for {len(bounds.lower)} features and X with {X.shape[1]}. Give one pair of "
                "numbers, or one number per feature."
            )
        return bounds

    def _map_noise(self) -> Array | None:
        """Standard deviation of the noise in the weights of ``_map``, shape (n_outputs, n_features), or None."""
        weights, bounds = self._map()[0], self._scale()
        if self.weight_noise_ is None:
            return None
        return np.broadcast_to(self.weight_noise_ / (1.0 if bounds is None else bounds.half), weights.shape)

    def _map(self) -> tuple[Array, Array]:
        """Weights and constants of the last layer, for features in their own units."""
        check_is_fitted(self, "module_")
        weights, constants = (
            found.detach().cpu().numpy().astype(np.float64)
            for found in (self.module_[-1].weight, self.module_[-1].bias)
        )
        bounds = self._scale()
        if bounds is not None:
            weights = weights / bounds.half
            constants = constants - (weights * bounds.zero).sum(axis=1)
        return weights, constants
