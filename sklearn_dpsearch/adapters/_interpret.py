"""The adapter of InterpretML's private explainable boosting machine (DP-EBM, Nori et al. 2021).

DP-EBM draws bins from noisy histograms, one for each feature, and then boosts: each step adds
Gaussian noise to the sum of residuals in each region of one feature. Its own accounting adds the ε
of both parts and halves δ. Both parts are Gaussian mechanisms, so their composition is one with
μ² = μ_bin² + μ_boost², exactly (Dong, Roth & Su 2022, Corollary 3.3): a stated ε of 1 is 0.87.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize, stats
from sklearn.utils import check_random_state

from ..privacy import GaussianDP, LeakingEstimatorError, PrivacyError
from ..privacy._checks import Neighboring
from ._adapter import Adapter, Estimator, Names, Parameters, TrainingRun, positive, require_version

#: Release of interpret-core whose source was read.
RELEASE = "0.7.8"
CLASSIFIER, REGRESSOR = "DPExplainableBoostingClassifier", "DPExplainableBoostingRegressor"
#: The noise multiplier of DP-EBM is the solution of an equation in doubles; μ is rounded up by this
#: much.
ROUNDING = 1e-9
#: Values of ε between which noise can be calibrated.
SMALLEST, LARGEST = 1e-4, 500.0
ASSUMPTIONS = (
    "The number of records is public (DP-EBM divides bins and intercepts by it).",
    "The two class labels are public, and each of them occurs whichever one record is taken out.",
    "No feature has a missing value: DP-EBM fails at one. A TableEncoder, or an imputer with a "
    "constant, leaves none.",
    "The noise of DP-EBM is drawn in double precision by interpret-core, seeded by the operating "
    "system.",
)
REGRESSOR_LEAKS = (
    f"{REGRESSOR} has no finite guarantee: its noise covers targets between privacy_target_min and "
    "privacy_target_max, but residuals are not clipped and exceed this range (a target between "
    "9000 and 10000 moves a sum by ten times the covered amount). Use a regressor of "
    "sklearn_dpsearch.nets."
)


class InterpretAdapter(Adapter):
    """DP-EBM classifiers, by exact type: a subclass may have changed ``fit``."""

    def recognises(self, estimator: object) -> bool:
        kind = type(estimator)
        return kind.__module__.startswith("interpret.") and kind.__name__ in (CLASSIFIER, REGRESSOR)

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        if type(estimator).__name__ == REGRESSOR:
            raise LeakingEstimatorError(REGRESSOR_LEAKS)
        example = "GaussianDP(mu=0.25, neighboring='zero_out')"
        require_version("interpret", "interpret-core", RELEASE, example)
        parameters = estimator.get_params(deep=False)
        budget = _checked_budget(parameters)
        _check_features(parameters)
        guarantee = GaussianDP(mu=_mu(*budget), neighboring="zero_out")
        return TrainingRun(guarantee=guarantee, assumptions=ASSUMPTIONS)

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        """An ``epsilon`` with which μ of one ``fit`` is multiplied by ``factor``, rounded down."""
        epsilon, delta, share, composition = _checked_budget(estimator.get_params(deep=False))
        mu = factor * _mu(epsilon, delta, share, composition)
        return {"epsilon": _epsilon_for(mu, delta, share, composition)}

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...]:
        return (
            *("epsilon", "delta", "bin_budget_frac", "composition"),
            *("feature_types", "feature_names", "privacy_bounds", "validation_size"),
        )

    def fresh_randomness(self, estimator: Estimator) -> Parameters:
        """No seed, so that the operating system seeds the noise, and one process.

        The search has processes of its own.
        """
        return {"random_state": None, "n_jobs": 1}

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        return {} if neighboring == "zero_out" else None

    def prepare(self, model: Any) -> None:
        """Draw an integer from the generator that a search with a seed has set.

        DP-EBM takes no generators.
        """
        if model.random_state is not None:
            model.random_state = int(check_random_state(model.random_state).randint(2**31 - 1))

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]]:
        """Learning rates, rounds and leaves.

        The default rate loses four to six points of accuracy on Adult.
        """
        rates = [0.05, 0.1, 0.2, 0.4] if grid else stats.loguniform(0.02, 0.5)
        return [{"learning_rate": rates, "max_rounds": [100, 300], "max_leaves": [2, 3]}]


# --- the budget -----------------------------------------------------------------------------------


def _checked_budget(parameters: Mapping[str, Any]) -> tuple[float, float, float, str]:
    """ε, δ, the share of ε for bins, and the kind of composition, checked."""
    epsilon = positive(CLASSIFIER, "epsilon", parameters["epsilon"])
    delta = positive(CLASSIFIER, "delta", parameters["delta"], below=1.0)
    share = positive(CLASSIFIER, "bin_budget_frac", parameters["bin_budget_frac"], below=1.0)
    if parameters["composition"] not in ("gdp", "classic"):
        raise PrivacyError(
            f"Found composition={parameters['composition']!r} in {CLASSIFIER}; 'gdp' (less noise) "
            "or 'classic' is needed."
        )
    if parameters["validation_size"] != 0:
        raise PrivacyError(
            f"Found validation_size={parameters['validation_size']!r} in {CLASSIFIER}; 0 is "
            "needed: DP-EBM does not stop early, so records set aside would be lost. The search "
            "validates candidates itself."
        )
    return epsilon, delta, share, str(parameters["composition"])


@lru_cache(maxsize=1024)
def _mu(epsilon: float, delta: float, share: float, composition: str) -> float:
    """μ of binning and boosting together, from the noise that ``fit`` will add; rounded up."""
    from interpret.utils import _privacy as interpret_privacy

    binning = epsilon * share
    # as ``fit`` divides the budget
    parts = ((binning, delta / 2), (epsilon - binning, delta - delta / 2))
    if composition == "gdp":
        multipliers = [float(interpret_privacy.calc_gdp_noise_multi(1, *part)) for part in parts]
    else:
        classic = interpret_privacy.calc_classic_noise_multi
        multipliers = [float(classic(1, *part, 1.0)) for part in parts]
    return math.hypot(*(1.0 / multiplier for multiplier in multipliers)) * (1.0 + ROUNDING)


def _epsilon_for(mu: float, delta: float, share: float, composition: str) -> float:
    """The largest ``epsilon`` found with at most this μ.

    Raises
    ------
    PrivacyError
        If no ``epsilon`` between ``SMALLEST`` and ``LARGEST`` has this μ.
    """

    def excess(log_epsilon: float) -> float:
        return math.log(_mu(math.exp(log_epsilon), delta, share, composition) / mu)

    try:
        log_epsilon = optimize.brentq(excess, math.log(SMALLEST), math.log(LARGEST), xtol=1e-13)
    except ValueError:
        raise PrivacyError(
            f"Found no epsilon from {SMALLEST:g} to {LARGEST:g} with which {CLASSIFIER} has "
            f"mu={mu:g} at delta={delta:g}. Give the search another epsilon, or the estimator "
            f"another delta."
        ) from None
    while excess(log_epsilon) > 0:
        log_epsilon -= 1e-12
    return math.exp(log_epsilon)


# --- the features ---------------------------------------------------------------------------------


def _check_features(parameters: Mapping[str, Any]) -> None:
    """Raise unless types and bounds of all features are given.

    DP-EBM would read them from the records.
    """
    types = parameters["feature_types"]
    is_list = isinstance(types, Sequence) and not isinstance(types, str)
    if not is_list or not all(kind in ("continuous", "ignore") for kind in types):
        raise LeakingEstimatorError(
            f"Found feature_types={types!r} in {CLASSIFIER}; a list with 'continuous' (or "
            "'ignore') for each feature is needed. DP-EBM guesses missing types from the records, "
            "and takes the categories of 'nominal' and 'ordinal' features from the records. Encode "
            "categories as integers from public lists, e.g. with OrdinalEncoder(categories=[...], "
            "handle_unknown='use_encoded_value', unknown_value=-1), and call them 'continuous'."
        )
    bounds = _bounds(parameters["privacy_bounds"], len(types), parameters["feature_names"])
    for number, (kind, interval) in enumerate(zip(types, bounds)):
        if kind == "continuous" and not _is_range(interval):
            raise LeakingEstimatorError(
                f"Found privacy_bounds={interval!r} for feature {number} of {CLASSIFIER}; public "
                "constants (lower, upper) with lower < upper are needed for each feature, by its "
                "number or in the order of the features: DP-EBM reads missing bounds from the "
                "records."
            )


def _bounds(bounds: Any, n_features: int, names: Sequence[str] | None) -> list[Any]:
    """Bounds by number of the feature; None where they are missing."""
    if isinstance(bounds, Mapping):
        by_name = [None] * n_features if names is None else [bounds.get(name) for name in names]
        return [bounds.get(number, named) for number, named in zip(range(n_features), by_name)]
    rows = [] if bounds is None else list(bounds)
    return rows if len(rows) == n_features else [None] * n_features


def _is_range(bounds: Any) -> bool:
    if bounds is None or np.shape(bounds) != (2,):
        return False
    lower, upper = (float(end) for end in bounds)
    return math.isfinite(lower) and math.isfinite(upper) and lower < upper
