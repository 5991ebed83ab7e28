"""Tune on a random subset, then train once on more records."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..adapters import Adapter, adapter_for
from ..privacy import CountLaw, Guarantee, PrivacyError, subset_then_train
from ..privacy.count_laws.laws import as_law
from ..privacy.errors import did_you_mean
from ..privacy.spent import Component
from ..scoring import best_of_runs
from ..scoring.validation import Validation, validation_of
from ._best_of import BestOfRuns
from ._dry_run import in_the_open
from ._extrapolation import Sizes, carried_over, check_rules
from ._outcome import Outcome
from ._parameters import with_parameters
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, Run, fitted, fresh, ready, releasable, train_last
from ._space import Space
from ._subset import InSubset, check_handful, warm_start_name

ON = {"rest": "the rest", "all": "all records"}

PARTS_CAN_TRAIN = (
    "Whether a model can be trained on a part of the records (none is in it, or a class is missing) is as private as "
    "the model: parts are large, and classes known in advance or present in every part."
)
COUNTS = (
    "{} may use how many records it is given, which tells who is in the subset: the coins count as known, and nothing "
    "is amplified."
)


@dataclass(frozen=True)
class _Final:
    """The training after the runs: everything but the winner."""

    records: np.ndarray
    candidates: Sequence[dict[str, Any]]
    expected: float | None


class DPSubsetSearchCV(BestOfRuns):
    """Search on a random subset that is differentially private as a whole: tune there, then train once on more records.

    Every record joins the subset with probability ``subset_fraction``, by a secret coin of its own. On the subset the
    best of a random number of candidates is found, as by ``DPRandomSearchCV``; its parameters are extrapolated to the
    larger number of records, and one final model is trained on the rest or on all. Most candidates never see a given
    record, so the total is little above that of one training run, and so is the work.

    Parameters
    ----------
    estimator : estimator
        A private estimator, as for ``DPRandomSearchCV``.
    param_distributions : dict or list of dicts
        Parameter name to a list of values (drawn uniformly) or a distribution with a method ``rvs``. From a list of
        dicts one is drawn uniformly first.
    n_iter : float or CountLaw, default=10
        Law of the number of candidates K, or its mean: a number stands for ``Geometric(mean)``, given K >= 1.
    subset_fraction : float, default=0.1
        Probability q with which a record joins the subset, 0 < q < 1.
    train_on : {"rest", "all"}, default="rest"
        Whether the final model is trained on the records outside the subset or on all.
    extrapolate : "auto", dict or callable, default="auto"
        How the winner's parameters change with the number of records. "auto": as the estimator's adapter knows
        (docs/learn/subset_search.md); what it does not know is kept. A dict overrides it: name of a searched
        parameter to "linear" (in proportion to the number of records), "keep", or a callable (value, n_tune, n_final).
        One callable is used for all numbers. Sizes are the expected ones, q·n and (1−q)·n (or n). Where the number of
        records n is private and the estimator states no ``public_n``, they are the shares q and 1−q (or 1).
    warm_start : bool, default=False
        Start the final training from the winner's fitted model; the estimator, or the last step of a pipeline, needs a
        parameter ``warm_start``. It costs nothing.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's noise is scaled until the
        total meets it, by the same factor for candidates and final model.
    scoring : str, callable, PrivateScorer or None, default=None
        As for ``DPRandomSearchCV``.
    score_noise : "match" or Guarantee, default="match"
        As for ``DPRandomSearchCV``.
    cv : None, float or int, default=None
        Validation inside the subset. None or a float: each record of it validates with this probability (0.2). An int:
        each draws a fold. Splits by index are not possible.
    guarantee : Guarantee or callable, optional
        What one fit promises, on the caller's word: a guarantee, or (estimator, n_samples) to guarantee.
    n_jobs, pre_dispatch : int, int or str
        As in scikit-learn.
    error_score : float, default=nan
        Score of a candidate that fails; nan is the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data.
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float, int
        The winner on the subset.
    final_params_ : dict
        The winner's parameters, extrapolated: what the final model was trained with.
    best_estimator_ : estimator
        The final model.
    privacy_spent_ : PrivacySpent
        What the whole fit cost; unpacks as (epsilon, delta).
    cv_results_ : dict
        The released row.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.subset_then_train`` (docs/theory/subset.md, Theorem 2; Koskela & Kulkarni
    2023). Under replace-one neighbours, and for an estimator that counts its records under zero-out ones, there is no
    amplification, and the total says so. If no candidate can be trained and scored on the subset, or the final model
    cannot be trained, ``NoModelError`` is raised with one fixed message.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> search = DPSubsetSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=15, guarantee=GaussianDP(mu=0.4), delta=1e-5
    ... )
    >>> one_run, whole = GaussianDP(mu=0.4).epsilon_at(1e-5), search.privacy_cost().epsilon
    >>> round(one_run, 2), round(whole, 2)
    (1.55, 1.53)
    """

    _parameter_constraints: dict[str, Any] = {
        **BestOfRuns._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(numbers.Real, 1, None, closed="left"), CountLaw],
        "subset_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
        "train_on": [str],
        "extrapolate": [str, dict, callable],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: Any = 10,
        subset_fraction: float = 0.1,
        train_on: str = "rest",
        extrapolate: Any = "auto",
        warm_start: bool = False,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: Any = None,
        score_noise: Any = "match",
        cv: Any = None,
        guarantee: Any = None,
        n_jobs: int | None = None,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.subset_fraction = subset_fraction
        self.train_on = train_on
        self.extrapolate = extrapolate
        self.warm_start = warm_start
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.score_noise = score_noise
        self.cv = cv
        self.guarantee = guarantee
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.verbose = verbose
        self.random_state = random_state

    # --- plan -----------------------------------------------------------------------------------------------------

    def _distributions(self) -> Any:
        return self.param_distributions

    def _law(self) -> CountLaw:
        return as_law(self.n_iter).at_least_one()

    def _validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        if self.train_on not in ON:
            raise ValueError(
                f"Found train_on={self.train_on!r}; 'rest' (the records outside the subset) or 'all' is needed."
                f"{did_you_mean(self.train_on, ON)}"
            )
        check_rules(self.extrapolate, Space.of(self.param_distributions).names)
        if self.warm_start:
            warm_start_name(self.estimator)
        if self.cv is not None and not isinstance(self.cv, numbers.Real):
            raise ValueError(
                f"Found cv={self.cv!r}: which records are in the subset, and how many, is random and secret, so there "
                "is nothing to split by index. Use cv as a fraction or a number of folds, or X_public and y_public."
            )
        sizes = self._sizes(adapter_for(self.estimator, self.guarantee), relation, n_samples)
        if sizes.known:
            check_handful(self.subset_fraction, self.train_on, sizes.tune / self.subset_fraction)
        return InSubset(validation_of(self.cv, relation, n_samples, public), self.subset_fraction)

    def _sizes(self, adapter: Adapter, relation: str, n_samples: int | None) -> Sizes:
        """What is expected, from what is public: the estimator's own word before the number of records."""
        stated = adapter.public_size(self.estimator)
        n = n_samples if stated is None and relation != "add_remove" else stated
        whole, q = 1.0 if n is None else float(n), float(self.subset_fraction)
        return Sizes(q * whole, (1.0 - q if self.train_on == "rest" else 1.0) * whole, n is not None)

    def _secret_coins(self, adapter: Adapter, relation: str) -> bool:
        """Whether no part uses how many records it was given, other than through its own guarantee."""
        return relation != "zero_out" or adapter.expecting(self.estimator, 1.0) is not None

    def _cost_parts(
        self, promises: Any, scoring: Any, validation: Any, law: CountLaw
    ) -> tuple[tuple[Component, ...], Guarantee]:
        tune = best_of_runs(promises.trained, scoring, validation.exposures(), law)
        secret = self._secret_coins(promises.adapter, tune.neighboring)
        total = subset_then_train(tune, promises.worst, self.subset_fraction, self.train_on, secret_coins=secret)
        name = (
            f"tune on a subset (each record with probability {self.subset_fraction:g}) by the best of K runs, K ~ "
            f"{law!r}, then train on {ON[self.train_on]}"
        )
        return (Component(name=name, guarantee=total),), total

    def _own_notes(self, relation: str) -> tuple[str, ...]:
        if self._secret_coins(adapter_for(self.estimator, self.guarantee), relation):
            return (PARTS_CAN_TRAIN,)
        return (PARTS_CAN_TRAIN, COUNTS.format(type(self.estimator).__name__))

    # --- run ------------------------------------------------------------------------------------------------------

    def _parts(self, plan: Plan, candidates: Sequence[Mapping[str, Any]], n_samples: int, source: Randomness) -> Parts:
        relation, split = plan.spent.neighboring, plan.validation
        sizes = self._sizes(plan.adapter, relation, n_samples)
        tells = relation != "replace_one" and sizes.known and plan.adapter.expecting(self.estimator, 1.0) is not None
        final = [self._carried_over(plan, one, sizes) for one in candidates]
        for one, other in zip(candidates, final):
            _check_kept(plan, one, one, sizes.tune if tells else None)
            _check_kept(plan, one, other, sizes.final if tells else None)
        joins, folds = split.draw(n_samples, source.random_bytes)
        scored = None if relation == "add_remove" else split.n_scored(n_samples, len(folds))
        records = np.flatnonzero(~joins) if self.train_on == "rest" else np.arange(n_samples)
        return Parts(
            folds=folds,
            n_scored=[scored] * len(folds),
            expected=sizes.tune if tells else None,
            later=_Final(records, final, sizes.final if tells else None),
        )

    def _dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        sizes = self._sizes(plan.adapter, plan.spent.neighboring, None)
        final = self._carried_over(plan, candidate, sizes)
        _check_kept(plan, candidate, final, None)
        tuned, score = in_the_open(job, candidate, X, y)
        model = self._last_model(job, tuned, candidate, final, None)
        releasable(job, fitted(job, model, job.parts.folds[0][0], X, y))
        return score

    def _last_model(
        self, job: Job, tuned: Any, candidate: Mapping[str, Any], parameters: Mapping[str, Any], seed: Any
    ) -> Any:
        """The model to be trained last: a new one, or the winner's."""
        if not self.warm_start:
            return fresh(job, parameters, seed)
        # setting a parameter to what it was would make some estimators forget their model
        changed = {name: new for name, new in parameters.items() if new is not candidate[name]}
        return ready(job, with_parameters(tuned, {warm_start_name(tuned): True, **changed}), seed)

    def _carried_over(self, plan: Plan, candidate: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
        known = plan.adapter.extrapolation(plan.promises.configured(candidate))
        return carried_over(candidate, self.extrapolate, known, sizes)

    def _outcome(
        self,
        job: Job,
        candidates: Sequence[Mapping[str, Any]],
        runs: Mapping[int, Run],
        best: int,
        seed: Any,
        X: Any,
        y: Any,
    ) -> Outcome:
        later, tuned = job.parts.later, runs[best].model
        parameters, model = later.candidates[best], None
        if tuned is not None:
            after = replace(job, parts=replace(job.parts, expected=later.expected))

            def make() -> Any:
                return self._last_model(after, tuned, candidates[best], parameters, seed)

            model = train_last(after, make, later.records, seed, X, y)
        return Outcome(
            found=model is not None,
            rows=[(candidates[best], runs[best].score)],
            attributes={"best_estimator_": model, "final_params_": parameters},
        )


def _check_kept(
    plan: Plan, candidate: Mapping[str, Any], parameters: Mapping[str, Any], expected: float | None
) -> None:
    """Raise unless training with these parameters, told what to expect, promises what was planned for the candidate."""
    if expected is None and all(parameters[name] is value for name, value in candidate.items()):
        return
    model = plan.promises.configured(parameters)
    told = {} if expected is None else plan.adapter.expecting(model, expected)
    if told is None and plan.spent.neighboring == "zero_out":
        raise PrivacyError(
            f"A candidate ({dict(candidate)!r}) may use how many records it is given, which the estimator as "
            "configured does not: the total was computed for coins that stay secret. Search over steps that all can be "
            "told how many to expect (a method expecting(n))."
        )
    if not plan.promises.keeps(candidate, with_parameters(model, told or {})):
        raise PrivacyError(
            f"Found {dict(parameters)!r} for the final model of the candidate {dict(candidate)!r}, which promises "
            "something else. Parameters on which the guarantee depends must be kept: remove them from extrapolate."
        )
