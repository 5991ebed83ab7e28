"""The whole grid, one private choice by report noisy max, one private training."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..adapters import adapter_for
from ..privacy import (
    ExponentialNoise,
    GaussianNoise,
    Guarantee,
    GumbelNoise,
    LaplaceNoise,
    MissingDeltaError,
    PrivacyError,
    calibrate,
    compose,
    noisy_max,
)
from ..privacy.mechanisms.report_noisy_max import MaxNoise
from ..privacy.spent import Component
from ..scoring.validation import Validation
from ._aggregated import (
    ONE_PART,
    InParts,
    checked_points,
    drawn_parts,
    number_of_parts,
    number_of_points,
    on_part_in_the_open,
    train_winner,
    utilities_of,
    utility_scorer,
)
from ._base import BasePrivateSearch
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, n_records
from ._space import Space
from ._utilities import sensitivity

#: Multiples of the sensitivity on which Laplace and Gaussian noise live: 1/GRID of it.
GRID = 256
#: Multiples of its grid that the scale of Gaussian noise is at most, and the largest scale that is tried.
STEPS, LARGEST_SCALE = 3000, 1e3


class DPGridSearchCV(BasePrivateSearch):
    """The private ``GridSearchCV``: every candidate is tried, one is chosen by a noisy maximum, and trained once.

    The records are split at random into ``n_parts`` parts. Every candidate is trained and scored on each part; these
    models are never released. One record is in one part, so it changes a candidate's mean score, its utility, by 1/k
    at most. Report noisy max chooses a candidate, at a cost that does not depend on the size of the grid, and one
    private training on all records follows.

    Parameters
    ----------
    estimator : estimator
        A private estimator, as for ``DPRandomSearchCV``.
    param_grid : dict or list of dicts
        Parameter name to a list of values.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases: choice and training. With ``epsilon`` the estimator's noise is
        calibrated. Without it the estimator is run as configured, and ``selection_epsilon`` is needed.
    selection_share : float, default=0.3
        Share of ``epsilon`` that the choice gets.
    selection_epsilon : float, optional
        ε of the choice, instead of a share.
    noise : {"exponential", "permute_and_flip", "laplace", "gaussian"}, default="exponential"
        Gumbel noise (the exponential mechanism), exponential noise (permute and flip), Laplace noise: purely private.
        Gaussian noise: at ``delta``.
    n_parts : int, optional
        Number of parts k. By default the smallest with an expected loss of utility through noise of at most 0.05,
        2·log(candidates)/(k·ε), but not more than one part for 50 records.
    part_noise : {"scaled", "same"}, default="scaled"
        Noise of the models on parts. "scaled": k times smaller, as much in proportion to the number of records as in
        the final training, where the estimator's noise can be scaled. "same": as in the final training.
    scoring : str, callable or None, default=None
        Any score with values in [0, 1], public or not: scores outside are moved to the ends.
    guarantee : Guarantee or callable, optional
        What one fit promises, on the caller's word.
    n_jobs, pre_dispatch : int, int or str
        As in scikit-learn; one task per part.
    error_score : float, default=nan
        Score on a part of a candidate that fails there; nan is 0, the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data.
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.

    Attributes
    ----------
    best_params_, best_index_ : dict, int
        The candidate chosen.
    best_score_ : float
        nan: the choice releases no score.
    best_estimator_ : estimator
        Trained on all records.
    privacy_spent_ : PrivacySpent
        What the whole fit cost; unpacks as (epsilon, delta).
    cv_results_ : dict
        The released row, without a score.
    n_splits_ : int
        Number of parts.
    scorer_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The cost of the choice is that of ``sklearn_dpsearch.privacy.noisy_max`` (docs/theory/noisy_max.md; Koskela,
    Redberg & Wang 2024, Theorem 3.2). Without ``X_public`` a quarter of each part validates.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> search = DPGridSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, selection_epsilon=0.5, n_parts=20,
    ...     guarantee=PureDP(epsilon=1.0),
    ... )
    >>> search.privacy_cost().epsilon
    1.5
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_grid": [dict, list],
        "selection_share": [Interval(numbers.Real, 0, 1, closed="neither")],
        "selection_epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "noise": [StrOptions({"exponential", "permute_and_flip", "laplace", "gaussian"})],
        "n_parts": [None, Interval(numbers.Integral, 2, None, closed="left")],
        "part_noise": [StrOptions({"scaled", "same"})],
    }
    _parameter_constraints.pop("score_noise")

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        selection_share: float = 0.3,
        selection_epsilon: float | None = None,
        noise: str = "exponential",
        n_parts: int | None = None,
        part_noise: str = "scaled",
        scoring: Any = None,
        guarantee: Any = None,
        n_jobs: int | None = None,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.selection_share = selection_share
        self.selection_epsilon = selection_epsilon
        self.noise = noise
        self.n_parts = n_parts
        self.part_noise = part_noise
        self.scoring = scoring
        self.guarantee = guarantee
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.verbose = verbose
        self.random_state = random_state

    # --- plan -----------------------------------------------------------------------------------------------------

    def _distributions(self) -> Space:
        return Space.of(self.param_grid, "param_grid")

    def _law(self) -> None:
        return None

    def _scorer(self, public: bool) -> Any:
        return utility_scorer(self._public_scorer())

    def _selection_epsilon(self) -> float:
        if self.selection_epsilon is not None:
            return float(self.selection_epsilon)
        if self.epsilon is None:
            raise PrivacyError(
                "Found neither epsilon nor selection_epsilon: what may the choice cost? Give epsilon, the total for "
                "choice and training, or selection_epsilon, and the estimator's own noise as configured."
            )
        return float(self.epsilon) * float(self.selection_share)

    def _chooser(self, unit: Fraction, candidates: int) -> MaxNoise:
        """The noise, for utilities of this sensitivity."""
        return NOISES[self.noise](Fraction(self._selection_epsilon()), unit, candidates, self.delta)

    def _number_of_parts(self, relation: str, n_samples: int | None) -> int | None:
        adapter, space = adapter_for(self.estimator, self.guarantee), self._distributions()
        return number_of_parts(
            self.n_parts, adapter, self.estimator, relation, n_samples, self._selection_epsilon(), space
        )

    def _validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        self._number_of_parts(relation, n_samples)
        return InParts(public)

    def _cost_parts(
        self, promises: Any, scoring: Any, validation: Any, law: Any
    ) -> tuple[tuple[Component, ...], Guarantee]:
        number = number_of_points(self._distributions())
        training = promises.worst
        choice = noisy_max(number, 1, self._chooser(Fraction(1), number), neighboring=training.neighboring)
        components = (
            Component(
                name=f"choice among {number} candidate{'s' * (number > 1)} by report noisy max ({self.noise})",
                guarantee=choice,
            ),
            Component(name="training of the winner on all records", guarantee=training),
        )
        return components, compose(choice, training)

    def _own_notes(self, relation: str) -> tuple[str, ...]:
        return (ONE_PART,)

    # --- run ------------------------------------------------------------------------------------------------------

    def _candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        return checked_points(plan)

    def _parts(self, plan: Plan, candidates: Sequence[Mapping[str, Any]], n_samples: int, source: Randomness) -> Parts:
        k = self._number_of_parts(plan.spent.neighboring, n_samples)
        assert k is not None
        return drawn_parts(k, n_samples, plan.validation, source)

    def _search(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        k = len(job.parts.folds)
        *seeds, last = source.run_seeds(k + 1)
        if len(candidates) == 1:  # nothing to choose, and nothing is paid for it
            return train_winner(job, candidates[0], float("nan"), last, X, y)
        found = utilities_of(
            job, candidates, self.part_noise, seeds, X, y, n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch
        )
        chosen = self._chooser(sensitivity(k), len(candidates)).select(found, source.bits)
        return train_winner(job, candidates[chosen], float("nan"), last, X, y)

    def _dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        k = self.n_parts or self._number_of_parts(plan.spent.neighboring, n_records(X)) or 2
        return on_part_in_the_open(job, candidate, self.part_noise, k, X, y)


def _gaussian(epsilon: Fraction, unit: Fraction, candidates: int, delta: float | None) -> MaxNoise:
    """The least Gaussian noise with which the choice is (ε, δ)-private."""
    if not delta:
        raise MissingDeltaError(
            "Found noise='gaussian' with delta=None or 0: Gaussian noise is private at a delta > 0 only. Give delta, "
            "or use noise='exponential'."
        )

    return scaled_gaussian(least_scale(float(epsilon), candidates, float(delta)), unit)


def scaled_gaussian(scale: float, unit: Fraction) -> GaussianNoise:
    """Gaussian noise of a scale in multiples of the sensitivity, on a grid that divides the sensitivity."""
    return GaussianNoise(scale=Fraction(scale) * unit, grid=unit / max(1, min(GRID, int(STEPS / scale))))


@lru_cache(maxsize=64)
def least_scale(epsilon: float, candidates: int, delta: float) -> float:
    """The least scale of Gaussian noise, in multiples of the sensitivity, with which a choice is (ε, δ)-private."""

    def choice(scale: float) -> Guarantee:
        return noisy_max(candidates, 1, scaled_gaussian(scale, Fraction(1)))

    low, high = 1e-1, 1e1
    while choice(high).epsilon_at(delta) > epsilon and high < LARGEST_SCALE:
        low, high = high, 4 * high
    return calibrate(choice, epsilon, delta, (low, high))


#: Name ↦ (ε, sensitivity, candidates, δ) ↦ noise.
NOISES: dict[str, Callable[[Fraction, Fraction, int, float | None], MaxNoise]] = {
    "exponential": lambda epsilon, unit, candidates, delta: GumbelNoise(scale=2 * unit / epsilon),
    "permute_and_flip": lambda epsilon, unit, candidates, delta: ExponentialNoise(scale=2 * unit / epsilon),
    "laplace": lambda epsilon, unit, candidates, delta: LaplaceNoise(scale=2 * unit / epsilon, grid=unit / GRID),
    "gaussian": _gaussian,
}
