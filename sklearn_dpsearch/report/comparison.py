"""Comparison of searches: a table, as text, HTML, a data frame or a plot."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way to spend the budget.

    Parameters
    ----------
    search : str
        Name of the search.
    call : str
        Source code of the call, with the names ``estimator`` and ``space``.
    quantile : float
        Expected quantile of the winner among all candidates, ranked by score; nan where every candidate is tried, or
        none is chosen.
    alone : float
        Chance that only one candidate is tried, without a comparison.
    epsilon_run, epsilon_final : float
        ε of training one candidate, and of training the model that is released, at the total's δ.
    noise : dict
        Parameters that set the noise of the released model.
    work : float
        Expected number of records processed, in units of one training on all records.
    seconds : float
        ``work`` times the time of one training on made-up records; nan if not measured.
    """

    search: str
    call: str
    quantile: float
    alone: float
    epsilon_run: float
    epsilon_final: float
    noise: dict[str, Any]
    work: float
    seconds: float = math.nan


def _noise(row: Row) -> str:
    return ", ".join(f"{name}={value:.4g}" for name, value in row.noise.items() if isinstance(value, (int, float)))


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


#: Heading ↦ content of a cell.
COLUMNS: dict[str, Callable[[Row], str]] = {
    "search": lambda row: row.search,
    "quantile of the winner": lambda row: _number(row.quantile, 3),
    "one alone": lambda row: f"{100 * row.alone:.0f} %",
    "ε of a run": lambda row: _number(row.epsilon_run, 3),
    "ε of the model": lambda row: _number(row.epsilon_final, 3),
    "noise": _noise,
    "work": lambda row: _number(row.work, 1),
    "seconds": lambda row: _number(row.seconds, 0),
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of ``plan``: searches side by side.

    Parameters
    ----------
    n_samples : int
    epsilon, delta : float
        The total that every row spends, or up to 3 % less.
    rows : list of Row
    recommended : Row
    why : str
        The rule behind the recommendation (docs/learn/which_search.md).
    left_out : dict
        Search ↦ reason why planning failed.
    columns : list of str
        One line for each column, as the schema of the estimator is understood; empty without a schema.
    """

    n_samples: int
    epsilon: float
    delta: float | None
    rows: list[Row]
    recommended: Row
    why: str
    left_out: dict[str, str]
    columns: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        table = [list(COLUMNS), *([show(row) for show in COLUMNS.values()] for row in self.rows)]
        widths = [max(len(line[place]) for line in table) for place in range(len(COLUMNS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table]
        lines += [f"left out: {name}: {reason}" for name, reason in self.left_out.items()]
        columns = ["columns as they are read:", *(f"  {line}" for line in self.columns)] if self.columns else []
        return "\n".join([self._title, *lines, f"recommended: {self._recommended}", self.why, *columns])

    @property
    def _recommended(self) -> str:
        """Name and call of the recommended row: a single fit is a grid of one candidate, without a choice."""
        return f"{self.recommended.search}: {self.recommended.call}"

    @property
    def _title(self) -> str:
        delta = "" if self.delta is None else f", delta = {self.delta:g}"
        return f"{self.n_samples:,} records, epsilon = {self.epsilon:g}{delta}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(show(row))}</td>" for show in COLUMNS.values()) + "</tr>"
            for row in self.rows
        )
        missing = "".join(f"<li>{html.escape(f'{name}: {text}')}</li>" for name, text in self.left_out.items())
        code = f"<p><b>recommended</b> <code>{html.escape(self._recommended)}</code></p>"
        columns = "<br>".join(map(html.escape, self.columns))
        told = f"{code}<p>{html.escape(self.why)}</p><ul>{missing}</ul><p>{columns}</p>"
        return f"<div><p>{html.escape(self._title)}</p><table><tr>{head}</tr>{body}</table>{told}</div>"

    def to_frame(self) -> Any:
        """Convert the rows to a pandas data frame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])
