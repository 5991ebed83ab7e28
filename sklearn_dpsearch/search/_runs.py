"""Running candidates. What happens here stays here: no output, no warning, no exception text, no ledger leaves."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import random
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ..adapters import Adapter
from ..privacy import LeakingEstimatorError
from ..scoring import Noise
from ..scoring.validation import Fold
from ._randomness import random_bits, random_state


@dataclass(frozen=True)
class Job:
    """Everything that the runs of one search share."""

    estimator: Any
    adapter: Adapter
    settings: Mapping[str, Any]
    folds: Sequence[Fold]
    scorer: Any
    noise: Noise | None
    n_scored: Sequence[int | None]
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
    tasks = (delayed(run_one)(job, candidate, seed, X, y) for candidate, seed in zip(candidates, seeds))
    try:
        with isolated():
            return list(Parallel(verbose=0, **parallel)(tasks))
    except LeakDetected:
        problem: Exception = LeakingEstimatorError(
            f"{type(job.estimator).__name__} reported that it would read something from the data without noise "
            "(PrivacyLeakWarning). Give the bounds, norms or classes that it asks for as public constants."
        )
    except Exception as error:
        problem = RuntimeError(
            f"The candidates could not be run by joblib ({type(error).__name__}). Estimators and scorers must be "
            "picklable, and workers must have enough memory; n_jobs=1 needs neither."
        )
    raise problem  # outside the handlers: a chained exception could quote a record


def run_one(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    """Train and score one candidate. A failure of any kind is the worst score."""
    with isolated() if os.getpid() != job.parent else contextlib.nullcontext(), parallel_config(backend="sequential"):
        reseed_globals(seed)
        try:
            return _train_and_score(job, candidate, seed, X, y)
        except Exception as error:
            leaks = type(error).__name__ == "PrivacyLeakWarning"
    if leaks:
        raise LeakDetected
    return Run(_ordered(job.error_score), None)


def refit(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Any:
    """One more training on all records; None if it fails."""
    everything = replace(
        job, folds=[(np.arange(n_records(X)), np.arange(0))], n_scored=[None], public=None, scorer=None
    )
    with isolated(), parallel_config(backend="sequential"):
        reseed_globals(seed)
        try:
            return releasable(job, _trained(everything, 0, candidate, seed, X, y))
        except Exception:
            return None


def _trained(job: Job, fold: int, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Any:
    train = job.folds[fold][0]
    labels = () if y is None else (take(y, train),)
    params = {name: take_param(value, train, X) for name, value in job.fit_params.items()}
    return fresh(job, candidate, seed).fit(take(X, train), *labels, **params)


def _train_and_score(job: Job, candidate: Mapping[str, Any], seed: Any, X: Any, y: Any) -> Run:
    streams = [None, None] if seed is None else seed.spawn(2)
    fold_seeds = [[None] * len(job.folds) if one is None else one.spawn(len(job.folds)) for one in streams]
    models, scores = [], []
    for i, (_, test) in enumerate(job.folds):
        models.append(_trained(job, i, candidate, fold_seeds[0][i], X, y))
        scores.append(_score(job, models[i], take(X, test), take(y, test), job.n_scored[i], fold_seeds[1][i]))
    score = _ordered(float(np.mean(scores)))
    return Run(score, releasable(job, models[0]) if math.isfinite(score) else None)


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
    model.set_params(**{name: clone(v, safe=False) if hasattr(v, "get_params") else v for name, v in candidate.items()})
    names = [name for name in model.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]
    seeds = [None] * len(names) if seed is None else seed.spawn(len(names))
    model.set_params(**{name: random_state(one) for name, one in zip(sorted(names), seeds)})
    own = job.adapter.fresh_randomness(model)
    if seed is not None:  # a seeded search stays seeded; ledgers are fresh all the same
        own = {name: value for name, value in own.items() if name.rpartition("__")[2] != "random_state"}
    return model.set_params(**own)


def releasable(job: Job, model: Any) -> Any:
    """The model without what its guarantee does not cover: exact statistics, generators whose state tells the noise."""
    names = [name for name in model.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]
    job.adapter.scrub(model)
    return model.set_params(**dict.fromkeys(names))


def take(data: Any, indices: np.ndarray) -> Any:
    return None if data is None else _safe_indexing(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Parameters with one entry per record follow the records."""
    per_record = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == n_records(X)
    return _safe_indexing(value, indices) if per_record else value


def n_records(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def reseed_globals(seed: Any) -> None:
    """Fresh state for the global generators: forked workers and users who seeded them would repeat each other."""
    words = np.frombuffer(os.urandom(64), np.uint32) if seed is None else seed.generate_state(16)
    np.random.seed(words)
    random.seed(words.tobytes())


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """No standard output, warnings or log records: each of them could count the runs or quote a record.

    A diffprivlib warning about a leak becomes an exception. The global generators are left as they were found.
    """
    previous, numpy_state, python_state = logging.root.manager.disable, np.random.get_state(), random.getstate()
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            if "diffprivlib.utils" in sys.modules:
                warnings.simplefilter("error", sys.modules["diffprivlib.utils"].PrivacyLeakWarning)
            yield
    finally:
        logging.disable(previous)
        np.random.set_state(numpy_state)
        random.setstate(python_state)
