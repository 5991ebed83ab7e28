"""The statement for people: numbers that are never below, one content in every form, untrusted
text, fixed places."""

from __future__ import annotations

import datetime
import html
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._spent import Component, PrivacySpent
from sklearn_dpsearch.privacy._statement.content import (
    SENTENCES,
    Release,
    Section,
    hundredths_up,
    in_words,
    json_number,
    percent_up,
    short_up,
    up,
)


@given(st.floats(0.0, 1e6))
@example(math.nextafter(0.001, 1.0))
@example(math.nextafter(0.043, 1.0))  # times 1000 it is 43 in double precision
@example(5e-324)
def test_an_epsilon_is_never_printed_below_itself_nor_far_above(epsilon: float) -> None:
    assert epsilon <= float(up(epsilon)) <= epsilon + 0.001 * (1 + 1e-9)


@given(st.floats(0.0, 1.0))
@example(math.nextafter(0.0001, 1.0))
@example(0.99999999)
def test_a_risk_is_never_printed_below_itself_nor_above_a_hundred_per_cent(risk: float) -> None:
    shown = float(hundredths_up(risk))
    assert 100 * risk <= shown * (1 + 1e-15)
    assert shown <= min(100 * risk + 0.01 * (1 + 1e-9), 100.0)
    assert percent_up(risk) == f"{hundredths_up(risk)} %"


@given(st.floats(1e-300, 1.0))
@example(1.23456789e-5)
def test_a_delta_is_never_printed_below_itself(delta: float) -> None:
    assert delta <= float(short_up(delta)) <= delta * (1 + 1e-5)


def test_what_was_given_with_few_digits_is_printed_as_it_was_given() -> None:
    assert [short_up(delta) for delta in (1e-5, 0.0, 2.5e-7)] == ["1e-05", "0", "2.5e-07"]
    assert [up(epsilon) for epsilon in (3.0, 0.1, math.inf)] == ["3.000", "0.100", "infinity"]
    assert (json_number(math.inf), json_number(1.0)) == (None, 1.0)


RUN = dp.GaussianDP(mu=0.4, neighboring="replace_one")
SEARCH = dp.best_of(RUN, dp.Geometric(5))
TOLD = Release(
    made_by="DPRandomSearchCV", model="Net",
    attributes=("best_params_", "best_score_", "best_estimator_"), tuned=True, seeded=False,
)  # fmt: skip
SPENT = PrivacySpent(
    guarantee=dp.compose(SEARCH, RUN),
    delta=1e-6,
    components=(
        Component(name="best of K runs", guarantee=SEARCH),
        Component(name="refit", guarantee=RUN),
    ),
    assumptions=("Every record is valid.",),
    release=TOLD,
)
DAY = datetime.date(2026, 1, 31)
ADVANTAGE = SENTENCES["risk"]["advantage"]
#: Sections of the first page, and words that only the field uses.
FIRST_PAGE = ("overview", "tried", "risk", "not_protected", "vouched")
TERMS = re.compile(
    r"ε|δ|μ|zero.out|replace.one|neighbour|differential|composition|theorem|mechanism|profile|"
    r"advantage|positive rate|hyperparameter|sensitivity|Gaussian|add_remove|_\b",
    re.IGNORECASE,
)
#: What Markdown escapes, undone.
ESCAPED = re.compile(r"\\([\\`*_\[\]<>|&#~$!.)=+-])")
VOID = {"meta", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Checks that every element is closed in its turn, and collects what is read."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def texts_of(spent: PrivacySpent, **given: object) -> dict[str, str]:
    """What a reader of each form reads."""
    one = {form: str(spent.report(form, date=DAY, **given)) for form in ("html", "markdown")}
    return {
        "html": "\n".join(Page(one["html"]).texts),
        "markdown": ESCAPED.sub(r"\1", one["markdown"]),
    }


def section(spent: PrivacySpent, key: str) -> Section:
    return next(one for one in spent.report(date=DAY).content.sections if one.key == key)


def rows(spent: PrivacySpent, key: str) -> dict[str, str]:
    """Name ↦ the first entry of each row of a section."""
    return {row[0]: row[1] for row in section(spent, key).rows}


# --- what is said ---------------------------------------------------------------------------------


NEEDED = (
    "DPRandomSearchCV|Net|best_params_, best_score_, best_estimator_|replace_one|replaced by "
    "anything|public|refit|at δ = 1e-06|Python|best of K runs|Theorem 1|hyperparameters "
    "included|How long the fit took|the trained model|bounds, classes, the schema|right more often "
    "than wrong|Annex: the terms|This is paid for|Central model|operating system|Every record is "
    f"valid.|not stated|2026-01-31|scikit-learn|if it mistakes 0.1 % of|with probability 50 % "
    f"before|{np.__version__}"
)


def test_what_an_officer_must_state_is_in_every_form() -> None:
    for text in TEXTS.values():
        assert [needed for needed in NEEDED.split("|") if needed not in text] == []


@pytest.mark.parametrize("relation", ["zero_out", "replace_one", "add_remove"])
@pytest.mark.parametrize("kind", ["search", "fit", "ledger", "persons", "nothing"])
def test_the_first_page_has_no_term_of_the_field(kind: str, relation: str) -> None:
    guarantee = (
        dp.NonPrivate() if kind == "nothing" else dp.GaussianDP(mu=0.4, neighboring=relation)
    )
    release = None if kind == "ledger" else replace(FACTS, tuned=kind == "search")
    spent = PrivacySpent(
        guarantee=guarantee, delta=1e-6,
        components=(Component(name="a model", guarantee=guarantee),), release=release,
        assumptions=("Every record is valid.",), budget=9.0 if kind == "ledger" else None,
        unit="person" if kind == "persons" else "record",
    )  # fmt: skip
    sections = spent.report(about={"Curator": "The clinic"}, date=DAY).content.sections
    assert tuple(one.key for one in sections[: len(FIRST_PAGE)]) == FIRST_PAGE
    for one in sections[: len(FIRST_PAGE)]:
        for text in (one.title, *one.sentences, *(cell for row in one.rows for cell in row)):
            assert not TERMS.search(text), text
    overview = dict(sections[0].rows)
    assert overview["Released by"] == "The clinic"
    assert overview["Data"] == "not stated"
    assert kind == "ledger" or overview["Columns it reads"] == "age, job"


def test_a_word_that_the_registry_does_not_have_is_an_error() -> None:
    match = "'Health'.*'Technology', 'Healthcare'.*Did you mean 'Healthcare'"
    with pytest.raises(ValueError, match=match):
        SPENT.report(about={"Sector": "Health"})


def test_all_forms_say_the_same() -> None:
    told = SPENT.report(date=DAY).content
    said = [told.title, *(text for one in told.sections for text in [one.title, *one.sentences])]
    cells = [cell for one in told.sections for row in one.rows for cell in row]
    for text in TEXTS.values():
        assert [one for one in [*said, *cells] if one not in text] == []


def test_what_the_curator_says_is_added_and_what_he_leaves_out_is_seen() -> None:
    texts = texts_of(SPENT, about={"Contact": "officer@example.org"})
    for text in texts.values():
        assert "officer@example.org" in text
    assert rows(SPENT, "curator")["Contact"] == "not stated"


def test_a_field_that_a_statement_has_no_place_for_is_an_error_that_lists_the_fields() -> None:
    fields = "the fields are 'Curator'.*'Name'.*'Author of this entry'"
    with pytest.raises(ValueError, match=rf"'Contakt'.*{fields}\. Did you mean 'Contact'\?"):
        SPENT.report(about={"Contakt": "officer@example.org"})
    documented = " ".join((PrivacySpent.report.__doc__ or "").split())
    page = " ".join(
        (Path(__file__).parents[3] / "docs" / "learn" / "statement.md").read_text().split()
    )
    for name in SENTENCES["curator"]["asked"]:
        SPENT.report(about={name: "told"})
        assert f'"{name}"' in documented
        assert f'"{name}":' in page


def test_a_search_without_a_release_still_says_that_tuning_is_included() -> None:
    actual = texts_of(replace(SPENT, release=None))["markdown"]
    assert "the hyperparameters included, is counted" in actual


def test_a_known_seed_is_said_first() -> None:
    spent = replace(SPENT, release=replace(TOLD, seeded=True))
    cases = ("summary", "randomness")
    assert all("nothing is promised" in section(spent, key).sentences[0] for key in cases)


def test_no_promise_is_called_no_promise() -> None:
    nothing = dp.NonPrivate()
    components = (Component(name="all", guarantee=nothing),)
    spent = PrivacySpent(guarantee=nothing, delta=1e-6, components=components)
    assert section(spent, "summary").sentences[0].startswith("Nothing is promised")
    assert spent.to_dict()["epsilon"] is spent.to_dict()["components"][0]["epsilon_alone"] is None
    assert section(spent, "risk").sentences[0].startswith("Nothing is promised")
    assert rows(spent, "risk")[ADVANTAGE] == "100.00 %"


@pytest.mark.parametrize(
    ("relation", "number"), [("add_remove", "private"), ("zero_out", "public")]
)
def test_whether_the_number_of_records_is_protected_depends_on_the_relation(relation, number):
    spent = PrivacySpent(guarantee=dp.PureDP(epsilon=1.0, neighboring=relation), delta=0.0)
    assert rows(spent, "unit")["Number of records"] == number
    actual = any("number of records" in text for text in section(spent, "not_protected").sentences)
    assert actual is (number == "public")


@pytest.mark.parametrize(("relation", "said"), [
    ("add_remove", "the records of one person more"),
    ("zero_out", "one person's records are all blanked"),
    ("replace_one", "records are replaced by any others, of any number"),
])  # fmt: skip
def test_a_statement_for_persons_says_so(relation: str, said: str) -> None:
    guarantee = dp.GaussianDP(mu=0.5, neighboring=relation)
    spent = PrivacySpent(guarantee=guarantee, delta=1e-6, unit="person")
    assert said in rows(spent, "unit")["In words"]
    assert "Number of persons" in rows(spent, "unit")
    for text in texts_of(spent).values():
        assert "of one person were" in text or "sets of records of one person was" in text
        assert "number of records" not in text
        assert "for_group" not in text
    told = json.loads(json.dumps(spent.to_dict()))
    assert (told["unit"], dp.from_dict(told["guarantee"])) == ("person", spent.guarantee)


def test_a_statement_for_groups_speaks_of_persons() -> None:
    texts = texts_of(PrivacySpent(guarantee=dp.PureDP(epsilon=0.5), delta=0.0).for_group(3))
    for text in texts.values():
        assert "up to 3 records of one person more" in text
        assert "whether the records of one person were" in text
        assert "A person with several records: the statement is about one" not in text


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "total", [SPENT.guarantee, dp.PureDP(epsilon=0.1 + 0.2), dp.ApproxDP(epsilon=1.0, delta=1e-7)]
)
def test_no_number_is_below_that_of_the_guarantee(total: object) -> None:
    components = (Component(name="all", guarantee=total),)
    spent = PrivacySpent(guarantee=total, delta=1e-6, components=components)
    profile = rows(spent, "parameters")
    assert "1e-06" in profile
    for delta, text in profile.items():
        assert float(text) >= total.epsilon_at(float(delta))
    told = rows(spent, "risk")
    for name, text in told.items():
        shares = [float(one) / 100 for one in re.findall(r"([\d.]+) %", name)]
        bound = max((float(total.bayes_risk(share)) for share in shares), default=0.0)
        assert float(text.removesuffix(" %")) / 100 >= bound * (1 - 1e-15)
    assert float(told[ADVANTAGE].removesuffix(" %")) / 100 >= total.advantage()
    membership = next(
        text for name, text in told.items() if re.search("half of the persons|as likely", name)
    )
    assert float(membership.removesuffix(" %")) / 100 >= total.bayes_risk(0.5, "membership")


def test_the_curve_is_that_of_the_guarantee_from_guessing_nobody_to_accusing_all() -> None:
    curve = section(SPENT, "curve").curve
    alpha, power = curve.false_positive_rates, curve.true_positive_rates
    assert alpha[0] == 0.0
    assert (alpha[-1], power[-1]) == pytest.approx((1.0, 1.0))
    assert np.all(np.diff(alpha) >= 0)
    assert np.all(np.diff(power) >= -1e-12)
    assert power == pytest.approx(1.0 - SPENT.trade_off(alpha), abs=1e-9)
    assert np.max(np.diff(alpha) + np.diff(power)) < 0.1  # nothing that could be seen is left out


def test_parts_are_stated_alone_beside_the_total() -> None:
    told = rows(SPENT, "composition")
    expected = tuple(up(one.epsilon_at(1e-6)) for one in (RUN, SEARCH))
    assert (told["refit"], told["best of K runs"]) == expected


# --- nothing is lost, and nothing breaks out ------------------------------------------------------


def test_the_guarantee_is_the_same_after_the_way_through_json() -> None:
    told = json.loads(json.dumps(SPENT.to_dict(), allow_nan=False))
    assert dp.from_dict(told["guarantee"]) == SPENT.guarantee
    assert told["release"]["attributes"] == ["best_params_", "best_score_", "best_estimator_"]


ODD = "<script>alert(1)</script> | `x` *y* _z_ [a](b) &amp; \\ \"q\" 'p' $1$"


def odd(text: str) -> PrivacySpent:
    """Everything that somebody may name, named so."""
    one = dp.PureDP(epsilon=1.0)
    return PrivacySpent(
        guarantee=one, delta=0.0, components=(Component(name=text, guarantee=one),),
        assumptions=(text,), unit=text,
        release=Release(made_by=text, model=text, attributes=(text,), tuned=True, seeded=False),
    )  # fmt: skip


def test_names_of_anybody_are_shown_as_they_are_and_break_nothing() -> None:
    texts = texts_of(odd(ODD), about={"Contact": ODD})
    assert [form for form, text in texts.items() if text.count(ODD) < 7] == []
    page = str(odd(ODD).report(date=DAY, about={"Contact": ODD}))
    assert {tag for tag, _ in Page(page).seen}.isdisjoint({"script", "a", "em", "iframe"})


def test_a_row_of_markdown_stays_a_row() -> None:
    lines = str(odd("a | b\n\n# c").report("markdown", date=DAY)).splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} <= {3, 4, 5}
    assert [line for line in lines if line.startswith("# ")] == [
        "# Privacy statement of a \\| b \\# c"
    ]


def test_control_characters_and_halves_of_letters_are_replaced(tmp_path) -> None:
    for form in ("html", "markdown"):
        report = odd("a\x00b\x1bc\u202ed\ud800e").report(form, date=DAY)
        text = report.save(tmp_path / form).read_text("utf-8")
        assert not re.search("[\x00\x1b\u202e]", text)
        assert "a�b�c�d�e" in text


def test_the_short_forms_escape_too() -> None:
    assert "<script>" not in odd(ODD)._repr_html_()
    assert html.escape(ODD) in odd(ODD)._repr_html_()


# --- the page -------------------------------------------------------------------------------------


def test_the_page_stands_alone_and_can_be_read_by_everybody() -> None:
    text = str(SPENT.report(date=DAY))
    seen = Page(text).seen
    tags = [tag for tag, _ in seen]
    assert text.startswith("<!DOCTYPE html>")
    assert ("html", {"lang": "en"}) in seen
    assert not re.search(r"(?:src|href)=|@import|url\(", text)
    assert {"title", "desc", "svg", "h1", "h2"} <= set(tags)
    assert all("scope" in given for tag, given in seen if tag == "th")
    assert tags.count("h1") == 1
    named = next(given["aria-labelledby"] for tag, given in seen if tag == "svg")
    ids = [given["id"] for _, given in seen if "id" in given]
    assert set(str(named).split()) <= set(ids)
    assert len(ids) == len(set(ids))
    assert "prefers-color-scheme: dark" in text
    assert "@page" in text


TEXTS = texts_of(SPENT)


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_one_fit_has_one_risk_wherever_it_is_printed(delta: float) -> None:
    """It once depended on the δ of the statement: 0.463 in print, 12.60 points in the report, 0.875
    in a ledger."""
    spent = PrivacySpent(guarantee=dp.GaussianDP(mu=0.3), delta=delta)
    said = (
        f"true positives exceed false positives by at most {hundredths_up(spent.advantage())} "
        f"percentage points."
    )
    reports = (str(spent.report(form)) for form in ("markdown", "html"))
    for printed in (str(spent), spent._repr_html_(), *reports):
        assert " ".join(printed.split()).count(said) == 1
        assert "whether the record of one person was in the data" in printed
    assert spent.advantage() == dp.GaussianDP(mu=0.3).advantage() < 0.12


# --- words instead of code ------------------------------------------------------------------------


def test_numbers_in_words_never_understate_a_loss():
    assert in_words(dp.PureDP(epsilon=1.00000001)) == "any mechanism with ε = 1.00001 at δ = 0"
    actual = in_words(dp.DPSGD(noise_multiplier=1.2999999, sample_rate=0.01, steps=10))
    assert "noise of 1.29999 clipping norms" in actual


FACTS = replace(TOLD, n_samples=32_561, columns=("age", "job"), target="income")


def test_public_facts_of_the_table_are_stated():
    spent = replace(SPENT, release=FACTS)
    for text in texts_of(spent).values():
        assert "age, job" in text
        assert "income" in text
        assert "public: 32,561" in text
        assert (
            "well below 1 divided by the number of records: here 3.07e-05, as they are 32,561"
            in text
        )
        assert "schema_report(table, schema, epsilon=0.1)" in text
        assert "Part 1" in text
    assert Release.from_dict(json.loads(json.dumps(FACTS.to_dict()))) == FACTS
    entries = TOLD.to_dict().items()
    old = {name: value for name, value in entries if name not in ("n_samples", "columns", "target")}
    assert Release.from_dict(old) == TOLD


def test_a_private_number_of_records_is_not_stated():
    guarantee = dp.GaussianDP(mu=0.4, neighboring="add_remove")
    spent = PrivacySpent(guarantee=guarantee, delta=1e-6, release=FACTS)
    assert not any("32,561" in text for text in texts_of(spent).values())
