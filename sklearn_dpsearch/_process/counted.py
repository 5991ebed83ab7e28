"""A change of the process that the first user makes and the last one undoes."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator

#: Puts back what was changed.
Undo = Callable[[], None]


class WhileAnyone:
    """A change that the first to enter makes and the last to leave undoes, whatever the order in between.

    Parameters
    ----------
    change : callable
        Makes the change, and returns what undoes it.
    """

    def __init__(self, change: Callable[[], Undo]) -> None:
        self._change = change
        self.lock = threading.RLock()
        self._users = 0
        self._mine = threading.local()
        _ALL.add(self)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        entered = False
        try:
            with self.lock:
                if self._users == 0:
                    self._undo = self._change()
                self._count(1)
                entered = True
            yield
        finally:
            if entered:
                with self.lock:
                    self._count(-1)
                    if self._users == 0:
                        self._undo()

    @property
    def anyone(self) -> bool:
        """Whether any thread is inside."""
        return self._users > 0

    @property
    def here(self) -> bool:
        """Whether this thread is inside."""
        return self._depth > 0

    @property
    def _depth(self) -> int:
        return getattr(self._mine, "depth", 0)

    def _count(self, step: int) -> None:
        self._users += step
        self._mine.depth = self._depth + step

    def _in_child(self) -> None:
        """Only the thread that forked lives on in the child: the others no longer count as users."""
        self.lock = threading.RLock()
        gone, self._users = self._users - self._depth, self._depth
        if gone and self._users == 0:
            self._undo()


_ALL: weakref.WeakSet[WhileAnyone] = weakref.WeakSet()
_HELD: list[WhileAnyone] = []


def _before_fork() -> None:
    """Hold all locks, so that no change is half done while the process is copied."""
    _HELD[:] = sorted(_ALL, key=id)
    for change in _HELD:
        change.lock.acquire()


def _in_parent() -> None:
    while _HELD:
        _HELD.pop().lock.release()


def _in_child() -> None:
    while _HELD:
        _HELD.pop()._in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
