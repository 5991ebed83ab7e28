"""Data frames as records of the nets for tables, encoded by a public schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length
from torch import nn

from ...data.rows import ChosenRows
from ...preprocessing import Schema, TableEncoder
from ...preprocessing.schema import EXAMPLE_OF_TARGET
from ..records import HeldRecords
from . import hidden_layers, layers, scaling
from .settings import settings_of


class FrameRecords:
    """Records as data frames with the columns of a public schema, for a linear part and a perceptron.

    A wide part acts on all inputs, a deep one on plain ones. Outputs of the encoder are permuted: those that are no
    bins come first.

    Parameters
    ----------
    net : TableNet
        With ``schema``, ``target``, ``bins`` and ``indicators``.
    """

    assumptions = ("the schema was not taken from the records, and the types of its columns are public.",)

    def __init__(self, net: Any) -> None:
        self.net, self.of_classes = net, not isinstance(net, RegressorMixin)
        schema = Schema(net.schema)
        if net.target is not None:
            schema.check_target(net.target, EXAMPLE_OF_TARGET[not self.of_classes])
            schema = schema.without(net.target)
        self.encoder = TableEncoder(schema, bins=net.bins, indicators=net.indicators)
        #: Places of the encoder's outputs as inputs of the module: bins come last.
        self.order = np.argsort(self.encoder.are_bins, kind="stable")
        #: Number of inputs of the part with hidden layers.
        self.n_plain = int(np.count_nonzero(~self.encoder.are_bins))

    def checked(self, X: Any, y: NDArray[Any], fresh: bool) -> Any:
        """Records whose columns fit the schema."""
        X = np.asarray(X) if isinstance(X, ChosenRows) else X
        encoder = self.encoder.fit(X)
        check_consistent_length(X, y)
        if fresh:
            self.net.n_features_in_ = len(encoder.schema)
            vars(self.net).pop("feature_names_in_", None)
            if hasattr(encoder, "feature_names_in_"):
                self.net.feature_names_in_ = np.array(list(encoder.schema), dtype=object)
        return X

    def given(self, X: Any, targets: torch.Tensor) -> HeldRecords:
        """Inputs and targets for training, from checked records."""
        return HeldRecords(inputs=torch.cat(list(self.blocks(X))), targets=targets)

    def blocks(self, X: Any) -> Iterator[torch.Tensor]:
        """Inputs of the module for unchecked records, in blocks."""
        for block in self.encoder.blocks(X):
            yield torch.from_numpy(scaling.to_single(block[:, self.order]))

    # --- the module, and public facts about its gradients -----------------------------------------------------------

    def hidden_by_rule(self, n: float) -> tuple[int, ...]:
        """Widths of hidden layers for ``n`` records, a public number, where they are not given."""
        settings = settings_of(self.net, n)
        mu = settings.sample_rate * math.sqrt(settings.steps) / settings.noise  # that of Gaussian noise, to first order
        return hidden_layers.beside_bins(n, n * mu, of_classes=self.of_classes)

    def module(
        self, hidden: Sequence[int], n_outputs: int, activation: Callable[[], nn.Module], generator: torch.Generator
    ) -> nn.Module:
        """Module from inputs to outputs, with these hidden layers and its initial parameters."""
        wide, deep = [len(self.order), n_outputs], [self.n_plain, *hidden, n_outputs]
        return layers.wide_and_deep(wide, deep, activation, generator, from_linear=self.of_classes)

    def gradient_of_residual(self, hidden: Sequence[int], n_outputs: int) -> float:
        """Norm of a long record's gradient for a residual of norm 1, for the clipping norm."""
        plain = sum(column.mean_square for column in Schema(self.encoder.schema).columns.values())
        deep = [self.n_plain, *hidden, n_outputs]
        of_hidden = layers.squared_gradient_at_start(deep, plain, from_linear=self.of_classes)
        return math.sqrt(self.encoder.max_norm**2 + 1.0 + of_hidden)

    def bound_on_norm(self) -> float:
        """Bound on the norm of a record of as many dense features, for the step size."""
        dense: float = self.net._step_rule.dense
        return dense * self.encoder.max_norm
