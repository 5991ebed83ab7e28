"""The plan of a search: its runs and its cost, computed before any data is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias

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
from ...privacy._spent import Component, PrivacySpent
from ...privacy._statement.content import Release
from ...scoring import Noise, PrivateScorer
from ...scoring._noise_matching import matched_noise
from ...scoring._validation import IndexFolds, Validation, is_taken_on_trust
from .._records import Candidate, Parameters, Scorer, reads_any_record, with_parameters
from .families import Families
from .space import Space, is_part
from .space_guarantee import SpaceGuarantee, guarantee_by_noise, space_guarantee

#: Guarantees of candidates, of one private score and of the training after the choice ↦ releases.
Cost: TypeAlias = Callable[
    [SpaceGuarantee, Guarantee | None, SpaceGuarantee], tuple[Component, ...]
]

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

PUBLIC_VALIDATION = (
    "The validation data X_public, y_public is public and contains none of the private records."
)
FIXED_FOLDS = "Which records train and which validate (cv) was fixed without a look at the records."

MIXED_RELATIONS = (
    "Candidates hold under different neighbouring relations ({}). All are stated under {}, so the "
    "number of records is public."
)
SECRET_SEED = (
    "With checkpoint= all random draws follow from a secret of the operating system through "
    "statistical generators; the secret stays in that folder, which is as secret as the records, "
    "until the release."
)


#: Largest relative gap between the total of a rough plan and its target, and number of noise levels
#: tried.
ROUGH_GAP, TRIES = 0.03, 4


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a search, resolved from its parameters and the public number of records.

    Parameters
    ----------
    families : Families
        Estimator, adapter, space and number of records.
    validation : Validation
    scorer : Scorer
    cost : callable
        (promises, scoring, final) ↦ one component for each release, from the guarantee of training
        candidates, that of one private score (None where scores are on public data, or not
        released) and that of the training after the choice. The total is their composition.
    epsilon, delta, error_score
        As given.
    notes : tuple of str
        Assumptions of the total.
    release : Release
    distribution : CountDistribution or None
        Of the number of runs, where the number is random and secret.
    expected_runs : float
        Expected number of runs, which is public, where the number drawn is secret.
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
    unit : {"record", "person"}
        What the number of records counts, and the guarantee protects.
    """

    families: Families
    validation: Validation
    scorer: Scorer
    cost: Cost
    epsilon: float | None
    delta: float | None
    error_score: float
    notes: tuple[str, ...]
    release: Release
    distribution: CountDistribution | None = None
    expected_runs: float = 1.0
    exhaustive: bool = False
    score_noise: Guarantee | str = "match"
    factor_of_scores: int | None = None
    tuning_share: float = 1.0
    work: str = ""
    guess: float | None = None
    unit: str = "record"


@dataclass(frozen=True, kw_only=True)
class Plan(Facts):
    """Everything that is fixed before the data is touched.

    Parameters
    ----------
    promises : SpaceGuarantee
        Candidates, and what they keep.
    final : SpaceGuarantee
        What a training after the choice keeps; another one only where its noise is another.
    final_settings : mapping
        Parameters that set the noise of that training, also in a model of a candidate.
    noise : Noise or None
        Noise of a private score.
    spent : PrivacySpent
    factor : float or None
        Multiple of the loss of the configured estimator.
    """

    promises: SpaceGuarantee
    final: SpaceGuarantee
    final_settings: Mapping[str, Any]
    noise: Noise | None
    spent: PrivacySpent
    factor: float | None

    @property
    def space(self) -> Space:
        """Space from which candidates are drawn."""
        return self.promises.space

    def in_full(self, candidate: Candidate) -> dict[str, Any]:
        """Candidate of the final training: the estimators that it puts in have the final noise."""
        in_full = dict(candidate)
        if self.final.space is not self.space:
            pairs = list(zip(self.space.dictionaries, self.final.space.dictionaries))
            for name, part in candidate.items():
                with_part = (pair for pair in pairs if is_part(pair[0].get(name, ())))
                copies = (final[name][0] for tuned, final in with_part if tuned[name][0] is part)
                in_full[name] = next(copies, part)
        return in_full

    def assuming(self, *assumptions: str) -> Plan:
        """Plan whose statement has further assumptions, as plain sentences."""
        spent = replace(self.spent, assumptions=(*self.spent.assumptions, *assumptions))
        return replace(self, spent=spent)


def describe_count(distribution: CountDistribution) -> str:
    """Describe a distribution of K and its chance of a single candidate, without comparison.

    Both are public.
    """
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
    promises, final = _guarantees(facts, factor, partial(space_guarantee, facts.families))
    noise, releases = _releases(facts, promises, final)
    total = _composed(releases)
    _check_sizes(facts, final)
    delta = _stated_delta(facts, total)
    _size_of_delta(delta, facts)
    relations = sorted(set(facts.families.relations))
    carried_over = MIXED_RELATIONS.format(" and ".join(relations), facts.families.relation)
    notes = (
        *promises.assumptions,
        *(carried_over,) * (len(relations) > 1),
        *facts.notes,
        *(ROWS_ALONE,) * (noise is not None),
    )
    # a winner may go on training with candidates' settings, so the final ones undo these, too
    parameters = final.estimator.get_params(deep=True) if promises.settings else {}
    undone = {name: parameters[name] for name in promises.settings if name in parameters}
    stated: Any = {"components": releases, "assumptions": notes, "release": facts.release}
    spent = PrivacySpent(guarantee=total, delta=delta, unit=facts.unit, **stated)
    return Plan(
        **vars(facts),
        promises=promises,
        final=final,
        final_settings={**undone, **final.settings},
        noise=noise,
        spent=spent,
        factor=factor,
    )


def assumptions_of_search(
    search: Parameters, kinds: Sequence[Any], public: bool
) -> tuple[str, ...]:
    """Assumptions of a search's total, as plain sentences.

    ``kinds`` has one candidate of each family.
    """
    notes = [] if all(map(reads_any_record, kinds)) else [VALID_RECORDS]
    if public:
        notes.append(PUBLIC_VALIDATION)
    if is_taken_on_trust(getattr(search, "cv", None)):
        notes.append(FIXED_FOLDS)
    if search.random_state is not None:
        notes.append(
            f"A seed (random_state={search.random_state!r}) voids the guarantee for everybody: two "
            "fits with one seed share their noise. It is for tests only."
        )
    if search.checkpoint is not None:
        notes.append(SECRET_SEED)
    return tuple(notes)


def _guarantees(
    facts: Facts,
    factor: float | None,
    guarantee: Callable[[Space, Mapping[str, Any]], SpaceGuarantee],
) -> tuple[SpaceGuarantee, SpaceGuarantee]:
    """Guarantees of candidates, and of a training after the choice.

    Parameters
    ----------
    facts : Facts
    factor : float or None
        Multiple of the configured loss.
    guarantee : callable
        Space and parameters that set the noise ↦ guarantee.
    """
    families, share = facts.families, facts.tuning_share
    if factor is None:
        final = guarantee(families.space, {})
    elif families.bring_noise:
        final = guarantee(families.at(factor), {})
    else:
        final = guarantee(families.space, _noise_settings(facts, factor))
    if share == 1.0:
        return final, final
    if families.noise_in_parts:
        return guarantee(families.at(share * (1.0 if factor is None else factor)), {}), final
    return guarantee(families.space, _for_tuning(facts, final.settings)), final


def _releases(
    facts: Facts, promises: SpaceGuarantee, final: SpaceGuarantee
) -> tuple[Noise | None, tuple[Component, ...]]:
    """Noise of one private score, None on public data, and all that is released."""
    scored = any(use.scorings for use in facts.validation.exposures())
    if not isinstance(facts.scorer, PrivateScorer) or not scored:
        return None, facts.cost(promises, None, final)
    tuned, score_noise = promises.one_run, facts.score_noise
    sensitivity = facts.scorer.sensitivity(tuned.neighboring)
    if not isinstance(score_noise, str):
        noise = matched_noise(score_noise, sensitivity)
    elif facts.factor_of_scores is None:
        noise = matched_noise(tuned, sensitivity)
    else:
        noise = matched_noise(final.one_run, sensitivity).times(facts.factor_of_scores)
    scoring = noise.guarantee(sensitivity, tuned.neighboring)
    return noise, facts.cost(promises, scoring, final)


def _composed(components: Sequence[Component]) -> Guarantee:
    """Guarantee of all releases together."""
    return compose(*(component.guarantee for component in components))


def _for_tuning(facts: Facts, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with which a candidate loses ``tuning_share`` times what the final training does."""
    share, families = facts.tuning_share, facts.families
    configured = with_parameters(clone(families.estimator), settings)
    try:
        more = families.adapter.scaled_privacy(configured, share, frozenset(families.space.names))
    except PrivacyError as error:
        raise PrivacyError(
            f"Found tuning_share={share!r}, but the noise of candidates cannot be set: {error} Or "
            f"set tuning_share=1.0."
        ) from error
    _check_not_searched(facts, more, f"tuning_share={share!r}", "set tuning_share=1.0")
    return {**settings, **more}


def _check_sizes(facts: Facts, final: SpaceGuarantee) -> None:
    """Raise for a guarantee that depends on the number of records, if parts have random sizes."""
    n, validation = facts.families.n_samples, facts.validation
    if n is None or not validation.training_sizes_vary:
        return
    for size, one_run in _of_other_sizes(final, n, validation):
        if one_run != final.one_run:
            raise PrivacyError(
                f"The guarantee of {type(facts.families.estimator).__name__} depends on the number "
                f"of records, " + SMALLER_SIZE.format(n, size)
            )


def _of_other_sizes(
    final: SpaceGuarantee, n: int, validation: Validation
) -> Iterator[tuple[int, Guarantee]]:
    """Guarantees of one run on fewer records.

    They are for half of the records, and for the smallest power of ten for which one is stated. A
    part may be a small subset. Rules that depend on the number of records (a default hold-out or
    subset) fall with it, so that equal guarantees at both ends of a range are equal inside.
    """
    folds = validation.fixed_folds if isinstance(validation, IndexFolds) else ()
    public = {len(train) for train, _ in folds}
    for size in sorted(public or {max(n // 2, 1)}):
        yield size, final.one_run_on(size)
    for size in () if public else (10**power for power in range(len(str(n)))):
        try:
            one_run = final.one_run_on(size)
        # a training of this size would fail, and release nothing
        except (PrivacyError, ValueError):
            continue
        yield size, one_run
        return


def _stated_delta(facts: Facts, total: Guarantee) -> float:
    if not facts.delta and total.pure_epsilon is None:
        text = "delta=None" if facts.delta is None else "delta=0"
        raise MissingDeltaError(_NEED_DELTA.format(text, total.neighboring))
    return float(facts.delta or 0.0)


def _size_of_delta(delta: float, facts: Facts) -> None:
    """Raise for a δ too large for the number of records."""
    if facts.families.n_samples is not None:
        check_size_of_delta("delta", delta, facts.families.n_samples, facts.unit)


_NEED_DELTA = (
    "Found {} although what is released is not purely private (neighbours: {}), so epsilon can "
    "only be stated with a delta > 0. Give delta, well below 1 divided by the number of records, "
    "e.g. delta=1e-6."
)


def _with_balanced_families(facts: Facts) -> Facts:
    """Set the balance of families.

    The balance has, for each family, the factor with which a search over this family alone would
    meet the total.
    """
    families = facts.families
    if not families.bring_noise:
        return facts
    runs = space_guarantee(families, families.at(1.0), {}).runs
    promises = [run[0].guarantee for run in runs]
    if len(set(promises)) == 1:
        return facts
    assert facts.epsilon is not None
    delta = _stated_delta(facts, _cost_of_families(facts, families)(1.0))
    factors = dict[Guarantee, float]()
    for index, promise in enumerate(promises):
        if promise not in factors:  # families that promise the same need the same noise
            cost = _until_impossible(_cost_of_families(facts, families.alone(index)))
            factors[promise] = calibrate(cost, facts.epsilon, delta, tolerance=0.01)
    balance = tuple(factors[promise] for promise in promises)
    return replace(facts, families=replace(families, balance=balance))


def _cost_of_families(facts: Facts, families: Families) -> Callable[[float], Guarantee]:
    """Make the function factor ↦ cost of these families, with scores as private as the training."""
    alone = replace(facts, families=families)

    def total(factor: float) -> Guarantee:
        promises, final = _guarantees(alone, factor, partial(space_guarantee, families))
        return _composed(facts.cost(promises, promises.one_run, final))

    return total


def _calibrated(facts: Facts) -> float:
    """Largest factor on the configured privacy loss with which the total is at most the target."""
    assert facts.epsilon is not None
    if not facts.families.bring_noise:  # else each family is looked at
        remedy = "leave the search's epsilon=None to have the total reported"
        asked = f"epsilon={facts.epsilon:g}"
        _check_not_searched(facts, _noise_settings(facts, 1.0), asked, remedy)
    guarantee = _reusing_candidates(facts.families)

    @cache
    @_until_impossible
    def total(factor: float) -> Guarantee:
        return _composed(_releases(facts, *_guarantees(facts, factor, guarantee))[1])

    if facts.guess is not None and (rough := _rough_factor(total, facts, facts.guess)) is not None:
        return rough
    return calibrate(total, facts.epsilon, _stated_delta(facts, total(1.0)))


def _reusing_candidates(families: Families) -> Callable[[Space, Mapping[str, Any]], SpaceGuarantee]:
    """Make the function noise ↦ guarantee that makes candidates once for each way to set noise."""
    ways: dict[tuple[str, ...], Callable[..., SpaceGuarantee]] = {}

    def guarantee(space: Space, settings: Mapping[str, Any]) -> SpaceGuarantee:
        if space is not families.space:
            return space_guarantee(families, space, settings)
        way = tuple(sorted(settings))
        if way not in ways:
            ways[way] = guarantee_by_noise(families, space, settings)
        return ways[way](settings)

    return guarantee


def _rough_factor(total: Callable[[float], Guarantee], facts: Facts, factor: float) -> float | None:
    """Find a factor with a total slightly below the target, from a guess.

    The result is None if a few steps do not suffice.
    """
    assert facts.epsilon is not None
    for _ in range(TRIES):
        try:
            guarantee = total(factor)
        except BudgetUnreachableError:
            return None
        epsilon = float(guarantee.epsilon_at(_stated_delta(facts, guarantee)))
        if facts.epsilon * (1 - ROUGH_GAP) <= epsilon <= facts.epsilon:
            return factor
        if not 0 < epsilon < np.inf:
            return None
        # ε is about in proportion to the factor
        factor *= facts.epsilon * (1 - ROUGH_GAP / 2) / epsilon
    return None


def _until_impossible(total: Callable[[float], Guarantee]) -> Callable[[float], Guarantee]:
    """Turn leaks at more noise than configured into an unreachable budget.

    No mechanism has this factor.
    """

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
    scaled_names = [f"{name}__" for name in scaled]
    searched = [name for name in names if any(n.startswith(f"{name}__") for n in scaled_names)]
    if searched:
        raise PrivacyError(
            f"Found {asked} for the whole search while the candidates vary {searched}, and with it "
            f"{sorted(scaled)}, which calibration sets. Remove them from the space, or {remedy}."
        )


def _noise_settings(facts: Facts, factor: float) -> dict[str, Any]:
    """Parameters that multiply any candidate's configured privacy loss by ``factor``."""
    families = facts.families
    varying = frozenset(families.space.names)
    return families.adapter.scaled_privacy(families.estimator, factor, varying)
