"""Utilities of candidates by sample-and-aggregate: one record changes a mean over k disjoint parts by at most 1/k."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._process import reseed
from ...privacy import Guarantee, PrivacyError
from ...privacy.mechanisms.array_sampling import RandomBytes, uniform_integers
from ...scoring.validation import Fold, kind_of_numbers
from .. import private_process
from .._records import take, with_parameters
from .._types import Candidate, Seed
from .job import Job
from .models import all_fitted, fresh, spawned
from .progress import SILENT, Progress
from .workers import attempt, in_parallel, in_task

#: Scores are rounded down to multiples of 1/RESOLUTION, so that sums of them are exact.
RESOLUTION = 2**20
#: Without public data, 1 in HELD_OUT records of a part is held out to score its models.
HELD_OUT = 4
#: Fewest records expected in a part: with fewer, a class is often missing and utilities say little.
LEAST = 10


def sensitivity(n_parts: int) -> Fraction:
    """Sensitivity: the most by which one record changes the utility of any candidate.

    A record is in one part alone, and the score of a part is in [0, 1] for any records, also if training or validation
    fails. A record that is replaced stays in its part.
    """
    return Fraction(1, n_parts)


def random_parts(n: int, n_parts: int, public: bool, random_bytes: RandomBytes) -> list[Fold]:
    """Draw training and validation records of each part; every record draws its place independently.

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
    drawn = uniform_integers(n, n_parts * HELD_OUT, random_bytes)
    part, validates = drawn // HELD_OUT, (drawn % HELD_OUT == 0) & (not public)
    order = np.argsort(part, kind="stable").astype(kind_of_numbers(n))
    members = np.split(order, np.searchsorted(part[order], np.arange(1, n_parts)))
    return [(records[~validates[records]], records[validates[records]]) for records in members]


def check_parts(n_parts: int, n: int | None) -> None:
    """Raise if a public number of records is too small for the number of parts."""
    if n is not None and n < n_parts * LEAST:
        raise PrivacyError(
            f"Found n_parts={n_parts} for {n} records: at least {LEAST} records are needed in a part on average. Give "
            f"n_parts of at most {max(n // LEAST, 1)}."
        )


def part_scores(job: Job, part: int, candidates: Sequence[Candidate], seed: Seed) -> list[int]:
    """Scores of all candidates on one part, in multiples of 1/RESOLUTION; a checkpoint's finished scores are reused."""
    scores: list[int] | None = job.finished.get(seed)
    if scores is None:
        work = partial(_part_scores, job, part, candidates, seed)
        scores = private_process.in_own_process(work, job.threads) or [_score(job, None)] * len(candidates)
        job.finished.put(seed, scores)
    return scores


def _part_scores(job: Job, part: int, candidates: Sequence[Candidate], seed: Seed) -> list[int]:
    train, test = job.split.folds[part]
    with in_task():
        reseed(seed)
        models = all_fitted(job, candidates, spawned(seed, len(candidates)), train)
        data = job.public if job.public is not None else (take(job.X, test), take(job.y, test))
        return [_score(job, model, *data) for model in models]


def _score(job: Job, model: Any, *data: Any) -> int:
    """Score in [0, 1], rounded down; after any failure the error score, at least 0."""
    found = None if model is None else attempt(lambda: float(job.recipe.scorer(model, *data)))
    found = job.recipe.error_score if found is None else found
    return math.floor(min(max(found, 0.0), 1.0) * RESOLUTION) if math.isfinite(found) else 0


# --- models on parts --------------------------------------------------------------------------------------------------


def less_noisy(job: Job, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with k times smaller noise: models on parts are never released and need no protection.

    A part has k times fewer records. So relative to the number of records the noise is that of the final training, and
    candidates are compared under the winner's conditions. A candidate whose noise cannot be scaled keeps its noise.
    """
    varying, k = frozenset(name for candidate in candidates for name in candidate), float(len(job.split.folds))
    return [{**candidate, **_scaled(job, candidate, k, varying)} for candidate in candidates]


def _scaled(job: Job, candidate: Candidate, factor: float, varying: frozenset[str]) -> dict[str, Any]:
    """Parameters that multiply a candidate's loss by ``factor``, if those for a factor of 1 leave it unchanged."""

    def promise(settings: Mapping[str, Any]) -> Guarantee:
        return job.recipe.adapter.training_run(with_parameters(clone(configured), settings), None).guarantee

    with contextlib.suppress(Exception):  # this noise protects no release: on any error it stays as configured
        configured = fresh(job, candidate, None)
        for names in (varying, frozenset[str]()):
            if promise(job.recipe.adapter.scaled_privacy(configured, 1.0, names)) == promise({}):
                return job.recipe.adapter.scaled_privacy(configured, factor, names)
    return {}


def utilities_of(
    job: Job, candidates: Sequence[Candidate], part_noise: str, seeds: Sequence[Seed], progress: Progress = SILENT
) -> list[Fraction]:
    """Mean over the parts (the job's folds) of every candidate's score in [0, 1], exact.

    One task per part. Scores are clipped to [0, 1]; a candidate that fails on a part gets the error score there.
    """
    tried = less_noisy(job, candidates) if part_noise == "scaled" else candidates
    name, there = type(job.recipe.estimator).__name__, job.for_workers()
    tasks = [partial(part_scores, there, part, tried, seed) for part, seed in enumerate(seeds)]
    scores = in_parallel(name, job.workers, tasks, lambda done: progress.done(done, len(seeds)))
    return [Fraction(sum(part[i] for part in scores), RESOLUTION * len(scores)) for i in range(len(tried))]
