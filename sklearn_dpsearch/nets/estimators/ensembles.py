"""Means of a net for data frames and of boosting, each with half of the privacy."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from ..._docstrings import documented
from ...boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from ...boosting.base import GradientBoosting
from ...boosting.estimators import log_probabilities
from ...boosting.table_model import STATED_DELTA, TableModel
from ...data.labels import ClassWeights
from ...data.persons import number_of_persons, persons_in
from ...data.records import number_of_records
from ...privacy import Guarantee, calibrate, compose
from ...privacy._checks import check_size_of_delta
from ...privacy._types import Neighboring
from ...privacy.spent import Component, PrivacySpent
from ..estimators import cost
from .base import PLACES
from .frame_estimators import DPTabularClassifier, DPTabularRegressor, FrameNet
from .table_base import RATE, LogitClassifier
from .table_records import Array, Given

#: Share of μ that each of the two models gets: their μ² add up. Rounded down.
SHARE = math.nextafter(math.sqrt(0.5), 0.0)
#: Weight of the net in the mean where n·μ is between FEW and MANY. Beyond them it falls with the root of the ratio.
WEIGHT, FEW, MANY = 0.5, 4_000.0, 10_000.0
#: Smallest weight of the net.
LEAST_WEIGHT = 0.1
#: Attributes of a model after a successful fit.
FITTED = ("net_", "boosting_", "net_weight_", "privacy_spent_", "classes_", "n_features_in_", "feature_names_in_")


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TabularEnsemble(TableModel):
    """Two private models of one table, and the composition of their guarantees.

    Parameters
    ----------
    target_epsilon, target_delta : float, optional
        Guarantee of one fit, to which both models are calibrated.
    target_mu : float, optional
        Instead: μ of the Gaussian guarantee of both together.
    batch_size : float, optional
        Expected batch size of the net, as a constant: by default it follows from the number of records.
    neighboring : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation, as for the nets for data frames.
    random_state : None, int or RandomState
        Seeds initial weights and cells, which are public. Never the noise.
    noise_seed : None, int or RandomState
        For tests only: seeds noise and batches. The seed is enough to undo the noise.

    Attributes
    ----------
    net_ : DPTabularClassifier or DPTabularRegressor
        The net.
    boosting_ : DPGradientBoostingClassifier or DPGradientBoostingRegressor
        The other model.
    net_weight_ : float
        Weight of the net in the mean.
    privacy_spent_ : PrivacySpent
        Cost of both models together.

    Notes
    -----
    The two make different errors, so that the mean is about as good as the better one, varies less from fit to fit, and
    needs no choice between them. The net has the weight 1/2 where n·μ is between 4,000 and 10,000. Above, it has
    1/2·√(10,000 ÷ n·μ), because boosting learns more; below, 1/2·√(n·μ ÷ 4,000), because its probabilities suffer less
    from noise; but at least 1/10. n is the number of records. Weights are free.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TableModel._parameter_constraints,
        "batch_size": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "classes": ["array-like", None],
        "class_weight": [dict, None],
        "bounds_y": [None, tuple, list],
    }
    #: Net and boosting, the facts about the target that both take, and further arguments of the net.
    _kinds: ClassVar[tuple[Callable[..., FrameNet], Callable[..., GradientBoosting]]]
    _facts: ClassVar[tuple[str, ...]]
    _of_net: ClassVar[dict[str, Any]] = {"sample_rate": RATE}

    batch_size: float | None = None

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Cost of the fit, or of the search that released it.

        Both models, which are released together, state it.
        """
        return cost.stated_cost(self)

    @privacy_spent_.setter
    def privacy_spent_(self, spent: PrivacySpent) -> None:
        self.__dict__["privacy_spent_"] = self.net_.privacy_spent_ = self.boosting_.privacy_spent_ = spent

    # --- guarantee of one fit, from constructor arguments alone ---------------------------------------------------

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """Guarantee of one ``fit``; no data is needed.

        Parameters
        ----------
        n_samples : int, optional
            Not used: guarantees follow from the constructor's arguments.

        Returns
        -------
        Guarantee
            Composition of the guarantees of both models.
        """
        validate_parameter_constraints(self._parameter_constraints, self.get_params(deep=False), type(self).__name__)
        return self._guarantee(self._mu())

    def privacy_assumptions(self, unit: str = "record") -> tuple[str, ...]:
        """Assumptions of the guarantee for records, or persons, as plain sentences."""
        net, boosting = self._unfitted_models(1.0)
        return tuple(dict.fromkeys((*net.privacy_assumptions(unit), *boosting.privacy_assumptions())))

    def expecting(self, n: float) -> dict[str, Any]:
        """Parameters with which ``fit`` uses the public number ``n`` of records instead of counting them."""
        return {"batch_size": RATE * n}

    def in_places(self, places: int) -> None:
        """Draw the net's batches of the next ``fit`` from a number of places.

        The number is public.
        """
        self.__dict__[PLACES] = places

    def under(self, neighboring: Neighboring) -> dict[str, Any] | None:
        """Parameters for a guarantee, and for targets, under replace-one neighbours.

        None for other relations.
        """
        return self._unfitted_models(1.0)[0].under(neighboring)

    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        """No parameter is worth searching: both models follow their defaults."""
        return [{}]

    def _calibrated_mu(self, epsilon: float, delta: float) -> float:
        return calibrate(functools.cache(self._guarantee), epsilon, delta)

    def _guarantee(self, mu: float) -> Guarantee:
        return compose(*(model.privacy_guarantee() for model in self._unfitted_models(mu * SHARE)))

    def _unfitted_models(self, mu: float) -> tuple[FrameNet, GradientBoosting]:
        """Unfitted net and boosting, with a guarantee of ``mu`` each."""
        names = ("schema", "target", "neighboring", "random_state", "noise_seed", *self._facts)
        shared = {"target_mu": mu, **{name: getattr(self, name) for name in names}}
        net, boosting = self._kinds
        return net(**shared, batch_size=self.batch_size, **self._of_net), boosting(**shared)

    def _weighted_mean(self, method: str, X: Any) -> Array:
        """Weighted mean of what a method of both models returns."""
        check_is_fitted(self, "net_")
        of_net, of_boosting = (getattr(model, method)(X) for model in (self.net_, self.boosting_))
        found: Array = self.net_weight_ * np.asarray(of_net, np.float64) + (1.0 - self.net_weight_) * of_boosting
        return found

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Train both models on the records.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
            With the schema's columns; an array has them in the schema's order.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Person of each record, as for both models: the guarantee is then for persons.

        Returns
        -------
        self : object
        """
        places, guarantee = self.__dict__.pop(PLACES, None), self.privacy_guarantee()
        for name in FITTED:
            self.__dict__.pop(name, None)
        net, boosting = self._unfitted_models(self._mu() * SHARE)
        if places is not None:
            net.in_places(places)
        n_samples = number_of_records(X)
        n = net.expected_number(n_samples if groups is None else number_of_persons(persons_in(groups, n_samples)))
        if self.target_delta is not None:
            check_size_of_delta("target_delta", float(self.target_delta), n)
        boosting.fit(X, y, groups)  # the faster one finds what is wrong with a table
        net.fit(X, y, groups)
        parts = (("training of the net", net), ("boosting", boosting))
        components = tuple(Component(name=name, guarantee=one.privacy_spent_.guarantee) for name, one in parts)
        self.net_, self.boosting_ = (one.set_params(random_state=None, noise_seed=None) for one in (net, boosting))
        self.net_weight_ = weight_of_net(n * self._mu())
        self.privacy_spent_ = PrivacySpent(
            guarantee=guarantee,
            delta=STATED_DELTA if self.target_delta is None else float(self.target_delta),
            components=components,
            assumptions=self.privacy_assumptions(boosting.privacy_spent_.unit),
            unit=boosting.privacy_spent_.unit,
        )
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(net, name):
                setattr(self, name, getattr(net, name))
        return self


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularEnsembleClassifier(LogitClassifier, TabularEnsemble):
    """Classifier of data frames: the mean of a net and of boosting.

    Each of the two has half of the privacy.

    Logits are averaged: those of ``DPTabularClassifier`` without hidden layers, and of
    ``DPGradientBoostingClassifier``.

    Parameters
    ----------
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which is private only if
        they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of its records, a constant known without the data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    """

    _kinds = (DPTabularClassifier, DPGradientBoostingClassifier)
    _facts = ("classes", "class_weight")
    _of_net: ClassVar[dict[str, Any]] = {"sample_rate": RATE, "hidden_layer_sizes": ()}
    classes: ArrayLike | None = None
    class_weight: ClassWeights = None

    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes); with two classes their difference, shape (n_samples,)."""
        return self._weighted_mean("decision_function", X)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        return log_probabilities(self.decision_function(X))


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularEnsembleRegressor(RegressorMixin, TabularEnsemble):
    """Regressor of data frames: the mean of a net and of boosting.

    Each of the two has half of the privacy.

    Predictions are averaged: those of ``DPTabularRegressor`` and of ``DPGradientBoostingRegressor``.

    Parameters
    ----------
    bounds_y : (lower, upper), optional
        Public bounds of y, to which targets and predictions are clipped. Needed without ``target``.
    """

    _kinds = (DPTabularRegressor, DPGradientBoostingRegressor)
    _facts = ("bounds_y",)
    bounds_y: Given | None = None

    def predict(self, X: Any) -> Array:
        """Predicted values, shape (n_samples,), inside ``bounds_y``."""
        return self._weighted_mean("predict", X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # because of the noise
        return tags


def weight_of_net(signal: float) -> float:
    """Weight of the net in the mean with boosting, by n·μ."""
    return max(WEIGHT * math.sqrt(min(1.0, signal / FEW, MANY / signal)), LEAST_WEIGHT)
