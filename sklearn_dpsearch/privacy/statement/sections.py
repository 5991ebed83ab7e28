"""Sections of a statement: one function for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date as Date
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Protocol

from ...errors import did_you_mean
from .._types import Neighboring
from ..guarantees.base import Guarantee
from ..numerics.trade_off import TradeOff
from . import words
from .content import FACTS, Cell, Content, Curve, Section, clean, said
from .mechanisms import in_words
from .numbers import hundredths_up, percent_up, plain, short_up, up
from .release import Release, versions
from .theorems import COMPOSITION, source, theorem

#: Unit of statements about all records of a person.
PERSON = "person"
#: δ at which the profile is stated, beside the statement's own.
DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
#: False positive rates of attacks, and probabilities of the best guess before the release.
RATES, PRIORS = (0.001, 0.01, 0.1), (0.1, 0.5)


class SpentComponent(Protocol):
    """One component of what was spent."""

    @property
    def name(self) -> str: ...
    @property
    def guarantee(self) -> Guarantee: ...


class Stated(Protocol):
    """Privacy cost as a statement reads it."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def bound(self) -> str: ...
    @property
    def neighboring(self) -> Neighboring: ...
    @property
    def unit(self) -> str: ...
    @property
    def components(self) -> Sequence[SpentComponent]: ...
    @property
    def assumptions(self) -> Sequence[str]: ...
    @property
    def release(self) -> Release | None: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def _trade_off(self) -> TradeOff: ...
    def to_dict(self) -> dict[str, Any]: ...


def content_of(spent: Stated, about: Mapping[str, str], date: Date | str) -> Content:
    """The whole statement."""
    made_by = "" if spent.release is None else f" of {clean(spent.release.made_by)}"
    return Content(
        title=f"Privacy statement{made_by}",
        date=clean(date),
        sections=(*(make(spent) for make in SECTIONS), _curator(about), _versions(spent, date)),
        statement=spent.to_dict(),
    )


def _summary(spent: Stated) -> Section:
    at = f"ε = {up(spent.epsilon)} at δ = {short_up(spent.delta)}"
    sentences = [f"Everything that was released together is differentially private with {at}."]
    if math.isinf(spent.epsilon):
        sentences = [words.NOTHING_PROMISED]
    if spent.release is not None and spent.release.seeded:
        sentences = [*words.FROM_A_SEED, *sentences]
    sentences += [*budget_in_words(spent), risk_in_words(spent)]
    if spent.release is not None and spent.release.columns:
        sentences.append(words.DID_IT_FIT)
    if spent.assumptions:
        sentences.append(words.RESTS_ON)
    return Section(key="summary", title="In short", sentences=tuple(sentences))


def budget_in_words(spent: Stated) -> tuple[str, ...]:
    """The budget of a ledger and what is left of it; nothing for other statements."""
    if spent.budget is None:
        return ()
    rest = max(spent.budget - spent.epsilon, 0.0)
    return (words.BUDGET.format(up(spent.budget), short_up(spent.delta), up(spent.epsilon), _down(rest)),)


def risk_in_words(spent: Stated) -> str:
    """The risk in one number, from the whole privacy profile: the only such number that is printed anywhere."""
    advantage = hundredths_up(spent._trade_off.advantage())
    return (
        f"For any membership attack ({_question(spent)}), true positives exceed false positives by at most "
        f"{advantage} percentage points."
    )


def _question(spent: Stated) -> str:
    return (words.QUESTION if spent.unit == "record" else words.QUESTION_OF_PERSON)[spent.neighboring]


def _release(spent: Stated) -> Section:
    rows = [(said(f"Part {number}"), said(one.name)) for number, one in enumerate(spent.components, 1)]
    if spent.release is not None:
        told = spent.release
        rows = [
            (said("Made by"), said(told.made_by)),
            (said("Model"), said(told.model)),
            (said("What is released, at most"), _names(told.attributes)),
            *([(said("Columns read"), _names(told.columns))] if told.columns else []),
            *([(said("Target"), said(told.target))] if told.target is not None else []),
            *rows,
        ]
    return Section(key="release", title="What was released", columns=FACTS, rows=tuple(rows))


def _names(attributes: Sequence[str]) -> Cell:
    names = [clean(name) for name in attributes]
    return Cell(", ".join(names), names)


def _unit(spent: Stated) -> Section:
    phrase, number = words.NEIGHBOURS[spent.neighboring]
    n = _number(spent)
    phrase = phrase.format(one="one record" if spent.unit == "record" else f"up to {spent.unit}")
    if spent.unit == PERSON:
        phrase = words.NEIGHBOURS_OF_PERSON[spent.neighboring]
    rows = (
        (said("Unit of privacy"), said(spent.unit)),
        (said("Neighbouring relation"), Cell(words.RELATIONS[spent.neighboring], spent.neighboring)),
        (said("In words"), said(phrase)),
        (said(f"Number of {_units(spent)}"), said(number if n is None else f"{number}: {n:,}")),
    )
    return Section(key="unit", title="Whose privacy", columns=FACTS, rows=rows)


def _units(spent: Stated) -> str:
    return "persons" if spent.unit == PERSON else "records"


def _number(spent: Stated) -> int | None:
    """Number of records, or of persons, where it is public and known."""
    public = words.NEIGHBOURS[spent.neighboring][1] == "public"
    return spent.release.n_samples if public and spent.release is not None else None


def _parameters(spent: Stated) -> Section:
    pure = (0.0,) if spent.guarantee.pure_epsilon is not None else ()
    deltas, n = sorted({*DELTAS, *pure, spent.delta}, reverse=True), _number(spent)
    beside = "" if n is None else f": here {_down(1 / n)}, as they are {n:,}"
    rows = tuple(_at(spent, delta) for delta in deltas)
    sentences = (
        f"Stated: ε = {up(spent.epsilon)} at δ = {short_up(spent.delta)}. The whole profile is known: the same release "
        "at other δ has the ε below. A δ says little unless it is well below 1 divided by the number of "
        f"{_units(spent)}{beside}.",
        words.ROUNDING,
    )
    return Section(
        key="parameters",
        title="Privacy parameters and profile",
        sentences=sentences,
        columns=("δ", "ε at most", "note"),
        rows=rows,
    )


def _down(value: float) -> str:
    """A number with three digits, rounded down."""
    return f"{float(Context(prec=3, rounding=ROUND_FLOOR).plus(Decimal(repr(value)))):g}"


def _at(spent: Stated, delta: float) -> tuple[Cell, ...]:
    epsilon = float(spent.guarantee.epsilon_at(delta))
    mark = "stated" if delta == spent.delta else ""
    return Cell(short_up(delta), delta), Cell(up(epsilon), plain(epsilon)), said(mark)


def _risk(spent: Stated) -> Section:
    curve = spent._trade_off
    found, guessed = curve.true_positive_rate, curve.true_positive_rate  # the bound is the same: docs/theory/risk.md
    rows = [_risk_row(words.FOUND[spent.neighboring].format(100 * rate), found(rate)) for rate in RATES]
    rows.append(_risk_row(words.ADVANTAGE, curve.advantage()))
    rows += [_risk_row(words.GUESSED.format(100 * prior), guessed(prior)) for prior in PRIORS]
    rows.append(_risk_row(words.EVEN[spent.neighboring], curve.right_guess(0.5)))
    return Section(
        key="risk",
        title="What attacks can do",
        sentences=(f"The attack tries to find out {_question(spent)}.", words.EVERY_ATTACK),
        columns=("an attack …", "at most"),
        rows=tuple(rows),
        curve=Curve.of(curve),
    )


def _risk_row(name: str, bound: float) -> tuple[Cell, ...]:
    return said(name), Cell(percent_up(bound), float(bound))


def _composition(spent: Stated) -> Section:
    alone = [float(one.guarantee.epsilon_at(spent.delta)) for one in spent.components]
    rows = tuple(
        (
            said(one.name),
            Cell(up(epsilon), plain(epsilon)),
            said(theorem(one.guarantee, spent.delta)),
            _mechanism(one.guarantee),
        )
        for one, epsilon in zip(spent.components, alone)
    )
    sentences = [
        f"All parts are released together; the total is ε = {up(spent.epsilon)} at δ = {short_up(spent.delta)}."
    ]
    if len(alone) > 1:
        added = f"ε = {up(math.fsum(alone))} at δ = {short_up(len(alone) * spent.delta)}"
        sentences.append(f"Each part alone at the same δ is below. Merely added up they would be {added}.")
    return Section(
        key="composition",
        title="Composition",
        sentences=tuple(sentences),
        columns=("part", "ε alone", "theorem", "mechanism"),
        rows=rows,
    )


def _mechanism(guarantee: Guarantee) -> Cell:
    return Cell(clean(in_words(guarantee)), clean(repr(guarantee)))


def _accounting(spent: Stated) -> Section:
    names = dict.fromkeys((spent.bound, COMPOSITION))
    rows = tuple((said(name), said(source(name))) for name in names)
    return Section(
        key="accounting",
        title="Mechanism and theorem",
        sentences=(words.COMPOSED if spent.bound == COMPOSITION else words.SMALLEST,),
        columns=("bound", "stated and proved in"),
        rows=rows,
    )


def _tuning(spent: Stated) -> Section:
    tuned = spent.bound != COMPOSITION if spent.release is None else spent.release.tuned
    how = "; ".join(clean(one.name) for one in spent.components)
    sentences = (words.TUNED, f"How: {how}.") if tuned else (words.NOT_TUNED,)
    return Section(key="tuning", title="Is tuning included?", sentences=sentences)


def _not_protected(spent: Stated) -> Section:
    more = [words.PUBLIC_NUMBER.format(_units(spent))] if words.NEIGHBOURS[spent.neighboring][1] == "public" else []
    more += [words.SEVERAL_RECORDS] if spent.unit == "record" else []
    sentences = (*words.NEVER_PROTECTED, *more)
    return Section(key="not_protected", title="What is not protected", sentences=sentences, listed=True)


def _trust(spent: Stated) -> Section:
    return Section(key="trust", title="Who is trusted", sentences=words.CENTRAL, listed=True)


def _randomness(spent: Stated) -> Section:
    sentences: tuple[str, ...] = words.UNKNOWN_SOURCE
    if spent.release is not None:
        drawn = words.FROM_A_KEPT_SECRET if spent.release.kept else words.FROM_THE_SYSTEM
        sentences = words.FROM_A_SEED if spent.release.seeded else drawn
    return Section(key="randomness", title="Where the randomness comes from", sentences=sentences, listed=True)


def _assumptions(spent: Stated) -> Section:
    sentences = tuple(clean(text) for text in spent.assumptions) or ("None is stated.",)
    return Section(key="assumptions", title="What the statement rests on", sentences=sentences, listed=True)


def _curator(about: Mapping[str, str]) -> Section:
    """Section on the curator; a missing field is shown as missing, and an unknown one is an error."""
    for name in about:
        if name not in words.CURATOR:
            raise ValueError(
                f"Found about={{{name!r}: ...}}; the fields are {', '.join(map(repr, words.CURATOR))}."
                + did_you_mean(name, words.CURATOR)
            )
    given = {**dict.fromkeys(words.CURATOR), **about}
    rows = tuple((said(name), said("not stated" if text is None else text)) for name, text in given.items())
    return Section(key="curator", title="What only the curator can say", columns=FACTS, rows=rows)


def _versions(spent: Stated, date: Date | str) -> Section:
    used = versions() if spent.release is None else spent.release.versions
    rows = ((said("Date of this statement"), said(date)), *((said(name), said(text)) for name, text in used))
    return Section(key="versions", title="Versions and date", columns=FACTS, rows=rows)


#: In the order in which they are read.
SECTIONS: tuple[Callable[[Stated], Section], ...] = (
    _summary,
    _release,
    _unit,
    _parameters,
    _risk,
    _composition,
    _accounting,
    _tuning,
    _not_protected,
    _trust,
    _randomness,
    _assumptions,
)
