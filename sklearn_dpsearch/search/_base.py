"""The common ground of the private searches: plan, run, release."""

from __future__ import annotations

import numbers
import os
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions

from .._documentation import linked
from .._process.progress import speaking
from ..adapters._declared_guarantee import Declared
from ..errors import KnownArguments
from ..ledger import PrivacyLedger
from ..ledger._ledger_context import is_counted, ledger_here, model_in_words
from ..privacy import Guarantee, MissingDeltaError
from ..privacy._spent import PrivacySpent
from ..scoring import PrivateScorer
from ..scoring._validation import read_once
from . import _private_process as private_process
from ._checkpoint import start_of_search
from ._delegation import ReleasedModel
from ._execution.job import charge
from ._html_repr import ShownInNotebooks
from ._ledgers import ledger_of, with_earlier_fits
from ._planning.checks import BUDGET, DELTA, check_forms, check_supported
from ._planning.finite_epsilon import check_finite
from ._planning.plan import Plan
from ._private_fit import PrivateFit, private_fit
from ._records import Scorer
from ._rehearsal import DryRun, dry_run, rehearse
from ._strategy import Strategy

#: A fit that may start, checked and planned, and its ledger; no private record was used yet.
Planned: TypeAlias = tuple[PrivateFit, PrivacyLedger | None]

#: Fields that a fit may leave beside what it spent; a later one takes all of them away before it
#: uses a record.
RELEASED_ATTRIBUTES = (
    *("scorer_", "n_splits_", "best_params_", "best_score_", "best_score_std_", "best_index_"),
    *("best_estimator_", "final_params_", "cv_results_", "found_", "n_rounds_"),
)


@linked
@dataclass(eq=False, repr=False)
class BasePrivateSearch(
    KnownArguments, ShownInNotebooks, ReleasedModel, MetaEstimatorMixin, BaseEstimator,
    metaclass=ABCMeta,
):  # fmt: skip
    """A search that is private as a whole.

    A final class has the parameters, and says which strategy goes by them.

    ``fit`` reads as plan (``_prepared``: checks, ``_plan``), run (``PrivateFit``, in a process of
    its own) and release (``_release``, the only door through which anything derived from the data
    leaves).

    Parameters
    ----------
    estimator : estimator
        A private estimator: a diffprivlib model, a pipeline of private steps and steps that learn
        nothing, anything with a method ``privacy_guarantee(n_samples)``, or any estimator with a
        declared ``guarantee``.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's own noise
        is scaled until the total is ``epsilon``; without, the estimator runs as configured and the
        total is reported. ``delta`` is needed unless every release is purely private.
    scoring : str, callable, PrivateScorer or None, default=None
        On public validation data as in scikit-learn; on private records a scorer with a known
        sensitivity (``sklearn_dpsearch.scoring``). None: accuracy for classifiers.
    guarantee : Guarantee or callable, optional
        Guarantee of one fit, on the caller's word: a guarantee, or a callable (estimator,
        n_samples) to guarantee.
    n_jobs : int, optional
        As in scikit-learn.
    pre_dispatch : int or str, default="2*n_jobs"
        Without effect: a candidate holds no copy of the records before it runs. As scikit-learn's
        searches have it.
    error_score : float, default=nan
        Score of a candidate that fails; nan is the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data, and shows progress;
        where the number of runs is secret, progress shows only that the search runs. 2 also shows
        when runs end and the final training begins, which tells observers more about the number of
        runs (docs/learn/planning.md).
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.
    ledger : PrivacyLedger or None, default=None
        Ledger in which every fit is entered before it uses a record; a fit beyond the ledger's
        budget is refused (docs/learn/ledger.md). None: the ledger of the block ``with ledger:``
        around the fit, if any.
    checkpoint : str, path or None, default=None
        A folder from which the same search goes on after a crash, to the same release as without
        the crash (docs/learn/at_scale.md). The folder is as secret as the records. Repeating the
        same fit restores the release.
    rehearse : bool, default=True
        Before anything is spent, train and score one candidate of each family on records made up
        from public facts of X and y (columns, types, classes, bounds, schema); iterative training
        stops after a few steps. Errors there are raised in full. False: for estimators that need
        records which cannot be made up.

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of the whole fit; unpacks as (epsilon, delta).
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
        """State for pickles and copies, with the ledger of a block around.

        Worker processes do not see the block.
        """
        state: dict[str, Any] = super().__getstate__()
        if state.get("ledger") is None and (ledger := ledger_here()) is not None:
            return {**state, "ledger": ledger}
        return state

    @abstractmethod
    def _strategy(self) -> Strategy:
        """Make the strategy for the current parameters.

        Raise for parameters that contradict each other.
        """

    # --- plan -------------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        check_forms(self)
        super()._validate_params()
        check_supported(self)

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
            plan = strategy.plan(n_samples, public, self.delta)
        except MissingDeltaError:
            if delta is None or self.delta is not None:
                raise
            plan = strategy.plan(n_samples, public, delta)
        spent = plan.spent if delta is None else replace(plan.spent, delta=float(delta))
        check_finite(self, plan, spent, n_samples, public)
        return spent

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """The guarantee of one ``fit``.

        A private search is a private estimator, and can be nested in another.
        """
        self._validate_params()
        return self._strategy().plan(n_samples, False, self.delta).spent.guarantee

    def _unseeded_cost(self, n_samples: int | None) -> PrivacySpent:
        """Cost without a seed: an outer search plans with it, and takes the seed away."""
        unseeded: BasePrivateSearch = clone(self).set_params(random_state=None)
        return unseeded.privacy_cost(n_samples)

    def _prepared(
        self, X: Any, y: Any, X_public: Any, y_public: Any, params: Mapping[str, Any]
    ) -> Planned:
        """Check and plan."""
        self._validate_params()
        private_process.prepare(private_process.imported())
        ledger = ledger_of(self)
        search = copy(self)  # parameters set meanwhile do not change the plan
        search.estimator = clone(self.estimator)
        if hasattr(search, "cv"):
            search.cv = read_once(search.cv)
        work, records = private_fit(search, X, y, X_public, y_public, params)
        if self.rehearse and not is_counted():  # a search around this one has rehearsed it
            why_not = rehearse(work, records)
            if why_not is not None and self.verbose:
                print(f"[{type(self).__name__}] not rehearsed on made-up records: {why_not}")
        return work, ledger

    # --- run --------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, X_public: Any = None, y_public: Any = None, **params: Any
    ) -> Self:
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
                    note = "this fit has ended before: here is its release; nothing is spent"
                    print(f"[{type(self).__name__}] {note}")
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
        """Try one candidate in the open.

        It is trained, scored and made ready for release, as in ``fit``.

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
        >>> promise = PureDP(epsilon=1.0)
        >>> search = DPRandomSearchCV(LogisticRegression(), {"C": [1.0, -1.0]}, guarantee=promise)
        >>> search.set_params(param_distributions={"C": [1.0]}).dry_run().params
        {'C': 1.0}
        >>> search.set_params(param_distributions={"C": [-1.0]}).dry_run()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        sklearn.utils._param_validation.InvalidParameterError: The 'C' parameter of
        LogisticRegression must be ...
        """
        self._validate_params()
        unseeded = clone(self).set_params(random_state=None)
        return dry_run(unseeded, X_example, y_example, public, self.random_state)

    def _spend(
        self,
        plan: Plan,
        ledger: PrivacyLedger | None,
        entry: str | None = None,
        paid: PrivacySpent | None = None,
    ) -> None:
        """Spend the budget and remove earlier results, before the first private record is used.

        Errors undo nothing.

        The ledger is first. If it refuses, nothing is spent, and what it has once written is on the
        disk. A fit that has ended before was ``paid`` then; a ledger has one entry for it.
        """
        if ledger is not None:
            about = model_in_words(plan.spent.release)
            ledger._spend_fit(type(self).__name__, plan.spent, entry, about=about)
        for name in RELEASED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self.privacy_spent_ = with_earlier_fits(self, plan.spent, ledger) if paid is None else paid

    # --- release ----------------------------------------------------------------------------------

    def _release(self, plan: Plan, fields: Mapping[str, Any]) -> None:
        """Set what a private process has released, and charge the released model.

        This is the only door through which anything derived from the data leaves. The released
        model reports the cost of the whole search.
        """
        charge(fields.get("best_estimator_"), plan.spent)
        released = {name: fields[name] for name in RELEASED_ATTRIBUTES if name in fields}
        self.__dict__.update({"scorer_": plan.scorer, **released})
