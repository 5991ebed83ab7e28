"""The common ground of the private searches: plan, run, release."""

from __future__ import annotations

import numbers
import os
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import process_routing

from .._process import public_records
from .._process.progress import planning, speaking
from .._site import linked
from ..adapters.declared_guarantee import Declared
from ..adapters.refused_estimators import check_all
from ..data.columns import is_of_dask
from ..data.persons import number_of_persons, persons_in
from ..data.records import read_parameter
from ..errors import check_arguments_of
from ..ledger import PrivacyLedger
from ..ledger.fits import model_in_words
from ..ledger.ledger_context import counted, is_counted
from ..privacy import Guarantee, MissingDeltaError, PrivacyError
from ..privacy.spent import PrivacySpent
from ..privacy.statement.content import short_up, up
from ..scoring import PrivateScorer
from ..scoring.validation import read_once
from ..search import private_process
from ._checkpoint import start_of_search
from ._delegation import ReleasedModel
from ._html_repr import ShownInNotebooks
from ._ledgers import ledger_of, state_with_ledger, with_earlier_fits
from ._partitions import TRUSTED, look_at_partitions
from ._persons import name_of_groups
from ._private_fit import PrivateFit
from ._records import columns_read
from ._rehearsal import DryRun, dry_run, job_in_the_open, public_examples, rehearse
from ._strategy import Strategy
from ._types import Scorer
from .execution.clusters import workplace_for
from .execution.job import charge
from .planning.checks import (
    BUDGET,
    DELTA,
    check_estimator,
    check_forms,
    check_mean,
    check_public_shape,
    first_look,
    is_per_record,
    read_public,
    refuse_traces,
)
from .planning.finite_epsilon import check_finite
from .planning.plan import Plan, make_plan

Search = TypeVar("Search", bound="BasePrivateSearch")
#: A fit that may start, checked and planned, and its ledger; no private record was used yet.
Planned: TypeAlias = tuple[PrivateFit, PrivacyLedger | None]

#: Most lines of a search's text.
MOST_LINES = 18
#: Fields that a fit may leave beside what it spent; a later one takes all of them away before it
#: uses a record.
RELEASED = (
    "scorer_",
    "n_splits_",
    "best_params_",
    "best_score_",
    "best_score_std_",
    "best_index_",
    "best_estimator_",
    "final_params_",
    "cv_results_",
    "found_",
    "n_rounds_",
)


@linked
@dataclass(eq=False, repr=False)
class BasePrivateSearch(
    ShownInNotebooks, ReleasedModel, MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta
):
    """A search that is private as a whole: a final class has the parameters, and says which
    strategy goes by them.

    ``fit`` reads as plan (``_prepared``: checks, ``_plan``), run (``PrivateFit``, in a process of
    its own) and release (``_release``, the only door through which anything derived from the data
    leaves).
    """

    estimator: Any
    _: KW_ONLY
    epsilon: float | None = None
    delta: float | None = None
    scoring: str | Scorer | None = None
    guarantee: Declared | None = None
    n_jobs: int | None = None
    pre_dispatch: int | str = "2*n_jobs"
    error_score: float | str = np.nan
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None
    ledger: PrivacyLedger | None = None
    checkpoint: str | os.PathLike[str] | None = None
    rehearse: bool = True

    # nested in another search: left unseeded, it draws on the operating system
    secure_without_seed = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "epsilon": BUDGET,
        "delta": DELTA,
        "scoring": [str, callable, PrivateScorer, None],
        "score_noise": [StrOptions({"match"}), Guarantee],
        "guarantee": [None, Guarantee, callable],
        "n_jobs": [None, numbers.Integral],
        "pre_dispatch": [numbers.Integral, str],
        "error_score": [numbers.Real, StrOptions({"raise"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "checkpoint": [None, str, os.PathLike],
        "ledger": [None, PrivacyLedger],
        "rehearse": ["boolean"],
    }

    def __getstate__(self) -> dict[str, Any]:
        """State for pickles and copies, with the ledger of a block around."""
        return state_with_ledger(super().__getstate__())

    @abstractmethod
    def _strategy(self) -> Strategy:
        """Make the strategy for the current parameters; raise for parameters that contradict each
        other."""

    # --- plan -------------------------------------------------------------------------------------

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """A search, unless it is given arguments that it does not have."""
        check_arguments_of(cls, named)
        search: Self = super().__new__(cls)
        return search

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Parameters as scikit-learn shows them; a long schema is cut in the middle."""
        lines = super().__repr__(N_CHAR_MAX).splitlines()
        half = MOST_LINES // 2
        return "\n".join(
            lines if len(lines) <= MOST_LINES else [*lines[:half], "    ...", *lines[-half + 1 :]]
        )

    def _validate_params(self) -> None:
        check_estimator(self.estimator)
        check_forms(self)
        super()._validate_params()
        check_mean(getattr(self, "n_iter", None))
        self._check_supported()

    def privacy_cost(
        self, n_samples: int | None = None, delta: float | None = None, *, public: bool = False
    ) -> PrivacySpent:
        """Compute the cost of ``fit`` before any data is touched.

        Parameters
        ----------
        n_samples : int, optional
            Number of records, or of persons for a fit with ``groups``, where the guarantee or the
            splitter depends on it. Without it a hold-out of unknown share is stated by a bound.
        delta : float, optional
            δ at which to state ε, instead of the search's own ``delta``.
        public : bool, default=False
            Whether ``fit`` will be given ``X_public`` for scoring.

        Returns
        -------
        PrivacySpent

        Raises
        ------
        PrivacyError
            If the guarantee cannot be stated, or its ε is infinite.
        """
        self._validate_params()
        strategy = self._strategy()
        try:
            plan = self._plan(strategy, n_samples, public, self.delta)
        except MissingDeltaError:
            if delta is None or self.delta is not None:
                raise
            plan = self._plan(strategy, n_samples, public, delta)
        spent = plan.spent if delta is None else replace(plan.spent, delta=float(delta))
        self._check_finite(plan, spent, n_samples, public)
        return spent

    def _check_finite(
        self, plan: Plan, spent: PrivacySpent, n_samples: int | None, public: bool
    ) -> None:
        """Raise for an infinite ε, with the number of runs and the δ that would give a finite
        one."""

        def with_n_iter(mean: Any) -> Guarantee:
            other: Any = copy(self)
            other.n_iter = mean
            return other._plan(other._strategy(), n_samples, public, spent.delta).spent.guarantee  # type: ignore[no-any-return]

        check_finite(plan, spent, n_samples, with_n_iter if hasattr(self, "n_iter") else None)

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """The guarantee of one ``fit``: a private search is a private estimator, and can be nested
        in another."""
        self._validate_params()
        return self._plan(self._strategy(), n_samples, False, self.delta).spent.guarantee

    def _unseeded_cost(self, n_samples: int | None) -> PrivacySpent:
        """Cost without a seed: an outer search plans with it, and takes the seed away."""
        unseeded: BasePrivateSearch = clone(self).set_params(random_state=None)
        return unseeded.privacy_cost(n_samples)

    @np.errstate(under="ignore")  # the user may have made it an error
    def _plan(
        self,
        strategy: Strategy,
        n_samples: int | None,
        public: bool,
        delta: float | None,
        *,
        guess: float | None = None,
    ) -> Plan:
        return make_plan(replace(strategy.facts(n_samples, public), delta=delta, guess=guess))

    def _check_supported(self) -> None:
        if isinstance(self.error_score, str):
            raise PrivacyError(
                "Found error_score='raise': an error raised by one candidate could reveal its "
                "data. Use error_score=np.nan (a failing candidate is the worst), and look for "
                "errors on public or made-up data: dry_run() shows them in full."
            )
        if self.error_score == np.inf:
            raise ValueError(
                "Found error_score=inf, which would make a failing candidate the best. Use "
                "error_score=np.nan (a failing candidate is the worst, as with -inf), or a finite "
                "number."
            )
        if self.n_jobs == 0:
            raise ValueError(
                "Found n_jobs=0; None, a number of workers, or -1 for one on each processor is "
                "needed."
            )
        refuse_traces(self.estimator)

    def _prepared(
        self, X: Any, y: Any, X_public: Any, y_public: Any, params: Mapping[str, Any]
    ) -> Planned:
        """Check and plan."""
        self._validate_params()
        private_process.prepare(private_process.imported())
        ledger = ledger_of(self)
        search = self._copy_to_run()
        strategy = search._strategy()
        groups = params.get("groups")
        fit_params = self._fit_params(
            {name: value for name, value in params.items() if name != "groups"}
        )
        name = "" if groups is None else name_of_groups(strategy)
        public = None
        if X_public is not None or y_public is not None:
            public = read_public(X_public, y_public, X, y, strategy.kinds)
        _, scorer = check_all(
            (strategy.check_kinds, partial(strategy.scorer, X_public is not None))
        )
        workplace = workplace_for(self.n_jobs)
        if is_of_dask(X):
            records = look_at_partitions(
                strategy, scorer, X, y, params, public=X_public is not None
            )
        else:
            records = first_look(search, strategy.kinds, scorer, X, y, fit_params)
        if records.n == 0:
            raise ValueError(
                "Found X with 0 records (0 samples), of which nothing can be learned. Nothing was "
                "spent."
            )
        if public is not None:
            check_public_shape(public, records)
        n, unit, persons = records.n, "record", None
        if groups is not None:
            persons = fit_params[name] = persons_in(groups, n)
            n, unit = number_of_persons(persons), "person"
        trusted = (*workplace.assumptions, *(TRUSTED,) * is_of_dask(X))
        plan = search._stated_plan(strategy, n, X_public is not None, unit, trusted)
        search.ledger = search.checkpoint = None  # the user's process keeps both
        work = PrivateFit(
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
        if self.rehearse and not is_counted():  # a search around this one has rehearsed it
            why_not = rehearse(work, records)
            if why_not is not None and self.verbose:
                print(f"[{type(self).__name__}] not rehearsed on made-up records: {why_not}")
        return work, ledger

    def _copy_to_run(self) -> Self:
        """Copy of the search, which runs: parameters set meanwhile do not change the plan."""
        search = copy(self)
        search.estimator = clone(self.estimator)
        if hasattr(search, "cv"):
            search.cv = read_once(search.cv)
        return search

    def _stated_plan(
        self, strategy: Strategy, n_samples: int, public: bool, unit: str, trusted: tuple[str, ...]
    ) -> Plan:
        """Plan of a fit, whose cost is finite and says what is trusted; printed, where the user
        asks for it."""
        with planning(type(self).__name__, self.verbose):
            plan = self._plan(strategy, n_samples, public, self.delta)
            self._check_finite(plan, plan.spent, n_samples, public)
        plan = replace(plan, spent=replace(plan.spent, unit=unit)).assuming(*trusted)
        spent = plan.spent
        if self.verbose:
            cost = (
                f"epsilon = {up(spent.epsilon)} at delta = {short_up(spent.delta)} for any one "
                f"{unit}"
            )
            summary = f"[{type(self).__name__}] {plan.work}the whole fit costs {cost}"
            print("\n  ".join([summary, *columns_read(self.estimator)]))
        return plan

    def _fit_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters for the estimator's ``fit``; per-record ones only on the caller's word."""
        if get_config().get("enable_metadata_routing"):
            params = process_routing(self, "fit", **params).estimator.fit
        per_record = sorted(name for name, value in params.items() if is_per_record(name, value))
        if per_record and self.guarantee is None:
            raise PrivacyError(
                f"Found {', '.join(per_record)} with one value per record: weights and the like "
                "change how much one record matters, and with it the guarantee. Leave them out, or "
                "declare guarantee= for a fit that uses them (private scores never do). Weights of "
                "whole classes that are public constants are fine: our nets take "
                "class_weight={label: weight}."
            )
        return {name: read_parameter(name, value) for name, value in params.items()}

    # --- run --------------------------------------------------------------------------------------

    def fit(
        self: Search,
        X: Any,
        y: Any = None,
        *,
        X_public: Any = None,
        y_public: Any = None,
        **params: Any,
    ) -> Search:
        """Search, and release the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records; for a subset search over boosting also a DataFrame of Dask, whose
            partitions stay where they are but for the subset and the records that validate
            (docs/learn/partitions.md).
        y : array-like of shape (n_samples,), optional
            Their targets; of a DataFrame of Dask the name of a column.
        X_public, y_public : array-like, optional
            Public validation data, never mixed with the private records: scoring is then free.
        **params : dict
            Passed to the estimator's ``fit``. One value per record (``sample_weight``) needs a
            declared ``guarantee``. ``groups``, the person of each record, states everything for
            persons instead of records: each has one coin, and one vote in a score. Boosting and
            nets for tables take them.

        Returns
        -------
        self : object
            Fitted. Each call spends ``privacy_spent_`` anew: ``cross_val_score`` with five folds
            spends five times (docs/learn/cross_validation.md).

        Raises
        ------
        PrivacyError
            If the guarantee cannot be stated; before any record is used.
        BudgetExceededError
            If it would cost more than a ledger's budget allows; before any record is used.
        NoModelError
            If every candidate failed.

        Notes
        -----
        From the first use of a private record on, ``privacy_spent_`` is set and earlier results are
        gone, also if an error follows. Private work is done in a process of its own
        (docs/reference/process.md): candidates neither write, warn nor log here, and leave the
        state of this process as it is. Ctrl-C ends that process.
        """
        work, ledger = self._prepared(X, y, X_public, y_public, params)
        tell = speaking(type(self).__name__, self.verbose > 0)
        with start_of_search(self.checkpoint, self.random_state) as start:
            earlier = start.released(work)
            if earlier is not None:
                self._spend(work.plan, ledger, start.entry, paid=earlier.pop("privacy_spent_"))
                self._release(replace(work.plan, spent=self.privacy_spent_), earlier)
                if self.verbose:
                    print(
                        f"[{type(self).__name__}] this fit has ended before: here is its release; "
                        f"nothing is spent"
                    )
                return self
            work = replace(work, entropy=start.entropy, finished=start.finished)
            work.try_to_draw()
            with private_process.PrivateProcess(work, work.shared, work.writes) as process:
                plan = work.plan.assuming(*process.start())
                start.begin(lambda: self._spend(plan, ledger, start.entry))
                release = process(tell=tell)
            start.keep({**release, "privacy_spent_": self.privacy_spent_}, process.code)
            self._release(plan, release)
        return self

    def dry_run(
        self, X_example: Any = None, y_example: Any = None, *, public: bool = False
    ) -> DryRun:
        """Try one candidate in the open: it is trained, scored and made ready for release, as in
        ``fit``.

        Errors are shown in full, which ``fit`` must not do. Nothing is spent, and nothing is kept.
        Candidate and noise follow ``random_state``, if it is given.

        Parameters
        ----------
        X_example, y_example : array-like, optional
            Public or made-up records, of the kind of the private ones: **never private ones**.
            Without them records are made up from declared bounds, classes, categories and schemas.
        public : bool, default=False
            Whether ``fit`` will be given ``X_public`` for scoring.

        Returns
        -------
        DryRun
            The candidate (``params``) and its ``score``.

        Raises
        ------
        Exception
            Any error of the estimator, the scorer or the search.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn_dpsearch import DPRandomSearchCV
        >>> from sklearn_dpsearch.privacy import PureDP
        >>> search = DPRandomSearchCV(LogisticRegression(), {"C": [1.0, -1.0]}, guarantee=PureDP(epsilon=1.0))
        >>> search.set_params(param_distributions={"C": [1.0]}).dry_run().params
        {'C': 1.0}
        >>> search.set_params(param_distributions={"C": [-1.0]}).dry_run()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        sklearn.utils._param_validation.InvalidParameterError: The 'C' parameter of
        LogisticRegression must be ...
        """
        self._validate_params()
        search: BasePrivateSearch = clone(self).set_params(random_state=None)
        strategy = search._strategy()
        X, y = public_examples(strategy, X_example, y_example, public)
        records = first_look(search, strategy.kinds, strategy.scorer(public), X, y, {})
        # the plan for any number of records; for these only where it depends on that: ``fit`` will
        # have more
        try:
            plan = search._plan(strategy, None, public, search.delta)
        except (ValueError, TypeError):
            plan = search._plan(strategy, records.n, public, search.delta)
        job = job_in_the_open(
            plan, records.X, records.y, public=(records.X, records.y) if public else None
        )
        with counted(), public_records():  # nothing is spent, nor by a search inside of this one
            return dry_run(strategy, plan, job, self.random_state)

    def _spend(
        self,
        plan: Plan,
        ledger: PrivacyLedger | None,
        entry: str | None = None,
        paid: PrivacySpent | None = None,
    ) -> None:
        """Spend the budget and remove earlier results, before the first private record is used;
        errors undo nothing.

        The ledger is first. If it refuses, nothing is spent, and what it has once written is on the
        disk. A fit that has ended before was ``paid`` then; a ledger has one entry for it.
        """
        if ledger is not None:
            ledger._spend_fit(
                type(self).__name__, plan.spent, entry, about=model_in_words(plan.spent.release)
            )
        self._forget_release()
        self.privacy_spent_ = with_earlier_fits(self, plan.spent, ledger) if paid is None else paid

    def _forget_release(self) -> None:
        for name in RELEASED:
            self.__dict__.pop(name, None)

    # --- release ----------------------------------------------------------------------------------

    def _release(self, plan: Plan, fields: Mapping[str, Any]) -> None:
        """Set what a private process has released: the only door through which anything derived
        from the data leaves.

        The released model reports the cost of the whole search.
        """
        charge(fields.get("best_estimator_"), plan.spent)
        released = {name: fields[name] for name in RELEASED if name in fields}
        self.__dict__.update({"scorer_": plan.scorer, **released})
