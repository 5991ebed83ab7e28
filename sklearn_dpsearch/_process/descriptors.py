"""Descriptors 1 and 2, to which compiled code and child processes write directly."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from .reference_counting import Undo, WhileAnyone


def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except Exception:  # not on every system
        return None


#: Opened once: opening it takes a lock of the process, for which a child forked meanwhile would wait for ever.
_C = _c_library()


class Descriptors:
    """Mute both descriptors while any thread needs it. Output of other threads to Python's streams still arrives.

    Descriptors belong to the process, so two kinds of output of *other* threads are lost meanwhile: that of compiled
    code and child processes, and that written to a stream object kept from before.
    """

    def __init__(self) -> None:
        self._kept: dict[int, int] = {}
        self._around: dict[int, TextIO] = {}
        self.muted = WhileAnyone(self._mute)

    @contextlib.contextmanager
    def around(self, stream: TextIO) -> Iterator[TextIO]:
        """Stream to use in the place of a stream to a muted descriptor."""
        if not self.swallows(stream):
            yield stream
            return
        with self.muted.lock:  # otherwise the last user could close the way around in the middle of a line
            way = self._way_around(stream)
            yield way
            way.flush()

    def swallows(self, stream: TextIO) -> bool:
        """Return whether output to a stream is lost at present."""
        return bool(self._kept) and _descriptor_of(stream) in self._kept

    def _way_around(self, stream: TextIO) -> TextIO:
        descriptor = _descriptor_of(stream)
        if descriptor not in self._kept:  # the descriptors were put back in between
            return stream
        if descriptor not in self._around:
            encoding, errors = (getattr(stream, name, None) for name in ("encoding", "errors"))
            self._around[descriptor] = open(  # noqa: SIM115 - closed when the descriptors are put back
                self._kept[descriptor], "w", encoding=encoding, errors=errors, closefd=False
            )
        return self._around[descriptor]

    def _mute(self) -> Undo:
        _flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # a process may have closed it
                self._kept[descriptor] = os.dup(descriptor)
                os.dup2(nowhere, descriptor)
        os.close(nowhere)
        return self._restore

    def _restore(self) -> None:
        """Put both back; first discard what is still buffered, which would otherwise be written after all."""
        _flush()
        for stream in self._around.values():
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        for descriptor, kept in self._kept.items():
            os.dup2(kept, descriptor)
            os.close(kept)
        self._kept, self._around = {}, {}


def _descriptor_of(stream: TextIO) -> int | None:
    """Descriptor of a Python stream, or None."""
    try:
        found = stream.fileno()
    except Exception:  # streams of notebooks, tests and services raise what they like
        return None
    return found if isinstance(found, int) else None


def _flush() -> None:
    """Empty the buffers of Python and of C."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    if _C is not None:
        _C.fflush(None)


DESCRIPTORS = Descriptors()
