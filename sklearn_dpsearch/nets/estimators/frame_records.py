"""Data frames as records of the nets for tables, encoded by a public schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import nn

from ...data.labels import targets_in
from ...data.rows import ChosenRows
from ...preprocessing import ColumnShape, Schema, TableEncoder
from ...preprocessing.schema import EXAMPLE_OF_TARGET, MOST_SHOWN
from ..task import with_room
from . import hidden_layers, layers, scaling, step_size
from .scaling import Array
from .settings import SettingArguments, settings_of
from .training_records import Given


class FrameRecords:
    """Records as data frames with the columns of a public schema, for ``TableNet``.

    A wide part acts on all inputs, a deep one on plain ones. Outputs of the encoder are permuted: those that are no
    bins come first.
    """

    _parameter_constraints: dict[str, Any] = {
        "target": [None, str],
        **{name: TableEncoder._parameter_constraints[name] for name in ("schema", "bins", "indicators")},
    }
    schema: Schema | Mapping[str, Any]
    target: str | None
    bins: int | str | None
    indicators: bool
    feature_names_in_: NDArray[np.object_]
    # Of the rest of the net:
    module_: nn.Module
    weight_noise_: float | None
    hidden_layer_sizes_: tuple[int, ...]
    _activation: Callable[[], nn.Module]
    _n_outputs: Callable[[], int]
    _contrasts: Callable[[], Array]

    @property
    def public_facts(self) -> dict[str, Any]:
        """Facts about the target that the schema states, by the names of parameters: ``classes`` or ``bounds_y``."""
        if self.target is None:
            return {}
        schema = Schema(self.schema)
        schema.check_target(self.target, EXAMPLE_OF_TARGET[isinstance(self, RegressorMixin)])
        if isinstance(self, RegressorMixin):
            return {"bounds_y": schema.bounds(self.target)}
        return {"classes": schema.classes(self.target)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def columns_read(self) -> list[str]:
        """One line for each column, as the schema is understood: ``age: number from 18 to 90, 17 bins``."""
        target = [] if self.target is None else Schema(self.schema).only(self.target).described({}, MOST_SHOWN)
        return [*self._encoder().columns_read(), *(f"{line} (the target)" for line in target)]

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run; they hold nothing about real records.

        Parameters
        ----------
        n_samples : int
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
            Of pandas; without it an array of objects.
        """
        return self._encoder().made_up(n_samples, random_state)

    def shapes(self, columns: Sequence[str] | None = None) -> dict[str, ColumnShape]:
        """Effects of the values of each column in the linear part, which is the whole model without hidden layers.

        They follow from the schema and the released weights: no record is needed, and they cost no privacy.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the schema; None: all.

        Returns
        -------
        dict of str to ColumnShape
            By column, with a curve for the log odds of the second of two classes, for each of more classes (the log of
            its probability, less the mean over classes), or for a number in its unit. The months, weekdays and hours of
            a date have shapes of their own: ``since_month`` … The noise is that of ``weight_noise_``.
        """
        check_is_fitted(self, "module_")
        layer, contrasts = layers.linear_part(self.module_), self._contrasts()
        weights = np.empty(layer.weight.shape)
        weights[:, self._order()] = layer.weight.detach().cpu().numpy()
        noise = None
        if self.weight_noise_ is not None:
            noise = self.weight_noise_ * np.linalg.norm(contrasts, axis=1, keepdims=True)
        return self._encoder().shapes(contrasts @ weights, noise, columns)

    def _assumed_of_records(self) -> tuple[str, ...]:
        name = type(self).__name__
        return (f"{name}: the schema was not taken from the records, and the types of its columns are public.",)

    def _check_records(self) -> None:
        """Raise for a wrong schema, and for a target that is no column of it, or is stated twice."""
        self._encoder()
        for name, stated in self.public_facts.items():
            given = getattr(self, name)
            if given is not None:
                raise ValueError(
                    f"Found {name}={given!r} and target={self.target!r}, for which the schema states {stated!r}. Leave "
                    "one of them out."
                )

    def _encoder(self) -> TableEncoder:
        schema = Schema(self.schema)
        if self.target is not None:
            schema.check_target(self.target, EXAMPLE_OF_TARGET[isinstance(self, RegressorMixin)])
            schema = schema.without(self.target)
        return TableEncoder(schema, bins=self.bins, indicators=self.indicators)

    def _order(self) -> NDArray[np.intp]:
        """Places of the encoder's outputs as inputs of the module: bins come last."""
        return np.argsort(self._encoder().are_bins, kind="stable")

    # --- records ------------------------------------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any, fresh: bool) -> tuple[Any, NDArray[Any]]:
        if y is None:
            raise ValueError(f"{type(self).__name__} needs y, the target of each record, and got None.")
        X = np.asarray(X) if isinstance(X, ChosenRows) else X
        encoder = self._encoder().fit(X)
        y = targets_in(y, numeric=isinstance(self, RegressorMixin))
        check_consistent_length(X, y)
        if fresh:
            self.n_features_in_ = len(encoder.schema)
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(encoder, "feature_names_in_"):
                self.feature_names_in_ = np.array(list(encoder.schema), dtype=object)
        return X, y

    def _inputs(self, X: Any, targets: torch.Tensor) -> Given:
        encoder, order = self._encoder(), self._order()
        rows, start = with_room((len(targets), len(order)), torch.float32), 0
        for block in encoder.blocks(X):
            rows[start : start + len(block)] = torch.from_numpy(scaling.to_single(block[:, order]))
            start += len(block)
        return rows, targets

    def _blocks(self, X: Any) -> Iterator[torch.Tensor]:
        order = self._order()
        for block in self._encoder().blocks(X):
            yield torch.from_numpy(scaling.to_single(block[:, order]))

    # --- the module ---------------------------------------------------------------------------------------------------

    def _declared(self, name: str) -> Any:
        return self.public_facts.get(name, getattr(self, name))

    def _n_inputs(self) -> int:
        return len(self._encoder().are_bins)

    def _n_plain(self) -> int:
        """Number of inputs of the part with hidden layers."""
        return int(np.count_nonzero(~self._encoder().are_bins))

    def _hidden_by_rule(self, n: float) -> tuple[int, ...]:
        settings = settings_of(cast(SettingArguments, self), n)
        mu = settings.sample_rate * math.sqrt(settings.steps) / settings.noise  # that of Gaussian noise, to first order
        return hidden_layers.beside_bins(n, n * mu, of_classes=is_classifier(self))

    def _gradient_of_residual(self) -> float:
        encoder = self._encoder()
        plain = sum(column.mean_square for column in Schema(encoder.schema).columns.values())
        deep = [self._n_plain(), *self.hidden_layer_sizes_, self._n_outputs()]
        hidden = layers.squared_gradient_at_start(deep, plain, from_linear=is_classifier(self))
        return math.sqrt(encoder.max_norm**2 + 1.0 + hidden)

    def _bound_on_norm(self) -> float:
        times = step_size.DENSE_FOR_CLASSES if is_classifier(self) else step_size.DENSE_FOR_NUMBERS
        return times * self._encoder().max_norm

    def _joined(self, ends: Sequence[int], hidden: Sequence[int], generator: torch.Generator) -> nn.Module:
        deep = [self._n_plain(), *hidden, ends[1]]
        return layers.wide_and_deep(ends, deep, self._activation, generator, from_linear=is_classifier(self))
