"""Rehearsals: a whole fit on made-up records, with only the first steps of a long training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

#: Steps of an iterative training in a rehearsal: enough to meet every part of the code.
STEPS = 3

_REHEARSING: ContextVar[bool] = ContextVar("rehearsing", default=False)


@contextlib.contextmanager
def rehearsing() -> Iterator[None]:
    """Mark the work of this thread as a rehearsal, whose results are thrown away."""
    token = _REHEARSING.set(True)
    try:
        yield
    finally:
        _REHEARSING.reset(token)


def steps_now(planned: int) -> int:
    """Number of steps of a training: fewer than planned in a rehearsal."""
    return min(planned, STEPS) if _REHEARSING.get() else planned
