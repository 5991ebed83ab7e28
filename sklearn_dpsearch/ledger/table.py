"""A ledger as a table."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Protocol

from ..privacy.statement.numbers import up


class TableRow(Protocol):
    """The ledger up to one of its entries."""

    @property
    def day(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def epsilon_alone(self) -> float: ...
    @property
    def epsilon_total(self) -> float: ...


#: Heading ↦ content of its column.
COLUMNS: dict[str, Callable[[TableRow], str]] = {
    "day (UTC)": lambda step: step.day,
    "entry": lambda step: " ".join(step.title.split()),
    "ε alone": lambda step: up(step.epsilon_alone),
    "ε in total": lambda step: up(step.epsilon_total),
}


def as_text(title: str, steps: Sequence[TableRow]) -> str:
    """A table for terminals."""
    lines = [list(COLUMNS), *([show(step) for show in COLUMNS.values()] for step in steps)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(COLUMNS))]
    return "\n".join(
        [title, *("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)]
    )


def as_html(title: str, steps: Sequence[TableRow]) -> str:
    """A table for notebooks."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(show(step))}</td>" for show in COLUMNS.values()) + "</tr>" for step in steps
    )
    return f"<div><p>{html.escape(title)}</p><table><tr>{head}</tr>{body}</table></div>"
