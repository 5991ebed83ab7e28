"""Ready-made nets for tables: scikit-learn estimators, no module to write."""

from __future__ import annotations

import itertools
import numbers
from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import nn

from ..optimizers import UpdateRule
from ..randomness import sequence
from ..task import TrainingTask
from .base import DPSGDEstimator, device_of
from .encoding import encode
from .settings import Settings, settings_of

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}

_SHARED = """
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: the guarantee of one fit, for which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of a Gaussian guarantee, under which the noise keeps one fit whatever its rate and steps.
    max_grad_norm : float, default=1.0
        Clipping norm of a record's gradient.
    sample_rate : float, default=0.05
        Probability of each record to be in each batch (Poisson sampling).
    batch_size : float, optional
        Instead (with ``sample_rate=None``): the expected batch size, together with ``public_n``.
    public_n : int, optional
        Number of records, known without the data. Without it the number of records counts as public, and the
        guarantee is for records zeroed out instead of added or removed.
    neighboring : {"add_remove", "zero_out"}, optional
        Neighbouring relation; without it as ``public_n`` says. DP-SGD costs the same under both.
    max_epochs : float, default=20
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    max_steps : int, optional
        Instead: the number of steps.
    solver : {"sgd", "adam"}, default="sgd"
    learning_rate_init : float, default=0.25 (classifiers), 0.1 (regressor)
        Step size: clipped gradients are small, so larger than without privacy. For "adam" about 0.01.
    momentum : float, default=0.0
        Of "sgd".
    alpha : float, default=0.0
        Strength of the L2 penalty.
    bounds_X : (lower, upper), optional
        Public bounds of the features, numbers or arrays of shape (n_features,): X is clipped to them and mapped to
        [-1, 1]. Without them X is used as it is.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the parameters of the last one; the cost adds up in ``privacy_spent_``.
    device : str, default="cpu"
    max_physical_batch : int, default=16384
        Most records in memory at once, over all nets trained together. Changes memory and time, never results.
    random_state : None, int or RandomState
        Seeds the initial parameters, which are public (without hidden layers they are zero). Never the batches or
        the noise.
    noise_seed : None, int or RandomState
        For tests only: seeds batches and noise. Whoever knows it can undo the noise.

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of all training of the current parameters.
    n_steps_, noise_multiplier_ : int, float
        Steps and noise of the last training.
    n_features_in_ : int
    module_ : torch.nn.Sequential
        The trained net."""

_CLASSES = """
    classes : array-like, optional
        Every label that a record could have. Without it the labels are taken from y, which is private only if they
        are public anyway."""


class _TableNet(DPSGDEstimator, BaseEstimator):
    """A net of linear layers for a table."""

    _parameter_constraints: dict[str, Any] = {
        "solver": [StrOptions({"sgd", "adam"})],
        "learning_rate_init": [Interval(numbers.Real, 0, None, closed="neither")],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "bounds_X": [None, tuple, list],
        "warm_start": ["boolean"],
        "max_physical_batch": [Interval(numbers.Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
    }

    def fit(self, X: Any, y: Any) -> Any:
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
        self._validate_params()
        settings_of(self)
        if self.bounds_X is not None:
            self._scale()

    def _device(self) -> torch.device:
        return device_of(self.device)

    def _prepare(self, X: Any, y: Any, fresh: bool) -> tuple[torch.Tensor, torch.Tensor]:
        X, y = validate_data(
            self, X, y, reset=fresh, dtype=np.float64, y_numeric=isinstance(self, RegressorMixin), multi_output=False
        )
        targets = self._targets(y, fresh)
        inputs = self._inputs(X)
        if fresh:
            self.module_ = self._module(inputs.shape[1])
        return inputs, targets

    def _task(self, settings: Settings, n: int) -> TrainingTask:
        return TrainingTask(
            module=self.module_,
            criterion=self._criterion(),
            optimizer=self._rule(),
            sample_rate=settings.sample_rate,
            steps=settings.steps,
            noise_multiplier=settings.noise,
            max_grad_norm=settings.max_grad_norm,
            expected_batch_size=settings.sample_rate * (n if self.public_n is None else self.public_n),
            seed=sequence(self.noise_seed),
        )

    def _rule(self) -> UpdateRule:
        if self.solver == "adam":
            return UpdateRule.adam(lr=self.learning_rate_init, weight_decay=self.alpha)
        return UpdateRule.sgd(lr=self.learning_rate_init, momentum=self.momentum, weight_decay=self.alpha)

    def _module(self, n_features: int) -> nn.Sequential:
        """Initial parameters: Glorot's uniform law from ``random_state``; zero for biases and without hidden layers."""
        generator = torch.Generator().manual_seed(int(sequence(self.random_state).generate_state(1, np.uint64)[0] >> 1))
        sizes = [n_features, *self._hidden(), self._n_outputs()]
        layers: list[nn.Module] = []
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float32)
            if len(sizes) > 2:
                nn.init.xavier_uniform_(layer.weight, generator=generator)
            else:  # convex: a random start could only do harm
                nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
            layers += [layer] if i == len(sizes) - 2 else [layer, self._activation()]
        return nn.Sequential(*layers)

    def _hidden(self) -> tuple[int, ...]:
        return ()

    def _activation(self) -> nn.Module:
        return nn.Identity()

    @abstractmethod
    def _n_outputs(self) -> int:
        """Width of the last layer."""

    @abstractmethod
    def _criterion(self) -> nn.Module:
        """Loss, summed over records."""

    @abstractmethod
    def _targets(self, y: np.ndarray, fresh: bool) -> torch.Tensor:
        """Targets as the loss wants them."""

    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Middle and half width of the bounds."""
        return bounds_of("bounds_X", self.bounds_X)

    def _inputs(self, X: np.ndarray) -> torch.Tensor:
        if self.bounds_X is not None:
            middle, half = self._scale()
            if middle.ndim and middle.shape != X.shape[1:]:
                raise ValueError(
                    f"Found bounds_X for {middle.shape[0]} features and X with {X.shape[1]}. Give one pair of numbers, "
                    "or one number per feature."
                )
            with np.errstate(over="ignore"):
                X = np.clip((X - middle) / half, -1.0, 1.0)
        with np.errstate(over="ignore"):  # beyond single precision: such a record contributes nothing
            return torch.from_numpy(X.astype(np.float32))

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "module_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        device = next(self.module_.parameters()).device
        with torch.no_grad():
            found: np.ndarray = self.module_(self._inputs(X).to(device)).cpu().numpy().astype(np.float64)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def bounds_of(name: str, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of public bounds (lower, upper)."""
    try:
        lower, upper = (np.asarray(one, dtype=float) for one in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"Found {name}={bounds!r}; (lower, upper) is needed, numbers or arrays.") from None
    if (
        lower.shape != upper.shape
        or lower.ndim > 1
        or not np.all(np.isfinite([lower, upper]))
        or np.any(lower >= upper)
    ):
        raise ValueError(f"Found {name}={bounds!r}; finite bounds of one shape with lower < upper are needed.")
    return (lower + upper) / 2, (upper - lower) / 2


class _TableClassifier(ClassifierMixin, _TableNet):
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            Every label, in the first call, if the constructor was not given them.

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
            vars(self).pop("_given_classes", None)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # as noise demands
        return tags

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _criterion(self) -> nn.Module:
        return nn.CrossEntropyLoss(reduction="sum")

    def _targets(self, y: np.ndarray, fresh: bool) -> torch.Tensor:
        check_classification_targets(y)
        if fresh and not getattr(self, "_given_classes", False):
            self.classes_ = np.unique(y) if self.classes is None else unique_labels(self.classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Found {len(self.classes_)} class: classification needs at least 2 classes. Declare them with "
                "classes=[...], whatever y holds."
            )
        return encode(y, self.classes_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits, shape (n_samples, n_classes); with two classes their difference, shape (n_samples,)."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each record, shape (n_samples,)."""
        outputs = self._outputs(X)
        return self.classes_[outputs.argmax(axis=1)]

    def privacy_assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, as plain sentences."""
        notes = super().privacy_assumptions()
        if self.classes is None:
            notes += (f"{type(self).__name__}: the labels that occur in y are public (declare them: classes=[...]).",)
        return notes


class DPLogisticRegression(_TableClassifier):
    __doc__ = f"""Logistic regression trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------{_CLASSES}{_SHARED}
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, random_state=0)
    >>> model = DPLogisticRegression(target_epsilon=2.0, target_delta=1e-5).fit(X, y)
    >>> model.coef_.shape, round(model.privacy_spent_.epsilon, 2)
    ((1, 20), 2.0)
    """

    def __init__(
        self, *, classes: Any = None, noise_multiplier: Any = None, target_epsilon: Any = None,
        target_delta: Any = None, target_mu: Any = None, max_grad_norm: float = 1.0, sample_rate: Any = 0.05,
        batch_size: Any = None, public_n: Any = None,
        neighboring: Any = None, max_epochs: float = 20, max_steps: Any = None,
        solver: str = "sgd", learning_rate_init: float = 0.25, momentum: float = 0.0, alpha: float = 0.0,
        bounds_X: Any = None, warm_start: bool = False, device: str = "cpu", max_physical_batch: int = 16384,
        random_state: Any = None, noise_seed: Any = None,
    ) -> None:  # fmt: skip
        self.classes = classes
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
        self.learning_rate_init = learning_rate_init
        self.momentum = momentum
        self.alpha = alpha
        self.bounds_X = bounds_X
        self.warm_start = warm_start
        self.device = device
        self.max_physical_batch = max_physical_batch
        self.random_state = random_state
        self.noise_seed = noise_seed

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the (scaled) features."""
        weight = self.module_[-1].weight.detach().cpu().numpy().astype(np.float64)
        return weight[1:] - weight[:1] if len(self.classes_) == 2 else weight

    @property
    def intercept_(self) -> np.ndarray:
        """Constant terms."""
        bias = self.module_[-1].bias.detach().cpu().numpy().astype(np.float64)
        return bias[1:] - bias[:1] if len(self.classes_) == 2 else bias


class _Hidden:
    """Hidden layers of the multi-layer perceptrons."""

    def _check_arguments(self) -> None:
        super()._check_arguments()  # type: ignore[misc]
        self._hidden()

    def _hidden(self) -> tuple[int, ...]:
        given = self.hidden_layer_sizes  # type: ignore[attr-defined]
        sizes = (given,) if isinstance(given, numbers.Integral) else tuple(given)
        if not all(isinstance(one, numbers.Integral) and one >= 1 for one in sizes):
            raise ValueError(f"Found hidden_layer_sizes={given!r}; integers >= 1 are needed, e.g. (64,).")
        return tuple(int(one) for one in sizes)

    def _activation(self) -> nn.Module:
        return ACTIVATIONS[self.activation]()  # type: ignore[attr-defined]


class DPMLPClassifier(_Hidden, _TableClassifier):
    __doc__ = f"""Multi-layer perceptron for classification, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(64,)
    activation : {{"relu", "tanh", "logistic", "identity"}}, default="relu"{_CLASSES}{_SHARED}
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> net = DPMLPClassifier(target_epsilon=3.0, target_delta=1e-5, bounds_X=(0, 16), classes=range(10))
    >>> bool(net.fit(X, y).score(X, y) > 0.7)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **_TableNet._parameter_constraints,
        "activation": [StrOptions(set(ACTIVATIONS))],
    }

    def __init__(
        self, hidden_layer_sizes: Any = (64,), activation: str = "relu", *, classes: Any = None,
        noise_multiplier: Any = None, target_epsilon: Any = None, target_delta: Any = None, target_mu: Any = None,
        max_grad_norm: float = 1.0, sample_rate: Any = 0.05, batch_size: Any = None, public_n: Any = None,
        neighboring: Any = None,
        max_epochs: float = 20, max_steps: Any = None, solver: str = "sgd", learning_rate_init: float = 0.25,
        momentum: float = 0.0, alpha: float = 0.0, bounds_X: Any = None, warm_start: bool = False,
        device: str = "cpu", max_physical_batch: int = 16384, random_state: Any = None, noise_seed: Any = None,
    ) -> None:  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.classes = classes
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
        self.learning_rate_init = learning_rate_init
        self.momentum = momentum
        self.alpha = alpha
        self.bounds_X = bounds_X
        self.warm_start = warm_start
        self.device = device
        self.max_physical_batch = max_physical_batch
        self.random_state = random_state
        self.noise_seed = noise_seed


class DPMLPRegressor(_Hidden, RegressorMixin, _TableNet):
    __doc__ = f"""Multi-layer perceptron for regression, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(64,)
    activation : {{"relu", "tanh", "logistic", "identity"}}, default="relu"
    bounds_y : (lower, upper), optional
        Public bounds of y: targets are clipped to them and mapped to [-1, 1]. Needed unless y is of that size: clipped
        gradients do not reach far.{_SHARED}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(500, 5, random_state=0)
    >>> net = DPMLPRegressor(target_epsilon=3.0, target_delta=1e-5, bounds_y=(-300, 300))
    >>> net.fit(X, y).predict(X).shape
    (500,)
    """

    _parameter_constraints: dict[str, Any] = {
        **_TableNet._parameter_constraints,
        "activation": [StrOptions(set(ACTIVATIONS))],
        "bounds_y": [None, tuple, list],
    }

    def __init__(
        self, hidden_layer_sizes: Any = (64,), activation: str = "relu", *, bounds_y: Any = None,
        noise_multiplier: Any = None, target_epsilon: Any = None, target_delta: Any = None, target_mu: Any = None,
        max_grad_norm: float = 1.0, sample_rate: Any = 0.05, batch_size: Any = None, public_n: Any = None,
        neighboring: Any = None,
        max_epochs: float = 20, max_steps: Any = None, solver: str = "sgd", learning_rate_init: float = 0.1,
        momentum: float = 0.0, alpha: float = 0.0, bounds_X: Any = None, warm_start: bool = False,
        device: str = "cpu", max_physical_batch: int = 16384, random_state: Any = None, noise_seed: Any = None,
    ) -> None:  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.bounds_y = bounds_y
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
        self.learning_rate_init = learning_rate_init
        self.momentum = momentum
        self.alpha = alpha
        self.bounds_X = bounds_X
        self.warm_start = warm_start
        self.device = device
        self.max_physical_batch = max_physical_batch
        self.random_state = random_state
        self.noise_seed = noise_seed

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Train on from the current parameters; the cost is added to ``privacy_spent_``."""
        self._train(X, y, fresh=not hasattr(self, "module_"))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values, shape (n_samples,)."""
        outputs = self._outputs(X)[:, 0]
        if self.bounds_y is None:
            return outputs
        middle, half = bounds_of("bounds_y", self.bounds_y)
        return outputs * half + middle

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.bounds_y is not None and bounds_of("bounds_y", self.bounds_y)[0].ndim:
            raise ValueError(f"Found bounds_y={self.bounds_y!r}; two numbers are needed.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # as noise demands
        return tags

    def _n_outputs(self) -> int:
        return 1

    def _criterion(self) -> nn.Module:
        return nn.MSELoss(reduction="sum")

    def _targets(self, y: np.ndarray, fresh: bool) -> torch.Tensor:
        values = check_array(y, ensure_2d=False, dtype=np.float64)
        with np.errstate(over="ignore"):  # a warning would tell of a record
            if self.bounds_y is not None:
                middle, half = bounds_of("bounds_y", self.bounds_y)
                values = np.clip((values - middle) / half, -1.0, 1.0)
            return torch.from_numpy(values.astype(np.float32)).unsqueeze(1)
