"""A change of the process that the first user makes and the last one undoes."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator

#: Undoes a change.
Undo = Callable[[], None]


class WhileAnyone:
    """A change that the first user to enter makes and the last to leave undoes; users may leave in any order.

    Parameters
    ----------
    change : callable
        Makes the change, and returns a function that undoes it.
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
        """Return whether any thread is inside."""
        return self._users > 0

    @property
    def here(self) -> bool:
        """Return whether this thread is inside."""
        return self._depth > 0

    @property
    def _depth(self) -> int:
        return getattr(self._mine, "depth", 0)

    def _count(self, step: int) -> None:
        self._users += step
        self._mine.depth = self._depth + step

    def _in_child(self) -> None:
        """Forget the users of other threads: only the thread that forked lives on in the child."""
        self.lock = threading.RLock()
        gone, self._users = self._users - self._depth, self._depth
        if gone and self._users == 0:
            self._undo()


_ALL: weakref.WeakSet[WhileAnyone] = weakref.WeakSet()
#: Held by the thread that forks, from before the first lock is taken until the last is released: two threads that each
#: take all locks could otherwise wait for each other.
_FORKING = threading.RLock()
#: Locks held by each fork under way: a finalizer that runs in the middle of a fork may fork, too.
_HELD: list[list[WhileAnyone]] = []


def _before_fork() -> None:
    """Take all locks, so that every change is complete when the process is copied."""
    _FORKING.acquire()
    _HELD.append([])
    for change in sorted(_ALL, key=id):
        change.lock.acquire()
        _HELD[-1].append(change)


def _in_parent() -> None:
    for change in reversed(_HELD.pop()):
        change.lock.release()
    _FORKING.release()


def _in_child() -> None:
    global _FORKING
    _FORKING = threading.RLock()
    for change in reversed(_HELD.pop()):
        change._in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
