"""skorch nets trained with DP-SGD: any suitable module of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray

from ..engines import losses
from . import docstrings
from .labels import encode
from .skorch_base import SkorchNet
from .user_modules import array

MODULE = f"""
    Parameters
    ----------
    module : torch.nn.Module class or instance
        As in skorch; ``module__…`` sets its arguments. It must act on each record alone: as a graph of known
        operations, or as code without branches on values, which is run on one record at a time. Batch statistics,
        hooks, and code that keeps something of a forward pass are refused. Parameters are in single precision.
    criterion : torch.nn.Module class or instance
        As in skorch; its reduction is set to "sum".{docstrings.settings("optional", "default=10", docstrings.GIVEN)}{
    docstrings.MEMORY
}"""

OTHERS = f"""
    lr : float or "auto", default="auto"
        Initial step size. "auto", for SGD, Adam and AdamW, derives it from noise, steps and number of records; it falls
        linearly to zero unless a schedule is given (:doc:`defaults </learn/net_defaults>`).
    lr_factor : float, default=1.0
        Factor on the step size, to be searched: its best value changes little with ε and the number of records.
    average : float, default=0.0
        Share of the last steps over which the released parameters are averaged.
    engine : {{"auto", "opacus"}}, default="auto"
        Source of per-sample gradients. "opacus" takes Opacus's (its validator, its layer rules, its ``DPLSTM``), on
        Opacus's word; sampling, noise and accounting stay.{docstrings.SEEDS}{docstrings.LONG}
    train_split : None
        Only None is allowed: validation inside of a fit would use records without noise.
    **kwargs : dict
        As in skorch: ``optimizer``, which must work on given gradients, ``optimizer__param_groups``, ``device``,
        ``warm_start``, ``predict_nonlinearity``; as ``callbacks`` a list of ``LRScheduler`` (schedules that do not look
        at losses), ``Freezer``, ``ProgressBar`` and ``TrainEndCheckpoint`` (all others see raw batches, and are
        refused).{docstrings.ATTRIBUTES}"""


class DPNeuralNetClassifier(SkorchNet, skorch.NeuralNetClassifier):
    __doc__ = f"""Classifier with a module of your own, trained with DP-SGD (Abadi et al. 2016).
{MODULE}
    classes : list
        Labels in the order of the module's outputs. Required: labels taken from y would tell which ones occur.{OTHERS}
    classes_ : ndarray of shape (n_classes,)

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
        losses.check_for_classes(self.criterion)

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


class DPNeuralNetRegressor(SkorchNet, skorch.NeuralNetRegressor):
    __doc__ = f"""Regressor with a module of your own, trained with DP-SGD (Abadi et al. 2016).
{MODULE}{OTHERS}

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

    def __init__(self, module: Any, *, criterion: Any = torch.nn.MSELoss, **kwargs: Any) -> None:
        super().__init__(module, criterion=criterion, **kwargs)

    def _check_target(self) -> None:
        losses.check_for_numbers(self.criterion)

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
