"""Running candidates. What happens here stays here: no output, no warning, no exception text, no ledger leaves."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ..adapters import Adapter
from ..privacy import LeakingEstimatorError
from ..scoring import Noise
from ..scoring.validation import Fold
from ._isolation import in_task, isolated, reseed_globals
from ._randomness import random_bits, random_state


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
    parent: int


@dataclass(frozen=True)
class Run:
    """Outcome of one run: never leaves ``fit`` unless it is the best."""

    score: float
    model: Any


class LeakDetected(Exception):
    """An estimator said that it reads the data without noise."""


def run_all(
    job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any, **parallel: Any
) -> list[Run]:
    """One run per candidate, in order; silent, and the same for every number of jobs."""
    groups = _groups(job, len(candidates), parallel.get("n_jobs"))
    tasks = (
        delayed(run_several)(job, [candidates[i] for i in group], [seeds[i] for i in group], X, y) for group in groups
    )
    found = in_parallel(job, tasks, **parallel)
    runs = {i: run for group, part in zip(groups, found) for i, run in zip(group, part)}
    return [runs[i] for i in range(len(candidates))]


def in_parallel(job: Job, tasks: Iterable[Any], **parallel: Any) -> list[Any]:
    """Results of joblib's tasks, in order and in silence; errors of joblib itself without what they quote."""
    try:
        with isolated():
            return list(Parallel(verbose=0, **parallel)(tasks))
    except LeakDetected:
        problem: BaseException = LeakingEstimatorError(
            f"{type(job.estimator).__name__} reported that it would read something from the data without noise "
            "(PrivacyLeakWarning). Give the bounds, norms or classes that it asks for as public constants."
        )
    except SystemExit:
        problem = SystemExit(1)
    except Exception as error:
        problem = RuntimeError(
            f"The candidates could not be run by joblib ({type(error).__name__}). Estimators and scorers must be "
            "picklable, and workers must have enough memory; n_jobs=1 needs neither."
        )
    raise problem  # outside the handlers: a chained exception could quote a record


def _groups(job: Job, number: int, n_jobs: Any) -> list[range]:
    """Which candidates share a task: those that can be trained together, spread evenly over the workers."""
    together = job.adapter.trains_together(job.estimator) and not job.fit_params
    tasks = min(number, effective_n_jobs(n_jobs)) if together else number
    return [range(first, number, tasks) for first in range(tasks)]


def run_several(job: Job, candidates: Sequence[Mapping[str, Any]], seeds: Sequence[Any], X: Any, y: Any) -> list[Run]:
    """Train and score several candidates, together if they can be."""
    if len(candidates) == 1:
        return [run_one(job, candidates[0], seeds[0], X, y)]
    with in_task(job.parent):
        reseed_globals(seeds[0])
        streams = [_streams(job, seed) for seed in seeds]
        models = [_trained_together(job, i, candidates, streams, X, y) for i in range(len(job.parts.folds))]
        return [_scored(job, [fold[k] for fold in models], streams[k], X, y) for k in range(len(candidates))]


def run_one(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    """Train and score one candidate. A failure of any kind is the worst score."""
    with in_task(job.parent):
        reseed_globals(seed)
        try:
            return _train_and_score(job, candidate, seed, X, y)
        except Exception as error:
            leaks = type(error).__name__ == "PrivacyLeakWarning"
    if leaks:
        raise LeakDetected
    return Run(_ordered(job.error_score), None)


def train_last(job: Job, make: Callable[[], Any], records: np.ndarray, seed: Any, X: Any, y: Any) -> Any:
    """One more training after the runs, of the model that ``make`` returns, on some records; None if it fails."""
    with isolated(), in_task(job.parent):
        reseed_globals(seed)
        try:
            return releasable(job, _fitted(job, make(), records, X, y))
        except SystemExit:
            pass  # goes on below, without what it says
        except Exception:
            return None
    raise SystemExit(1)


def _fitted(job: Job, model: Any, records: np.ndarray, X: Any, y: Any) -> Any:
    labels = () if y is None else (take(y, records),)
    params = {name: take_param(value, records, X) for name, value in job.fit_params.items()}
    return model.fit(take(X, records), *labels, **params)


def _trained_together(
    job: Job, fold: int, candidates: Sequence[Mapping[str, Any]], streams: Sequence[Any], X: Any, y: Any
) -> list[Any]:
    """One model per candidate; None where it failed."""
    train = job.parts.folds[fold][0]
    models: list[Any] = []
    for candidate, (training, _) in zip(candidates, streams):
        try:
            models.append(fresh(job, candidate, training[fold]))
        except Exception:
            models.append(None)
    made = [i for i, model in enumerate(models) if model is not None]
    with contextlib.suppress(Exception):  # all of them failed
        data = (take(X, train), take(y, train))
        placed = dict(zip(made, job.adapter.fit_together([models[i] for i in made], *data)))
        return [placed.get(i) for i in range(len(models))]
    return [None] * len(models)


def _scored(job: Job, models: Sequence[Any], streams: Any, X: Any, y: Any) -> Run:
    """The run of one candidate whose models, one per fold, are trained."""
    try:
        if all(model is not None for model in models):
            return _run_of(job, models, streams, X, y)
    except Exception:
        pass  # like any other failure: the worst score
    return Run(_ordered(job.error_score), None)


def _train_and_score(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    streams = _streams(job, seed)
    seeded = zip(job.parts.folds, streams[0])
    models = [_fitted(job, fresh(job, candidate, one), train, X, y) for (train, _), one in seeded]
    return _run_of(job, models, streams, X, y)


def _run_of(job: Job, models: Sequence[Any], streams: Any, X: Any, y: Any) -> Run:
    scores = [
        _score(job, model, take(X, test), take(y, test), n_scored, seed)
        for model, (_, test), n_scored, seed in zip(models, job.parts.folds, job.parts.n_scored, streams[1])
    ]
    score = _ordered(float(np.mean(scores)))
    return Run(score, releasable(job, models[0]) if math.isfinite(score) else None)


def _streams(job: Job, seed: Any) -> list[list[Any]]:
    """Seeds of one run: for the training and for the score of each fold."""
    streams = [None, None] if seed is None else seed.spawn(2)
    number = len(job.parts.folds)
    return [[None] * number if one is None else one.spawn(number) for one in streams]


def _score(job: Job, model: Any, X: Any, y: Any, n_scored: int | None, seed: Any) -> float:
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
    model = clone(job.estimator).set_params(**job.settings)  # in the order of the plan: the noise, then the candidate
    model.set_params(**{name: clone(value, safe=False) for name, value in candidate.items()})
    return ready(job, model, seed)


def ready(job: Job, model: Any, seed: Any) -> Any:
    """The model, told how many records to expect, with randomness of its own."""
    if job.parts.expected is not None:
        model.set_params(**(job.adapter.expecting(model, job.parts.expected) or {}))
    names = _seed_names(model)
    seeds = [None] * len(names) if seed is None else seed.spawn(len(names))
    model.set_params(**{name: random_state(one) for name, one in zip(sorted(names), seeds)})
    own = job.adapter.fresh_randomness(model)
    if seed is not None:  # a seeded search stays seeded; ledgers are fresh all the same
        own = {name: value for name, value in own.items() if name not in names}
    return model.set_params(**own)


def releasable(job: Job, model: Any) -> Any:
    """The model without what its guarantee does not cover: exact statistics, generators whose state tells the noise."""
    names = _seed_names(model)
    job.adapter.scrub(model)
    return model.set_params(**dict.fromkeys(names))


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
