"""Nets of linear layers for tables, with records and predictions in scikit-learn's form."""

from __future__ import annotations

import inspect
import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..optimizers import Table, UpdateRule
from ..task import TrainingTask
from . import layers, search_spaces, step_size
from .base import DPSGDEstimator
from .scaling import Array
from .settings import Settings
from .step_size import Decay, StepSize
from .training_records import Given

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

#: Sampling rate by default.
RATE = 0.02
Solver: TypeAlias = Literal["sgd", "adam", "adamw"]


class TableNet(DPSGDEstimator):
    """Net of linear layers for a table."""

    #: Standard deviation of the noise in each weight, as ``step_size.noise_in_weight`` has it.
    weight_noise_: float | None

    _parameter_constraints: dict[str, Any] = {
        "solver": [StrOptions({"sgd", "adam", "adamw"})],
        "learning_rate": [StrOptions({"linear", "constant"})],
        "learning_rate_init": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "learning_rate_factor": [Interval(numbers.Real, 0, None, closed="neither")],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
    }

    default_rate = RATE
    solver: Solver
    learning_rate: Decay
    learning_rate_init: StepSize
    learning_rate_factor: float
    momentum: float
    alpha: float
    warm_start: bool

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the constructor's arguments as scikit-learn has them: as attributes of the same names."""
        for name in inspect.signature(type(self)).parameters:
            setattr(self, name, arguments[name])

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

    def _check_net(self) -> None:
        self._check_records()
        self._check_layers()
        self._check_target()

    def _further_assumptions(self) -> tuple[str, ...]:
        return (*self._assumed_of_target(), *self._assumed_of_records())

    def _in_training(self) -> nn.Module:
        return self.module_

    def _before_training(self, settings: Settings, task: TrainingTask) -> None:
        """Add this training to the noise in the weights."""
        before, self.weight_noise_ = self.weight_noise_, None
        if before is not None and self._uses_sgd():
            added = step_size.noise_in_weight(
                task.noise_multiplier * task.max_grad_norm / task.expected_batch_size,
                self.learning_rate_init_,
                step_size.shares(self.learning_rate, settings.steps),
                average=float(self.average),
                momentum=self.momentum,
            )
            self.weight_noise_ = math.hypot(before, added)

    def _after_training(self) -> None:
        pass

    def _shows_progress(self) -> bool:
        return bool(self.verbose)

    def _around(self, grid: bool) -> dict[str, Any]:
        return {
            **search_spaces.factors("learning_rate_factor", self.learning_rate_factor, grid=grid),
            **self._layer_space(),
        }

    def _uses_sgd(self) -> bool:
        return self.solver == "sgd"

    def _norm_by_rule(self, settings: Settings, expected_batch_size: float) -> float:
        decay, of_classes = step_size.shares(self.learning_rate, settings.steps), isinstance(self, ClassifierMixin)
        step = step_size.unclipped(settings, expected_batch_size, decay, self._bound_on_norm(), of_classes=of_classes)
        return step_size.clipping_norm(self._gradient_of_residual(), step * sum(decay), of_classes=of_classes)

    def _step_size(self, settings: Settings, expected_batch_size: float) -> float:
        if self.learning_rate_init != "auto":
            return self.learning_rate_factor * self.learning_rate_init
        decay = step_size.shares(self.learning_rate, settings.steps)
        bound = self._bound_on_norm()
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

    def _prepare(self, X: Any, y: Any, fresh: bool) -> Given:
        X, y = self._checked(X, y, fresh)
        targets = self._targets(y, fresh)
        if fresh:
            self.weight_noise_ = 0.0
            self.module_ = self._module(self.expected_number(len(X)))
        return self._inputs(X, targets)

    def _module(self, n: float) -> nn.Module:
        """Module with its initial parameters, for ``n`` records."""
        wide = [self._n_inputs(), self._n_outputs()]
        return self._joined(wide, self._hidden(n), layers.generator_of(self.random_state))

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "module_")
        device, found = next(self.module_.parameters()).device, [np.empty((0, self._n_outputs()))]
        with torch.no_grad():
            found += [self.module_(block.to(device)).cpu().numpy() for block in self._blocks(X)]
        return np.concatenate(found)

    # --- hooks for each kind of records ---------------------------------------------------------------------------

    @abstractmethod
    def _check_records(self) -> None:
        """Raise for arguments about records that are wrong for all of them."""

    @abstractmethod
    def _assumed_of_records(self) -> tuple[str, ...]:
        """Assumptions about records."""

    @abstractmethod
    def _checked(self, X: Any, y: Any, fresh: bool) -> tuple[Any, NDArray[Any]]:
        """Check records and targets."""

    @abstractmethod
    def _inputs(self, X: Any, targets: torch.Tensor) -> Given:
        """Inputs of the module for checked records."""

    @abstractmethod
    def _blocks(self, X: Any) -> Iterator[torch.Tensor]:
        """Inputs of the module for unchecked records, in blocks."""

    @abstractmethod
    def _joined(self, ends: Sequence[int], hidden: Sequence[int], generator: torch.Generator) -> nn.Module:
        """Module from inputs to outputs, with these hidden layers."""

    @abstractmethod
    def _declared(self, name: str) -> Any:
        """Fact about the target, by the name of its parameter; None if it is not declared."""

    @abstractmethod
    def _n_inputs(self) -> int:
        """Width of the inputs."""

    @abstractmethod
    def _hidden_by_rule(self, n: float) -> tuple[int, ...]:
        """Widths of hidden layers for ``n`` records, a public number, where they are not given."""

    @abstractmethod
    def _gradient_of_residual(self) -> float:
        """Norm of a long record's gradient for a residual of norm 1, for the clipping norm."""

    @abstractmethod
    def _bound_on_norm(self) -> float:
        """Bound on the norm of a record of as many dense features, for the step size."""

    # --- hooks for each kind of net -------------------------------------------------------------------------------

    @abstractmethod
    def _check_target(self) -> None:
        """Raise for arguments about the target that are wrong for all records."""

    @abstractmethod
    def _assumed_of_target(self) -> tuple[str, ...]:
        """Assumptions about the target."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Width of the last layer."""

    @abstractmethod
    def _contrasts(self) -> Array:
        """Combinations of outputs that mean something alone: shape (n_curves, n_outputs)."""

    @abstractmethod
    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        """Targets for the loss."""

    # --- hooks for hidden layers, which not all nets have -------------------------------------------------------------

    @abstractmethod
    def _check_layers(self) -> None:
        """Raise for hidden layers that are wrong."""

    @abstractmethod
    def _layer_space(self) -> dict[str, Any]:
        """Search space of the hidden layers."""

    @abstractmethod
    def _hidden(self, n: float) -> tuple[int, ...]:
        """Widths of the hidden layers, for ``n`` records."""

    @abstractmethod
    def _activation(self) -> nn.Module:
        """Activation of the hidden layers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags
