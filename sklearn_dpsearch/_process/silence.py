"""Silent threads: their output, warnings and log records are dropped. Other threads are unaffected."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TextIO

from .descriptors import DESCRIPTORS
from .late_output import GARBAGE, Quiet, forget, remembered
from .reference_counting import Undo, WhileAnyone

#: Function of an original that makes its replacement.
Router = Callable[[Any], Callable[..., object]]

#: Threads that a silent thread started; and those of them that stay silent for as long as they live.
_BORN_SILENT: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_SILENT_FOR_GOOD: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Silence this thread and the threads that it starts: no output, warnings or log records, no exceptions in hooks.

    diffprivlib's warning that a model would read the data without noise becomes an exception. Other warnings never do,
    even if the user asked for it: a warning caused by a candidate's records must not make the candidate fail.
    """
    with _ROUTES(), _SILENT(), GARBAGE.watched():
        _route_again()
        yield


@contextlib.contextmanager
def muted_for_good() -> Iterator[None]:
    """Mute as ``muted`` does; threads that are started here stay silent for as long as they live."""
    with muted(), _FOR_GOOD():
        try:
            yield
        finally:
            _keep_silent()


def discard() -> None:
    """Free the garbage of silent code, in silence."""
    with muted(), DESCRIPTORS.muted():
        gc.collect()


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Drop all warnings of this thread."""
    with _ROUTES(), _UNWARNED():
        _route_again()
        yield


def silent_here() -> bool:
    """Return whether this thread is silent, was started by a silent thread or unknown code, or is freeing garbage."""
    thread = threading.current_thread()
    if not _SILENT.anyone:
        return thread in _SILENT_FOR_GOOD
    if _SILENT.here or GARBAGE.collected_here:
        return True
    return thread in _BORN_SILENT or isinstance(thread, threading._DummyThread)


def born_silent() -> bool:
    """Return whether a silent thread (while any thread is silent) or a candidate (at any time) started this one."""
    thread = threading.current_thread()
    return thread in _SILENT_FOR_GOOD or (_SILENT.anyone and thread in _BORN_SILENT)


class Routed(io.TextIOBase):
    """A standard stream that drops the output of silent threads and passes on all other output.

    Parameters
    ----------
    stream : text stream
        The original stream.
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
        """Target of bytes."""
        return io.BytesIO() if silent_here() else self.stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """Error handling of the stream."""
        return self.stream.errors

    @property
    def closed(self) -> bool:
        """True if the stream is closed."""
        return bool(getattr(self.stream, "closed", False))

    def close(self) -> None:
        """Leave the stream open, as Python leaves its standard streams."""

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


# --- replacements while any thread is silent; each passes on the calls of other threads -------------------------------


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
    """Let a handler write: its stream usually dates from before the descriptors were muted."""
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
        if silent_here():
            forget(msg)
        elif not _UNWARNED.here:
            original(msg)

    return _showwarnmsg


def _route_hook(original: Callable[[Any], object]) -> Callable[[Any], object]:
    """Route a hook that receives uncaught exceptions, with their frames."""

    def hook(args: Any, /) -> object:
        return None if silent_here() else original(args)

    return hook


def _route_exit(original: Callable[..., object]) -> Callable[..., object]:
    def register(func: Callable[..., object], /, *given: Any, **named: Any) -> object:
        if not silent_here():
            return original(func, *given, **named)
        original(Quiet(func, _silence), *given, **named)
        return func

    return register


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with muted(), DESCRIPTORS.muted():
        yield


def _mark_threads(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(self: threading.Thread) -> None:
        if silent_here() and not isinstance(self, _RouteKeeper):
            _BORN_SILENT.add(self)
            own = type(self).__module__.partition(".")[0] != "tqdm"  # its monitor serves the whole process
            if own and (_FOR_GOOD.here or threading.current_thread() in _SILENT_FOR_GOOD):
                _SILENT_FOR_GOOD.add(self)
        original(self)

    return start


def _raise_leaks(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Warning, *args: object) -> None:
        original(self, *args)
        if silent_here():
            raise self

    return __init__


def _replace(owner: object, name: str, router: Router) -> Undo:
    """Replace an attribute. The undo keeps a later replacement by other code."""
    original = getattr(owner, name)
    replacement = router(original)
    replacement.routed = True  # type: ignore[attr-defined]
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo


def _soften_filters() -> Undo:
    """Show warnings, while any thread is silent, that the user turned into errors.

    Filters belong to the process, and as errors they would make candidates fail (see ``muted``).
    """
    changed: dict[int, tuple[Any, Any]] = {}
    softened: Any = warnings.filters
    for place, entry in enumerate(softened):
        if entry[0] == "error":
            shown: Any = ("always", *entry[1:])
            changed[id(shown)] = (shown, entry)
            softened[place] = shown
    _filters_changed()

    def undo() -> None:
        current: Any = warnings.filters  # a copy, while another thread is inside of ``catch_warnings``
        for filters in (softened, current):
            for place, entry in enumerate(filters):
                if id(entry) in changed:
                    filters[place] = changed[id(entry)][1]
        _filters_changed()

    return undo


def _filters_changed() -> None:
    """Tell Python, which caches its decisions about warnings, that the filters changed."""
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):
        told = getattr(warnings, name, None)
        if told is not None:
            with contextlib.suppress(RuntimeError):  # the second wants a lock, which the first takes
                told()
                return


def _route_diffprivlib() -> Undo:
    """Make diffprivlib's warning of a leak raise itself when constructed, so that no filter can hide it."""
    return _replace(sys.modules["diffprivlib.utils"].PrivacyLeakWarning, "__init__", _raise_leaks)


#: Owner, attribute, and router of the replacement.
_ATTRIBUTES: tuple[tuple[object, str, Router], ...] = (
    (logging.Logger, "handle", _route_log_records),
    (logging.Handler, "handle", _route_handled_records),
    (warnings, "_showwarnmsg", _route_warnings),
    (threading.Thread, "start", _mark_threads),
    (threading, "excepthook", _route_hook),
    (sys, "unraisablehook", _route_hook),
    (atexit, "register", _route_exit),
)


class _Later:
    """Changes that become possible or necessary again after the first thread entered."""

    def __init__(self) -> None:
        self._done: list[Undo] = []
        self._knows_diffprivlib = False

    def apply(self) -> None:
        _route_streams()
        for owner, name, router in _ATTRIBUTES:  # a surviving thread may keep the routes in place for long
            if not hasattr(getattr(owner, name), "routed"):
                self._done.append(_replace(owner, name, router))
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
    done = [remembered(), *(_replace(*attribute) for attribute in _ATTRIBUTES)]

    def undo() -> None:
        _LATER.undo()
        for put_back in reversed(done):
            put_back()

    return undo


def _route_again() -> None:
    """Route the streams, hooks and filters that were installed since the first thread entered."""
    with _ROUTES.lock:
        _LATER.apply()


class _RouteKeeper(threading.Thread):
    """Keeps the routes in place until a permanently silent thread ends.

    Parameters
    ----------
    watched : Thread
    """

    def __init__(self, watched: threading.Thread) -> None:
        super().__init__(name="silence", daemon=True)
        self._watched, self._ready = watched, threading.Event()

    def run(self) -> None:
        with _ROUTES():
            self._ready.set()
            self._watched.join()

    def begin(self) -> None:
        """Start, and return once the routes are held."""
        self.start()
        self._ready.wait()


def _keep_silent() -> None:
    """Watch the threads that outlive the code that started them."""
    with _ROUTES.lock:
        left = [thread for thread in _SILENT_FOR_GOOD if thread.is_alive() and thread not in _WATCHED]
        _WATCHED.update(left)
    for thread in left:
        _RouteKeeper(thread).begin()


def _nothing() -> Undo:
    return lambda: None


_ROUTES = WhileAnyone(_install)
_SILENT = WhileAnyone(_nothing)
_FOR_GOOD = WhileAnyone(_nothing)
_UNWARNED = WhileAnyone(_nothing)
#: Threads that have a watcher.
_WATCHED: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
