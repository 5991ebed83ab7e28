"""Nets of linear layers for tables, with records and predictions in scikit-learn's form."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ...data import _labels
from ...data._labels import ClassWeights
from ...preprocessing import TableEncoder
from ...preprocessing._schema import check_stated_once
from .._estimators import layers, step_size
from .._optimizers import Table, UpdateRule
from .._randomness import seed_sequence
from .._records import TrainingData, label_targets
from .._sampling import RecordsOfPersons
from .._stacked_training import TrainingTask
from .base import DPSGDEstimator
from .settings import POSITIVE_NUMBER, MaxGradNorm, Settings
from .step_size import Decay, StepFacts, StepSize
from .table_records import Array, ArrayRecords, Bounds, FrameRecords, Limits, to_single_precision

#: Attribute for the resolved form of the records.
FORM = "_records_form"
#: Sampling rate by default.
RATE = 0.02
Solver: TypeAlias = Literal["sgd", "adam", "adamw"]


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableNet(DPSGDEstimator):
    """Net of linear layers for a table.

    It has records in one of two forms, hidden layers or none, and a target.

    Parameters
    ----------
    max_grad_norm : float or "rule", default="rule"
        Clipping norm of a record's gradient. "rule" derives it from public facts: how long a record
        can be by the schema, or the number of features (:doc:`step size </theory/step_size>`).
        Smaller norms change the loss that is minimised: classes often stay right, probabilities do
        not (:doc:`probabilities </learn/probabilities>`). A record whose gradient is not finite
        contributes nothing.
    sample_rate : float, default=0.02
        Probability of each record to be in each batch (Poisson subsampling).
    max_epochs : float, default=30
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    solver : {"sgd", "adam", "adamw"}, default="sgd"
        Optimizer of the noisy gradients.
    learning_rate : {"linear", "constant"}, default="linear"
        Schedule of the step size: falling linearly to zero, or constant.
    learning_rate_init : float or "auto", default="auto"
        Initial step size. "auto" derives it from noise, steps and number of records, for a fixed
        total noise in each weight (:doc:`defaults </learn/net_defaults>`).
    learning_rate_factor : float, default=1.0
        Factor on the step size, to be searched: its best value changes little with ε and the number
        of records.
    momentum : float, default=0.0
        Momentum of "sgd".
    alpha : float, default=0.0
        Strength of the L2 penalty; with "adamw" of the weight decay.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the parameters of the last ``fit``; the cost adds up in
        ``privacy_spent_``.

    Attributes
    ----------
    learning_rate_init_ : float
        Initial step size of the last training.
    weight_noise_ : float or None
        Standard deviation of the privacy noise in each weight: an upper bound where the loss is
        convex and steps are short (:doc:`step size </theory/step_size>`). None after "adam" or
        "adamw".
    hidden_layer_sizes_ : tuple of int
        Outputs of each hidden layer of the fitted net.
    n_features_in_ : int
        Number of columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "solver": [StrOptions({"sgd", "adam", "adamw"})],
        "learning_rate": [StrOptions({"linear", "constant"})],
        "learning_rate_init": [POSITIVE_NUMBER, StrOptions({"auto"})],
        "learning_rate_factor": [POSITIVE_NUMBER],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
        "activation": [StrOptions(set(layers.ACTIVATIONS))],
        "bounds_X": [None, tuple, list],
        "bounds_y": [None, tuple, list],
        "target": [None, str],
        **{
            name: TableEncoder._parameter_constraints[name]
            for name in ("schema", "bins", "indicators")
        },
    }
    default_rate: ClassVar[float | None] = RATE
    #: Persons may come as ``groups``: a search hands them on.
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
        """Train the net.

        With ``warm_start`` the parameters are kept, and the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Person of each record: numbers, texts, or other values with a hash; a missing one is a
            person of its own. With ``groups`` the guarantee is for persons, all of whose records
            are neighbours together, and the number of persons is public in place of that of
            records. Each step uses one record, drawn anew, of each person in its batch.

        Returns
        -------
        self : object
        """
        self._train(X, y, not (self.warm_start and hasattr(self, "module_")), groups)
        return self

    def _check_net(self) -> None:
        layers.checked_hidden_layers(getattr(self, "hidden_layer_sizes", ()))
        _labels.class_weights(getattr(self, "class_weight", None), None)

    def _resolve_schema(self) -> None:
        self.__dict__[FORM] = self.records_of(self)
        check_stated_once(self, self._form.stated)
        self._check_target()

    @property
    def _form(self) -> ArrayRecords | FrameRecords:
        """Form of the records, resolved when the arguments were checked."""
        form: ArrayRecords | FrameRecords | None = vars(self).get(FORM)
        return self.records_of(self) if form is None else form

    def _declared(self, name: str) -> Any:
        """Declared fact about the target, by its parameter; None if undeclared."""
        return self._form.stated.get(name, getattr(self, name))

    def __getstate__(self) -> dict[str, Any]:
        """State of a net for a pickle, without the resolved schema."""
        return {name: value for name, value in super().__getstate__().items() if name != FORM}

    def _own_assumptions(self) -> tuple[str, ...]:
        sentences = (*self._assumed_of_target(), *self.records_of.assumptions)
        return tuple(f"{type(self).__name__}: {sentence}" for sentence in sentences)

    # --- records and module -----------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, fresh: bool, groups: Any) -> TrainingData:
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        records = self._form
        labels = _labels.targets_in(y, numeric=isinstance(self, RegressorMixin))
        if (declared := records.stated.get("classes", getattr(self, "classes", None))) is not None:
            _labels.check_kind(declared, _labels.label_kind(y))
        X = records.checked(X, labels, fresh)
        persons = None if groups is None else RecordsOfPersons.of(groups, len(labels))
        number = len(labels) if persons is None else len(persons)
        targets = self._targets(labels, fresh)
        if fresh:
            n = self.expected_number(number)
            sizes = layers.checked_hidden_layers(getattr(self, "hidden_layer_sizes", ()))
            self.weight_noise_: float | None = 0.0
            self.hidden_layer_sizes_ = records.hidden_layers_by_rule(n) if sizes is None else sizes
            activation = layers.ACTIVATIONS[getattr(self, "activation", "identity")]
            seed = int(seed_sequence(self.random_state).generate_state(1, np.uint64)[0] >> 1)
            # of initial parameters, which are public
            generator = torch.Generator().manual_seed(seed)
            self.module_ = records.module(self._widths(), activation, generator)
        return replace(records.training_data(X, targets), persons=persons)

    def _widths(self) -> list[int]:
        """Outputs of each hidden layer, and of the net."""
        return [*self.hidden_layer_sizes_, self._n_outputs()]

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "module_")
        device, outputs = next(self.module_.parameters()).device, [np.empty((0, self._n_outputs()))]
        with torch.no_grad():
            blocks = self._form.blocks(X)
            outputs += [self.module_(block.to(device)).cpu().numpy() for block in blocks]
        return np.concatenate(outputs)

    # --- the step size, and what it adds to the weights -------------------------------------------

    def _before_training(self, task: TrainingTask, decay: list[float]) -> None:
        """Add the noise of this training to that in the weights."""
        before, self.weight_noise_ = self.weight_noise_, None
        if before is not None and self._uses_sgd():
            # Of each mean gradient, times its step; no curvature takes it back
            # (docs/theory/step_size.md).
            in_gradient = task.noise_multiplier * task.max_grad_norm / task.expected_batch_size
            one_step = self.learning_rate_init_ * in_gradient
            added = one_step * math.hypot(*decay) / (1.0 - self.momentum)
            self.weight_noise_ = math.hypot(before, added)

    def _step_facts(self, settings: Settings) -> StepFacts:
        decay, records = step_size.step_decay(self.learning_rate, settings.steps), self._form
        gradient = records.gradient_norm(self._widths())
        initial, factor = self.learning_rate_init, self.learning_rate_factor
        return StepFacts(initial, factor, self.momentum, decay, records.bound_on_norm(), gradient)

    def _uses_sgd(self) -> bool:
        return self.solver == "sgd"

    def _update(self) -> UpdateRule:
        if self._uses_sgd():
            return UpdateRule.sgd(self.learning_rate_init_, self.momentum, self.alpha)
        return UpdateRule.adam(self.learning_rate_init_, self.alpha, self.solver == "adamw")

    def _schedule(self, settings: Settings, decay: list[float]) -> Table:
        return step_size.step_size_table(self.learning_rate_init_, decay)

    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        # Beside bins the rule's layers have the best probabilities of equally accurate ones
        # (docs/learn/spaces.md).
        searched = self.records_of is ArrayRecords and hasattr(self, "hidden_layer_sizes")
        own_layers = layers.hidden_layer_space(self.hidden_layer_sizes) if searched else {}
        factor = self.learning_rate_factor
        factors = step_size.step_factor_space("learning_rate_factor", factor, grid=grid)
        return [{**factors, **own_layers}]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        if self.records_of is FrameRecords:
            tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    # --- hooks for classes and numbers ------------------------------------------------------------

    @abstractmethod
    def _check_target(self) -> None:
        """Raise for arguments about the target that are wrong for all records."""

    @abstractmethod
    def _assumed_of_target(self) -> tuple[str, ...]:
        """Assumptions of the guarantee about the target, without the name of the net."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Number of outputs of the net."""

    @abstractmethod
    def _curves_of_outputs(self) -> Array:
        """Combinations of outputs that mean something alone: shape (n_curves, n_outputs)."""

    @abstractmethod
    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        """Targets of records as a tensor for the loss."""


# --- classes and numbers --------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableClassifier(ClassifierMixin, TableNet):
    """Net for a table with labels, and probabilities from logits.

    Parameters
    ----------
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which
        is private only if they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of the loss of its records, a constant known without the data; other labels
        have weight 1. "balanced" would count the labels, and is refused. Weighted gradients are
        clipped, so weights below 1 have more effect than weights above 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    """

    classes: ArrayLike | None = None
    class_weight: ClassWeights = None

    def _check_target(self) -> None:
        declared = self._declared("classes")
        classes = None if declared is None else _labels.sorted_classes(declared)
        _labels.class_weights(self.class_weight, classes)

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
        if fresh and classes is None and self._declared("classes") is None:
            raise ValueError("Expected classes=[...] in the first call of partial_fit.")
        if fresh and classes is not None:
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            first = self.classes_.tolist()
            raise ValueError(f"Expected the classes of the first call, {first}, got {classes!r}.")
        self._given_classes = fresh and classes is not None
        try:
            self._train(X, y, fresh)
        finally:
            del self._given_classes
        return self

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _curves_of_outputs(self) -> Array:
        """Log odds of the second of two classes.

        Of more classes, the log of each probability less the mean over classes.
        """
        n = len(self.classes_)
        return np.array([[-1.0, 1.0]]) if n == 2 else np.eye(n) - 1.0 / n

    def _training_criterion(self) -> nn.Module:
        weights = _labels.class_weights(self.class_weight, self.classes_).astype(np.float32)
        constants = None if self.class_weight is None else torch.from_numpy(weights)
        return nn.CrossEntropyLoss(reduction="sum", weight=constants)

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        if fresh and not getattr(self, "_given_classes", False):
            self.classes_ = _labels.classes_in(y, self._declared("classes"))
        return label_targets(y, self.classes_)

    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes); of two classes their difference, (n_samples,)."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        return np.asarray(log_softmax(self._outputs(X), axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n_samples, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record, shape (n_samples,)."""
        # first, because it raises for an unfitted model
        places = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # because of the noise
        return tags

    def _assumed_of_target(self) -> tuple[str, ...]:
        # a schema states the classes of its target
        are_declared = self.classes is not None or getattr(self, "target", None) is not None
        return tuple(_labels.assumptions_about_labels(are_declared, self.class_weight))


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableRegressor(RegressorMixin, TableNet):
    """Net for a table with numbers, whose predictions lie inside of public bounds.

    Parameters
    ----------
    bounds_y : (lower, upper), optional
        Public bounds of y: targets are clipped to the bounds and mapped to [-1, 1], predictions are
        mapped back and clipped. Needed for y far outside of [-1, 1], which clipped gradients do not
        reach.
    """

    bounds_y: Limits | None = None

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``."""
        self._train(X, y, not hasattr(self, "module_"))
        return self

    def predict(self, X: Any) -> Array:
        """Predicted values, shape (n_samples,), inside ``bounds_y``."""
        outputs = self._outputs(X)[:, 0]
        bounds = self._target_scale()
        return outputs if bounds is None else bounds.restored(outputs)

    def _assumed_of_target(self) -> tuple[str, ...]:
        return ()

    def _check_target(self) -> None:
        bounds = self._target_scale()
        if bounds is not None and bounds.lower.ndim:
            raise ValueError(f"Found bounds_y={self.bounds_y!r}; two numbers are needed.")

    def _target_scale(self) -> Bounds | None:
        declared = self._declared("bounds_y")
        return None if declared is None else Bounds.of("bounds_y", declared)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # because of the noise
        return tags

    def _n_outputs(self) -> int:
        return 1

    def _curves_of_outputs(self) -> Array:
        """The prediction before it is clipped, as a multiple of the output."""
        bounds = self._target_scale()
        return np.array([[1.0 if bounds is None else float(bounds.half)]])

    def _training_criterion(self) -> nn.Module:
        return nn.MSELoss(reduction="sum")

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        bounds = self._target_scale()
        scaled = y if bounds is None else bounds.scaled(y)
        return torch.from_numpy(to_single_precision(scaled)).unsqueeze(1)
