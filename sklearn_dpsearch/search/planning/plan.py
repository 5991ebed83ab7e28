"""The plan of a search: what will run and what it will cost, computed before any data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from ...adapters import Adapter
from ...privacy import (
    BudgetUnreachableError,
    CountLaw,
    Guarantee,
    LeakingEstimatorError,
    MissingDeltaError,
    PrivacyError,
    calibrate,
    compose,
)
from ...privacy._types import Neighboring
from ...privacy.spent import Component, PrivacySpent
from ...scoring import Noise, PrivateScorer, Sensitivity, noise_for
from ...scoring.validation import IndexFolds, Validation
from .._any_make import with_parameters
from .._types import Scorer
from .space import Space, SpaceGuarantee

PRIVATE_SIZE = (
    "which is private (neighbours: add_remove): the total would tell it. Fix its sampling rate and number of steps, or "
    "declare guarantee= for any number of records."
)
SMALLER_SIZE = (
    "but validation takes part of them away (it differs for {} and {}). Fix its sampling rate and number of steps, "
    "give X_public and y_public for scoring, or declare guarantee= for any number of records."
)

VALID_RECORDS = (
    "Every possible record is valid input for the estimator (finite numbers, known labels): one that is not could "
    "make all candidates fail, and that shows."
)

SIZE_OF_DELTA = (
    "delta={:g} is well below 1 divided by the number of records. That number is private (neighbours: add_remove), so "
    "the two were not compared."
)


class CostModel(Protocol):
    """What a search releases, as a value that a plan asks for its price at any noise of the estimator."""

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        """What is released, one component each; the total is their composition.

        Parameters
        ----------
        promises : SpaceGuarantee
            What training candidates promises.
        scoring : Guarantee or None
            What one private score promises; None where scores are on public data, or not released.
        final : SpaceGuarantee
            What training after the choice promises: the same, unless candidates are trained with more noise.
        """


class Matching(Protocol):
    """The noise of a score that the user left to the search."""

    def __call__(
        self, validation: Validation, tuned: Guarantee, final: Guarantee, sensitivity: Sensitivity, /
    ) -> Noise: ...


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a search releases and what that costs, for one setting of the estimator's noise."""

    promises: SpaceGuarantee
    final: SpaceGuarantee
    noise: Noise | None
    components: tuple[Component, ...]

    @property
    def total(self) -> Guarantee:
        """What everything that is released promises together."""
        first, *others = (component.guarantee for component in self.components)
        return compose(first, *others) if others else first


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that is fixed before the data is touched.

    Candidates are trained with ``settings`` and keep ``promises``; a training after the choice is one with
    ``final_settings`` that keeps ``final``. They differ only where candidates are trained with more noise.
    """

    law: CountLaw | None
    adapter: Adapter
    space: Space
    promises: SpaceGuarantee
    final: SpaceGuarantee
    validation: Validation
    scorer: Scorer
    noise: Noise | None
    settings: dict[str, Any]
    final_settings: dict[str, Any]
    spent: PrivacySpent


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for, checked: the inputs of a plan."""

    estimator: Any
    adapter: Adapter
    space: Space
    law: CountLaw | None
    validation: Validation
    scorer: Scorer
    score_noise: Guarantee | str
    matched: Matching
    tuning_share: float
    epsilon: float | None
    delta: float | None
    n_samples: int | None
    cost: CostModel
    notes: tuple[str, ...]


def make_plan(request: Request) -> Plan:
    """Calibrate if a total was asked for, and state what the whole will cost."""
    settings = {} if request.epsilon is None else _scaled(request, _calibrated(request))
    costs, for_tuning = _costs(request, settings), _for_tuning(request, settings)
    delta = _delta(request, costs.total)
    spent = PrivacySpent(
        guarantee=costs.total,
        delta=delta,
        components=costs.components,
        assumptions=(
            *costs.promises.assumptions,
            *request.notes,
            *_size_of_delta(delta, costs.total.neighboring, request),
        ),
    )
    return Plan(
        law=request.law,
        adapter=request.adapter,
        space=request.space,
        promises=costs.promises,
        final=costs.final,
        validation=request.validation,
        scorer=request.scorer,
        noise=costs.noise,
        settings=for_tuning,
        final_settings=_in_full(request, settings, for_tuning),
        spent=spent,
    )


def notes_of(public: bool, random_state: int | np.random.RandomState | None) -> tuple[str, ...]:
    """What every search's total rests on, as plain sentences."""
    notes = [VALID_RECORDS]
    if public:
        notes.append("The validation data X_public, y_public is public and contains none of the private records.")
    if random_state is not None:
        notes.append(
            f"A known seed (random_state={random_state!r}) voids the guarantee towards everyone who knows it: it is "
            "for tests only."
        )
    return tuple(notes)


def training_relation(
    estimator: Any, adapter: Adapter, space: Space, n_samples: int | None, *, calibrated: bool
) -> Neighboring:
    """Neighbouring relation of the training; an estimator that is to be calibrated need not state its noise."""
    if calibrated:
        estimator = with_parameters(clone(estimator), adapter.scaled(estimator, 1.0, frozenset(space.names)))
    return adapter.training_run(estimator, n_samples).guarantee.neighboring


def _costs(request: Request, settings: dict[str, Any]) -> Costs:
    configured = with_parameters(clone(request.estimator), settings)
    final = promises = SpaceGuarantee(request.adapter, configured, request.space, request.n_samples)
    _check_sizes(request, configured, final)
    if request.tuning_share < 1.0:
        tuned = with_parameters(clone(request.estimator), _for_tuning(request, settings))
        promises = SpaceGuarantee(request.adapter, tuned, request.space, request.n_samples)
    noise, scoring = _scoring(request, promises.one_run, final.one_run)
    components = request.cost.components(promises, scoring, final)
    return Costs(promises=promises, final=final, noise=noise, components=components)


def _for_tuning(request: Request, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with which a candidate's training loses ``tuning_share`` times what the final training loses."""
    share, configured = request.tuning_share, with_parameters(clone(request.estimator), settings)
    if share == 1.0:
        return settings
    try:
        more = request.adapter.scaled(configured, share, frozenset(request.space.names))
    except PrivacyError as error:
        raise PrivacyError(
            f"Found tuning_share={share!r}, but the noise of candidates cannot be set: {error} Or set tuning_share=1.0."
        ) from error
    _check_not_searched(request, more, f"tuning_share={share!r}", "set tuning_share=1.0")
    return {**settings, **more}


def _in_full(request: Request, settings: dict[str, Any], for_tuning: dict[str, Any]) -> dict[str, Any]:
    """Settings that also undo what others set: a winner may go on training with them."""
    known = with_parameters(clone(request.estimator), settings).get_params(deep=True) if for_tuning else {}
    return {**{name: known[name] for name in for_tuning if name in known}, **settings}


def _check_sizes(request: Request, configured: Any, promises: SpaceGuarantee) -> None:
    """A guarantee that depends on the number of records cannot be stated for parts of random size.

    Nor where that number is private: what is reported would tell it.
    """
    n, private = request.n_samples, promises.one_run.neighboring == "add_remove"
    if n is None or not (private or request.validation.training_sizes_vary):
        return
    sizes = (
        {len(train) for train, _ in request.validation.given}
        if isinstance(request.validation, IndexFolds)
        else {max(n // 2, 1)}
    )
    for size in sizes:
        if SpaceGuarantee(request.adapter, configured, request.space, size).one_run != promises.one_run:
            raise PrivacyError(
                f"The guarantee of {type(request.estimator).__name__} depends on the number of records, "
                + (PRIVATE_SIZE if private else SMALLER_SIZE.format(n, size))
            )


def _scoring(request: Request, tuned: Guarantee, final: Guarantee) -> tuple[Noise | None, Guarantee | None]:
    """Noise of one private score and its guarantee; None, None on public data."""
    if not isinstance(request.scorer, PrivateScorer) or not any(use.scorings for use in request.validation.exposures()):
        return None, None
    sensitivity = request.scorer.sensitivity(tuned.neighboring)
    given = request.score_noise
    if isinstance(given, str):
        noise = request.matched(request.validation, tuned, final, sensitivity)
    else:
        noise = noise_for(given, sensitivity)
    return noise, noise.guarantee(sensitivity, tuned.neighboring)


def _delta(request: Request, total: Guarantee) -> float:
    if request.delta is not None:
        if request.delta == 0 and total.pure_epsilon is None:
            raise MissingDeltaError(_NEED_DELTA.format("delta=0", total.neighboring))
        return float(request.delta)
    if total.pure_epsilon is None:
        raise MissingDeltaError(_NEED_DELTA.format("delta=None", total.neighboring))
    return 0.0


def _size_of_delta(delta: float, relation: Neighboring, request: Request) -> tuple[str, ...]:
    """Raise for a δ that promises nothing to so many records; a sentence where their number is private.

    Publishing one record, picked at random, in full is (0, 1/n)-private. Nothing here may depend on a number of records
    that is private: an error would tell it.
    """
    stated = request.adapter.public_size(request.estimator)
    n = request.n_samples if stated is None and relation != "add_remove" else stated
    if n is not None and delta * n >= 1:
        raise PrivacyError(
            f"Found delta={delta:g} for {n:g} records: publishing one of them in full, picked at random, is private at "
            f"delta = 1/n = {1 / n:.3g}, so this delta promises nobody anything. Give a delta well below it, e.g. "
            f"delta={0.01 / n:.0e}."
        )
    if delta > 0 and n is None and relation == "add_remove":
        return (SIZE_OF_DELTA.format(delta),)
    return ()


_NEED_DELTA = (
    "Found {} although what is released is not purely private (neighbours: {}), so epsilon can only be stated with a "
    "delta > 0. Give delta, well below 1 divided by the number of records, e.g. delta=1e-6."
)


def _calibrated(request: Request) -> float:
    """The largest factor on the base's privacy loss with which the total meets the target."""
    asked, remedy = f"epsilon={request.epsilon:g}", "leave the search's epsilon=None to have the total reported"
    _check_not_searched(request, _scaled(request, 1.0), asked, remedy)

    @cache
    def total(factor: float) -> Guarantee:
        try:
            return _costs(request, _scaled(request, factor)).total
        except LeakingEstimatorError as error:
            if factor >= 1.0:
                raise
            # with more noise than configured the estimator could not keep its promise: no mechanism has this factor
            raise BudgetUnreachableError(str(error)) from None

    assert request.epsilon is not None
    return calibrate(total, request.epsilon, _delta(request, total(1.0)))


def _check_not_searched(request: Request, scaled: dict[str, Any], asked: str, remedy: str) -> None:
    """Raise if candidates vary what the search itself has to set."""
    searched = [name for name in request.space.names if any(f"{noise}__".startswith(f"{name}__") for noise in scaled)]
    if searched:
        raise PrivacyError(
            f"Found {asked} for the whole search while the candidates vary {searched}, and with it {sorted(scaled)}, "
            f"which calibration sets. Remove them from the space, or {remedy}."
        )


def _scaled(request: Request, factor: float) -> dict[str, Any]:
    """Parameters with which one training loses ``factor`` times as much as configured, whatever the candidate."""
    return request.adapter.scaled(request.estimator, factor, frozenset(request.space.names))
