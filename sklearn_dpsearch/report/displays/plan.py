"""Searches side by side: ε of the released model over the work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .drawing import Display, looks, plain_ticks
from .rows import fields_of


class PlannedSearch(NamedTuple):
    """One way to spend the budget.

    Parameters
    ----------
    search : str
        Name of the search.
    work : float
        Expected number of records processed, in units of one training on all records.
    epsilon_final : float
        ε of training the model that is released.
    """

    search: str
    work: float
    epsilon_final: float


@dataclass(kw_only=True, eq=False)
class PlanDisplay(Display):
    """ε of the released model over the work, a point for each search.

    Parameters
    ----------
    searches : tuple of PlannedSearch

    Attributes
    ----------
    lines_ : dict of str to matplotlib line
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> display = PlanDisplay.from_rows([("one fit", 1.0, 1.0), ("random, n_iter=10", 9.2, 0.56)])
    >>> display.searches[1].epsilon_final
    0.56
    """

    searches: tuple[PlannedSearch, ...]

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> PlanDisplay:
        """Take the rows of a plan.

        Parameters
        ----------
        rows : iterable
            ``plan(...).rows``: objects, mappings or tuples with search, work and epsilon_final.

        Returns
        -------
        PlanDisplay
        """
        return cls(searches=tuple(PlannedSearch(**fields_of(row, PlannedSearch)) for row in rows))

    def plot(self, ax: Any = None) -> PlanDisplay:
        """Draw a point for each search.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        self.lines_ = {}
        for one, look in zip(self.searches, looks()):
            (self.lines_[one.search],) = ax.plot(
                [one.work], [one.epsilon_final], color=look.color, marker=look.marker, linestyle="", label=one.search
            )
        ax.set(xlabel="work, in trainings on all records", ylabel="ε of the released model's training", xscale="log")
        plain_ticks(ax.xaxis)
        ax.legend()  # labels beside the points would cover each other
        return self
