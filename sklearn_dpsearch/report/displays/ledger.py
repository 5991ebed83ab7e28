"""A ledger over time: what each fit cost alone, what all of them cost together, and the budget."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .drawing import LOOKS, Display
from .rows import fields_of

#: Most entries with labels on the axis; most characters of a label, and of each of its lines.
NAMED, LONGEST, WIDTH = 10, 60, 18
#: Most entries whose labels stand beside each other.
UPRIGHT = 4


class LedgerBar(NamedTuple):
    """One fit in a ledger.

    Parameters
    ----------
    time : object
        When, as it is to be shown.
    label : str
        Which fit.
    epsilon_alone : float
        Its own ε.
    epsilon_total : float
        ε of all fits up to it.
    """

    time: Any
    label: str
    epsilon_alone: float
    epsilon_total: float


@dataclass(kw_only=True, eq=False)
class LedgerDisplay(Display):
    """Spending of a ledger, fit by fit.

    Parameters
    ----------
    entries : tuple of LedgerBar
        In the order of time.
    budget : float or None
        The largest total that is allowed.

    Attributes
    ----------
    bars_ : matplotlib container
        Each fit alone.
    line_ : matplotlib line
        All fits up to each.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> rows = [("2026-01-10", "first", 2.0, 2.0), ("2026-01-12", "second", 2.0, 2.87)]
    >>> LedgerDisplay.from_history(rows, budget=3.0).entries[-1].epsilon_total
    2.87
    """

    entries: tuple[LedgerBar, ...]
    budget: float | None = None

    @classmethod
    def from_history(cls, rows: Iterable[Any], budget: float | None = None) -> LedgerDisplay:
        """Take the rows of a ledger.

        Parameters
        ----------
        rows : iterable
            ``ledger.history()``: tuples (time, label, epsilon_alone, epsilon_total); or objects or mappings with these
            names.
        budget : float, optional
            ``ledger.epsilon``; an infinite one is not drawn.

        Returns
        -------
        LedgerDisplay
        """
        return cls(entries=tuple(LedgerBar(**fields_of(row, LedgerBar)) for row in rows), budget=budget)

    def plot(self, ax: Any = None) -> LedgerDisplay:
        """Draw a bar for each fit, a line for all together, and the budget.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        alone, total = ([float(one[place]) for one in self.entries] for place in (2, 3))
        places = np.arange(1, len(alone) + 1)
        self.bars_ = ax.bar(places, alone, width=0.6, color=LOOKS[1].color, label="this fit alone")
        shown = {"marker": LOOKS[0].marker, **LOOKS[0].line}
        (self.line_,) = ax.plot(places, total, label="all fits so far", **shown)
        added = [math.fsum(alone[:place]) for place in places]
        ax.plot(places, added, label="added up", marker=LOOKS[3].marker, markersize=4, **LOOKS[3].line)
        if self.budget is not None and math.isfinite(self.budget):
            ax.axhline(self.budget, color=ax.xaxis.label.get_color(), linestyle=":", label="budget")
        self._name(ax, places)
        ax.set(ylabel="ε", ylim=(0.0, None))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)  # above: inside it would cover the budget
        return self

    def _name(self, ax: Any, places: Any) -> None:
        """Write labels and times below the bars, if there is room."""
        if len(self.entries) > NAMED:
            ax.set(xlabel="fit")
            ax.xaxis.get_major_locator().set_params(integer=True)
            return
        ax.set_xticks(places, [f"{_lines(str(one.label))}\n{one.time}" for one in self.entries], fontsize="small")
        if len(self.entries) > UPRIGHT:
            ax.tick_params("x", labelrotation=90)


def _lines(label: str) -> str:
    """A label on lines of the width of a bar, and cut only if it is very long."""
    return textwrap.fill(textwrap.shorten(label, LONGEST, placeholder="…"), WIDTH)
