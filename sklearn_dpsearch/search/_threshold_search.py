"""Stop at the first good candidate, or raise the threshold until no candidate is above it.

The threshold is raised over a whole grid.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._documentation import documented
from .._process.progress import Progress
from ..privacy import Guarantee, until_above
from ..privacy._mechanisms.exact_sampling import bernoulli
from ..scoring._validation import validation_of
from ._base import BasePrivateSearch
from ._doubling import Batches, Doubling, DoublingStrategy, RoundRelease, steps_of_walk
from ._execution.job import Job, Outcome
from ._execution.models import train_on_all
from ._execution.randomness import Randomness, entropy_of
from ._execution.runs import run_until
from ._planning.checks import MOST_RUNS
from ._planning.plan import Facts, Plan
from ._records import Candidate, Candidates, Distributions
from ._strategy import Strategy, cost_of_runs, drawn_candidates


@documented
@dataclass(eq=False, repr=False)
class DPThresholdSearchCV(BasePrivateSearch):
    """Search against a threshold that is differentially private as a whole.

    With a number: candidates are drawn and run one after the other until a private score reaches
    the number; before each run the search ends without a result, with a small probability. With
    ``Doubling(...)``: a whole grid is tried, and rounds of AboveThreshold raise a threshold by
    steps that double and halve; one private training follows.

    Parameters
    ----------
    param_distributions : dict, list of dicts or "auto"
        As for ``DPRandomSearchCV``; with ``Doubling`` lists of values only.
    threshold : float or Doubling
        A number is the score to reach: a constant known without the data. ``Doubling(...)`` holds
        the rules by which the threshold is raised.
    n_iter : float, default=10
        With a number: mean of the number of runs that is drawn; before each run the search stops
        with probability 1/(1 + n_iter). The first success ends the runs sooner.
    scoring : str, callable or None, default=None
        With a number: as for ``DPRandomSearchCV``. With ``Doubling``: any score with values in [0,
        1].
    score_noise : "match" or Guarantee, default="match"
        With a number: as for ``DPRandomSearchCV``. With ``Doubling`` it has no meaning.
    cv : None, float, int, splitter or iterable, default=None
        With a number: as for ``DPRandomSearchCV``. With ``Doubling`` it has no meaning.
    refit : "winner" or bool, default="winner"
        With a number: as for ``DPRandomSearchCV``. With ``Doubling`` the winner is always trained
        once.
    n_jobs : int, optional
        As in scikit-learn. With a number, workers run ahead, and the first success in the order of
        drawing counts.

    Attributes
    ----------
    found_ : bool
        Whether a candidate reached the threshold. Otherwise there is no ``best_estimator_``, and
        predicting raises.
    n_rounds_ : int
        With ``Doubling``: number of rounds of this walk, which the released decisions tell anyway.
        The cost does not depend on the number.
    best_params_, best_score_, best_index_ : dict, float, int
        The candidate, and its released score; with ``Doubling`` the threshold above which it was
        found, at most 1.
    best_score_std_ : float
        Standard error of a released score from its noise; not with ``Doubling``.
    best_estimator_ : estimator
    privacy_spent_ : PrivacySpent
        Cost of the whole fit; unpacks as (epsilon, delta). With ``Doubling`` it is the worst case
        over all walks that the rules allow, and does not depend on this walk.
    cv_results_, n_splits_, scorer_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a number, accounted by ``sklearn_dpsearch.privacy.until_above`` (docs/theory/threshold.md,
    Theorem 3). With ``Doubling``, by ``doubling_search`` (docs/theory/doubling.md; Ding, Wu et al.
    2022, Algorithm 1). The paper states O(log n)·ε for typical walks only, which is no guarantee;
    here the worst walk is charged.

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

    param_distributions: Distributions
    _: KW_ONLY
    threshold: float | Doubling
    n_iter: float = 10
    score_noise: Guarantee | str = "match"
    cv: Any = None
    refit: bool | str = "winner"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list, StrOptions({"auto"})],
        "threshold": [numbers.Real, Doubling],
        "n_iter": [Interval(numbers.Real, 0, MOST_RUNS, closed="right")],
        "refit": [StrOptions({"winner"}), "boolean"],
    }

    def rounds(
        self, X: Any, y: Any, batches: Batches, *, X_public: Any = None, y_public: Any = None
    ) -> Iterator[RoundRelease]:
        """Walk with candidates of the caller's own, one batch a round (Ding, Wu et al. 2022, §4.1).

        Parameters
        ----------
        X, y : array-like
            As for ``fit``.
        batches : iterable of lists of dicts
            Candidates for each round. Batches may depend on the candidates kept so far: a generator
            is asked for the next batch after the last ``RoundRelease`` was yielded. Every candidate
            needs the guarantee of a point of ``param_distributions``, and the choice of candidates
            must not use the records in any other way.
        X_public, y_public : array-like, optional
            As for ``fit``.

        Yields
        ------
        RoundRelease
            The candidate kept so far, the threshold above which it was found, and whether this
            round found it.

        Notes
        -----
        ``privacy_spent_`` is set before the first round, and equals that of ``fit``. When the
        batches or the walk end, one private training follows, and the search is fitted; a search
        left earlier has no model. An error ends the walk.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn_dpsearch.privacy import PureDP
        >>> X = np.repeat([[-1.0], [1.0]], 100, axis=0)
        >>> y = np.repeat([0, 1], 100)
        >>> search = DPThresholdSearchCV(
        ...     LogisticRegression(), {}, guarantee=PureDP(epsilon=1.0),
        ...     threshold=Doubling(round_epsilon=100.0, n_parts=5, max_rounds=3),
        ... )
        >>> for step in search.rounds(X, y, ([{"C": 10.0**i}] for i in range(9))):
        ...     print(step.params, round(step.utility, 2), step.accepted)
        {'C': 1.0} 0.02 True
        {'C': 10.0} 0.06 True
        {'C': 100.0} 0.14 True
        >>> search.best_params_, search.n_rounds_
        ({'C': 100.0}, 3)
        """
        if isinstance(self.threshold, numbers.Real):
            raise ValueError(
                f"Found rounds() with threshold={self.threshold!r}; rounds raise the threshold "
                "themselves. Use threshold=Doubling(...), or fit."
            )
        if self.checkpoint is not None:
            raise ValueError(
                "Found rounds() with checkpoint=: the caller's own batches would have to be the "
                "same after a crash, which cannot be checked. Set checkpoint=None, or use fit."
            )
        fit, ledger = self._prepared(X, y, X_public, y_public, {})
        seed = self.random_state
        fit = replace(fit, entropy=None if seed is None else entropy_of(seed))
        # raises what the draw would raise
        fit.strategy.split(fit.plan, (), fit.n_samples, Randomness(0))
        return steps_of_walk(fit, lambda plan: self._spend(plan, ledger), batches, self._release)

    def _strategy(self) -> ThresholdStrategy | DoublingStrategy:
        if isinstance(self.threshold, Doubling):
            check_none_of_a_number(self)
            return DoublingStrategy(self, self.param_distributions, self.threshold)
        return ThresholdStrategy(self, float(self.threshold))

    def _why_no_model(self) -> str:
        if self.found_:
            return super()._why_no_model()
        number = isinstance(self.threshold, numbers.Real)
        return ThresholdStrategy.why_nothing if number else DoublingStrategy.why_nothing


#: Parameters of the search that have a meaning with a number only, and why.
NUMBER_PARAMETERS = {
    "n_iter": "every candidate of the grid runs. Leave n_iter out",
    "cv": "candidates are scored on n_parts random parts. Leave cv out, and set n_parts",
    "score_noise": "no score is released. Leave score_noise out",
}


def check_none_of_a_number(search: DPThresholdSearchCV) -> None:
    """Raise for parameters that have no meaning where the threshold doubles."""
    for name, why in NUMBER_PARAMETERS.items():
        value, default = getattr(search, name), signature(type(search)).parameters[name].default
        if value is not default and value != default:
            where = f"{name}={value!r} where the threshold doubles (Doubling)"
            raise ValueError(f"Found {where}: {why}.")
    if search.refit is not True and search.refit != "winner":
        raise ValueError(
            f"Found refit={search.refit!r} where the threshold doubles (Doubling): models on parts "
            "are not private, so one private training follows the choice. Leave refit='winner'."
        )


# --- how it runs, with a number -------------------------------------------------------------------


class ThresholdStrategy(Strategy):
    """Run candidates one after the other.

    Before each run a coin may end the search without a result.

    Parameters
    ----------
    search : DPThresholdSearchCV
    threshold : float
    """

    search: DPThresholdSearchCV
    shows = ("best_score_std_", "found_")
    why_nothing = (
        "the search stopped before a candidate reached the threshold (found_ is False). Give a "
        "lower threshold or a larger n_iter; fitting again spends privacy_spent_ again."
    )

    def __init__(self, search: DPThresholdSearchCV, threshold: float) -> None:
        super().__init__(search, search.param_distributions)
        self.threshold = threshold
        #: Probability of stopping before each run, exactly as accounted.
        self.stop = Fraction(1 / (1 + float(search.n_iter)))
        if not np.isfinite(threshold):
            raise ValueError(
                f"Found threshold={threshold!r}; a finite number or Doubling(...) is needed."
            )

    # --- plan -------------------------------------------------------------------------------------

    def facts(self, n_samples: int | None, public: bool) -> Facts:
        search, stop = self.search, float(self.stop)
        families, scorer = self.families(n_samples), self.scorer(public)
        validation = validation_of(search.cv, n_samples, public, search.epsilon)
        name = f"first run with a score of at least {self.threshold:g}, or none"
        cost = partial(
            cost_of_runs,
            name=f"{name} (stop probability {stop:.4g})",
            theorem=partial(until_above, stop_probability=stop),
            exposures=validation.exposures(),
            refit=search.refit is True,
        )
        return self.resolved(
            families,
            public,
            scorer=scorer,
            validation=validation,
            cost=cost,
            expected_runs=float(search.n_iter),
            notes=(f"The threshold {self.threshold:g} was not chosen by looking at the data.",),
        )

    # --- run --------------------------------------------------------------------------------------

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Draw candidates until a coin says stop.

        There may be none, and most of them need not run.
        """
        bits, number = source.bits, 0  # exact coins: a float probability would be rounded
        while not bernoulli(self.stop, bits):
            number += 1
        return drawn_candidates(plan, number, source)

    def run(
        self, job: Job, candidates: Candidates, source: Randomness, progress: Progress
    ) -> Outcome:
        """Find the first success in the order of drawing, if any."""
        *seeds, last = source.run_seeds(len(candidates) + 1)
        progress.secret_runs()
        first = run_until(job, candidates, seeds, threshold=self.threshold)
        if self.search.refit is True:
            progress.last_training()  # also without a success: its reason must stay secret
        if first is None:
            return Outcome(has_model=False, rows=[], may_stop=True)
        place, run = first
        candidate, model = candidates[place], run.model
        if self.search.refit is True:
            model = train_on_all(job, candidate, last)
        shown = {} if self.search.refit is False else {"best_estimator_": model}
        attributes = {**shown, "best_score_std_": run.std, "found_": True}
        rows = [(candidate, run.score)]
        return Outcome(has_model=model is not None, rows=rows, attributes=attributes)
