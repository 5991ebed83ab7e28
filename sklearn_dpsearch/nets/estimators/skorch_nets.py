"""skorch nets trained with DP-SGD: any suitable module of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray

from ..engines import losses
from .docstrings import documented
from .labels import encode
from .skorch_base import SkorchNet, with_shared_arguments
from .user_modules import array


@documented()
class DPNeuralNetClassifier(SkorchNet, skorch.NeuralNetClassifier):
    """Classifier with a module of your own, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    classes : list
        Labels in the order of the module's outputs. Required: labels taken from y would tell which ones occur.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.

    Notes
    -----
    The default criterion is ``CrossEntropyLoss``: the module returns logits.

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

    outputs = "classes"

    @with_shared_arguments
    def __init__(
        self,
        module: Any,
        *,
        criterion: Any = torch.nn.CrossEntropyLoss,
        classes: ArrayLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, criterion=criterion, classes=classes, **kwargs)

    def _check_target(self) -> None:
        if self.classes is None or len(self.classes) == 0:
            raise ValueError(
                f"{type(self).__name__} needs classes=[...], the labels in the order of the module's outputs: taken "
                "from y they would tell which labels occur."
            )

    def _check_outputs(self, shape: tuple[int, ...], targets: torch.Tensor) -> None:
        if shape != (len(self.classes),):
            raise ValueError(
                f"Found outputs of shape {shape} per record and {len(self.classes)} classes; the "
                "module needs one output per class (otherwise an error would tell which labels occur). For one logit "
                "use DPNeuralNetBinaryClassifier."
            )

    def _targets(self, y: Any) -> torch.Tensor:
        return encode(y, np.asarray(self.classes))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record."""
        found: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return found


@documented()
class DPNeuralNetRegressor(SkorchNet, skorch.NeuralNetRegressor):
    """Regressor with a module of your own, trained with DP-SGD (Abadi et al. 2016).

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

    outputs = "numbers"

    @with_shared_arguments
    def __init__(self, module: Any, *, criterion: Any = torch.nn.MSELoss, **kwargs: Any) -> None:
        super().__init__(module, criterion=criterion, **kwargs)

    def _check_outputs(self, shape: tuple[int, ...], targets: torch.Tensor) -> None:
        known = type(self.criterion_) in losses.KNOWN  # others may take other shapes
        if known and shape != targets.shape[1:]:
            raise ValueError(
                f"Found outputs of shape {shape} and targets of shape {tuple(targets.shape[1:])} "
                "per record; give the module as many outputs as y has columns."
            )

    def _targets(self, y: Any) -> torch.Tensor:
        values = torch.from_numpy(array("y", y)).float()
        self.y_is_column_ = values.ndim == 2
        return values if values.ndim > 1 else values.unsqueeze(1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted values, in the shape of the y that was fitted."""
        found: NDArray[Any] = super().predict(X)
        return found if getattr(self, "y_is_column_", True) else found[:, 0]
