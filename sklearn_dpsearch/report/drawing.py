"""Helpers of all displays: axes, distinguishable colours, and costs of searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar, Self

from ..search import BasePrivateSearch


class Display:
    """Base class of displays: fields hold data, ``plot`` draws them.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Axes and figure of the last ``plot``.
    """

    ax_: Any
    figure_: Any

    def _start(self, ax: Any) -> Any:
        """Axes to draw on, given or new."""
        self.ax_ = axes_of(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        return self.ax_


class SearchDisplay(Display):
    """Base class of displays of what a search costs."""

    #: Compute the display of a statement.
    _from: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, search: BasePrivateSearch, **options: Any) -> Self:
        """Display the cost of a search: spent, or before ``fit`` planned.

        Parameters
        ----------
        search : search
        **options : dict
            As for the display of a statement.

        Returns
        -------
        self : object
        """
        spent = getattr(search, "privacy_spent_", None)
        made: Self = cls._from(search.privacy_cost() if spent is None else spent, **options)
        return made


def axes_of(ax: Any, asking: str) -> Any:
    """Return the given axes or those of a new figure; without matplotlib raise an error with the remedy."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{asking}.plot needs matplotlib. Install it: pip install matplotlib") from error
    return plt.figure(layout="constrained").add_subplot()


@dataclass(frozen=True)
class Look:
    """Style of one line: colour, dashes and marker, so that no two differ by colour alone."""

    color: str
    linestyle: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line without markers."""
        return {"color": self.color, "linestyle": self.linestyle}


#: Colours of Okabe & Ito (2008) that stand out on white and on black; the first is the main line's.
LOOKS = (
    Look("#D55E00", "-", "o"),
    Look("#0072B2", (0, (6, 2)), "s"),
    Look("#009E73", (0, (2, 2)), "^"),
    Look("#CC79A7", (0, (6, 2, 2, 2)), "D"),
    Look("#E69F00", (0, (1, 1)), "v"),
    Look("#56B4E9", (0, (8, 2, 1, 2, 1, 2)), "P"),
    Look("#8C8C8C", (0, (3, 1, 1, 1)), "X"),
    Look("#F0E442", (0, (4, 4)), "*"),
)


def cycle_looks() -> Iterator[Look]:
    """Cycle through all styles of lines."""
    return cycle(LOOKS)


def plain_ticks(axis: Any, places: Any = None) -> None:
    """Write ticks of a logarithmic axis as plain numbers, at given places or at matplotlib's."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    if places is not None:
        axis.set_ticks(places)
        axis.set_minor_locator(NullLocator())
    number: Callable[[float, object], str] = lambda value, _: f"{value:g}"  # noqa: E731
    axis.set_major_formatter(FuncFormatter(number))
    axis.set_minor_formatter(NullFormatter())
