"""What searches over a whole grid share: the grid, its utilities on random parts, one final training."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from ..adapters import Adapter
from ..privacy import PrivacyError
from ..privacy.mechanisms.coins import RandomBytes
from ..scoring.validation import Exposure, Fold, Validation
from ._outcome import Outcome
from ._parameters import with_parameters
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, fitted, fresh, n_records, releasable, train_last
from ._space import Space
from ._utilities import HELD_OUT, check_parts, random_parts, utilities

#: What the sensitivity of utilities rests on.
ONE_PART = (
    "A model on one part depends on the records of that part alone: estimator and scorer keep nothing between calls."
)
#: Records of a part, on average, that the default number of parts leaves.
RECORDS = 50
#: Points of a grid that are tried at most.
MOST_POINTS = 10**6
#: Loss of utility through noise, expected of the exponential mechanism, that the default number of parts aims at.
LOSS = 0.05


def points_of(space: Space) -> list[tuple[int, dict[str, Any]]]:
    """Every point of a finite space, with the number of its dictionary.

    Raises
    ------
    ValueError
        For a distribution: there would be no whole grid.
    """
    number_of_points(space)
    return [
        (which, dict(zip(dictionary, values)))
        for which, dictionary in enumerate(space.dictionaries)
        for values in itertools.product(*dictionary.values())
    ]


def number_of_points(space: Space) -> int:
    """How many points a finite space has."""
    _check_finite(space)
    number = sum(math.prod(len(values) for values in dictionary.values()) for dictionary in space.dictionaries)
    if number > MOST_POINTS:
        raise ValueError(
            f"Found a grid of {number} candidates; all of them would run, and at most {MOST_POINTS} are tried. Give "
            "fewer values, or use DPRandomSearchCV, which draws candidates."
        )
    return number


def _check_finite(space: Space) -> None:
    for dictionary in space.dictionaries:
        for name, values in dictionary.items():
            if hasattr(values, "rvs"):
                raise ValueError(
                    f"Found a distribution for {name!r}, but the whole grid is searched. Give a list of values, or use "
                    "DPRandomSearchCV."
                )


def checked_points(plan: Plan) -> list[dict[str, Any]]:
    """Every candidate, each of which keeps what was planned for it."""
    points = points_of(plan.space)
    for which, candidate in points:
        plan.promises.check(which, candidate)
    return [candidate for _, candidate in points]


def utility_scorer(scorer: Any) -> Any:
    """A scorer with values in [0, 1], as far as can be told before any data is read.

    Raises
    ------
    PrivacyError
        For losses, whose values are below 0 and would all count as 0, and for means of values beyond [0, 1].
    """
    loss = getattr(scorer, "_sign", 1) < 0 or not getattr(scorer, "greater_is_better", True)
    low, high = getattr(scorer, "lower", 0.0), getattr(scorer, "upper", 1.0)
    if loss or low < 0 or high > 1:
        found = "negative" if loss else f"in [{low:g}, {high:g}]"
        raise PrivacyError(
            f"Found scoring={scorer!r}, whose values are {found}: utilities must be in [0, 1], so that one record "
            "changes their mean over k parts by at most 1/k. Use a score such as accuracy, f1, roc_auc or r2, or a "
            "callable (estimator, X, y) with values in [0, 1]."
        )
    return scorer


def number_of_parts(
    given: int | None,
    adapter: Adapter,
    estimator: Any,
    relation: str,
    n_samples: int | None,
    epsilon: float,
    space: Space,
) -> int | None:
    """Number of parts k: as given, or from the public number of records.

    The default is the smallest k with 2·log(candidates)/(k·ε) ≤ 0.05, what the exponential mechanism loses of the
    utility on average at most, but not so large that a part has fewer than 50 records.

    Returns
    -------
    int or None
        None where the number of records is not known yet.
    """
    n = adapter.public_size(estimator)
    if n is None and relation != "add_remove":
        n = n_samples
    if given is None and n is None and relation == "add_remove":
        raise PrivacyError(
            "Found n_parts=None while the number of records is private (neighbours: add_remove): the default depends "
            "on it. Give n_parts, or an estimator with a public_n."
        )
    if given is None and n is None:
        return None
    if given is not None:
        check_parts(int(given), None if n is None else int(n))
        return int(given)
    wanted = math.ceil(2 * math.log(max(number_of_points(space), 2)) / (LOSS * epsilon))
    return max(2, min(wanted, int(n or 0) // RECORDS))


@dataclass(frozen=True)
class InParts(Validation):
    """The final model trains on all records, and no score of it is released.

    Parameters
    ----------
    public : bool
        Whether models on parts are scored on public data instead of a share of their part.
    """

    public: bool

    def exposures(self) -> tuple[Exposure, ...]:
        return (Exposure(1, 0),)

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return [(np.arange(n_samples), np.arange(0))]

    @property
    def training_sizes_vary(self) -> bool:
        return False


def drawn_parts(k: int, n_samples: int, validation: Any, source: Randomness) -> Parts:
    """Each record in one part, by a draw of its own."""
    folds = random_parts(n_samples, k, validation.public, source.random_bytes)
    return Parts(folds=folds, n_scored=[None] * k)


def on_parts(job: Job) -> Job:
    """The job of the models on parts: an estimator that was told the public number of records is told a part's."""
    n = job.adapter.public_size(with_parameters(clone(job.estimator), job.settings))
    if n is None:
        return job
    trains = 1.0 if job.public is not None else 1.0 - 1.0 / HELD_OUT
    return replace(job, parts=replace(job.parts, expected=n * trains / len(job.parts.folds)))


def less_noisy(job: Job, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Candidates whose noise is k times smaller: models on parts are never released and need not protect anyone.

    In proportion to the k times smaller number of records that is the noise of the final training: candidates are
    compared under the conditions that the winner will meet. A candidate whose noise cannot be scaled keeps it.
    """
    varying, k = frozenset(name for one in candidates for name in one), float(len(job.parts.folds))
    return [{**one, **_scaled(job, one, k, varying)} for one in candidates]


def _scaled(job: Job, candidate: Mapping[str, Any], factor: float, varying: frozenset[str]) -> dict[str, Any]:
    """Parameters that make a candidate's loss ``factor`` times larger, if those for a factor of 1 leave it as it is."""

    def promise(settings: Mapping[str, Any]) -> Any:
        return job.adapter.training_run(with_parameters(clone(configured), settings), None).guarantee

    with contextlib.suppress(Exception):
        configured = fresh(job, candidate, None)
        for names in (varying, frozenset[str]()):
            if promise(job.adapter.scaled(configured, 1.0, names)) == promise({}):
                return job.adapter.scaled(configured, factor, names)
    return {}


def utilities_of(
    job: Job,
    candidates: Sequence[Mapping[str, Any]],
    part_noise: str,
    seeds: Sequence[Any],
    X: Any,
    y: Any,
    **parallel: Any,
) -> list[Fraction]:
    """Utility of every candidate."""
    tried = less_noisy(job, candidates) if part_noise == "scaled" else candidates
    return utilities(on_parts(job), tried, seeds, X, y, **parallel)


def on_part_in_the_open(job: Job, candidate: Mapping[str, Any], part_noise: str, k: int, X: Any, y: Any) -> float:
    """Score of a candidate's model on one part, after it went the whole way on public records (``dry_run``)."""
    everything = np.arange(n_records(X))
    several = replace(job, parts=replace(job.parts, folds=[(everything, everything)] * k, n_scored=[None] * k))
    tried = less_noisy(several, [candidate])[0] if part_noise == "scaled" else candidate
    model = fitted(job, fresh(on_parts(several), tried, None), everything, X, y)
    score = float(job.scorer(model, X, y))
    releasable(job, fitted(job, fresh(job, candidate, None), everything, X, y))
    return score


def train_winner(
    job: Job, candidate: Mapping[str, Any], score: float, seed: Any, X: Any, y: Any, **attributes: Any
) -> Outcome:
    """One private training on all records."""
    model = train_last(job, lambda: fresh(job, candidate, seed), np.arange(n_records(X)), seed, X, y)
    return Outcome(
        found=model is not None,
        rows=[(candidate, score)],
        attributes={"best_estimator_": model, **attributes},
    )
