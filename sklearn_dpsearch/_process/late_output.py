"""Leftovers of silent code: garbage whose finalizers speak, warnings remembered by text, calls at exit."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType, ModuleType
from typing import Any

from .reference_counting import Undo, WhileAnyone

# --- garbage ----------------------------------------------------------------------------------------------------------


class Garbage:
    """Garbage made while any thread is silent, and freed in silence.

    A finalizer runs in any thread that happens to collect garbage, so each thread is silent while it collects. Objects
    from before are set aside (``gc.freeze``): a collection then looks at new objects alone, in microseconds.
    """

    def __init__(self) -> None:
        self.watched = WhileAnyone(self._watch)
        self._collecting = threading.local()
        self._marker: Callable[[str, dict[str, int]], None] | None = None

    @property
    def collected_here(self) -> bool:
        """Return whether this thread is collecting garbage."""
        return self._marker is not None and getattr(self._collecting, "marker", None) is self._marker

    def _watch(self) -> Undo:
        def mark(phase: str, info: dict[str, int]) -> None:
            self._collecting.marker = mark if phase == "start" else None

        frozen = gc.get_freeze_count() > 0  # by the user
        if not frozen:
            gc.freeze()
        self._marker = mark
        gc.callbacks.append(mark)

        def undo() -> None:
            self._marker = None
            gc.callbacks.remove(mark)
            if not frozen:
                gc.unfreeze()

        return undo


GARBAGE = Garbage()

# --- warnings ---------------------------------------------------------------------------------------------------------


#: Where a module remembers warnings, and the entry with the version of the filters.
REGISTRY, VERSION = "__warningregistry__", "version"
_NAMESPACE: Any = vars(ModuleType)["__dict__"].__get__


def remembered() -> Undo:
    """Note which warnings every module remembers; the undo leaves these, and those of other threads since.

    Even an empty registry would tell that some code warned, and so would one that was emptied.
    """
    before = {id(place): dict(place[REGISTRY]) for place in _places()}

    def undo() -> None:
        for place in _places():
            found, old = dict(place[REGISTRY]), before.get(id(place))
            new = found.keys() - (old or {}).keys() - {VERSION}  # what silent code was warned of is forgotten
            if not new and old is None:
                del place[REGISTRY]
            elif old is not None and found != old and (not new or found.get(VERSION) == old.get(VERSION)):
                place[REGISTRY] = {**found, **old} if new else old

    return undo


def _places() -> Iterator[dict[str, Any]]:
    """Namespaces of all modules that remember warnings; lazy modules are not loaded."""
    for module in list(sys.modules.values()):
        genuine = issubclass(type(module), ModuleType)  # others, as cffi's, only say that they are modules
        if genuine and isinstance((place := _NAMESPACE(module)).get(REGISTRY), dict):
            yield place


def forget(warning: warnings.WarningMessage) -> None:
    """Delete Python's record of a warning, text included, from the module that caused it."""
    text, line = str(warning.message), warning.lineno
    keys = [(text, warning.category, line), (text, warning.category, 0), (text, warning.category)]
    frame: FrameType | None = sys._getframe()
    places: list[dict[str, Any]] = [vars(sys)]  # the place of a warning without any frame
    while frame is not None:
        places.append(frame.f_globals)
        frame = frame.f_back
    registries = [getattr(warnings, "onceregistry", {}), *(place.get(REGISTRY) for place in places)]
    for registry in registries:
        if isinstance(registry, dict):
            for key in keys:
                registry.pop(key, None)


# --- the end of the process -------------------------------------------------------------------------------------------


class Quiet:
    """A silent call at exit. It equals its function, so that ``atexit.unregister`` finds it.

    Parameters
    ----------
    function : callable
    silence : callable
        Returns the context in which it is called.
    """

    def __init__(self, function: Callable[..., object], silence: Callable[[], AbstractContextManager[None]]) -> None:
        self._function, self._silence = function, silence

    def __call__(self, *given: Any, **named: Any) -> None:
        with self._silence(), contextlib.suppress(Exception):
            self._function(*given, **named)

    def __eq__(self, other: object) -> bool:
        return self._function == other

    def __hash__(self) -> int:
        return hash(self._function)
