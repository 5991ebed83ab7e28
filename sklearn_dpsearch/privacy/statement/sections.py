"""Sections of a statement: one function for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date as Date
from typing import Any, TypeAlias

from ..._site import SITE
from ...errors import did_you_mean
from ..guarantees.base import Guarantee, SmallestOf
from ..guarantees.neighboring_relations import OfGroup, as_replace_one
from ..statement import words
from .content import (
    FACTS,
    Content,
    Curve,
    Release,
    Section,
    clean,
    hundredths_up,
    percent_up,
    short_down,
    short_up,
    up,
    versions,
)

#: Unit of statements about all records of a person.
PERSON = "person"
#: δ at which the profile is stated, beside the statement's own.
DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
#: False positive rates of attacks, and probabilities of the best guess before the release.
RATES, PRIORS = (0.001, 0.01, 0.1), (0.1, 0.5)

COMPOSITION = "composition"
#: Pages with proofs.
THEORY = f"{SITE}/theory"
#: Beginning of a bound's name ↦ where it is stated and proved.
SOURCES = {
    "Theorem": f"sklearn_dpsearch, {THEORY}/index.html (statement, proof and tests)",
    "PS22": "Papernot & Steinke, Hyperparameter Tuning with Rényi Differential Privacy, ICLR 2022",
    "KRW24": "Koskela, Redberg & Wang, Privacy Profiles for Private Selection, ICML 2024",
    "KK23": "Koskela & Kulkarni, Practical Differentially Private Hyperparameter Tuning with Subsampling, NeurIPS 2023",
    COMPOSITION: f"sklearn_dpsearch, {THEORY}/composition.html (privacy loss distributions)",
}
OTHERWISE = f"sklearn_dpsearch, {THEORY}/index.html"
#: Class of a search's guarantee ↦ its field for what would be released without a choice, and that in words.
WITHOUT_A_CHOICE = {
    "BestOf": ("one_run", "One run alone, with its score,"),
    "UntilAbove": ("one_run", "One run alone, with its score,"),
    "SubsetThenTrain": ("train", "The last training alone, on all records and without a choice,"),
}

#: A ``PrivacySpent``, whose file imports this one.
Stated: TypeAlias = Any


def searches(guarantee: Guarantee) -> list[SmallestOf]:
    """The searches inside a guarantee, which have several bounds."""
    if isinstance(guarantee, SmallestOf):
        return [guarantee]
    if isinstance(guarantee, OfGroup):
        return searches(guarantee.one_record)
    return [found for part in getattr(guarantee, "parts", ()) for found in searches(part)]


def theorem(guarantees: Iterable[Guarantee], delta: float) -> str:
    """Name of the bound that gives ε of the first search inside; "composition" where there is none."""
    found = [search for guarantee in guarantees for search in searches(guarantee)]
    return found[0].tightest(delta) if found else COMPOSITION


def source(name: str) -> str:
    """Source and proof of the bound of this name."""
    return next((text for start, text in SOURCES.items() if name.startswith(start)), OTHERWISE)


def content_of(spent: Stated, about: Mapping[str, str], date: Date | str) -> Content:
    """The whole statement."""
    made_by = "" if spent.release is None else f" of {spent.release.made_by}"
    used = versions() if spent.release is None else spent.release.versions
    sections = (
        _summary(spent),
        _release(spent),
        _unit(spent),
        _parameters(spent),
        _risk(spent),
        _composition(spent),
        _accounting(spent),
        _tuning(spent),
        _not_protected(spent),
        Section("trust", "Who is trusted", words.CENTRAL, listed=True),
        Section("randomness", "Where the randomness comes from", _randomness(spent.release), listed=True),
        Section("assumptions", "What the statement rests on", spent.assumptions or ("None is stated.",), listed=True),
        _curator(about),
        _table("versions", "Versions and date", (("Date of this statement", date), *used)),
    )
    numbers = {"epsilon": float(up(spent.epsilon)), "delta": spent.delta, "of_a_ledger": spent.budget is not None}
    return Content(clean(f"Privacy statement{made_by}"), clean(date), sections, **numbers)


def _table(key: str, title: str, rows: Iterable[tuple[object, ...]]) -> Section:
    """Section with a table of facts."""
    return Section(key, title, columns=FACTS, rows=tuple(tuple(map(str, row)) for row in rows))


def _summary(spent: Stated) -> Section:
    sentences = [f"Everything that was released together is differentially private with {_stated(spent)}."]
    if math.isinf(spent.epsilon):
        sentences = [words.NOTHING_PROMISED]
    if spent.release is not None and spent.release.seeded:
        sentences = [*words.FROM_A_SEED, *sentences]
    sentences += [*budget_in_words(spent), risk_in_words(spent)]
    if spent.release is not None and spent.release.columns:
        sentences.append(words.DID_IT_FIT)
    if spent.assumptions:
        sentences.append(words.RESTS_ON)
    return Section("summary", "In short", tuple(sentences))


def _stated(spent: Stated) -> str:
    return f"ε = {up(spent.epsilon)} at δ = {short_up(spent.delta)}"


def budget_in_words(spent: Stated) -> tuple[str, ...]:
    """The budget of a ledger and what is left of it; nothing for other statements."""
    if spent.budget is None:
        return ()
    rest = short_down(max(spent.budget - spent.epsilon, 0.0), 3)
    return (words.BUDGET.format(up(spent.budget), short_up(spent.delta), up(spent.epsilon), rest),)


def risk_in_words(spent: Stated) -> str:
    """The risk in one number, from the whole privacy profile: the only such number that is printed anywhere."""
    advantage = hundredths_up(spent._total._trade_off.advantage())
    return (
        f"For any membership attack ({_question(spent)}), true positives exceed false positives by at most "
        f"{advantage} percentage points."
    )


def _question(spent: Stated) -> str:
    found = (words.QUESTION if spent.unit == "record" else words.QUESTION_OF_PERSON)[spent.neighboring]
    return str(found)


def _release(spent: Stated) -> Section:
    told = spent.release
    parts = [(f"Part {number}", one.name) for number, one in enumerate(spent.components, 1)]
    if told is None:
        return _table("release", "What was released", parts)
    facts = (
        ("Made by", told.made_by),
        ("Model", told.model),
        ("What is released, at most", ", ".join(told.attributes)),
        *([("Columns read", ", ".join(told.columns))] if told.columns else []),
        *([("Target", told.target)] if told.target is not None else []),
    )
    return _table("release", "What was released", (*facts, *parts))


def _unit(spent: Stated) -> Section:
    n, number = _number(spent), "public" if _is_public(spent) else "private"
    phrase = words.NEIGHBOURS[spent.neighboring].format(
        one="one record" if spent.unit == "record" else f"up to {spent.unit}"
    )
    if spent.unit == PERSON:
        phrase = words.NEIGHBOURS_OF_PERSON[spent.neighboring]
    rows = (
        ("Unit of privacy", spent.unit),
        ("Neighbouring relation", words.RELATIONS[spent.neighboring]),
        ("In words", phrase),
        (f"Number of {_units(spent)}", number if n is None else f"{number}: {n:,}"),
    )
    return _table("unit", "Whose privacy", rows)


def _units(spent: Stated) -> str:
    return "persons" if spent.unit == PERSON else "records"


def _number(spent: Stated) -> int | None:
    """Number of records, or of persons, where it is public and known."""
    return spent.release.n_samples if _is_public(spent) and spent.release is not None else None


def _is_public(spent: Stated) -> bool:
    """Return whether neighbours have the same number of records."""
    return bool(spent.neighboring != "add_remove")


def _parameters(spent: Stated) -> Section:
    pure = (0.0,) if spent.guarantee.pure_epsilon is not None else ()
    deltas, n = sorted({*DELTAS, *pure, spent.delta}, reverse=True), _number(spent)
    beside = "" if n is None else f": here {short_down(1 / n, 3)}, as they are {n:,}"
    sentences = (
        f"Stated: {_stated(spent)}. The whole profile is known: the same release at other δ has the ε below. A δ says "
        f"little unless it is well below 1 divided by the number of "
        f"{_units(spent)}{beside}.",
        words.ROUNDING,
    )
    rows = tuple(_at(spent, delta) for delta in deltas)
    columns = ("δ", "ε at most", "note")
    return Section("parameters", "Privacy parameters and profile", sentences, columns=columns, rows=rows)


def _at(spent: Stated, delta: float) -> tuple[str, ...]:
    mark = "stated" if delta == spent.delta else ""
    return short_up(delta), up(spent.guarantee.epsilon_at(delta)), mark


def _risk(spent: Stated) -> Section:
    curve, relation = spent._total._trade_off, spent.neighboring
    found = guessed = curve.true_positive_rate  # the bound is the same: docs/theory/risk.md
    bounds = (
        *((words.FOUND[relation].format(100 * rate), found(rate)) for rate in RATES),
        (words.ADVANTAGE, curve.advantage()),
        *((words.GUESSED.format(100 * prior), guessed(prior)) for prior in PRIORS),
        (words.EVEN[relation], curve.right_guess(0.5)),
    )
    sentences = (f"The attack tries to find out {_question(spent)}.", words.EVERY_ATTACK)
    rows = tuple((name, percent_up(bound)) for name, bound in bounds)
    columns = ("an attack …", "at most")
    return Section("risk", "What attacks can do", sentences, columns=columns, rows=rows, curve=Curve.of(curve))


def _composition(spent: Stated) -> Section:
    parts = [(one.name, one.guarantee, float(one.guarantee.epsilon_at(spent.delta))) for one in spent.components]
    sentences = [f"All parts are released together; the total is {_stated(spent)}."]
    if len(parts) > 1:
        added = f"ε = {up(math.fsum(alone for *_, alone in parts))} at δ = {short_up(len(parts) * spent.delta)}"
        sentences.append(f"Each part alone at the same δ is below. Merely added up they would be {added}.")
    rows = tuple((name, up(alone), theorem([one], spent.delta), words.in_words(one)) for name, one, alone in parts)
    columns = ("part", "ε alone", "theorem", "mechanism")
    return Section("composition", "Composition", tuple(sentences), columns=columns, rows=rows)


def _accounting(spent: Stated) -> Section:
    rows = tuple((name, source(name)) for name in dict.fromkeys((spent.bound, COMPOSITION)))
    sentences = (words.COMPOSED if spent.bound == COMPOSITION else words.SMALLEST,)
    columns = ("bound", "stated and proved in")
    return Section("accounting", "Mechanism and theorem", sentences, columns=columns, rows=rows)


def _tuning(spent: Stated) -> Section:
    tuned = spent.bound != COMPOSITION if spent.release is None else spent.release.tuned
    how = "; ".join(one.name for one in spent.components)
    sentences = (words.TUNED, f"How: {how}.", *_share(spent)) if tuned else (words.NOT_TUNED,)
    return Section("tuning", "Is tuning included?", sentences)


def _share(spent: Stated) -> tuple[str, ...]:
    """Part of ε that the choice takes, where one search is all that was released."""
    first = spent.components[0].guarantee if len(spent.components) == 1 else None
    found = getattr(first, "presence", first)
    if type(found).__name__ not in WITHOUT_A_CHOICE or not 0 < spent.epsilon < math.inf:
        return ()
    field, words_of_it = WITHOUT_A_CHOICE[type(found).__name__]
    one = getattr(found, field)
    alone = float((one if found is first else as_replace_one(one)).epsilon_at(spent.delta))
    share = (
        f": the choice takes {percent_up(1.0 - alone / spent.epsilon)} of the total" if alone < spent.epsilon else ""
    )
    return (f"{words_of_it} would take ε = {up(alone)}{share}.",)


def _not_protected(spent: Stated) -> Section:
    more = [words.PUBLIC_NUMBER.format(_units(spent))] if _is_public(spent) else []
    more += [words.SEVERAL_RECORDS] if spent.unit == "record" else []
    return Section("not_protected", "What is not protected", (*words.NEVER_PROTECTED, *more), listed=True)


def _randomness(release: Release | None) -> tuple[str, ...]:
    if release is None:
        return words.UNKNOWN_SOURCE
    if release.seeded:
        return words.FROM_A_SEED
    return words.FROM_A_KEPT_SECRET if release.kept else words.FROM_THE_SYSTEM


def _curator(about: Mapping[str, str]) -> Section:
    """Section on the curator; a missing field is shown as missing, and an unknown one is an error."""
    for name in about:
        if name not in (*words.CURATOR, *words.REGISTRY):
            raise ValueError(
                f"Found about={{{name!r}: ...}}; the fields are {', '.join(map(repr, words.CURATOR))}."
                + did_you_mean(name, words.CURATOR)
            )
    given = {**dict.fromkeys(words.CURATOR), **about}
    rows = ((name, "not stated" if text is None else text) for name, text in given.items())
    return _table("curator", "What only the curator can say", rows)
