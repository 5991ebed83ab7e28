"""The common ground of the private searches: plan, run, release."""

from __future__ import annotations

import numbers
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..adapters import adapter_for, training_run
from ..privacy import CountLaw, Guarantee, MissingDeltaError, PrivacyError
from ..privacy.spent import PrivacySpent
from ..scoring import PrivateScorer, get_private_scorer
from ..scoring.validation import Validation
from ._arguments import check_arguments
from ._delegation import ReleasedModel
from ._dry_run import DryRun, dry_run, in_the_open
from ._first_look import check_fit_params, check_kind, check_public, check_scorer
from ._outcome import Outcome, charge, results_of
from ._parameters import with_parameters
from ._plan import Plan, Request, make_plan
from ._randomness import Randomness
from ._runs import Job, Parts, n_records
from ._space import Space, refuse_callbacks
from ._tasks import guarded

NOTHING_FOUND = (
    "No candidate could be trained and scored, so there is no model; the privacy cost in privacy_spent_ is spent all "
    "the same. Which data made the candidates fail is not told, because that would reveal it. Usual reasons: a "
    "parameter value that the estimator does not accept; NaN or infinite values in X or y; labels in y or categories "
    "in X that were not declared; bounds for another number of features; y with one class, in all records or among "
    "those that train; too few records (one sample); a score that is not a finite number. search.dry_run(X_example, "
    "y_example) tries a candidate on public or made-up records and shows the error; it spends nothing."
)


VALID_RECORDS = (
    "Every possible record is valid input for the estimator (finite numbers, known labels): one that is not could "
    "make all candidates fail, and that shows."
)


#: What a fit may leave on a search beside what it spent; a later one takes all of it away before it uses a record.
RELEASED = (
    "scorer_",
    "n_splits_",
    "best_params_",
    "best_score_",
    "best_index_",
    "best_estimator_",
    "final_params_",
    "cv_results_",
    "found_",
    "n_rounds_",
)


class NoModelError(PrivacyError):
    """Every candidate of a search failed."""


class BasePrivateSearch(ReleasedModel, MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """A search that is private as a whole. Subclasses say how many runs there are and what they cost."""

    secure_without_seed = True  # nested in another search: left unseeded, it draws on the operating system

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit"])],
        "epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "delta": [None, Interval(numbers.Real, 0, 1, closed="left")],
        "scoring": [str, callable, PrivateScorer, None],
        "score_noise": [StrOptions({"match"}), Guarantee],
        "guarantee": [None, Guarantee, callable],
        "n_jobs": [None, numbers.Integral],
        "pre_dispatch": [numbers.Integral, str],
        "error_score": [numbers.Real, StrOptions({"raise"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    # --- to be said by each search --------------------------------------------------------------------------------

    @abstractmethod
    def _law(self) -> CountLaw | None:
        """Law of the number of runs, where that is random and secret."""

    @abstractmethod
    def _distributions(self) -> Any:
        """The space as the user gave it."""

    @abstractmethod
    def _validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        """How records are chosen to train and to validate; raises for parameters of the search's own that are wrong."""

    @abstractmethod
    def _cost_parts(self, promises: Any, scoring: Any, validation: Any, law: Any) -> Any:
        """Components of the total, and the total."""

    @abstractmethod
    def _own_notes(self, relation: str) -> tuple[str, ...]:
        """What the total rests on beyond what every search's does, as plain sentences."""

    @abstractmethod
    def _parts(self, plan: Plan, candidates: Sequence[Mapping[str, Any]], n_samples: int, source: Randomness) -> Parts:
        """Which records do what; the last step before data is read."""

    @abstractmethod
    def _candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        """The candidates, none of them outside the plan."""

    @abstractmethod
    def _search(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        """Run what has to be run, and say what is released."""

    # --- plan -----------------------------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        check_arguments(self)
        super()._validate_params()

    def privacy_cost(
        self, n_samples: int | None = None, delta: float | None = None, *, public: bool = False
    ) -> PrivacySpent:
        """What ``fit`` will cost, before any data is touched.

        Parameters
        ----------
        n_samples : int, optional
            Number of records, where the guarantee or the splitter depends on it.
        delta : float, optional
            δ at which to state ε, instead of the search's own ``delta``.
        public : bool, default=False
            Whether ``fit`` will be given ``X_public`` for scoring.

        Returns
        -------
        PrivacySpent
        """
        self._validate_params()
        try:
            planned = self._plan(n_samples, public, self.delta).spent
        except MissingDeltaError:
            if delta is None or self.delta is not None:
                raise
            planned = self._plan(n_samples, public, delta).spent
        return planned if delta is None else replace(planned, delta=float(delta))

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """The guarantee of one ``fit``: a private search is a private estimator, and can be nested in another."""
        self._validate_params()
        return self._plan(n_samples, False, self.delta).spent.guarantee

    def _unseeded_cost(self, n_samples: int | None) -> PrivacySpent:
        """What a search around this one plans with; it takes the seed away."""
        return clone(self).set_params(random_state=None).privacy_cost(n_samples)

    def _scorer(self, public: bool) -> Any:
        """What scores candidates."""
        return self._public_scorer() if public else get_private_scorer(self.scoring, self.estimator)

    @np.errstate(under="ignore")  # the user may have made it an error
    def _plan(self, n_samples: int | None, public: bool, delta: float | None) -> Plan:
        space = Space.of(self._distributions())
        space.check_names(self.estimator)
        space.check_values(self.estimator)
        self._check_supported()
        relation = self._relation(n_samples, frozenset(space.names))
        scorer = self._scorer(public)
        return make_plan(
            Request(
                estimator=self.estimator,
                declared=self.guarantee,
                space=space,
                law=self._law(),
                validation=self._validation(relation, n_samples, public),
                scorer=scorer,
                score_noise=getattr(self, "score_noise", "match"),
                epsilon=self.epsilon,
                delta=delta,
                n_samples=n_samples,
                costs=self._cost_parts,
                notes=(*self._notes(public), *self._own_notes(relation)),
            )
        )

    def _relation(self, n_samples: int | None, varying: frozenset[str]) -> str:
        """Neighbouring relation of the training; an estimator that is to be calibrated need not state its noise."""
        estimator = self.estimator
        if self.epsilon is not None:
            adapter = adapter_for(estimator, self.guarantee)
            estimator = with_parameters(clone(estimator), adapter.scaled(estimator, 1.0, varying))
        return training_run(estimator, n_samples, self.guarantee).guarantee.neighboring

    def _public_scorer(self) -> Any:
        """A scorer for public data: any of scikit-learn's, or a private one used plainly."""
        return self.scoring if isinstance(self.scoring, PrivateScorer) else check_scoring(self.estimator, self.scoring)

    def _check_supported(self) -> None:
        if isinstance(self.error_score, str):
            raise PrivacyError(
                "Found error_score='raise': an error raised by one candidate would tell what its data made it do. "
                "Use error_score=np.nan (a failing candidate is the worst), and look for errors on public or made-up "
                "data."
            )
        if self.n_jobs == 0:
            raise ValueError("Found n_jobs=0; None, a number of workers, or -1 for one on each processor is needed.")
        refuse_callbacks(self.estimator)

    def _notes(self, public: bool) -> tuple[str, ...]:
        notes = [VALID_RECORDS]
        if public:
            notes.append("The validation data X_public, y_public is public and contains none of the private records.")
        if self.random_state is not None:
            notes.append(
                f"A known seed (random_state={self.random_state!r}) voids the guarantee towards everyone who knows "
                "it: it is for tests only."
            )
        return tuple(notes)

    # --- run ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, X_public: Any = None, y_public: Any = None, **params: Any) -> Any:
        """Search, and release the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records.
        y : array-like of shape (n_samples,), optional
            Their targets.
        X_public, y_public : array-like, optional
            Public validation data, never mixed with the private records: scoring is then free.
        **params : dict
            Passed to the estimator's ``fit``. One value per record (``sample_weight``) needs a declared ``guarantee``.

        Returns
        -------
        self : object
            Fitted. Each call spends ``privacy_spent_`` anew.

        Raises
        ------
        PrivacyError
            If the guarantee cannot be stated; before any record is used.
        NoModelError
            If every candidate failed.

        Notes
        -----
        From the first use of a private record on, ``privacy_spent_`` is set and earlier results are gone, whatever
        happens then. While candidates run in this process (``n_jobs=None`` or the threading backend), the threads in
        which they run write, warn and log nothing; other threads are heard as ever. Descriptors 1 and 2 belong to the
        process: what compiled code, child processes and streams kept from before write to them in *other* threads
        meanwhile is lost. The global generators of NumPy, Python and PyTorch are reseeded and put back at the end.
        Worker processes (``n_jobs=2``) leave this process as it is (docs/reference/errors.md).
        """
        X, y = self._first_look(X, y, X_public, y_public, params)
        plan = self._plan(n_records(X), X_public is not None, self.delta)
        self._say(plan)
        public = None if X_public is None else (X_public, y_public)
        self._release(plan, *guarded(lambda: self._found(plan, self._fit_params(params), public, X, y)))
        return self

    def dry_run(self, X_example: Any = None, y_example: Any = None, *, public: bool = False) -> DryRun:
        """Try one candidate in the open: it is trained, scored and made ready for release, as in ``fit``.

        Errors are shown in full, which ``fit`` must not do. Nothing is spent, and nothing is kept.

        Parameters
        ----------
        X_example, y_example : array-like, optional
            Public or made-up records, of the kind of the private ones: **never private ones**. Without them records
            are made up from declared bounds, norms, classes and categories.
        public : bool, default=False
            Whether ``fit`` will be given ``X_public`` for scoring.

        Returns
        -------
        DryRun
            The candidate (``params``) and its ``score``.

        Raises
        ------
        Exception
            Whatever goes wrong.

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
        sklearn.utils._param_validation.InvalidParameterError: The 'C' parameter of LogisticRegression must be ...
        """
        return dry_run(self, X_example, y_example, public)

    def _dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        """Take one candidate the whole way on public records; its score."""
        return in_the_open(job, candidate, X, y)[1]

    def _found(
        self, plan: Plan, fit_params: Mapping[str, Any], public: tuple[Any, Any] | None, X: Any, y: Any
    ) -> tuple[int, Outcome]:
        """Number of folds, and what came out. Everything else that was drawn or run is gone when this returns."""
        source = Randomness(self.random_state)
        candidates = self._candidates(plan, source)
        parts = self._parts(plan, candidates, n_records(X), source)
        job = self._job(plan, parts, fit_params, public)
        self._spend(plan)
        outcome = self._search(job, candidates, source, X, y)
        return len(parts.folds), outcome if outcome.found else replace(outcome, rows=[], attributes={})

    def _first_look(
        self, X: Any, y: Any, X_public: Any, y_public: Any, params: Mapping[str, Any], public: bool = False
    ) -> tuple[Any, Any]:
        """Refuse what cannot succeed, from parameters and the kind of the data alone: nothing is spent yet."""
        self._validate_params()
        fit_params = self._fit_params(params)
        check_kind(self, X, y)
        check_public(X_public, y_public, X, y)
        X, y = indexable(X, y)
        check_fit_params(self.estimator, fit_params, n_records(X))
        check_scorer(self._scorer(public or X_public is not None), self.estimator, y)
        return X, y

    def _spend(self, plan: Plan) -> None:
        """From here on private records are used: whatever happens, this is spent, and earlier results are gone."""
        for name in RELEASED:
            self.__dict__.pop(name, None)
        self.privacy_spent_ = plan.spent

    def _job(self, plan: Plan, parts: Parts, fit_params: Mapping[str, Any], public: tuple[Any, Any] | None) -> Job:
        return Job(
            estimator=clone(self.estimator),
            adapter=plan.adapter,
            settings=plan.settings,
            parts=parts,
            scorer=plan.scorer,
            noise=plan.noise,
            fit_params=fit_params,
            public=public,
            neighboring=plan.spent.neighboring,
            error_score=float(self.error_score),
        )

    def _drawn(self, plan: Plan, number: int, source: Randomness) -> list[dict[str, Any]]:
        """So many independent candidates, drawn with replacement, none of them outside the plan."""
        drawing = source.drawing()
        drawn = [plan.space.draw(drawing) for _ in range(number)]
        for which, candidate in drawn:
            plan.promises.check(which, candidate)
        return [candidate for _, candidate in drawn]

    def _validated(self, plan: Plan, n_samples: int, source: Randomness) -> Parts:
        """Folds as the plan's validation draws them; how many records there are is told only where that is public."""
        private = plan.spent.neighboring == "add_remove"
        if not private:
            plan.validation.check(n_samples)
        folds = plan.validation.folds(n_samples, source.random_bytes)
        return Parts(folds=folds, n_scored=[None if private else len(test) for _, test in folds])

    def _say(self, plan: Plan) -> None:
        """All that ``verbose`` ever prints is known without the data."""
        if self.verbose:
            runs = "" if plan.law is None else f"number of runs: {plan.law!r}; "
            print(f"[{type(self).__name__}] {runs}the whole fit costs {plan.spent!r}")

    def _fit_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters for the estimator's ``fit``; per-record ones only on the caller's word."""
        if get_config().get("enable_metadata_routing"):
            params = process_routing(self, "fit", **params).estimator.fit
        per_record = sorted(
            name for name, value in params.items() if hasattr(value, "__len__") and not isinstance(value, (str, dict))
        )
        if per_record and self.guarantee is None:
            raise PrivacyError(
                f"Found {', '.join(per_record)} with one value per record: weights and the like change how much one "
                "record matters, and with it the guarantee. Leave them out, or declare guarantee= for a fit that "
                "uses them (private scores never do)."
            )
        return dict(params)

    # --- release --------------------------------------------------------------------------------------------------

    def _release(self, plan: Plan, n_splits: int, outcome: Outcome) -> None:
        """The only door through which anything derived from the data leaves."""
        if not outcome.found and not outcome.may_stop:
            raise NoModelError(NOTHING_FOUND)
        self.scorer_ = plan.scorer
        self.n_splits_ = n_splits
        if outcome.may_stop:
            self.found_ = outcome.found
        if not outcome.found:
            return
        scores = np.array([score for _, score in outcome.rows])
        self.best_index_ = outcome.best
        self.best_params_ = dict(outcome.rows[outcome.best][0])
        self.best_score_ = float(scores[outcome.best])
        self.cv_results_ = results_of([dict(candidate) for candidate, _ in outcome.rows], scores)
        self.__dict__.update(outcome.attributes)
        charge(outcome.attributes.get("best_estimator_"), plan.spent)

    # --- towards scikit-learn ---------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.transformer_tags = deepcopy(inner.transformer_tags)
        tags.input_tags = deepcopy(inner.input_tags)
        tags.target_tags = deepcopy(inner.target_tags)
        tags.non_deterministic = True
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of ``fit``'s parameters: to the estimator's ``fit``, never to a private scorer."""
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
