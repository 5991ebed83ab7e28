"""Helpers of all displays: axes and distinguishable colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        """Axes to draw on, given or of a new figure; an error with a remedy without matplotlib."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                name = type(self).__name__
                raise ImportError(
                    f"{name}.plot needs matplotlib. Install it: pip install matplotlib"
                ) from error
            ax = plt.figure(layout="constrained").add_subplot()
        self.ax_, self.figure_ = ax, ax.figure
        return ax


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
