"""Records of the nets for tables: arrays of numbers, or data frames that a schema encodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, validate_data
from torch import nn

from ...data._columns import array_of, is_frame, without_records
from ...data._lists import doubles
from ...data._records import check_same_number, number_of_records
from ...data._rows import ChosenRows, rows_in_file
from ...preprocessing import Schema, TableEncoder
from ...preprocessing._schema import PUBLIC_FACTS
from .._estimators import layers, step_size
from .._records import CHECK_BLOCK, HeldRecords, MappedRecords, converted_rows, least_bytes_in_file
from .settings import settings_of


class ArrayRecords:
    """Records as arrays of numbers, scaled to public bounds, for a perceptron.

    Parameters
    ----------
    net : TableNet
        With ``bounds_X``.
    """

    #: Assumptions about the records, without the name of the net.
    assumptions: tuple[str, ...] = ()

    def __init__(self, net: Any) -> None:
        self.net = net
        #: Facts about the target that a schema states, by the names of parameters.
        self.stated: dict[str, Any] = {}
        self.bounds = None if net.bounds_X is None else Bounds.of_features("bounds_X", net.bounds_X)

    def checked(self, X: Any, y: NDArray[Any], fresh: bool) -> Any:
        """Records as arrays that scikit-learn has checked.

        Chosen rows are checked without a look at others.
        """
        in_file = rows_in_file(X, least_bytes_in_file(self.net.device))
        rows = X if in_file is None else in_file
        is_numeric = isinstance(rows, ChosenRows) and rows.dtype.kind in "fiub"
        if is_numeric and rows.ndim == 2 and len(rows) > 0:
            validate_data(self.net, rows.data, reset=fresh, skip_check_array=True)
            self._check_bounds(rows)
        else:
            rows = self._numbers(rows, fresh, finite=False)
        check_same_number(len(rows), len(y))
        return rows

    def training_data(self, X: Any, targets: torch.Tensor) -> HeldRecords | MappedRecords:
        """Inputs and targets for training, from checked records."""
        rows = rows_in_file(X, least_bytes_in_file(self.net.device))
        if rows is None:
            return HeldRecords(inputs=scaled_rows(X, self.bounds), targets=targets)
        return MappedRecords(
            rows=rows,
            convert=partial(scaled_block, bounds=self.bounds),
            how=None if self.bounds is None else self.bounds.key,
            inputs=torch.zeros((1, X.shape[1])),
            targets=targets,
        )

    def blocks(self, X: Any) -> Iterator[torch.Tensor]:
        """Inputs of the module for unchecked records, in blocks."""
        for _, block in ChosenRows(self._numbers(X, fresh=False, finite=True)).blocks(CHECK_BLOCK):
            yield scaled_block(block, self.bounds)

    def _numbers(self, X: Any, fresh: bool, finite: bool) -> NDArray[Any]:
        """Array of numbers, all finite if ``finite``, checked by scikit-learn."""
        numbers = _numeric_table(X, self._row_shape(fresh))
        header = without_records(X) if is_frame(X) else numbers
        validate_data(self.net, header, reset=fresh, skip_check_array=True)
        options = {"estimator": self.net, "ensure_all_finite": finite}
        checked: NDArray[Any] = check_array(numbers, input_name="X", **options)
        self._check_bounds(checked)
        return checked

    def _row_shape(self, fresh: bool) -> tuple[int, ...] | None:
        """Declared shape of a row of a list: of the bounds, or of the records of an earlier fit."""
        if self.bounds is not None and self.bounds.lower.ndim:
            return self.bounds.lower.shape
        return None if fresh else (self.net.n_features_in_,)

    def _check_bounds(self, X: NDArray[Any] | ChosenRows) -> None:
        bounds = self.bounds
        if bounds is not None and bounds.lower.ndim and bounds.lower.shape != X.shape[1:]:
            numbers = f"{len(bounds.lower)} features and X with {X.shape[1]}"
            remedy = "Give one pair of numbers, or one number per feature."
            raise ValueError(f"Found bounds_X for {numbers}. {remedy}")

    # --- the module, and public facts about its gradients -----------------------------------------

    def hidden_layers_by_rule(self, n: float) -> tuple[int, ...]:
        """Widths of hidden layers for ``n`` records, a public number, where they are not given."""
        return layers.hidden_layers_by_rule(n)

    def module(
        self, widths: Sequence[int], activation: layers.Activation, generator: torch.Generator
    ) -> nn.Module:
        """Module from inputs to outputs, with layers of these widths and its initial parameters."""
        return layers.perceptron([self.net.n_features_in_, *widths], activation, generator)

    def gradient_norm(self, widths: Sequence[int]) -> float:
        """Norm of a long record's gradient for a residual of norm 1, for the clipping norm.

        The likely norm of a record lies between 1, one feature alone, and the bound, all features
        at their ends: the geometric mean.
        """
        return math.hypot(math.sqrt(self.bound_on_norm()), 1.0)

    def bound_on_norm(self) -> float:
        """Bound on the norm of a record of as many dense features, for the step size."""
        return step_size.largest_record_norm(self.net.n_features_in_)


class FrameRecords:
    """Records as data frames whose columns a public schema encodes.

    They are for a linear part and a perceptron.

    A wide part acts on all inputs, a deep one on plain ones. Outputs of the encoder are permuted:
    those that are no bins come first.

    Parameters
    ----------
    net : TableNet
        With ``schema``, ``target``, ``bins`` and ``indicators``.
    """

    assumptions = (PUBLIC_FACTS,)

    def __init__(self, net: Any) -> None:
        self.net, self.of_classes = net, not isinstance(net, RegressorMixin)
        self.table = Schema.of(net.schema)
        #: Features, and facts about the target that the schema states, by the names of parameters.
        self.stated = self.table.facts_of(net.target, numeric=not self.of_classes)
        self.schema = self.table if net.target is None else self.table.without(net.target)
        self.encoder = TableEncoder(self.schema, bins=net.bins, indicators=net.indicators)
        are_bins = self.encoder.are_bins
        #: Places of the encoder's outputs as inputs of the module: bins come last.
        self.order = np.argsort(are_bins, kind="stable")
        #: Number of inputs of the part with hidden layers.
        self.n_plain = int(np.count_nonzero(~are_bins))

    def checked(self, X: Any, y: NDArray[Any], fresh: bool) -> Any:
        """Records as data frames whose columns fit the schema."""
        encoder = self.encoder.fit(X)
        check_same_number(number_of_records(X), len(y))
        if fresh:
            self.net.n_features_in_ = len(self.schema)
            vars(self.net).pop("feature_names_in_", None)
            if hasattr(encoder, "feature_names_in_"):
                self.net.feature_names_in_ = np.array(list(self.schema), dtype=object)
        return X

    def training_data(self, X: Any, targets: torch.Tensor) -> HeldRecords:
        """Inputs and targets for training, from checked records."""
        return HeldRecords(inputs=torch.cat(list(self.blocks(X))), targets=targets)

    def blocks(self, X: Any) -> Iterator[torch.Tensor]:
        """Inputs of the module for unchecked records, in blocks."""
        for block in self.encoder.blocks(X):
            yield torch.from_numpy(to_single_precision(block[:, self.order]))

    # --- the module, and public facts about its gradients -----------------------------------------

    def hidden_layers_by_rule(self, n: float) -> tuple[int, ...]:
        """Widths of hidden layers for ``n`` records, a public number, where they are not given."""
        settings = settings_of(self.net, n)
        # that of Gaussian noise, to first order
        mu = settings.sample_rate * math.sqrt(settings.steps) / settings.noise
        return layers.hidden_layers_beside_bins(n, n * mu, of_classes=self.of_classes)

    def module(
        self, widths: Sequence[int], activation: layers.Activation, generator: torch.Generator
    ) -> nn.Module:
        """Module from inputs to outputs, with layers of these widths and its initial parameters."""
        wide, deep = [len(self.order), widths[-1]], [self.n_plain, *widths]
        return layers.wide_and_deep(wide, deep, activation, generator, from_linear=self.of_classes)

    def gradient_norm(self, widths: Sequence[int]) -> float:
        """Norm of a long record's gradient for a residual of norm 1, for the clipping norm."""
        plain = sum(column.mean_square for column in self.schema.columns.values())
        deep = [self.n_plain, *widths]
        of_hidden = layers.squared_gradient_of_perceptron(deep, plain, from_linear=self.of_classes)
        return math.sqrt(self.encoder.max_norm**2 + 1.0 + of_hidden)

    def bound_on_norm(self) -> float:
        """Bound on the norm of a record of as many dense features, for the step size."""
        return float(self.net._step_rule.dense) * self.encoder.max_norm


def _numeric_table(X: Any, row_shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Array that scikit-learn accepts, or refuses without quoting its entries.

    Raises
    ------
    ValueError, TypeError
        scikit-learn's errors, which would quote records, without them.
    """
    numbers = array_of(X, row_shape=row_shape)
    if numbers.dtype.kind == "c":
        raise ValueError("Complex data not supported: X has a complex dtype. Give real features.")
    if numbers.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {('scalar', '1D')[numbers.ndim]} array instead: X has shape "
            f"{numbers.shape}. Reshape your data: X.reshape(-1, 1) if it is one feature of many "
            "records, X.reshape(1, -1) if it is one record."
        )
    return numbers


# --- public bounds --------------------------------------------------------------------------------


Array: TypeAlias = NDArray[np.float64]
#: Bounds in the user's form: (lower, upper), two numbers or two arrays with one number per feature.
Limits: TypeAlias = tuple[ArrayLike, ArrayLike]

#: Share of the way from lower to upper that is mapped to 0 for amounts: on MNIST and digits better
#: than 0 or 0.5.
AMOUNT_ORIGIN = 0.25
#: Records scaled at once.
BLOCK = 128


@dataclass(frozen=True)
class Bounds:
    """Finite public bounds by which features or targets are scaled.

    Lower < upper: two numbers for all features, or two arrays of shape (n_features,).

    Parameters
    ----------
    lower, upper : arrays
    origin : float
        Share of the way from lower to upper that is mapped to 0.
    """

    lower: Array
    upper: Array
    origin: float = 0.5

    @classmethod
    def of_features(cls, name: str, stated: Limits) -> Bounds:
        """Bounds of features, with amounts mapped near to 0.

        Two numbers >= 0 for all features suggest amounts of one kind (pixels, counts), most of them
        small. With 0 at the middle of the bounds, most values would be far from 0, and all records
        long and alike.
        """
        bounds = cls.of(name, stated)
        amounts = bounds.lower.ndim == 0 and bool(bounds.lower >= 0)
        return cls(bounds.lower, bounds.upper, AMOUNT_ORIGIN if amounts else 0.5)

    @classmethod
    def of(cls, name: str, stated: Limits) -> Bounds:
        """Bounds stated by an argument of this name.

        Raises
        ------
        ValueError
            If the argument states no valid bounds.
        """
        try:
            lower, upper = (np.asarray(bound, dtype=float) for bound in stated)
        except (TypeError, ValueError):
            needed = "(lower, upper) is needed, numbers or arrays."
            raise ValueError(f"Found {name}={stated!r}; {needed}") from None
        finite = np.isfinite(lower).all() and np.isfinite(upper).all()
        if lower.shape != upper.shape or lower.ndim > 1 or not finite or np.any(lower >= upper):
            needed = "finite bounds of one shape with lower < upper are needed."
            raise ValueError(f"Found {name}={stated!r}; {needed}")
        return cls(lower, upper)

    @property
    def key(self) -> tuple[bytes, bytes, float]:
        """Key that is equal for bounds that scale alike."""
        return self.lower.tobytes(), self.upper.tobytes(), self.origin

    @property
    def zero(self) -> Array:
        """Values that are mapped to 0."""
        return self.lower + self.origin * (self.upper - self.lower)

    @property
    def half(self) -> Array:
        """Distances that are mapped to 1."""
        return (self.upper - self.lower) / 2

    @property
    def limits(self) -> tuple[float, float]:
        """Values that the bounds themselves are mapped to."""
        return -2.0 * self.origin, 2.0 * (1.0 - self.origin)

    def scaled(self, values: Array) -> Array:
        """Clip values to the bounds, and map them to the limits."""
        with np.errstate(over="ignore"):  # a warning could tell of a record
            return np.clip((values - self.zero) / self.half, *self.limits)

    def restored(self, values: Array) -> Array:
        """Map values back from [-1, 1], and clip them to the bounds.

        All true values lie inside of them.
        """
        return np.clip(values * self.half + self.zero, self.lower, self.upper)


def scaled_rows(values: NDArray[Any] | ChosenRows, bounds: Bounds | None) -> torch.Tensor:
    """Copy of records, scaled to their bounds, in single precision."""
    rows = values if isinstance(values, ChosenRows) else ChosenRows(values)
    how = None if bounds is None else bounds.key
    return converted_rows(rows, how, torch.float32, partial(scaled_block, bounds=bounds), BLOCK)


def scaled_block(block: NDArray[Any], bounds: Bounds | None) -> torch.Tensor:
    """Scale a block of records to their bounds, in single precision.

    Each record is scaled by itself.
    """
    if bounds is None:
        return torch.from_numpy(to_single_precision(block))
    constants = (bounds.half, -bounds.zero / bounds.half)
    half, shift = (torch.from_numpy(np.asarray(constant)) for constant in constants)
    # Double precision for a cache-sized block; for all records it would take three times their
    # memory.
    scaled = torch.from_numpy(doubles(block)).div_(half).add_(shift)
    # Clipped after rounding, which keeps the order: the limits, multiples of 1/2, are exact in
    # single precision.
    return scaled.float().clamp_(*bounds.limits)


def to_single_precision(values: NDArray[Any]) -> NDArray[np.float32]:
    """Array in single precision; numbers beyond it become infinite.

    The gradient of such a record is dropped.
    """
    with np.errstate(over="ignore"):  # a warning could tell of a record
        return values.astype(np.float32)
