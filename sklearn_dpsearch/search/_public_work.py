"""Work on public or made-up records, in a process of its own like private work: its errors are shown in full."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from .._process import public_records
from . import private_process
from .packed import pickled, unpickled
from .private_process import imported, privately

Found = TypeVar("Found")


def in_the_open(work: Callable[[], Found], shared: Sequence[Any] = (), writes: Sequence[str] | None = None) -> Found:
    """Do work on public or made-up records in a process of its own, and return its value.

    Parameters
    ----------
    work, shared, writes
        As for ``privately``.

    Raises
    ------
    Exception
        The error of the work, with its traceback as a note.
    """
    found: Any
    found, problem, modules = privately(partial(_ended, work), shared, writes)
    private_process.prepare(modules)  # private work that follows need not import again what this work needed
    if problem is not None:
        raise problem
    value: Found = found
    return value


def _ended(work: Callable[[], Found]) -> tuple[Found | None, Exception | None, list[str]]:
    """Value or error of the work, and the modules that it needed."""
    try:
        with public_records():
            return work(), None, imported()
    except Exception as error:
        return None, _for_travelling(error), imported()


def _for_travelling(problem: Exception) -> Exception:
    """Error with its traceback as a note; an error that cannot be pickled becomes one with the same words."""
    trace = "".join(traceback.format_exception(problem))
    try:
        travelling: Exception = unpickled(pickled(problem))
    except Exception:
        travelling = RuntimeError(f"{type(problem).__name__}: {problem}")
    travelling.add_note(trace)
    return travelling
