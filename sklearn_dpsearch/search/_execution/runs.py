"""Running candidates: each run, or stack of nets trained together, in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..._process import reseed
from ..._process.progress import Progress
from ...privacy._checks import Neighboring
from ...privacy._mechanisms.release_sum import release_sum
from ...scoring import PrivateScorer
from ...scoring._base import is_additive, standard_error
from .. import _private_process as private_process
from .._records import Candidate, Candidates, Seed, Seeds, take
from . import models, workers
from .job import Job
from .randomness import random_bits

#: Numbers of the candidates of each task.
Hands: TypeAlias = Sequence[range]
#: Number of records that are scored at once.
BLOCK = 2**14


@dataclass(frozen=True)
class Score:
    """A score, and the standard error from its noise (0 on public records)."""

    value: float
    std: float = 0.0


@dataclass(frozen=True)
class Run:
    """Outcome of one run: never leaves ``fit`` unless it is the best.

    ``std`` is the standard error of ``score``.
    """

    score: float
    model: Any
    std: float = math.nan

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key: runs with a model win over failed runs, for any score given to failures."""
        return self.model is not None, self.score


# --- all candidates of a search -------------------------------------------------------------------


def run_all(job: Job, candidates: Candidates, seeds: Seeds, progress: Progress) -> list[Run]:
    """Run every candidate, in order, with the same results for any ``n_jobs``.

    The number of runs is public.
    """
    hands = workers.deal(len(candidates), _number_of_tasks(job, len(candidates)))
    count = partial(progress.done, of=len(hands))
    results = _results(run_several, job, hands, candidates, seeds, count)
    runs = {i: run for hand, part in zip(hands, results) for i, run in zip(hand, part)}
    return [runs[i] for i in range(len(candidates))]


def run_best(job: Job, candidates: Candidates, seeds: Seeds) -> tuple[int, Run]:
    """Index and run of the best candidate, the first among equals.

    Tasks depend on the expected number of runs, never on the number drawn.
    """
    hands = workers.deal(len(candidates), _number_of_tasks(job, job.expected_runs))
    finalists = _finalists(best_of_several, job, hands, candidates, seeds)
    return max(finalists, key=lambda finalist: (*finalist[1].order, -finalist[0]))


def run_until(
    job: Job, candidates: Candidates, seeds: Seeds, *, threshold: float
) -> tuple[int, Run] | None:
    """Index and run of the first candidate that reaches a threshold.

    Runs come in a public number of blocks: blocks after the first success are empty, and the last
    block holds all remaining runs. Workers that run ahead may find a later success, which is
    discarded.
    """
    hands, first, start = job.workers.number, None, 0
    several = partial(first_of_several, threshold=threshold)
    for size in (*workers.block_sizes(job.expected_runs, hands), len(candidates)):
        stop = min(start + size, len(candidates)) if first is None else start
        block = [range(start + first_run, stop, hands) for first_run in range(hands)]
        successes = _finalists(several, job, block, candidates, seeds)
        first = min(successes, key=lambda success: success[0]) if successes else first
        start = stop
    return first


def _number_of_tasks(job: Job, expected: float) -> int:
    return workers.number_of_tasks(expected, job.workers.number, job.trains_together)


def _finalists(
    several: Callable[..., Any], job: Job, hands: Hands, candidates: Candidates, seeds: Seeds
) -> list[tuple[int, Run]]:
    """Index and run of the finalist of each hand that has one."""
    results = _results(several, job, hands, candidates, seeds)
    return [(hand[place], run) for hand, (place, run) in zip(hands, results) if run is not None]


def _results(
    several: Callable[..., Any],
    job: Job,
    hands: Hands,
    candidates: Candidates,
    seeds: Seeds,
    counter: workers.Counter = workers.uncounted,
) -> list[Any]:
    """Results of a task for each hand, also for an empty one, with one and the same job.

    Schedulers see tasks.
    """
    job = job.for_workers()
    tasks = [
        partial(several, job, [candidates[i] for i in hand], [seeds[i] for i in hand])
        for hand in hands
    ]
    return workers.in_parallel(type(job.estimator).__name__, job.workers, tasks, counter)


# --- those of one task ----------------------------------------------------------------------------


def best_of_several(job: Job, candidates: Candidates, seeds: Seeds) -> tuple[int, Run | None]:
    """Index and run of the best of several candidates, the first among equals.

    The other runs end here.
    """
    runs = run_several(job, candidates, seeds)
    place = max(range(len(runs)), key=lambda i: (*runs[i].order, -i), default=-1)
    return place, runs[place] if runs else None


def first_of_several(
    job: Job, candidates: Candidates, seeds: Seeds, threshold: float
) -> tuple[int, Run | None]:
    """Index and run of the first of several candidates that reaches a threshold.

    Later candidates do not run.
    """
    for place, (candidate, seed) in enumerate(zip(candidates, seeds)):
        (run,) = run_several(job, [candidate], [seed])
        if run.model is not None and run.score >= threshold:
            return place, run
    return -1, None


def run_several(job: Job, candidates: Candidates, seeds: Seeds) -> list[Run]:
    """Train and score several candidates, together where possible.

    Finished runs of a checkpoint are reused.
    """
    runs = {i: run for i, seed in enumerate(seeds) if (run := job.finished.get(seed)) is not None}
    missing = [i for i in range(len(seeds)) if i not in runs]
    for batch in [missing] if job.trains_together and missing else [[i] for i in missing]:
        # any failure is the worst score, also the end of their process
        chosen = [candidates[i] for i in batch], [seeds[i] for i in batch]
        work = partial(_train_and_score, job, *chosen)
        new = private_process.in_own_process(work, job.threads) or [_failed(job)] * len(batch)
        for i, run in zip(batch, new):
            job.finished.put(seeds[i], run)
            runs[i] = run
    return [runs[i] for i in range(len(seeds))]


def _train_and_score(job: Job, candidates: Candidates, seeds: Seeds) -> list[Run]:
    """Train and score candidates in this process."""
    with workers.task_context():
        reseed(seeds[0])
        # of each run: seeds for the training, and for the score, of each fold
        n_folds = len(job.split.folds)
        halves = [models.spawn_seeds(seed, 2) for seed in seeds]
        streams = [[models.spawn_seeds(part, n_folds) for part in pair] for pair in halves]
        fitted = [
            models.all_fitted(job, candidates, [trainings[fold] for trainings, _ in streams], train)
            for fold, (train, _) in enumerate(job.split.folds)
        ]
        runs = [
            workers.attempt(partial(_scored_run, job, fold_models, seeds))
            for fold_models, (_, seeds) in zip(zip(*fitted), streams)
        ]
        return [run or _failed(job) for run in runs]


# --- one candidate --------------------------------------------------------------------------------


def _scored_run(job: Job, fitted: Sequence[Any], seeds: Seeds) -> Run | None:
    """Score the trained models of one candidate, one per fold; None where a model failed."""
    if any(model is None for model in fitted):
        return None
    folds = zip(fitted, job.split.folds, job.split.n_scored, seeds)
    scores = [score_of(job, model, test, n, seed) for model, (_, test), n, seed in folds]
    score = _with_failures_last(float(np.mean([fold_score.value for fold_score in scores])))
    std = math.hypot(*[fold_score.std for fold_score in scores]) / len(scores)
    return Run(score, models.releasable(job, fitted[0]) if math.isfinite(score) else None, std)


def _failed(job: Job) -> Run:
    return Run(_with_failures_last(job.error_score), None)


def _with_failures_last(score: float) -> float:
    """Put scores in a total order: values that are not finite come last."""
    return score if math.isfinite(score) else -math.inf


def score_of(job: Job, model: Any, records: np.ndarray, n_scored: int, seed: Seed) -> Score:
    """Score a model on public data, or on private records with the planned noise."""
    if job.public is not None:
        return Score(job.score(model, *job.public))
    scorer, noise, neighboring = job.scorer, job.noise, job.neighboring
    assert noise is not None
    assert isinstance(scorer, PrivateScorer)
    bits = random_bits(seed)
    sensitivity = scorer.sensitivity(neighboring)
    squared = Fraction(sensitivity.l1**2 if noise.norm == 1 else sensitivity.l2_squared)
    exact = np.array(_exact_statistic(scorer, neighboring, model, records, job.X, job.y), object)

    def add_noise(sums: Any) -> list[int]:
        return [value + noise.sample(bits) for value in sums]

    noisy = release_sum("private score", exact, squared, add_noise, noise.norm)
    value = float(scorer.score(noisy, n_scored, neighboring))
    spread = {"noise_std": noise.std, "size_std": job.split.size_std}
    return Score(value, standard_error(scorer, noisy, n_scored, neighboring, **spread))


def _exact_statistic(
    scorer: PrivateScorer, neighboring: Neighboring, model: Any, records: np.ndarray, X: Any, y: Any
) -> list[int]:
    """Integers of a score before noise, summed over blocks of records where the score is a sum."""
    size = BLOCK if is_additive(scorer) else max(len(records), 1)
    blocks = [records[start : start + size] for start in range(0, max(len(records), 1), size)]
    parts = ((take(X, block), take(y, block)) for block in blocks)
    statistics = [scorer.statistic(model, *part, neighboring) for part in parts]
    return [sum(values) for values in zip(*statistics)]


def train_in_the_open(job: Job, candidate: Candidate, seed: Seed) -> tuple[Any, float]:
    """Train and score a candidate on public records, and make its model ready for release.

    Errors are shown.
    """
    everything = job.split.folds[0][0]
    training, scoring = models.spawn_seeds(seed, 2)
    model = models.fit_model(job, models.unfitted_model(job, candidate, training), everything)
    # shows errors, which a private score silently counts as failures
    job.score(model, job.X, job.y)
    score = score_of(job, model, everything, job.split.n_scored[0], scoring).value
    return models.released_in_the_open(job, model), score
