"""Arrays of numbers as records of the nets for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_consistent_length, validate_data
from torch import nn

from ...data.columns import array_of, is_frame
from ...data.rows import ChosenRows
from ..records import CHECKED, HeldRecords, MappedRecords, stays_in_file
from . import hidden_layers, layers, scaling, step_size
from .scaling import Bounds


class ArrayRecords:
    """Records as arrays of numbers, scaled to public bounds if there are any, for a perceptron.

    Parameters
    ----------
    net : TableNet
        With ``bounds_X``.
    """

    #: Assumptions about the records, without the name of the net.
    assumptions: tuple[str, ...] = ()

    def __init__(self, net: Any) -> None:
        self.net = net
        self.bounds = None if net.bounds_X is None else Bounds.of_features("bounds_X", net.bounds_X)

    def checked(self, X: Any, y: NDArray[Any], fresh: bool) -> Any:
        """Records checked by scikit-learn: an array, or chosen rows without a look at others."""
        if stays_in_file(X, self.net.device) and not isinstance(X, ChosenRows):
            X = ChosenRows(X)
        chosen = isinstance(X, ChosenRows) and X.ndim == 2 and X.dtype.kind in "fiub" and len(X) > 0
        found = X if chosen else _table(X)
        validate_data(self.net, X.data if chosen else _named(X, found), reset=fresh, skip_check_array=True)
        if chosen:
            scaling.check_finite(found)
        else:
            found = check_array(found, input_name="X", estimator=self.net)
        check_consistent_length(found, y)
        self._check_bounds(found)
        return found

    def given(self, X: Any, targets: torch.Tensor) -> HeldRecords | MappedRecords:
        """Inputs and targets for training, from checked records."""
        if not stays_in_file(X, self.net.device):
            return HeldRecords(inputs=scaling.single_rows(X, self.bounds), targets=targets)
        return MappedRecords(
            rows=X,
            convert=partial(scaling.single_block, bounds=self.bounds),
            how=None if self.bounds is None else self.bounds.key,
            inputs=torch.zeros((1, X.shape[1])),
            targets=targets,
        )

    def blocks(self, X: Any) -> Iterator[torch.Tensor]:
        """Inputs of the module for unchecked records, in blocks."""
        found = _table(X)
        validate_data(self.net, _named(X, found), reset=False, skip_check_array=True)
        X = check_array(found, input_name="X", estimator=self.net)
        self._check_bounds(X)
        for _, block in ChosenRows(X).blocks(CHECKED):
            yield scaling.single_block(block, self.bounds)

    def _check_bounds(self, X: NDArray[Any] | ChosenRows) -> None:
        bounds = self.bounds
        if bounds is not None and bounds.lower.ndim and bounds.lower.shape != X.shape[1:]:
            raise ValueError(
                f"Found bounds_X for {len(bounds.lower)} features and X with {X.shape[1]}. Give one pair of "
                "numbers, or one number per feature."
            )

    # --- the module, and public facts about its gradients -----------------------------------------------------------

    def hidden_by_rule(self, n: float) -> tuple[int, ...]:
        """Widths of hidden layers for ``n`` records, a public number, where they are not given."""
        return hidden_layers.by_rule(n)

    def module(
        self, hidden: Sequence[int], n_outputs: int, activation: Callable[[], nn.Module], generator: torch.Generator
    ) -> nn.Module:
        """Module from inputs to outputs, with these hidden layers and its initial parameters."""
        return layers.sequential([self.net.n_features_in_, *hidden, n_outputs], activation, generator)

    def gradient_of_residual(self, hidden: Sequence[int], n_outputs: int) -> float:
        """Norm of a long record's gradient for a residual of norm 1, for the clipping norm."""
        return math.hypot(step_size.likely_norm(self.net.n_features_in_), 1.0)

    def bound_on_norm(self) -> float:
        """Bound on the norm of a record of as many dense features, for the step size."""
        return step_size.bound_on_norm(self.net.n_features_in_)


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
