"""A statement in one of its forms, to be looked at or saved.

HTML: a page that stands alone (no script, nothing to load, light and dark, A4). Markdown: for model
cards and repositories. Deployment: an entry of OpenDP's registry, YAML in the fields of
opendp/deployments-registry-data; what only a person can say stays a question in a comment, and the
registry wants an answer to those marked as required. The templates of page (its colours have a
contrast of at least 4.5), picture and entry lie beside this file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ...errors import did_you_mean
from .content import FACTS, Content, Curve, Section, template


def as_html(content: Content) -> str:
    """The statement as a page of its own."""
    sections = "\n".join(map(_html_section, content.sections))
    title, date = escape(content.title), escape(content.date)
    return Template(template("page.html")).substitute(title=title, date=date, sections=sections)


def _html_section(section: Section) -> str:
    """Section of a statement as HTML."""
    item, around = ("li", "<ul>{}</ul>") if section.listed else ("p", "{}")
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.listed or section.sentences:
        items = (f"<{item}>{escape(text)}</{item}>" for text in section.sentences)
        parts.append(around.format("".join(items)))
    if section.rows:
        parts.append(_html_table(section))
    if section.curve is not None:
        parts.append(svg_picture(section.curve))
    return f'<section class="{escape(section.key)}">\n' + "\n".join(parts) + "\n</section>"


def _html_table(section: Section) -> str:
    """Table of a section as HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.columns)
    rows = []
    for first, *row in section.rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        rows.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    body = "\n".join(rows)
    kind = ' class="facts"' if section.columns == FACTS else ""
    return f"<table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def svg_picture(curve: Curve) -> str:
    """Picture of a trade-off curve as SVG.

    It has the colour of the text; a page may style its classes axis, text, line and guess.
    """
    rates = zip(curve.false_positive_rates.tolist(), curve.true_positive_rates.tolist())
    places = ((56 + 260 * alpha, 14 + 260 * (1.0 - power)) for alpha, power in rates)
    points = dict.fromkeys(f"{x:.1f},{y:.1f}" for x, y in places)
    return Template(template("trade_off.svg")).substitute(points=" ".join(points)).rstrip()


def as_deployment(content: Content) -> str:
    """The statement as an entry of the registry of deployments."""
    answers, lines = _registry_answers(content), template("deployment.yaml").splitlines()
    return "".join(_fill_registry_line(line, answers) for line in lines)


def _fill_registry_line(field: str, answers: Mapping[str, Any]) -> str:
    """Line of the registry entry with its answer, or its question; empty without both."""
    line, _, question = field.partition(" # ")
    try:
        return line.format_map(answers) + "\n"
    except KeyError:
        name = line.partition(":")[0]
        return f"{name[: -len(name.lstrip())]}# {name.lstrip()}: {question}\n" if question else ""


def _registry_answers(content: Content) -> dict[str, Any]:
    """Answers for the template of the registry's entry, escaped for JSON and YAML quotes."""
    sections = {section.key: section for section in content.sections}
    stated = (sections[key].rows for key in ("release", "unit", "curator"))
    facts = {name: text for rows in stated for name, text, *_ in rows}
    about = {name: text for name, text in facts.items() if text != "not stated"}
    rows = sections["composition"].rows
    parts = [f"{name} (epsilon = {alone} alone): {how}. " for name, alone, _, how in rows]
    slug = "".join(c if c.isalnum() else " " for c in about.get("Name", "draft").lower())
    numbers = (("epsilon", content.epsilon), ("delta", content.delta))
    finite = [(name, json.dumps(number)) for name, number in numbers if math.isfinite(number)]
    sentences = {key: " ".join(section.sentences) for key, section in sections.items()}
    texts = {
        "title": content.title,
        "date": content.date,
        "slug": "-".join(slug.split()),
        "product": "Machine learning model" if "Model" in facts else "Summary statistics",
        "description": _rows_as_text(sections["release"].rows) or content.title,
        "variant": "Pure DP" if content.delta == 0 else "Approximate DP",
        "releases": "Many releases" if content.of_a_ledger else "One release",
        "unit": _rows_as_text(sections["unit"].rows[1:]),
        "parameters": _rows_as_text(sections["parameters"].rows),
        "versions": _rows_as_text(sections["versions"].rows[1:]),
        "parts": "".join(parts),
    }
    return {
        **_escape_for_json(texts),
        "said": _escape_for_json(sentences),
        "facts": _escape_for_json(facts),
        "about": _escape_for_json(about),
        # YAML 1.1 reads 1e-06 as a text
        "numbers": {name: re.sub(r"^(\d+)e", r"\1.0e", text) for name, text in finite},
    }


def _rows_as_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a table as one line of text."""
    return "; ".join(f"{name}: {text}" for name, text, *_ in rows)


def _escape_for_json(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts escaped for JSON's quotes."""
    return {name: json.dumps(text, ensure_ascii=False)[1:-1] for name, text in texts.items()}


#: Characters with a meaning in Markdown or in HTML inside of it.
COMMANDS = re.compile(r"([\\`*_\[\]<>|&#~$!]|^[-+=]|(?<=^\d)[.)](?= ))")


def as_markdown(content: Content) -> str:
    """The statement as Markdown."""
    parts = [f"# {_escaped(content.title)}", _escaped(content.date)]
    for section in content.sections:
        mark, gap = ("* ", "\n") if section.listed else ("", "\n\n")
        parts.append(f"## {_escaped(section.title)}")
        parts.append(gap.join(mark + _escaped(text) for text in section.sentences))
        if section.rows:
            table = (section.columns, *section.rows)
            lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in table]
            parts.append("\n".join([lines[0], "|" + " --- |" * len(section.columns), *lines[1:]]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _escaped(text: str) -> str:
    """Text without commands of Markdown."""
    return COMMANDS.sub(r"\\\1", text)


#: Form ↦ how it is written.
FORMS: dict[str, Callable[[Content], str]] = {
    "html": as_html,
    "markdown": as_markdown,
    "deployment": as_deployment,
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """Report for a data-protection officer, in one form.

    It prints as its text, and notebooks show it.

    Parameters
    ----------
    content : Content
        Content by section, equal in every form.
    form : {"html", "markdown", "deployment"}
    """

    content: Content
    form: str

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            hint = did_you_mean(str(self.form), FORMS)
            raise ValueError(
                f"Found format={self.form!r}; one of {', '.join(map(repr, FORMS))} is needed.{hint}"
            )

    def __str__(self) -> str:
        return FORMS[self.form](self.content)

    def __repr__(self) -> str:
        title = f"{self.content.title}, {self.content.date}"
        return f"<{title}, as {self.form}: save(path), or str() for the text>"

    def _repr_html_(self) -> str:
        """The statement as a part of another page, such as a notebook."""
        return as_html(self.content).partition("<body>\n")[2].partition("\n</body>")[0]

    def save(self, path: str | Path) -> Path:
        """Write the text to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends with .yaml asks for the entry of a registry of deployments, whatever
            the form.

        Returns
        -------
        Path
            Where it is.
        """
        as_entry = Path(path).suffix in (".yaml", ".yml")
        text = as_deployment(self.content) if as_entry else str(self)
        Path(path).write_text(text, encoding="utf-8")
        return Path(path)
