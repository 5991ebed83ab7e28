"""Ready-made nets for tables: scikit-learn estimators, no module to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array
from torch import nn

from ..randomness import Seed
from . import docstrings, scaling
from .scaling import Array, Bounds
from .settings import Neighboring
from .table_base import HiddenLayers, TableClassifier, TableNet

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

_LAYERS = """
    hidden_layer_sizes : tuple of int, default=(64,)
        Outputs of each hidden layer.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        What follows each hidden layer, by scikit-learn's names."""

_CLASSES = """
    classes : array-like, optional
        Every label that a record could have. Without it the labels are taken from y, which is private only if they
        are public anyway."""

_SHARED = f"""{docstrings.settings("default=0.05", "Instead (with ``sample_rate=None``)", "default=20")}
    solver : {{"sgd", "adam"}}, default="sgd"
        The optimizer; its steps are taken on noisy gradients.
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
        Where to train, by PyTorch's name.{docstrings.MEMORY}{docstrings.SEEDS}{docstrings.ATTRIBUTES}
    n_features_in_ : int"""


class DPLogisticRegression(TableClassifier):
    __doc__ = f"""Logistic regression trained with DP-SGD (Abadi et al. 2016). Training starts at zero.

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
        self, *, classes: ArrayLike | None = None, noise_multiplier: float | None = None,
        target_epsilon: float | None = None, target_delta: float | None = None, target_mu: float | None = None,
        max_grad_norm: float = 1.0, sample_rate: float | None = 0.05, batch_size: float | None = None,
        public_n: float | None = None, neighboring: Neighboring | None = None, max_epochs: float = 20,
        max_steps: float | None = None, solver: str = "sgd", learning_rate_init: float = 0.25, momentum: float = 0.0,
        alpha: float = 0.0, bounds_X: scaling.Given | None = None, warm_start: bool = False, device: Any = "cpu",
        max_physical_batch: int = 16384, random_state: Seed = None, noise_seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(
            noise_multiplier=noise_multiplier, target_epsilon=target_epsilon, target_delta=target_delta,
            target_mu=target_mu, max_grad_norm=max_grad_norm, sample_rate=sample_rate, batch_size=batch_size,
            public_n=public_n, neighboring=neighboring, max_epochs=max_epochs, max_steps=max_steps, solver=solver,
            learning_rate_init=learning_rate_init, momentum=momentum, alpha=alpha, bounds_X=bounds_X,
            warm_start=warm_start, device=device, max_physical_batch=max_physical_batch, random_state=random_state,
            noise_seed=noise_seed,
        )  # fmt: skip
        self.classes = classes

    @property
    def coef_(self) -> Array:
        """Weights of the (scaled) features."""
        return self._of_log_odds(self.module_[-1].weight)

    @property
    def intercept_(self) -> Array:
        """Constant terms."""
        return self._of_log_odds(self.module_[-1].bias)

    def _of_log_odds(self, parameter: torch.Tensor) -> Array:
        """As scikit-learn has it for two classes: one row, what the second class has more than the first."""
        values: Array = parameter.detach().cpu().numpy().astype(np.float64)
        return values[1:] - values[:1] if len(self.classes_) == 2 else values


class DPMLPClassifier(HiddenLayers, TableClassifier):
    __doc__ = f"""Multi-layer perceptron for classification, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------{_LAYERS}{_CLASSES}{_SHARED}
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> net = DPMLPClassifier(target_epsilon=3.0, target_delta=1e-5, bounds_X=(0, 16), classes=range(10))
    >>> bool(net.fit(X, y).score(X, y) > 0.7)
    True
    """

    def __init__(
        self, hidden_layer_sizes: int | Sequence[int] = (64,), activation: str = "relu", *,
        classes: ArrayLike | None = None, noise_multiplier: float | None = None, target_epsilon: float | None = None,
        target_delta: float | None = None, target_mu: float | None = None, max_grad_norm: float = 1.0,
        sample_rate: float | None = 0.05, batch_size: float | None = None, public_n: float | None = None,
        neighboring: Neighboring | None = None, max_epochs: float = 20, max_steps: float | None = None,
        solver: str = "sgd", learning_rate_init: float = 0.25, momentum: float = 0.0, alpha: float = 0.0,
        bounds_X: scaling.Given | None = None, warm_start: bool = False, device: Any = "cpu",
        max_physical_batch: int = 16384, random_state: Seed = None, noise_seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(
            noise_multiplier=noise_multiplier, target_epsilon=target_epsilon, target_delta=target_delta,
            target_mu=target_mu, max_grad_norm=max_grad_norm, sample_rate=sample_rate, batch_size=batch_size,
            public_n=public_n, neighboring=neighboring, max_epochs=max_epochs, max_steps=max_steps, solver=solver,
            learning_rate_init=learning_rate_init, momentum=momentum, alpha=alpha, bounds_X=bounds_X,
            warm_start=warm_start, device=device, max_physical_batch=max_physical_batch, random_state=random_state,
            noise_seed=noise_seed,
        )  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.classes = classes


class DPMLPRegressor(HiddenLayers, RegressorMixin, TableNet):
    __doc__ = f"""Multi-layer perceptron for regression, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------{_LAYERS}
    bounds_y : (lower, upper), optional
        Public bounds of y: targets are clipped to them and mapped to [-1, 1], predictions are mapped back and clipped
        to them. Needed unless y is of that size: clipped gradients do not reach far.{_SHARED}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(500, 5, random_state=0)
    >>> net = DPMLPRegressor(target_epsilon=3.0, target_delta=1e-5, bounds_y=(-300, 300))
    >>> net.fit(X, y).predict(X).shape
    (500,)
    """

    _parameter_constraints: dict[str, Any] = {
        **HiddenLayers._parameter_constraints,
        "bounds_y": [None, tuple, list],
    }

    def __init__(
        self, hidden_layer_sizes: int | Sequence[int] = (64,), activation: str = "relu", *,
        bounds_y: scaling.Given | None = None, noise_multiplier: float | None = None,
        target_epsilon: float | None = None, target_delta: float | None = None, target_mu: float | None = None,
        max_grad_norm: float = 1.0, sample_rate: float | None = 0.05, batch_size: float | None = None,
        public_n: float | None = None, neighboring: Neighboring | None = None, max_epochs: float = 20,
        max_steps: float | None = None, solver: str = "sgd", learning_rate_init: float = 0.1, momentum: float = 0.0,
        alpha: float = 0.0, bounds_X: scaling.Given | None = None, warm_start: bool = False, device: Any = "cpu",
        max_physical_batch: int = 16384, random_state: Seed = None, noise_seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(
            noise_multiplier=noise_multiplier, target_epsilon=target_epsilon, target_delta=target_delta,
            target_mu=target_mu, max_grad_norm=max_grad_norm, sample_rate=sample_rate, batch_size=batch_size,
            public_n=public_n, neighboring=neighboring, max_epochs=max_epochs, max_steps=max_steps, solver=solver,
            learning_rate_init=learning_rate_init, momentum=momentum, alpha=alpha, bounds_X=bounds_X,
            warm_start=warm_start, device=device, max_physical_batch=max_physical_batch, random_state=random_state,
            noise_seed=noise_seed,
        )  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.bounds_y = bounds_y

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
        tags.regressor_tags.poor_score = True  # as noise demands
        return tags

    def _n_outputs(self) -> int:
        return 1

    def _training_criterion(self) -> nn.Module:
        return nn.MSELoss(reduction="sum")

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        values = check_array(y, ensure_2d=False, dtype=np.float64)
        bounds = self._target_scale()
        return torch.from_numpy(scaling.to_single(values if bounds is None else bounds.scaled(values))).unsqueeze(1)
