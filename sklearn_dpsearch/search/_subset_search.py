"""Tune on a random subset, then train once on more records."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from .._documentation import documented
from ..errors import did_you_mean
from ..privacy import CountDistribution, Fixed, Guarantee, PrivacyError
from ..privacy._checks import Neighboring
from ..privacy._count_distributions.distributions import as_count_distribution
from ..scoring._validation import Validation, all_numbers, numbers_where
from . import _final_training as final_training
from . import _random_subset as random_subset
from ._base import BasePrivateSearch
from ._execution import models
from ._execution.job import FinalTraining, Job, Outcome, Split
from ._execution.randomness import Randomness
from ._execution.runs import Run, train_in_the_open
from ._planning.checks import RUNS
from ._planning.families import RELATION, Families, families_of
from ._planning.plan import Facts, Plan, describe_runs
from ._planning.space_guarantee import space_guarantee
from ._records import Candidate, Candidates, Distributions, Extrapolate, Seed, with_parameters
from ._strategy import BestOfStrategy


@documented
@dataclass(eq=False, repr=False)
class DPSubsetSearchCV(BasePrivateSearch):
    """Search on a random subset that is differentially private as a whole.

    It tunes on the subset, and then trains once on more records. The subset is a Poisson sample:
    every record joins with probability ``subset_fraction``, independently and in secret. On the
    subset the best of a random number of candidates is found, as by ``DPRandomSearchCV``. The
    winner's parameters are extrapolated to the larger number of records, and one final model is
    trained on the rest or on all records. Most candidates never see a given record, so cost and
    work are little above those of one training run.

    Parameters
    ----------
    param_distributions : dict, list of dicts or "auto"
        Parameter name to a list of values (drawn uniformly) or a distribution with a method
        ``rvs``. From a list of dicts, one dict is drawn uniformly first. Values may be estimators
        for a step of a pipeline: families compete. "auto": the estimator's own space, around its
        current parameters (``search_space``). Each candidate is drawn from a copy of the
        distribution: one with a state of its own draws the same value each time.
    n_iter : "auto", "each", float or CountDistribution, default="auto"
        Distribution of the number of candidates K, conditional on K >= 1, or its mean: a number
        stands for ``Geometric(mean)``. "each": each candidate of a finite space runs once. "auto":
        "each" for a short list, where it costs no more than ``Geometric(10)``
        (docs/learn/subset_search.md); otherwise ``Geometric(10)``.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's noise is
        scaled until the total is ``epsilon``; the noise of candidates and the noise of the final
        model keep their ratio.
    score_noise : "match" or Guarantee, default="match"
        Noise of one private score. "match": on the rest, 24 times the noise that matches the final
        training (3 times without amplification); in the subset, as private as a candidate's
        training.
    cv : None, float or int, default=None
        On the rest: the probability with which a record of the rest validates; None is 1. In the
        subset: a float is the probability with which a record of the subset validates; None is 0.2;
        with an int each record draws a fold. Splits by index are not possible.
    subset_fraction : float or "auto", default="auto"
        Probability q with which a record joins the subset, 0 < q < 1. "auto": 0.1; where secret
        membership amplifies, and with few records n and ``epsilon``, 1500 ÷ (n · epsilon), at most
        0.3 (docs/learn/subset_search.md).
    train_on : {"rest", "all"}, default="rest"
        Whether the final model is trained on the records outside the subset or on all.
    validate_on : {"rest", "subset"}, default="rest"
        Private records on which candidates are scored: the records outside the subset, which are
        many and pay for the scores and for the final training, or a part of the subset.
    tuning_share : float or None, default=None
        Privacy loss of a candidate's training, as a multiple of the final training's loss: below 1
        candidates are noisier than the final model, above 1 less noisy. None: 1; or, with
        ``epsilon`` and known membership in the subset (``train_on="rest"``), the share with which
        the search costs as much as the final training.
    extrapolate : "auto", dict or callable, default="auto"
        Change of the winner's parameters with the number of records. "auto": the rules of the
        estimator's adapter (docs/reference/subset_search.md); parameters without a rule are kept. A
        dict overrides rules: name of a searched parameter to "linear" (in proportion to the number
        of records), "keep", or a callable (value, n_tune, n_final). One callable is used for all
        parameters that are numbers. Sizes are expected numbers, q·n and (1−q)·n (or n).
    warm_start : bool, default=False
        Start the final training from the winner's fitted model; the estimator, or the last step of
        a pipeline, needs a parameter ``warm_start``. At no extra cost.

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float, int
        The winner on the subset, with the score of its model there, which was trained on a part of
        the records.
    best_score_std_ : float
        Standard error of ``best_score_`` from its noise and from the random number of validation
        records.
    final_params_ : dict
        The winner's extrapolated parameters, with which the final model was trained.
    best_estimator_ : estimator
        The final model.
    cv_results_ : dict
        The released row.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.subset_then_train`` (docs/theory/subset.md, Theorem 2;
    docs/theory/subset_rest.md, Theorem 4; Koskela & Kulkarni 2023). Under replace-one neighbours a
    record that changes is one that is blanked and one that takes the blank's place; the subset
    amplifies both, for models that can be stated under zero-out neighbours where the search sets
    their noise (``epsilon=``), or where they promise for a replaced record what they did. Elsewhere
    it does not, and the total is larger; so it is if the estimator counts its records. If no
    candidate can be trained and scored, or the final model cannot be trained, ``NoModelError`` is
    raised with one fixed message.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> search = DPSubsetSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=15, delta=1e-5,
    ...     guarantee=GaussianDP(mu=0.4),
    ... )
    >>> one_run, whole = GaussianDP(mu=0.4).epsilon_at(1e-5), search.privacy_cost().epsilon
    >>> round(one_run, 2), round(whole, 2)
    (1.55, 1.58)
    """

    param_distributions: Distributions
    _: KW_ONLY
    n_iter: float | CountDistribution | str = "auto"
    score_noise: Guarantee | str = "match"
    cv: Any = None
    subset_fraction: float | Literal["auto"] = "auto"
    train_on: Literal["rest", "all"] = "rest"
    validate_on: Literal["rest", "subset"] = "rest"
    tuning_share: float | None = None
    extrapolate: Extrapolate = "auto"
    warm_start: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list, StrOptions({"auto"})],
        "n_iter": [*RUNS, StrOptions({"auto", "each"})],
        "subset_fraction": [Interval(numbers.Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "train_on": [str],
        "validate_on": [str],
        "tuning_share": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "extrapolate": [str, dict, callable],
        "warm_start": ["boolean"],
    }

    def _strategy(self) -> SubsetStrategy:
        return SubsetStrategy(self)


# --- how it runs ----------------------------------------------------------------------------------

PARTS_CAN_TRAIN = (
    "A failure to train on a part of the records (an empty part, or a missing class) reveals no "
    "more than the model: parts are large, and classes are known in advance or present in every "
    "part."
)
PLACE_INDEPENDENCE = (
    "What is read of a record, and predicted for it, does not depend, to the last bit, on its "
    "place in a table: who is in the subset is secret, and a record in it moves the later ones by "
    "a place."
)
NO_SECRECY = (
    "{} may use the number of its records, which tells who is in the subset: the subset counts as "
    "known, without amplification."
)
REPLACED_RECORD = (
    "Runs and scores hold for a record that is replaced by nothing in its place (zero_out). To "
    "replace it by another one is two such steps, so the total is stated under replace_one."
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
        if search.n_iter == "each" and not self.space.is_finite:
            raise ValueError(
                "Found n_iter='each' and a parameter that is drawn from a distribution; lists of "
                "values are needed, so that each candidate can run once. Give lists, or draw "
                "candidates at random, e.g. n_iter=10."
            )

    def check_partitions(self, public: bool) -> None:
        if self.search.validate_on == "rest" and self.search.cv is None and not public:
            raise PrivacyError(
                "Found cv=None and partitions of Dask: all records outside of the subset would "
                "leave their workers to score candidates. Give the share of them that validates, "
                "e.g. cv=0.1, or validate_on='subset'. Nothing was spent."
            )

    # --- plan -------------------------------------------------------------------------------------

    def facts(self, n_samples: int | None, public: bool) -> Facts:
        search = self.search
        families, replaced = self._for_presence(n_samples)
        relation, told_its_size = families.relation, families.told_their_size
        secret = random_subset.secret_membership(told_its_size, relation)
        amplified = secret and relation != "replace_one"
        if search.subset_fraction == "auto":
            n = n_samples if amplified else None
            fraction = random_subset.default_fraction(n, search.epsilon)
        else:
            fraction = float(search.subset_fraction)
        scorer, members = self.scorer(public), self._members(families, fraction, n_samples, public)
        exhaustive = self._is_exhaustive(fraction, relation, secret)
        distribution = self._distribution(exhaustive)
        share = self._tuning_share(families, amplified, distribution, exhaustive)
        cost = partial(
            random_subset.cost_of_subset,
            distribution=distribution,
            exhaustive=exhaustive,
            members=members,
            train_on=search.train_on,
            told_its_size=told_its_size,
            replaced=replaced,
        )
        assumptions = (PLACE_INDEPENDENCE,) * amplified + (REPLACED_RECORD,) * replaced
        return self.resolved(
            families,
            public,
            scorer=scorer,
            validation=members,
            cost=cost,
            distribution=distribution,
            expected_runs=float(distribution.mean),
            exhaustive=exhaustive,
            factor_of_scores=_factor_of_scores(members, amplified, share),
            tuning_share=share,
            notes=(
                PARTS_CAN_TRAIN,
                *(assumptions if secret else (NO_SECRECY.format(type(search.estimator).__name__),)),
            ),
            work=describe_runs(distribution, exhaustive),
        )

    def _for_presence(self, n_samples: int | None) -> tuple[Families, bool]:
        """Families under zero-out neighbours where these serve, else as given.

        Zero-out neighbours serve a total under replace-one that the subset amplifies, but only
        where no noise of the user's is for another relation: the search sets it, or each candidate
        promises for a replaced record what it does as configured.
        """
        search, families = self.search, self.families(n_samples)
        by_user = len(families.models) > 1 or not isinstance(search.score_noise, str)
        if families.relation != "replace_one" or by_user:
            return families, False
        settings = self.adapter.under(search.estimator, "zero_out")
        if settings is None or not (
            families.calibrated or set(self.space.names).isdisjoint(settings)
        ):
            return families, False
        estimator = with_parameters(clone(search.estimator), settings)
        calibrated = families.calibrated
        presence = families_of(
            estimator, self.adapter, self.space, n_samples, calibrated=calibrated
        )
        if self.adapter.expecting(estimator, 1.0) is None or presence.relation != "zero_out":
            return families, False
        if calibrated or _replaced_promises(presence) == _replaced_promises(families):
            return presence, True
        return families, False

    def _is_exhaustive(self, fraction: float, relation: Neighboring, secret: bool) -> bool:
        """Return whether each candidate runs once."""
        n_iter, epsilon, delta = self.search.n_iter, self.search.epsilon, self.search.delta
        if isinstance(n_iter, str) and n_iter == "each":
            return True
        if not (isinstance(n_iter, str) and epsilon and delta and self.space.is_finite):
            return False
        budget, number = (float(epsilon), float(delta)), self.space.size()
        train_on = "all" if self.search.train_on == "all" else "rest"
        return random_subset.each_is_cheap(number, *budget, fraction, train_on, relation, secret)

    def _distribution(self, exhaustive: bool) -> CountDistribution:
        """Distribution of the number of runs, which is public where each candidate runs once."""
        if exhaustive:
            return Fixed(self.space.size())
        n_iter = self.search.n_iter
        mean = random_subset.USUAL_RUNS if isinstance(n_iter, str) else n_iter
        return as_count_distribution(mean).at_least_one()

    def _tuning_share(
        self, families: Families, amplified: bool, distribution: CountDistribution, exhaustive: bool
    ) -> float:
        """Privacy loss of a candidate's training, as a share of the final training's loss."""
        search, delta = self.search, float(self.search.delta or 0.0)
        if search.tuning_share is not None:
            return float(search.tuning_share)
        pure = all(run.guarantee.pure_epsilon is not None for run in families.runs)
        if not search.epsilon or amplified or search.train_on == "all" or not (pure or delta):
            return 1.0  # without any delta the plan says that one is missing
        epsilon = float(search.epsilon)
        return random_subset.share_at_no_cost(epsilon, delta, distribution, exhaustive, pure)

    def _members(
        self, families: Families, fraction: float, n_samples: int | None, public: bool
    ) -> random_subset.InSubset | random_subset.OnTheRest:
        search = self.search
        if search.train_on not in random_subset.TRAINING_RECORDS:
            raise ValueError(
                f"Found train_on={search.train_on!r}; 'rest' (the records outside the subset) or "
                f"'all' is needed.{did_you_mean(search.train_on, random_subset.TRAINING_RECORDS)}"
            )
        final_training.check_rules(search.extrapolate, self.space.names)
        if search.warm_start:
            for model in families.models:
                final_training.warm_start_name(model)
        members = random_subset.members_of(
            search.validate_on, search.cv, fraction, n_samples, public
        )
        if n_samples is not None:
            random_subset.check_handful(members, search.train_on, float(n_samples))
        return members

    # --- run --------------------------------------------------------------------------------------

    def split(
        self, plan: Plan, candidates: Candidates, n_samples: int, source: Randomness
    ) -> Split:
        relation, subset = plan.families.relation, plan.validation
        assert isinstance(subset, random_subset.InSubset | random_subset.OnTheRest)
        sizes = self.sizes(plan, n_samples)
        tells = relation != "replace_one" and plan.families.told_their_size
        tune, train = (sizes.tune, sizes.final) if tells else (None, None)
        in_full = [plan.in_full(candidate) for candidate in candidates]
        final = [self._carried_over(plan, candidate, sizes) for candidate in in_full]
        for candidate, full, carried in zip(candidates, in_full, final):
            final_training.check_guarantee_kept(plan.promises, candidate, candidate, tune)
            final_training.check_guarantee_kept(plan.final, full, carried, train)
        joins, folds = subset.draw(n_samples, source.random_bytes)
        if relation == "replace_one":  # the subset counts as known
            scored, size_std = [len(test) for _, test in folds], 0.0
        else:
            expected = subset.n_scored(n_samples, len(folds))
            scored = [expected] * len(folds)
            size_std = math.sqrt(expected * max(1.0 - expected / n_samples, 0.0))
        records = (
            numbers_where(~joins) if self.search.train_on == "rest" else all_numbers(n_samples)
        )
        return Split(
            folds=folds,
            n_scored=scored,
            size_std=size_std,
            expected=tune,
            places=random_subset.most_members(n_samples, subset.fraction) if tells else None,
            final=FinalTraining(
                settings=plan.final_settings,
                records=records,
                candidates=final,
                expected=train,
                places=n_samples if tells else None,
            ),
        )

    def sizes(self, plan: Plan, n_samples: int | None) -> final_training.Sizes:
        """Expected numbers of records that tune and that train last; of unknown numbers shares."""
        members, n = plan.validation, 1.0 if n_samples is None else float(n_samples)
        assert isinstance(members, random_subset.InSubset | random_subset.OnTheRest)
        trained = 1.0 - members.fraction if self.search.train_on == "rest" else 1.0
        return final_training.Sizes(members.fraction * n, trained * n)

    def outcome(
        self, job: Job, candidates: Candidates, runs: Mapping[int, Run], best: int, seed: Seed
    ) -> Outcome:
        final, run = job.split.final, runs[best]
        assert final is not None
        parameters, model = final.candidates[best], None
        if run.model is not None:
            after = job.afterwards(final)
            make = partial(self._last_model, after, run.model, candidates[best], parameters, seed)
            model = models.train_last(after, make, final.records, seed)
        shown = {"best_estimator_": model, "final_params_": parameters, "best_score_std_": run.std}
        rows = [(candidates[best], run.score)]
        return Outcome(has_model=model is not None, rows=rows, attributes=shown)

    def dry(self, plan: Plan, job: Job, candidate: Candidate, seed: Seed = None) -> float:
        final = self._carried_over(plan, plan.in_full(candidate), self.sizes(plan, None))
        final_training.check_guarantee_kept(plan.final, plan.in_full(candidate), final, None)
        first, last = models.spawn_seeds(seed, 2)
        tuned, score = train_in_the_open(job, candidate, first)
        after = replace(job, settings=plan.final_settings)
        model = self._last_model(after, tuned, candidate, final, last)
        fitted = models.fit_model(after, model, job.split.folds[0][0])
        models.released_in_the_open(after, fitted)
        return score

    def _last_model(
        self, job: Job, tuned: Any, candidate: Candidate, parameters: Candidate, seed: Seed
    ) -> Any:
        """Make the model to be trained last: a new model, or the winner's."""
        if not self.search.warm_start:
            return models.unfitted_model(job, parameters, seed)
        # some estimators drop their model when a parameter is set, even to the same value
        changed = dict(final_training.changed_parameters(candidate, parameters))
        # its noise may differ: candidates may be trained with more noise
        tuned_parameters = tuned.get_params(deep=True)
        changed |= {
            name: new for name, new in job.settings.items() if tuned_parameters.get(name) != new
        }
        changed = {final_training.warm_start_name(tuned): True, **changed}
        return models.with_own_randomness(job, with_parameters(tuned, changed), seed)

    def _carried_over(
        self, plan: Plan, candidate: Candidate, sizes: final_training.Sizes
    ) -> dict[str, Any]:
        """Extrapolate the candidate's parameters to the final model."""
        rules = self.adapter.extrapolation(plan.final.configured(candidate))
        return final_training.extrapolated(candidate, self.search.extrapolate, rules, sizes)


def _factor_of_scores(members: Validation, amplified: bool, share: float) -> int | None:
    """Factor of the noise of a score on the rest; None in the subset."""
    if not isinstance(members, random_subset.OnTheRest):
        return None
    equal = not amplified and share == 1.0
    return random_subset.FACTOR_AT_NO_COST if equal else random_subset.FACTOR_OF_SCORES


def _replaced_promises(families: Families) -> list[Guarantee]:
    """Guarantee of each candidate, as configured, for a replaced record."""
    runs = space_guarantee(replace(families, relations=(RELATION,)), families.space, {}).runs
    return [run.guarantee for family in runs for run in family]
