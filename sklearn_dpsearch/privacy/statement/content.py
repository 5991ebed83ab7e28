"""Content of a statement as one structure. All forms are written from it, so they agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Array
from ..numerics.trade_off import TradeOff

#: Headings of a table of facts.
FACTS = ("field", "stated")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Largest true positive rates of any attack, at false positive rates that rise from 0 to 1."""

    false_positive_rates: Array
    true_positive_rates: Array

    @classmethod
    def of(cls, trade_off: TradeOff) -> Curve:
        """Build the curve from the corners of a trade-off curve, without corners too close together to be seen."""
        alpha, power = trade_off.corners
        low, high = np.append(0.0, alpha[::-1]), np.append(power[-1], power[::-1])
        both = np.column_stack([np.concatenate([low, 1.0 - high[::-1]]), np.concatenate([high, 1.0 - low[::-1]])])
        _, kept = np.unique(np.round(both, 3), axis=0, return_index=True)
        points = both[np.sort(np.append(kept, both.shape[0] - 1))]
        return cls(false_positive_rates=points[:, 0], true_positive_rates=points[:, 1])


@dataclass(frozen=True, eq=False)
class Section:
    """One heading and its content, cleaned.

    Parameters
    ----------
    key : str
        Name of the section in a style sheet.
    title : str
    sentences : tuple of str
        In the order in which they are read.
    listed : bool
        Whether the sentences are points of a list.
    columns : tuple of str
        Headings of a table; the first column names its rows.
    rows : tuple of tuple of str
    curve : Curve, optional
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    listed: bool = False
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    curve: Curve | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentences", tuple(map(clean, self.sentences)))
        object.__setattr__(self, "rows", tuple(tuple(map(clean, row)) for row in self.rows))


@dataclass(frozen=True, eq=False)
class Content:
    """A whole statement: its title, its date (as in 2026-01-31), its sections, and its numbers, rounded up."""

    title: str
    date: str
    sections: tuple[Section, ...]
    epsilon: float
    delta: float
    of_a_ledger: bool


def clean(text: object) -> str:
    """Untrusted text on one line, without control characters or changes of the reading direction."""
    words = " ".join(str(text).split())
    return "".join(one if one.isprintable() else "�" for one in words)
