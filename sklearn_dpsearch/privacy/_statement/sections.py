"""Sections of a statement: one function for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date as Date
from typing import Any, TypeAlias

from ..._documentation import SITE
from ...errors import did_you_mean
from .._guarantees.base import Guarantee, SmallestOf
from .._guarantees.neighboring_relations import OfGroup, as_replace_one
from .content import (
    FACTS,
    SENTENCES,
    Content,
    Curve,
    Section,
    clean,
    hundredths_up,
    in_words,
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
#: A ``PrivacySpent``, whose file imports this one.
Stated: TypeAlias = Any


def searches_inside(guarantee: Guarantee) -> list[SmallestOf]:
    """Searches inside a guarantee, which have several bounds."""
    if isinstance(guarantee, SmallestOf):
        return [guarantee]
    if isinstance(guarantee, OfGroup):
        return searches_inside(guarantee.one_record)
    return [search for part in getattr(guarantee, "parts", ()) for search in searches_inside(part)]


def tightest_theorem(guarantees: Iterable[Guarantee], delta: float) -> str:
    """Name of the bound that gives ε of the first search; "composition" where there is none."""
    searches = [search for guarantee in guarantees for search in searches_inside(guarantee)]
    return searches[0].tightest(delta) if searches else COMPOSITION


def source_of_bound(name: str) -> str:
    """Source and proof of a bound, by its name."""
    source = next(text for start, text in SENTENCES["sources"].items() if name.startswith(start))
    return str(source.format(theory=f"{SITE}/theory"))


def content_of(spent: Stated, about: Mapping[str, str], date: Date | str) -> Content:
    """Content of the whole statement."""
    made_by = "" if spent.release is None else f" of {spent.release.made_by}"
    used = versions() if spent.release is None else spent.release.versions
    curve, rests_on = Curve.of(spent._total._trade_off), spent.assumptions or ("None is stated.",)
    sections = (
        _fact_table("overview", "What this is about", _overview_facts(spent, about)),
        _text("tried", "What was tried", _sentences_on_tries(spent)),
        _risk_section(spent),
        _points("not_protected", "What is not protected", _unprotected_sentences(spent)),
        _points("vouched", "What the curator vouches for", _vouched_sentences(spent)),
        _points("annex", "Annex: the terms", _terms(spent)),
        _text("summary", "In numbers", _summary_sentences(spent)),
        _fact_table("release", "What was released", _release_facts(spent)),
        _fact_table("unit", "Whose privacy", _unit_facts(spent)),
        _parameters_section(spent),
        Section("curve", "All attacks", (SENTENCES["risk"]["curve"],), curve=curve),
        _composition_section(spent),
        _accounting_section(spent),
        _text("tuning", "Is tuning included?", _tuning_sentences(spent)),
        _points("trust", "Who is trusted", SENTENCES["trust"]["central"]),
        _points("randomness", "Where the randomness comes from", _randomness_sentences(spent)),
        _points("assumptions", "What the statement rests on", rests_on),
        _fact_table("curator", "What only the curator can say", _curator_facts(about)),
        _fact_table("versions", "Versions and date", (("Date of this statement", date), *used)),
    )
    title, epsilon = clean(f"Privacy statement{made_by}"), float(up(spent.epsilon))
    return Content(title, clean(date), sections, epsilon, spent.delta, spent.budget is not None)


def _text(key: str, title: str, sentences: Iterable[str]) -> Section:
    """Section of sentences."""
    return Section(key, title, tuple(sentences))


def _points(key: str, title: str, sentences: Iterable[str]) -> Section:
    """Section whose sentences are points of a list."""
    return Section(key, title, tuple(sentences), listed=True)


def _fact_table(key: str, title: str, rows: Iterable[tuple[object, ...]]) -> Section:
    """Section with a table of facts."""
    return Section(key, title, columns=FACTS, rows=tuple(tuple(map(str, row)) for row in rows))


def _overview_facts(spent: Stated, about: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Facts of the first page: which model of which data, from whom to whom."""
    texts, n = SENTENCES["overview"], _public_number(spent)
    yield texts["data"], about.get(texts["data_field"], texts["not_stated"])
    if n is not None:
        yield texts["number"].format(**_common_words(spent)), f"{n:,}"
    if (release := spent.release) is not None:
        yield texts["model"], release.model
        if release.columns:
            yield texts["columns"], ", ".join(release.columns)
        if release.target is not None:
            yield texts["target"], release.target
        shown = [text for name, text in texts["attributes"].items() if name in release.attributes]
        yield texts["what"], ", ".join(shown) or ", ".join(release.attributes)
    elif spent.budget is not None:
        names = "; ".join(component.name for component in spent.components)
        yield texts["entries"], names or texts["none"]
    for name in ("Curator", "Who gets the release", "Intended use of the release", "Contact"):
        yield texts["curator"][name], about.get(name, texts["not_stated"])


def _sentences_on_tries(spent: Stated) -> Iterator[str]:
    """Sentences of the first page on what was tried, and that trying is paid for."""
    sentences = SENTENCES["tried"]
    if spent.release is not None and spent.release.seeded:
        yield SENTENCES["randomness"]["seed"][0]
    if spent.budget is not None:
        yield sentences["ledger"]
        if math.isfinite(spent.epsilon):
            share = percent_up(min(spent.epsilon / spent.budget, 1.0))
            yield sentences["budget"].format(share=share)
    elif spent.release is None:
        yield sentences["unknown"]
    else:
        yield sentences["paid" if spent.release.tuned else "once"]


def _vouched_sentences(spent: Stated) -> Iterator[str]:
    """Sentences of the first page on what the bounds rest on."""
    sentences, n = SENTENCES["vouched"], len(spent.assumptions)
    yield from sentences["always"]
    if spent.release is not None and spent.release.columns:
        yield sentences["columns"]
    if n:
        yield sentences["annex"].format(number=f"{n} point{'s' * (n > 1)}")


def _terms(spent: Stated) -> Iterator[str]:
    """A sentence for each term of the annex."""
    sentences = SENTENCES["terms"]
    name, neighbours = SENTENCES["relation"][spent.neighboring]["name"], _neighbours_in_words(spent)
    yield sentences["numbers"]
    yield sentences["relation"].format(name=name, neighbours=neighbours)
    yield from sentences["others"]


def _neighbours_in_words(spent: Stated) -> str:
    """Sentence on the neighbouring data sets."""
    neighbours = SENTENCES["relation"][spent.neighboring]["neighbours"]
    unit = "one record" if spent.unit == "record" else f"up to {spent.unit}"
    return str(neighbours[PERSON if spent.unit == PERSON else "record"].format(one=unit))


def _common_words(spent: Stated) -> dict[str, Any]:
    """Words that several sections fill into their sentences."""
    questions = SENTENCES["relation"][spent.neighboring]["question"]
    return {
        "stated": f"ε = {up(spent.epsilon)} at δ = {short_up(spent.delta)}",
        "units": "persons" if spent.unit == PERSON else "records",
        "question": questions["record" if spent.unit == "record" else PERSON],
    }


def _summary_sentences(spent: Stated) -> Iterator[str]:
    """Sentences of the summary, the most important first."""
    sentences = SENTENCES["summary"]
    if spent.release is not None and spent.release.seeded:
        yield from SENTENCES["randomness"]["seed"]
    promised = sentences["nothing" if math.isinf(spent.epsilon) else "promised"]
    yield promised.format(**_common_words(spent))
    yield from budget_in_words(spent)
    yield risk_in_words(spent)
    if spent.release is not None and spent.release.columns:
        yield sentences["schema"]
    if spent.assumptions:
        yield sentences["rests_on"]


def budget_in_words(spent: Stated) -> tuple[str, ...]:
    """Sentence on a ledger's budget and what is left, if any."""
    if spent.budget is None:
        return ()
    budget, delta, epsilon = up(spent.budget), short_up(spent.delta), up(spent.epsilon)
    remaining = short_down(max(spent.budget - spent.epsilon, 0.0), 3)
    sentence = SENTENCES["summary"]["budget"]
    return (sentence.format(budget=budget, delta=delta, epsilon=epsilon, rest=remaining),)


def risk_in_words(spent: Stated) -> str:
    """Sentence with the risk in one number, from the whole profile.

    It is the only such number that is printed anywhere.
    """
    advantage = hundredths_up(spent._total._trade_off.advantage())
    return str(SENTENCES["summary"]["risk"].format(**_common_words(spent), advantage=advantage))


def _release_facts(spent: Stated) -> Iterator[tuple[str, str]]:
    """Facts about what was released."""
    if (release := spent.release) is not None:
        yield "Made by", release.made_by
        yield "Model", release.model
        alone = release.made_by == release.model  # a single fit
        shown = "the fitted model" if alone else ", ".join(release.attributes)
        yield "What is released, at most", shown
        if release.columns:
            yield "Columns read", ", ".join(release.columns)
        if release.target is not None:
            yield "Target", release.target
    for number, component in enumerate(spent.components, 1):
        yield f"Part {number}", component.name


def _unit_facts(spent: Stated) -> Iterator[tuple[str, str]]:
    """Facts about the unit of privacy and the neighbours."""
    relation, n = SENTENCES["relation"][spent.neighboring], _public_number(spent)
    number = "public" if _is_number_public(spent) else "private"
    yield "Unit of privacy", spent.unit
    yield "Neighbouring relation", relation["name"]
    yield "In words", _neighbours_in_words(spent)
    yield f"Number of {_common_words(spent)['units']}", number if n is None else f"{number}: {n:,}"


def _public_number(spent: Stated) -> int | None:
    """Number of records, or of persons, where it is public and known."""
    is_known = _is_number_public(spent) and spent.release is not None
    return spent.release.n_samples if is_known else None


def _is_number_public(spent: Stated) -> bool:
    """Return whether neighbours have the same number of records."""
    return bool(spent.neighboring != "add_remove")


def _parameters_section(spent: Stated) -> Section:
    """Section with ε at several δ."""
    texts = SENTENCES["parameters"]
    n = _public_number(spent)
    pure = spent.guarantee.pure_epsilon is not None
    deltas = sorted({*DELTAS, *((0.0,) if pure else ()), spent.delta}, reverse=True)
    beside = "" if n is None else f": here {short_down(1 / n, 3)}, as they are {n:,}"
    sentences = texts["stated"].format(**_common_words(spent), beside=beside), texts["rounding"]
    marks = ((delta, "stated" if delta == spent.delta else "") for delta in deltas)
    epsilon_at, columns = spent.guarantee.epsilon_at, ("δ", "ε at most", "note")
    rows = tuple((short_up(delta), up(epsilon_at(delta)), mark) for delta, mark in marks)
    title = "Privacy parameters and profile"
    return Section("parameters", title, sentences, columns=columns, rows=rows)


def _risk_section(spent: Stated) -> Section:
    """Section with bounds on attacks."""
    texts, relation = SENTENCES["risk"], SENTENCES["relation"][spent.neighboring]
    curve = spent._total._trade_off
    largest = curve.true_positive_rate  # of records found and of right guesses: docs/theory/risk.md
    bounds = (
        *((relation["found"].format(rate=100 * rate), largest(rate)) for rate in RATES),
        (texts["advantage"], curve.advantage()),
        *((texts["guessed"].format(prior=100 * prior), largest(prior)) for prior in PRIORS),
        (relation["even"], curve.right_guess(0.5)),
    )
    unbounded = (SENTENCES["summary"]["nothing_in_words"],) * math.isinf(spent.epsilon)
    sentences = (*unbounded, texts["attack"].format(**_common_words(spent)), texts["every_attack"])
    rows = tuple((name, percent_up(bound)) for name, bound in bounds)
    title, columns = "What a reader can conclude about one person", ("an attack …", "at most")
    return Section("risk", title, sentences, columns=columns, rows=rows)


def _composition_section(spent: Stated) -> Section:
    """Section with each part and its ε alone."""
    parts, texts = spent.components, SENTENCES["composition"]
    alone = [float(part.guarantee.epsilon_at(spent.delta)) for part in parts]
    sentences = [texts["total"].format(**_common_words(spent))]
    if len(parts) > 1:
        delta = short_up(len(parts) * spent.delta)
        sentences.append(texts["added"].format(epsilon=up(math.fsum(alone)), delta=delta))
    bounds = [tightest_theorem([part.guarantee], spent.delta) for part in parts]
    words = [in_words(part.guarantee) for part in parts]
    rows = tuple(zip([part.name for part in parts], map(up, alone), bounds, words))
    columns = ("part", "ε alone", "theorem", "mechanism")
    return Section("composition", "Composition", tuple(sentences), columns=columns, rows=rows)


def _accounting_section(spent: Stated) -> Section:
    """Section with the bounds used and their sources."""
    names = dict.fromkeys((spent.bound, COMPOSITION))
    rows = tuple((name, source_of_bound(name)) for name in names)
    sentences = (SENTENCES["accounting"]["composed" if spent.bound == COMPOSITION else "smallest"],)
    columns = ("bound", "stated and proved in")
    return Section("accounting", "Mechanism and theorem", sentences, columns=columns, rows=rows)


def _tuning_sentences(spent: Stated) -> Iterator[str]:
    """Sentences on whether the cost of tuning is included."""
    sentences = SENTENCES["tuning"]
    tuned = spent.bound != COMPOSITION if spent.release is None else spent.release.tuned
    if not tuned:
        yield sentences["unknown"]
        return
    yield sentences["included"]
    yield sentences["how"].format(parts="; ".join(component.name for component in spent.components))
    yield from _share_of_choice(spent)


def _share_of_choice(spent: Stated) -> Iterator[str]:
    """Sentence on the part of ε that the choice takes, if one search was released."""
    first = spent.components[0].guarantee if len(spent.components) == 1 else None
    presence = getattr(first, "presence", first)
    named = SENTENCES["without_a_choice"].get(type(presence).__name__)
    if named is not None and 0 < spent.epsilon < math.inf:
        unchosen = getattr(presence, named["field"])
        if presence is not first:
            unchosen = as_replace_one(unchosen)
        alone = float(unchosen.epsilon_at(spent.delta))
        share = percent_up(1.0 - alone / spent.epsilon)
        choice = f": the choice takes {share} of the total" if alone < spent.epsilon else ""
        yield f"{named['words']} would take ε = {up(alone)}{choice}."


def _unprotected_sentences(spent: Stated) -> Iterator[str]:
    """Sentences on what the guarantee does not protect."""
    sentences = SENTENCES["not_protected"]
    yield from sentences["always"]
    if _is_number_public(spent):
        yield sentences["public_number"].format(**_common_words(spent))
    if spent.unit == "record":
        yield sentences["several_records"]


def _randomness_sentences(spent: Stated) -> tuple[str, ...]:
    """Sentences on the source of randomness."""
    release, sentences = spent.release, SENTENCES["randomness"]
    if release is None:
        return tuple(sentences["unknown"])
    source = "seed" if release.seeded else "kept_secret" if release.kept else "system"
    return tuple(sentences[source])


def _curator_facts(about: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Curator's facts; a missing one is shown, an unknown one an error."""
    texts = SENTENCES["curator"]
    asked, fields = texts["asked"], texts["asked"] + texts["registry"]
    for name, text in about.items():
        if name not in fields:
            raise ValueError(
                f"Found about={{{name!r}: ...}}; the fields are {', '.join(map(repr, fields))}."
                + did_you_mean(name, fields)
            )
        words = texts["words"].get(name, [text])
        if text not in words:
            raise ValueError(
                f"Found about={{{name!r}: {text!r}}}; one of the registry's words is needed: "
                f"{', '.join(map(repr, words))}." + did_you_mean(str(text), words)
            )
    answers = {**dict.fromkeys(asked), **about}
    yield from ((name, "not stated" if text is None else text) for name, text in answers.items())
