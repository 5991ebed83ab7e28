"""Utilities of candidates, averaged over disjoint random parts of the records: one record moves each by 1/k at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from joblib import delayed

from .._process import reseed
from ..privacy import PrivacyError
from ..privacy.mechanisms.coins import RandomBytes, uniform_integers
from ._runs import Job, fitted, fitted_together, fresh, take, trains_together
from ._tasks import attempt, in_parallel, in_task

#: Scores are rounded down to multiples of 1/RESOLUTION, so that sums of them are exact.
RESOLUTION = 2**20
#: Share of a part's records that its models are scored on, where there is no public data: 1 of so many.
HELD_OUT = 4
#: Fewest records expected in a part.
LEAST = 10

Fold = tuple[np.ndarray, np.ndarray]


def sensitivity(n_parts: int) -> Fraction:
    """The most by which one record changes the utility of any candidate.

    A record is in one part alone, whose score is in [0, 1] whatever its records are: training, validation and failure
    included. A record that is replaced stays in its part.
    """
    return Fraction(1, n_parts)


def random_parts(n: int, n_parts: int, public: bool, random_bytes: RandomBytes) -> list[Fold]:
    """Training and validation records of each part; every record draws its place by itself.

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
    order = np.argsort(part, kind="stable")
    members = np.split(order, np.searchsorted(part[order], np.arange(1, n_parts)))
    return [(one[~validates[one]], one[validates[one]]) for one in members]


def check_parts(n_parts: int, n: int | None) -> None:
    """Raise if a public number of records is too small for so many parts."""
    if n is not None and n < n_parts * LEAST:
        raise PrivacyError(
            f"Found n_parts={n_parts} for {n} records: at least {LEAST} records are needed in a part on average. Give "
            f"n_parts of at most {max(n // LEAST, 1)}."
        )


def utilities(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any, **parallel: Any
) -> list[Fraction]:
    """Mean over the parts (the job's folds) of every candidate's score in [0, 1], exact.

    One task per part. Scores outside of [0, 1] are moved to its ends; a candidate that fails on a part has 0 there.
    """
    tasks = (
        delayed(part_scores)(job, j, candidates, seed, X, y) for j, seed in zip(range(len(job.parts.folds)), seeds)
    )
    scores = in_parallel(type(job.estimator).__name__, tasks, **parallel)
    return [Fraction(sum(part[i] for part in scores), RESOLUTION * len(scores)) for i in range(len(candidates))]


def part_scores(job: Job, j: int, candidates: Sequence[Mapping[str, Any]], seed: Any, X: Any, y: Any) -> list[int]:
    """Scores of all candidates on one part, in multiples of 1/RESOLUTION."""
    train, test = job.parts.folds[j]
    with in_task():
        reseed(seed)
        own = [None] * len(candidates) if seed is None else seed.spawn(len(candidates))
        models = _models(job, candidates, own, train, X, y)
        data = job.public if job.public is not None else (take(X, test), take(y, test))
        return [_score(job, model, *data) for model in models]


def _models(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], records: np.ndarray, X: Any, y: Any
) -> list[Any]:
    """A model of each candidate, trained on these records and nothing else; None where it failed."""
    models = [attempt(lambda c=candidate, s=seed: fresh(job, c, s)) for candidate, seed in zip(candidates, seeds)]  # type: ignore[misc]
    if trains_together(job):
        return fitted_together(job, models, records, X, y)
    return [None if m is None else attempt(lambda m=m: fitted(job, m, records, X, y)) for m in models]  # type: ignore[misc]


def _score(job: Job, model: Any, X: Any, y: Any) -> int:
    """A score in [0, 1], rounded down; for whatever goes wrong the error's score, at worst 0."""
    found = None if model is None else attempt(lambda: float(job.scorer(model, X, y)))
    found = job.error_score if found is None else found
    return math.floor(min(max(found, 0.0), 1.0) * RESOLUTION) if math.isfinite(found) else 0
