"""Grid search: every candidate, one private choice by report noisy max, one private training."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from .._documentation import documented
from .._process.progress import Progress
from ..privacy import Guarantee, GumbelNoise, PrivacyError, noisy_max
from ..privacy._spent import Component
from . import _sample_and_aggregate as sample_and_aggregate
from ._base import BasePrivateSearch
from ._execution.job import Job, Outcome
from ._execution.randomness import Randomness
from ._planning.checks import BUDGET, PARTS
from ._planning.plan import Cost
from ._planning.space_guarantee import SpaceGuarantee
from ._records import Candidates, Distributions

#: Share of ``epsilon`` that the choice gets, where ``selection_epsilon`` is not given.
SHARE = 0.3


@documented
@dataclass(eq=False, repr=False)
class DPGridSearchCV(BasePrivateSearch):
    """The private ``GridSearchCV``: try all candidates, choose by a noisy maximum, train once.

    Candidates are scored by sample-and-aggregate: the records are split at random into k =
    ``n_parts`` parts, and every candidate is trained and scored on each part. These models are
    never released. A record is in one part, so it changes a candidate's utility, the mean of its
    scores, by at most 1/k. Report noisy max chooses a candidate, at a cost that does not depend on
    the size of the grid, and one private training on all records follows.

    Parameters
    ----------
    param_grid : dict, list of dicts or "auto"
        Parameter name to a list of values. Values may be estimators for a step of a pipeline.
        "auto": a small grid around the estimator's current parameters
        (``search_space(estimator, grid=True)``).
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases: choice and training. With ``epsilon`` the
        estimator's noise is calibrated. Without it the estimator is run as configured, and
        ``selection_epsilon`` is needed.
    scoring : str, callable or None, default=None
        Any score with values in [0, 1], on private or public data: scores outside are clipped.
    selection_epsilon : float, optional
        ε of the choice. Default: 0.3 times ``epsilon``.
    n_parts : int, optional
        Number of parts k. Default: the smallest k with which noise costs at most 0.05 of utility in
        expectation, 2·log(candidates)/(k·ε), but at most one part for 50 records, and at most 400
        trainings on parts of all candidates together. With few parts the choice is noisy:
        ``verbose=1`` prints the expected loss.
    part_noise : {"scaled", "same"}, default="scaled"
        Noise of the models on parts. "scaled": k times smaller, so that relative to the number of
        records it is that of the final training, where the estimator's noise can be scaled. "same":
        as in the final training.
    n_jobs : int, optional
        As in scikit-learn; one task per part.
    error_score : float, default=nan
        Score on a part of a candidate that fails there; nan is 0, the worst.
    verbose : int, default=0
        Above 0 prints the plan, its work and its cost, which are known without the data, and counts
        trainings.

    Attributes
    ----------
    best_params_, best_index_ : dict, int
        The candidate chosen.
    best_score_ : float
        nan: the choice releases no score.
    best_estimator_ : estimator
        Trained on all records.
    cv_results_ : dict
        The released row, without a score.
    n_splits_ : int
        Number of parts.
    scorer_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The choice is accounted by ``sklearn_dpsearch.privacy.noisy_max`` (docs/theory/noisy_max.md;
    Koskela, Redberg & Wang 2024, Theorem 3.2). Without ``X_public`` a quarter of each part
    validates.

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

    param_grid: Distributions
    _: KW_ONLY
    selection_epsilon: float | None = None
    n_parts: int | None = None
    part_noise: str = "scaled"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePrivateSearch._parameter_constraints,
        "param_grid": [dict, list, StrOptions({"auto"})],
        "selection_epsilon": BUDGET,
        "n_parts": PARTS,
        "part_noise": [StrOptions({"scaled", "same"})],
    }
    _parameter_constraints.pop("score_noise")

    def _strategy(self) -> GridStrategy:
        return GridStrategy(self)


# --- what it costs --------------------------------------------------------------------------------


def cost_of_choice(
    promises: SpaceGuarantee,
    scoring: Guarantee | None,
    final: SpaceGuarantee,
    *,
    n_candidates: int,
    noise: GumbelNoise,
) -> tuple[Component, ...]:
    """Cost of a choice by report noisy max, with noise for sensitivity 1, and of one training."""
    training = promises.worst
    choice = noisy_max(n_candidates, 1, noise, neighboring=training.neighboring)
    name = f"choice among {n_candidates} candidate{'s' * (n_candidates > 1)} by report noisy max"
    return sample_and_aggregate.choice_and_training(name, choice, training)


# --- how it runs ----------------------------------------------------------------------------------


class GridStrategy(sample_and_aggregate.SampleAndAggregate):
    """Sample-and-aggregate over the grid, one choice by a noisy maximum, and one training.

    Parameters
    ----------
    search : DPGridSearchCV
    """

    search: DPGridSearchCV

    def __init__(self, search: DPGridSearchCV) -> None:
        super().__init__(search, search.param_grid, "param_grid", search)

    @property
    def choice_epsilon(self) -> float:
        search = self.search
        if search.selection_epsilon is not None:
            return float(search.selection_epsilon)
        if search.epsilon is not None:
            return SHARE * float(search.epsilon)
        raise PrivacyError(
            "Found neither epsilon nor selection_epsilon: what may the choice cost? Give epsilon, "
            "the total for choice and training, or selection_epsilon, and the estimator's own "
            "noise as configured."
        )

    def cost(self, n_candidates: int) -> Cost:
        return partial(cost_of_choice, n_candidates=n_candidates, noise=self.noise(Fraction(1)))

    def noise(self, sensitivity: Fraction) -> GumbelNoise:
        """Noise of the choice, for utilities of a sensitivity."""
        return GumbelNoise(scale=2 / Fraction(self.choice_epsilon) * sensitivity)

    def expected_loss(self, n_candidates: int, n_parts: int) -> str:
        """E[max of n noises] − E[noise] = scale·log(n) bounds what the winner lacks."""
        scale = float(self.noise(sample_and_aggregate.sensitivity(n_parts)).scale)
        loss = min(math.ceil(100 * scale * math.log(n_candidates)) / 100, 1.0)
        return f", and the noise of the choice costs at most {loss:.2f} of utility on average"

    def run(
        self, job: Job, candidates: Candidates, source: Randomness, progress: Progress
    ) -> Outcome:
        k = len(job.split.folds)
        *seeds, last = source.run_seeds(k + 1)
        if len(candidates) == 1:  # without a choice, at no cost
            return sample_and_aggregate.train_winner(job, candidates[0], float("nan"), last)
        sample_and_aggregate.count_trainings(progress, job, candidates)
        utilities_of = sample_and_aggregate.utilities_of
        utilities = utilities_of(job, candidates, self.part_noise, seeds, progress)
        progress.last_training()
        chosen = self.noise(sample_and_aggregate.sensitivity(k)).select(utilities, source.bits)
        return sample_and_aggregate.train_winner(job, candidates[chosen], float("nan"), last)
