"""The plan of a search: its runs and its cost, computed before any data is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ...privacy import (
    BudgetUnreachableError,
    CountDistribution,
    Guarantee,
    LeakingEstimatorError,
    MissingDeltaError,
    PrivacyError,
    calibrate,
    compose,
)
from ...privacy._checks import check_size_of_delta
from ...privacy.spent import Component, PrivacySpent
from ...privacy.statement.content import Release
from ...scoring import Noise, PrivateScorer
from ...scoring.noise_matching import matched_noise
from ...scoring.validation import IndexFolds, Validation, is_taken_on_trust
from .._records import reads_any_record, with_parameters
from .._types import InFull, Recipe, Scorer
from .families import Families, in_full
from .space import Space
from .space_guarantee import Points, SpaceGuarantee, Training

SMALLER_SIZE = (
    "but validation takes part of them away (it differs for {} and {}). Fix its sampling rate and "
    "number of steps (of a search inside this one: cv, e.g. cv=0.2), give X_public and y_public "
    "for scoring, or declare guarantee= for any number of records."
)

VALID_RECORDS = (
    "Every possible record is valid input for the estimator (finite numbers, known labels): one "
    "that is not could make all candidates fail, and that shows."
)

ROWS_ALONE = (
    "Predictions for a record depend on no other record of the same table: private scores count "
    "records one by one."
)

CARRIED_OVER = (
    "Candidates hold under different neighbouring relations ({}). All are stated under {}, so the "
    "number of records is public."
)
FROM_A_SECRET = (
    "With checkpoint= all random draws follow from a secret of the operating system through "
    "statistical generators; the secret stays in that folder, which is as secret as the records, "
    "until the release."
)


#: Largest relative gap between the total of a rough plan and its target, and number of noise levels
#: tried.
ROUGHLY, TRIES = 0.03, 4


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Releases of a search and their cost, for one setting of the estimator's noise."""

    promises: SpaceGuarantee
    final: SpaceGuarantee
    noise: Noise | None
    components: tuple[Component, ...]

    @property
    def total(self) -> Guarantee:
        """Guarantee of all releases together."""
        return compose(*(component.guarantee for component in self.components))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a search, resolved from its parameters and the public number of records.

    Parameters
    ----------
    families : Families
        Estimator, adapter, space and number of records.
    validation : Validation
    scorer : Scorer
    cost : CostOfRuns, CostOfSubset, CostOfChoice or CostOfWalk
        Its method ``components(promises, scoring, final)`` makes one component for each release,
        from the guarantee of training candidates, that of one private score (None where scores are
        on public data, or not released) and that of the training after the choice. The total is
        their composition.
    epsilon, delta, error_score
        As given.
    notes : tuple of str
        Assumptions of the total.
    release : Release
    distribution : CountDistribution or None
        Of the number of runs, where the number is random and secret.
    exhaustive : bool
        Whether each point of a finite space runs once, so that nothing is drawn.
    score_noise : Guarantee or "match"
    factor_of_scores : int or None
        Noise of a private score for "match", in multiples of the noise that matches the final
        training; None: as private as a candidate's training.
    tuning_share : float
        Privacy loss of a candidate's training, as a share of the loss of a training after the
        choice.
    work : str
        Public amount of work: the beginning of the line that ``verbose`` prints.
    guess : float or None
        A guess of the noise factor, with which the plan is rough.
    """

    families: Families
    validation: Validation
    scorer: Scorer
    cost: Any
    epsilon: float | None
    delta: float | None
    error_score: float
    notes: tuple[str, ...]
    release: Release
    distribution: CountDistribution | None = None
    exhaustive: bool = False
    score_noise: Guarantee | str = "match"
    factor_of_scores: int | None = None
    tuning_share: float = 1.0
    work: str = ""
    guess: float | None = None


@dataclass(frozen=True, kw_only=True)
class Plan(Facts):
    """Everything that is fixed before the data is touched; ``factor`` multiplies the loss of the
    configured estimator.

    Candidates are made by ``recipe`` and keep ``promises``; a training after the choice follows
    ``final_recipe`` and keeps ``final``. The two differ only where candidates are trained with
    another noise.
    """

    space: Space
    promises: SpaceGuarantee
    final: SpaceGuarantee
    recipe: Recipe
    final_recipe: Recipe
    in_full: InFull
    spent: PrivacySpent
    factor: float | None

    def assuming(self, *assumptions: str) -> Plan:
        """Plan whose statement has further assumptions, as plain sentences."""
        return replace(
            self, spent=replace(self.spent, assumptions=(*self.spent.assumptions, *assumptions))
        )


def describe_count(distribution: CountDistribution) -> str:
    """Describe a distribution of K and its chance of a single candidate, without comparison: both
    are public."""
    alone = float(distribution.pmf(1))
    share = f"{100 * alone:.3g} %" if alone >= 1e-4 else "less than 0.01 %"
    return f"{distribution!r} (one candidate alone: {share})"


def describe_runs(distribution: CountDistribution, exhaustive: bool = False) -> str:
    """Describe the number of runs, as the beginning of a sentence."""
    if exhaustive:
        return f"each of {distribution.mean:.0f} candidates once; "
    return f"number of runs: {describe_count(distribution)}; "


def make_plan(facts: Facts) -> Plan:
    """Calibrate to the total, if one is given, and state the cost of the search."""
    if facts.delta is not None:  # a calibration takes seconds: first what needs none
        _size_of_delta(float(facts.delta), facts)
    facts = _with_balanced_families(facts)
    factor = None if facts.epsilon is None else _calibrated(facts)
    final, tuned = _noise_at(facts, factor)
    costs = _costs(facts, final, tuned, lambda at: _points(facts, at).promises())
    _check_sizes(facts, final, costs.final)
    delta = _stated_delta(facts, costs.total)
    _size_of_delta(delta, facts)
    spent = PrivacySpent(
        guarantee=costs.total,
        delta=delta,
        components=costs.components,
        assumptions=(
            *costs.promises.assumptions,
            *_mixed_relations_note(facts.families),
            *facts.notes,
            *_rows_alone_note(facts, costs),
        ),
        release=facts.release,
    )
    recipe = Recipe(
        estimator=facts.families.estimator,
        adapter=facts.families.adapter,
        settings=tuned.settings,
        scorer=facts.scorer,
        noise=costs.noise,
        neighboring=facts.families.relation,
        error_score=facts.error_score,
        trains_together=any(map(facts.families.adapter.trains_together, facts.families.models)),
        n_samples=facts.families.n_samples,
    )
    return Plan(
        **vars(facts),
        space=tuned.space,
        promises=costs.promises,
        final=costs.final,
        recipe=recipe,
        final_recipe=replace(recipe, settings=_in_full(facts, final.settings, tuned.settings)),
        in_full=in_full(tuned.space, final.space),
        spent=spent,
        factor=factor,
    )


def _rows_alone_note(facts: Facts, costs: Costs) -> tuple[str, ...]:
    if costs.noise is None or not isinstance(facts.scorer, PrivateScorer):
        return ()
    return (ROWS_ALONE,)


def assumptions_of_search(
    models: Sequence[Any],
    public: bool,
    random_state: int | np.random.RandomState | None,
    cv: object,
    checkpointed: bool,
) -> tuple[str, ...]:
    """Assumptions of a search's total, as plain sentences; ``models`` has one candidate of each
    family."""
    notes = [] if all(map(reads_any_record, models)) else [VALID_RECORDS]
    if public:
        notes.append(
            "The validation data X_public, y_public is public and contains none of the private "
            "records."
        )
    if is_taken_on_trust(cv):
        notes.append(
            "Which records train and which validate (cv) was fixed without a look at the records."
        )
    if random_state is not None:
        notes.append(
            f"A seed (random_state={random_state!r}) voids the guarantee for everybody: two fits "
            "with one seed share their noise. It is for tests only."
        )
    if checkpointed:
        notes.append(FROM_A_SECRET)
    return tuple(notes)


def _mixed_relations_note(families: Families) -> tuple[str, ...]:
    """Sentence for candidates that hold under different relations."""
    different = sorted(set(families.relations))
    return (
        ()
        if len(different) == 1
        else (CARRIED_OVER.format(" and ".join(different), families.relation),)
    )


class Configured(NamedTuple):
    """Noise of the candidates: parameters of the estimator, and the space that is drawn from."""

    settings: dict[str, Any]
    space: Space


def _noise_at(facts: Facts, factor: float | None) -> tuple[Configured, Configured]:
    """Noise of a training after the choice, and of candidates; ``factor`` multiplies the configured
    loss."""
    families, share = facts.families, facts.tuning_share
    if factor is None:
        final = Configured({}, families.space)
    elif families.bring_noise:
        final = Configured({}, families.at(factor))
    else:
        final = Configured(_noise_settings(facts, factor), families.space)
    if share == 1.0:
        return final, final
    if families.noise_in_parts:
        return final, Configured({}, families.at(share * (1.0 if factor is None else factor)))
    return final, Configured(_for_tuning(facts, final.settings), families.space)


def _costs(
    facts: Facts,
    at: Configured,
    for_tuning: Configured,
    promises_at: Callable[[Configured], SpaceGuarantee],
) -> Costs:
    final = promises_at(at)
    promises = final if for_tuning is at else promises_at(for_tuning)
    noise, scoring = _noise_of_scores(facts, promises.one_run, final.one_run)
    components = facts.cost.components(promises, scoring, final)
    return Costs(promises=promises, final=final, noise=noise, components=components)


def _points(facts: Facts, at: Configured) -> Points:
    families = facts.families
    training = Training(families.adapter, families.n_samples, families.relation, families.n_samples)
    return Points(with_parameters(clone(families.estimator), at.settings), at.space, training)


def _reusing_candidates(facts: Facts) -> Callable[[Configured], SpaceGuarantee]:
    """Make the function noise ↦ guarantees, for many levels: candidates are made once for each way
    to set the noise."""
    points: dict[tuple[str, ...], Points] = {}

    def promises_at(at: Configured) -> SpaceGuarantee:
        if at.space is not facts.families.space:
            return _points(facts, at).promises()
        way = tuple(sorted(at.settings))
        if way not in points:
            points[way] = _points(facts, at)
        return points[way].promises(at.settings)

    return promises_at


def _for_tuning(facts: Facts, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with which the loss of a candidate's training is ``tuning_share`` times the final
    training's loss."""
    share, configured = (
        facts.tuning_share,
        with_parameters(clone(facts.families.estimator), settings),
    )
    try:
        more = facts.families.adapter.scaled_privacy(
            configured, share, frozenset(facts.families.space.names)
        )
    except PrivacyError as error:
        raise PrivacyError(
            f"Found tuning_share={share!r}, but the noise of candidates cannot be set: {error} Or "
            f"set tuning_share=1.0."
        ) from error
    _check_not_searched(facts, more, f"tuning_share={share!r}", "set tuning_share=1.0")
    return {**settings, **more}


def _in_full(facts: Facts, settings: dict[str, Any], for_tuning: dict[str, Any]) -> dict[str, Any]:
    """Settings that also undo ``for_tuning``: a winner may go on training with them."""
    parameters = (
        with_parameters(clone(facts.families.estimator), settings).get_params(deep=True)
        if for_tuning
        else {}
    )
    return {**{name: parameters[name] for name in for_tuning if name in parameters}, **settings}


def _check_sizes(facts: Facts, at: Configured, promises: SpaceGuarantee) -> None:
    """Raise for a guarantee that depends on the number of records, if parts have random sizes."""
    n, validation = facts.families.n_samples, facts.validation
    if n is None or not validation.training_sizes_vary:
        return
    for size, one_run in _of_other_sizes(_points(facts, at), n, validation):
        if one_run != promises.one_run:
            raise PrivacyError(
                f"The guarantee of {type(facts.families.estimator).__name__} depends on the number "
                f"of records, " + SMALLER_SIZE.format(n, size)
            )


def _of_other_sizes(
    points: Points, n: int, validation: Validation
) -> Iterator[tuple[int, Guarantee]]:
    """Guarantees of one run on fewer records: half of them, and the smallest power of ten for which
    one is stated.

    A part may be a small subset. Rules that depend on the number of records (a default hold-out or
    subset) fall with it, so that equal guarantees at both ends of a range are equal inside.
    """
    public = (
        {len(train) for train, _ in validation.given}
        if isinstance(validation, IndexFolds)
        else None
    )
    for size in sorted(public or {max(n // 2, 1)}):
        yield size, points.promises(n_samples=size).one_run
    for size in () if public else (10**power for power in range(len(str(n)))):
        try:
            one_run = points.promises(n_samples=size).one_run
        # a training of this size would fail, and release nothing
        except (PrivacyError, ValueError):
            continue
        yield size, one_run
        return


def _noise_of_scores(
    facts: Facts, tuned: Guarantee, final: Guarantee
) -> tuple[Noise | None, Guarantee | None]:
    """Noise of one private score and its guarantee; None, None on public data."""
    if not isinstance(facts.scorer, PrivateScorer) or not any(
        use.scorings for use in facts.validation.exposures()
    ):
        return None, None
    sensitivity = facts.scorer.sensitivity(tuned.neighboring)
    score_noise = facts.score_noise
    if not isinstance(score_noise, str):
        noise = matched_noise(score_noise, sensitivity)
    elif facts.factor_of_scores is None:
        noise = matched_noise(tuned, sensitivity)
    else:
        noise = matched_noise(final, sensitivity).times(facts.factor_of_scores)
    return noise, noise.guarantee(sensitivity, tuned.neighboring)


def _stated_delta(facts: Facts, total: Guarantee) -> float:
    if facts.delta is not None:
        if facts.delta == 0 and total.pure_epsilon is None:
            raise MissingDeltaError(_NEED_DELTA.format("delta=0", total.neighboring))
        return float(facts.delta)
    if total.pure_epsilon is None:
        raise MissingDeltaError(_NEED_DELTA.format("delta=None", total.neighboring))
    return 0.0


def _size_of_delta(delta: float, facts: Facts) -> None:
    """Raise for a δ too large for the number of records."""
    if facts.families.n_samples is not None:
        check_size_of_delta("delta", delta, facts.families.n_samples)


_NEED_DELTA = (
    "Found {} although what is released is not purely private (neighbours: {}), so epsilon can "
    "only be stated with a delta > 0. Give delta, well below 1 divided by the number of records, "
    "e.g. delta=1e-6."
)


def _with_balanced_families(facts: Facts) -> Facts:
    """Set the balance of families: the factors with which a search over each family alone would
    meet the total."""
    families = facts.families
    if not families.bring_noise or len(set(promises := families.promises())) == 1:
        return facts
    delta, factors = (
        _stated_delta(facts, _cost_of_families(facts, families)(1.0)),
        dict[Guarantee, float](),
    )
    for index, promise in enumerate(promises):
        if promise not in factors:  # families that promise the same need the same noise
            factors[promise] = _factor_of_family(facts, families.alone(index), delta)
    balance = tuple(factors[promise] for promise in promises)
    return replace(facts, families=replace(families, balance=balance))


def _factor_of_family(facts: Facts, family: Families, delta: float) -> float:
    """Factor on one family's loss with which a search over this family alone would meet the total,
    roughly."""
    assert facts.epsilon is not None
    return calibrate(
        _until_impossible(_cost_of_families(facts, family)), facts.epsilon, delta, tolerance=0.01
    )


def _cost_of_families(facts: Facts, families: Families) -> Callable[[float], Guarantee]:
    """Make the function factor ↦ cost of a search over these families, with scores as private as
    the training."""
    alone = replace(facts, families=families)

    def total(factor: float) -> Guarantee:
        at, for_tuning = _noise_at(alone, factor)
        final, promises = (_points(alone, noise).promises() for noise in (at, for_tuning))
        components = facts.cost.components(promises, promises.one_run, final)
        return compose(*(component.guarantee for component in components))

    return total


def _calibrated(facts: Facts) -> float:
    """Largest factor on the configured privacy loss with which the total is at most the target."""
    assert facts.epsilon is not None
    if not facts.families.bring_noise:  # else each family is looked at
        asked, remedy = (
            f"epsilon={facts.epsilon:g}",
            "leave the search's epsilon=None to have the total reported",
        )
        _check_not_searched(facts, _noise_settings(facts, 1.0), asked, remedy)
    promises_at = _reusing_candidates(facts)
    total = cache(
        _until_impossible(
            lambda factor: _costs(facts, *_noise_at(facts, factor), promises_at).total
        )
    )
    if facts.guess is not None and (rough := _rough_factor(total, facts, facts.guess)) is not None:
        return rough
    return calibrate(total, facts.epsilon, _stated_delta(facts, total(1.0)))


def _rough_factor(total: Callable[[float], Guarantee], facts: Facts, factor: float) -> float | None:
    """Find a factor with a total slightly below the target, from a guess; None if a few steps do
    not suffice."""
    assert facts.epsilon is not None
    for _ in range(TRIES):
        try:
            guarantee = total(factor)
        except BudgetUnreachableError:
            return None
        epsilon = float(guarantee.epsilon_at(_stated_delta(facts, guarantee)))
        if facts.epsilon * (1 - ROUGHLY) <= epsilon <= facts.epsilon:
            return factor
        if not 0 < epsilon < np.inf:
            return None
        # ε is about in proportion to the factor
        factor *= facts.epsilon * (1 - ROUGHLY / 2) / epsilon
    return None


def _until_impossible(total: Callable[[float], Guarantee]) -> Callable[[float], Guarantee]:
    """Turn leaks at more noise than configured into an unreachable budget: no mechanism has this
    factor."""

    def guarantee_of(factor: float) -> Guarantee:
        try:
            return total(factor)
        except LeakingEstimatorError as error:
            if factor >= 1.0:
                raise
            raise BudgetUnreachableError(str(error)) from None

    return guarantee_of


def _check_not_searched(facts: Facts, scaled: dict[str, Any], asked: str, remedy: str) -> None:
    """Raise if candidates vary a parameter that the search itself has to set."""
    names = facts.families.space.names
    searched = [
        name for name in names if any(f"{noise}__".startswith(f"{name}__") for noise in scaled)
    ]
    if searched:
        raise PrivacyError(
            f"Found {asked} for the whole search while the candidates vary {searched}, and with it "
            f"{sorted(scaled)}, which calibration sets. Remove them from the space, or {remedy}."
        )


def _noise_settings(facts: Facts, factor: float) -> dict[str, Any]:
    """Parameters that multiply the privacy loss of training any candidate, as configured, by
    ``factor``."""
    return facts.families.adapter.scaled_privacy(
        facts.families.estimator, factor, frozenset(facts.families.space.names)
    )
