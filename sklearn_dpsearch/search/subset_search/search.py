"""Tune on a random subset, then train once on more records."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from ...adapters.declared_guarantee import Declared
from ...errors import did_you_mean
from ...ledger import PrivacyLedger
from ...privacy import CountDistribution, Fixed, Guarantee
from ...privacy._cached_property import cached_property
from ...privacy._types import Neighboring
from ...privacy.count_distributions.distributions import as_count_distribution
from ...scoring import Noise, Sensitivity
from ...scoring.noise_matching import matched_noise
from ...scoring.validation import Fold, Validation, all_numbers, numbers_where
from .._base import BasePrivateSearch
from .._records import with_parameters
from .._types import Candidate, Distributions, Extrapolate, Scorer, Seed
from ..execution.job import FinalTraining, Job, Split
from ..execution.models import fitted, fresh, ready, released_in_the_open, train_last
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.runs import Run, in_the_open
from ..planning.grid import is_finite, number_of_points
from ..planning.plan import CostModel, Plan
from ..strategies.best_of import BestOfStrategy, share_of_tuning, shown_of
from .cost import (
    ON,
    USUAL,
    CostOfSubset,
    default_fraction,
    each_is_cheap,
    noise_beside_training,
    secret_membership,
    share_at_no_cost,
)
from .extrapolation import Sizes, carried_over, check_rules
from .final_training import changes, check_kept, warm_start_name
from .members import InSubset, OnTheRest, check_handful, members_of, most_members


class DPSubsetSearchCV(BasePrivateSearch):
    """Search on a random subset that is differentially private as a whole: tune there, then train once on more records.

    The subset is a Poisson sample: every record joins with probability ``subset_fraction``, independently and in
    secret. On the subset the best of a random number of candidates is found, as by ``DPRandomSearchCV``. The winner's
    parameters are extrapolated to the larger number of records, and one final model is trained on the rest or on all
    records. Most candidates never see a given record, so cost and work are little above those of one training run.

    Parameters
    ----------
    estimator : estimator
        A private estimator, as for ``DPRandomSearchCV``.
    param_distributions : dict, list of dicts or "auto"
        Parameter name to a list of values (drawn uniformly) or a distribution with a method ``rvs``. From a list of
        dicts, one dict is drawn uniformly first. Values may be estimators for a step of a pipeline: families compete.
        "auto": the estimator's own space, around its current parameters (``search_space``). Each candidate is drawn
        from a copy of the distribution: one with a state of its own draws the same value each time.
    n_iter : "auto", "each", float or CountDistribution, default="auto"
        Distribution of the number of candidates K, conditional on K >= 1, or its mean: a number stands for
        ``Geometric(mean)``. "each": each candidate of a finite space runs once. "auto": "each" for a short list, where
        it costs no more than ``Geometric(10)`` (docs/learn/subset_search.md); otherwise ``Geometric(10)``.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's noise is scaled until the
        total is ``epsilon``; the noise of candidates and the noise of the final model keep their ratio.
    scoring : str, callable, PrivateScorer or None, default=None
        As for ``DPRandomSearchCV``.
    score_noise : "match" or Guarantee, default="match"
        Noise of one private score. "match": on the rest, 24 times the noise that matches the final training (3 times
        without amplification); in the subset, as private as a candidate's training.
    cv : None, float or int, default=None
        On the rest: the probability with which a record of the rest validates; None is 1. In the subset: a float is the
        probability with which a record of the subset validates; None is 0.2; with an int each record draws a fold.
        Splits by index are not possible.
    subset_fraction : float or "auto", default="auto"
        Probability q with which a record joins the subset, 0 < q < 1. "auto": 0.1; where secret membership amplifies,
        and with few records n and ``epsilon``, 1500 ÷ (n · epsilon), at most 0.3 (docs/learn/subset_search.md).
    train_on : {"rest", "all"}, default="rest"
        Whether the final model is trained on the records outside the subset or on all.
    validate_on : {"rest", "subset"}, default="rest"
        Private records on which candidates are scored: the records outside the subset, which are many and pay for the
        scores and for the final training, or a part of the subset.
    tuning_share : float or None, default=None
        Privacy loss of a candidate's training, as a multiple of the final training's loss: below 1 candidates are
        noisier than the final model, above 1 less noisy. None: 1; or, with ``epsilon`` and known membership in the
        subset (``train_on="rest"``), the share with which the search costs as much as the final training.
    extrapolate : "auto", dict or callable, default="auto"
        Change of the winner's parameters with the number of records. "auto": the rules of the estimator's adapter
        (docs/reference/subset_search.md); parameters without a rule are kept. A dict overrides rules: name of a
        searched parameter to "linear" (in proportion to the number of records), "keep", or a callable (value, n_tune,
        n_final). One callable is used for all parameters that are numbers. Sizes are expected numbers, q·n and (1−q)·n
        (or n).
    warm_start : bool, default=False
        Start the final training from the winner's fitted model; the estimator, or the last step of a pipeline, needs a
        parameter ``warm_start``. At no extra cost.
    guarantee : Guarantee or callable, optional
        Guarantee of one fit, on the caller's word: a guarantee, or a callable (estimator, n_samples) to guarantee.
    n_jobs, pre_dispatch : int, int or str
        As in scikit-learn.
    error_score : float, default=nan
        Score of a candidate that fails; nan is the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data, and shows progress; where the number of
        runs is secret, progress shows only that the search runs. 2 also shows when runs end and the final training
        begins, which tells observers more about the number of runs (docs/learn/planning.md).
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.
    ledger : PrivacyLedger or None, default=None
        Ledger in which every fit is entered before it uses a record; a fit beyond the ledger's budget is refused
        (docs/learn/ledger.md). None: the ledger of the block ``with ledger:`` around the fit, if any.
    checkpoint : str, path or None, default=None
        As for ``DPRandomSearchCV``.
    rehearse : bool, default=True
        As for ``DPRandomSearchCV``.

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float, int
        The winner on the subset, with the score of its model there, which was trained on a part of the records.
    best_score_std_ : float
        Standard error of ``best_score_`` from its noise and from the random number of validation records.
    final_params_ : dict
        The winner's extrapolated parameters, with which the final model was trained.
    best_estimator_ : estimator
        The final model.
    privacy_spent_ : PrivacySpent
        Cost of the whole fit; unpacks as (epsilon, delta).
    cv_results_ : dict
        The released row.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.subset_then_train`` (docs/theory/subset.md, Theorem 2;
    docs/theory/subset_rest.md, Theorem 4; Koskela & Kulkarni 2023). Under replace-one neighbours there is no
    amplification, and the total is larger; so it is under zero-out neighbours if the estimator counts its records. If
    no candidate can be trained and scored, or the final model cannot be trained, ``NoModelError`` is raised with one
    fixed message.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> search = DPSubsetSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=15, guarantee=GaussianDP(mu=0.4), delta=1e-5
    ... )
    >>> one_run, whole = GaussianDP(mu=0.4).epsilon_at(1e-5), search.privacy_cost().epsilon
    >>> round(one_run, 2), round(whole, 2)
    (1.55, 1.58)
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list, StrOptions({"auto"})],
        "n_iter": [Interval(numbers.Real, 1, None, closed="left"), CountDistribution, StrOptions({"auto", "each"})],
        "subset_fraction": [Interval(numbers.Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "train_on": [str],
        "validate_on": [str],
        "tuning_share": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "extrapolate": [str, dict, callable],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Distributions,
        *,
        n_iter: float | CountDistribution | str = "auto",
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: str | Scorer | None = None,
        score_noise: Guarantee | str = "match",
        cv: Any = None,
        subset_fraction: float | Literal["auto"] = "auto",
        train_on: Literal["rest", "all"] = "rest",
        validate_on: Literal["rest", "subset"] = "rest",
        tuning_share: float | None = None,
        extrapolate: Extrapolate = "auto",
        warm_start: bool = False,
        guarantee: Declared | None = None,
        n_jobs: int | None = None,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        rehearse: bool = True,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.score_noise = score_noise
        self.cv = cv
        self.subset_fraction = subset_fraction
        self.train_on = train_on
        self.validate_on = validate_on
        self.tuning_share = tuning_share
        self.extrapolate = extrapolate
        self.warm_start = warm_start
        self.guarantee = guarantee
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.verbose = verbose
        self.random_state = random_state
        self.ledger = ledger
        self.checkpoint = checkpoint
        self.rehearse = rehearse

    def _strategy(self) -> SubsetStrategy:
        return SubsetStrategy(self)


# --- how it runs ------------------------------------------------------------------------------------------------------

PARTS_CAN_TRAIN = (
    "A failure to train on a part of the records (an empty part, or a missing class) reveals no more than the model: "
    "parts are large, and classes are known in advance or present in every part."
)
AT_ANY_PLACE = (
    "Predictions for a record do not depend, to their last bit, on its place in a table: who is in the subset is "
    "secret, and a record in it moves the later ones by a place."
)
COUNTS = (
    "{} may use the number of its records, which tells who is in the subset: the subset counts as known, without "
    "amplification."
)
REPLACED = (
    "Runs and scores hold for a record that is replaced by nothing in its place (zero_out). To replace it by another "
    "one is two such steps, so the total is stated under replace_one."
)


class SubsetStrategy(BestOfStrategy):
    """Tune on the subset by the best of K runs, then train the winner on more records.

    Parameters
    ----------
    search : DPSubsetSearchCV
    """

    search: DPSubsetSearchCV
    shows = ("best_score_std_", "final_params_")

    def __init__(self, search: DPSubsetSearchCV) -> None:
        super().__init__(search, search.param_distributions)
        if search.n_iter == "each" and not is_finite(self.space):
            raise ValueError(
                "Found n_iter='each' and a parameter that is drawn from a distribution; lists of values are needed, so "
                "that each candidate can run once. Give lists, or draw candidates at random, e.g. n_iter=10."
            )
        #: Whether the runs are those of a zero-out search, whose total is carried over to a replaced record.
        self.replaced = False

    def plan_for(self, n_samples: int | None) -> None:
        super().plan_for(n_samples)
        self.__dict__.pop("amplified", None)
        if not self.replaced and (for_presence := self._under_zero_out()) is not None:
            search, self.replaced = copy(self.search), True
            search.estimator, self.search = for_presence, search
            super().plan_for(n_samples)

    def _under_zero_out(self) -> Any:
        """Estimator under zero-out neighbours, for a total under replace-one that the subset amplifies; else None.

        Only where the search sets the noise, so that no noise of the user's is for another relation.
        """
        search, families = self.search, self.candidates_by_family
        if families.relation != "replace_one" or len(families.models) > 1 or not search.epsilon:
            return None
        settings = self.adapter.under(search.estimator, "zero_out")
        if settings is None or not isinstance(search.score_noise, str):
            return None
        found = with_parameters(clone(search.estimator), settings)
        return None if self.adapter.expecting(found, 1.0) is None else found

    @property
    def fraction(self) -> float:
        """Probability with which a record joins the subset."""
        given = self.search.subset_fraction
        if given != "auto":
            return float(given)
        return default_fraction(self.n_samples if self.amplified else None, self.search.epsilon)

    @property
    def each(self) -> bool:  # type: ignore[override]
        """Return whether each candidate runs once."""
        given, epsilon, delta = self.search.n_iter, self.search.epsilon, self.search.delta
        if isinstance(given, str) and given == "auto" and epsilon and delta and is_finite(self.space):
            families = self.candidates_by_family
            return each_is_cheap(
                number_of_points(self.space),
                float(epsilon),
                float(delta),
                self.fraction,
                "all" if self.search.train_on == "all" else "rest",
                families.relation,
                secret_membership(self.told_its_size, families.relation),
            )
        return isinstance(given, str) and given == "each"

    @property
    def distribution(self) -> CountDistribution:  # type: ignore[override]
        """Distribution of the number of runs, which is public where each candidate runs once."""
        if self.each:
            return Fixed(number_of_points(self.space))
        given = self.search.n_iter
        return as_count_distribution(USUAL if isinstance(given, str) else given).at_least_one()

    @cached_property
    def amplified(self) -> bool:
        """Return whether membership in the subset is secret, so that the subset amplifies."""
        relation = self.candidates_by_family.relation
        return relation != "replace_one" and secret_membership(self.told_its_size, relation)

    @property
    def tuning_share(self) -> float:
        search, families = self.search, self.candidates_by_family
        if search.tuning_share is not None or not search.epsilon or self.amplified or search.train_on == "all":
            return share_of_tuning(search.tuning_share)
        pure, delta = all(one.pure_epsilon is not None for one in families.guarantees), float(search.delta or 0.0)
        if not pure and delta == 0.0:
            return share_of_tuning(None)  # the plan says that a delta is missing
        return share_at_no_cost(float(search.epsilon), delta, self.distribution, self.each, pure)

    @property
    def score_noise(self) -> Guarantee | str:
        return self.search.score_noise

    def validation(self, relation: Neighboring, n_samples: int | None, public: bool) -> InSubset | OnTheRest:
        search = self.search
        if search.train_on not in ON:
            raise ValueError(
                f"Found train_on={search.train_on!r}; 'rest' (the records outside the subset) or 'all' is needed."
                f"{did_you_mean(search.train_on, ON)}"
            )
        check_rules(search.extrapolate, self.space.names)
        if search.warm_start:
            for model in self.candidates_by_family.models:
                warm_start_name(model)
        members = members_of(search.validate_on, search.cv, self.fraction, n_samples, public)
        sizes = self.sizes(n_samples)
        if sizes.known:
            check_handful(members, search.train_on, sizes.tune / self.fraction)
        return members

    def matched(self, validation: Validation, tuned: Guarantee, final: Guarantee, sensitivity: Sensitivity) -> Noise:
        if not isinstance(validation, OnTheRest):
            return matched_noise(tuned, sensitivity)
        return noise_beside_training(final, sensitivity, at_no_cost=not self.amplified and self.tuning_share == 1.0)

    def sizes(self, n_samples: int | None) -> Sizes:
        """Expected sizes."""
        whole, q = 1.0 if n_samples is None else float(n_samples), self.fraction
        return Sizes(q * whole, (1.0 - q if self.search.train_on == "rest" else 1.0) * whole, n_samples is not None)

    @property
    def told_its_size(self) -> bool:
        """Return whether the estimator can be told how many records to expect, so that it does not count them."""
        return self.candidates_by_family.told_their_size

    def cost(self, validation: Validation) -> CostModel:
        assert isinstance(validation, (InSubset, OnTheRest))
        return CostOfSubset(
            distribution=self.distribution,
            each=self.each,
            members=validation,
            train_on=self.search.train_on,
            told_its_size=self.told_its_size,
            replaced=self.replaced,
        )

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        if not secret_membership(self.told_its_size, relation):
            return (PARTS_CAN_TRAIN, COUNTS.format(type(self.search.estimator).__name__))
        secret = (AT_ANY_PLACE,) if self.amplified else ()
        return (PARTS_CAN_TRAIN, *secret, *((REPLACED,) if self.replaced else ()))

    def work(self, plan: Plan, n_samples: int) -> str:
        if not plan.request.each:
            return super().work(plan, n_samples)
        return f"each of {number_of_points(plan.space)} candidates once; "

    # --- run ------------------------------------------------------------------------------------------------------

    def split(self, plan: Plan, candidates: Sequence[Candidate], n_samples: int, source: Randomness) -> Split:
        relation, subset = plan.recipe.neighboring, plan.request.validation
        sizes = self.sizes(n_samples)
        tells = relation != "replace_one" and sizes.known and self.told_its_size
        in_full = [plan.in_full(candidate) for candidate in candidates]
        final = [self._carried_over(plan, candidate, sizes) for candidate in in_full]
        for candidate, full, carried in zip(candidates, in_full, final):
            check_kept(plan, plan.promises, candidate, candidate, sizes.tune if tells else None)
            check_kept(plan, plan.final, full, carried, sizes.final if tells else None)
        joins, folds = subset.draw(n_samples, source.random_bytes)
        scored, size_std = self._scored(relation, subset, n_samples, folds)
        records = numbers_where(~joins) if self.search.train_on == "rest" else all_numbers(n_samples)
        return Split(
            folds=folds,
            n_scored=scored,
            size_std=size_std,
            expected=sizes.tune if tells else None,
            places=most_members(n_samples, self.fraction) if tells else None,
            final=FinalTraining(
                recipe=plan.final_recipe,
                records=records,
                candidates=final,
                expected=sizes.final if tells else None,
                places=n_samples if tells else None,
            ),
        )

    def _scored(
        self, relation: Neighboring, subset: Validation, n_samples: int, folds: Sequence[Fold]
    ) -> tuple[list[int], float]:
        """Numbers of validation records that scores may use, and the standard deviation of the drawn numbers."""
        if relation == "replace_one":  # the subset counts as known
            return [len(test) for _, test in folds], 0.0
        expected = subset.n_scored(n_samples, len(folds))
        return [expected] * len(folds), math.sqrt(expected * max(1.0 - expected / n_samples, 0.0))

    def outcome(
        self,
        job: Job,
        candidates: Sequence[Candidate],
        runs: Mapping[int, Run],
        best: int,
        seed: Seed,
        X: Any,
        y: Any,
    ) -> Outcome:
        final, tuned = job.split.final, runs[best].model
        assert final is not None
        parameters, model = final.candidates[best], None
        self.progress.last_training()  # also after a failure: which training failed must stay secret
        if tuned is not None:
            after = job.afterwards(final)

            def make() -> Any:
                return self._last_model(after, tuned, candidates[best], parameters, seed)

            model = train_last(after, make, final.records, seed, X, y)
        return Outcome(
            found=model is not None,
            rows=[(candidates[best], runs[best].score)],
            attributes={"best_estimator_": model, "final_params_": parameters, **shown_of(runs[best])},
        )

    def dry(self, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> float:
        final = self._carried_over(plan, plan.in_full(candidate), self.sizes(None))
        check_kept(plan, plan.final, plan.in_full(candidate), final, None)
        tuned, score = in_the_open(job, candidate, X, y)
        after = replace(job, recipe=plan.final_recipe)
        model = self._last_model(after, tuned, candidate, final, None)
        released_in_the_open(after, fitted(after, model, job.split.folds[0][0], X, y))
        return score

    def _last_model(self, job: Job, tuned: Any, candidate: Candidate, parameters: Candidate, seed: Seed) -> Any:
        """Make the model to be trained last: a new model, or the winner's."""
        if not self.search.warm_start:
            return fresh(job, parameters, seed)
        # some estimators drop their model when a parameter is set, even to the same value
        changed = dict(changes(candidate, parameters))
        known = tuned.get_params(deep=True)  # its noise may differ: candidates may be trained with more noise
        changed |= {name: new for name, new in job.recipe.settings.items() if known.get(name) != new}
        return ready(job, with_parameters(tuned, {warm_start_name(tuned): True, **changed}), seed)

    def _carried_over(self, plan: Plan, candidate: Candidate, sizes: Sizes) -> dict[str, Any]:
        """Extrapolate the candidate's parameters to the final model."""
        known = self.adapter.extrapolation(plan.final.configured(candidate))
        return carried_over(candidate, self.search.extrapolate, known, sizes)
