"""Means of a net for data frames and of boosting, each with half of the privacy."""

from __future__ import annotations

import functools
import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.validation import _num_samples, check_is_fitted

from ...boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from ...boosting.noise_calibration import STATED_DELTA, TARGETS, CalibratedModel
from ...preprocessing import Schema
from ...privacy import Guarantee, calibrate, compose
from ...privacy._checks import check_size_of_delta
from ...privacy._types import Neighboring
from ...privacy.spent import Component, PrivacySpent
from ..randomness import Seed
from . import scaling
from .frame_estimators import DPTabularClassifier, DPTabularRegressor
from .joint_training import PLACES
from .labels import ClassWeight
from .scaling import Array
from .table_base import RATE

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

#: Share of μ that each of the two models gets: their μ² add up. Rounded down.
SHARE = math.nextafter(math.sqrt(0.5), 0.0)
#: Weight of the net in the mean where n·μ is between FEW and MANY. Beyond them it falls with the root of the ratio.
WEIGHT, FEW, MANY = 0.5, 4_000.0, 10_000.0
#: Smallest weight of the net.
LEAST_WEIGHT = 0.1
#: Attributes of a model after a successful fit.
FITTED = ("net_", "boosting_", "net_weight_", "privacy_spent_", "classes_", "n_features_in_", "feature_names_in_")

_DOC = """{kind} of data frames: the mean of a net and of boosting, each with half of the privacy.

    {mean} The two make different errors, so that the mean is about as good as the better one, varies less from fit to
    fit, and needs no choice between them. The net has the weight 1/2 where n·μ is between 4,000 and 10,000. Above, it
    has 1/2·√(10,000 ÷ n·μ), because boosting learns more; below, 1/2·√(n·μ ÷ 4,000), because its probabilities suffer
    less from noise; but at least 1/10. n is the number of records. Weights are free.

    Parameters
    ----------
    schema : Schema or dict
        Columns by name, as ``TableEncoder`` takes them. It is public knowledge.
    target : str, optional
        Column of the schema that is predicted, and no feature. The schema then states {stated}.{facts}
    target_epsilon, target_delta : float, optional
        Guarantee of one fit, to which both models are calibrated.
    target_mu : float, optional
        Instead: μ of the Gaussian guarantee of both together.
    batch_size : float, optional
        Expected batch size of the net, as a constant: by default it follows from the number of records.
    neighboring : {{"zero_out", "replace_one"}}, default="zero_out"
        Neighbouring relation, as for ``DPTabular{kind}``.
    random_state : None, int or RandomState
        Seeds initial weights and cells, which are public. Never the noise.
    noise_seed : None, int or RandomState
        For tests only: seeds noise and batches. The seed is enough to undo the noise.

    Attributes
    ----------
    net_ : DPTabular{kind}
    boosting_ : DPGradientBoosting{kind}
    net_weight_ : float
        Weight of the net in the mean.
    privacy_spent_ : PrivacySpent
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.{more}
"""


class TabularEnsemble(CalibratedModel):
    """Two private models of one table, and the composition of their guarantees."""

    #: Constructor arguments on which the guarantee depends.
    privacy_parameters = (*TARGETS, "neighboring")

    _parameter_constraints: dict[str, Any] = {
        **CalibratedModel._parameter_constraints,
        "schema": [Mapping],
        "target": [None, str],
        "batch_size": [None, Interval(numbers.Real, 0, None, closed="neither")],
    }
    schema: Schema | Mapping[str, Any]
    target: str | None
    batch_size: float | None
    neighboring: Neighboring
    random_state: Seed
    noise_seed: Seed

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Cost of the fit, or of the search that released it; both models, which are released together, state it."""
        try:
            found: PrivacySpent = vars(self)["privacy_spent_"]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'privacy_spent_' before it is fitted"
            ) from None
        return found

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

    def privacy_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, as plain sentences."""
        found = (sentence for model in self._models(1.0) for sentence in model.privacy_assumptions())
        return tuple(dict.fromkeys(found))

    def expecting(self, n: float) -> dict[str, Any]:
        """Parameters with which ``fit`` uses the public number ``n`` of records instead of counting them."""
        return {"batch_size": self._models(1.0)[0].expecting(n)["batch_size"]}

    def in_places(self, places: int) -> None:
        """Train the net of the next ``fit`` in this public number of places, as other nets do in a search."""
        self.__dict__[PLACES] = places

    def under(self, neighboring: Neighboring) -> dict[str, Any] | None:
        """Parameters for a guarantee, and for targets, under replace-one neighbours; None for other relations."""
        found: dict[str, Any] | None = self._models(1.0)[0].under(neighboring)
        return found

    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        """No parameter is worth searching: both models follow their defaults."""
        return [{}]

    @property
    def public_facts(self) -> dict[str, Any]:
        """Facts about the target that the schema states, by the names of parameters: ``classes`` or ``bounds_y``."""
        found: dict[str, Any] = self._models(1.0)[1].public_facts
        return found

    def columns_read(self) -> list[str]:
        """One line for each column, as boosting reads it: ``age: number from 18 to 90, 72 bins``."""
        lines: list[str] = self._models(1.0)[1].columns_read()
        return lines

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run; they hold nothing about real records.

        Parameters
        ----------
        n_samples : int
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
        """
        return self._models(1.0)[1].made_up(n_samples, random_state)

    def _calibrated_mu(self, epsilon: float, delta: float) -> float:
        return calibrate(functools.cache(self._guarantee), epsilon, delta)

    def _guarantee(self, mu: float) -> Guarantee:
        return compose(*(model.privacy_guarantee() for model in self._models(mu * SHARE)))

    @abstractmethod
    def _models(self, mu: float) -> tuple[Any, Any]:
        """Net and boosting, unfitted, with a guarantee of ``mu`` each."""

    def _shared(self, mu: float) -> dict[str, Any]:
        names = ("schema", "target", "neighboring", "random_state", "noise_seed")
        return {"target_mu": mu, **{name: getattr(self, name) for name in names}}

    def _mean(self, of_net: Array, of_boosting: Array) -> Array:
        weight = getattr(self, "net_weight_", WEIGHT)  # models that were saved before there were other weights
        found: Array = weight * np.asarray(of_net, np.float64) + (1.0 - weight) * of_boosting
        return found

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Train both models on the records.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
            With the schema's columns; an array has them in the schema's order.
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        places, guarantee = self.__dict__.pop(PLACES, None), self.privacy_guarantee()
        for name in FITTED:
            self.__dict__.pop(name, None)
        net, boosting = self._models(self._mu() * SHARE)
        if places is not None:
            net.in_places(places)
        n = net.expected_number(_num_samples(X))
        if self.target_delta is not None:
            check_size_of_delta("target_delta", float(self.target_delta), n)
        boosting.fit(X, y)  # the faster one finds what is wrong with a table
        net.fit(X, y)
        parts = (("training of the net", net), ("boosting", boosting))
        components = tuple(Component(name=name, guarantee=one.privacy_spent_.guarantee) for name, one in parts)
        self.net_, self.boosting_ = (one.set_params(random_state=None, noise_seed=None) for one in (net, boosting))
        self.net_weight_ = net_weight(n * self._mu())
        self.privacy_spent_ = PrivacySpent(
            guarantee=guarantee,
            delta=STATED_DELTA if self.target_delta is None else float(self.target_delta),
            components=components,
            assumptions=self.privacy_assumptions(),
        )
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(net, name):
                setattr(self, name, getattr(net, name))
        return self


class DPTabularEnsembleClassifier(ClassifierMixin, TabularEnsemble):
    __doc__ = _DOC.format(
        kind="Classifier",
        mean="Logits are averaged: those of ``DPTabularClassifier`` without hidden layers, and of\n"
        "    ``DPGradientBoostingClassifier``.",
        stated="``classes``",
        facts="""
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which is private only if
        they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of its records, a constant known without the data.""",
        more="\n    classes_ : ndarray of shape (n_classes,)",
    )

    _parameter_constraints: dict[str, Any] = {
        **TabularEnsemble._parameter_constraints,
        "classes": ["array-like", None],
        "class_weight": [dict, None],
    }
    classes_: NDArray[Any]

    def __init__(
        self, schema: Schema | Mapping[str, Any], *, target: str | None = None, classes: ArrayLike | None = None,
        class_weight: ClassWeight = None, target_epsilon: float | None = None, target_delta: float | None = None,
        target_mu: float | None = None, batch_size: float | None = None, neighboring: Neighboring = "zero_out",
        random_state: Seed = None, noise_seed: Seed = None,
    ) -> None:  # fmt: skip
        self.schema = schema
        self.target = target
        self.classes = classes
        self.class_weight = class_weight
        self.target_epsilon = target_epsilon
        self.target_delta = target_delta
        self.target_mu = target_mu
        self.batch_size = batch_size
        self.neighboring = neighboring
        self.random_state = random_state
        self.noise_seed = noise_seed

    def _models(self, mu: float) -> tuple[Any, Any]:
        shared = {**self._shared(mu), "classes": self.classes, "class_weight": self.class_weight}
        net = DPTabularClassifier(**shared, batch_size=self.batch_size, sample_rate=RATE, hidden_layer_sizes=())
        return net, DPGradientBoostingClassifier(**shared)

    def decision_function(self, X: Any) -> Array:
        """Logits, shape (n_samples, n_classes); with two classes their difference, shape (n_samples,)."""
        check_is_fitted(self, "net_")
        return self._mean(self.net_.decision_function(X), self.boosting_.decision_function(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities, shape (n_samples, n_classes)."""
        logits = self.decision_function(X)
        both = np.column_stack([np.zeros_like(logits), logits]) if logits.ndim == 1 else logits
        found: Array = log_softmax(both, axis=1)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n_samples, n_classes)."""
        chances: Array = np.exp(self.predict_log_proba(X))
        return chances

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each record, shape (n_samples,)."""
        labels: NDArray[Any] = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # because of the noise
        return tags


class DPTabularEnsembleRegressor(RegressorMixin, TabularEnsemble):
    __doc__ = _DOC.format(
        kind="Regressor",
        mean="Predictions are averaged: those of ``DPTabularRegressor`` and of ``DPGradientBoostingRegressor``.",
        stated="``bounds_y``",
        facts="""
    bounds_y : (lower, upper), optional
        Public bounds of y, to which targets and predictions are clipped. Needed without ``target``.""",
        more="",
    )

    _parameter_constraints: dict[str, Any] = {
        **TabularEnsemble._parameter_constraints,
        "bounds_y": [None, tuple, list],
    }

    def __init__(
        self, schema: Schema | Mapping[str, Any], *, target: str | None = None,
        bounds_y: scaling.Given | None = None, target_epsilon: float | None = None, target_delta: float | None = None,
        target_mu: float | None = None, batch_size: float | None = None, neighboring: Neighboring = "zero_out",
        random_state: Seed = None, noise_seed: Seed = None,
    ) -> None:  # fmt: skip
        self.schema = schema
        self.target = target
        self.bounds_y = bounds_y
        self.target_epsilon = target_epsilon
        self.target_delta = target_delta
        self.target_mu = target_mu
        self.batch_size = batch_size
        self.neighboring = neighboring
        self.random_state = random_state
        self.noise_seed = noise_seed

    def _models(self, mu: float) -> tuple[Any, Any]:
        shared = {**self._shared(mu), "bounds_y": self.bounds_y}
        net = DPTabularRegressor(**shared, batch_size=self.batch_size, sample_rate=RATE)
        return net, DPGradientBoostingRegressor(**shared)

    def predict(self, X: Any) -> Array:
        """Predicted values, shape (n_samples,), inside ``bounds_y``."""
        check_is_fitted(self, "net_")
        return self._mean(self.net_.predict(X), self.boosting_.predict(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # because of the noise
        return tags


def net_weight(signal: float) -> float:
    """Weight of the net in the mean, by n·μ, a public number."""
    return max(WEIGHT * math.sqrt(min(1.0, signal / FEW, MANY / signal)), LEAST_WEIGHT)
