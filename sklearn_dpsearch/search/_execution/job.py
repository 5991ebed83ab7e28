"""Inputs that all runs of one search share, finished runs of a checkpoint, and the outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...adapters import Adapter
from ...privacy import PrivacyError
from ...privacy._checks import Neighboring
from ...privacy._spent import PrivacySpent
from ...scoring import Noise, PrivateScorer
from ...scoring._validation import Fold
from .._checkpoint_folder import RUN_PREFIX, FileOfSearch
from .._pickling import mark_of_code, pickled, unpickled
from .._records import Candidates, PublicData, Scorer, Seed
from .workers import Threads, Workers


@dataclass(frozen=True)
class Finished:
    """Finished results, each under the seed from which it came. Workers get a copy.

    Parameters
    ----------
    beside : FileOfSearch or None
        A file of the same search in the folder; None: nothing is kept.
    """

    beside: FileOfSearch | None = None

    def get(self, seed: Seed) -> Any:
        """Read the result of a seed; None if it is missing, or not as it was written."""
        file = self._file(seed)
        with contextlib.suppress(Exception):
            payload, mark = b"" if file is None else file.read() or b"", mark_of_code()
            return unpickled(payload[len(mark) :]) if payload.startswith(mark) else None
        return None

    def put(self, seed: Seed, result: Any) -> None:
        """Keep a result if possible.

        After an error (a full disk, a model that cannot be pickled) it is dropped.
        """
        done = self._file(seed)
        with contextlib.suppress(Exception):
            if done is not None:
                done.write(pickled(result, head=mark_of_code()))

    def _file(self, seed: Any) -> FileOfSearch | None:
        if self.beside is None or seed is None:
            return None
        return self.beside.beside(f"{RUN_PREFIX}{'-'.join(map(str, seed.spawn_key))}")


NOTHING_FINISHED = Finished()


@dataclass(frozen=True, kw_only=True)
class FinalTraining:
    """A training after the runs, on other records and with other parameters than the winner's run.

    Parameters
    ----------
    settings : mapping
        Parameters of the estimator that set the noise.
    records : ndarray of shape (n,)
        Indices of the records that train.
    candidates : sequence of dict
        The final parameters of every candidate: which one wins is not known yet.
    expected, places : optional
        As for ``Split``.
    table : PartitionedTable or None
        The table of these records, where it is in partitions.
    """

    settings: Mapping[str, Any]
    records: np.ndarray
    candidates: Candidates
    expected: float | None = None
    places: int | None = None
    table: Any = None


@dataclass(frozen=True, kw_only=True)
class Split:
    """Roles of the records (training, validation), drawn without a look at any of them.

    Parameters
    ----------
    folds : sequence of (training indices, validation indices)
    n_scored : sequence of int
        Number of validation records of each fold, as private scores are told.
    size_std : float
        Standard deviation of the drawn numbers of validation records around ``n_scored``, where
        that is an expectation.
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
    """Shared inputs of the runs of one search: all that they need of a plan, and records.

    Workers get a copy.

    Parameters
    ----------
    estimator, adapter, scorer, neighboring, error_score
        As planned.
    settings : mapping
        Parameters of the estimator that set the noise.
    noise : Noise or None
        Noise of a private score.
    n_samples : int or None
        Number of all records, for estimators whose noise or rate follows from it.
    trains_together : bool
        Whether candidates can be trained at once.
    expected_runs : float
        Expected number of runs, which is public, where the number drawn is secret.
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
    threads : int or None
        Number of threads of linear algebra in one run.
    table : PartitionedTable or None
        Records in partitions, which train in place of ``X`` and ``y``.
    """

    estimator: Any
    adapter: Adapter
    settings: Mapping[str, Any]
    scorer: Scorer
    noise: Noise | None
    neighboring: Neighboring
    error_score: float
    n_samples: int | None
    trains_together: bool
    expected_runs: float
    split: Split
    X: Any
    y: Any
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    public: PublicData | None = None
    finished: Finished = NOTHING_FINISHED
    workers: Workers = field(default_factory=Threads)
    threads: int | None = None
    table: Any = None

    def for_workers(self) -> Job:
        """Job for a task: the size of ``final`` would tell a cluster the number of candidates."""
        return replace(self, split=replace(self.split, final=None))

    def afterwards(self, final: FinalTraining) -> Job:
        """Job for a training after the runs."""
        split = replace(self.split, expected=final.expected, places=final.places, final=None)
        return replace(self, settings=final.settings, split=split, table=final.table)

    def score(self, model: Any, X: Any, y: Any) -> float:
        """Metric of a model. As in scikit-learn, a metric gets no target that does not exist."""
        target = () if y is None and not isinstance(self.scorer, PrivateScorer) else (y,)
        return float(self.scorer(model, X, *target))


NOTHING_FOUND = (
    "No candidate could be trained and scored, so there is no model; the privacy cost in "
    "privacy_spent_ is spent all the same. Which data made the candidates fail is not told, "
    "because that would reveal it. Usual reasons: a parameter value that the estimator does not "
    "accept; NaN or infinite values in X or y; labels in y or categories in X that were not "
    "declared; bounds for another number of features; y with one class, in all records or among "
    "those that train; too few records (one sample); a score that is not a finite number; a "
    "process that was ended for want of memory; a model that cannot be pickled. "
    "search.dry_run(X_example, y_example) tries a candidate on public or made-up records and shows "
    "the error; it spends nothing."
)


class NoModelError(PrivacyError):
    """Error for a search whose every candidate failed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results that a search is about to release.

    Parameters
    ----------
    has_model : bool
        Whether there is a model; if not, nothing else is released.
    may_stop : bool
        Whether finding nothing is an ordinary result, told by ``found_``, rather than an error.
    rows : sequence of (parameters, score)
    best : int
        Which of them is the winner's.
    attributes : mapping
        Further attributes of the fitted search.
    """

    has_model: bool
    rows: Sequence[tuple[Mapping[str, Any], float]]
    best: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    may_stop: bool = False


def charge(model: Any, spent: PrivacySpent) -> None:
    """Make the released model report the cost of the whole search, not of its training."""
    # on the object itself: a property would answer too
    if "privacy_spent_" in getattr(model, "__dict__", {}):
        model.privacy_spent_ = spent
    # of a pipeline or a union; other estimators may use these words for something else
    listed = (getattr(model, name, None) for name in ("steps", "transformers_", "transformer_list"))
    entries = [entry for entries in listed if isinstance(entries, list) for entry in entries]
    parts = [entry[1] for entry in entries if isinstance(entry, tuple) and len(entry) > 1]
    for part in (getattr(model, "best_estimator_", None), *parts):
        if hasattr(part, "fit"):
            charge(part, spent)


def cv_results(candidates: Sequence[Mapping[str, Any]], scores: np.ndarray) -> dict[str, Any]:
    """Released rows in the form of scikit-learn's ``cv_results_``."""
    columns: dict[str, Any] = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
        for i, candidate in enumerate(candidates):
            if name in candidate:
                column[i] = candidate[name]
        columns[f"param_{name}"] = column
    rank = np.array([1 + int(np.sum(scores > score)) for score in scores], dtype=np.int32)
    rows = {"params": list(candidates), "mean_test_score": scores, "rank_test_score": rank}
    return {**columns, **rows}
