"""A statement in one of its forms, to be looked at or saved.

HTML: a page that stands alone (no script, nothing to load, light and dark, A4). Markdown: for model cards and
repositories. Deployment: an entry of OpenDP's registry, YAML in the fields of opendp/deployments-registry-data; what
only a person can say stays a question in a comment, and the registry wants an answer to those marked as required.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ...errors import did_you_mean
from .content import FACTS, Content, Curve, Section

#: Colours with a contrast of at least 4.5 to the ground they stand on.
STYLE = """
.dp-statement { --ground: #ffffff; --ink: #1b1b1b; --faint: #595959; --rule: #c9c9c9; --shade: #f3f3f3;
  --line: #0063a8; color-scheme: light dark; background: var(--ground); color: var(--ink); line-height: 1.45;
  font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 15px; max-width: 52em; margin: 0 auto;
  padding: 1.5em; overflow-wrap: break-word; }
@media (prefers-color-scheme: dark) { .dp-statement { --ground: #16181b; --ink: #e8e8e8; --faint: #b0b0b0;
  --rule: #4a4d52; --shade: #22252a; --line: #6bb8f0; } }
.dp-statement h1 { font-size: 1.5em; margin: 0 0 0.2em; }
.dp-statement h2 { font-size: 1.1em; margin: 1.6em 0 0.3em; padding-bottom: 0.15em;
  border-bottom: 1px solid var(--rule); }
.dp-statement p, .dp-statement ul { margin: 0.4em 0; }
.dp-statement li { margin: 0.2em 0; }
.dp-statement .date { color: var(--faint); }
.dp-statement .summary { background: var(--shade); border-left: 4px solid var(--line); padding: 0.3em 1em; }
.dp-statement .summary h2 { border: none; margin-top: 0.3em; }
.dp-statement table { border-collapse: collapse; margin: 0.6em 0; width: 100%; }
.dp-statement th, .dp-statement td { border-bottom: 1px solid var(--rule); padding: 0.3em 0.7em 0.3em 0;
  text-align: left; vertical-align: top; }
.dp-statement tbody th { font-weight: normal; }
.dp-statement td:last-child { overflow-wrap: anywhere; }
.dp-statement .parameters td, .dp-statement .risk td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.dp-statement .facts tbody th { color: var(--faint); width: 30%; }
.dp-statement svg { width: 22em; max-width: 100%; height: auto; display: block; margin: 0.8em 0; }
.dp-statement .axis { fill: none; stroke: var(--faint); }
.dp-statement .text { fill: var(--ink); font-size: 12px; }
.dp-statement .line { fill: none; stroke: var(--line); stroke-width: 2.5; }
.dp-statement .guess { stroke: var(--faint); stroke-dasharray: 5 4; }
@page { size: A4; margin: 16mm; }
@media print { .dp-statement { --ground: #ffffff; --ink: #000000; --faint: #444444; --rule: #999999; --shade: #f3f3f3;
  --line: #00508a; font-size: 10pt; padding: 0; max-width: none; }
  .dp-statement h2 { break-after: avoid; }
  .dp-statement tr, .dp-statement svg, .dp-statement li { break-inside: avoid; } }
"""
#: A page around the article: the ground reaches to the edges of the window.
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ margin: 0; background: #ffffff; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #16181b; }} }}
@media print {{ body {{ background: #ffffff; }} }}</style>
</head>
<body>
{article}
</body>
</html>
"""
#: Of the picture, and of the square that the curve is in: left, top, size.
WIDTH, HEIGHT = 360, 330
LEFT, TOP, SIZE = 56, 14, 260
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TITLE = "True positive rates that no attack exceeds"
DESCRIPTION = (
    "Horizontal: the false positive rate of an attack, from 0 to 1. Vertical: its true positive rate, from 0 to 1. No "
    "attack lies above the solid line. Pure guessing lies on the dashed diagonal. The numbers are in the table."
)


def as_html(content: Content) -> str:
    """A page of its own."""
    return PAGE.format(title=escape(content.title), article=article(content))


def article(content: Content) -> str:
    """The statement as a part of another page, such as a notebook."""
    body = "\n".join(_section(section) for section in content.sections)
    head = f'<h1>{escape(content.title)}</h1>\n<p class="date">{escape(content.date)}</p>'
    return f'<style>{STYLE}</style>\n<article class="dp-statement" lang="en">\n{head}\n{body}\n</article>'


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>", _sentences(section), _table(section)]
    if section.curve is not None:
        parts.append(svg(section.curve, f"dp-{section.key}"))
    return f'<section class="{escape(section.key)}">\n' + "\n".join(part for part in parts if part) + "\n</section>"


def _sentences(section: Section) -> str:
    if section.listed:
        return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in section.sentences)}</ul>"
    return "".join(f"<p>{escape(text)}</p>" for text in section.sentences)


def _table(section: Section) -> str:
    if not section.rows:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.columns)
    body = "\n".join(_row(row) for row in section.rows)
    kind = ' class="facts"' if section.columns == FACTS else ""
    return f"<table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(row: tuple[str, ...]) -> str:
    first, *others = map(escape, row)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{one}</td>" for one in others)}</tr>'


def svg(curve: Curve, key: str) -> str:
    """The picture, in the colour of the text; a page may give its classes others: axis, text, line and guess."""
    points = dict.fromkeys(
        f"{_x(float(alpha)):.1f},{_y(float(power)):.1f}"
        for alpha, power in zip(curve.false_positive_rates, curve.true_positive_rates)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-title {key}-desc" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{key}-title">{escape(TITLE)}</title>'
        f'<desc id="{key}-desc">{escape(DESCRIPTION)}</desc>{_axes()}'
        f'<line class="guess" stroke="currentColor" stroke-dasharray="5 4" '
        f'x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}"/>'
        f'<polyline class="line" fill="none" stroke="currentColor" stroke-width="2.5" points="{" ".join(points)}"/>'
        "</svg>"
    )


def _x(rate: float) -> float:
    return LEFT + SIZE * rate


def _y(rate: float) -> float:
    return TOP + SIZE * (1.0 - rate)


def _axes() -> str:
    frame = (
        f'<rect class="axis" fill="none" stroke="currentColor" x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}"/>'
    )
    below = "".join(_label(_x(tick), TOP + SIZE + 17, f"{tick:g}", "middle") for tick in TICKS)
    beside = "".join(_label(LEFT - 7, _y(tick) + 4, f"{tick:g}", "end") for tick in TICKS)
    name_below = _label(_x(0.5), TOP + SIZE + 40, "false positive rate", "middle")
    turned = f'transform="rotate(-90 16 {_y(0.5):.0f})"'
    return frame + below + beside + name_below + _label(16, _y(0.5), "true positive rate", "middle", turned)


def _label(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}'
    return f'<text class="text" fill="currentColor" font-size="12" {place}>{text}</text>'


#: Questions to a person, by field; those of the first are required by the registry.
REQUIRED = {
    "name": "the name of the data product",
    "data_curators": "who publishes it",
    "intended_use": "what it is for",
    "data_product_region": "the region that the data describe, or whose laws apply",
    "registry_authors": "who writes this entry",
}
OPTIONAL = {
    "data_product_sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    "data_domain": "data sets that could have been there",
    "data_source_type": "Static or Dynamic: whether new records come in",
    "post_processing": "what was done with the release afterwards",
    "justification": "why this epsilon and delta, and how they were validated",
    "sources": "links to papers, pages, and the release itself",
}
AUTHOR = "Author of this entry"
#: Indentation of a level.
INDENT = "  "


def as_deployment(content: Content) -> str:
    """The whole entry."""
    head = "# Entry for github.com/opendp/deployments-registry-data. Answer the questions, and delete their marks."
    return "\n".join([head, *_lines(_entry(content))]) + "\n"


def _entry(content: Content) -> dict[str, Any]:
    """Fields of the registry in its order; None: a question."""
    sections = {one.key: one for one in content.sections}
    said = {key: " ".join(one.sentences) for key, one in sections.items()}
    facts = {name: text for key in ("release", "unit", "curator") for name, text, *_ in sections[key].rows}
    about = {name: text for name, text in facts.items() if text != "not stated"}
    parts = [f"{name} (epsilon = {alone} alone): {how}." for name, alone, _, how in sections["composition"].rows]
    return {
        "url_slug": "-".join("".join(c if c.isalnum() else " " for c in about.get("Name", "draft").lower()).split()),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": about.get("Name"),
                "data_curators": [about["Curator"]] if "Curator" in about else None,
                "intended_use": about.get("Intended use of the release"),
                "data_product_type": "Machine learning model" if "Model" in facts else "Summary statistics",
                "data_product_region": about.get("Region"),
                "description": _joined(sections["release"].rows) or content.title,
                "publication_date": content.date,
                "data_product_sector": about.get("Sector"),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if content.delta == 0 else "Approximate DP",
                "data_domain": about.get("Data set, and who is in it"),
                "unprotected_quantities": said["not_protected"],
            },
            "privacy_loss": {
                "privacy_unit": facts["Unit of privacy"],
                "privacy_unit_details": _joined(sections["unit"].rows[1:]),
                "privacy_parameters": {
                    **({"epsilon": content.epsilon} if math.isfinite(content.epsilon) else {}),
                    "delta": content.delta,
                },
                "privacy_parameters_details": said["parameters"] + f" By delta: {_joined(sections['parameters'].rows)}",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": said["trust"] + f" Recipients: {about.get('Who gets the release', 'not stated')}.",
                "release_type": "Many releases" if content.of_a_ledger else "One release",
                "release_type_details": said["summary"],
                "data_source_type": None,
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": None,
                "composition": " ".join([said["composition"], *parts, said["accounting"]]),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": " ".join([said["tuning"], said["assumptions"]]),
                "mechanisms": " ".join([*parts, said["randomness"], _joined(sections["versions"].rows[1:])]),
                "justification": about.get("Why this ε and δ"),
            },
            "administrative": {
                "sources": about.get("Sources"),
                "notes": f"{content.title}, {content.date}, written by the library that accounted for it.",
                "registry_authors": [about[AUTHOR]] if AUTHOR in about else None,
            },
        },
    }


def _joined(rows: Iterable[Sequence[str]]) -> str:
    return "; ".join(f"{name}: {text}" for name, text, *_ in rows)


def _lines(entry: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Lines of YAML, in which strings of JSON are strings."""
    for name, value in entry.items():
        if value is None:
            required = " (required)" if name in REQUIRED else ""
            yield f"{INDENT * depth}# {name}: {(REQUIRED | OPTIONAL)[name]}?{required}"
        elif isinstance(value, dict):
            yield f"{INDENT * depth}{name}:"
            yield from _lines(value, depth + 1)
        else:
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, float) and "e" in text and "." not in text:
                text = text.replace("e", ".0e")  # YAML 1.1 reads 1e-06 as a text
            yield f"{INDENT * depth}{name}: {text}"


#: Characters with a meaning in Markdown or in HTML inside of it.
COMMANDS = re.compile(r"([\\`*_\[\]<>|&#~$!]|^[-+=]|(?<=^\d)[.)](?= ))")


def as_markdown(content: Content) -> str:
    """The whole statement."""
    parts = [f"# {_escaped(content.title)}", _escaped(content.date)]
    for section in content.sections:
        mark, gap = ("* ", "\n") if section.listed else ("", "\n\n")
        parts += [f"## {_escaped(section.title)}", gap.join(mark + _escaped(text) for text in section.sentences)]
        if section.rows:
            rule = "|" + " --- |" * len(section.columns)
            parts.append("\n".join([_line(section.columns), rule, *map(_line, section.rows)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(texts: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(text) for text in texts) + " |"


def _escaped(text: str) -> str:
    return COMMANDS.sub(r"\\\1", text)


#: Form ↦ how it is written.
FORMS: dict[str, Callable[[Content], str]] = {"html": as_html, "markdown": as_markdown, "deployment": as_deployment}


@dataclass(frozen=True, kw_only=True)
class Report:
    """Report for a data-protection officer. Prints as its text; notebooks show it.

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
            raise ValueError(f"Found format={self.form!r}; one of {', '.join(map(repr, FORMS))} is needed.{hint}")

    def __str__(self) -> str:
        return FORMS[self.form](self.content)

    def __repr__(self) -> str:
        return f"<{self.content.title}, {self.content.date}, as {self.form}: save(path), or str() for the text>"

    def _repr_html_(self) -> str:
        return article(self.content)

    def save(self, path: str | Path) -> Path:
        """Write the text to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends with .yaml asks for the entry of a registry of deployments, whatever the form.

        Returns
        -------
        Path
            Where it is.
        """
        as_entry = Path(path).suffix in (".yaml", ".yml")
        Path(path).write_text(as_deployment(self.content) if as_entry else str(self), encoding="utf-8")
        return Path(path)
