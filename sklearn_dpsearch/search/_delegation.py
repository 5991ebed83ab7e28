"""Delegation from a search to its released model and to its estimator."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..data._records import read_table
from ..scoring import PrivateScorer

#: Tags that a search has from its estimator.
ESTIMATOR_TAGS = (
    *("estimator_type", "classifier_tags", "regressor_tags"),
    *("transformer_tags", "input_tags", "target_tags"),
)


def _delegates(name: str) -> Any:
    """Make a check that the released model, or before ``fit`` the estimator, has a method."""

    def check(self: Any) -> bool:
        # the AttributeError names the estimator
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return check


def _answers(name: str, text: str) -> Any:
    """Make a method: answers of the released model, to records as it was trained on."""

    def answers(self: Any, X: Any) -> Any:
        self._check_has_model(name)
        return getattr(self.best_estimator_, name)(read_table(X))

    answers.__name__, answers.__doc__, answers.__qualname__ = name, text, f"ReleasedModel.{name}"
    return available_if(_delegates(name))(answers)


def _attribute(name: str, text: str) -> Any:
    """Make a property: an attribute of the released model."""

    def attribute(self: Any) -> Any:
        self._check_has_model(f"tell {name}")
        return getattr(self.best_estimator_, name)

    return property(attribute, doc=text)


class ReleasedModel:
    """Prediction, transformation and scoring by ``best_estimator_``, as in scikit-learn."""

    estimator: Any
    best_estimator_: Any
    scorer_: Any

    def _check_has_model(self, method: str) -> None:
        if hasattr(self, "privacy_spent_") and not hasattr(self, "scorer_"):
            raise NotFittedError(
                f"The last fit of this {type(self).__name__} ended without a result, so there is "
                f"no model to {method} with. Its cost is spent and stands in privacy_spent_."
            )
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            name, reason = type(self).__name__, self._why_no_model()
            raise AttributeError(f"This {name} has no model to {method} with: {reason}")

    def _why_no_model(self) -> str:
        """Reason for a release without a model."""
        return (
            "it was fitted with refit=False. With refit='winner' the winner's own model is "
            "released at no extra cost."
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Score the released model on the caller's (test) data by the plain metric.

        The score is neither noised nor clipped. A private scorer clips to bound one record's effect
        on a released score. This score is no private release: R² equals
        ``sklearn.metrics.r2_score``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the test records in the metric.
        **params : dict
            Further arguments of the metric, where scikit-learn's metadata routing is on.

        Returns
        -------
        float
        """
        self._check_has_model("score")
        metric = self.scorer_.plain if isinstance(self.scorer_, PrivateScorer) else self.scorer_
        if params and not get_config().get("enable_metadata_routing"):
            raise ValueError(
                f"Found {', '.join(params)} in score: an argument other than sample_weight is only "
                "supported if sklearn.set_config(enable_metadata_routing=True), and if the metric "
                "takes it."
            )
        params |= {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(metric(self.best_estimator_, read_table(X), y, **params))

    predict = _answers(
        "predict", "Predictions of the released model, ``best_estimator_.predict(X)``."
    )
    predict_proba = _answers("predict_proba", "Class probabilities of the released model.")
    predict_log_proba = _answers(
        "predict_log_proba", "Log class probabilities of the released model."
    )
    decision_function = _answers("decision_function", "Decision function of the released model.")
    score_samples = _answers("score_samples", "Scores of records by the released model, one each.")
    transform = _answers("transform", "Records transformed by the released model.")
    inverse_transform = _answers("inverse_transform", "Inverse transform of the released model.")

    @available_if(_delegates("transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and transform the same records by the released model.

        What comes out is as secret as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records.
        y : array-like of shape (n_samples,), optional
            Their targets.
        **params : dict
            As for ``fit``.

        Returns
        -------
        array or data frame
            ``best_estimator_.transform(X)``. The guarantee is about the fitted search and not about
            these rows, each of which comes from one record.
        """
        if getattr(self, "refit", None) is False:
            raise ValueError(
                f"Found refit=False in fit_transform of this {type(self).__name__}: no model would "
                "be released to transform with. Write refit='winner', which costs nothing more. "
                "Nothing was spent."
            )
        return self.fit(X, y, **params).transform(X)  # type: ignore[attr-defined]

    @available_if(_delegates("set_output"))
    def set_output(self, *, transform: str | None = None) -> Any:
        """Set the container that ``transform`` returns, for the estimator and the released model.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            As in scikit-learn; None changes nothing.

        Returns
        -------
        self : object
        """
        self.estimator.set_output(transform=transform)
        if hasattr(self, "best_estimator_"):
            self.best_estimator_.set_output(transform=transform)
        return self

    @available_if(_delegates("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : array-like of str, optional
            As in scikit-learn.

        Returns
        -------
        ndarray of str
        """
        self._check_has_model("name features")
        return self.best_estimator_.get_feature_names_out(input_features)

    classes_ = _attribute("classes_", "Class labels, as the released model knows them.")
    n_features_in_ = _attribute("n_features_in_", "Number of features seen by the released model.")
    feature_names_in_ = _attribute("feature_names_in_", "Feature names seen by the released model.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scorer_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)  # type: ignore[misc]
        for name in ESTIMATOR_TAGS:
            setattr(tags, name, deepcopy(getattr(inner, name)))
        tags.non_deterministic = True
        tags.array_api_support = False  # draws and noisy sums are computed by NumPy
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of ``fit``'s parameters to the estimator's ``fit``, never to a private scorer."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)
