"""Silent threads: they write to no stream of Python's, warn of nothing and log nothing. Others do as ever."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TextIO

from .counted import Undo, WhileAnyone
from .descriptors import DESCRIPTORS

#: Something that is replaced, and a function that makes its replacement.
Router = Callable[[Any], Callable[..., object]]

#: Threads that a silent thread started.
_BORN_SILENT: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """This thread, and those that it starts, write, warn and log nothing.

    diffprivlib's warning that a model would read the data without noise becomes an exception. No other warning does,
    even if the user asked for it: a candidate must not fail for what its records made some code warn of.
    """
    with _ROUTES(), _SILENT():
        _route_again()
        yield


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """This thread shows no warnings."""
    with _ROUTES(), _UNWARNED():
        _route_again()
        yield


def silent_here() -> bool:
    """Whether this thread is silent. A thread is, too, if nobody knows who started it."""
    if not _SILENT.anyone:
        return False
    if _SILENT.here:
        return True
    thread = threading.current_thread()
    return thread in _BORN_SILENT or isinstance(thread, threading._DummyThread)


def born_silent() -> bool:
    """Whether this thread was started by one that was silent, while some still are."""
    return _SILENT.anyone and threading.current_thread() in _BORN_SILENT


class Routed(io.TextIOBase):
    """A standard stream: what silent threads write goes nowhere, the rest to the stream as it was.

    Parameters
    ----------
    stream : text stream
        As it was.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str, /) -> int:
        if silent_here():
            return len(text)
        with DESCRIPTORS.around(self.stream) as stream:
            written: int = stream.write(text)
        return written

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if not silent_here():
            self.stream.flush()

    @property
    def buffer(self) -> BinaryIO:
        """Where bytes are written."""
        return io.BytesIO() if silent_here() else self.stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As the stream's."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """As the stream's."""
        return self.stream.errors

    @property
    def closed(self) -> bool:
        """As the stream's."""
        return bool(getattr(self.stream, "closed", False))

    def close(self) -> None:
        """Leave the stream open, as Python leaves the standard ones."""

    def fileno(self) -> int:
        return int(self.stream.fileno())

    def isatty(self) -> bool:
        return bool(self.stream.isatty())

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


# --- what is replaced while any thread is silent; each replacement passes on what other threads do --------------------


def _route_streams() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Routed):
            setattr(sys, name, Routed(stream))


def _unroute_streams() -> None:
    for name in ("stdout", "stderr"):
        while isinstance(stream := getattr(sys, name), Routed):
            setattr(sys, name, stream.stream)


def _route_log_records(
    original: Callable[[logging.Logger, logging.LogRecord], None],
) -> Callable[[logging.Logger, logging.LogRecord], None]:
    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        if not silent_here():
            original(self, record)

    return handle


def _route_handled_records(
    original: Callable[[logging.Handler, logging.LogRecord], object],
) -> Callable[[logging.Handler, logging.LogRecord], object]:
    def handle(self: logging.Handler, record: logging.LogRecord) -> object:
        if silent_here():
            return False
        with _writing_around(self):
            return original(self, record)

    return handle


@contextlib.contextmanager
def _writing_around(handler: Any) -> Iterator[None]:
    """Let a handler write: the stream that it keeps is usually one from before the descriptors were muted."""
    stream = vars(handler).get("stream")
    if stream is None or not handler.lock or not DESCRIPTORS.swallows(stream):
        yield
        return
    with handler.lock:
        handler.stream = Routed(stream)
        try:
            yield
        finally:
            handler.stream = stream


def _route_warnings(original: Callable[[warnings.WarningMessage], None]) -> Callable[[warnings.WarningMessage], None]:
    def _showwarnmsg(msg: warnings.WarningMessage) -> None:
        if not (_UNWARNED.here or silent_here()):
            original(msg)

    return _showwarnmsg


def _mark_threads(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(self: threading.Thread) -> None:
        if silent_here():
            _BORN_SILENT.add(self)
        original(self)

    return start


def _raise_leaks(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Warning, *args: object) -> None:
        original(self, *args)
        if silent_here():
            raise self

    return __init__


def _replace(owner: object, name: str, router: Router) -> Undo:
    """Replace an attribute. Undoing it leaves alone what somebody else has put there since."""
    original = getattr(owner, name)
    replacement = router(original)
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo


def _soften_filters() -> Undo:
    """While any thread is silent, warnings that the user turned into errors are shown instead.

    Filters belong to the process, and as errors they would make candidates fail (see ``muted``).
    """
    changed: dict[int, tuple[Any, Any]] = {}
    for place, entry in enumerate(warnings.filters):
        if entry[0] == "error":
            shown: Any = ("always", *entry[1:])
            changed[id(shown)] = (shown, entry)
            warnings.filters[place] = shown  # type: ignore[index]
    _filters_changed()

    def undo() -> None:
        for place, entry in enumerate(warnings.filters):
            if id(entry) in changed:
                warnings.filters[place] = changed[id(entry)][1]  # type: ignore[index]
        _filters_changed()

    return undo


def _filters_changed() -> None:
    """Tell Python, which remembers what it decided about a warning, that the filters changed."""
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):
        told = getattr(warnings, name, None)
        if told is not None:
            with contextlib.suppress(RuntimeError):  # the second wants a lock, which the first takes
                told()
                return


def _route_diffprivlib() -> Undo:
    """Its warning of a leak raises itself when it is made, so that no filter can hide it."""
    return _replace(sys.modules["diffprivlib.utils"].PrivacyLeakWarning, "__init__", _raise_leaks)


#: Owner, attribute, and what makes its replacement.
_ATTRIBUTES: tuple[tuple[object, str, Router], ...] = (
    (logging.Logger, "handle", _route_log_records),
    (logging.Handler, "handle", _route_handled_records),
    (warnings, "_showwarnmsg", _route_warnings),
    (threading.Thread, "start", _mark_threads),
)


class _Later:
    """Changes that become possible, or necessary again, only after the first thread went in."""

    def __init__(self) -> None:
        self._done: list[Undo] = []
        self._knows_diffprivlib = False

    def apply(self) -> None:
        _route_streams()
        if any(entry[0] == "error" for entry in warnings.filters):
            self._done.append(_soften_filters())
        if not self._knows_diffprivlib and "diffprivlib.utils" in sys.modules:
            self._knows_diffprivlib = True
            self._done.append(_route_diffprivlib())

    def undo(self) -> None:
        while self._done:
            self._done.pop()()
        self._knows_diffprivlib = False
        _unroute_streams()


_LATER = _Later()


def _install() -> Undo:
    done = [_replace(*attribute) for attribute in _ATTRIBUTES]

    def undo() -> None:
        _LATER.undo()
        for put_back in reversed(done):
            put_back()

    return undo


def _route_again() -> None:
    """Change also the streams and filters that somebody put there since the first thread went in."""
    with _ROUTES.lock:
        _LATER.apply()


def _nothing() -> Undo:
    return lambda: None


_ROUTES = WhileAnyone(_install)
_SILENT = WhileAnyone(_nothing)
_UNWARNED = WhileAnyone(_nothing)
