"""Best of a random number of runs."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from .._documentation import documented
from ..privacy import CountDistribution, Fixed, Guarantee, best_of
from ..privacy._count_distributions.distributions import as_count_distribution
from ..scoring._validation import all_numbers, validation_of
from ._base import BasePrivateSearch
from ._execution.job import FinalTraining, Job, Outcome, Split
from ._execution.models import train_last, unfitted_model
from ._execution.randomness import Randomness
from ._execution.runs import Run
from ._planning.checks import RUNS
from ._planning.plan import Facts, Plan, describe_count, describe_runs
from ._records import Candidates, Distributions, Seed
from ._strategy import BestOfStrategy, all_of, cost_of_runs


@documented
@dataclass(eq=False, repr=False)
class DPRandomSearchCV(BasePrivateSearch):
    """Random search that is differentially private as a whole.

    It releases the best of a random number of private runs. The number of runs K is drawn from a
    public distribution, K candidates are drawn independently and with replacement, each is trained
    and scored privately, and only the best one is released: its parameters, its noisy score and its
    model. K, the losers and their scores never leave ``fit``.

    Parameters
    ----------
    param_distributions : dict, list of dicts or "auto"
        Parameter name to a list of values (drawn uniformly) or a distribution with a method
        ``rvs``. From a list of dicts, one dict is drawn uniformly first. Values may be estimators
        for a step of a pipeline: families compete. "auto": the estimator's own space, around its
        current parameters (``search_space``). Each candidate is drawn from a copy of the
        distribution: one with a state of its own draws the same value each time.
    n_iter : float or CountDistribution, default=10
        Distribution of K, conditional on K >= 1, or its mean: a number stands for
        ``Geometric(mean)``.
    score_noise : "match" or Guarantee, default="match"
        Noise of one private score. "match": as private as the training, at no extra cost.
    cv : None, float, int, splitter or iterable, default=None
        A float: each record validates with this probability, independently. None: a probability
        computed from public numbers (docs/learn/scoring.md); 0.2 where the number of records is
        private. An int: each record draws a fold. A splitter or indices: for replace-one and
        zero-out guarantees, accounted by the worst record.
    refit : "winner", True or False, default="winner"
        "winner": release the winning run's own model, at no cost (with several folds, the first
        fold's). True: one more training on all records, composed into the total. False: no model.
    tuning_share : float or None, default=None
        With ``refit=True``: privacy loss of a candidate's training, as a multiple of the refit's
        loss. None: 1.
    release : {"best", "all"}, default="best"
        "all": a fixed number of runs (integer ``n_iter``), every score released, accounted by
        composition.

    Attributes
    ----------
    best_params_, best_score_, best_estimator_, best_index_ : dict, float, estimator, int
        The release.
    best_score_std_ : float
        Standard error of ``best_score_`` from its noise; 0 on public validation data.
    cv_results_ : dict
        The released rows: one with ``release="best"``.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.best_of`` (docs/theory/best_of.md, Theorem 1). The time
    that ``fit`` takes tells something about K; timing is outside the guarantee.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> X, y = load_iris(return_X_y=True)
    >>> promise = PureDP(epsilon=0.1)
    >>> search = DPRandomSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, n_iter=5, guarantee=promise)
    >>> round(search.privacy_cost(len(X)).epsilon, 3)
    0.233
    """

    param_distributions: Distributions
    _: KW_ONLY
    n_iter: float | CountDistribution = 10
    score_noise: Guarantee | str = "match"
    cv: Any = None
    refit: bool | str = "winner"
    tuning_share: float | None = None
    release: str = "best"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list, StrOptions({"auto"})],
        "n_iter": RUNS,
        "refit": [StrOptions({"winner"}), "boolean"],
        "tuning_share": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "release": [StrOptions({"best", "all"})],
    }

    def _strategy(self) -> RandomStrategy:
        return RandomStrategy(self, self._distribution())

    def _distribution(self) -> CountDistribution:
        if self.release == "best":
            return as_count_distribution(self.n_iter).at_least_one()
        if isinstance(self.n_iter, Fixed):
            return self.n_iter
        if not isinstance(self.n_iter, CountDistribution) and float(self.n_iter).is_integer():
            return Fixed(int(self.n_iter))
        raise ValueError(
            f"Found n_iter={self.n_iter!r} with release='all'. Releasing every score needs a fixed "
            "number of runs: give an integer n_iter, or release='best'."
        )


# --- how it runs ----------------------------------------------------------------------------------


class RandomStrategy(BestOfStrategy):
    """The best of K runs, or all of a fixed number.

    Parameters
    ----------
    search : DPRandomSearchCV
    distribution : CountDistribution
    """

    search: DPRandomSearchCV

    def __init__(self, search: DPRandomSearchCV, distribution: CountDistribution) -> None:
        super().__init__(search, search.param_distributions)
        self.distribution = distribution
        self.releases_all = search.release == "all"

    def facts(self, n_samples: int | None, public: bool) -> Facts:
        search, number = self.search, int(self.distribution.mean)
        families, scorer = self.families(n_samples), self.scorer(public)
        validation = validation_of(search.cv, n_samples, public, search.epsilon)
        refit, share = search.refit is True, search.tuning_share
        if share is not None and not refit:
            raise ValueError(
                f"Found tuning_share={share!r} with refit={search.refit!r}: no model is trained "
                "after the choice, so candidates have nothing to be noisier than. Set refit=True, "
                "or leave tuning_share=None."
            )
        cost = partial(cost_of_runs, exposures=validation.exposures(), refit=refit)
        if self.releases_all:
            theorem = partial(all_of, number=number)
            cost = partial(cost, name=f"all of {number} runs", theorem=theorem)
        else:
            name = f"best of K runs, K ~ {describe_count(self.distribution)}"
            cost = partial(cost, name=name, theorem=partial(best_of, count=self.distribution))
        return self.resolved(
            families,
            public,
            scorer=scorer,
            validation=validation,
            cost=cost,
            distribution=self.distribution,
            expected_runs=float(self.distribution.mean),
            tuning_share=1.0 if share is None else float(share),
            work=describe_runs(self.distribution),
        )

    def split(
        self, plan: Plan, candidates: Candidates, n_samples: int, source: Randomness
    ) -> Split:
        drawn = super().split(plan, candidates, n_samples, source)
        if self.search.refit is not True:
            return drawn
        in_full = [plan.in_full(candidate) for candidate in candidates]
        settings, records = plan.final_settings, all_numbers(n_samples)
        final = FinalTraining(settings=settings, records=records, candidates=in_full)
        return replace(drawn, final=final)

    def outcome(
        self, job: Job, candidates: Candidates, runs: Mapping[int, Run], best: int, seed: Seed
    ) -> Outcome:
        model, final = runs[best].model, job.split.final
        if final is not None and model is not None:
            after = job.afterwards(final)
            make = partial(unfitted_model, after, final.candidates[best], seed)
            model = train_last(after, make, final.records, seed)
        shown = {} if self.search.refit is False else {"best_estimator_": model}
        return Outcome(
            has_model=model is not None,
            rows=[(candidates[i], run.score) for i, run in runs.items()],
            best=list(runs).index(best),
            attributes={**shown, "best_score_std_": runs[best].std},
        )
