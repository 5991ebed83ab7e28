"""Ready-made nets for tables: scikit-learn estimators, without a module to write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._documentation import documented
from .layers import HiddenLayerSizes
from .table_base import TableClassifier, TableNet, TableRegressor
from .table_records import Array, ArrayRecords, Limits


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class ArrayNet(TableNet):
    """Net for an array of numbers.

    Parameters
    ----------
    bounds_X : (lower, upper), optional
        Public bounds of the features, numbers or arrays of shape (n_features,): X is clipped to the
        bounds and mapped to [-1, 1]. Two numbers >= 0, such as (0, 255) for pixels, are mapped to
        [-0.5, 1.5], so that small amounts are near 0. Without bounds X is not scaled, and should be
        of size 1.
    """

    bounds_X: Limits | None = None


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPLogisticRegression(ArrayNet, TableClassifier):
    """Logistic regression trained with DP-SGD (Abadi et al. 2016). Training starts at zero.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, random_state=0)
    >>> model = DPLogisticRegression(target_epsilon=2.0, target_delta=1e-5).fit(X, y)
    >>> model.coef_.shape, round(model.privacy_spent_.epsilon, 2)
    ((1, 20), 2.0)
    """

    @property
    def coef_(self) -> Array:
        """Weights of the features in their own units, shape (1 or n_classes, n_features)."""
        return self._rows_of_log_odds(linear_map(self)[0])

    @property
    def intercept_(self) -> Array:
        """Constant terms, shape (1,) or (n_classes,)."""
        return self._rows_of_log_odds(linear_map(self)[1])

    @property
    def coef_noise_(self) -> Array | None:
        """Standard deviation of the noise in ``coef_``, in its shape; None if it is not known."""
        noise = linear_map_noise(self)
        if noise is None or len(self.classes_) > 2:
            return noise
        return math.sqrt(2.0) * noise[:1]

    def _rows_of_log_odds(self, values: Array) -> Array:
        """Weights in scikit-learn's form: for two classes the second minus the first."""
        return values[1:] - values[:1] if len(self.classes_) == 2 else values


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPLinearRegression(ArrayNet, TableRegressor):
    """Linear regression trained with DP-SGD (Abadi et al. 2016). Training starts at zero.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bounds = {"bounds_X": (-0.2, 0.2), "bounds_y": (25, 350)}
    >>> model = DPLinearRegression(target_epsilon=3.0, target_delta=1e-5, **bounds)
    >>> model.fit(X, y).coef_.shape, round(model.privacy_spent_.epsilon, 2)
    ((10,), 3.0)
    """

    @property
    def coef_(self) -> Array:
        """Weights of the features in units of y per unit of each feature, before clipping."""
        return np.asarray(self._map_in_units_of_y()[0][0])

    @property
    def intercept_(self) -> float:
        """Constant term, in units of y."""
        return float(self._map_in_units_of_y()[1][0])

    @property
    def coef_noise_(self) -> Array | None:
        """Standard deviation of the noise in ``coef_``, in its shape; None if it is not known."""
        noise, bounds = linear_map_noise(self), self._target_scale()
        return noise if noise is None else noise[0] * (1.0 if bounds is None else bounds.half)

    def _map_in_units_of_y(self) -> tuple[Array, Array]:
        weights, constants = linear_map(self)
        bounds = self._target_scale()
        if bounds is None:
            return weights, constants
        return weights * bounds.half, constants * bounds.half + bounds.zero


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPMLPClassifier(ArrayNet, TableClassifier):
    """Multi-layer perceptron for classification, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Outputs of each hidden layer. "auto": (64,), or (64, 64) for a public number of at least
        25,000 records.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        Activation of the hidden layers, by scikit-learn's names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> net = DPMLPClassifier(
    ...     target_epsilon=3.0, target_delta=1e-5, bounds_X=(0, 16), classes=range(10)
    ... )
    >>> bool(net.fit(X, y).score(X, y) > 0.7)
    True
    """

    hidden_layer_sizes: HiddenLayerSizes = field(default="auto", kw_only=False)
    activation: str = field(default="relu", kw_only=False)


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPMLPRegressor(ArrayNet, TableRegressor):
    """Multi-layer perceptron for regression, trained with DP-SGD (Abadi et al. 2016).

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Outputs of each hidden layer. "auto": (64,), or (64, 64) for a public number of at least
        25,000 records.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        Activation of the hidden layers, by scikit-learn's names.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(500, 5, random_state=0)
    >>> net = DPMLPRegressor(target_epsilon=3.0, target_delta=1e-5, bounds_y=(-300, 300))
    >>> net.fit(X, y).predict(X).shape
    (500,)
    """

    hidden_layer_sizes: HiddenLayerSizes = field(default="auto", kw_only=False)
    activation: str = field(default="relu", kw_only=False)


def linear_map(net: TableNet) -> tuple[Array, Array]:
    """Weights and constants of a linear net, for features in their own units."""
    check_is_fitted(net, "module_")
    last, bounds = net.module_[-1], ArrayRecords(net).bounds
    parts = (last.weight, last.bias)
    weights, constants = (part.detach().cpu().numpy().astype(np.float64) for part in parts)
    if bounds is not None:
        weights = weights / bounds.half
        constants = constants - (weights * bounds.zero).sum(axis=1)
    return weights, constants


def linear_map_noise(net: TableNet) -> Array | None:
    """Standard deviations of the noise in a linear net's weights; None if not known."""
    (weights, _), bounds = linear_map(net), ArrayRecords(net).bounds
    if net.weight_noise_ is None:
        return None
    half = 1.0 if bounds is None else bounds.half
    return np.broadcast_to(net.weight_noise_ / half, weights.shape)
