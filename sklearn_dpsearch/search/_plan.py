"""The plan of a search: what will run and what it will cost, computed before any data is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ..adapters import Adapter, adapter_for
from ..privacy import (
    BudgetUnreachableError,
    CountLaw,
    Guarantee,
    LeakingEstimatorError,
    MissingDeltaError,
    PrivacyError,
    calibrate,
)
from ..privacy.spent import Component, PrivacySpent
from ..scoring import Noise, PrivateScorer, matched_noise, noise_for
from ..scoring.validation import IndexFolds, Validation
from ._parameters import with_parameters
from ._space import Space, SpaceGuarantee

PRIVATE_SIZE = (
    "which is private (neighbours: add_remove): the total would tell it. Fix its sampling rate and number of steps, or "
    "declare guarantee= for any number of records."
)
SMALLER_SIZE = (
    "but validation takes part of them away (it differs for {} and {}). Fix its sampling rate and number of steps, "
    "give X_public and y_public for scoring, or declare guarantee= for any number of records."
)

SIZE_OF_DELTA = (
    "delta={:g} is well below 1 divided by the number of records. That number is private (neighbours: add_remove), so "
    "the two were not compared."
)

#: Factors by which the base's loss may be scaled in calibration.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-9, 1e9


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a search releases and what that costs, for one setting of the estimator's noise."""

    promises: SpaceGuarantee
    noise: Noise | None
    components: tuple[Component, ...]
    total: Guarantee


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that is fixed before the data is touched."""

    law: CountLaw | None
    adapter: Adapter
    space: Space
    promises: SpaceGuarantee
    validation: Validation
    scorer: Any
    noise: Noise | None
    settings: dict[str, Any]
    spent: PrivacySpent


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for, checked: the inputs of a plan."""

    estimator: Any
    declared: Any
    space: Space
    law: CountLaw | None
    validation: Validation
    scorer: Any
    score_noise: Any
    epsilon: float | None
    delta: float | None
    n_samples: int | None
    costs: Callable[
        [SpaceGuarantee, Guarantee | None, Validation, CountLaw | None], tuple[tuple[Component, ...], Guarantee]
    ]
    notes: tuple[str, ...]


def make_plan(request: Request) -> Plan:
    """Calibrate if a total was asked for, and state what the whole will cost."""
    adapter = adapter_for(request.estimator, request.declared)
    factor = 1.0 if request.epsilon is None else _calibrated(request, adapter)
    settings = {} if request.epsilon is None else adapter.scaled(request.estimator, factor, _varying(request))
    costs = _costs(request, adapter, settings)
    delta = _delta(request, costs.total)
    spent = PrivacySpent(
        guarantee=costs.total,
        delta=delta,
        components=costs.components,
        assumptions=(
            *costs.promises.assumptions,
            *request.notes,
            *_size_of_delta(delta, costs.total.neighboring, request, adapter),
        ),
    )
    return Plan(
        law=request.law,
        adapter=adapter,
        space=request.space,
        promises=costs.promises,
        validation=request.validation,
        scorer=request.scorer,
        noise=costs.noise,
        settings=settings,
        spent=spent,
    )


def _costs(request: Request, adapter: Adapter, settings: dict[str, Any]) -> Costs:
    configured = with_parameters(clone(request.estimator), settings)
    promises = SpaceGuarantee(adapter, configured, request.space, request.n_samples)
    _check_sizes(request, adapter, configured, promises)
    noise, scoring = _scoring(request, promises.one_run)
    components, total = request.costs(promises, scoring, request.validation, request.law)
    return Costs(promises=promises, noise=noise, components=components, total=total)


def _check_sizes(request: Request, adapter: Adapter, configured: Any, promises: SpaceGuarantee) -> None:
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
        if SpaceGuarantee(adapter, configured, request.space, size).one_run != promises.one_run:
            raise PrivacyError(
                f"The guarantee of {type(request.estimator).__name__} depends on the number of records, "
                + (PRIVATE_SIZE if private else SMALLER_SIZE.format(n, size))
            )


def _scoring(request: Request, training: Guarantee) -> tuple[Noise | None, Guarantee | None]:
    """Noise of one private score and its guarantee; None, None on public data."""
    if not isinstance(request.scorer, PrivateScorer) or not any(one.scorings for one in request.validation.exposures()):
        return None, None
    sensitivity = request.scorer.sensitivity(training.neighboring)
    given = request.score_noise
    noise = matched_noise(training, sensitivity) if isinstance(given, str) else noise_for(given, sensitivity)
    return noise, noise.guarantee(sensitivity, training.neighboring)


def _delta(request: Request, total: Guarantee) -> float:
    if request.delta is not None:
        if request.delta == 0 and total.pure_epsilon is None:
            raise MissingDeltaError(_NEED_DELTA.format("delta=0", total.neighboring))
        return float(request.delta)
    if total.pure_epsilon is None:
        raise MissingDeltaError(_NEED_DELTA.format("delta=None", total.neighboring))
    return 0.0


def _size_of_delta(delta: float, relation: str, request: Request, adapter: Adapter) -> tuple[str, ...]:
    """Raise for a δ that promises nothing to so many records; a sentence where their number is private.

    Publishing one record, picked at random, in full is (0, 1/n)-private. Nothing here may depend on a number of records
    that is private: an error would tell it.
    """
    stated = adapter.public_size(request.estimator)
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


def _calibrated(request: Request, adapter: Adapter) -> float:
    """The largest factor on the base's privacy loss with which the total meets the target."""
    scaled = adapter.scaled(request.estimator, 1.0, _varying(request))
    searched = [name for name in request.space.names if any(f"{one}__".startswith(f"{name}__") for one in scaled)]
    if searched:
        raise PrivacyError(
            f"Found epsilon={request.epsilon:g} for the whole search while the candidates vary {searched}, and with "
            f"it {sorted(scaled)}, which calibration sets. Remove them from the space, or leave the search's "
            "epsilon=None to have the total reported."
        )

    def total(factor: float) -> Guarantee:
        return _costs(request, adapter, adapter.scaled(request.estimator, factor, _varying(request))).total

    def reached(factor: float) -> float | None:
        """Total ε; None where the estimator could not keep its promise (its noise would be too large for it, say)."""
        try:
            return total(factor).epsilon_at(delta)
        except LeakingEstimatorError:
            if factor >= 1.0:
                raise
            return None

    assert request.epsilon is not None
    delta = _delta(request, total(1.0))
    return calibrate(total, request.epsilon, delta, _bracket(reached, request.epsilon, delta))


def _varying(request: Request) -> frozenset[str]:
    return frozenset(request.space.names)


def _bracket(reached: Callable[[float], float | None], target: float, delta: float) -> tuple[float, float]:
    """Factors around the one sought, at most a factor of 8 apart (or the ends of the allowed range)."""
    low = high = 1.0
    while (found := reached(low)) is not None and found > target and low > SMALLEST_FACTOR:
        low, high = low / 8, low
    if found is None:
        return _above_the_last(reached, target, delta, low, high)
    if low == high:
        while (found := reached(high)) is not None and found <= target and high < LARGEST_FACTOR:
            low, high = high, high * 8
    return low, high


def _above_the_last(
    reached: Callable[[float], float | None], target: float, delta: float, low: float, high: float
) -> tuple[float, float]:
    """The same where the estimator cannot do ``low``, and ``high`` is too much."""
    for _ in range(12):
        middle = (low * high) ** 0.5
        found = reached(middle)
        if found is not None and found <= target:
            return middle, high
        low, high = (middle, high) if found is None else (low, middle)
    raise BudgetUnreachableError(
        f"The target epsilon={target:g} at delta={delta:g} is out of reach: the smallest epsilon possible with this "
        f"estimator is {reached(high):.4g}. Give a larger epsilon or delta, fewer runs (n_iter), or another estimator."
    )
