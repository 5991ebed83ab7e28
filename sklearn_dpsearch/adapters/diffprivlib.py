"""diffprivlib 0.6.6: what its models really promise, read from their mechanisms.

The library does not say for which neighbours its ε holds. Everything is stated here for one relation, replace-one with a public
number of records, because most models use that number exactly; a model whose noise was made for adding or removing a record
costs more under it. Proofs, and the reasons for every refusal: docs/diffprivlib.md.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy import LeakingEstimatorError, PrivacyError, PureDP
from ._base import Adapter, TrainingRun

PUBLIC_SIZE = "The number of records is public (diffprivlib divides noise by it)."
PUBLIC_CLASSES = (
    "The class labels are public, and changing one record changes neither the set of labels in y nor empties a class."
)


@dataclass(frozen=True)
class Model:
    """What is known of one model.

    Parameters
    ----------
    factor : callable
        Estimator ↦ multiple of its ``epsilon`` that holds under replace-one neighbours; raises if none does.
    bounds : tuple of str
        Parameters that must be given, or they are read from the data.
    assumptions : tuple of str
    also : tuple of str
        Other parameters on which the guarantee depends.
    exact : tuple of str
        Fitted attributes computed from the data without noise: deleted before a model is released.
    """

    factor: Callable[[Any], float]
    bounds: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


def _as_stated(model: Any) -> float:
    return 1.0


def _tree(model: Any) -> float:
    """Permute-and-flip per leaf at ε for one record more or less; a changed record touches two leaves, or two counts of one."""
    return 2.0


def _naive_bayes(model: Any) -> float:
    """A record that changes its class touches two counts, two vectors of sums and two of squares, ε/3 each.

    The noise of a sum is scaled to upper − lower, but a record entering a class moves it by up to max(|lower|, |upper|).
    """
    lower, upper = _intervals(model, "bounds")
    reach = np.maximum(np.abs(lower), np.abs(upper)) / (upper - lower)
    return float(2.0 * (2.0 + np.mean(reach)) / 3.0)


def _logistic_regression(model: Any) -> float:
    """Objective perturbation needs every coefficient in the penalty and rows of norm at most 2."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LogisticRegression has fit_intercept=True: diffprivlib does not penalise the intercept, and without that objective "
            "perturbation has no finite epsilon. Set fit_intercept=False and append a constant column, e.g. with a "
            "FunctionTransformer, counted in data_norm."
        )
    if not 0 < model.data_norm <= 2:
        raise LeakingEstimatorError(
            f"LogisticRegression has data_norm={model.data_norm!r}: diffprivlib's noise covers its epsilon only for rows of norm at "
            "most 2. Divide the features by public constants so that data_norm <= 2 (1 is usual)."
        )
    _one_process(model)
    return 1.0


def _one_process(model: Any) -> None:
    if model.n_jobs not in (None, 1):
        raise LeakingEstimatorError(
            f"{type(model).__name__} has n_jobs={model.n_jobs!r}: its processes would draw the same noise. Set n_jobs=None; the search "
            "runs candidates in parallel instead."
        )


def _linear_regression(model: Any) -> float:
    """The functional mechanism, where its sensitivities are right."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LinearRegression has fit_intercept=True: diffprivlib 0.6.6 then spends more than epsilon on the means and scales the noise "
            "of the squares by the lower bounds alone, so no finite epsilon holds. Centre X and y by public constants and set "
            "fit_intercept=False."
        )
    lower, upper = _intervals(model, "bounds_X")
    if np.any(np.abs(lower) < np.abs(upper)):
        raise LeakingEstimatorError(
            "LinearRegression has bounds_X whose upper end is further from 0 than the lower one: diffprivlib 0.6.6 scales the noise of the "
            "squares by the lower bounds alone. Give symmetric bounds, e.g. bounds_X=(-1, 1)."
        )
    return 1.0


def _pca(model: Any) -> float:
    """Means at ε/2 unless centred, then D parts: one of eigenvalues and D − 1 or fewer eigenvectors.

    Bounded-domain noise of scale b on the eigenvalues loses at most 2|Δ|/b each, twice what one coordinate
    alone would; the Bingham mechanism loses half of its part. Together 1/2 + 3/(2D) of what they are given: at most 1 for D >= 3.
    """
    several = isinstance(model.n_components, numbers.Integral) and model.n_components >= 3
    eigen = 1.0 if several else 1.25
    return eigen if model.centered else 0.5 + 0.5 * eigen


def _forest(model: Any) -> float:
    raise LeakingEstimatorError(
        "RandomForestClassifier gives each tree a 31-bit integer seed, keeps it on the fitted model and draws the public thresholds and the "
        "secret noise from it, so that the noise can be recomputed. Use diffprivlib's DecisionTreeClassifier with random_state=None."
    )


def _k_means(model: Any) -> float:
    raise LeakingEstimatorError(
        "KMeans leaves a centre exactly where it was when no record is near it, and keeps inertia_ and labels_ without noise: no finite "
        "epsilon holds for the fitted model. Use another clusterer, or declare guarantee= if you know better."
    )


def _intervals(model: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of a parameter with bounds, checked."""
    given = getattr(model, name)
    try:
        lower, upper = (np.ravel(np.asarray(end, dtype=float)) for end in given)
        usable = bool(np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)) and np.all(lower < upper))
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise LeakingEstimatorError(
            f"{type(model).__name__} has {name}={given!r}. It needs finite public bounds with lower < upper for every feature, e.g. "
            f"{name}=(0, 1)."
        )
    return lower, upper


#: Every model of diffprivlib 0.6.6 that trains.
MODELS: dict[str, Model] = {
    "DecisionTreeClassifier": Model(_tree, ("bounds", "classes")),
    "GaussianNB": Model(_naive_bayes, ("bounds",), (PUBLIC_SIZE, PUBLIC_CLASSES)),
    "KMeans": Model(_k_means),
    "LinearRegression": Model(
        _linear_regression,
        ("bounds_X", "bounds_y"),
        (
            "All records lie within bounds_X and bounds_y: LinearRegression does not clip without an intercept.",
            "y has one column.",
        ),
        also=("fit_intercept",),
    ),
    "LogisticRegression": Model(
        _logistic_regression,
        ("data_norm",),
        (PUBLIC_SIZE, PUBLIC_CLASSES, "The optimiser of LogisticRegression reaches the exact minimum."),
        also=("fit_intercept", "n_jobs"),
        exact=("n_iter_",),
    ),
    "PCA": Model(_pca, ("data_norm",), (PUBLIC_SIZE,), also=("centered", "bounds", "n_components")),
    "RandomForestClassifier": Model(_forest),
    "StandardScaler": Model(_as_stated, ("bounds",), (PUBLIC_SIZE,)),
}


class DiffprivlibAdapter(Adapter):
    """The models of ``diffprivlib.models``, by exact type: a subclass may have changed ``fit``."""

    def recognises(self, estimator: Any) -> bool:
        kind = type(estimator)
        return kind.__module__.startswith("diffprivlib.models.") and kind.__name__ in MODELS

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        model = MODELS[type(estimator).__name__]
        epsilon = _checked_epsilon(estimator)
        for name in model.bounds:
            _require_given(estimator, name)
        if type(estimator).__name__ == "PCA" and not estimator.centered:
            _require_given(estimator, "bounds")
        guarantee = PureDP(epsilon=_above(epsilon * model.factor(estimator)), neighboring="replace_one")
        return TrainingRun(guarantee=guarantee, assumptions=model.assumptions)

    def scaled(self, estimator: Any, factor: float) -> dict[str, Any]:
        return {"epsilon": estimator.epsilon * factor}

    def privacy_parameters(self, estimator: Any) -> tuple[str, ...]:
        model = MODELS[type(estimator).__name__]
        return ("epsilon", *model.bounds, *model.also)

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        """No seed: the mechanisms then draw on the operating system. A ledger of its own: the default one counts the runs."""
        from diffprivlib.accountant import BudgetAccountant

        return {"random_state": None, "accountant": BudgetAccountant()}

    def scrub(self, model: Any) -> None:
        for name in MODELS[type(model).__name__].exact:
            model.__dict__.pop(name, None)


def _checked_epsilon(estimator: Any) -> float:
    epsilon = estimator.epsilon
    if not isinstance(epsilon, numbers.Real) or isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise PrivacyError(
            f"{type(estimator).__name__} has epsilon={epsilon!r}. It needs 0 < epsilon < inf, e.g. epsilon=1.0."
        )
    return float(epsilon)


def _require_given(estimator: Any, name: str) -> None:
    if getattr(estimator, name) is None:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} has {name}=None and would read it from the data. Give {name} as public constants, known without "
            "looking at the data."
        )


def _above(epsilon: float) -> float:
    """Two doubles up, unless the product is a short decimal: it may have been rounded down."""
    return epsilon if epsilon == round(epsilon, 12) else math.nextafter(math.nextafter(epsilon, math.inf), math.inf)
