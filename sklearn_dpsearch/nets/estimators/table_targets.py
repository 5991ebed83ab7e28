"""Nets for tables that predict labels, and those that predict numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_array
from torch import nn

from ...data.labels import ClassWeights, class_weights, classes_in
from . import scaling
from .labels import encode
from .scaling import Array, Bounds
from .table_base import TableNet

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11


class LogitClassifier(ClassifierMixin, ABC):
    """Classifier of tables by logits."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n_samples, n_classes)."""
        probabilities: Array = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record, shape (n_samples,)."""
        places = self.predict_log_proba(X).argmax(axis=1)  # first, because it raises for an unfitted model
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # because of the noise
        return tags


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableClassifier(LogitClassifier, TableNet):
    """Net for a table with labels, and probabilities from logits.

    Parameters
    ----------
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which is private only if
        they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of the loss of its records, a constant known without the data; other labels have weight 1.
        "balanced" would count the labels, and is refused. Weighted gradients are clipped, so weights below 1 have more
        effect than weights above 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    """

    classes: ArrayLike | None = None
    class_weight: ClassWeights = None

    def _check_target(self) -> None:
        declared = self._declared("classes")
        class_weights(self.class_weight, None if declared is None else unique_labels(declared))

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
        elif fresh and self._declared("classes") is None:
            raise ValueError("Expected classes=[...] in the first call of partial_fit.")
        elif not fresh and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"Expected the classes of the first call, {self.classes_.tolist()}, got {classes!r}.")
        self._given_classes = fresh and classes is not None
        try:
            self._train(X, y, fresh)
        finally:
            del self._given_classes
        return self

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _contrasts(self) -> Array:
        """Log odds of the second of two classes; of more, the log of each probability less the mean over classes."""
        n = len(self.classes_)
        return np.array([[-1.0, 1.0]]) if n == 2 else np.eye(n) - 1.0 / n

    def _training_criterion(self) -> nn.Module:
        weights = class_weights(self.class_weight, self.classes_)
        constants = None if self.class_weight is None else torch.from_numpy(weights.astype(np.float32))
        return nn.CrossEntropyLoss(reduction="sum", weight=constants)

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        if fresh and not getattr(self, "_given_classes", False):
            self.classes_ = classes_in(y, self._declared("classes"))
        return encode(y, self.classes_)

    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes); with two classes their difference, shape (n_samples,)."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        logarithms: Array = log_softmax(self._outputs(X), axis=1)
        return logarithms

    def _assumed_of_target(self) -> tuple[str, ...]:
        notes: tuple[str, ...] = ()
        if self._declared("classes") is None:
            notes += (f"{type(self).__name__}: the labels that occur in y are public (declare them: classes=[...]).",)
        if self.class_weight is not None:
            notes += (f"{type(self).__name__}: class_weight was not taken from the labels.",)
        return notes


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableRegressor(RegressorMixin, TableNet):
    """Net for a table with numbers, whose predictions lie inside of public bounds.

    Parameters
    ----------
    bounds_y : (lower, upper), optional
        Public bounds of y: targets are clipped to the bounds and mapped to [-1, 1], predictions are mapped back and
        clipped. Needed for y far outside of [-1, 1], which clipped gradients do not reach.
    """

    bounds_y: scaling.Given | None = None

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

    def _contrasts(self) -> Array:
        """The prediction, before it is clipped."""
        bounds = self._target_scale()
        return np.array([[1.0 if bounds is None else float(bounds.half)]])

    def _training_criterion(self) -> nn.Module:
        return nn.MSELoss(reduction="sum")

    def _targets(self, y: NDArray[Any], fresh: bool) -> torch.Tensor:
        values = check_array(y, ensure_2d=False, dtype=np.float64)
        bounds = self._target_scale()
        return torch.from_numpy(scaling.to_single(values if bounds is None else bounds.scaled(values))).unsqueeze(1)
