"""Release of sums: the place where sums of bounded contributions meet noise, so that it can be listened to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Answer = TypeVar("Answer")
#: Whole numbers, exact.
Sums: TypeAlias = NDArray[np.int64]
#: Name of a release, its sums, the square of their sensitivity (l2), and the function that adds noise ↦ the answer.
Listener: TypeAlias = Callable[[str, Sums, Fraction, Callable[[Sums], Any]], Any]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def release_sum(name: str, sums: Sums, squared_sensitivity: Fraction, add_noise: Callable[[Sums], Answer]) -> Answer:
    """Noisy sums.

    Parameters
    ----------
    name : str
    sums : ndarray of int64
        Sums over all records of what each adds.
    squared_sensitivity : Fraction
        Square of the l2 distance of the sums of two neighbours that is paid for.
    add_noise : callable
        The mechanism, calibrated to it.
    """
    listener = _LISTENER.get()
    if listener is None:
        return add_noise(sums)
    answer: Answer = listener(name, sums, squared_sensitivity, add_noise)
    return answer


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener answer for the mechanisms of this thread: of public or made-up records alone."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)
