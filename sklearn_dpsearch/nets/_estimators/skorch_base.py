"""Differences from skorch: the nets train with DP-SGD, and keep nothing of the records."""

from __future__ import annotations

import copy
import inspect
import numbers
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from inspect import Parameter
from typing import Any, ClassVar, Self

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from skorch.callbacks import LRScheduler, ProgressBar
from skorch.utils import to_tensor
from torch import Tensor

from ...data._datasets import arrays_by_name, source_for_prediction
from ...privacy import LeakingEstimatorError, PrivacyError
from .._engines import losses
from .._engines.engine_choice import copy_with_same_parameters, made_up_batch, outputs_on_made_up
from .._engines.refused_modules import refuse_module
from .._estimators import cost, step_size
from .._named_tensors import Inputs, input_names, list_tensors, map_tensors, wrap_for_named_inputs
from .._optimizers import Table, UpdateRule, check_optimizer, lr_table
from .._randomness import global_torch_seed, seed_sequence
from .._records import RECORD_ALONE, TrainingData, single_precision
from . import input_records
from .base import DPSGDEstimator
from .callbacks import callbacks_of_kind, freeze_parameters
from .settings import Settings
from .step_size import StepFacts, StepSize

#: Arguments of all nets.
FIELDS = [argument for argument in fields(DPSGDEstimator) if argument.init]
#: Arguments of a skorch net that would read or show records, with their only allowed value.
FIXED_ARGUMENTS: dict[str, Any] = {"train_split": None, "compile": False}
#: Assumption about modules and criteria of a user's own, until a fit has shown whether it is
#: needed.
OWN_CODE = (
    "where the code of module and criterion is not a graph of known operations, it runs on one "
    "record at a time and keeps nothing in files, or in other places that cannot be seen from them."
)
PREDICTION_BATCH = 1024


class SkorchNet(DPSGDEstimator, skorch.NeuralNet):
    """skorch net that trains with DP-SGD.

    Parameters
    ----------
    module : torch.nn.Module class or instance
        As in skorch; ``module__…`` sets its arguments. It must act on each record alone: as a graph
        of known operations, or as code without branches on values, which is run on one record at a
        time. Batch statistics, hooks, and code that keeps something of a forward pass are refused.
        Parameters are in single precision.
    criterion : torch.nn.Module class or instance
        As in skorch; its reduction is set to "sum".
    max_grad_norm : float, default=1.0
        Clipping norm of a record's gradient. A record whose gradient is not finite contributes
        nothing.
    sample_rate : float, optional
        Probability of each record to be in each batch (Poisson subsampling).
    max_epochs : float, default=10
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    lr : float or "auto", default="auto"
        Initial step size. "auto" derives it from noise, steps and number of records; it falls
        linearly to zero unless a schedule is given (:doc:`defaults </learn/net_defaults>`).
    lr_factor : float, default=1.0
        Factor on the step size, to be searched: its best value changes little with ε and the number
        of records.
    engine : {"auto", "opacus"}, default="auto"
        Source of per-sample gradients. "opacus" takes Opacus's (its validator, its layer rules, its
        ``DPLSTM``), on Opacus's word; sampling, noise and accounting stay.
    example_input : array, tensor, or dict of such, optional
        For a ``Dataset`` that is read record by record: a public or made-up input of one record,
        such as ``torch.zeros(1, 28, 28)``. Records of another shape or kind add nothing.
    train_split : None
        Only None is allowed: validation inside of a fit would use records without noise.
    **kwargs : dict
        As in skorch: ``optimizer``, which is SGD, Adam or AdamW, ``warm_start``,
        ``predict_nonlinearity``; as ``callbacks`` a list of ``LRScheduler`` (schedules that do not
        look at losses), ``Freezer`` and ``ProgressBar`` (all others see raw batches, and are
        refused).
    """

    #: Kind of the outputs: "classes", "logits" or "numbers".
    outputs: ClassVar[str]
    #: Whether a record has one logit, which skorch expects without an axis of its own.
    one_logit: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lr": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "engine": [StrOptions({"auto", "opacus"})],
        "lr_factor": [Interval(numbers.Real, 0, None, closed="neither")],
    }

    _prefixes = ("module", "criterion", "optimizer", "callbacks", "iterator_valid", "dataset")

    def __init__(
        self, module: Any, *, criterion: Any, lr: StepSize = "auto", lr_factor: float = 1.0,
        engine: str = "auto", example_input: Any = None, train_split: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        shared = {argument.name: kwargs.pop(argument.name, argument.default) for argument in FIELDS}
        super().__init__(module, criterion=criterion, lr=lr, train_split=train_split, **kwargs)
        self.__dict__.update(
            shared, lr_factor=lr_factor, engine=engine, example_input=example_input
        )

    @property
    def _default_callbacks(self) -> list[Any]:
        return []  # skorch's own record losses and batch sizes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.three_d_array = True  # a module says what its records are
        for part in (tags.classifier_tags, tags.regressor_tags):
            if part is not None:
                part.poor_score = True  # because of the noise
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; unknown ones are an error at once."""
        valid = set(self.get_params(deep=False))
        for name in params:
            prefix = name.partition("__")[0]
            if name not in valid and (prefix == name or prefix not in self._prefixes):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. Valid "
                    f"parameters are: {sorted(valid)}, and those that start with one of "
                    f"{[f'{owner}__' for owner in self._prefixes]}."
                )
        if "callbacks" in params:  # skorch's own way needs an existing one
            self.callbacks = params.pop("callbacks")
        super().set_params(**params)
        return self

    # --- before any data --------------------------------------------------------------------------

    def _check_net(self) -> None:
        for name, only in FIXED_ARGUMENTS.items():
            with_options = any(key.startswith(f"{name}__") for key in vars(self))
            if getattr(self, name) != only or with_options:
                raise LeakingEstimatorError(
                    f"Found {name}={getattr(self, name)!r}; only {name}={only!r} is possible: "
                    "validation inside of a fit, and what it prints, would use records without "
                    "noise. Validate in a search, or on public data."
                )
        callbacks_of_kind(self.callbacks, LRScheduler)
        check_optimizer(self.optimizer, self.get_params_for("optimizer"))
        losses.check_criterion_kind(self.criterion, self.outputs)
        check_module_args(self.module, self.get_params_for("module"))
        if self.max_grad_norm == "rule":
            raise ValueError(
                "Found max_grad_norm='rule' for a module of one's own, whose gradients have no "
                "known bound. Give a number: 1.0 for accuracy, several times that for honest "
                "probabilities (docs/learn/probabilities.md)."
            )
        check_labels_differ(getattr(self, "classes", None))
        self._check_target()

    # --- skorch's own steps -----------------------------------------------------------------------

    def initialize(self) -> Self:
        """Initialize as skorch does, in silence.

        Later changes of the parameters from outside are noticed.
        """
        verbose, self.verbose = self.verbose, 0  # of ours: steps alone are shown
        try:
            super().initialize()
        finally:
            self.verbose = verbose
        self.__dict__.pop("optimizer_memory_", None)
        cost.remember_parameters(self)
        return self

    def initialize_module(self) -> Self:
        """Make public initial parameters from ``random_state``, not from the global generator."""
        with global_torch_seed(seed_sequence(self.random_state), torch.device(self.device)):
            super().initialize_module()
        if self.engine == "auto":
            refuse_module(self.module_)
        convert_to_single_precision(self.module_)
        return self

    def initialized_instance(self, instance_or_cls: Any, kwargs: dict[str, Any]) -> Any:
        """Copy an instance that is given as module or criterion.

        Trained in place, it would be the start of the next fit, or of a clone.
        """
        instance = super().initialized_instance(instance_or_cls, kwargs)
        return copy.deepcopy(instance) if instance is instance_or_cls else instance

    def initialize_criterion(self) -> Self:
        """Make the user's criterion with summed losses.

        An average would divide by a private number.
        """
        super().initialize_criterion()
        if not isinstance(self.criterion_, torch.nn.Module):
            raise ValueError(
                f"Found criterion {self.criterion!r}, which makes a "
                f"{type(self.criterion_).__name__}; a torch.nn.Module is needed. Put the function "
                f"into the forward of one."
            )
        if any(True for _ in self.criterion_.parameters()):
            name = type(self.criterion_).__name__
            remedy = "they would be trained without noise. Put them into the module."
            raise ValueError(f"Found parameters in criterion {name}: {remedy}")
        self.criterion_.float()
        if hasattr(self.criterion_, "reduction"):
            self.criterion_.reduction = "sum"
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Records for prediction, always as arrays (skorch would take a data frame apart)."""
        if (source := source_for_prediction(X)) is not None:
            return input_records.ForPrediction(source)
        named = arrays_by_name(X)
        if named is None:
            return super().get_dataset(input_records.numeric_array("X", X), y)
        parts = {name: input_records.numeric_array("X", part) for name, part in named.items()}
        return super().get_dataset(parts, y)

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Batches for prediction; training draws its own."""
        size = self.batch_size
        # loaders need a whole number; the expected batch size may be a fraction
        self.batch_size = PREDICTION_BATCH
        try:
            return super().get_iterator(dataset, training=False)
        finally:
            self.batch_size = size

    @torch.no_grad()
    def infer(self, x: Any, **params: Any) -> Any:
        """Take one forward pass, in single precision and without gradients.

        With gradients, skorch's own steps would train without noise.
        """

        def tensor_on_device(values: Any) -> Tensor:
            tensor = torch.as_tensor(values if torch.is_tensor(values) else np.array(values))
            return to_tensor(single_precision(tensor), device=self.device)

        # state kept by forward is dropped with the copy
        module = copy_with_same_parameters(self.module_)
        inputs = self._in_kinds_of_module(map_tensors(tensor_on_device, x))
        call = partial(module, **inputs) if isinstance(inputs, dict) else partial(module, inputs)
        outputs = call(**params)
        return outputs.reshape(-1) if self.one_logit else outputs

    # --- parameters in files ----------------------------------------------------------------------

    def save_params(self, *args: Any, **kwargs: Any) -> None:
        """Save parameters as skorch does, with their privacy cost."""
        if "module_" not in vars(self):
            super().save_params(*args, **kwargs)
            return
        if kwargs.get("use_safetensors") and cost.costs_on_module(self.module_):
            raise PrivacyError(
                "Found use_safetensors=True: such a file holds tensors alone, and would not say "
                "what the parameters have cost. Leave it out, or pickle the net."
            )
        with cost.notes_in_state_dict(self.module_):
            super().save_params(*args, **kwargs)

    def load_params(self, *args: Any, **kwargs: Any) -> None:
        """Load parameters as skorch does, with their privacy cost.

        A cost stated in the file becomes ``privacy_spent_``.

        For a file without a cost, ``privacy_spent_.assumptions`` says after the next training that
        the loaded parameters hold nothing of the private records.
        """
        if kwargs.get("checkpoint") is not None and not self.initialized_:
            self.initialize()
        if "module_" not in vars(self):
            super().load_params(*args, **kwargs)
            return
        self.__dict__.pop("optimizer_memory_", None)  # memory of other parameters
        with cost.notes_of_state_dict(self.module_) as notes:
            super().load_params(*args, **kwargs)
        if notes and notes[-1]:
            cost.put_notes(self.module_, notes[-1])
            costs = cost.costs_on_module(self.module_)
            spent = cost.combined(costs, costs[0].delta) if len(costs) > 1 else costs[0]
            self.__dict__["privacy_spent_"] = spent
            cost.remember_parameters(self)

    # --- assumptions ------------------------------------------------------------------------------

    def _own_assumptions(self) -> tuple[str, ...]:
        name, fitted = type(self).__name__, "module_" in vars(self)
        trained, sentences = isinstance(self.module, torch.nn.Module), []
        start = "the initial parameters, given as a"
        if trained and not cost.costs_on_module(self.module):
            sentences.append(f"{start} module instance, hold nothing of the private records.")
        elif trained:
            sentences.append(f"{start} trained module, are as a private training has left them.")
            if not fitted:
                sentences.append(f"{start} trained module, have a cost that is not part of this.")
        if not fitted:  # a fit shows whether these are needed
            known_code = is_pytorchs_own(self.module) and is_pytorchs_own(self.criterion)
            if self.engine != "opacus" and not known_code:
                sentences.append(OWN_CODE)
            sentences.append(f"if records come from a Dataset, {RECORD_ALONE}")
        return tuple(f"{name}: {sentence}" for sentence in sentences)

    # --- fitting ----------------------------------------------------------------------------------

    def n_tokens(self) -> int | None:
        """Number of tokens, from 0, that every embedding of the module knows; None without any."""
        module = self.module
        if isinstance(module, type):
            with global_torch_seed(0):
                module = self.initialized_instance(module, self.get_params_for("module"))
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        embeddings = [layer for layer in module.modules() if isinstance(layer, kinds)]
        return min((layer.num_embeddings for layer in embeddings), default=None)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Train the net.

        With ``warm_start`` the parameters are kept, and the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), dict of such, or Dataset
            Keys of a dict are the arguments of ``forward``. A map-style Dataset returns (input,
            target) for a number; it is read record by record, with at most one batch in memory. An
            array in single precision is not copied: leave it as it is until ``fit`` ends.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None
            None for a Dataset, which has its own targets.

        Returns
        -------
        self
        """
        return self._fit(X, y, fresh=not (self.warm_start and self.initialized_), **fit_params)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, **fit_params: Any) -> Self:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``."""
        return self._fit(X, y, fresh=not self.initialized_, **fit_params)

    def _fit(self, X: Any, y: Any, fresh: bool, **fit_params: Any) -> Self:
        if fit_params:
            needed = "X and y alone (weights would change how much one record matters)."
            raise ValueError(f"Found {sorted(fit_params)} in fit; a private net takes {needed}")
        self._train(X, y, fresh)
        return self

    def _prepare(self, X: Any, y: Any, fresh: bool, groups: Any) -> TrainingData:
        if fresh:
            self.initialize()
        facts = input_records.OneByOne(
            self.example_input, self._note_inputs, self._encoded_targets, self._blank_target
        )
        records = input_records.training_records(X, y, self._targets, self.device, facts)
        if self.output_shape_ is not None:
            self._check_outputs(self.output_shape_, records.targets)
        return records

    def _note_inputs(self, inputs: Inputs) -> Inputs:
        """Convert inputs for the module, and note their public facts."""
        if isinstance(inputs, dict):
            input_records.check_input_names(self.module_, list(inputs))
        self.input_names_ = input_names(inputs)
        self.history_ = None  # skorch's history would hold losses and batch sizes
        self.n_features_in_ = sum(int(np.prod(part.shape[1:])) for part in list_tensors(inputs))
        freeze_parameters(self.module_, self.callbacks)
        converted = self._in_kinds_of_module(inputs)
        outputs = self._made_up_outputs(converted)
        #: Shape of a record's outputs; None if made-up records do not tell it.
        self.output_shape_ = None if outputs is None else tuple(outputs.shape[1:])
        return converted

    def _in_kinds_of_module(self, inputs: Inputs) -> Inputs:
        """Inputs whose whole numbers are tokens if the module takes such, or else real numbers."""
        if all(part.is_floating_point() for part in list_tensors(inputs)):
            return inputs
        takes_tokens = self._made_up_outputs(inputs) is not None
        return inputs if takes_tokens else map_tensors(Tensor.float, inputs)

    def _made_up_outputs(self, inputs: Inputs) -> Tensor | None:
        """Outputs of the module on made-up records like these inputs; None if it refuses them."""
        device = next(self.module_.parameters()).device
        rows, _ = made_up_batch(inputs, torch.empty(0))
        module = copy.deepcopy(wrap_for_named_inputs(self.module_, input_names(inputs))).eval()
        return outputs_on_made_up(module, map_tensors(lambda part: part.to(device), rows))

    def _module_in_training(self) -> torch.nn.Module:
        return wrap_for_named_inputs(self.module_, getattr(self, "input_names_", None))

    # --- hooks for each kind of target ------------------------------------------------------------

    def _check_target(self) -> None:
        """Raise for arguments about the target that are wrong for all records."""

    def _targets(self, y: Any) -> Tensor:
        """Targets of all records as a tensor for the loss; their public shape is noted."""
        return self._encoded_targets(y)

    @abstractmethod
    def _encoded_targets(self, y: Any) -> Tensor:
        """Targets of some records as a tensor for the loss; nothing of them is noted."""

    @abstractmethod
    def _blank_target(self) -> Tensor:
        """Row of zeros, like targets for the module's outputs; its shape is noted as theirs."""

    @abstractmethod
    def _check_outputs(self, shape: tuple[int, ...], targets: Tensor) -> None:
        """Raise where a record's outputs do not fit the targets."""

    # --- the step size ----------------------------------------------------------------------------

    def _step_facts(self, settings: Settings) -> StepFacts:
        lr = vars(self).get("optimizer__lr", self.lr)
        momentum = float(self.get_params_for("optimizer").get("momentum", 0.0))
        # A derived step size falls, unless a schedule is given.
        derived = self.lr == "auto" and "optimizer__lr" not in vars(self)
        falls = derived and not callbacks_of_kind(self.callbacks, LRScheduler)
        decay = step_size.step_decay("linear" if falls else "constant", settings.steps)
        bound = step_size.largest_record_norm(self.n_features_in_)
        return StepFacts(lr, self.lr_factor, momentum, decay, bound)

    def get_params_for_optimizer(self, prefix: str, named_parameters: Any, **kwargs: Any) -> Any:
        """Return skorch's parameters, with a derived step size as a number."""
        args, arguments = super().get_params_for_optimizer(prefix, named_parameters, **kwargs)
        if arguments["lr"] != "auto":
            return args, {**arguments, "lr": self.lr_factor * arguments["lr"]}
        # No step size is derived before training, when skorch makes an optimizer that is never
        # used.
        return args, {**arguments, "lr": vars(self).get("learning_rate_init_", 1.0)}

    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        return [step_size.step_factor_space("lr_factor", self.lr_factor, grid=grid)]

    def _uses_sgd(self) -> bool:
        return self.optimizer is torch.optim.SGD

    def _training_criterion(self) -> torch.nn.Module:
        """Criterion as skorch applies it, summed over records.

        Of a classifier ``NLLLoss`` takes the logarithm of probabilities first.
        """
        criterion: torch.nn.Module = self.criterion_
        is_nll = isinstance(criterion, torch.nn.NLLLoss)
        of_probabilities = isinstance(self, ClassifierMixin) and is_nll
        return losses.NLLOfProbabilities(criterion) if of_probabilities else criterion

    def _optimizer(self) -> torch.optim.Optimizer:
        """Optimizer of PyTorch as skorch makes it, over a dummy parameter."""
        dummy = torch.nn.Parameter(torch.zeros(1))
        args, kwargs = self.get_params_for_optimizer("optimizer", [("nothing", dummy)])
        optimizer: torch.optim.Optimizer = self.optimizer(*args, **kwargs)
        return optimizer

    def _update(self) -> UpdateRule:
        return UpdateRule.of(self._optimizer())

    def _schedule(self, settings: Settings, decay: list[float]) -> Table:
        schedulers = callbacks_of_kind(self.callbacks, LRScheduler)
        per_epoch = max(1, round(1 / settings.sample_rate))
        if schedulers:
            return lr_table(self._optimizer(), schedulers, settings.steps, per_epoch)
        return step_size.step_size_table(self.learning_rate_init_, decay)

    def _has_progress_bar(self) -> bool:
        return bool(callbacks_of_kind(self.callbacks, ProgressBar))


def with_shared_arguments(constructor: Callable[..., None]) -> Callable[..., None]:
    """Show the arguments of all skorch nets, its ``**kwargs``, in a constructor's signature."""
    shared = [Parameter(arg.name, Parameter.KEYWORD_ONLY, default=arg.default) for arg in FIELDS]
    of_base = inspect.signature(SkorchNet.__init__).parameters
    of_class = inspect.signature(constructor).parameters
    named = {**of_base, **{parameter.name: parameter for parameter in shared}, **of_class}
    keywords = named.pop("kwargs")
    vars(constructor)["__signature__"] = inspect.Signature([*named.values(), keywords])
    return constructor


def check_module_args(
    owner: torch.nn.Module | Callable[..., torch.nn.Module], keywords: Mapping[str, Any]
) -> None:
    """Raise for a misspelt argument of a module, before data is read."""
    target: Any = type(owner) if isinstance(owner, torch.nn.Module) else owner
    try:
        accepted = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return
    unknown = sorted(set(keywords) - set(accepted))
    takes_all = any(argument.kind is Parameter.VAR_KEYWORD for argument in accepted.values())
    if unknown and not takes_all:
        raise ValueError(
            f"Found {[f'module__{name}' for name in unknown]}, which {target.__name__} does not "
            f"take; it takes {[f'module__{name}' for name in accepted]}."
        )


def check_labels_differ(classes: ArrayLike | None) -> None:
    """Raise unless labels are a list, or an array, in which each is declared once."""
    array = np.asarray([] if classes is None else classes)
    if array.ndim != 1:
        needed = "a list of labels, or an array of shape (n_classes,), is needed."
        raise ValueError(f"Found classes={classes!r}; {needed}")
    labels = array.tolist()
    repeated = [label for label in labels if labels.count(label) > 1]
    if repeated:
        needed = "each label needs a name of its own, as undeclared ones add nothing. Correct one."
        raise ValueError(f"Found classes={labels!r}, with {repeated[0]!r} twice; {needed}")


def convert_to_single_precision(module: torch.nn.Module) -> None:
    """Convert a module in place to single precision.

    Gradients and the bound on rounding need it.

    Raises
    ------
    ValueError
        For parameters other than real numbers.
    """
    for name, parameter in module.named_parameters():
        if not parameter.is_floating_point():
            raise ValueError(
                f"Found parameter {name!r} of dtype {parameter.dtype}; real numbers are needed."
            )
    module.float()


def is_pytorchs_own(owner: Any) -> bool:
    """Return whether a module and all its parts are PyTorch's own."""
    parts = list(owner.modules()) if isinstance(owner, torch.nn.Module) else [owner]
    kinds = [part if isinstance(part, type) else type(part) for part in parts]
    return all(kind.__module__.startswith("torch.nn.modules.") for kind in kinds)
