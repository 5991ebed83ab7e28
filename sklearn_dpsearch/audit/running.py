"""Fitting one estimator many times, each time with fresh randomness; a fit that fails is an outcome like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from .._process import GENERATORS, reseed, without_warnings
from ..privacy import PrivacyError
from ..search import NoModelError
from .attacks import Statistic
from .neighbours import Neighbours
from .outcomes import FAILED

#: Fits of one task: many enough to pay for its start, few enough to share the work evenly.
BATCH = 25


@dataclass(frozen=True)
class Samples:
    """What the fits returned on both data sets, what they state, and the first error."""

    first: list[Any]
    second: list[Any]
    spent: list[Any]
    error: str | None


@dataclass(frozen=True)
class Fits:
    """What all fits of an audit share."""

    estimator: Any
    statistic: Statistic
    fit_params: Mapping[str, Any]


def fit_many(
    estimator: Any,
    pair: Neighbours,
    n_runs: int,
    statistic: Statistic,
    fit_params: Mapping[str, Any],
    n_jobs: int | None,
    random_state: Any,
) -> Samples:
    """So many fits on each of the two data sets."""
    fits = Fits(estimator, statistic, fit_params)
    data = (pair.X, pair.y), (pair.other_X, pair.other_y)
    seeds = [_seeds(random_state, side, n_runs) for side in (0, 1)]
    batch = max(1, min(BATCH, -(-n_runs // effective_n_jobs(n_jobs))))
    tasks = [(side, seeds[side][i : i + batch]) for side in (0, 1) for i in range(0, n_runs, batch)]
    with without_warnings(), GENERATORS():
        done = Parallel(n_jobs=n_jobs)(delayed(fit_some)(fits, *data[side], some) for side, some in tasks)
    outcomes: tuple[list[Any], list[Any]] = [], []
    for (side, _), (found, _, _) in zip(tasks, done):
        outcomes[side].extend(found)
    spent = [one for _, stated, _ in done for one in stated]
    return Samples(*outcomes, spent, next((error for *_, error in done if error), None))


def fit_some(fits: Fits, X: Any, y: Any, seeds: Sequence[Any]) -> tuple[list[Any], list[Any], str | None]:
    """Outcomes of some fits on one data set, what the first of them states, and the first error."""
    outcomes, spent, error = [], [], None
    with without_warnings(), GENERATORS():
        for seed in seeds:
            model = fresh(fits.estimator, seed)
            reseed(seed)
            try:
                model.fit(X, *([] if y is None else [y]), **fits.fit_params)
            except Exception as failure:  # which data make a fit fail is told by its failing
                if isinstance(failure, PrivacyError) and not isinstance(failure, NoModelError):
                    raise  # a refusal, from what the caller wrote
                outcomes.append(FAILED)
                error = error or f"{type(failure).__name__}: {failure}"
            else:
                outcomes.append(fits.statistic(model))
            if not spent and hasattr(model, "privacy_spent_"):
                spent.append(model.privacy_spent_)
    return outcomes, spent, error


def seed_names(estimator: Any) -> list[str]:
    """Parameters that hold randomness, at any depth."""
    return sorted(
        name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] in ("random_state", "noise_seed")
    )


def stripped(estimator: Any) -> tuple[Any, tuple[str, ...]]:
    """The estimator without fixed seeds, and what was taken away."""
    params = estimator.get_params(deep=True)
    fixed = [name for name in seed_names(estimator) if params[name] is not None]
    notes = tuple(
        f"{name}={params[name]!r} was set to None: with a fixed seed all fits would draw the same noise, and an audit "
        "would see one fit many times."
        for name in fixed
    )
    return clone(estimator).set_params(**dict.fromkeys(fixed)), notes


def fresh(estimator: Any, seed: Any) -> Any:
    """An unfitted copy; for tests, with seeds of its own."""
    model = clone(estimator)
    if seed is None:
        return model
    names = seed_names(model)
    return model.set_params(**{name: int(one.generate_state(1)[0]) for name, one in zip(names, seed.spawn(len(names)))})


def _seeds(random_state: Any, side: int, n_runs: int) -> list[Any]:
    """One seed for each fit, or None for the operating system's entropy."""
    if random_state is None:
        return [None] * n_runs
    return list(np.random.SeedSequence([int(random_state), side]).spawn(n_runs))
