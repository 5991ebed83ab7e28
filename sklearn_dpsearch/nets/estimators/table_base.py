"""Nets of linear layers for tables, with records and predictions in scikit-learn's form."""

from __future__ import annotations

import itertools
import numbers
import os
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import nn

from ..._chosen_rows import ChosenRows
from ...privacy._types import Neighboring
from ..mapped import CHECKED, MappedRecords, stays_in_file
from ..optimizers import Table, UpdateRule
from ..randomness import Seed, sequence
from . import hidden_layers, scaling, spaces, step_size
from .base import DPSGDEstimator, Given
from .hidden_layers import HiddenLayerSizes
from .labels import ClassWeight, check_class_weight, encode, weights_of
from .scaling import Array, Bounds
from .settings import MaxGradNorm, Settings
from .step_size import Decay, StepSize

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

Solver: TypeAlias = Literal["sgd", "adam", "adamw"]
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}


class TableNet(DPSGDEstimator):
    """Net of linear layers for a table."""

    _parameter_constraints: dict[str, Any] = {
        **DPSGDEstimator._parameter_constraints,
        "solver": [StrOptions({"sgd", "adam", "adamw"})],
        "learning_rate": [StrOptions({"linear", "constant"})],
        "learning_rate_init": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "learning_rate_factor": [Interval(numbers.Real, 0, None, closed="neither")],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "bounds_X": [None, tuple, list],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
    }

    def __init__(
        self, *, noise_multiplier: float | None, target_epsilon: float | None, target_delta: float | None,
        target_mu: float | None, max_grad_norm: MaxGradNorm, sample_rate: float | None, batch_size: float | None,
        public_n: float | None, neighboring: Neighboring | None, max_epochs: float, max_steps: float | None,
        solver: Solver, learning_rate: Decay, learning_rate_init: StepSize, learning_rate_factor: float,
        momentum: float, alpha: float, average: float, bounds_X: scaling.Given | None, warm_start: bool, device: Any,
        max_physical_batch: int, random_state: Seed, noise_seed: Seed, checkpoint: str | os.PathLike[str] | None,
        verbose: int,
    ) -> None:  # fmt: skip
        self.noise_multiplier = noise_multiplier
        self.target_epsilon = target_epsilon
        self.target_delta = target_delta
        self.target_mu = target_mu
        self.max_grad_norm = max_grad_norm
        self.sample_rate = sample_rate
        self.batch_size = batch_size
        self.public_n = public_n
        self.neighboring = neighboring
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.solver = solver
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.learning_rate_factor = learning_rate_factor
        self.momentum = momentum
        self.alpha = alpha
        self.average = average
        self.bounds_X = bounds_X
        self.warm_start = warm_start
        self.device = device
        self.max_physical_batch = max_physical_batch
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train. With ``warm_start`` the parameters are kept, and the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        self._train(X, y, fresh=not (self.warm_start and hasattr(self, "module_")))
        return self

    def _check_arguments(self) -> None:
        super()._check_arguments()
        self._scale()

    def _scale(self) -> Bounds | None:
        return None if self.bounds_X is None else Bounds.of_features("bounds_X", self.bounds_X)

    def _prepare(self, X: Any, y: Any, fresh: bool) -> Given:
        X, y = self._checked(X, y, fresh)
        targets = self._targets(y, fresh)
        bounds = self._bounds_of(X)
        if fresh:
            self.module_ = self._module(X.shape[1], len(X) if self.public_n is None else self.public_n)
        if not stays_in_file(X, self.device):
            return scaling.single_rows(X, bounds), targets
        return MappedRecords(
            rows=X,
            convert=partial(scaling.single_block, bounds=bounds),
            how=None if bounds is None else bounds.key,
            inputs=torch.zeros((1, X.shape[1])),
            targets=targets,
        )

    def _checked(self, X: Any, y: Any, fresh: bool) -> tuple[Any, NDArray[Any]]:
        """Records and targets checked by scikit-learn: an array, or chosen rows without a look at others."""
        if stays_in_file(X, self.device) and not isinstance(X, ChosenRows):
            X = ChosenRows(X)
        numeric = isinstance(self, RegressorMixin)
        if not isinstance(X, ChosenRows) or X.ndim != 2 or X.dtype.kind not in "fiub" or not len(X):
            checked: tuple[Any, NDArray[Any]] = validate_data(
                self, X, y, reset=fresh, dtype="numeric", y_numeric=numeric, multi_output=False
            )
            return checked
        validate_data(self, X.data, reset=fresh, skip_check_array=True)
        y = check_array(y, ensure_2d=False, dtype="numeric" if numeric else None, input_name="y")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        scaling.check_finite(X)
        return X, y

    def _bounds_of(self, X: NDArray[Any] | ChosenRows) -> Bounds | None:
        bounds = self._scale()
        if bounds is not None and bounds.lower.ndim and bounds.lower.shape != X.shape[1:]:
            raise ValueError(
                f"Found bounds_X for {len(bounds.lower)} features and X with {X.shape[1]}. Give one pair of "
                "numbers, or one number per feature."
            )
        return bounds

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "module_")
        X = validate_data(self, X, reset=False, dtype="numeric")
        device, bounds = next(self.module_.parameters()).device, self._bounds_of(X)
        found: Array = np.empty((len(X), self.module_[-1].out_features))
        with torch.no_grad():
            for places, block in ChosenRows(X).blocks(CHECKED):
                found[places] = self.module_(scaling.single_block(block, bounds).to(device)).cpu().numpy()
        return found

    def _around(self, grid: bool) -> dict[str, Any]:
        return spaces.factors("learning_rate_factor", self.learning_rate_factor, grid=grid)

    def _uses_sgd(self) -> bool:
        return self.solver == "sgd"

    def _step_size(self, settings: Settings, expected_batch_size: float) -> float:
        if self.learning_rate_init != "auto":
            return self.learning_rate_factor * self.learning_rate_init
        decay = step_size.shares(self.learning_rate, settings.steps)
        bound = step_size.bound_on_norm(self.n_features_in_)
        of_classes = isinstance(self, ClassifierMixin)
        if not self._uses_sgd():
            return self.learning_rate_factor * step_size.for_adam(decay, bound, of_classes=of_classes)
        return self.learning_rate_factor * step_size.for_sgd(
            settings, expected_batch_size, decay, bound, of_classes=of_classes, momentum=self.momentum
        )

    def _update(self) -> UpdateRule:
        if self._uses_sgd():
            return UpdateRule.sgd(lr=self.learning_rate_init_, momentum=self.momentum, weight_decay=self.alpha)
        return UpdateRule.adam(lr=self.learning_rate_init_, weight_decay=self.alpha, decoupled=self.solver == "adamw")

    def _schedule(self, settings: Settings) -> Callable[[torch.optim.Optimizer | None], Table]:
        decay = step_size.shares(self.learning_rate, settings.steps)
        return step_size.scheduled(self.learning_rate_init_, decay)

    def _module(self, n_features: int, n: float) -> nn.Sequential:
        """Initial parameters: uniform (Glorot) from ``random_state``; zero for biases and without hidden layers."""
        generator = torch.Generator().manual_seed(int(sequence(self.random_state).generate_state(1, np.uint64)[0] >> 1))
        sizes = [n_features, *self._hidden(n), self._n_outputs()]
        layers: list[nn.Module] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float32)
            if len(sizes) > 2:
                nn.init.xavier_uniform_(layer.weight, generator=generator)
            else:  # convex: a random start could only harm
                nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
            layers += [layer, self._activation()]
        return nn.Sequential(*layers[:-1])

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

    def _hidden(self, n: float) -> tuple[int, ...]:
        """Widths of the hidden layers, for ``n`` records."""
        return ()

    def _activation(self) -> nn.Module:
        return nn.Identity()

    @abstractmethod
    def _n_outputs(self) -> int:
        """Width of the last layer."""

    @abstractmethod
    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        """Targets for the loss."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


class HiddenLayers(TableNet):
    """Hidden layers of the multi-layer perceptrons."""

    _parameter_constraints: dict[str, Any] = {
        **TableNet._parameter_constraints,
        "activation": [StrOptions(set(ACTIVATIONS))],
    }
    hidden_layer_sizes: HiddenLayerSizes
    activation: str

    def _check_arguments(self) -> None:
        super()._check_arguments()
        hidden_layers.checked(self.hidden_layer_sizes)

    def _around(self, grid: bool) -> dict[str, Any]:
        return {**super()._around(grid), **spaces.layers(hidden_layers.checked(self.hidden_layer_sizes))}

    def _hidden(self, n: float) -> tuple[int, ...]:
        self.hidden_layer_sizes_ = hidden_layers.widths(self.hidden_layer_sizes, n)
        return self.hidden_layer_sizes_

    def _activation(self) -> nn.Module:
        return ACTIVATIONS[self.activation]()


class TableClassifier(ClassifierMixin, TableNet):
    """Labels, and probabilities from logits."""

    classes: ArrayLike | None
    class_weight: ClassWeight
    classes_: NDArray[Any]

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_class_weight(self.class_weight, automatic=self.max_grad_norm == "auto")
        if self.classes is not None:
            weights_of(self.class_weight, unique_labels(self.classes))

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels, in the first call, if not given to the constructor.

        Returns
        -------
        self : object
        """
        self._check_arguments()
        fresh = not hasattr(self, "module_")
        if fresh and classes is not None:
            self.classes_ = np.unique(classes)
        elif fresh and self.classes is None:
            raise ValueError("Expected classes=[...] in the first call of partial_fit.")
        elif not fresh and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"Expected the classes of the first call, {self.classes_.tolist()}, got {classes!r}.")
        self._given_classes = fresh and classes is not None
        try:
            self._train(X, y, fresh)
        finally:
            del self._given_classes
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # because of the noise
        return tags

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _training_criterion(self) -> nn.Module:
        return nn.CrossEntropyLoss(reduction="sum", weight=weights_of(self.class_weight, self.classes_))

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        check_classification_targets(y)
        if fresh and not getattr(self, "_given_classes", False):
            self.classes_ = np.unique(y) if self.classes is None else unique_labels(self.classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Found {len(self.classes_)} class: classification needs at least 2 classes. Declare them with "
                "classes=[...], also those that y lacks."
            )
        return encode(y, self.classes_)

    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes); with two classes their difference, shape (n_samples,)."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n_samples, n_classes)."""
        probabilities: Array = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        shifted: Array = outputs - outputs.max(axis=1, keepdims=True)  # or exp would overflow
        logarithms: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record, shape (n_samples,)."""
        outputs = self._outputs(X)  # first, because it raises for an unfitted net
        labels: NDArray[Any] = self.classes_[outputs.argmax(axis=1)]
        return labels

    def privacy_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, as plain sentences."""
        notes = super().privacy_assumptions()
        if self.classes is None:
            notes += (f"{type(self).__name__}: the labels that occur in y are public (declare them: classes=[...]).",)
        if self.class_weight is not None:
            notes += (f"{type(self).__name__}: class_weight was not taken from the labels.",)
        return notes


class TableRegressor(RegressorMixin, TableNet):
    """Regressors, whose predictions lie inside of public bounds."""

    _parameter_constraints: dict[str, Any] = {
        **TableNet._parameter_constraints,
        "bounds_y": [None, tuple, list],
    }
    bounds_y: scaling.Given | None

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``."""
        self._train(X, y, fresh=not hasattr(self, "module_"))
        return self

    def predict(self, X: Any) -> Array:
        """Predicted values, shape (n_samples,), inside ``bounds_y``."""
        outputs = self._outputs(X)[:, 0]
        bounds = self._target_scale()
        return outputs if bounds is None else bounds.restored(outputs)

    def _check_arguments(self) -> None:
        super()._check_arguments()
        bounds = self._target_scale()
        if bounds is not None and bounds.lower.ndim:
            raise ValueError(f"Found bounds_y={self.bounds_y!r}; two numbers are needed.")

    def _target_scale(self) -> Bounds | None:
        return None if self.bounds_y is None else Bounds.of("bounds_y", self.bounds_y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # because of the noise
        return tags

    def _n_outputs(self) -> int:
        return 1

    def _training_criterion(self) -> nn.Module:
        return nn.MSELoss(reduction="sum")

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        values = check_array(y, ensure_2d=False, dtype=np.float64)
        bounds = self._target_scale()
        return torch.from_numpy(scaling.to_single(values if bounds is None else bounds.scaled(values))).unsqueeze(1)
