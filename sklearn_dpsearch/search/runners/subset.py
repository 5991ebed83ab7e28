"""Tuning on a random subset: its expected size, known in advance, and the training that follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from sklearn.pipeline import Pipeline

from ...errors import did_you_mean
from ...privacy import CountDistribution, Guarantee, PrivacyError
from ...privacy._types import Neighboring
from ...privacy.count_distributions.distributions import as_count_distribution
from ...scoring import Noise, Sensitivity, matched_noise
from ...scoring.validation import Fold, Validation, all_numbers, numbers_where
from .._records import with_parameters
from .._types import Candidate, Distributions, Extrapolate, Parameters, Seed
from ..execution.job import FinalTraining, Job, Split
from ..execution.models import fitted, fresh, ready, releasable, train_last
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.runs import Run, in_the_open
from ..planning.plan import CostModel, Plan
from ..planning.space import SpaceGuarantee
from .best_of import BestOfRunner, share_of_tuning, shown_of
from .extrapolation import Sizes, carried_over, check_rules
from .subset_cost import ON, CostOfSubset, noise_beside_training, secret_membership
from .subset_members import InSubset, OnTheRest, ValidateOn, check_handful, members_of

PARTS_CAN_TRAIN = (
    "A failure to train on a part of the records (an empty part, or a missing class) reveals no more than the model: "
    "parts are large, and classes are known in advance or present in every part."
)
COUNTS = (
    "{} may use the number of its records, which tells who is in the subset: the subset counts as known, without "
    "amplification."
)

# --- how it runs ------------------------------------------------------------------------------------------------------


class SubsetParameters(Parameters, Protocol):
    """Parameters for tuning on a subset."""

    param_distributions: Distributions
    n_iter: float | CountDistribution
    subset_fraction: float
    train_on: Literal["rest", "all"]
    validate_on: ValidateOn
    tuning_share: float | None
    extrapolate: Extrapolate
    warm_start: bool
    score_noise: Guarantee | str
    cv: Any


class SubsetRunner(BestOfRunner):
    """Tune on the subset by the best of K runs, then train the winner on more records.

    Parameters
    ----------
    search : SubsetParameters
    """

    search: SubsetParameters
    shows = ("best_score_std_", "final_params_")

    def __init__(self, search: SubsetParameters) -> None:
        super().__init__(search, search.param_distributions)
        self.distribution = as_count_distribution(search.n_iter).at_least_one()

    @property
    def tuning_share(self) -> float:
        return share_of_tuning(self.search.tuning_share)

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
        members = members_of(search.validate_on, search.cv, search.subset_fraction, relation, n_samples, public)
        sizes = self.sizes(relation, n_samples)
        if sizes.known:
            check_handful(members, search.train_on, sizes.tune / search.subset_fraction)
        return members

    def matched(self, validation: Validation, tuned: Guarantee, final: Guarantee, sensitivity: Sensitivity) -> Noise:
        if not isinstance(validation, OnTheRest):
            return matched_noise(tuned, sensitivity)
        relation = final.neighboring
        amplified = relation != "replace_one" and secret_membership(self.told_its_size, relation)
        return noise_beside_training(final, sensitivity, amplified=amplified)

    def sizes(self, relation: Neighboring, n_samples: int | None) -> Sizes:
        """Expected sizes from public facts: the estimator's own size comes before the number of records."""
        stated = self.candidates_by_family.public_size
        n = n_samples if stated is None and relation != "add_remove" else stated
        whole, q = 1.0 if n is None else float(n), float(self.search.subset_fraction)
        return Sizes(q * whole, (1.0 - q if self.search.train_on == "rest" else 1.0) * whole, n is not None)

    @property
    def told_its_size(self) -> bool:
        """Return whether the estimator can be told how many records to expect, so that it does not count them."""
        return self.candidates_by_family.told_their_size

    def cost(self, validation: Validation) -> CostModel:
        assert isinstance(validation, (InSubset, OnTheRest))
        return CostOfSubset(
            distribution=self.distribution,
            members=validation,
            train_on=self.search.train_on,
            told_its_size=self.told_its_size,
        )

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        if secret_membership(self.told_its_size, relation):
            return (PARTS_CAN_TRAIN,)
        return (PARTS_CAN_TRAIN, COUNTS.format(type(self.search.estimator).__name__))

    # --- run ------------------------------------------------------------------------------------------------------

    def split(self, plan: Plan, candidates: Sequence[Candidate], n_samples: int, source: Randomness) -> Split:
        relation, subset = plan.spent.neighboring, plan.validation
        sizes = self.sizes(relation, n_samples)
        tells = relation != "replace_one" and sizes.known and self.told_its_size
        in_full = [plan.in_full(candidate) for candidate in candidates]
        final = [self._carried_over(plan, candidate, sizes) for candidate in in_full]
        for candidate, full, carried in zip(candidates, in_full, final):
            _check_kept(plan, plan.promises, candidate, candidate, sizes.tune if tells else None)
            _check_kept(plan, plan.final, full, carried, sizes.final if tells else None)
        joins, folds = subset.draw(n_samples, source.random_bytes)
        scored, size_std = self._scored(relation, subset, n_samples, folds)
        records = numbers_where(~joins) if self.search.train_on == "rest" else all_numbers(n_samples)
        return Split(
            folds=folds,
            n_scored=scored,
            size_std=size_std,
            expected=sizes.tune if tells else None,
            final=FinalTraining(records=records, candidates=final, expected=sizes.final if tells else None),
        )

    def _scored(
        self, relation: Neighboring, subset: Validation, n_samples: int, folds: Sequence[Fold]
    ) -> tuple[list[int | None], float]:
        """Numbers of validation records that scores may use, and the standard deviation of the drawn numbers."""
        if relation == "add_remove":
            return [None] * len(folds), 0.0
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
            after = replace(job.afterwards, split=replace(job.split, expected=final.expected))

            def make() -> Any:
                return self._last_model(after, tuned, candidates[best], parameters, seed)

            model = train_last(after, make, final.records, seed, X, y)
        return Outcome(
            found=model is not None,
            rows=[(candidates[best], runs[best].score)],
            attributes={"best_estimator_": model, "final_params_": parameters, **shown_of(runs[best])},
        )

    def dry(self, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> float:
        final = self._carried_over(plan, plan.in_full(candidate), self.sizes(plan.spent.neighboring, None))
        _check_kept(plan, plan.final, plan.in_full(candidate), final, None)
        tuned, score = in_the_open(job, candidate, X, y)
        after = job.afterwards
        model = self._last_model(after, tuned, candidate, final, None)
        releasable(after, fitted(after, model, job.split.folds[0][0], X, y))
        return score

    def _last_model(self, job: Job, tuned: Any, candidate: Candidate, parameters: Candidate, seed: Seed) -> Any:
        """Make the model to be trained last: a new model, or the winner's."""
        if not self.search.warm_start:
            return fresh(job, parameters, seed)
        # some estimators drop their model when a parameter is set, even to the same value
        changed = dict(_changes(candidate, parameters))
        known = tuned.get_params(deep=True)  # its noise may differ: candidates may be trained with more noise
        changed |= {name: new for name, new in job.settings.items() if known.get(name) != new}
        return ready(job, with_parameters(tuned, {warm_start_name(tuned): True, **changed}), seed)

    def _carried_over(self, plan: Plan, candidate: Candidate, sizes: Sizes) -> dict[str, Any]:
        """Extrapolate the candidate's parameters to the final model."""
        known = self.adapter.extrapolation(plan.final.configured(candidate))
        return carried_over(candidate, self.search.extrapolate, known, sizes)


def _changes(candidate: Candidate, parameters: Candidate) -> Iterator[tuple[str, Any]]:
    """Changed parameters; of a nested estimator only its changed ones, so that it keeps its fitted state."""
    for name, new in parameters.items():
        old = candidate[name]
        if new is not old and hasattr(new, "get_params") and type(new) is type(old):
            before = old.get_params(deep=True)
            for inner, value in new.get_params(deep=True).items():
                if not hasattr(value, "get_params") and repr(value) != repr(before.get(inner)):
                    yield f"{name}__{inner}", value
        elif new is not old:
            yield name, new


def warm_start_name(estimator: Any) -> str:
    """Name of the parameter ``warm_start`` of the estimator, or of the last step of a pipeline.

    Raises
    ------
    ValueError
        If the parameter does not exist.
    """
    prefix, inner = "", estimator
    while type(inner) is Pipeline:
        name, inner = inner.steps[-1]
        prefix += f"{name}__"
    if not hasattr(inner, "get_params") or "warm_start" not in inner.get_params(deep=False):
        raise ValueError(
            f"Found warm_start=True, but {type(inner).__name__} has no parameter warm_start. Use an estimator that can "
            "go on from a fitted model (the nets of sklearn_dpsearch.nets can), or leave warm_start=False."
        )
    return f"{prefix}warm_start"


def _check_kept(
    plan: Plan, promises: SpaceGuarantee, candidate: Candidate, parameters: Candidate, expected: float | None
) -> None:
    """Raise unless training with the extrapolated parameters and the expected size keeps the candidate's guarantee."""
    if expected is None and all(parameters[name] is value for name, value in candidate.items()):
        return
    model = promises.configured(parameters)
    told = {} if expected is None else plan.adapter.expecting(model, expected)
    if told is None and plan.spent.neighboring == "zero_out":
        raise PrivacyError(
            f"A candidate ({dict(candidate)!r}) may use the number of its records, unlike the configured estimator: "
            "the total was computed for a secret subset. Search over steps that can all be told the expected number of "
            "records (a method expecting(n))."
        )
    if not promises.keeps(candidate, with_parameters(model, told or {})):
        raise PrivacyError(
            f"Found {dict(parameters)!r} for the final model of the candidate {dict(candidate)!r}, which promises "
            "something else. Parameters on which the guarantee depends must be kept: remove them from extrapolate."
        )
