"""A statement in one of its forms, to be looked at or saved; as Markdown for model cards and repositories."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import did_you_mean
from .as_deployment import as_deployment
from .as_html import article, as_html
from .content import Content, Section

#: Characters with a meaning in Markdown or in HTML inside of it.
COMMANDS = re.compile(r"([\\`*_\[\]<>|&#~$!]|^[-+=]|(?<=^\d)[.)](?= ))")


def as_markdown(content: Content) -> str:
    """The whole statement."""
    parts = [f"# {_escaped(content.title)}", _escaped(content.date), *(_section(one) for one in content.sections)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> str:
    if section.listed:
        sentences = ["\n".join(f"* {_escaped(text)}" for text in section.sentences)]
    else:
        sentences = [_escaped(text) for text in section.sentences]
    return "\n\n".join([f"## {_escaped(section.title)}", *sentences, *_table(section)])


def _table(section: Section) -> list[str]:
    if not section.rows:
        return []
    head = [_line(section.columns), "|" + " --- |" * len(section.columns)]
    return ["\n".join([*head, *(_line(row) for row in section.rows)])]


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
