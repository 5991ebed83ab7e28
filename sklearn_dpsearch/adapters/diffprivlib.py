"""diffprivlib 0.6.6: what its models really promise, read from their mechanisms.

The library does not say for which neighbours its ε holds. Everything is stated here for one relation, replace-one with
a public number of records, because most models use that number exactly; a model whose noise was made for adding or
removing a record costs more under it. Proofs, and the reasons for every refusal: docs/reference/diffprivlib.md.
"""

from __future__ import annotations

import math
import numbers
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..privacy import LeakingEstimatorError, PrivacyError, PureDP, UnknownGuaranteeError
from ._base import Adapter, Rule, TrainingRun

PUBLIC_SIZE = "The number of records is public (diffprivlib divides noise by it)."
PUBLIC_CLASSES = (
    "The class labels are public: every part of the records that trains holds each of them, whichever one record is "
    "changed."
)
DOUBLES = "X and y are arrays of float64 (others are clipped and summed with errors that the noise does not cover)."

#: Where the models are whose predictions are clipped.
CLIPPED = f"{__package__}._clipped"

#: The release whose sources were read.
EXAMINED = "0.6.6"

#: Below it the scale of bounded Laplace noise suffers from cancellation in the share of a single feature.
SMALLEST_EPSILON = 1e-3


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
        Fitted attributes computed from the data without noise: deleted before a model is released, also where its
        guarantee is declared.
    settings : mapping
        Parameters that every candidate gets, whatever the user's: the guarantee needs them.
    """

    factor: Callable[[Any], float]
    bounds: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def _scaler(model: Any) -> float:
    """Mean and variance at ε/2 each, split over the features; both noises are scaled to a changed record."""
    _intervals(model, "bounds")
    _not_tiny(model)
    return 1.0


def _tree(model: Any) -> float:
    """Permute-and-flip per leaf at ε for a record more or less; a changed record touches two leaves or two counts."""
    return 2.0


def _naive_bayes(model: Any) -> float:
    """A record that changes its class touches two counts, two vectors of sums and two of squares, ε/3 each.

    The noise of a sum is scaled to upper − lower, but a record entering a class moves it by max(|lower|, |upper|).
    """
    lower, upper = _intervals(model, "bounds")
    _clipped_apart(model, lower, upper)
    _not_tiny(model)
    reach = np.maximum(np.abs(lower), np.abs(upper)) / (upper - lower)
    return float(2.0 * (2.0 + np.mean(reach)) / 3.0)


def _logistic_regression(model: Any) -> float:
    """Objective perturbation needs every coefficient in the penalty and rows of norm at most 2."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LogisticRegression has fit_intercept=True: diffprivlib does not penalise the intercept, and without that "
            "objective perturbation has no finite epsilon. Set fit_intercept=False and append a constant column, e.g. "
            "with a FunctionTransformer, counted in data_norm."
        )
    if not 0 < model.data_norm <= 2:
        raise LeakingEstimatorError(
            f"LogisticRegression has data_norm={model.data_norm!r}: diffprivlib's noise covers its epsilon only for "
            "rows of norm at most 2. Divide the features by public constants so that data_norm <= 2 (1 is usual)."
        )
    _one_process(model)
    if model.verbose:
        raise LeakingEstimatorError(
            f"LogisticRegression has verbose={model.verbose!r}: the optimiser prints every candidate's loss. Set "
            "verbose=0."
        )
    return 1.0


def _one_process(model: Any) -> None:
    if model.n_jobs not in (None, 1):
        raise LeakingEstimatorError(
            f"{type(model).__name__} has n_jobs={model.n_jobs!r}: its processes would draw the same noise. Set "
            "n_jobs=None; the search runs candidates in parallel instead."
        )


def _linear_regression(model: Any) -> float:
    """The functional mechanism, where its sensitivities are right."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LinearRegression has fit_intercept=True: diffprivlib 0.6.6 then spends more than epsilon on the means "
            "and scales the noise of the squares by the lower bounds alone, so no finite epsilon holds. Centre X and "
            "y by public constants and set fit_intercept=False."
        )
    _intervals(model, "bounds_y")
    lower, upper = _intervals(model, "bounds_X")
    if np.any(np.abs(lower) < np.abs(upper)):
        raise LeakingEstimatorError(
            "LinearRegression has bounds_X whose upper end is further from 0 than the lower one: diffprivlib 0.6.6 "
            "scales the noise of the squares by the lower bounds alone. Give symmetric bounds, e.g. bounds_X=(-1, 1)."
        )
    return 1.0


def _pca(model: Any) -> float:
    raise LeakingEstimatorError(
        "PCA draws its components by a rejection sampler that in diffprivlib 0.6.6 divides by a density where it "
        "should multiply: the law is not the one its epsilon was proved for, and the loss grows with the number of "
        "features. Project by a public matrix instead (FunctionTransformer), drop the step, or declare guarantee= if "
        "you know better."
    )


def _forest(model: Any) -> float:
    raise LeakingEstimatorError(
        "RandomForestClassifier gives each tree a 31-bit integer seed, keeps it on the fitted model and draws the "
        "public thresholds and the secret noise from it, so that the noise can be recomputed. Use diffprivlib's "
        "DecisionTreeClassifier with random_state=None."
    )


def _k_means(model: Any) -> float:
    raise LeakingEstimatorError(
        "KMeans leaves a centre exactly where it was when no record is near it, and keeps inertia_ and labels_ "
        "without noise: no finite epsilon holds for the fitted model. Use another clusterer, or declare guarantee= if "
        "you know better."
    )


def _clipped_apart(model: Any, lower: np.ndarray, upper: np.ndarray) -> None:
    """diffprivlib clips all features to the widest interval if NumPy finds them close, but scales the noise to each."""
    equal = np.all(lower == lower.min()) and np.all(upper == upper.max())
    if not equal and np.allclose(lower, lower.min()) and np.allclose(upper, upper.max()):
        raise LeakingEstimatorError(
            f"{type(model).__name__} has bounds that differ between features by less than np.allclose sees: "
            "diffprivlib 0.6.6 then clips every feature to the widest of them, and makes too little noise for the "
            "others. Subtract public constants and rescale the features so that one pair of bounds, e.g. bounds=(-1, "
            "1), holds for all."
        )


def _not_tiny(model: Any) -> None:
    if model.epsilon < SMALLEST_EPSILON:
        raise LeakingEstimatorError(
            f"{type(model).__name__} has epsilon={model.epsilon!r}: below {SMALLEST_EPSILON:g} diffprivlib computes "
            "the scale of its bounded noise with too large an error. Raise epsilon, or use fewer candidates (n_iter)."
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
            f"{type(model).__name__} has {name}={given!r}. It needs finite public bounds with lower < upper for every "
            f"feature, e.g. {name}=(0, 1)."
        )
    return lower, upper


#: Every model of diffprivlib 0.6.6 that trains.
MODELS: dict[str, Model] = {
    "DecisionTreeClassifier": Model(_tree, ("bounds", "classes")),
    "GaussianNB": Model(_naive_bayes, ("bounds",), (PUBLIC_SIZE, PUBLIC_CLASSES, DOUBLES)),
    "KMeans": Model(_k_means, exact=("labels_", "inertia_", "n_iter_")),
    "LinearRegression": Model(
        _linear_regression,
        ("bounds_X", "bounds_y"),
        (
            "All records lie within bounds_X and bounds_y: LinearRegression does not clip without an intercept.",
            "y has one column.",
            DOUBLES,
        ),
        also=("fit_intercept",),
    ),
    "LogisticRegression": Model(
        _logistic_regression,
        ("data_norm",),
        (PUBLIC_SIZE, PUBLIC_CLASSES, "The optimiser of LogisticRegression reaches the minimum, up to rounding."),
        also=("fit_intercept", "n_jobs", "verbose"),
        exact=("n_iter_",),
        settings={"tol": 1e-12, "max_iter": 10_000},  # the default stops a record's gradient away from the minimum
    ),
    "PCA": Model(_pca, exact=("n_samples_",)),
    "RandomForestClassifier": Model(_forest),
    "StandardScaler": Model(_scaler, ("bounds",), (PUBLIC_SIZE,)),
}


class SystemRandomState(np.random.RandomState):
    """The operating system's generator for what a tree draws: features, thresholds, labels of empty leaves and noise.

    NumPy's own generator can be computed from some 400 released thresholds, and then tells which leaves were empty.
    """

    _source = secrets.SystemRandom()

    def __reduce__(self) -> Any:
        return type(self), ()  # a copy must not fall back to NumPy's generator

    def random(self, size: None = None) -> float:
        return self._source.random()

    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float:
        return self._source.uniform(low, high)

    def randint(self, low: int, high: int | None = None, size: None = None, dtype: Any = int) -> int:
        return self._source.randrange(low) if high is None else self._source.randrange(low, high)


class DiffprivlibAdapter(Adapter):
    """The models of ``diffprivlib.models``, by exact type: a subclass may have changed ``fit``."""

    def recognises(self, estimator: Any) -> bool:
        kind = type(estimator)
        theirs = kind.__module__.startswith("diffprivlib.models.") or kind.__module__ == CLIPPED
        return theirs and _name(estimator) in MODELS

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        model = MODELS[_name(estimator)]
        _examined(type(estimator).__name__)
        epsilon = _checked_epsilon(estimator)
        for name in model.bounds:
            _require_given(estimator, name)
        guarantee = PureDP(epsilon=_above(epsilon * model.factor(estimator)), neighboring="replace_one")
        return TrainingRun(guarantee=guarantee, assumptions=model.assumptions)

    def scaled(self, estimator: Any, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        return {"epsilon": estimator.epsilon * factor}

    def privacy_parameters(self, estimator: Any) -> tuple[str, ...]:
        model = MODELS[_name(estimator)]
        return ("epsilon", *model.bounds, *model.also)

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        """No seed: the mechanisms then draw on the operating system. An own ledger: the default one counts the runs."""
        from diffprivlib.accountant import BudgetAccountant

        name = _name(estimator)
        source = SystemRandomState() if name == "DecisionTreeClassifier" else None
        return {"random_state": source, "accountant": BudgetAccountant(), **MODELS[name].settings}

    def extrapolation(self, estimator: Any) -> Mapping[str, Rule]:
        """C is kept: it weighs the sum of all losses (docs/theory/extrapolation.md). Others do not depend on n."""
        return {"C": "keep"} if type(estimator).__name__ == "LogisticRegression" else {}

    def finish(self, model: Any) -> None:
        """Predictions of a linear regression stay within ``bounds_y``: noise on few records sends them anywhere."""
        if type(model).__name__ == "LinearRegression":
            from ._clipped import ClippedLinearRegression

            model.__class__ = ClippedLinearRegression

    def scrub(self, model: Any) -> None:
        for name in MODELS[_name(model)].exact:
            model.__dict__.pop(name, None)


def _name(model: Any) -> str:
    """The name of a model in diffprivlib."""
    return type(model).__name__.removeprefix("Clipped")


def _examined(name: str) -> None:
    version = getattr(sys.modules.get("diffprivlib"), "__version__", None)
    if version != EXAMINED:
        raise UnknownGuaranteeError(
            f"{name} comes from diffprivlib {version}; what its models really promise is known for {EXAMINED}. Install "
            f"diffprivlib=={EXAMINED}, or declare what one fit promises, e.g. guarantee=PureDP(epsilon=1.0)."
        )


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
            f"{type(estimator).__name__} has {name}=None and would read it from the data. Give {name} as public "
            "constants, known without looking at the data."
        )


def _above(epsilon: float) -> float:
    """Two doubles up, unless the product is a short decimal: it may have been rounded down."""
    return epsilon if epsilon == round(epsilon, 12) else math.nextafter(math.nextafter(epsilon, math.inf), math.inf)
