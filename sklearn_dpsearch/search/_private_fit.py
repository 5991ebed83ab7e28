"""Work of a fit in a private process: draw, run, and build the release."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._process.progress import Progress, planning
from ..adapters._refused_estimators import check_all
from ..data._columns import is_of_dask
from ..data._persons import PersonCodes, number_of_persons, one_of_each, persons_in
from ..data._records import Records
from ..privacy import PrivacyError
from ..privacy._mechanisms.array_sampling import RandomBytes
from ..scoring._validation import Indices, numbers_where
from . import _private_process as private_process
from ._execution import job as jobs
from ._execution.clusters import Workplace, workplace_for
from ._execution.randomness import Randomness
from ._execution.workers import Workers
from ._html_repr import plan_in_words
from ._partitions import TRUSTED_WORKERS, PartitionedTable, look_at_partitions
from ._planning.checks import check_public_shape, first_look, fit_params_of, read_public
from ._planning.finite_epsilon import check_finite
from ._planning.plan import Plan
from ._records import Parameters, PublicData, takes_groups
from ._strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class PrivateFit:
    """A fit that is planned and paid for.

    Parameters
    ----------
    strategy : Strategy
        Of a copy of the search, without its ledger and its checkpoint: parameters set meanwhile
        change nothing.
    plan : Plan
    n_samples : int
        Number of records, or of persons.
    X, y
        Private records; a table in partitions has its targets.
    public : (X, y) or None
    fit_params : mapping
    workplace : Workplace
        Where candidates run.
    entropy : int, list of int or None
        Secret from which everything random follows; None for the operating system's entropy.
    finished : Finished
        Runs of an attempt before a crash.
    persons : ndarray of shape (n_records,) or None
        Person of each record.
    """

    strategy: Strategy
    plan: Plan
    n_samples: int
    X: Any
    y: Any
    public: PublicData | None
    fit_params: Mapping[str, Any]
    workplace: Workplace
    entropy: int | list[int] | None = None
    finished: jobs.Finished = jobs.NOTHING_FINISHED
    persons: PersonCodes | None = None

    @property
    def shared(self) -> list[Any]:
        """Large objects, of which there is one copy for all processes."""
        objects = (self.X, self.y, *(self.public or ()), *self.fit_params.values())
        return [obj for obj in objects if hasattr(obj, "__len__") and not isinstance(obj, str)]

    @property
    def writes(self) -> list[str] | None:
        """Folders in which runs may write: that of a checkpoint.

        None on a cluster, and for a table in partitions: both are reached by the network.
        """
        if self.workplace.cluster is not None or isinstance(self.X, PartitionedTable):
            return None
        return [] if self.finished.beside is None else [str(self.finished.beside.path.parent)]

    def __call__(self) -> dict[str, Any]:
        """Draw candidates and splits, run, and return the fields of the release.

        All else ends with this process.
        """
        source = self.source()
        with self.workplace.entered() as workers:
            candidates = self.strategy.candidates(self.plan, source)
            job = self.job(candidates, source, workers)
            outcome = self.strategy.run(job, candidates, source, self.progress())
            return released_fields(len(job.split.folds), outcome)

    def try_to_draw(self) -> None:
        """Raise what drawing candidates and a split would raise.

        The draw is always the same, and tells nothing.
        """
        source = Randomness(0)
        candidates = self.strategy.candidates(self.plan, source)
        self.strategy.split(self.plan, candidates, self.n_samples, source)

    def source(self) -> Randomness:
        """Source of all random choices."""
        return Randomness() if self.entropy is None else Randomness.following(self.entropy)

    def progress(self) -> Progress:
        """Receiver of progress in the private process.

        Ends of runs are shown only where the user asks for them.
        """
        return Progress(private_process.tell, self.strategy.search.verbose > 1)

    def job(self, candidates: Any, source: Randomness, workers: Workers) -> jobs.Job:
        """Draw who does what, and gather rows of a table in partitions for it."""
        split = self.strategy.split(self.plan, candidates, self.n_samples, source)
        X, y = self.X, self.y
        if self.persons is not None:
            split = in_records(split, self.persons, source.random_bytes)
        if isinstance(X, PartitionedTable):
            X, y, split = X.gathered(split)
        job = job_of(self.plan, split, X, y, self.fit_params, self.public)
        return replace(job, finished=self.finished, workers=workers, threads=self.workplace.threads)


def private_fit(
    search: Parameters, X: Any, y: Any, X_public: Any, y_public: Any, params: Mapping[str, Any]
) -> tuple[PrivateFit, Records]:
    """Check all that is public, and plan a fit; return the records too, as the door reads them.

    Parameters
    ----------
    search : Parameters
        A copy of the user's.
    X, y, X_public, y_public, params
        As ``fit`` takes them.
    """
    strategy, is_public = search._strategy(), X_public is not None
    groups, public, persons = params.get("groups"), None, None
    others = {name: value for name, value in params.items() if name != "groups"}
    fit_params = fit_params_of(search, others)
    name = "" if groups is None else name_of_groups(strategy)
    if is_public or y_public is not None:
        public = read_public(X_public, y_public, X, y, strategy.kinds)
    _, scorer = check_all((strategy.check_kinds, partial(strategy.scorer, is_public)))
    workplace = workplace_for(search.n_jobs)
    if is_of_dask(X):
        records = look_at_partitions(strategy, scorer, X, y, params, public=is_public)
    else:
        records = first_look(search, strategy.kinds, scorer, X, y, fit_params)
    if records.n == 0:
        raise ValueError(
            "Found X with 0 records (0 samples), of which nothing can be learned. Nothing was "
            "spent."
        )
    if public is not None:
        check_public_shape(public, records)
    n, unit = records.n, "record"
    if groups is not None:
        persons = fit_params[name] = persons_in(groups, n)
        n, unit = number_of_persons(persons), "person"
    trusted = (*workplace.assumptions, *(TRUSTED_WORKERS,) * is_of_dask(X))
    with planning(type(search).__name__, search.verbose):
        plan = strategy.plan(n, is_public, search.delta, unit=unit).assuming(*trusted)
        check_finite(search, plan, plan.spent, n, is_public)
    if search.verbose:
        print(plan_in_words(search, plan))
    search.ledger = search.checkpoint = None  # the user's process keeps both
    fit = PrivateFit(
        strategy=strategy,
        plan=plan,
        n_samples=n,
        persons=persons,
        X=records.X,
        y=records.y,
        public=None if public is None else (public.X, public.y),
        fit_params=fit_params,
        workplace=workplace,
    )
    return fit, records


def job_of(
    plan: Plan, split: jobs.Split, X: Any, y: Any, fit_params: Any, public: PublicData | None = None
) -> jobs.Job:
    """Job of a plan: candidates as planned, and records."""
    families = plan.families
    return jobs.Job(
        estimator=families.estimator,
        adapter=families.adapter,
        settings=plan.promises.settings,
        scorer=plan.scorer,
        noise=plan.noise,
        neighboring=families.relation,
        error_score=plan.error_score,
        n_samples=families.n_samples,
        trains_together=families.train_together and not fit_params,
        expected_runs=plan.expected_runs,
        split=split,
        X=X,
        y=y,
        fit_params=fit_params,
        public=public,
    )


def released_fields(n_splits: int, outcome: jobs.Outcome) -> dict[str, Any]:
    """Fields of a release: all that leaves the private process.

    Raises
    ------
    NoModelError
        If no candidate could be trained and scored.
    """
    if not outcome.has_model and not outcome.may_stop:
        raise jobs.NoModelError(jobs.NOTHING_FOUND)
    fields: dict[str, Any] = {"n_splits_": n_splits}
    if outcome.may_stop:
        fields["found_"] = outcome.has_model
    if not outcome.has_model:
        return fields
    scores = np.array([score for _, score in outcome.rows])
    return {
        **fields,
        "best_index_": outcome.best,
        "best_params_": dict(outcome.rows[outcome.best][0]),
        "best_score_": float(scores[outcome.best]),
        "cv_results_": jobs.cv_results([dict(candidate) for candidate, _ in outcome.rows], scores),
        **outcome.attributes,
    }


# --- persons --------------------------------------------------------------------------------------

# They draw coins; all records of those that train are used, and one of each that validates.


def name_of_groups(strategy: Strategy) -> str:
    """Name of the parameter by which the ``fit`` of all candidates takes persons.

    Raises
    ------
    PrivacyError
        For candidates whose guarantee is for single records, and for folds by record number.
    """
    search, names = strategy.search, {_name_in(kind) for kind in strategy.kinds}
    name = names.pop() if search.guarantee is None and len(names) == 1 else None
    if name is None:
        raise PrivacyError(
            f"Found groups in fit, and {type(search.estimator).__name__}, whose guarantee is for "
            "single records; boosting, or a net for tables (DPTabular..., DPMLP..., "
            "DPLogisticRegression), is needed for persons with several. Keep one record of each "
            "person, or leave groups out and read privacy_spent_.for_group(k), where no person has "
            "more than k records. If groups stand for something else, and are public, so that "
            "folds may follow them, DPRandomSearchCV takes cv=list(GroupKFold(5).split(X, "
            "groups=groups)). Nothing was spent."
        )
    if not isinstance(cv := getattr(search, "cv", None), numbers.Real | None):
        raise PrivacyError(
            f"Found groups in fit, and cv={cv!r}; None, a fraction or a number of folds is needed, "
            "as each person has one coin for all of his records. Write e.g. cv=0.2 or cv=5. "
            "Nothing was spent."
        )
    return name


def _name_in(estimator: Any) -> str | None:
    if type(estimator) is Pipeline:
        last, step = estimator.steps[-1]
        inner = _name_in(step)
        return None if inner is None else f"{last}__{inner}"
    return "groups" if takes_groups(estimator) else None


def in_records(split: jobs.Split, persons: PersonCodes, random_bytes: RandomBytes) -> jobs.Split:
    """Roles of records, from those of persons.

    Parameters
    ----------
    split : Split
        With numbers of persons.
    persons : ndarray of shape (n_samples,)
        Person of each record.
    random_bytes : callable
        Secret randomness.
    """
    every, representatives = np.arange(len(persons)), one_of_each(persons, random_bytes)

    def records_of(chosen: Indices, among: Indices = every) -> Indices:
        is_chosen = np.zeros(number_of_persons(persons), np.bool_)
        is_chosen[chosen] = True
        records: Indices = among[numbers_where(is_chosen[persons[among]])]
        return records

    folds = [(records_of(train), records_of(test, representatives)) for train, test in split.folds]
    final = split.final and replace(split.final, records=records_of(split.final.records))
    return replace(split, folds=folds, final=final, n_trained=len(split.folds[0][0]))
