"""A statement as Markdown: for model cards and repositories."""

from __future__ import annotations

import re

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
