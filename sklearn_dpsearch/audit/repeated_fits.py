"""Many fits of one estimator, each with fresh randomness; a failing fit is an outcome like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from .._process import reseed
from ..adapters.adapter import Estimator
from ..adapters.seeds import seed_names
from ..privacy import PrivacyError
from ..privacy.spent import PrivacySpent
from ..search import NoModelError, private_process
from ..search._rehearsal import in_the_open
from ..search.execution.clusters import Workplace, workplace
from .attacks import Statistic
from .neighbours import Dataset, Neighbours
from .outcomes import FAILED

Seed = np.random.SeedSequence

#: Fits of one task: enough to pay for its start, few enough to share the work evenly.
BATCH = 25


@dataclass(frozen=True)
class Samples:
    """Results of the fits on both data sets, their statements, and the first error."""

    first: list[Any]
    second: list[Any]
    spent: list[PrivacySpent]
    error: str | None


@dataclass(frozen=True)
class Fits:
    """Settings that all fits of an audit share."""

    estimator: Estimator
    statistic: Statistic
    fit_params: Mapping[str, Any]


def fit_many(
    estimator: Estimator,
    pair: Neighbours,
    n_runs: int,
    statistic: Statistic,
    fit_params: Mapping[str, Any],
    n_jobs: int | None,
    random_state: int | None,
) -> Samples:
    """``n_runs`` fits on each of the two data sets."""
    fits = Fits(estimator, statistic, fit_params)
    data = (pair.X, pair.y, pair.groups), (pair.other_X, pair.other_y, pair.other_groups)
    seeds = [_seeds(random_state, side, n_runs) for side in (0, 1)]
    batch = max(1, min(BATCH, -(-n_runs // effective_n_jobs(n_jobs))))
    tasks = [(side, seeds[side][i : i + batch]) for side in (0, 1) for i in range(0, n_runs, batch)]
    done = in_the_open(partial(_all, fits, data, tasks, workplace(n_jobs)), [*data[0], *data[1]])
    outcomes: tuple[list[Any], list[Any]] = [], []
    for (side, _), (found, _, _) in zip(tasks, done):
        outcomes[side].extend(found)
    spent = [statement for _, stated, _ in done for statement in stated]
    return Samples(*outcomes, spent, next((error for *_, error in done if error), None))


def _all(
    fits: Fits, data: Any, tasks: Sequence[tuple[int, Sequence[Seed | None]]], there: Workplace
) -> list[tuple[list[Any], list[PrivacySpent], str | None]]:
    """Outcomes of all tasks, each in a process of its own; all fits of one that ends early have failed."""
    with there.entered() as workers:
        works = [partial(fit_some, fits, data[side], some) for side, some in tasks]
        found = workers.run([partial(private_process.in_own_process, work) for work in works])
    ended = "the process ended, for want of memory or by a crash of compiled code"
    return [done or ([FAILED] * len(some), [], ended) for done, (_, some) in zip(found, tasks)]


def fit_some(
    fits: Fits, data: Dataset, seeds: Sequence[Seed | None]
) -> tuple[list[Any], list[PrivacySpent], str | None]:
    """Outcomes of some fits on one data set, the statement of the first fit, and the first error."""
    X, y, groups = data
    params = dict(fits.fit_params) if groups is None else {**fits.fit_params, "groups": groups}
    outcomes: list[Any] = []
    spent: list[PrivacySpent] = []
    error: str | None = None
    for seed in seeds:
        model = fresh(fits.estimator, seed)
        reseed(seed)
        try:
            model.fit(X, *([] if y is None else [y]), **params)
        except Exception as failure:  # a failure reveals something about the data
            if isinstance(failure, PrivacyError) and not isinstance(failure, NoModelError):
                raise  # refused because of the caller's parameters, not of the data
            outcomes.append(FAILED)
            error = error or f"{type(failure).__name__}: {failure}"
        else:
            outcomes.append(fits.statistic(model))
        if not spent and isinstance(getattr(model, "privacy_spent_", None), PrivacySpent):
            spent.append(model.privacy_spent_)
    return outcomes, spent, error


def without_seeds(estimator: Estimator) -> tuple[Any, tuple[str, ...]]:
    """The estimator without fixed seeds, and a note for each removed seed."""
    params = estimator.get_params(deep=True)
    fixed = [name for name in seed_names(estimator) if params[name] is not None]
    notes = tuple(
        f"{name}={params[name]!r} was set to None: with a fixed seed all fits would draw the same noise, and an audit "
        "would see one fit many times."
        for name in fixed
    )
    return clone(estimator).set_params(**dict.fromkeys(fixed)), notes


def fresh(estimator: Estimator, seed: Seed | None) -> Any:
    """An unfitted copy. With a seed, for tests, its parameters are seeded too."""
    model = clone(estimator)
    if seed is None:
        return model
    names = seed_names(model)
    own = zip(names, seed.spawn(len(names)))
    return model.set_params(**{name: int(part.generate_state(1)[0]) for name, part in own})


def _seeds(random_state: int | None, side: int, n_runs: int) -> Sequence[Seed | None]:
    """One seed for each fit, or None for the operating system's entropy."""
    if random_state is None:
        return [None] * n_runs
    return list(np.random.SeedSequence([int(random_state), side]).spawn(n_runs))
