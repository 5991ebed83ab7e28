"""Sample-and-aggregate: utilities on random parts, a private choice, one private training.

Utilities are those of all points of a grid. One record changes the mean of a candidate's scores
over k disjoint parts by at most 1/k.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from .._process import reseed
from .._process.progress import NO_DISPLAY, Progress
from ..privacy import Guarantee, PrivacyError
from ..privacy._mechanisms.array_sampling import RandomBytes, uniform_integers
from ..privacy._spent import Component
from ..scoring._validation import Fold, PublicValidation, kind_of_numbers
from . import _private_process as private_process
from . import _records
from ._execution import models
from ._execution.job import Job, Outcome
from ._execution.randomness import Randomness
from ._execution.workers import attempt, in_parallel, task_context
from ._planning.plan import Cost, Facts, Plan
from ._records import Candidate, Candidates, Distributions, Parameters, Scorer, Seed, Seeds
from ._strategy import Strategy, checked_candidates

#: Scores are rounded down to multiples of 1/RESOLUTION, so that sums of them are exact.
RESOLUTION = 2**20
#: Without public data, 1 in HOLDOUT records of a part is held out to score its models.
HOLDOUT = 4
#: Fewest records expected in a part: with fewer, a class is often missing and utilities say little.
LEAST_SIZE = 10
#: Assumption of the sensitivity of utilities.
ONE_PART = (
    "A model on one part depends on the records of that part alone: estimator and scorer keep "
    "nothing between calls."
)
#: Fewest records of a part, on average, with the default number of parts.
PART_RECORDS = 50
#: Most trainings on parts, of all candidates together, with the default number of parts. A net
#: trained together with others costs about an eighth of a training on all records, for any size of
#: its part (the number of steps stays).
MOST_TRAININGS = 400
#: Target of the default number of parts: expected loss of utility through noise of the exponential
#: mechanism.
LOSS = 0.05


def sensitivity(n_parts: int) -> Fraction:
    """Sensitivity: the most by which one record changes the utility of any candidate.

    A record is in one part alone, and the score of a part is in [0, 1] for any records, also if
    training or validation fails. A record that is replaced stays in its part.
    """
    return Fraction(1, n_parts)


def random_parts(n: int, n_parts: int, public: bool, random_bytes: RandomBytes) -> list[Fold]:
    """Draw training and validation records of each part.

    Every record draws its place independently.

    Parameters
    ----------
    n : int
        Number of records.
    n_parts : int
    public : bool
        Whether scores come from public data, so that all records of a part train.
    random_bytes : callable
        Secret randomness.
    """
    drawn = uniform_integers(n, n_parts * HOLDOUT, random_bytes)
    part, validates = drawn // HOLDOUT, (drawn % HOLDOUT == 0) & (not public)
    order = np.argsort(part, kind="stable").astype(kind_of_numbers(n))
    members = np.split(order, np.searchsorted(part[order], np.arange(1, n_parts)))
    return [(records[~validates[records]], records[validates[records]]) for records in members]


def part_scores(job: Job, part: int, candidates: Candidates, seed: Seed) -> list[int]:
    """Scores of all candidates on one part, in multiples of 1/RESOLUTION.

    A checkpoint's finished scores are reused.
    """
    scores: list[int] | None = job.finished.get(seed)
    if scores is None:
        work = partial(_part_scores, job, part, candidates, seed)
        failed = [_score_on_part(job, None)] * len(candidates)
        scores = private_process.in_own_process(work, job.threads) or failed
        job.finished.put(seed, scores)
    return scores


def _part_scores(job: Job, part: int, candidates: Candidates, seed: Seed) -> list[int]:
    train, test = job.split.folds[part]
    with task_context():
        reseed(seed)
        seeds = models.spawn_seeds(seed, len(candidates))
        fitted = models.all_fitted(job, candidates, seeds, train)
        data = job.public
        if data is None:
            data = _records.take(job.X, test), _records.take(job.y, test)
        return [_score_on_part(job, model, *data) for model in fitted]


def _score_on_part(job: Job, model: Any, *data: Any) -> int:
    """Score in [0, 1], rounded down; after any failure the error score, at least 0."""
    score = None if model is None else attempt(lambda: job.score(model, *data))
    score = job.error_score if score is None else score
    return math.floor(min(max(score, 0.0), 1.0) * RESOLUTION) if math.isfinite(score) else 0


# --- models on parts ------------------------------------------------------------------------------


def less_noisy(job: Job, candidates: Candidates) -> list[Candidate]:
    """Candidates with k times smaller noise.

    Models on parts are never released and need no protection.

    A part has k times fewer records. So relative to the number of records the noise is that of the
    final training, and candidates are compared under the winner's conditions. A candidate whose
    noise cannot be scaled keeps its noise.
    """
    varying = frozenset(name for candidate in candidates for name in candidate)
    k = float(len(job.split.folds))
    return [
        {**candidate, **_with_scaled_loss(job, candidate, k, varying)} for candidate in candidates
    ]


def _with_scaled_loss(
    job: Job, candidate: Candidate, factor: float, varying: frozenset[str]
) -> dict[str, Any]:
    """Parameters that multiply a candidate's loss by ``factor``.

    They are empty unless those for a factor of 1 leave the loss unchanged.
    """

    def promise(settings: Mapping[str, Any]) -> Guarantee:
        model = _records.with_parameters(clone(configured), settings)
        return job.adapter.training_run(model, None).guarantee

    # this noise protects no release: on any error it stays as configured
    with contextlib.suppress(Exception):
        configured = models.unfitted_model(job, candidate, None)
        for names in (varying, frozenset[str]()):
            if promise(job.adapter.scaled_privacy(configured, 1.0, names)) == promise({}):
                return job.adapter.scaled_privacy(configured, factor, names)
    return {}


def utilities_of(
    job: Job, candidates: Candidates, part_noise: str, seeds: Seeds, progress: Progress = NO_DISPLAY
) -> list[Fraction]:
    """Mean over the parts (the job's folds) of every candidate's score in [0, 1]: exact and secret.

    One task per part. Scores are clipped to [0, 1]; a candidate that fails on a part gets the error
    score there.
    """
    tried = less_noisy(job, candidates) if part_noise == "scaled" else candidates
    name, worker_job = type(job.estimator).__name__, job.for_workers()
    tasks = [partial(part_scores, worker_job, part, tried, seed) for part, seed in enumerate(seeds)]
    scores = in_parallel(name, job.workers, tasks, lambda done: progress.done(done, len(seeds)))
    return [Fraction(sum(parts), RESOLUTION * len(scores)) for parts in zip(*scores)]


# --- scores, and the number of parts --------------------------------------------------------------


def utility_scorer(scorer: Scorer) -> Scorer:
    """Get a scorer with values in [0, 1], as far as known before any data is read.

    Raises
    ------
    PrivacyError
        For losses, whose values below 0 would all count as 0, and for means of values outside [0,
        1].
    """
    loss = getattr(scorer, "_sign", 1) < 0 or not getattr(scorer, "greater_is_better", True)
    low, high = getattr(scorer, "lower", 0.0), getattr(scorer, "upper", 1.0)
    if loss or low < 0 or high > 1:
        values = "negative" if loss else f"in [{low:g}, {high:g}]"
        raise PrivacyError(
            f"Found scoring={scorer!r}, whose values are {values}: utilities must be in [0, 1], so "
            "that one record changes their mean over k parts by at most 1/k. Use a score such as "
            "accuracy, f1, roc_auc or r2, or a callable (estimator, X, y) with values in [0, 1]."
        )
    return scorer


def number_of_parts(
    n_parts: int | None, n: int | None, epsilon: float, candidates: int
) -> int | None:
    """Number of parts k: as given, or from the public number of records.

    The default is the smallest k with 2·log(candidates)/(k·ε) ≤ 0.05, a bound on the expected loss
    of utility by the exponential mechanism. A part keeps at least 50 records on average, and all
    candidates together train at most 400 times on parts.

    Returns
    -------
    int or None
        None where the number of records is not known yet.
    """
    if n_parts is not None:
        if n is not None and n < n_parts * LEAST_SIZE:
            raise PrivacyError(
                f"Found n_parts={n_parts} for {n} records: at least {LEAST_SIZE} are needed in "
                f"a part on average. Give n_parts of at most {max(n // LEAST_SIZE, 1)}."
            )
        return int(n_parts)
    if n is None:
        return None
    candidates = max(candidates, 2)
    wanted = math.ceil(2 * math.log(candidates) / (LOSS * epsilon))
    return max(2, min(wanted, n // PART_RECORDS, MOST_TRAININGS // candidates))


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


# --- the searches ---------------------------------------------------------------------------------


class SampleAndAggregate(Strategy):
    """Sample-and-aggregate: utilities on random parts, a private choice, one private training.

    Utilities are those of all candidates.

    Parameters
    ----------
    search, distributions, parameter
        As for ``Strategy``.
    rules : DPGridSearchCV or Doubling
        Has ``n_parts``, the number of parts as given, and ``part_noise``.
    """

    whole_grid = True

    def __init__(
        self, search: Parameters, distributions: Distributions, parameter: str, rules: Any
    ) -> None:
        super().__init__(search, distributions, parameter)
        self.n_parts: int | None = rules.n_parts
        self.part_noise: str = rules.part_noise

    def facts(self, n_samples: int | None, public: bool) -> Facts:
        families, scorer = self.families(n_samples), utility_scorer(self.public_scorer())
        candidates = self.space.size()
        k = number_of_parts(self.n_parts, n_samples, self.choice_epsilon, candidates)
        work = ""
        if k is not None and candidates > 1:
            fits = f"{candidates} candidates on {k} parts of the records are {candidates * k}"
            work = f"{fits} trainings on parts{self.expected_loss(candidates, k)}; "
        parts, cost = InParts(public, k), self.cost(candidates)
        return self.resolved(
            families,
            public,
            scorer=scorer,
            validation=parts,
            cost=cost,
            notes=(ONE_PART,),
            work=work,
        )

    @property
    @abstractmethod
    def choice_epsilon(self) -> float:
        """ε of one choice, from which the default number of parts follows."""

    @abstractmethod
    def cost(self, n_candidates: int) -> Cost:
        """Cost of the choice and of one training."""

    def expected_loss(self, n_candidates: int, n_parts: int) -> str:
        """Expected loss from the noise of the choice, to end a sentence; empty if unknown."""
        return ""

    def scorer(self, public: bool) -> Scorer:
        return utility_scorer(self.public_scorer())

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Every point of the grid."""
        return checked_candidates(plan, plan.space.points())

    def dry(self, plan: Plan, job: Job, candidate: Candidate, seed: Seed = None) -> float:
        """Train, score and prepare for release one candidate on public records.

        Return its score on a part.
        """
        everything, k = job.split.folds[0][0], getattr(plan.validation, "n_parts", None) or 2
        several = replace(job, split=replace(job.split, folds=[(everything, everything)] * k))
        tried = less_noisy(several, [candidate])[0] if self.part_noise == "scaled" else candidate
        model = models.fit_model(job, models.unfitted_model(several, tried, seed), everything)
        score = job.score(model, job.X, job.y)
        final = models.fit_model(job, models.unfitted_model(job, candidate, seed), everything)
        models.released_in_the_open(job, final)
        return score


def choice_and_training(name: str, choice: Guarantee, training: Guarantee) -> tuple[Component, ...]:
    """Releases: a choice of this name, and the winner's one training."""
    return (
        Component(name=name, guarantee=choice),
        Component(name="training of the winner on all records", guarantee=training),
    )


def count_trainings(progress: Progress, job: Job, candidates: Candidates) -> None:
    """Report the number of trainings, which are those of all candidates on all parts.

    The number is public even where trainings fail.
    """
    progress.public_runs("trainings on parts", len(candidates) * len(job.split.folds))


def train_winner(
    job: Job, candidate: Candidate, score: float, seed: Seed, **attributes: Any
) -> Outcome:
    """Train the winner once, privately, on all records."""
    model = models.train_on_all(job, candidate, seed)
    attributes = {"best_estimator_": model, **attributes}
    return Outcome(has_model=model is not None, rows=[(candidate, score)], attributes=attributes)
