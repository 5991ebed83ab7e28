"""Widths of hidden layers: as given, or chosen from the public number of records.

A second layer gains with many records and loses with few (docs/learn/net_defaults.md), and no search on a part of the
records can find that out: on the part it is not better. So a rule says it, which costs nothing.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, Literal

#: What a user may give.
HiddenLayerSizes = int | Sequence[int] | Literal["auto"]

FEW = (64,)
MANY = (64, 64)
#: The number of records from which on there are many.
FROM = 25_000


def checked(given: Any) -> tuple[int, ...] | None:
    """The widths, or None for "auto".

    Raises
    ------
    ValueError
        For anything else than "auto", a positive integer or a sequence of them.
    """
    if isinstance(given, str) and given == "auto":
        return None
    sizes = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in sizes):
        raise ValueError(f"Found hidden_layer_sizes={given!r}; integers >= 1 are needed, e.g. (64,), or 'auto'.")
    return tuple(int(size) for size in sizes)


def widths(given: Any, n: float) -> tuple[int, ...]:
    """Those of a net for ``n`` records, a public number."""
    known = checked(given)
    if known is not None:
        return known
    return MANY if n >= FROM else FEW
