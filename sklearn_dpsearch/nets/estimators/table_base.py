"""Nets of linear layers for tables, with records and predictions in scikit-learn's form."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ...data.labels import targets_in
from ...preprocessing import TableEncoder
from ..optimizers import Table, UpdateRule
from ..records import Records
from ..sampling import RecordsOfPersons
from ..stack import TrainingTask
from . import layers, step_size
from .base import DPSGDEstimator
from .scaling import Array
from .settings import MaxGradNorm, Settings
from .step_size import Decay, StepSize
from .table_records import ArrayRecords, FrameRecords

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

#: Attribute for the resolved form of the records.
FORM = "_records_form"
#: Sampling rate by default.
RATE = 0.02
Solver: TypeAlias = Literal["sgd", "adam", "adamw"]


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableNet(DPSGDEstimator):
    """Net of linear layers for a table: records in one of two forms, hidden layers if it has any, and a target.

    Parameters
    ----------
    max_grad_norm : float or "rule", default="rule"
        Clipping norm of a record's gradient. "rule" derives it from public facts: how long a record can be by the
        schema, or the number of features (:doc:`step size </theory/step_size>`). Smaller norms change the loss that is
        minimised: classes often stay right, probabilities do not (:doc:`probabilities </learn/probabilities>`). A
        record whose gradient is not finite contributes nothing.
    sample_rate : float, default=0.02
        Probability of each record to be in each batch (Poisson subsampling).
    max_epochs : float, default=30
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    solver : {"sgd", "adam", "adamw"}, default="sgd"
        Optimizer of the noisy gradients.
    learning_rate : {"linear", "constant"}, default="linear"
        Schedule of the step size: falling linearly to zero, or constant.
    learning_rate_init : float or "auto", default="auto"
        Initial step size. "auto" derives it from noise, steps and number of records, for a fixed total noise in each
        weight (:doc:`defaults </learn/net_defaults>`).
    learning_rate_factor : float, default=1.0
        Factor on the step size, to be searched: its best value changes little with ε and the number of records.
    momentum : float, default=0.0
        Momentum of "sgd".
    alpha : float, default=0.0
        Strength of the L2 penalty; with "adamw" of the weight decay.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the parameters of the last ``fit``; the cost adds up in ``privacy_spent_``.

    Attributes
    ----------
    learning_rate_init_ : float
        Initial step size of the last training.
    weight_noise_ : float or None
        Standard deviation of the privacy noise in each weight: an upper bound where the loss is convex and steps are
        short (:doc:`step size </theory/step_size>`). None after "adam" or "adamw".
    hidden_layer_sizes_ : tuple of int
        Outputs of each hidden layer of the fitted net.
    n_features_in_ : int
        Number of columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "solver": [StrOptions({"sgd", "adam", "adamw"})],
        "learning_rate": [StrOptions({"linear", "constant"})],
        "learning_rate_init": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "learning_rate_factor": [Interval(numbers.Real, 0, None, closed="neither")],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
        "activation": [StrOptions(set(layers.ACTIVATIONS))],
        "bounds_X": [None, tuple, list],
        "bounds_y": [None, tuple, list],
        "target": [None, str],
        **{name: TableEncoder._parameter_constraints[name] for name in ("schema", "bins", "indicators")},
    }
    default_rate: ClassVar[float | None] = RATE
    #: RecordsOfPersons may come as ``groups``: a search hands them on.
    takes_groups = True
    #: Form of the records.
    records_of: ClassVar[type[ArrayRecords | FrameRecords]] = ArrayRecords

    max_grad_norm: MaxGradNorm = "rule"
    max_epochs: float = 30
    solver: Solver = "sgd"
    learning_rate: Decay = "linear"
    learning_rate_init: StepSize = "auto"
    learning_rate_factor: float = 1.0
    momentum: float = 0.0
    alpha: float = 0.0
    warm_start: bool = False

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Train. With ``warm_start`` the parameters are kept, and the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Person of each record: numbers, texts, or other values with a hash; a missing one is a person of its own.
            With ``groups`` the guarantee is for persons, all of whose records are neighbours together, and the number
            of persons is public in place of that of records. Each step uses one record, drawn anew, of each person in
            its batch.

        Returns
        -------
        self : object
        """
        self._train(X, y, not (self.warm_start and hasattr(self, "module_")), groups)
        return self

    def _check_net(self) -> None:
        self.__dict__[FORM] = self.records_of(self)
        layers.checked_widths(getattr(self, "hidden_layer_sizes", ()))
        for name, stated in self._form.stated.items():
            given = getattr(self, name)
            if given is not None:
                raise ValueError(
                    f"Found {name}={given!r} and target={getattr(self, 'target', None)!r}, for which the schema states "
                    f"{stated!r}. Leave one of them out."
                )
        self._check_target()

    @property
    def _form(self) -> ArrayRecords | FrameRecords:
        """Form of the records, resolved when the arguments were checked."""
        found: ArrayRecords | FrameRecords | None = vars(self).get(FORM)
        return self.records_of(self) if found is None else found

    def _declared(self, name: str) -> Any:
        """Fact about the target, by the name of its parameter; None if it is not declared."""
        return self._form.stated.get(name, getattr(self, name))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the arguments."""
        return {name: value for name, value in super().__getstate__().items() if name != FORM}

    def _further_assumptions(self) -> tuple[str, ...]:
        of_records = (f"{type(self).__name__}: {said}" for said in self.records_of.assumptions)
        return (*self._assumed_of_target(), *of_records)

    # --- records and module -------------------------------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, fresh: bool, groups: Any) -> Records:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        records, labels = self._form, targets_in(y, numeric=isinstance(self, RegressorMixin))
        X = records.checked(X, labels, fresh)
        persons = None if groups is None else RecordsOfPersons.of(groups, len(labels))
        number = len(labels) if persons is None else len(persons)
        targets = self._targets(labels, fresh)
        if fresh:
            n, own = self.expected_number(number), layers.checked_widths(getattr(self, "hidden_layer_sizes", ()))
            self.weight_noise_: float | None = 0.0
            self.hidden_layer_sizes_ = records.hidden_by_rule(n) if own is None else own
            activation = layers.ACTIVATIONS[getattr(self, "activation", "identity")]
            generator = layers.generator_of(self.random_state)
            self.module_ = records.module(self.hidden_layer_sizes_, self._n_outputs(), activation, generator)
        return replace(records.given(X, targets), persons=persons)

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "module_")
        device, found = next(self.module_.parameters()).device, [np.empty((0, self._n_outputs()))]
        with torch.no_grad():
            found += [self.module_(block.to(device)).cpu().numpy() for block in self._form.blocks(X)]
        return np.concatenate(found)

    # --- the step size, and what it adds to the weights ---------------------------------------------------------------

    def _before_training(self, settings: Settings, task: TrainingTask) -> None:
        """Add this training to the noise in the weights."""
        before, self.weight_noise_ = self.weight_noise_, None
        if before is not None and self._uses_sgd():
            added = step_size.noise_in_weight(
                task.noise_multiplier * task.max_grad_norm / task.expected_batch_size,
                self.learning_rate_init_,
                self._decay(settings),
                self.momentum,
            )
            self.weight_noise_ = math.hypot(before, added)

    def _norm_by_rule(self, settings: Settings, expected_batch_size: float) -> float:
        records, decay = self._form, self._decay(settings)
        step = self._step_rule.unclipped(settings, expected_batch_size, decay, self._bound_on_norm())
        gradient = records.gradient_of_residual(self.hidden_layer_sizes_, self._n_outputs())
        return self._step_rule.clipping_norm(gradient, step * sum(decay))

    def _step_arguments(self) -> tuple[StepSize, float, float]:
        return self.learning_rate_init, self.learning_rate_factor, self.momentum

    def _bound_on_norm(self) -> float:
        return self._form.bound_on_norm()

    def _decay(self, settings: Settings) -> list[float]:
        return step_size.shares(self.learning_rate, settings.steps)

    def _uses_sgd(self) -> bool:
        return self.solver == "sgd"

    def _update(self) -> UpdateRule:
        if self._uses_sgd():
            return UpdateRule.sgd(lr=self.learning_rate_init_, momentum=self.momentum, weight_decay=self.alpha)
        return UpdateRule.adam(lr=self.learning_rate_init_, weight_decay=self.alpha, decoupled=self.solver == "adamw")

    def _schedule(self, settings: Settings) -> Table:
        return step_size.scheduled(self.learning_rate_init_, self._decay(settings))

    def _around(self, grid: bool) -> dict[str, Any]:
        own_layers = layers.space(self.hidden_layer_sizes) if hasattr(self, "hidden_layer_sizes") else {}
        return {**step_size.space("learning_rate_factor", self.learning_rate_factor, grid=grid), **own_layers}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        if self.records_of is FrameRecords:
            tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    # --- hooks for classes and numbers --------------------------------------------------------------------------------

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
