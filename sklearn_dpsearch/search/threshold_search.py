"""Stop at the first good candidate, or raise the threshold over a whole grid until nothing is above it."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..privacy import Guarantee
from ..privacy.spent import Component
from ..scoring.validation import Validation
from ._aggregated import ONE_PART
from ._base import BasePrivateSearch
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, n_records
from ._until import Until
from ._walk import Kept, Rounds, StepByStep, Walk


class DPThresholdSearchCV(BasePrivateSearch):
    """Search against a threshold that is differentially private as a whole.

    With a number: candidates are drawn and run one after the other until a private score reaches it; before each run
    the search ends with a small probability, with nothing. With "auto": every candidate of a grid has a utility, its
    mean score over ``n_parts`` random parts of the records; rounds of AboveThreshold raise a threshold by steps that
    double while a candidate is found above it and are halved when none is; one private training follows.

    Parameters
    ----------
    estimator : estimator
        A private estimator, as for ``DPRandomSearchCV``.
    param_distributions : dict or list of dicts
        As for ``DPRandomSearchCV``; with "auto" lists of values only.
    threshold : "auto" or float, default="auto"
        The score to reach: a constant known without the data.
    n_iter : float, default=10
        With a number: before each run the search stops with probability 1/n_iter, n_iter > 1. At most n_iter − 1 runs
        are expected.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's noise is calibrated.
    scoring, score_noise, cv, refit
        With a number: as for ``DPRandomSearchCV``. With "auto": ``scoring`` is any score with values in [0, 1], and
        the others have no meaning.
    n_parts, part_noise
        With "auto": as for ``DPGridSearchCV``.
    granularity, lowest_utility : float, default=0.02, 0.0
        With "auto": step g and start u₀ of the threshold.
    max_rounds : int, optional
        With "auto": the walk ends after so many rounds; by default 5·⌈log₂((1 − u₀)/g)⌉ + 2.
    selection_share : float, default=0.5
        With "auto" and ``epsilon``: the share of it for the walk.
    round_epsilon : float, optional
        With "auto": ε of a round in which a candidate is found, instead of a share.
    threshold_noise : {"fresh", "once"}, default="fresh"
        With "auto": noise of the threshold drawn in every round, as published, or once for the whole walk, which costs
        less.
    guarantee : Guarantee or callable, optional
        What one fit promises, on the caller's word.
    n_jobs, pre_dispatch : int, int or str
        As in scikit-learn. With a number, workers run ahead, and the first success in the order of drawing counts.
    error_score : float, default=nan
        Score of a candidate that fails; nan is the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data.
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.

    Attributes
    ----------
    found_ : bool
        Whether a candidate reached the threshold. If not there is no ``best_estimator_``, and predicting is an error.
    n_rounds_ : int
        With "auto": rounds of this walk, which its released decisions tell anyway. The cost does not depend on it.
    best_params_, best_score_, best_index_ : dict, float, int
        The candidate; its released score, or with "auto" the threshold that it was found above, at most 1.
    best_estimator_ : estimator
    privacy_spent_ : PrivacySpent
        What the whole fit cost; unpacks as (epsilon, delta). With "auto" it is the worst case over all walks that the
        rules allow, whatever this one did.
    cv_results_, n_splits_, scorer_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.until_above`` (docs/theorems.md, Theorem 3) and ``doubling_search`` (Ding,
    Wu et al. 2022, Algorithm 1; the O(log n)·ε stated there supposes that the walk behaves, which is no guarantee).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> search = DPThresholdSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0]}, threshold=0.9, guarantee=PureDP(epsilon=1.0),
    ...     scoring="accuracy", cv=0.2,
    ... )
    >>> search.privacy_cost().epsilon <= 2.0
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list],
        "threshold": [StrOptions({"auto"}), numbers.Real],
        "n_iter": [Interval(numbers.Real, 1, None, closed="neither")],
        "refit": [StrOptions({"winner"}), "boolean"],
        "n_parts": [None, Interval(numbers.Integral, 2, None, closed="left")],
        "part_noise": [StrOptions({"scaled", "same"})],
        "granularity": [numbers.Real],
        "lowest_utility": [numbers.Real],
        "max_rounds": [None, numbers.Integral],
        "selection_share": [Interval(numbers.Real, 0, 1, closed="neither")],
        "round_epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "threshold_noise": [StrOptions({"fresh", "once"})],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        threshold: Any = "auto",
        n_iter: float = 10,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: Any = None,
        score_noise: Any = "match",
        cv: Any = None,
        refit: Any = "winner",
        n_parts: int | None = None,
        part_noise: str = "scaled",
        granularity: float = 0.02,
        lowest_utility: float = 0.0,
        max_rounds: int | None = None,
        selection_share: float = 0.5,
        round_epsilon: float | None = None,
        threshold_noise: str = "fresh",
        guarantee: Any = None,
        n_jobs: int | None = None,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.threshold = threshold
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.score_noise = score_noise
        self.cv = cv
        self.refit = refit
        self.n_parts = n_parts
        self.part_noise = part_noise
        self.granularity = granularity
        self.lowest_utility = lowest_utility
        self.max_rounds = max_rounds
        self.selection_share = selection_share
        self.round_epsilon = round_epsilon
        self.threshold_noise = threshold_noise
        self.guarantee = guarantee
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.verbose = verbose
        self.random_state = random_state

    def rounds(
        self,
        X: Any,
        y: Any,
        batches: Iterable[Sequence[Mapping[str, Any]]],
        *,
        X_public: Any = None,
        y_public: Any = None,
    ) -> Iterator[Kept]:
        """Walk with candidates of the caller's own, one batch a round (Ding, Wu et al. 2022, §4.1).

        Parameters
        ----------
        X, y, X_public, y_public
            As for ``fit``.
        batches : iterable of lists of dicts
            Candidates for each round. They may depend on what was kept so far: a generator is asked for the next batch
            after the last ``Kept`` has been handed out. Each has to promise what a point of ``param_distributions``
            does, and nothing else of the records may enter its choice.

        Yields
        ------
        Kept
            The candidate kept so far, the threshold it was found above, and whether this round found it.

        Notes
        -----
        ``privacy_spent_`` is set before the first round, and is that of ``fit``. When the batches or the walk end, one
        private training follows, and the search is fitted; one that is left before has no model. An error ends the
        walk.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn_dpsearch.privacy import PureDP
        >>> X = np.repeat([[-1.0], [1.0]], 100, axis=0)
        >>> y = np.repeat([0, 1], 100)
        >>> search = DPThresholdSearchCV(
        ...     LogisticRegression(), {}, guarantee=PureDP(epsilon=1.0), round_epsilon=100.0, n_parts=5, max_rounds=3,
        ... )
        >>> for kept in search.rounds(X, y, ([{"C": 10.0**i}] for i in range(9))):
        ...     print(kept.params, round(kept.utility, 2), kept.accepted)
        {'C': 1.0} 0.02 True
        {'C': 10.0} 0.06 True
        {'C': 100.0} 0.14 True
        >>> search.best_params_, search.n_rounds_
        ({'C': 100.0}, 3)
        """
        if not isinstance(self.threshold, str):
            raise ValueError(
                f"Found rounds() with threshold={self.threshold!r}; rounds raise the threshold themselves. Use "
                "threshold='auto', or fit."
            )
        X, y = self._first_look(X, y, X_public, y_public, {})
        search = copy(self)  # the walk goes by the parameters of this moment
        plan = search._plan(n_records(X), X_public is not None, self.delta)
        self._say(plan)
        public = None if X_public is None else (X_public, y_public)

        def start() -> Rounds:
            source, mode = Randomness(search.random_state), Walk(search)
            parts = mode.parts(plan, n_records(X), source)
            job = search._job(plan, parts, {}, public)
            self._spend(plan)
            return Rounds(mode, job, source, X, y)

        return StepByStep(start, batches, plan, self._release)

    @property
    def _why_nothing(self) -> str:  # type: ignore[override]
        """Why there is no model, as far as the release tells."""
        if isinstance(self.threshold, str):
            return (
                "no candidate was found above lowest_utility + granularity (found_ is False). Give a lower "
                "lowest_utility or a larger round_epsilon; fitting again spends privacy_spent_ again."
            )
        return (
            "the search stopped before a candidate reached the threshold (found_ is False). Give a lower threshold or "
            "a larger n_iter; fitting again spends privacy_spent_ again."
        )

    @property
    def _mode(self) -> Any:
        return Walk(self) if isinstance(self.threshold, str) else Until(self)

    def _distributions(self) -> Any:
        return self.param_distributions

    def _law(self) -> None:
        return None

    def _scorer(self, public: bool) -> Any:
        return self._mode.scorer(public)

    def _validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        found: Validation = self._mode.validation(relation, n_samples, public)
        return found

    def _cost_parts(
        self, promises: Any, scoring: Any, validation: Any, law: Any
    ) -> tuple[tuple[Component, ...], Guarantee]:
        found: tuple[tuple[Component, ...], Guarantee] = self._mode.cost_parts(promises, scoring, validation)
        return found

    def _own_notes(self, relation: str) -> tuple[str, ...]:
        if isinstance(self.threshold, str):
            return (ONE_PART,)
        return (f"The threshold {self.threshold:g} was not chosen by looking at the data.",)

    def _candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._mode.candidates(plan, source)
        return found

    def _parts(self, plan: Plan, candidates: Sequence[Mapping[str, Any]], n_samples: int, source: Randomness) -> Parts:
        found: Parts = self._mode.parts(plan, n_samples, source)
        return found

    def _search(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        outcome: Outcome = self._mode.run(job, candidates, source, X, y)
        return outcome

    def _dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        score: float = self._mode.dry(plan, job, candidate, X, y)
        return score
