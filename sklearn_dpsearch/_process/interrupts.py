"""Telling an interrupt of the caller from an exception that only looks like one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Interrupts:
    """What the caller's signal handlers raise while the main thread is inside.

    Ctrl-C arrives as ``KeyboardInterrupt`` in the middle of whatever the main thread does, a candidate's ``fit`` say. A
    candidate may raise the same, and whether it does may depend on its records. So handlers are watched: only what one
    of them raised is an interrupt.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._raised: BaseException | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Signal handlers are watched. In other threads than the main one, where none of them runs, nothing is."""
        if not _in_main_thread():
            yield
            return
        undo = self._wrap() if self._depth == 0 else []
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            for one in undo:
                one()
            if self._depth == 0:
                self._raised = None

    @property
    def raised(self) -> BaseException | None:
        """What a handler raised since the main thread went in, without what it could quote; None in other threads."""
        return _bare(self._raised) if self._raised is not None and _in_main_thread() else None

    @property
    def unwatched(self) -> bool:
        """Whether an interrupt may arrive here that nobody would tell from an exception of a candidate."""
        return _in_main_thread() and self._depth == 0

    def check(self) -> None:
        """Go on with an interrupt that somebody swallowed."""
        if (found := self.raised) is not None:
            raise found

    def _wrap(self) -> list[Callable[[], None]]:
        return [self._watch(number) for number in signal.valid_signals() if callable(signal.getsignal(number))]

    def _watch(self, number: int) -> Callable[[], None]:
        handler: Any = signal.getsignal(number)

        def watching(signum: int, frame: Any) -> Any:
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
    """The same kind of interrupt with no text, cause or traceback."""
    if isinstance(error, SystemExit):
        return SystemExit(error.code if isinstance(error.code, int) else 1)
    try:
        return type(error)()
    except Exception:  # a handler's own kind of exception, which needs arguments
        return KeyboardInterrupt()


INTERRUPTS = Interrupts()


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """The failure of one candidate, whatever it raises, ends here; an interrupt of the caller goes on.

    Outside of a search nobody watches, and only an ``Exception`` is a failure.
    """
    try:
        yield
    except Exception:
        pass
    except BaseException:
        if INTERRUPTS.unwatched:
            raise
    INTERRUPTS.check()
