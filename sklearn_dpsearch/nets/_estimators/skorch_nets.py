"""skorch nets trained with DP-SGD: any suitable module of the user's own."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ..._documentation import documented
from ...data._columns import array_of
from .._engines import losses
from .._records import label_targets
from .input_records import KINDS, numeric_array
from .settings import Number
from .skorch_base import SkorchNet, with_shared_arguments


@documented
class DPNeuralNetClassifier(SkorchNet, skorch.NeuralNetClassifier):
    """Classifier with a module of your own, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    classes : list
        Labels in the order of the module's outputs. Required: labels taken from y would tell which
        ones occur.

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
        self, module: Any, *, criterion: Any = nn.CrossEntropyLoss,
        classes: ArrayLike | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(module, criterion=criterion, classes=classes, **kwargs)

    def _check_target(self) -> None:
        if self.classes is None or len(self.classes) == 0:
            raise ValueError(
                f"{type(self).__name__} needs classes=[...], the labels in the order of the "
                "module's outputs: taken from y they would tell which labels occur."
            )

    def _check_outputs(self, shape: tuple[int, ...], targets: Tensor) -> None:
        if shape != (len(self.classes),):
            raise ValueError(
                f"Found outputs of shape {shape} per record and {len(self.classes)} classes; the "
                "module needs one output per class (otherwise an error would tell which labels "
                "occur). For one logit use DPNeuralNetBinaryClassifier."
            )

    def _encoded_targets(self, y: Any) -> Tensor:
        return label_targets(y, np.asarray(self.classes))

    def _blank_target(self) -> Tensor:
        return torch.zeros(1, dtype=torch.int64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@documented
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
    def __init__(self, module: Any, *, criterion: Any = nn.MSELoss, **kwargs: Any) -> None:
        super().__init__(module, criterion=criterion, **kwargs)

    def _check_outputs(self, shape: tuple[int, ...], targets: Tensor) -> None:
        known_loss = type(self.criterion_) in losses.SUMMED_LOSSES  # others may take other shapes
        if known_loss and shape != targets.shape[1:]:
            raise ValueError(
                f"Found outputs of shape {shape} and targets of shape {tuple(targets.shape[1:])} "
                "per record; give the module as many outputs as y has columns."
            )

    def _targets(self, y: Any) -> Tensor:
        values = numeric_array("y", y)
        self.y_is_column_ = values.ndim == 2
        return self._encoded_targets(values)

    def _encoded_targets(self, y: Any) -> Tensor:
        values = torch.from_numpy(numeric_array("y", y)).float()
        return values if values.ndim > 1 else values.unsqueeze(1)

    def _blank_target(self) -> Tensor:
        shape = self.output_shape_ or (1,)
        self.y_is_column_ = shape != (1,)
        return torch.zeros(1, *shape)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted values, in the shape of the y that was fitted."""
        values: NDArray[Any] = super().predict(X)
        columns = values[:, None] if values.ndim == 1 else values
        return columns if getattr(self, "y_is_column_", True) else columns[:, 0]


# --- one logit per label --------------------------------------------------------------------------


class LogitPerLabel(SkorchNet, skorch.NeuralNetBinaryClassifier):
    """Classifier with one logit per label.

    Parameters
    ----------
    threshold : float, default=0.5
        Probability above which a record has the label.
    """

    outputs = "logits"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Number(numbers.Real, 0, 1, closed="both")],
    }

    @with_shared_arguments
    def __init__(
        self, module: Any, *, criterion: Any = nn.BCEWithLogitsLoss,
        classes: ArrayLike | None = None, threshold: float = 0.5, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(module, criterion=criterion, threshold=threshold, **kwargs)
        self.classes = classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@documented
class DPNeuralNetBinaryClassifier(LogitPerLabel):
    """Binary classifier with a module of one logit, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    classes : list of two, default=[0, 1]
        Labels; the logit belongs to the second.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels.

    Notes
    -----
    The default criterion is ``BCEWithLogitsLoss``: the module returns a logit for each record,
    shape (n,) or (n, 1). Its ``pos_weight`` and ``weight`` are public constants.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X, y = np.random.default_rng(0).normal(size=(100, 3)), np.array([0, 1] * 50)
    >>> net = DPNeuralNetBinaryClassifier(
    ...     torch.nn.Linear, module__in_features=3, module__out_features=1,
    ...     noise_multiplier=2.0, sample_rate=0.1, max_steps=20,
    ... )
    >>> net.fit(X, y).predict_proba(X).shape
    (100, 2)
    """

    one_logit = True

    @property
    def classes_(self) -> NDArray[Any]:
        """Two labels."""
        return np.asarray([0, 1] if self.classes is None else self.classes)

    def _check_target(self) -> None:
        labels = self.classes_.tolist()
        if len(labels) != 2:
            raise ValueError(
                f"Found classes={labels}; {type(self).__name__} needs two labels. For more of them "
                "use DPNeuralNetClassifier with one output per class."
            )

    def _check_outputs(self, shape: tuple[int, ...], targets: Tensor) -> None:
        if shape not in ((), (1,)):
            raise ValueError(
                f"Found outputs of shape {shape} per record; one logit is needed, shape (n,) or "
                "(n, 1). For one output per class use DPNeuralNetClassifier."
            )

    def _blank_target(self) -> Tensor:
        return self._encoded_targets([self.classes_[0]])

    def _encoded_targets(self, y: Any) -> Tensor:
        codes = label_targets(y, self.classes_)
        targets = torch.where(codes < 0, torch.nan, codes.float())
        return targets if self.output_shape_ == () else targets.unsqueeze(1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each record."""
        places = (self.predict_proba(X)[:, 1] > self.threshold).astype(int)
        return np.asarray(self.classes_[places])


@documented
class DPNeuralNetMultiLabelClassifier(LogitPerLabel):
    """Classifier with any number of labels per record, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    classes : list, optional
        Names of the labels, in the order of the columns of y.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Names or numbers of the labels.

    Notes
    -----
    y has a column for each label, shape (n_samples, n_labels), of 0 and 1. The default criterion is
    ``BCEWithLogitsLoss``: the module returns a logit for each label. ``predict_proba`` and
    ``predict`` are of the shape of y, as those of ``sklearn.neural_network.MLPClassifier``.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> net = DPNeuralNetMultiLabelClassifier(
    ...     torch.nn.Linear, module__in_features=3, module__out_features=2,
    ...     noise_multiplier=2.0, sample_rate=0.1, max_steps=20,
    ... )
    >>> net.fit(X, X[:, :2] > 0).predict(X).shape
    (100, 2)
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """Names or numbers of the labels."""
        return np.arange(self.n_labels_) if self.classes is None else np.asarray(self.classes)

    def _check_outputs(self, shape: tuple[int, ...], targets: Tensor) -> None:
        labels, n_classes = targets.shape[1], len(self.classes_)
        if n_classes != labels:
            needed = "one name for each is needed."
            raise ValueError(f"Found {labels} columns in y and {n_classes} classes; {needed}")
        if shape != (labels,):
            needed = "the module needs one logit for each."
            raise ValueError(
                f"Found outputs of shape {shape} per record and {labels} columns in y; {needed}"
            )

    def _targets(self, y: Any) -> Tensor:
        indicators = label_indicators(y)
        self.n_labels_ = indicators.shape[1]
        return indicators

    def _encoded_targets(self, y: Any) -> Tensor:
        return label_indicators(y)

    def _blank_target(self) -> Tensor:
        shape = self.output_shape_ or (len(self.classes_),)
        self.n_labels_ = shape[0]
        return torch.zeros(1, *shape)

    def _get_predict_nonlinearity(self) -> Any:
        is_logit = isinstance(self.criterion_, torch.nn.BCEWithLogitsLoss)
        auto = self.predict_nonlinearity == "auto" and is_logit
        return torch.sigmoid if auto else super()._get_predict_nonlinearity()

    def predict(self, X: Any) -> NDArray[Any]:
        """1 where a record has a label, shape (n_samples, n_labels)."""
        return np.asarray((self.predict_proba(X) > self.threshold).astype(int))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.two_d_labels = True
        return tags


def label_indicators(y: Any) -> Tensor:
    """Indicators of several labels per record, shape (n, labels); nan in place of other values.

    Raises
    ------
    ValueError
        For y without columns, and for columns that are no numbers.
    """
    array = array_of(y, "y")
    if array.ndim != 2:
        needed = "a column for each label, shape (n_samples, n_labels)"
        raise ValueError(f"Expected y with {needed}, got {array.shape}.")
    if array.dtype.kind not in "biuf":
        kind = KINDS.get(array.dtype.kind, "others")
        remedy = "whether a record has each label (sklearn's MultiLabelBinarizer)"
        raise ValueError(f"Found y of {kind}; 0 and 1 are needed: {remedy}.")
    return torch.from_numpy(np.where(np.isin(array, (0, 1)), array, np.nan).astype(np.float32))
