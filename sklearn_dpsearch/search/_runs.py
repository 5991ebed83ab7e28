"""Running candidates. What happens here stays here: no output, no warning, no exception text, no ledger leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from .._process import reseed
from ..adapters import Adapter, forget_seeds
from ..scoring import Noise
from ..scoring.validation import Fold
from ._parameters import with_parameters
from ._randomness import random_bits, random_state
from ._tasks import LeakDetected, attempt, block_sizes, dealt, in_parallel, in_task, number_of_tasks


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Which records do what, drawn without a look at any of them.

    Parameters
    ----------
    folds : sequence of (training indices, validation indices)
    n_scored : sequence of int or None
        Public number of validation records of each fold; None where it is private.
    expected : float or None
        Public number of records that models are told to expect; None: they may count them.
    later : Any
        What the search itself needs after the runs.
    """

    folds: Sequence[Fold]
    n_scored: Sequence[int | None]
    expected: float | None = None
    later: Any = None


@dataclass(frozen=True)
class Job:
    """Everything that the runs of one search share."""

    estimator: Any
    adapter: Adapter
    settings: Mapping[str, Any]
    parts: Parts
    scorer: Any
    noise: Noise | None
    fit_params: Mapping[str, Any]
    public: tuple[Any, Any] | None
    neighboring: str
    error_score: float


@dataclass(frozen=True)
class Run:
    """Outcome of one run: never leaves ``fit`` unless it is the best."""

    score: float
    model: Any

    @property
    def order(self) -> tuple[bool, float]:
        """Runs with a model come before those that failed, whatever score failures are given."""
        return self.model is not None, self.score


def run_all(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any, **parallel: Any
) -> list[Run]:
    """One run per candidate, in order; the same for every number of jobs. Their number is public."""
    hands = dealt(len(candidates), _tasks(job, len(candidates), parallel))
    found = _in_tasks(run_several, job, hands, candidates, seeds, X, y, **parallel)
    runs = {i: run for hand, part in zip(hands, found) for i, run in zip(hand, part)}
    return [runs[i] for i in range(len(candidates))]


def run_best(
    job: Job,
    candidates: Sequence[Mapping[str, Any]],
    seeds: Sequence[Any],
    X: Any,
    y: Any,
    *,
    expected: float,
    **parallel: Any,
) -> tuple[int, Run]:
    """Number and run of the best candidate, of equal ones the first; tasks depend on the expected number of runs."""
    hands = dealt(len(candidates), _tasks(job, expected, parallel))
    found = _in_tasks(best_of_several, job, hands, candidates, seeds, X, y, **parallel)
    several = [(hand[place], run) for hand, (place, run) in zip(hands, found) if run is not None]
    return max(several, key=lambda one: (*one[1].order, -one[0]))


def run_until(
    job: Job,
    candidates: Sequence[Mapping[str, Any]],
    seeds: Sequence[Any],
    threshold: float,
    X: Any,
    y: Any,
    *,
    expected: float,
    **parallel: Any,
) -> tuple[int, Run] | None:
    """Number and run of the first candidate that reaches a threshold.

    Runs come in blocks, whose number is public: those after the first success are empty, and the last holds all that
    is left. Workers that run ahead may find a later success, which is thrown away.
    """
    workers, first, start = number_of_tasks(1.0, parallel.get("n_jobs"), True), None, 0
    for size in (*block_sizes(expected, parallel.get("n_jobs")), len(candidates)):
        stop = min(start + size, len(candidates)) if first is None else start
        block = [range(start + hand.start, stop, hand.step) for hand in dealt(stop - start, workers)]
        found = _in_tasks(first_of_several, job, block, candidates, seeds, X, y, threshold, **parallel)
        successes = [(hand[place], run) for hand, (place, run) in zip(block, found) if run is not None]
        first = min(successes, key=lambda one: one[0]) if successes else first
        start = stop
    return first


def _tasks(job: Job, expected: float, parallel: Mapping[str, Any]) -> int:
    return number_of_tasks(expected, parallel.get("n_jobs"), trains_together(job))


def trains_together(job: Job) -> bool:
    """Whether candidates of this search are trained at once."""
    return job.adapter.trains_together(job.estimator) and not job.fit_params


def _in_tasks(
    work: Any,
    job: Job,
    hands: Sequence[range],
    candidates: Sequence[Mapping[str, Any]],
    seeds: Sequence[Any],
    X: Any,
    y: Any,
    *more: Any,
    **parallel: Any,
) -> list[Any]:
    """One task for each hand, an empty one too, with the same data."""
    job = replace(job, parts=replace(job.parts, later=None))  # one entry for each candidate
    tasks = (delayed(work)(job, [candidates[i] for i in h], [seeds[i] for i in h], X, y, *more) for h in hands)
    return in_parallel(type(job.estimator).__name__, tasks, **parallel)


def best_of_several(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any
) -> tuple[int, Run | None]:
    """Place and run of the best of several candidates, of equal ones the first; the others end here."""
    runs = run_several(job, candidates, seeds, X, y)
    place = max(range(len(runs)), key=lambda i: (*runs[i].order, -i), default=-1)
    return place, runs[place] if runs else None


def first_of_several(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any, threshold: float
) -> tuple[int, Run | None]:
    """Place and run of the first of several candidates that reaches a threshold; those after it do not run."""
    for place, (candidate, seed) in enumerate(zip(candidates, seeds)):
        run = run_one(job, candidate, seed, X, y)
        if run.model is not None and run.score >= threshold:
            return place, run
    return -1, None


def run_several(job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any) -> list[Run]:
    """Train and score several candidates, together if they can be."""
    if len(candidates) < 2 or not trains_together(job):
        return [run_one(job, candidate, seed, X, y) for candidate, seed in zip(candidates, seeds)]
    with in_task():
        reseed(seeds[0])
        streams = [_streams(job, seed) for seed in seeds]
        models = [_trained_together(job, i, candidates, streams, X, y) for i in range(len(job.parts.folds))]
        return [_scored(job, [fold[k] for fold in models], streams[k], X, y) for k in range(len(candidates))]


def run_one(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    """Train and score one candidate. A failure of any kind is the worst score."""
    with in_task():
        reseed(seed)
        return attempt(lambda: _train_and_score(job, candidate, seed, X, y)) or _failed(job)


def train_last(job: Job, make: Callable[[], Any], records: np.ndarray, seed: Any, X: Any, y: Any) -> Any:
    """One more training after the runs, of the model that ``make`` returns, on some records; None if it fails."""

    def trained() -> Any:
        with in_task():
            reseed(seed)
            return attempt(lambda: releasable(job, fitted(job, make(), records, X, y)))

    try:
        return trained()
    except LeakDetected:
        return None


def fitted(job: Job, model: Any, records: np.ndarray, X: Any, y: Any) -> Any:
    """The model, trained. What ``fit`` returns is not looked at, as scikit-learn does not: it may be nothing."""
    labels = () if y is None else (take(y, records),)
    params = {name: take_param(value, records, X) for name, value in job.fit_params.items()}
    model.fit(take(X, records), *labels, **params)
    job.adapter.finish(model)
    return model


def _trained_together(
    job: Job, fold: int, candidates: Sequence[Mapping[str, Any]], streams: Sequence[Any], X: Any, y: Any
) -> list[Any]:
    """One model per candidate; None where it failed."""
    pairs = zip(candidates, streams)
    models = [attempt(lambda c=one, s=training[fold]: fresh(job, c, s)) for one, (training, _) in pairs]  # type: ignore[misc]
    return fitted_together(job, models, job.parts.folds[fold][0], X, y)


def fitted_together(job: Job, models: Sequence[Any], records: np.ndarray, X: Any, y: Any) -> list[Any]:
    """Models trained on the same records at once; None for each that failed, or that could not be made."""
    made = [i for i, model in enumerate(models) if model is not None]
    chosen = [models[i] for i in made]
    fitted = attempt(lambda: job.adapter.fit_together(chosen, take(X, records), take(y, records))) or []
    for model in fitted:
        if model is not None:
            job.adapter.finish(model)
    placed = dict(zip(made, fitted))
    return [placed.get(i) for i in range(len(models))]


def _scored(job: Job, models: Sequence[Any], streams: Any, X: Any, y: Any) -> Run:
    """The run of one candidate whose models, one per fold, are trained."""
    if any(model is None for model in models):
        return _failed(job)
    return attempt(lambda: _run_of(job, models, streams, X, y)) or _failed(job)


def _failed(job: Job) -> Run:
    return Run(_ordered(job.error_score), None)


def _train_and_score(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    streams = _streams(job, seed)
    seeded = zip(job.parts.folds, streams[0])
    models = [fitted(job, fresh(job, candidate, one), train, X, y) for (train, _), one in seeded]
    return _run_of(job, models, streams, X, y)


def _run_of(job: Job, models: Sequence[Any], streams: Any, X: Any, y: Any) -> Run:
    scores = [
        score_of(job, model, take(X, test), take(y, test), n_scored, seed)
        for model, (_, test), n_scored, seed in zip(models, job.parts.folds, job.parts.n_scored, streams[1])
    ]
    score = _ordered(float(np.mean(scores)))
    return Run(score, releasable(job, models[0]) if math.isfinite(score) else None)


def _streams(job: Job, seed: Any) -> list[list[Any]]:
    """Seeds of one run: for the training and for the score of each fold."""
    streams = [None, None] if seed is None else seed.spawn(2)
    number = len(job.parts.folds)
    return [[None] * number if one is None else one.spawn(number) for one in streams]


def score_of(job: Job, model: Any, X: Any, y: Any, n_scored: int | None, seed: Any) -> float:
    """A model's score, on public data or with the noise that the plan demands."""
    if job.public is not None:
        return float(job.scorer(model, *job.public))
    assert job.noise is not None
    bits = random_bits(seed)
    noisy = [value + job.noise.sample(bits) for value in job.scorer.statistic(model, X, y, job.neighboring)]
    return float(job.scorer.score(noisy, n_scored, job.neighboring))


def _ordered(score: float) -> float:
    """Scores in a total order: what is not a finite number comes last."""
    return score if math.isfinite(score) else -math.inf


def fresh(job: Job, candidate: Mapping[str, Any], seed: Any) -> Any:
    """An unfitted estimator with the candidate's parameters, the calibrated noise and randomness of its own."""
    model = with_parameters(clone(job.estimator), job.settings)  # as planned: first the noise, then the candidate
    with_parameters(model, {name: clone(value, safe=False) for name, value in candidate.items()})
    return ready(job, model, seed)


def ready(job: Job, model: Any, seed: Any) -> Any:
    """The model, told how many records to expect, with randomness of its own."""
    if job.parts.expected is not None:
        with_parameters(model, job.adapter.expecting(model, job.parts.expected) or {})
    names = _seed_names(model)
    seeds = [None] * len(names) if seed is None else seed.spawn(len(names))
    with_parameters(model, {name: random_state(one) for name, one in zip(sorted(names), seeds)})
    own = job.adapter.fresh_randomness(model)
    if seed is not None:  # a seeded search stays seeded; ledgers are fresh all the same
        own = {name: value for name, value in own.items() if name not in names}
    return with_parameters(model, own)


def releasable(job: Job, model: Any) -> Any:
    """The model without what its guarantee does not cover: exact statistics, generators whose state tells the noise."""
    job.adapter.scrub(model)
    forget_seeds(model)
    return with_parameters(model, dict.fromkeys(_seed_names(model)))


def _seed_names(model: Any) -> list[str]:
    """Parameters that hold randomness, at any depth."""
    return [name for name in model.get_params(deep=True) if name.rpartition("__")[2] in ("random_state", "noise_seed")]


def take(data: Any, indices: np.ndarray) -> Any:
    return None if data is None else _safe_indexing(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Parameters with one entry per record follow the records."""
    per_record = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == n_records(X)
    return _safe_indexing(value, indices) if per_record else value


def n_records(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
