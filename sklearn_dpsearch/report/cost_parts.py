"""Parts of a total: each part alone, their sum, and their cost together."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy.spent import PrivacySpent
from ..privacy.statement.content import up
from .drawing import LOOKS, SearchDisplay

#: Most characters on a line of a part's name, and in the whole name.
WIDTH, LONGEST = 34, 100


@dataclass(kw_only=True, eq=False)
class CostPartsDisplay(SearchDisplay):
    """Display of ε of each part alone, their sum, and together.

    At one δ.

    Parameters
    ----------
    parts : dict of str to float
        What is released ↦ its ε alone.
    total : float
        ε of everything together.
    delta : float

    Attributes
    ----------
    bars_ : matplotlib container
    ax_, figure_ : matplotlib axes and figure
    """

    parts: dict[str, float]
    total: float
    delta: float

    @property
    def sum(self) -> float:
        """Sum of ε of the parts, by basic composition.

        At ``delta_of_sum``.
        """
        return math.fsum(self.parts.values())

    @property
    def delta_of_sum(self) -> float:
        """δ of the sum of the parts."""
        return self.delta * len(self.parts)

    @classmethod
    def from_statement(cls, spent: PrivacySpent) -> CostPartsDisplay:
        """Read the parts of a statement.

        Parameters
        ----------
        spent : PrivacySpent
            ``privacy_spent_`` of a fit, or ``privacy_cost()``.

        Returns
        -------
        CostPartsDisplay
        """
        names = _unique_names([one.name for one in spent.components])
        alone = (float(one.guarantee.epsilon_at(spent.delta)) for one in spent.components)
        return cls(parts=dict(zip(names, alone)), total=spent.epsilon, delta=spent.delta)

    _from = from_statement

    def plot(self, ax: Any = None) -> CostPartsDisplay:
        """Draw a bar for each.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        bars = {**self.parts, f"added up (at δ = {self.delta_of_sum:g})": self.sum, "together": self.total}
        parts, added, together = LOOKS[1].color, LOOKS[3].color, LOOKS[0].color
        colors = [*[parts] * len(self.parts), added, together]
        places = np.arange(len(bars))[::-1]
        self.bars_ = ax.barh(places, list(bars.values()), color=colors, height=0.7)
        ax.bar_label(self.bars_, [up(value) for value in bars.values()], padding=3)
        ax.set_yticks(places, [_wrapped_name(name) for name in bars])
        ax.set(xlabel=f"ε at δ = {self.delta:g}")
        ax.margins(x=0.16)
        return self


def _unique_names(names: list[str]) -> list[str]:
    """Names of parts, made unique.

    Two parts may have the same name.
    """
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def _wrapped_name(name: str) -> str:
    """Name of a part, shortened and wrapped."""
    return textwrap.fill(textwrap.shorten(name, LONGEST, placeholder=" …"), WIDTH)
