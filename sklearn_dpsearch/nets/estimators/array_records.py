"""Arrays of numbers as records of the nets for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data
from torch import nn

from ...data.columns import array_of, is_frame
from ...data.labels import targets_in
from ...data.rows import ChosenRows
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
        chosen = isinstance(X, ChosenRows) and X.ndim == 2 and X.dtype.kind in "fiub" and len(X) > 0
        found = X if chosen else _table(X)
        validate_data(self, X.data if chosen else _named(X, found), y, reset=fresh, skip_check_array=True)
        y = targets_in(y, isinstance(self, RegressorMixin))
        if chosen:
            scaling.check_finite(found)
        else:
            found = check_array(found, input_name="X", estimator=self)
        check_consistent_length(found, y)
        return found, y

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
        found = _table(X)
        validate_data(self, _named(X, found), reset=False, skip_check_array=True)
        X = check_array(found, input_name="X", estimator=self)
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


def _named(X: Any, found: Any) -> Any:
    """Container of the names of the columns, if there are any, and of their number."""
    return X if is_frame(X) else found


def _table(X: Any) -> Any:
    """Array of numbers, or of a kind that scikit-learn refuses without a word about the entries.

    Raises
    ------
    ValueError, TypeError
        scikit-learn's errors, which would quote records, without them.
    """
    if issparse(X):
        return X
    found = array_of(X)
    if found.dtype.kind == "c":
        raise ValueError("Complex data not supported: X has a complex dtype. Give real features.")
    if found.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {('scalar', '1D')[found.ndim]} array instead: X has shape {found.shape}. Reshape "
            "your data: X.reshape(-1, 1) if it is one feature of many records, X.reshape(1, -1) if it is one record."
        )
    return found
