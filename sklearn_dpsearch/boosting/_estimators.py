"""Gradient boosting for classes and for numbers: constructor, targets and predictions."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval

from .._documentation import documented
from ..data import _labels
from ..data._labels import ClassWeights
from ._base import GradientBoosting
from ._capacity import CLASS_PACE, NUMBER_PACE
from ._losses import Array, BinaryLoss, Loss, SoftmaxLoss, SquaredLoss
from ._partitions import lazy_on_partitions
from ._public_start import ToOutputs, logits_from_probabilities


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPGradientBoostingClassifier(ClassifierMixin, GradientBoosting):
    """Classifier of tables by gradient boosting on cells that do not depend on the records.

    Parameters
    ----------
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which
        is private only if they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of its records, a constant known without the data; others have the weight 1.
        Weights are free, and move the logits by their logarithms. "balanced" would count the
        labels, and is refused.
    max_iter : int or "rule", default="rule"
        Rounds of boosting. The noise of a round grows with the root of their number. "rule": 400,
        n·μ ÷ 25 where that is more, at most 1200; the number I of ``parts``, but at least 200,
        where that is less.
    learning_rate : float or "rule", default="rule"
        Share of each round's step that is taken. "rule": 120 ÷ rounds, at most 0.4.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"age": np.arange(1000) % 60 + 20, "job": ["clerk", "nurse"] * 500})
    >>> table["pay"] = np.where((table["age"] > 40) & (table["age"] < 60), "high", "low")
    >>> schema = {"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"]}
    >>> model = DPGradientBoostingClassifier(
    ...     schema, target="pay", target_epsilon=3.0, target_delta=1e-5
    ... )
    >>> bool(model.fit(table, table["pay"]).score(table, table["pay"]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GradientBoosting._parameter_constraints,
        "classes": ["array-like", None],
    }
    _pace, _method = CLASS_PACE, "predict_proba"

    classes: ArrayLike | None = None
    class_weight: ClassWeights = None
    classes_: NDArray[Any] = field(init=False)

    @lazy_on_partitions
    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes).

        For two classes their difference is returned, of shape (n_samples,).
        """
        return self._logits(self._outputs(X))

    @lazy_on_partitions
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        return log_probabilities(self.decision_function(X))

    @lazy_on_partitions
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n_samples, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @lazy_on_partitions
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record, shape (n_samples,)."""
        return self._labels_from_logits(self.decision_function(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after each round.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
        """
        for outputs in self._staged_outputs(X):
            yield np.exp(log_probabilities(self._logits(outputs)))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels that are most probable after each round.

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        for outputs in self._staged_outputs(X):
            yield self._labels_from_logits(self._logits(outputs))

    def _assumptions(self) -> Iterator[str]:
        yield from super()._assumptions()
        are_declared = self._declared("classes") is not None
        yield from _labels.assumptions_about_labels(are_declared, self.class_weight)

    def _check_arguments(self) -> None:
        super()._check_arguments()
        declared = self._declared("classes")
        classes = None if declared is None else _labels.sorted_classes(declared)
        _labels.class_weights(self.class_weight, classes, zero=False)

    def _loss_and_targets(self, y: NDArray[Any]) -> tuple[Loss, NDArray[Any], NDArray[np.bool_]]:
        self.classes_ = _labels.classes_in(y, self._declared("classes"))
        _labels.class_weights(self.class_weight, self.classes_, zero=False)
        codes = _labels.class_codes(y, self.classes_)
        if len(self.classes_) == 2:
            return BinaryLoss(), np.where(codes == 1, np.int8(1), np.int8(-1)), codes < 0
        if self._facts.coded.directed:
            raise ValueError(
                f"Found directions of columns, and {len(self.classes_)} classes of "
                f"{type(self).__name__}; they need two classes, or numbers. Leave monotonic_cst "
                f"and the directions of the schema out."
            )
        return SoftmaxLoss(len(self.classes_)), codes, codes < 0

    def _from_init(self) -> tuple[ToOutputs, int]:
        labels = self.classes_ if self.init is None else np.asarray(self.init.classes_)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        return logits_from_probabilities(self.classes_, labels), n_outputs

    def _curves_of_outputs(self) -> Array:
        n_classes = len(self.classes_)
        return np.ones((1, 1)) if n_classes == 2 else np.eye(n_classes) - 1.0 / n_classes

    def _logits(self, outputs: Array) -> Array:
        shift = np.log(_labels.class_weights(self.class_weight, self.classes_, zero=False))
        return outputs[0] + shift[1] - shift[0] if len(outputs) == 1 else outputs.T + shift

    def _labels_from_logits(self, logits: Array) -> NDArray[Any]:
        places = (logits > 0).astype(np.intp) if logits.ndim == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # because of the noise
        return tags


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPGradientBoostingRegressor(RegressorMixin, GradientBoosting):
    """Regressor of tables by gradient boosting on cells that do not depend on the records.

    Parameters
    ----------
    bounds_y : (lower, upper), optional
        Public bounds of y, to which targets and predictions are clipped. Needed without ``target``.
    max_residual : float, default=0.2
        Share of half the distance of the bounds at which residuals are clipped (Huber's loss). The
        noise grows with it.
    max_iter : int or "rule", default="rule"
        Rounds of boosting. The noise of a round grows with the root of their number. "rule": 800,
        n·μ ÷ 12.5 where that is more, at most 1600; the number I of ``parts``, but at least
        400, where that is less.
    learning_rate : float or "rule", default="rule"
        Share of each round's step that is taken. "rule": 240 ÷ rounds, at most 0.4.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"rooms": np.arange(1000) % 9 + 1, "city": ["Ur", "Uruk"] * 500})
    >>> table["price"] = 10.0 * table["rooms"]
    >>> model = DPGradientBoostingRegressor(
    ...     {"rooms": (1, 9), "city": ["Ur", "Uruk"], "price": (0, 100)},
    ...     target="price", target_epsilon=3.0, target_delta=1e-5,
    ... )
    >>> bool(model.fit(table, table["price"]).score(table, table["price"]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GradientBoosting._parameter_constraints,
        "bounds_y": [None, tuple, list],
        "max_residual": [Interval(numbers.Real, 0, 2, closed="right")],
    }
    _pace, _method = NUMBER_PACE, "predict"

    bounds_y: tuple[float, float] | None = None
    max_residual: float = 0.2

    @lazy_on_partitions
    def predict(self, X: Any) -> Array:
        """Predicted values, shape (n_samples,), inside ``bounds_y``."""
        return self._values_from_outputs(self._outputs(X)[0])

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predicted values after each round.

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        for outputs in self._staged_outputs(X):
            yield self._values_from_outputs(outputs[0])

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if not self._scale()[1] > 0:
            raise ValueError(
                f"Found bounds_y={self._declared('bounds_y')!r} and "
                f"max_residual={self.max_residual!r}, for which residuals are clipped at 0 in "
                f"double precision. Give wider bounds, in another unit."
            )

    def _loss_and_targets(self, y: NDArray[Any]) -> tuple[Loss, NDArray[Any], NDArray[np.bool_]]:
        (lower, upper), (middle, unit) = self._bounds(), self._scale()
        missing = np.isnan(y)
        values = np.clip(np.where(missing, middle, y), lower, upper)
        return SquaredLoss(), (values - middle) / unit, missing

    def _from_init(self) -> tuple[ToOutputs, int]:
        bounds, (middle, unit) = self._bounds(), self._scale()
        return lambda answers: (np.clip(answers, *bounds) - middle) / unit, 1

    def _curves_of_outputs(self) -> Array:
        return np.full((1, 1), self._scale()[1])

    def _values_from_outputs(self, outputs: Array) -> Array:
        middle, unit = self._scale()
        return np.clip(outputs * unit + middle, *self._bounds())

    def _bounds(self) -> tuple[float, float]:
        """Checked public bounds of the target: two finite numbers in order."""
        bounds = self._declared("bounds_y")
        is_pair = isinstance(bounds, Sequence) and len(bounds) == 2
        if is_pair and all(isinstance(end, numbers.Real) for end in bounds):
            lower, upper = float(bounds[0]), float(bounds[1])
            if -np.inf < lower < upper < np.inf:
                return lower, upper
        raise ValueError(
            f"Found bounds_y={bounds!r}; two finite numbers, lower < upper, that y lies between "
            "are needed, as bounds_y or from a target in the schema."
        )

    def _scale(self) -> tuple[float, float]:
        """Value that stands for 0, and largest residual, which stands for 1."""
        lower, upper = self._bounds()
        return lower / 2 + upper / 2, float(self.max_residual) * (upper / 2 - lower / 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # because of the noise
        return tags


def log_probabilities(logits: Array) -> Array:
    """Logarithms of class probabilities from logits.

    Shape (n_samples, n_classes); logits are of all classes, or of the second one alone.
    """
    if logits.ndim == 1:
        logits = np.column_stack([np.zeros_like(logits), logits])
    return np.asarray(log_softmax(logits, axis=1))
