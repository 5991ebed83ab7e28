"""The audit of an estimator or a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier

from .._process import reseed
from ..adapters._adapter import Estimator
from ..adapters._seeds import seed_names
from ..data._persons import number_of_persons, persons_in
from ..data._records import number_of_records
from ..ledger._ledger_context import refuse_in_block
from ..privacy import Guarantee, PrivacyError
from ..privacy._checks import Neighboring
from ..privacy._spent import PrivacySpent
from ..search import NoModelError
from ..search import _private_process as private_process
from ..search._execution.clusters import Workplace, workplace_for
from ..search._rehearsal import run_publicly
from ._audit_result import AuditResult, check_levels, check_runs, lower_bound
from ._distinguishing_events import FAILURE, Everything, Statistic, has_failed
from ._neighbours import Dataset, Neighbours, worst_case
from ._stated_guarantees import claim_about, smallest_stated_epsilon

Seed = np.random.SeedSequence
#: Seeds of some fits; None for the operating system's entropy.
Seeds = Sequence[Seed | None]
#: Further arguments of ``fit``.
FitParams = Mapping[str, Any]

#: Outcomes of some fits, the statement of the first of them, and the first error.
Fitted = tuple[list[Any], list[PrivacySpent], str | None]

#: Fits of one task: enough to pay for its start, few enough to share the work evenly.
BATCH = 25


def audit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    other: tuple[Any, ...] | None = None,
    neighboring: Neighboring | None = None,
    absent: bool = False,
    n_runs: int = 1000,
    delta: float | None = None,
    confidence: float = 0.95,
    stated: Guarantee | PrivacySpent | None = None,
    statistic: Statistic | None = None,
    fit_params: FitParams | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> AuditResult:
    """Bound the ε of a private estimator from below, by many fits.

    It fits an estimator or a search on two neighbouring data sets.

    An audit refutes a false statement; it never proves a true one. Its result is not private: use
    public or made-up data.

    Parameters
    ----------
    estimator : estimator
        Anything with ``fit``. Fixed seeds in it are set to None, and the result says so.
    X : array-like of shape (n_samples, n_features)
        One data set.
    y : array-like of shape (n_samples,), optional
        Its targets.
    groups : array-like of shape (n_samples,), optional
        Person of each record, as in ``fit``. The data sets then differ in all records of one
        person.
    other : (X, y) or (X, y, groups), optional
        Its neighbour. By default one is built: an extreme record is added, replaced or put in the
        place of zeros (``worst_case``); with ``groups``, a person with the largest number of
        records.
    neighboring : {"add_remove", "zero_out", "replace_one"}, optional
        The relation; by default the one that the estimator states.
    absent : bool, default=False
        Under zero-out, your assurance that the changed record of one data set (the record of zeros)
        contributes nothing to the fit. Otherwise the data sets are two steps apart, and the bound
        is compared with the ε that the statement implies for two steps.
    n_runs : int, default=1000
        Fits on each data set. ``runs_needed(epsilon)`` gives the fewest that can prove an ε.
    delta : float, optional
        δ at which ε is bounded; by default the stated δ.
    confidence : float, default=0.95
        Probability with which the bound holds.
    stated : Guarantee or PrivacySpent, optional
        The claim. By default the smallest that the estimator states: by ``privacy_cost``,
        ``privacy_guarantee``, an adapter, or after fitting ``privacy_spent_``.
    statistic : callable, optional
        Fitted model ↦ a number, an array of numbers, a label (str, bool, tuple, None), or a dict of
        these. By default all that an attacker reads: ``best_params_``, ``best_score_``, every
        fitted number, and predictions on the canary. A fit that fails is an outcome of its own.
    fit_params : dict, optional
        Further arguments of ``fit``, such as ``X_public`` and ``y_public``.
    n_jobs : int, optional
        Number of parallel jobs, as in scikit-learn.
    random_state : int, optional
        For tests: the same result every time. None draws on the operating system.

    Returns
    -------
    AuditResult
        With ``epsilon_lower``, ``stated_epsilon`` and ``consistent``.

    Raises
    ------
    PrivacyError
        If the data sets are not neighbours under the relation, or ``groups`` are given and nothing
        is stated for persons.
    ValueError
        If every fit fails, or with too few runs.

    Examples
    --------
    A counter that claims ε = 1 and adds noise for ε = 8:

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> class Counter(BaseEstimator):
    ...     def privacy_guarantee(self, n_samples=None):
    ...         return PureDP(epsilon=1.0)
    ...     def fit(self, X, y=None):
    ...         self.count_ = len(X) + np.random.default_rng().laplace(scale=1 / 8)
    ...         return self
    >>> found = audit(Counter(), np.ones((5, 1)), n_runs=500)
    >>> found.consistent, found.epsilon_lower > 2
    (False, True)
    """
    refuse_in_block("audit")
    check_runs(n_runs)
    check_levels(0.0 if delta is None else delta, confidence, random_state)
    estimator, notes = without_seeds(estimator)
    params = dict(fit_params or {})
    n = number_of_records(X)
    n = n if groups is None else number_of_persons(persons_in(groups, n))
    claim = claim_about(estimator, n, params, stated, delta, neighboring)
    relation = claim.neighboring
    if other is None:
        options = {"absent": absent, "classification": is_classifier(estimator)}
        pair = worst_case(X, y, groups, neighboring=relation, **options)
    else:
        data = (X, y) if groups is None else (X, y, groups)
        pair = Neighbours.of(data, other, relation, absent)
    statistic = statistic or Everything(pair.canary)
    fitted = fit_many(estimator, pair, int(n_runs), statistic, params, n_jobs, random_state)
    outcomes, other_outcomes, spent, error = fitted
    if all(map(has_failed, [*outcomes, *other_outcomes])):
        raise ValueError(
            f"Every fit of {type(estimator).__name__} failed on both data sets, the first with "
            f"{error}. Give data and fit_params with which fit works."
        )
    units = {statement.unit for statement in spent}
    # a statement about records says nothing about persons: an audit would refute no claim
    if groups is not None and (units - {"person"} or not (units or stated is not None)):
        raise PrivacyError(
            "Found groups, and a model that states nothing for persons. Use an estimator whose fit "
            "takes groups and which has privacy_spent_, or leave groups out."
        )
    bound = lower_bound(outcomes, other_outcomes, delta=claim.delta, confidence=confidence)
    epsilon, relation = smallest_stated_epsilon(claim, spent, pair.steps), pair.neighboring
    return replace(
        bound, stated_epsilon=epsilon, neighboring=relation, steps=pair.steps, notes=notes
    )


# --- many fits; one that fails is an outcome like any other ---------------------------------------


def fit_many(
    estimator: Estimator,
    pair: Neighbours,
    n_runs: int,
    statistic: Statistic,
    fit_params: FitParams,
    n_jobs: int | None,
    random_state: int | None,
) -> tuple[list[Any], list[Any], list[PrivacySpent], str | None]:
    """Fit ``n_runs`` times on each of two data sets.

    Returns the outcomes on both, the statements, and the first error.
    """
    data = (pair.X, pair.y, pair.groups), (pair.other_X, pair.other_y, pair.other_groups)
    seeds: list[Seeds] = [[None] * n_runs] * 2
    if random_state is not None:
        seeds = [Seed([int(random_state), side]).spawn(n_runs) for side in (0, 1)]
    batch = max(1, min(BATCH, -(-n_runs // effective_n_jobs(n_jobs))))
    tasks = [(side, seeds[side][i : i + batch]) for side in (0, 1) for i in range(0, n_runs, batch)]
    some_fits = partial(_fit_batch, estimator, statistic, fit_params)
    all_fits = partial(_run_all_fits, some_fits, data, tasks, workplace_for(n_jobs))
    done = run_publicly(all_fits, [*data[0], *data[1]])
    outcomes: tuple[list[Any], list[Any]] = [], []
    for (side, _), (fitted, _, _) in zip(tasks, done):
        outcomes[side].extend(fitted)
    spent = [statement for _, stated, _ in done for statement in stated]
    return *outcomes, spent, next((error for *_, error in done if error), None)


def _run_all_fits(
    some_fits: Callable[..., Fitted],
    data: Any,
    tasks: Sequence[tuple[int, Seeds]],
    place: Workplace,
) -> list[Fitted]:
    """Run batches of fits, each in a process of its own.

    All fits of a process that ends early have failed.
    """
    with place.entered() as workers:
        works = [partial(some_fits, data[side], some) for side, some in tasks]
        results = workers.run([partial(private_process.in_own_process, work) for work in works])
    ended = "the process ended, for want of memory or by a crash of compiled code"
    return [done or ([FAILURE] * len(some), [], ended) for done, (_, some) in zip(results, tasks)]


def _fit_batch(
    estimator: Any, statistic: Statistic, fit_params: FitParams, data: Dataset, seeds: Seeds
) -> Fitted:
    """Outcomes of some fits on one data set, the statement of the first, and the first error."""
    X, y, groups = data
    params = dict(fit_params) if groups is None else {**fit_params, "groups": groups}
    outcomes, spent, error = list[Any](), list[PrivacySpent](), None
    for seed in seeds:
        model = unfitted_copy(estimator, seed)
        try:
            model.fit(X, *([] if y is None else [y]), **params)
        except Exception as failure:  # a failure reveals something about the data
            if isinstance(failure, PrivacyError) and not isinstance(failure, NoModelError):
                raise  # refused because of the caller's parameters, not of the data
            outcomes.append(FAILURE)
            error = error or f"{type(failure).__name__}: {failure}"
        else:
            outcomes.append(statistic(model))
        spent = spent or statement_of(model)
    return outcomes, spent, error


def without_seeds(estimator: Estimator) -> tuple[Any, tuple[str, ...]]:
    """Estimator without fixed seeds, and a note for each."""
    params = estimator.get_params(deep=True)
    fixed = [name for name in seed_names(estimator) if params[name] is not None]
    notes = tuple(
        f"{name}={params[name]!r} was set to None: with a fixed seed all fits would draw the same "
        "noise, and an audit would see one fit many times."
        for name in fixed
    )
    return clone(estimator).set_params(**dict.fromkeys(fixed)), notes


def unfitted_copy(estimator: Estimator, seed: Seed | None) -> Any:
    """Unfitted copy of an estimator, which and the global generators are seeded for tests.

    Without a seed these generators get a state from the operating system.
    """
    model = clone(estimator)
    reseed(seed)
    if seed is None:
        return model
    names = seed_names(model)
    seeds = zip(names, seed.spawn(len(names)))
    return model.set_params(**{name: int(part.generate_state(1)[0]) for name, part in seeds})


def statement_of(model: Any) -> list[PrivacySpent]:
    """Statement of a fitted model, in a list, if it has one."""
    spent = getattr(model, "privacy_spent_", None)
    return [spent] if isinstance(spent, PrivacySpent) else []
