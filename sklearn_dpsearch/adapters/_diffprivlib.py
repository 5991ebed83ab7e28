"""Actual guarantees of diffprivlib 0.6.6's models, and the adapter that states them.

The guarantees are read from the models' mechanisms. The library does not state the neighbours for
which its ε holds. All guarantees here are for replace-one neighbours with a public number of
records, because most models use the number exactly. A model whose noise was made for adding or
removing a record costs more under replace-one. Proofs are in docs/theory/diffprivlib.md, and
refusals in docs/reference/diffprivlib.md.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..privacy import LeakingEstimatorError, PureDP
from ..privacy._checks import Array, Neighboring
from ._adapter import Adapter, Estimator, Names, Parameters, TrainingRun, positive, require_version

#: The module of the models that are trained in double precision, and of those whose predictions are
#: clipped.
VARIANTS_MODULE = f"{__package__}._diffprivlib_variants"
#: Release of diffprivlib whose sources were read.
RELEASE = "0.6.6"
PUBLIC_SIZE = "The number of records is public (diffprivlib divides noise by it)."
PUBLIC_CLASSES = (
    "The class labels are public: every part of the records that trains holds each of them, "
    "whichever one record is changed."
)

#: Below this ε rounding errors spoil the scale of bounded Laplace noise for a single feature.
SMALLEST_EPSILON = 1e-3


@dataclass(frozen=True)
class KnownModel:
    """Facts about one model.

    Parameters
    ----------
    factor : callable
        Model ↦ multiple of its ``epsilon`` that holds for replace-one neighbours; raises if none
        does.
    bounds : tuple of str
        Parameters that must be given: diffprivlib would read them from the data.
    assumptions : tuple of str
    also : tuple of str
        Other parameters on which the guarantee depends.
    exact : tuple of str
        Fitted attributes that are computed from the data without noise. They are deleted before a
        model is released, also where its guarantee is declared.
    settings : mapping
        Parameters that the guarantee needs: every candidate gets them, also against the user's
        choice.
    """

    factor: Callable[[Any], float]
    bounds: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def _factor_of_scaler(model: Any) -> float:
    """Mean and variance at ε/2 each, split over the features.

    Both noises are scaled to a changed record.
    """
    _intervals(model, "bounds")
    _refuse_tiny_epsilon(model)
    return 1.0


def _factor_of_naive_bayes(model: Any) -> float:
    """Two counts, two vectors of sums and two vectors of squares, at ε/3 each.

    A record that changes its class touches all of them. The noise of a sum is scaled to upper −
    lower, but a record that enters a class moves the sum by max(|lower|, |upper|).
    """
    lower, upper = _intervals(model, "bounds")
    equal = np.all(lower == lower.min()) and np.all(upper == upper.max())
    if not equal and np.allclose(lower, lower.min()) and np.allclose(upper, upper.max()):
        raise LeakingEstimatorError(
            "GaussianNB has bounds that differ between features by less than np.allclose sees: "
            "diffprivlib 0.6.6 then clips every feature to the widest of them, and makes too "
            "little noise for the others. Subtract public constants and rescale the features so "
            "that one pair of bounds, e.g. bounds=(-1, 1), holds for all."
        )
    _refuse_tiny_epsilon(model)
    reach = np.maximum(np.abs(lower), np.abs(upper)) / (upper - lower)
    return float(2.0 * (2.0 + np.mean(reach)) / 3.0)


def _factor_of_logistic_regression(model: Any) -> float:
    """Objective perturbation needs every coefficient in the penalty and rows of norm at most 2."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LogisticRegression has fit_intercept=True: diffprivlib does not penalise the "
            "intercept, and without that objective perturbation has no finite epsilon. Set "
            "fit_intercept=False and append a constant column, e.g. with a FunctionTransformer, "
            "counted in data_norm."
        )
    if not 0 < model.data_norm <= 2:
        raise LeakingEstimatorError(
            f"LogisticRegression has data_norm={model.data_norm!r}: diffprivlib's noise covers its "
            "epsilon only for rows of norm at most 2. Divide the features by public constants so "
            "that data_norm <= 2 (1 is usual)."
        )
    if model.n_jobs not in (None, 1):
        raise LeakingEstimatorError(
            f"LogisticRegression has n_jobs={model.n_jobs!r}: its processes would draw the same "
            "noise. Set n_jobs=None; the search runs candidates in parallel instead."
        )
    if model.verbose:
        raise LeakingEstimatorError(
            f"LogisticRegression has verbose={model.verbose!r}: the optimiser prints every "
            "candidate's loss. Set verbose=0."
        )
    return 1.0


def _factor_of_linear_regression(model: Any) -> float:
    """Functional mechanism, for settings in which its sensitivities are correct."""
    if model.fit_intercept:
        raise LeakingEstimatorError(
            "LinearRegression has fit_intercept=True: diffprivlib 0.6.6 then spends more than "
            "epsilon on the means and scales the noise of the squares by the lower bounds alone, "
            "so no finite epsilon holds. Centre X and y by public constants and set "
            "fit_intercept=False."
        )
    _intervals(model, "bounds_y")
    lower, upper = _intervals(model, "bounds_X")
    if np.any(np.abs(lower) < np.abs(upper)):
        raise LeakingEstimatorError(
            "LinearRegression has bounds_X whose upper end is further from 0 than the lower one: "
            "diffprivlib 0.6.6 scales the noise of the squares by the lower bounds alone. Give "
            "symmetric bounds, e.g. bounds_X=(-1, 1)."
        )
    return 1.0


def _no_finite_factor(reason: str) -> Callable[[Any], float]:
    """Factor of a model for which no finite ε holds."""

    def refuse(model: Any) -> float:
        raise LeakingEstimatorError(reason)

    return refuse


def _refuse_tiny_epsilon(model: Any) -> None:
    if model.epsilon < SMALLEST_EPSILON:
        raise LeakingEstimatorError(
            f"{type(model).__name__} has epsilon={model.epsilon!r}: below {SMALLEST_EPSILON:g} "
            "diffprivlib computes the scale of its bounded noise with too large an error. Raise "
            "epsilon, or use fewer candidates (n_iter)."
        )


def _intervals(model: Any, name: str) -> tuple[Array, Array]:
    """Lower and upper ends of a parameter that holds bounds, checked."""
    bounds = getattr(model, name)
    try:
        lower, upper = (np.ravel(np.asarray(end, dtype=float)) for end in bounds)
        usable = bool(np.all(np.isfinite([*lower, *upper])) and np.all(lower < upper))
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise LeakingEstimatorError(
            f"{type(model).__name__} has {name}={bounds!r}. It needs finite public bounds with "
            f"lower < upper for every feature, e.g. {name}=(0, 1)."
        )
    return lower, upper


#: Every model of diffprivlib 0.6.6 that trains.
MODELS: dict[str, KnownModel] = {
    # permute-and-flip per leaf, at ε for a record more or less: a change touches two leaves
    "DecisionTreeClassifier": KnownModel(lambda model: 2.0, ("bounds", "classes")),
    "GaussianNB": KnownModel(_factor_of_naive_bayes, ("bounds",), (PUBLIC_SIZE, PUBLIC_CLASSES)),
    "KMeans": KnownModel(
        _no_finite_factor(
            "KMeans leaves a centre exactly where it was when no record is near it, and keeps "
            "inertia_ and labels_ without noise: no finite epsilon holds for the fitted model. Use "
            "another clusterer, or declare guarantee= if you know better."
        ),
        exact=("labels_", "inertia_", "n_iter_"),
    ),
    "LinearRegression": KnownModel(
        _factor_of_linear_regression,
        ("bounds_X", "bounds_y"),
        (
            "All records lie within bounds_X and bounds_y: LinearRegression does not clip without "
            "an intercept.",
            "y has one column.",
        ),
        also=("fit_intercept",),
    ),
    "LogisticRegression": KnownModel(
        _factor_of_logistic_regression,
        ("data_norm",),
        (
            PUBLIC_SIZE,
            PUBLIC_CLASSES,
            "The optimiser of LogisticRegression reaches the minimum, up to rounding.",
        ),
        also=("fit_intercept", "n_jobs", "verbose"),
        exact=("n_iter_",),
        # with the default tolerance the optimiser stops about one record's gradient away from the
        # minimum
        settings={"tol": 1e-12, "max_iter": 10_000},
    ),
    "PCA": KnownModel(
        _no_finite_factor(
            "PCA draws its components by a rejection sampler that in diffprivlib 0.6.6 divides by "
            "a density where it should multiply: epsilon was proved for another distribution, and "
            "the loss grows with the number of features. Project by a public matrix instead "
            "(FunctionTransformer), drop the step, or declare guarantee= if you know better."
        ),
        exact=("n_samples_",),
    ),
    "RandomForestClassifier": KnownModel(
        _no_finite_factor(
            "RandomForestClassifier gives each tree a 31-bit integer seed, keeps it on the fitted "
            "model and draws the public thresholds and the secret noise from it, so that the noise "
            "can be recomputed. Use diffprivlib's DecisionTreeClassifier with random_state=None."
        )
    ),
    "StandardScaler": KnownModel(_factor_of_scaler, ("bounds",), (PUBLIC_SIZE,)),
}


def _searched_penalties(current: float, grid: bool) -> Any:
    """Current strength and stronger penalties, down to a hundredth.

    The default fails below epsilon = 1.
    """
    from scipy.stats import loguniform

    return [current / 100, current / 10, current] if grid else loguniform(current / 100, current)


def _searched_depths(current: int, grid: bool) -> list[int]:
    """Values of the depth, half of which are the current depth."""
    neighbours = [depth for depth in (current - 2, current + 3) if depth >= 1]
    return [current] * (1 if grid else len(neighbours)) + neighbours


#: Space around a model's current parameters: name ↦ (current value, whether for a grid) ↦ values.
SPACES: dict[str, Mapping[str, Callable[[Any, bool], Any]]] = {
    "DecisionTreeClassifier": {"max_depth": _searched_depths},
    "LogisticRegression": {"C": _searched_penalties},
}


# --- the adapter ----------------------------------------------------------------------------------


class SystemRandomState(np.random.RandomState):
    """The operating system's generator, for the draws of a tree.

    A tree draws features, thresholds, labels of empty leaves and noise. The state of NumPy's
    generator can be computed from some 400 released thresholds, and tells which leaves were empty.
    """

    _source = secrets.SystemRandom()

    def __reduce__(self) -> Any:
        return type(self), ()  # a copy must not fall back to NumPy's generator

    # trees draw single numbers only, so NumPy's signatures for arrays do not matter

    def random(self, size: None = None) -> float:  # type: ignore[override]
        return self._source.random()

    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float:  # type: ignore[override]
        return self._source.uniform(low, high)

    def randint(  # type: ignore[override]
        self, low: int, high: int | None = None, size: None = None, dtype: type = int
    ) -> int:
        return self._source.randrange(low) if high is None else self._source.randrange(low, high)


class DiffprivlibAdapter(Adapter):
    """The models of ``diffprivlib.models``, by exact type: a subclass may have changed ``fit``."""

    def recognises(self, estimator: object) -> bool:
        module = type(estimator).__module__
        is_of_diffprivlib = module.startswith("diffprivlib.models.") or module == VARIANTS_MODULE
        return is_of_diffprivlib and _name(estimator) in MODELS

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        model = MODELS[_name(estimator)]
        require_version("diffprivlib", "diffprivlib", RELEASE, "PureDP(epsilon=1.0)")
        owner, parameters = type(estimator).__name__, estimator.get_params(deep=False)
        epsilon = positive(owner, "epsilon", parameters["epsilon"])
        for name in model.bounds:
            if parameters[name] is None:
                raise LeakingEstimatorError(
                    f"{owner} has {name}=None and would read it from the data. Give {name} as "
                    "public constants, known without looking at the data."
                )
        epsilon = _rounded_up(epsilon * model.factor(estimator))
        guarantee = PureDP(epsilon=epsilon, neighboring="replace_one")
        return TrainingRun(guarantee=guarantee, assumptions=model.assumptions)

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        return {"epsilon": estimator.get_params(deep=False)["epsilon"] * factor}

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...]:
        model = MODELS[_name(estimator)]
        return ("epsilon", *model.bounds, *model.also)

    def fresh_randomness(self, estimator: Estimator) -> Parameters:
        """No seed, so that mechanisms draw on the operating system, and an own accountant.

        The default counts runs.
        """
        from diffprivlib.accountant import BudgetAccountant

        name = _name(estimator)
        source = SystemRandomState() if name == "DecisionTreeClassifier" else None
        return {"random_state": source, "accountant": BudgetAccountant(), **MODELS[name].settings}

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        return {} if neighboring == "replace_one" else None

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]]:
        """Space around the current parameters, from ``SPACES``."""
        around = SPACES.get(_name(estimator), {})
        return [{name: values(getattr(estimator, name), grid) for name, values in around.items()}]

    def prepare(self, model: Estimator) -> None:
        """Make the model train in double precision.

        Bounds are truncated to the type of X, where that is not.
        """
        model.__class__, _ = _training_and_released_types(model)

    def finish(self, model: Estimator) -> None:
        """Keep the predictions of a linear regression within ``bounds_y``.

        On few records the noise is that large.
        """
        _, model.__class__ = _training_and_released_types(model)

    def scrub(self, model: Estimator) -> None:
        for name in MODELS[_name(model)].exact:
            model.__dict__.pop(name, None)


def _name(model: object) -> str:
    """Name of this model in diffprivlib."""
    return type(model).__name__.removeprefix("Clipped").removesuffix("InDoubles")


def _training_and_released_types(model: Estimator) -> tuple[type, type]:
    """The type of a model that trains, and of one that is released."""
    from ._diffprivlib_variants import VARIANTS

    return VARIANTS.get(_name(model), (type(model), type(model)))


def _rounded_up(epsilon: float) -> float:
    """Round up by two doubles, because the product may have been rounded down.

    Short decimals stay.
    """
    if epsilon == round(epsilon, 12):
        return epsilon
    return math.nextafter(math.nextafter(epsilon, math.inf), math.inf)
