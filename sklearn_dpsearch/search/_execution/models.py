"""Models of candidates: made with own noise, trained, and cleaned before release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._process import reseed
from ...adapters._seeds import forget_seeds, seed_names
from ...data._records import number_of_records
from ...scoring._validation import all_numbers
from .. import _private_process as private_process
from .._pickling import pickled
from .._records import (
    Candidate,
    Candidates,
    Seed,
    Seeds,
    rows_of,
    take,
    take_param,
    with_parameters,
)
from .job import Job
from .randomness import random_state
from .workers import LeakDetected, attempt, task_context

# --- before training ------------------------------------------------------------------------------


def unfitted_model(job: Job, candidate: Candidate, seed: Seed) -> Any:
    """Make a candidate's unfitted estimator, with the calibrated noise and its own randomness."""
    # as planned: first the noise, then the candidate
    model = with_parameters(clone(job.estimator), job.settings)
    with_parameters(model, {name: clone(value, safe=False) for name, value in candidate.items()})
    return with_own_randomness(job, model, seed)


def with_own_randomness(job: Job, model: Any, seed: Seed) -> Any:
    """Set the expected number of records and the model's own randomness."""
    n = job.split.n_trained if job.n_samples is None else job.n_samples
    job.adapter.for_records(model, len(job.split.folds[0][0]) if n is None else n, job.split.places)
    if job.split.expected is not None:
        with_parameters(model, job.adapter.expecting(model, job.split.expected) or {})
    names = seed_names(model)
    seeds = spawn_seeds(seed, len(names))
    with_parameters(model, {name: random_state(part_seed) for name, part_seed in zip(names, seeds)})
    secure = job.adapter.fresh_randomness(model)
    if seed is not None:  # a seeded search stays seeded; ledgers are fresh all the same
        secure = {name: value for name, value in secure.items() if name not in names}
    with_parameters(model, secure)
    job.adapter.prepare(model)
    return model


def spawn_seeds(seed: Seed, number: int) -> list[Seed]:
    """Spawn ``number`` seeds from one seed; without a seed, as many None."""
    return [None] * number if seed is None else list(seed.spawn(number))


# --- training -------------------------------------------------------------------------------------


def fit_model(job: Job, model: Any, records: np.ndarray) -> Any:
    """Train the model; the return value of ``fit`` is ignored, for it may be None."""
    if job.table is not None:
        job.table.fit(model, records)
        return _finished(job, model)
    chosen = rows_of if job.adapter.takes_chosen_rows(model) else take
    labels = () if job.y is None else (chosen(job.y, records),)
    params = {name: take_param(value, records, job.X) for name, value in job.fit_params.items()}
    model.fit(chosen(job.X, records), *labels, **params)
    return _finished(job, model)


def all_fitted(job: Job, candidates: Candidates, seeds: Seeds, records: np.ndarray) -> list[Any]:
    """Train a model of each candidate on the given records alone, together where possible.

    The result has None for each failure.
    """
    models = [attempt(partial(unfitted_model, job, *pair)) for pair in zip(candidates, seeds)]
    fitted: list[Any] = [None] * len(models)
    places = [i for i, model in enumerate(models) if model is not None]
    if not job.trains_together or len(places) < 2:
        for i in places:
            fitted[i] = attempt(partial(fit_model, job, models[i], records))
        return fitted
    chosen: list[Any] = [models[i] for i in places]
    part = rows_of if all(map(job.adapter.takes_chosen_rows, chosen)) else take

    def train() -> list[Any]:
        return job.adapter.fit_together(chosen, part(job.X, records), part(job.y, records))

    for i, model in zip(places, attempt(train) or []):
        fitted[i] = None if model is None else attempt(partial(_finished, job, model))
    return fitted


def _finished(job: Job, model: Any) -> Any:
    """Keep the trained model's predictions within public bounds."""
    job.adapter.finish(model)
    return model


def train_last(job: Job, make: Callable[[], Any], records: np.ndarray, seed: Seed) -> Any:
    """Train the model of ``make`` on some records, after the runs; None if the training fails."""
    try:
        return private_process.in_own_process(partial(_trained_last, job, make, records, seed))
    except LeakDetected:  # the runs passed, so an error only here depends on the records
        return None


def train_on_all(job: Job, candidate: Candidate, seed: Seed) -> Any:
    """Train a candidate on all records, after the runs; None if the training fails."""
    records = all_numbers(number_of_records(job.X))
    return train_last(job, partial(unfitted_model, job, candidate, seed), records, seed)


def _trained_last(job: Job, make: Callable[[], Any], records: np.ndarray, seed: Seed) -> Any:
    with task_context():
        reseed(seed)
        return attempt(lambda: releasable(job, fit_model(job, make(), records)))


# --- before release -------------------------------------------------------------------------------


def releasable(job: Job, model: Any) -> Any:
    """Remove all attributes that the guarantee does not cover.

    They are exact statistics, and generators that tell the noise.
    """
    job.adapter.scrub(model)
    forget_seeds(model)
    return with_parameters(model, dict.fromkeys(seed_names(model)))


def released_in_the_open(job: Job, model: Any) -> Any:
    """Make a model of public records ready for release, and check that it can be used.

    The model has to be usable outside of a private process.
    """
    model = releasable(job, model)
    pickled(model)
    if hasattr(model, "predict"):
        model.predict(take(job.X, np.arange(min(number_of_records(job.X), 2))))
    return model
