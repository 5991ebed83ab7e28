"""skorch nets trained with DP-SGD: any suitable module of the user's own."""

from __future__ import annotations

import contextlib
import copy
import inspect
import numbers
from typing import Any

import numpy as np
import skorch
import torch
from skorch.callbacks import LRScheduler
from skorch.utils import to_numpy, to_tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ...privacy import LeakingEstimatorError, PrivacyError
from .. import checkpoints
from ..engines import losses
from ..engines.probe import made_up
from ..engines.ways import separate
from ..layout import named_trained
from ..optimizers import check_works_on_gradients
from ..randomness import global_torch_seed, sequence
from ..schedules import table_of
from ..task import TrainingTask
from .base import DPSGDEstimator, device_of
from .encoding import encode
from .settings import Settings, settings_of

#: Arguments of a skorch net that would look at records, or show them, and the only value they may have.
FIXED: dict[str, Any] = {"train_split": None, "verbose": 0, "compile": False}

_PARAMETERS = """
    Parameters
    ----------
    module : torch.nn.Module class or instance
        As in skorch; ``module__…`` sets its arguments. Every record has to act on its own: a graph of known operations,
        or any code without branches on values, which is run on one record at a time. Batch statistics, hooks, and code
        that keeps something of a forward pass are refused.
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: the guarantee of one fit, for which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of a Gaussian guarantee, under which the noise keeps one fit whatever its rate and steps.
    max_grad_norm : float, default=1.0
        Clipping norm of a record's gradient. A record whose gradient is not finite contributes nothing.
    sample_rate : float, optional
        Probability of each record to be in each batch (Poisson sampling).
    batch_size : float, optional
        Instead: the expected batch size, together with ``public_n``.
    public_n : int, optional
        Number of records, known without the data. Without it the number of records counts as public, and the
        guarantee is for records zeroed out instead of added or removed.
    neighboring : {"add_remove", "zero_out"}, optional
        Neighbouring relation; without it as ``public_n`` says. DP-SGD costs the same under both.
    max_epochs : float, default=10
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    max_steps : int, optional
        Instead: the number of steps.
    max_physical_batch : int, default=16384
        Most records in memory at once, over all nets trained together. Changes memory and time, never results.
    optimizer, lr, criterion, device, warm_start, predict_nonlinearity, **kwargs
        As in skorch. The criterion's reduction is set to "sum"; the optimizer must work on given gradients.
    callbacks : list of (name, LRScheduler), optional
        Learning-rate schedules that do not look at data. Other callbacks see raw batches, and are refused.
    random_state : None, int or RandomState
        Seeds the initial parameters, which are public. Never the batches or the noise.
    noise_seed : None, int or RandomState
        For tests only: seeds batches and noise. Whoever knows it can undo the noise.

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of all training of the current parameters, which carry it with them: warm starts, ``partial_fit``, and nets
        that start from the trained module add to it.
    n_steps_, noise_multiplier_ : int, float
        Steps and noise of the last training.
    module_ : torch.nn.Module
        The trained module, with nothing but its parameters.
"""


class _SkorchNet(DPSGDEstimator):
    """What both skorch nets do differently from skorch."""

    def _set(self, **arguments: Any) -> None:
        for name, value in arguments.items():
            setattr(self, name, value)

    @property
    def _default_callbacks(self) -> list[Any]:
        return []  # skorch's own record losses and batch sizes

    def set_params(self, **params: Any) -> Any:
        """Set parameters; unknown ones are an error at once."""
        known = set(self.get_params(deep=False))
        for name in params:
            prefix = name.partition("__")[0]
            if name not in known and (prefix == name or prefix not in self._prefixes):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. Valid parameters are: "
                    f"{sorted(known)}, and those that start with one of {[f'{one}__' for one in self._prefixes]}."
                )
        return super().set_params(**params)  # type: ignore[misc]

    _prefixes = ("module", "criterion", "optimizer", "callbacks", "iterator_valid", "dataset")

    # --- before any data --------------------------------------------------------------------------------------------

    def _check_arguments(self) -> None:
        for name, only in FIXED.items():
            if getattr(self, name) != only or any(key.startswith(f"{name}__") for key in vars(self)):
                raise LeakingEstimatorError(
                    f"Found {name}={getattr(self, name)!r}; only {name}={only!r} is possible: validation inside of a "
                    "fit, and what it prints, would use records without noise. Validate in a search, or on public data."
                )
        self._schedulers()
        if isinstance(self.optimizer, type):
            check_works_on_gradients(self.optimizer)
        if not isinstance(self.max_physical_batch, numbers.Integral) or self.max_physical_batch < 1:
            raise ValueError(f"Found max_physical_batch={self.max_physical_batch!r}; an integer >= 1 is needed.")
        _check_keywords("module", self.module, self.get_params_for("module"))
        settings_of(self)

    def _schedulers(self) -> list[Any]:
        """Class, arguments and rhythm of each learning-rate schedule; an error for any other callback."""
        found = []
        given = self.callbacks
        for one in [] if given in (None, "disable") else given:
            callback = one[1] if isinstance(one, tuple) else one
            callback = callback() if isinstance(callback, type) else callback
            policy = callback._get_policy_cls() if type(callback) is LRScheduler else None
            if policy is None or policy is ReduceLROnPlateau:
                raise LeakingEstimatorError(
                    f"Found callback {type(callback).__name__}{' with ReduceLROnPlateau' if policy else ''}: it would "
                    "see records, losses or batch sizes without noise. Only skorch.callbacks.LRScheduler with a "
                    "policy that does not look at losses is possible."
                )
            found.append((policy, callback.kwargs, callback.step_every == "batch"))
        return found

    # --- skorch's own steps ----------------------------------------------------------------------------------------

    def initialize(self) -> Any:
        """As in skorch. Whether parameters are changed from outside after this is noticed."""
        super().initialize()  # type: ignore[misc]
        self._remember()
        return self

    def initialize_module(self) -> Any:
        """Initial parameters: public, from ``random_state``, and never from the generator that a user has seeded."""
        with global_torch_seed(sequence(self.random_state)):
            return super().initialize_module()  # type: ignore[misc]

    def initialized_instance(self, instance_or_cls: Any, kwargs: Any) -> Any:
        """A copy of what was given as an instance: trained in place, it would start the next fit, or a clone."""
        made = super().initialized_instance(instance_or_cls, kwargs)  # type: ignore[misc]
        return copy.deepcopy(made) if made is instance_or_cls else made

    def initialize_criterion(self) -> Any:
        """The user's criterion with its losses summed: an average would divide by a private number."""
        super().initialize_criterion()  # type: ignore[misc]
        if not isinstance(self.criterion_, torch.nn.Module):
            raise ValueError(
                f"Found criterion {self.criterion!r}, which makes a {type(self.criterion_).__name__}; a "
                "torch.nn.Module is needed. Put the function into the forward of one."
            )
        if any(True for _ in self.criterion_.parameters()):
            raise ValueError(
                f"Found parameters in criterion {type(self.criterion_).__name__}: they would be trained without "
                "noise. Put them into the module."
            )
        if hasattr(self.criterion_, "reduction"):
            self.criterion_.reduction = "sum"
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Records for prediction, as one array whatever holds them (skorch would take a data frame apart)."""
        return super().get_dataset(X if isinstance(X, torch.utils.data.Dataset) else _array("X", X), y)  # type: ignore[misc]

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Batches for prediction; training has batches of its own."""
        size = self.batch_size
        self.batch_size = 1024
        try:
            return super().get_iterator(dataset, training=False)  # type: ignore[misc]
        finally:
            self.batch_size = size

    def infer(self, x: Any, **params: Any) -> Any:
        """One forward pass, in single precision."""
        values = _single(torch.as_tensor(np.array(x) if not torch.is_tensor(x) else x))
        values = to_tensor(values if getattr(self, "takes_integers_", True) else values.float(), device=self.device)
        return separate(self.module_)(values, **params)  # what forward keeps goes with the copy

    # --- parameters in files ------------------------------------------------------------------------------------------

    def save_params(self, *args: Any, **kwargs: Any) -> None:
        """As in skorch; the file also says what the parameters have cost."""
        if "module_" not in vars(self):
            return super().save_params(*args, **kwargs)  # type: ignore[misc, no-any-return]
        if kwargs.get("use_safetensors") and checkpoints.costs(self.module_):
            raise PrivacyError(
                "Found use_safetensors=True: such a file holds tensors alone, and would not say what the parameters "
                "have cost. Leave it out, or pickle the net."
            )
        with checkpoints.saving(self.module_):
            super().save_params(*args, **kwargs)  # type: ignore[misc]
        return None

    def load_params(self, *args: Any, **kwargs: Any) -> None:
        """As in skorch; what the parameters have cost becomes ``privacy_spent_`` if the file says it.

        Of other parameters, ``privacy_spent_.assumptions`` says after the next training that they hold nothing of the
        private records.
        """
        if kwargs.get("checkpoint") is not None and not self.initialized_:
            self.initialize()
        if "module_" not in vars(self):
            return super().load_params(*args, **kwargs)  # type: ignore[misc, no-any-return]
        with checkpoints.loading(self.module_) as notes:
            super().load_params(*args, **kwargs)  # type: ignore[misc]
        if notes and notes[-1]:
            checkpoints.place(self.module_, notes[-1])
            vars(self)["privacy_spent_"] = checkpoints.together(checkpoints.costs(self.module_))
            self._remember()
        return None

    def privacy_assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, as plain sentences."""
        return (*super().privacy_assumptions(), *self._origin(), *self._code())

    def _origin(self) -> tuple[str, ...]:
        """What is assumed of parameters that were not made by this net."""
        if not isinstance(self.module, torch.nn.Module):
            return ()
        given = f"{type(self).__name__}: the initial parameters, given as a"
        if not checkpoints.costs(self.module):
            return (f"{given} module instance, hold nothing of the private records.",)
        apart = () if "module_" in vars(self) else (f"{given} trained module, have a cost that is not part of this.",)
        return (f"{given} trained module, are as a private training has left them.", *apart)

    def _code(self) -> tuple[str, ...]:
        """What is taken on trust of modules and criteria of the user's own, as long as it is not known from a fit."""
        own = [one for one in (self.module, self.criterion) if not _is_torchs(one)]
        if not own or "module_" in vars(self):
            return ()
        return (
            f"{type(self).__name__}: where the code of module and criterion is not a graph of known operations, it "
            "runs on one record at a time and keeps nothing in files, or in other places that cannot be seen from "
            "them.",
        )

    # --- fitting ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        """Train. With ``warm_start`` the parameters are kept, and the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        self
        """
        return self._fit(X, y, fresh=not (self.warm_start and self.initialized_), **fit_params)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, **fit_params: Any) -> Any:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``."""
        return self._fit(X, y, fresh=not self.initialized_, **fit_params)

    def _fit(self, X: Any, y: Any, fresh: bool, **fit_params: Any) -> Any:
        if fit_params:
            raise ValueError(
                f"Found {sorted(fit_params)} in fit; a private net takes X and y alone (weights would change how much "
                "one record matters)."
            )
        self._train(X, y, fresh)
        return self

    def fit_loop(self, *args: Any, **kwargs: Any) -> Any:
        """Not available: skorch's loop trains without noise."""
        raise LeakingEstimatorError("fit_loop would train without noise. Use fit or partial_fit.")

    def _prepare(self, X: Any, y: Any, fresh: bool) -> tuple[torch.Tensor, torch.Tensor]:
        if fresh:
            self.initialize()
        inputs = _single(torch.from_numpy(_array("X", X)))
        targets = self._targets(y)
        if len(inputs) != len(targets):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[len(inputs), len(targets)]}."
            )
        self.takes_integers_ = not inputs.is_floating_point() and _outputs(self.module_, inputs) is not None
        inputs = inputs if self.takes_integers_ else inputs.float()
        self.history_ = None
        self.n_features_in_ = int(np.prod(inputs.shape[1:]))
        return inputs, targets

    def _task(self, settings: Settings, n: int) -> TrainingTask:
        return TrainingTask(
            module=self.module_,
            criterion=self._training_criterion(),
            optimizer=self._make_optimizer,
            sample_rate=settings.sample_rate,
            steps=settings.steps,
            noise_multiplier=settings.noise,
            max_grad_norm=settings.max_grad_norm,
            expected_batch_size=settings.sample_rate * (n if self.public_n is None else self.public_n),
            schedule=lambda optimizer: table_of(
                optimizer, self._schedulers(), settings.steps, max(1, round(1 / settings.sample_rate))
            ),
            seed=sequence(self.noise_seed),
        )

    def _training_criterion(self) -> torch.nn.Module:
        found: torch.nn.Module = self.criterion_
        return found

    def _make_optimizer(self, module: torch.nn.Module) -> torch.optim.Optimizer:
        args, kwargs = self.get_params_for_optimizer("optimizer", named_trained(module))
        return self.optimizer(*args, **kwargs)

    def _device(self) -> torch.device:
        return device_of(self.device)

    def _unfit(self) -> None:
        super()._unfit()
        self.initialized_ = False


class DPNeuralNetClassifier(_SkorchNet, skorch.NeuralNetClassifier):
    __doc__ = f"""A classifier with a module of your own, trained with DP-SGD (Abadi et al. 2016).
{_PARAMETERS}
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    ``classes``, the labels in the order of the module's outputs, is required: labels taken from y would tell which
    ones occur. The default criterion is ``CrossEntropyLoss``: the module returns logits.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X, y = np.random.default_rng(0).normal(size=(100, 3)), np.array(["no", "yes"] * 50)
    >>> net = DPNeuralNetClassifier(
    ...     torch.nn.Linear, module__in_features=3, module__out_features=2, classes=["no", "yes"],
    ...     noise_multiplier=2.0, sample_rate=0.1, max_steps=20,
    ... )
    >>> net.fit(X, y).predict_proba(X).shape
    (100, 2)
    >>> round(net.privacy_spent_.epsilon_at(1e-5), 2)
    1.08
    """

    def __init__(
        self, module: Any, *, criterion: Any = torch.nn.CrossEntropyLoss, noise_multiplier: Any = None,
        target_epsilon: Any = None, target_delta: Any = None, target_mu: Any = None, max_grad_norm: float = 1.0,
        sample_rate: Any = None, batch_size: Any = None, public_n: Any = None,
        neighboring: Any = None, max_epochs: float = 10,
        max_steps: Any = None, max_physical_batch: int = 16384, classes: Any = None, random_state: Any = None,
        noise_seed: Any = None, train_split: Any = None, verbose: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            module, criterion=criterion, batch_size=batch_size, max_epochs=max_epochs, classes=classes,
            train_split=train_split, verbose=verbose, **kwargs,
        )  # fmt: skip
        self._set(
            noise_multiplier=noise_multiplier, target_epsilon=target_epsilon, target_delta=target_delta,
            target_mu=target_mu, max_grad_norm=max_grad_norm, sample_rate=sample_rate, public_n=public_n,
            neighboring=neighboring,
            max_steps=max_steps, max_physical_batch=max_physical_batch, random_state=random_state,
            noise_seed=noise_seed,
        )  # fmt: skip

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.classes is None or len(self.classes) == 0:
            raise ValueError(
                f"{type(self).__name__} needs classes=[...], the labels in the order of the module's outputs: taken "
                "from y they would tell which labels occur."
            )

    def _prepare(self, X: Any, y: Any, fresh: bool) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = super()._prepare(X, y, fresh)
        outputs = _outputs(self.module_, inputs)
        if outputs is not None and outputs.shape[1:] != (len(self.classes),):
            raise ValueError(
                f"Found outputs of shape {tuple(outputs.shape[1:])} per record and {len(self.classes)} classes; the "
                "module needs one output per class (otherwise an error would tell which labels occur)."
            )
        return inputs, targets

    def _training_criterion(self) -> torch.nn.Module:
        """As skorch trains: of probabilities, for which ``NLLLoss`` stands there, the logarithm is taken first."""
        found = super()._training_criterion()
        return losses.OfProbabilities(found) if isinstance(found, torch.nn.NLLLoss) else found

    def _targets(self, y: Any) -> torch.Tensor:
        return encode(y, np.asarray(self.classes))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each record."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class DPNeuralNetRegressor(_SkorchNet, skorch.NeuralNetRegressor):
    __doc__ = f"""A regressor with a module of your own, trained with DP-SGD (Abadi et al. 2016).
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> net = DPNeuralNetRegressor(
    ...     torch.nn.Linear, module__in_features=3, module__out_features=1,
    ...     noise_multiplier=2.0, sample_rate=0.1, max_steps=20,
    ... )
    >>> net.fit(X, X[:, 0]).predict(X).shape
    (100,)
    """

    def __init__(
        self, module: Any, *, criterion: Any = torch.nn.MSELoss, noise_multiplier: Any = None,
        target_epsilon: Any = None, target_delta: Any = None, target_mu: Any = None, max_grad_norm: float = 1.0,
        sample_rate: Any = None, batch_size: Any = None, public_n: Any = None,
        neighboring: Any = None, max_epochs: float = 10,
        max_steps: Any = None, max_physical_batch: int = 16384, random_state: Any = None, noise_seed: Any = None,
        train_split: Any = None, verbose: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            module, criterion=criterion, batch_size=batch_size, max_epochs=max_epochs, train_split=train_split,
            verbose=verbose, **kwargs,
        )  # fmt: skip
        self._set(
            noise_multiplier=noise_multiplier, target_epsilon=target_epsilon, target_delta=target_delta,
            target_mu=target_mu, max_grad_norm=max_grad_norm, sample_rate=sample_rate, public_n=public_n,
            neighboring=neighboring,
            max_steps=max_steps, max_physical_batch=max_physical_batch, random_state=random_state,
            noise_seed=noise_seed,
        )  # fmt: skip

    def _check_arguments(self) -> None:
        super()._check_arguments()
        losses.check_for_numbers(self.criterion)

    def _prepare(self, X: Any, y: Any, fresh: bool) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = super()._prepare(X, y, fresh)
        outputs = _outputs(self.module_, inputs)
        if outputs is not None and type(self.criterion_) in losses.KNOWN and outputs.shape[1:] != targets.shape[1:]:
            raise ValueError(
                f"Found outputs of shape {tuple(outputs.shape[1:])} and targets of shape {tuple(targets.shape[1:])} "
                "per record; give the module as many outputs as y has columns."
            )
        return inputs, targets

    def _targets(self, y: Any) -> torch.Tensor:
        values = torch.from_numpy(_array("y", y)).float()
        self.y_is_column_ = values.ndim == 2
        return values if values.ndim > 1 else values.unsqueeze(1)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values, in the shape of the y that was fitted."""
        found = super().predict(X)
        return found if getattr(self, "y_is_column_", True) else found[:, 0]


def _array(name: str, data: Any) -> np.ndarray:
    """A numeric array without NaN or infinity."""
    found = (
        data.to_numpy() if hasattr(data, "to_numpy") else to_numpy(data) if torch.is_tensor(data) else np.array(data)
    )
    if found.dtype == object:
        with contextlib.suppress(TypeError, ValueError):  # which would quote a record
            found = found.astype(np.float64)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"Expected {name} as numbers, got an array of dtype {found.dtype}.")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{name} contains NaN or infinity. Remove or replace such records by a rule fixed in advance.")
    return np.require(found, requirements=["C", "W"])


def _single(values: torch.Tensor) -> torch.Tensor:
    """Floating-point numbers in single precision; integers (tokens) as they are, for embeddings."""
    return values.float() if values.is_floating_point() else values.long()


def _outputs(module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor | None:
    """Outputs on made-up records of the same kind; None if the module does not take them."""
    rows = made_up(inputs, inputs)[0].to(next(module.parameters()).device)
    try:
        with torch.no_grad():
            found: torch.Tensor = copy.deepcopy(module).eval()(rows)
    except Exception:
        return None
    return found


def _is_torchs(one: Any) -> bool:
    """Whether a module, or a criterion, and all of its parts are PyTorch's own."""
    parts = list(one.modules()) if isinstance(one, torch.nn.Module) else [one]
    kinds = [part if isinstance(part, type) else type(part) for part in parts]
    return all(kind.__module__.startswith("torch.nn.modules.") for kind in kinds)


def _check_keywords(prefix: str, owner: Any, keywords: dict[str, Any]) -> None:
    """A misspelt argument of the module is an error before any data is read."""
    target = owner if isinstance(owner, type) or not isinstance(owner, torch.nn.Module) else type(owner)
    try:
        accepted = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in accepted.values()):
        return
    unknown = sorted(set(keywords) - set(accepted))
    if unknown:
        raise ValueError(
            f"Found {[f'{prefix}__{name}' for name in unknown]}, which {target.__name__} does not take; it takes "
            f"{[f'{prefix}__{name}' for name in accepted]}."
        )
