"""Common parts of searches over a whole grid: the grid, sample-and-aggregate utilities, one final training."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...privacy import PrivacyError
from ...privacy.mechanisms.array_sampling import RandomBytes
from ...scoring.validation import Fold, PublicValidation, all_numbers
from .._records import n_records
from .._types import Candidate, Distributions, Parameters, Scorer, Seed
from ..execution.candidate_utilities import check_parts, less_noisy, random_parts, utilities_of
from ..execution.job import Job, Outcome
from ..execution.models import fitted, fresh, released_in_the_open, train_last
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..planning.plan import Facts, Plan
from .base import Strategy, checked_candidates

#: Assumption of the sensitivity of utilities.
ONE_PART = (
    "A model on one part depends on the records of that part alone: estimator and scorer keep nothing between calls."
)
#: Fewest records of a part, on average, with the default number of parts.
RECORDS = 50
#: Most trainings on parts, of all candidates together, with the default number of parts. A net trained together with
#: others costs about an eighth of a training on all records, for any size of its part (the number of steps stays).
MOST_TRAININGS = 400
#: Target of the default number of parts: expected loss of utility through noise of the exponential mechanism.
LOSS = 0.05


def utility_scorer(scorer: Scorer) -> Scorer:
    """Get a scorer with values in [0, 1], as far as known before any data is read.

    Raises
    ------
    PrivacyError
        For losses, whose values below 0 would all count as 0, and for means of values outside [0, 1].
    """
    loss = getattr(scorer, "_sign", 1) < 0 or not getattr(scorer, "greater_is_better", True)
    low, high = getattr(scorer, "lower", 0.0), getattr(scorer, "upper", 1.0)
    if loss or low < 0 or high > 1:
        found = "negative" if loss else f"in [{low:g}, {high:g}]"
        raise PrivacyError(
            f"Found scoring={scorer!r}, whose values are {found}: utilities must be in [0, 1], so that one record "
            "changes their mean over k parts by at most 1/k. Use a score such as accuracy, f1, roc_auc or r2, or a "
            "callable (estimator, X, y) with values in [0, 1]."
        )
    return scorer


def number_of_parts(given: int | None, n: int | None, epsilon: float, candidates: int) -> int | None:
    """Number of parts k: as given, or from the public number of records.

    The default is the smallest k with 2·log(candidates)/(k·ε) ≤ 0.05, a bound on the expected loss of utility by the
    exponential mechanism. A part keeps at least 50 records on average, and all candidates together train at most 400
    times on parts.

    Returns
    -------
    int or None
        None where the number of records is not known yet.
    """
    if given is not None:
        check_parts(int(given), n)
        return int(given)
    if n is None:
        return None
    candidates = max(candidates, 2)
    wanted = math.ceil(2 * math.log(candidates) / (LOSS * epsilon))
    return max(2, min(wanted, n // RECORDS, MOST_TRAININGS // candidates))


@dataclass(frozen=True)
class InParts(PublicValidation):
    """Split into parts, with a final model trained on all records and without a released score.

    Parameters
    ----------
    public : bool
        Whether models on parts are scored on public data instead of a share of their part.
    n_parts : int or None
        None where it depends on an unknown number of records.
    """

    public: bool
    n_parts: int | None

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        """Draw one part for each record, independently."""
        assert self.n_parts is not None
        return random_parts(n_samples, self.n_parts, self.public, random_bytes)


# --- the searches -----------------------------------------------------------------------------------------------------


class SampleAndAggregate(Strategy):
    """Sample-and-aggregate: utilities of all candidates on random parts, a private choice, and one private training.

    Parameters
    ----------
    search, distributions, parameter
        As for ``Strategy``.
    n_parts : int or None
        Number of parts, as given.
    part_noise : {"scaled", "same"}
        Noise of the models on parts.
    """

    whole_grid = True

    def __init__(
        self,
        search: Parameters,
        distributions: Distributions,
        parameter: str = "param_distributions",
        *,
        n_parts: int | None,
        part_noise: str,
    ) -> None:
        super().__init__(search, distributions, parameter)
        self.given_parts, self.part_noise = n_parts, part_noise

    def facts(self, n_samples: int | None, public: bool) -> Facts:
        families, scorer = self.families(n_samples), utility_scorer(self.public_scorer())
        candidates = self.space.size()
        cost, choice_epsilon = self.choice(candidates)
        k = number_of_parts(self.given_parts, n_samples, choice_epsilon, candidates)
        work = ""
        if k is not None and candidates > 1:
            fits = f"{candidates} candidates on {k} parts of the records are {candidates * k} trainings on parts"
            work = f"{fits}{self.expected_loss(cost, k)}; "
        validation = InParts(public, k)
        return self.resolved(
            families, public, scorer=scorer, validation=validation, cost=cost, notes=(ONE_PART,), work=work
        )

    @abstractmethod
    def choice(self, n_candidates: int) -> tuple[Any, float]:
        """Cost model, and the ε of one choice, from which the default number of parts follows."""

    def expected_loss(self, cost: Any, n_parts: int) -> str:
        """Expected loss from the noise of the choice, as the end of a sentence; empty where it is not known."""
        return ""

    def scorer(self, public: bool) -> Scorer:
        return utility_scorer(self.public_scorer())

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Every point of the grid."""
        return checked_candidates(plan, plan.space.points())

    def utilities(
        self, job: Job, candidates: Sequence[Candidate], seeds: Sequence[Seed], progress: Progress
    ) -> list[Fraction]:
        """Compute exact utilities of some candidates, which are secret."""
        return utilities_of(job, candidates, self.part_noise, seeds, progress)

    def dry(self, plan: Plan, job: Job, candidate: Candidate, seed: Seed = None) -> float:
        """Train, score and prepare for release one candidate on public records; return its score on a part."""
        everything, k = job.split.folds[0][0], getattr(plan.validation, "n_parts", None) or 2
        several = replace(job, split=replace(job.split, folds=[(everything, everything)] * k))
        tried = less_noisy(several, [candidate])[0] if self.part_noise == "scaled" else candidate
        model = fitted(job, fresh(several, tried, seed), everything, job.X, job.y)
        score = float(job.recipe.scorer(model, job.X, job.y))
        released_in_the_open(job, fitted(job, fresh(job, candidate, seed), everything, job.X, job.y))
        return score


def count_trainings(progress: Progress, job: Job, candidates: Sequence[Candidate]) -> None:
    """Report the number of trainings: all candidates on all parts, a public number even where trainings fail."""
    progress.public_runs("trainings on parts", len(candidates) * len(job.split.folds))


def train_winner(job: Job, candidate: Candidate, score: float, seed: Seed, **attributes: Any) -> Outcome:
    """Train the winner once, privately, on all records."""
    model = train_last(job, lambda: fresh(job, candidate, seed), all_numbers(n_records(job.X)), seed)
    attributes = {"best_estimator_": model, **attributes}
    return Outcome(found=model is not None, rows=[(candidate, score)], attributes=attributes)
