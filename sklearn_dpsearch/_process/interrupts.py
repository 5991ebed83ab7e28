"""Interrupts of the caller, told apart from exceptions of a candidate that look the same."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import cast

from .reference_counting import Undo

Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """Exceptions that the caller's signal handlers raise while the main thread is inside.

    Ctrl-C arrives as ``KeyboardInterrupt`` at any point of the main thread, for example in a candidate's ``fit``. A
    candidate may also raise ``KeyboardInterrupt`` by itself, possibly because of its records. So handlers are watched:
    only an exception raised by a handler is an interrupt.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._raised: BaseException | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the signal handlers, which run in the main thread only; do nothing in other threads."""
        if not _in_main_thread():
            yield
            return
        undo = self._wrap() if self._depth == 0 else []
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            for put_back in undo:
                put_back()
            if self._depth == 0:
                self._raised = None

    @property
    def raised(self) -> BaseException | None:
        """Exception that a handler raised since the main thread went in, without its text; None in other threads."""
        return _bare(self._raised) if self._raised is not None and _in_main_thread() else None

    @property
    def unwatched(self) -> bool:
        """Return whether interrupts may arrive here while the handlers are not watched."""
        return _in_main_thread() and self._depth == 0

    def check(self) -> None:
        """Raise an interrupt again that other code swallowed."""
        if (found := self.raised) is not None:
            raise found

    def _wrap(self) -> list[Undo]:
        return [self._watch(number) for number in signal.valid_signals() if callable(signal.getsignal(number))]

    def _watch(self, number: int) -> Undo:
        handler = cast(Handler, signal.getsignal(number))

        def watching(signum: int, frame: FrameType | None) -> object:
            try:
                return handler(signum, frame)
            except BaseException as error:
                self._raised = error
                raise

        def undo() -> None:
            if signal.getsignal(number) is watching:
                signal.signal(number, handler)

        signal.signal(number, watching)
        return undo


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _bare(error: BaseException) -> BaseException:
    """Copy of an interrupt without text, cause or traceback."""
    if isinstance(error, SystemExit):
        return SystemExit(error.code if isinstance(error.code, int) else 1)
    try:
        return type(error)()
    except Exception:  # a handler's own kind of exception, which needs arguments
        return KeyboardInterrupt()


INTERRUPTS = Interrupts()


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Contain the failure of one candidate, of any exception type; pass on an interrupt of the caller.

    Outside of a search handlers are not watched, and only an ``Exception`` counts as a failure.
    """
    try:
        yield
    except Exception:
        pass
    except BaseException:
        if INTERRUPTS.unwatched:
            raise
    INTERRUPTS.check()
