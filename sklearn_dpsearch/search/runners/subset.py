"""Tuning on a random subset: who is in it, what is known about its size in advance, and the training that follows."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from sklearn.pipeline import Pipeline

from ...privacy import CountLaw, Guarantee, PrivacyError, best_of, subset_then_train
from ...privacy._types import Neighboring
from ...privacy.count_laws.laws import as_law
from ...privacy.errors import did_you_mean
from ...privacy.mechanisms.coins import RandomBytes, coins
from ...privacy.spent import Component
from ...scoring import search_guarantee
from ...scoring.validation import Exposure, Fold, Validation, validation_of
from .._any_make import with_parameters
from .._types import Candidate, Distributions, Extrapolate, Parameters, Seed
from ..execution.job import FinalTraining, Job, Split
from ..execution.models import fitted, fresh, ready, releasable, train_last
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.runs import Run, in_the_open
from ..planning.plan import CostModel, Plan
from ..planning.space import SpaceGuarantee
from .best_of import BestOfRunner
from .extrapolation import Sizes, carried_over, check_rules

#: Records expected in the subset, and in the rest, at least.
HANDFUL = 10

ON = {"rest": "the rest", "all": "all records"}

PARTS_CAN_TRAIN = (
    "Whether a model can be trained on a part of the records (none is in it, or a class is missing) is as private as "
    "the model: parts are large, and classes known in advance or present in every part."
)
COUNTS = (
    "{} may use how many records it is given, which tells who is in the subset: the coins count as known, and nothing "
    "is amplified."
)

# --- who is in the subset ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InSubset(Validation):
    """Validation inside of a subset that each record joins with probability ``fraction``, by a coin of its own."""

    inside: Validation
    fraction: float

    def exposures(self) -> tuple[Exposure, ...]:
        """All the ways in which one run may use one record of the subset."""
        return self.inside.exposures()

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Who joins, shape (n_samples,), and the folds inside as indices of all records."""
        joins = coins(n_samples, self.fraction, random_bytes)
        members = np.flatnonzero(joins)
        inside = self.inside.folds(members.size, random_bytes)
        return joins, [(members[train], members[test]) for train, test in inside]

    @property
    def taking_part(self) -> float:
        return self.fraction


def check_handful(fraction: float, train_on: str, n: float) -> None:
    """Raise if the subset or the rest is expected to hold next to nothing of ``n`` records."""
    parts = {"subset": fraction * n} if train_on == "all" else {"subset": fraction * n, "rest": (1.0 - fraction) * n}
    for name, expected in parts.items():
        if expected < HANDFUL:
            remedy = "Give a larger" if name == "subset" else "Give a smaller"
            raise ValueError(
                f"Found subset_fraction={fraction!r} of {n:g} records (n_samples={n:g}): the {name} is expected to "
                f"hold {expected:.3g} of them, fewer than {HANDFUL}. {remedy} subset_fraction, or use DPRandomSearchCV."
            )


# --- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CostOfSubset:
    """The best of K runs on the subset, and one training on more records.

    Parameters
    ----------
    told_its_size : bool
        Whether the estimator can be told how many records to expect, so that it does not count them.
    """

    law: CountLaw
    exposures: tuple[Exposure, ...]
    fraction: float
    train_on: Literal["rest", "all"]
    told_its_size: bool

    def components(self, promises: SpaceGuarantee, scoring: Guarantee | None) -> tuple[Component, ...]:
        tune = search_guarantee(promises.trained, scoring, self.exposures, partial(best_of, count=self.law))
        secret = secret_coins(self.told_its_size, tune.neighboring)
        total = subset_then_train(tune, promises.worst, self.fraction, self.train_on, secret_coins=secret)
        name = (
            f"tune on a subset (each record with probability {self.fraction:g}) by the best of K runs, K ~ "
            f"{self.law!r}, then train on {ON[self.train_on]}"
        )
        return (Component(name=name, guarantee=total),)


def secret_coins(told_its_size: bool, relation: Neighboring) -> bool:
    """Whether who is in the subset stays secret: no model uses how many records it was given."""
    return relation != "zero_out" or told_its_size


# --- how it runs ------------------------------------------------------------------------------------------------------


class SubsetParameters(Parameters, Protocol):
    """What tuning on a subset needs to know."""

    param_distributions: Distributions
    n_iter: float | CountLaw
    subset_fraction: float
    train_on: Literal["rest", "all"]
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

    def __init__(self, search: SubsetParameters) -> None:
        super().__init__(search, search.param_distributions)
        self.law = as_law(search.n_iter).at_least_one()

    @property
    def score_noise(self) -> Guarantee | str:
        return self.search.score_noise

    def validation(self, relation: Neighboring, n_samples: int | None, public: bool) -> Validation:
        search = self.search
        if search.train_on not in ON:
            raise ValueError(
                f"Found train_on={search.train_on!r}; 'rest' (the records outside the subset) or 'all' is needed."
                f"{did_you_mean(search.train_on, ON)}"
            )
        check_rules(search.extrapolate, self.space.names)
        if search.warm_start:
            warm_start_name(search.estimator)
        if search.cv is not None and not isinstance(search.cv, numbers.Real):
            raise ValueError(
                f"Found cv={search.cv!r}: which records are in the subset, and how many, is random and secret, so "
                "there is nothing to split by index. Use cv as a fraction or a number of folds, or X_public and "
                "y_public."
            )
        sizes = self.sizes(relation, n_samples)
        if sizes.known:
            check_handful(search.subset_fraction, search.train_on, sizes.tune / search.subset_fraction)
        return InSubset(validation_of(search.cv, relation, n_samples, public), search.subset_fraction)

    def sizes(self, relation: Neighboring, n_samples: int | None) -> Sizes:
        """What is expected, from what is public: the estimator's own word before the number of records."""
        stated = self.adapter.public_size(self.search.estimator)
        n = n_samples if stated is None and relation != "add_remove" else stated
        whole, q = 1.0 if n is None else float(n), float(self.search.subset_fraction)
        return Sizes(q * whole, (1.0 - q if self.search.train_on == "rest" else 1.0) * whole, n is not None)

    @property
    def told_its_size(self) -> bool:
        """Whether the estimator can be told how many records to expect, so that it does not count them."""
        return self.adapter.expecting(self.search.estimator, 1.0) is not None

    def cost(self, validation: Validation) -> CostModel:
        return CostOfSubset(
            law=self.law,
            exposures=validation.exposures(),
            fraction=self.search.subset_fraction,
            train_on=self.search.train_on,
            told_its_size=self.told_its_size,
        )

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        if secret_coins(self.told_its_size, relation):
            return (PARTS_CAN_TRAIN,)
        return (PARTS_CAN_TRAIN, COUNTS.format(type(self.search.estimator).__name__))

    # --- run ------------------------------------------------------------------------------------------------------

    def split(self, plan: Plan, candidates: Sequence[Candidate], n_samples: int, source: Randomness) -> Split:
        relation, subset = plan.spent.neighboring, plan.validation
        sizes = self.sizes(relation, n_samples)
        tells = relation != "replace_one" and sizes.known and self.told_its_size
        final = [self._carried_over(plan, candidate, sizes) for candidate in candidates]
        for candidate, carried in zip(candidates, final):
            _check_kept(plan, candidate, candidate, sizes.tune if tells else None)
            _check_kept(plan, candidate, carried, sizes.final if tells else None)
        joins, folds = subset.draw(n_samples, source.random_bytes)
        scored = None if relation == "add_remove" else subset.n_scored(n_samples, len(folds))
        records = np.flatnonzero(~joins) if self.search.train_on == "rest" else np.arange(n_samples)
        return Split(
            folds=folds,
            n_scored=[scored] * len(folds),
            expected=sizes.tune if tells else None,
            final=FinalTraining(records=records, candidates=final, expected=sizes.final if tells else None),
        )

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
        if tuned is not None:
            after = replace(job, split=replace(job.split, expected=final.expected))

            def make() -> Any:
                return self._last_model(after, tuned, candidates[best], parameters, seed)

            model = train_last(after, make, final.records, seed, X, y)
        return Outcome(
            found=model is not None,
            rows=[(candidates[best], runs[best].score)],
            attributes={"best_estimator_": model, "final_params_": parameters},
        )

    def dry(self, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> float:
        final = self._carried_over(plan, candidate, self.sizes(plan.spent.neighboring, None))
        _check_kept(plan, candidate, final, None)
        tuned, score = in_the_open(job, candidate, X, y)
        model = self._last_model(job, tuned, candidate, final, None)
        releasable(job, fitted(job, model, job.split.folds[0][0], X, y))
        return score

    def _last_model(self, job: Job, tuned: Any, candidate: Candidate, parameters: Candidate, seed: Seed) -> Any:
        """The model to be trained last: a new one, or the winner's."""
        if not self.search.warm_start:
            return fresh(job, parameters, seed)
        # setting a parameter to what it was would make some estimators forget their model
        changed = {name: new for name, new in parameters.items() if new is not candidate[name]}
        return ready(job, with_parameters(tuned, {warm_start_name(tuned): True, **changed}), seed)

    def _carried_over(self, plan: Plan, candidate: Candidate, sizes: Sizes) -> dict[str, Any]:
        """The candidate's parameters for the final model."""
        known = self.adapter.extrapolation(plan.promises.configured(candidate))
        return carried_over(candidate, self.search.extrapolate, known, sizes)


def warm_start_name(estimator: Any) -> str:
    """The parameter that makes ``fit`` go on from the fitted model: the estimator's own, or its pipeline's last step's.

    Raises
    ------
    ValueError
        If there is none.
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


def _check_kept(plan: Plan, candidate: Candidate, parameters: Candidate, expected: float | None) -> None:
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
