"""Settings and records that all runs of one search share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...scoring.validation import Fold
from .._types import Candidate, PublicData, Recipe, Workers
from .finished_runs import NOTHING, Finished


@dataclass(frozen=True, kw_only=True)
class FinalTraining:
    """A training after the runs, on other records and with other parameters than the winner's run.

    Parameters
    ----------
    recipe : Recipe
    records : ndarray of shape (n,)
        Indices of the records that train.
    candidates : sequence of dict
        The final parameters of every candidate: which one wins is not known yet.
    expected, places : optional
        As for ``Split``.
    """

    recipe: Recipe
    records: np.ndarray
    candidates: Sequence[Candidate]
    expected: float | None = None
    places: int | None = None


@dataclass(frozen=True, kw_only=True)
class Split:
    """Roles of the records (training, validation), drawn without a look at any of them.

    Parameters
    ----------
    folds : sequence of (training indices, validation indices)
    n_scored : sequence of int
        Number of validation records of each fold, as private scores are told.
    size_std : float
        Standard deviation of the drawn numbers of validation records around ``n_scored``, where that is an expectation.
    expected : float or None
        Public number of records that models are told to expect; None: they may count them.
    places : int or None
        Public number, never exceeded by the number of training records; None: the latter is public.
    n_trained : int or None
        Number of persons who train in the first fold; None: records train, each by itself.
    final : FinalTraining, optional
        Workers do not need it.
    """

    folds: Sequence[Fold]
    n_scored: Sequence[int] = ()
    size_std: float = 0.0
    expected: float | None = None
    places: int | None = None
    n_trained: int | None = None
    final: FinalTraining | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """Shared inputs of the runs of one search. Workers get a copy.

    Parameters
    ----------
    recipe : Recipe
    split : Split
    X, y
        Records.
    fit_params : mapping
        Parameters for the estimator's ``fit``.
    public : (X, y) or None
        Public validation data.
    finished : Finished
        Runs that are done already, and where others are kept.
    workers : Workers
        The user's settings of workers.
    threads : int or None
        Number of threads of linear algebra in one run.
    """

    recipe: Recipe
    split: Split
    X: Any
    y: Any
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    public: PublicData | None = None
    finished: Finished = NOTHING
    workers: Workers = field(default_factory=lambda: Workers(n_jobs=None, pre_dispatch="all"))
    threads: int | None = None

    @property
    def trains_together(self) -> bool:
        """Return whether candidates are trained at once."""
        return self.recipe.trains_together and not self.fit_params

    def afterwards(self, final: FinalTraining) -> Job:
        """Job for a training after the runs."""
        split = replace(self.split, expected=final.expected, places=final.places, final=None)
        return replace(self, recipe=final.recipe, split=split)
