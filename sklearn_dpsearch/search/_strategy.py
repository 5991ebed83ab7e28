"""Base classes of the strategies, one for each kind of search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from .._process.progress import Progress
from ..adapters import Adapter, adapter_for
from ..adapters._refused_estimators import refuse_steps
from ..privacy import Guarantee, PrivacyError, compose
from ..privacy._checks import cached_property
from ..privacy._spent import Component
from ..privacy._statement.content import Release
from ..scoring import PrivateScorer, get_private_scorer
from ..scoring._validation import Exposure, search_guarantee
from ._execution.job import Job, Outcome, Split
from ._execution.randomness import Randomness
from ._execution.runs import Run, run_all, run_best, train_in_the_open
from ._planning.families import Families, families_of, kinds_of
from ._planning.plan import Facts, Plan, assumptions_of_search, make_plan
from ._planning.space import AUTO, Space, own_space
from ._planning.space_guarantee import SpaceGuarantee
from ._records import Candidate, Candidates, Distributions, Parameters, Scorer, Seed

#: Attributes of every fit that ends with a model.
RESULTS = ("best_params_", "best_index_", "best_score_", "cv_results_", "scorer_", "n_splits_")


class Strategy(ABC):
    """One kind of search: its facts, its candidates and its runs.

    Built once for each ``fit``, from parameters alone. A strategy holds no data and no random
    draws, and never changes.

    Parameters
    ----------
    search : Parameters
        A search, whose parameters count.
    distributions : dict, list of dicts or "auto"
        The space of candidates, as the user gave it.
    parameter : str
        The name of that parameter.
    """

    #: Whether every point of the space is tried.
    whole_grid = False
    #: Names of released attributes beyond those of every search.
    shows: tuple[str, ...] = ()

    def __init__(
        self,
        search: Parameters,
        distributions: Distributions,
        parameter: str = "param_distributions",
    ) -> None:
        self.search = search
        if isinstance(distributions, str) and distributions == AUTO:
            distributions = own_space(search.estimator, self.adapter, grid=self.whole_grid)
        self.space = Space.of(distributions, parameter)
        self.space.check_names(search.estimator)
        self.space.check_values(search.estimator)

    @cached_property
    def adapter(self) -> Adapter:
        """Adapter of the estimator."""
        return adapter_for(self.search.estimator, self.search.guarantee)

    @cached_property
    def kinds(self) -> Sequence[Any]:
        """One candidate of each family."""
        return kinds_of(self.search.estimator, self.space)

    def check_kinds(self) -> None:
        """Raise for families with steps that are not private, before they are asked for more."""
        for kind in self.kinds if self.search.guarantee is None else ():
            refuse_steps(self.adapter, kind)

    def check_partitions(self, public: bool) -> None:
        """Raise for a search whose candidates cannot do with some rows of a table in partitions.

        Parameters
        ----------
        public : bool
            Whether candidates are scored on public data.
        """
        raise PrivacyError(
            f"Found partitions of Dask in {type(self.search).__name__}, each of whose candidates "
            "would train on all of them; DPSubsetSearchCV is needed, whose candidates get a "
            "subset, or records in one place: X.compute(). Nothing was spent."
        )

    # --- plan -------------------------------------------------------------------------------------

    @np.errstate(under="ignore")  # the user may have made it an error
    def plan(self, n_samples: int | None, public: bool, delta: float | None, **stated: Any) -> Plan:
        """Plan for a number of records, and for public or private validation data.

        Parameters
        ----------
        n_samples : int or None
        public : bool
        delta : float or None
            δ at which ε is stated.
        **stated
            ``guess`` and ``unit``, as in ``Facts``.
        """
        return make_plan(replace(self.facts(n_samples, public), delta=delta, **stated))

    @abstractmethod
    def facts(self, n_samples: int | None, public: bool) -> Facts:
        """Resolve all facts from the public number of records.

        Raise for parameters that contradict each other.
        """

    def families(self, n_samples: int | None) -> Families:
        """Families of candidates, by the estimators that they put in."""
        calibrated = self.search.epsilon is not None
        estimator = self.search.estimator
        return families_of(estimator, self.adapter, self.space, n_samples, calibrated=calibrated)

    def scorer(self, public: bool) -> Scorer:
        """Scorer of the candidates."""
        if public:
            return self.public_scorer()
        return get_private_scorer(self.search.scoring, self.search.estimator)

    def public_scorer(self) -> Scorer:
        """Scorer for public data: one of scikit-learn, or a private scorer's plain metric."""
        scorer: Scorer = self.search.scoring
        if not isinstance(scorer, PrivateScorer):
            scorer = check_scoring(self.search.estimator, scorer)
        return scorer

    def resolved(
        self, families: Families, public: bool, *, notes: tuple[str, ...] = (), **facts: Any
    ) -> Facts:
        """Facts that all searches have, and those of this kind."""
        search = self.search
        refits = getattr(search, "refit", None) is not False
        columns, target = _table_of(families.estimator)
        release = Release(
            made_by=type(search).__name__,
            model=" or ".join(dict.fromkeys(map(class_of, self.kinds))),
            attributes=(*RESULTS, *self.shows, *(("best_estimator_",) if refits else ())),
            tuned=True,
            seeded=search.random_state is not None,
            kept=search.checkpoint is not None,
            n_samples=families.n_samples,
            columns=columns,
            target=target,
        )
        return Facts(
            families=families,
            epsilon=search.epsilon,
            delta=search.delta,
            error_score=float(search.error_score),
            score_noise=getattr(search, "score_noise", "match"),
            notes=(*assumptions_of_search(search, self.kinds, public), *notes),
            release=release,
            **facts,
        )

    # --- run --------------------------------------------------------------------------------------

    @abstractmethod
    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Draw the candidates, each with its planned guarantee."""

    def split(
        self, plan: Plan, candidates: Candidates, n_samples: int, source: Randomness
    ) -> Split:
        """Draw the roles of the records; the last step before data is read."""
        plan.validation.check(n_samples)
        folds = plan.validation.folds(n_samples, source.random_bytes)
        return Split(folds=folds, n_scored=[len(test) for _, test in folds])

    @abstractmethod
    def run(
        self, job: Job, candidates: Candidates, source: Randomness, progress: Progress
    ) -> Outcome:
        """Run the candidates and build the outcome."""

    def dry(self, plan: Plan, job: Job, candidate: Candidate, seed: Seed = None) -> float:
        """Train, score and prepare for release one candidate on public records.

        Return its score.
        """
        return train_in_the_open(job, candidate, seed)[1]


def _table_of(estimator: Any) -> tuple[tuple[str, ...], str | None]:
    """Columns that are read, and the target, of the first part of an estimator with a schema."""
    for part in (estimator, *estimator.get_params(deep=True).values()):
        schema = getattr(part, "schema", None)
        if hasattr(part, "columns_read") and isinstance(schema, Mapping):
            target = getattr(part, "target", None)
            return tuple(name for name in schema if name != target), target
    return (), None


def class_of(model: Any) -> str:
    """Class of an estimator, for a pipeline with the classes of its steps.

    ``repr`` is never used.
    """
    name = type(model).__name__
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not all(
        isinstance(step, tuple) and len(step) == 2 for step in steps
    ):
        return name
    return f"{name}({', '.join(class_of(step) for _, step in steps)})"


def drawn_candidates(plan: Plan, number: int, source: Randomness) -> list[Candidate]:
    """Draw independent candidates with replacement, none of them outside the plan."""
    drawing = source.drawing()
    return checked_candidates(plan, [plan.space.draw(drawing) for _ in range(number)])


def checked_candidates(plan: Plan, numbered: Sequence[tuple[int, Candidate]]) -> list[Candidate]:
    """Candidates, without the numbers of their dictionaries in the space.

    One that the plan does not cover is an error; those of the same objects are checked once.
    """
    different = {
        (which, *map(id, candidate.values())): (which, candidate) for which, candidate in numbered
    }
    for which, candidate in different.values():
        plan.promises.check(which, candidate)
        if plan.final is not plan.promises:
            plan.final.check(which, plan.in_full(candidate))
    return [candidate for _, candidate in numbered]


# --- what it costs --------------------------------------------------------------------------------


def cost_of_runs(
    promises: SpaceGuarantee,
    scoring: Guarantee | None,
    final: SpaceGuarantee,
    *,
    name: str,
    theorem: Callable[[Guarantee], Guarantee],
    exposures: tuple[Exposure, ...],
    refit: bool,
) -> tuple[Component, ...]:
    """Releases of a search over runs: one of them, and a refit of the winner if asked for.

    Parameters
    ----------
    promises, scoring, final
        Guarantees of candidates, of one private score (None on public data), and of a training
        after the choice.
    name : str
        Name of the release.
    theorem : callable
        Guarantee of one run ↦ guarantee of that release.
    exposures : tuple of Exposure
        All the ways in which one run may use one record.
    refit : bool
    """
    released = search_guarantee(promises.trained, scoring, exposures, theorem)
    again = (Component(name="refit of the winner on all records", guarantee=final.worst),)
    return (Component(name=name, guarantee=released), *(again if refit else ()))


def all_of(one_run: Guarantee, number: int) -> Guarantee:
    """Guarantee of a fixed number of runs, all of them released."""
    return compose(*[one_run] * number)


# --- how it runs ----------------------------------------------------------------------------------


class BestOfStrategy(Strategy):
    """Run candidates, drawn or each of a grid, and release the best, or all."""

    #: Whether every run is released, so that their number is public.
    releases_all = False
    shows: tuple[str, ...] = ("best_score_std_",)

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        if plan.exhaustive:
            return checked_candidates(plan, plan.space.points())
        assert plan.distribution is not None
        return drawn_candidates(plan, plan.distribution.sample(source.bits), source)

    def run(
        self, job: Job, candidates: Candidates, source: Randomness, progress: Progress
    ) -> Outcome:
        # ``last`` is for the training after the runs
        *seeds, last = source.run_seeds(len(candidates) + 1)
        if self.releases_all:
            # every row and their number are public: tasks and progress may depend on them
            progress.public_runs("runs", len(candidates))
            runs = dict(enumerate(run_all(job, candidates, seeds, progress)))
            best = max(runs, key=lambda i: (*runs[i].order, -i))
        else:
            progress.secret_runs()
            best, run = run_best(job, candidates, seeds)
            runs = {best: run}
        if job.split.final is not None:
            progress.last_training()  # also after a failure: which training failed must stay secret
        return self.outcome(job, candidates, runs, best, last)

    @abstractmethod
    def outcome(
        self, job: Job, candidates: Candidates, runs: Mapping[int, Run], best: int, seed: Seed
    ) -> Outcome:
        """Build the outcome from the finished runs.

        It is that of the best run, or of all runs where all are released.
        """
