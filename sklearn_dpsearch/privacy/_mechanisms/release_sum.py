"""Release of sums: the only place, which can be listened to, where sums meet noise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

Answer = TypeVar("Answer")
#: Whole numbers, exact; of nets, numbers of double precision.
Sums: TypeAlias = NDArray[Any]
#: Name of a release, its sums, their squared sensitivity and its norm, and the function that adds
#: noise ↦ the answer.
Listener: TypeAlias = Callable[[str, Sums, Fraction, int, Callable[[Sums], Any]], Any]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def release_sum(
    name: str,
    sums: Sums,
    squared_sensitivity: Fraction,
    add_noise: Callable[[Sums], Answer],
    norm: int = 2,
) -> Answer:
    """Add noise to sums of bounded contributions, where listeners may answer.

    Parameters
    ----------
    name : str
    sums : ndarray
        Sums over all records of what each adds.
    squared_sensitivity : Fraction
        Square of the distance of the sums of two neighbours that is paid for.
    add_noise : callable
        The mechanism, calibrated to it.
    norm : {1, 2}
        Norm of that distance.
    """
    listener = _LISTENER.get()
    if listener is None:
        return add_noise(sums)
    answer: Answer = listener(name, sums, squared_sensitivity, norm, add_noise)
    return answer


def is_listened_to() -> bool:
    """Return whether a listener answers released sums in this thread.

    Draws that are fresh for other records must then be equal for neighbours.
    """
    return _LISTENER.get() is not None


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener answer for released sums of public or made-up records in this thread."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)
