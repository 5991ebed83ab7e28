"""Private scorers by scikit-learn's names, and the scorer of a search's parameter ``scoring``."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..data._labels import as_array
from ..errors import did_you_mean
from ..privacy import UnknownSensitivityError
from ..privacy._checks import number_in, require_whole
from ._base import PrivateScorer
from ._counts import BalancedAccuracyScorer, RankingScorer, RetrievalScorer
from ._mean import ErrorPower, InTopK, LogLoss, Match, MeanScorer
from ._r2 import R2Scorer


def stated_facts(estimator: Any) -> Mapping[str, Any]:
    """Options of private scorers that an estimator states.

    From ``classes`` and ``bounds_y`` of an estimator, or of a pipeline's last step.

    Both may be parameters, or facts that a schema states (``public_facts``).

    Returns
    -------
    dict
        ``classes`` and ``pos_label``: 1 where it is a class, else the later of two classes, as
        scikit-learn sorts them. ``y_range``: the bounds.
    """
    while type(estimator) is Pipeline:
        estimator = estimator.steps[-1][1]
    facts = getattr(estimator, "public_facts", {})
    names = ("classes", "bounds_y")
    classes, bounds = (facts.get(name, getattr(estimator, name, None)) for name in names)
    return {**_classification_facts(classes), **_regression_facts(bounds)}


def _classification_facts(classes: Any) -> dict[str, Any]:
    if classes is None or isinstance(classes, str) or callable(classes):
        return {}
    try:
        classes = sorted(as_array(classes).tolist())
    except Exception:  # labels without an order: the user must name one
        return {}
    if 1 in classes:
        return {"classes": classes, "pos_label": 1}
    return {"classes": classes, **({"pos_label": classes[1]} if len(classes) == 2 else {})}


def _regression_facts(bounds: Any) -> dict[str, Any]:
    is_pair = isinstance(bounds, Sequence) and len(bounds) == 2
    if not is_pair or not all(isinstance(end, numbers.Real) for end in bounds):
        return {}
    lower, upper = float(bounds[0]), float(bounds[1])
    return {"y_range": (lower, upper)} if lower < upper else {}


def _share_scorer(name: str, values: Any, **fields: Any) -> MeanScorer:
    """Scorer of the share of records with some property."""
    return MeanScorer(values=values, lower=0.0, upper=1.0, resolution=1, name=name, **fields)


def _top_k_scorer(*, k: int = 2) -> MeanScorer:
    """Scorer of top-k accuracy.

    Share of records whose label is among the k classes with the largest scores.
    """
    require_whole(1, k=k)
    methods = ("decision_function", "predict_proba")
    return _share_scorer("top_k_accuracy", InTopK(int(k)), response_method=methods)


def _loss_scorer(
    name: str, values: Any, clip: float, resolution: int, power: int = 1, **fields: Any
) -> MeanScorer:
    """Scorer of minus a mean of powers of losses of at most ``clip`` each."""
    upper = number_in("(0, inf)", clip=clip) ** power
    fields |= {"lower": 0.0, "upper": upper, "greater_is_better": False, "resolution": resolution}
    return MeanScorer(values=values, name=name, **fields)


def _log_loss_scorer(*, clip: float = 5.0, resolution: int = 1000) -> MeanScorer:
    """Scorer of minus the mean log loss in nats, of which each is at most ``clip``."""
    return _loss_scorer(
        "neg_log_loss", LogLoss(), clip, resolution, response_method="predict_proba"
    )


def _retrieval_scorer(kind: str) -> Callable[..., PrivateScorer]:
    """Scorer of precision, recall or F₁, by name."""
    return lambda *, pos_label: RetrievalScorer(kind=kind, pos_label=pos_label)


def _ranking_scorer(kind: str) -> Callable[..., PrivateScorer]:
    """Scorer of a ranking of one class, by name."""
    return lambda *, pos_label, n_bins=16: RankingScorer(
        kind=kind, pos_label=pos_label, n_bins=n_bins
    )


def _error_scorer(name: str, power: int) -> Callable[..., PrivateScorer]:
    """Scorer of minus a mean power of absolute errors of at most ``clip`` each."""
    values = ErrorPower(power)
    return lambda *, clip, resolution=1000: _loss_scorer(name, values, clip, resolution, power)


#: scikit-learn's name of a metric ↦ builder of its private scorer, and an example of its public
#: facts.
SCORERS: dict[str, tuple[Callable[..., PrivateScorer], str]] = {
    "accuracy": (lambda: _share_scorer("accuracy", Match()), ""),
    "top_k_accuracy": (_top_k_scorer, ""),
    "neg_log_loss": (_log_loss_scorer, ""),
    "balanced_accuracy": (BalancedAccuracyScorer, "classes=[0, 1]"),
    "f1": (_retrieval_scorer("f1"), "pos_label=..."),
    "precision": (_retrieval_scorer("precision"), "pos_label=..."),
    "recall": (_retrieval_scorer("recall"), "pos_label=..."),
    "roc_auc": (_ranking_scorer("roc_auc"), "pos_label=..."),
    "average_precision": (_ranking_scorer("average_precision"), "pos_label=..."),
    "neg_mean_absolute_error": (_error_scorer("neg_mean_absolute_error", 1), "clip=10.0"),
    "neg_mean_squared_error": (_error_scorer("neg_mean_squared_error", 2), "clip=10.0"),
    "r2": (R2Scorer, "y_range=(0.0, 100.0)"),
}

#: Largest error that counts, as a share of the width of the estimator's bounds
#: (examples/benchmarks/telling_apart.py).
CLIPS = {"neg_mean_absolute_error": 0.25, "neg_mean_squared_error": 0.5}

#: Beginning of a metric's name ↦ reason for its absence.
REASONS = {
    "roc_auc_": (
        "several classes are compared in pairs; private_scorer('roc_auc', pos_label=...) takes one "
        "of them"
    ),
    "max_error": "a single record can be the whole score",
    "neg_max_error": "a single record can be the whole score",
    "neg_median_absolute_error": "a median moves by any amount when one record changes",
    "neg_root_mean_squared_error": (
        "it is unbounded, and orders models as the mean squared error does"
    ),
    "explained_variance": "it is unbounded where the targets hardly vary",
}


def private_scorer(name: str, **options: Any) -> PrivateScorer:
    """Private form of a scikit-learn metric, by name.

    Parameters
    ----------
    name : str
        "accuracy", "top_k_accuracy", "neg_log_loss", "balanced_accuracy", "f1", "precision",
        "recall", "roc_auc", "average_precision", "neg_mean_absolute_error",
        "neg_mean_squared_error" or "r2".
    **options
        Public facts that the metric needs: ``classes`` (balanced_accuracy), ``pos_label`` (f1,
        precision, recall, roc_auc, average_precision; of the last two also ``n_bins``, default 16),
        ``clip`` (absolute and squared error; log loss, default 5 nats), ``y_range`` (r2; also
        ``clip``, ``score_range``), ``k`` (top_k_accuracy, default 2). For means of numbers and r2
        also ``resolution``.

    Returns
    -------
    PrivateScorer

    Raises
    ------
    UnknownSensitivityError
        For other metrics, and where a public fact is missing.

    Examples
    --------
    >>> private_scorer("balanced_accuracy", classes=["no", "yes"])
    BalancedAccuracyScorer(classes=('no', 'yes'))
    """
    if not isinstance(name, str) or name not in SCORERS:
        why = next((why for start, why in REASONS.items() if str(name).startswith(start)), "")
        raise _refusal(f"scoring={name!r}", why, "" if why else did_you_mean(name, SCORERS))
    build, example = SCORERS[name]
    parameters = inspect.signature(build).parameters
    for option, value in options.items():
        if option not in parameters:
            accepted = ", ".join(parameters) or "no options"
            raise TypeError(
                f"Found {option}={value!r} for the private scorer {name!r}, which takes {accepted}."
                + did_you_mean(option, parameters)
            )
    missing = [option for option in _needed_facts(name) if option not in options]
    if missing:
        of_classes = missing[0] in ("classes", "pos_label")
        source = "classes=[...]" if of_classes else "bounds_y=(..., ...)"
        raise UnknownSensitivityError(
            f"scoring={name!r} has no sensitivity on private records until {' and '.join(missing)} "
            f"is stated, which may not be learned from the records. Use an estimator that states "
            f"{source}, write scoring=private_scorer({name!r}, {example}), or validate on public "
            "data: fit(..., X_public=..., y_public=...)."
        )
    return build(**options)


def get_private_scorer(scoring: object, estimator: object = None) -> PrivateScorer:
    """Private scorer for a search's parameter ``scoring``.

    Parameters
    ----------
    scoring : None, str or PrivateScorer
        None: accuracy for a classifier, R² for another estimator with public bounds of y
        (``bounds_y``). A name: ``private_scorer(name)``. A private scorer is returned unchanged.
    estimator : estimator, optional
        If ``scoring`` is None or a name: source of the kind of task and of public facts
        (``classes``, ``bounds_y``).

    Returns
    -------
    PrivateScorer

    Raises
    ------
    UnknownSensitivityError
        If ``scoring`` has no private form, or needs further public facts.

    Examples
    --------
    >>> get_private_scorer("accuracy").sensitivity("zero_out").l1
    1
    """
    if isinstance(scoring, PrivateScorer):
        return scoring
    if isinstance(scoring, str):
        return private_scorer(scoring, **_options_from_estimator(scoring, estimator))
    if scoring is not None:
        raise _refusal(f"scoring={scoring!r}", "nothing is known about what one record contributes")
    if is_classifier(estimator):
        return private_scorer("accuracy")
    if "y_range" in stated_facts(estimator):
        return private_scorer("r2", **_options_from_estimator("r2", estimator))
    raise UnknownSensitivityError(
        f"scoring=None means the estimator's own score; for {type(estimator).__name__}, which is "
        f"no classifier, that has no usable sensitivity on private records. State public bounds: "
        f"bounds_y=(..., ...) of the estimator, "
        f'scoring=private_scorer("neg_mean_absolute_error", clip=...) or private_scorer("r2", '
        f"y_range=(..., ...)), or "
        f"validate on public data: fit(..., X_public=..., y_public=...)."
    )


def _options_from_estimator(name: str, estimator: object) -> dict[str, Any]:
    """Arguments of a scorer that the estimator has as parameters."""
    if name not in SCORERS:
        return {}
    facts, needed = dict(stated_facts(estimator)), _needed_facts(name)
    if name in CLIPS and "y_range" in facts:
        lower, upper = facts["y_range"]
        facts["clip"] = CLIPS[name] * (upper - lower)
    return {fact: value for fact, value in facts.items() if fact in needed}


def _needed_facts(name: str) -> list[str]:
    """Options of a scorer without a default, by the name of the metric."""
    parameters = inspect.signature(SCORERS[name][0]).parameters.items()
    return [fact for fact, parameter in parameters if parameter.default is Parameter.empty]


def _refusal(argument: str, why: str, hint: str = "") -> UnknownSensitivityError:
    return UnknownSensitivityError(
        f"{argument} has no usable sensitivity on private records{': ' + why if why else ''}. Use "
        f"one of {', '.join(SCORERS)}; or make_private_scorer(score_func, lower=..., upper=...) "
        "for the mean of a bounded value per record; or validate on public data, where every "
        f"scorer is fine: fit(..., X_public=..., y_public=...).{hint}"
    )
