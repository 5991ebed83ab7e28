"""Code of a user's functions and classes, which a search that goes on needs unchanged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import site
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .._disk.store import PLAIN
from ..privacy import PrivacyError

OWN = __name__.partition(".")[0]
#: Folders of Python and of installed packages, whose code counts by name.
PLACES = (*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), *site.getsitepackages())
INSTALLED = tuple({place + os.sep for place in (*PLACES, site.getusersitepackages())})
#: Attributes of a class with code.
CODE = (types.FunctionType, staticmethod, classmethod, property)


def codes_of(value: Any) -> list[str]:
    """Texts of the user's functions and classes that a value refers to, and of those that these name.

    Numbers and words that code names count too; lists, arrays and the like do not: they may change with use.
    """
    found: list[str] = []
    seen: dict[int, Any] = {}  # objects, too: a freed one's number could be given again
    waiting = [value]
    while waiting:
        for thing in _met(waiting.pop()):
            if id(thing) not in seen and not _is_installed(thing.__module__):
                seen[id(thing)] = thing
                inside = list(_inside(thing))
                found.append(repr([_name(thing), *(part for part in inside if isinstance(part, PLAIN))]))
                waiting.extend(part for part in inside if not isinstance(part, PLAIN))
    return sorted(found)


class _PickleReader(pickle.Pickler):
    """A pickle that is not kept: it meets all functions and classes on its way."""

    def __init__(self) -> None:
        super().__init__(types.SimpleNamespace(write=len), protocol=5, buffer_callback=lambda buffer: None)
        self.met: list[Any] = []

    def reducer_override(self, thing: Any) -> Any:
        thing = getattr(thing, "__func__", thing)
        if hasattr(thing, "__qualname__") and isinstance(getattr(thing, "__module__", None), str):
            self.met.append(thing)
        return NotImplemented


def _met(value: Any) -> list[Any]:
    reader = _PickleReader()
    with contextlib.suppress(Exception):  # what no pickle can hold; the functions before it were met
        reader.dump(value)
    return reader.met


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _inside(thing: Any) -> Iterator[Any]:
    """Plain values that make up a function or class, and other objects that it rests on."""
    file = getattr(sys.modules.get(thing.__module__), "__file__", None) or ""
    if isinstance(thing, types.FunctionType):
        yield from _of_function(thing)
    elif hasattr(thing, "__wrapped__"):
        yield thing.__wrapped__
    elif file.endswith((".so", ".pyd")):
        yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
    elif isinstance(thing, type):
        yield from thing.__mro__[1:]
        for key, part in sorted(vars(thing).items()):
            if isinstance(part, CODE) or not key.startswith("__"):  # other such names are Python's, or made on the way
                yield from (key, *_opened(part)) if isinstance(part, (*CODE, *PLAIN)) else (part,)
    else:
        raise PrivacyError(
            f"Found {_name(thing)} ({type(thing).__name__}), whose code cannot be read, so that a search with a "
            "checkpoint cannot tell whether it is the same when it goes on. Give a function that is written in Python, "
            "or leave checkpoint=None."
        )


def _opened(part: Any) -> Iterable[Any]:
    """Functions in an attribute of a class."""
    if isinstance(part, property):
        return part.fget, part.fset, part.fdel
    return (part.__func__ if isinstance(part, (staticmethod, classmethod)) else part,)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    """Code of a function, its defaults, and what its closure and its names stand for."""
    codes = list(_codes(function.__code__))
    for code in codes:
        constants = [repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one) for one in code.co_consts]
        yield from (code.co_code.hex(), *code.co_names, *code.co_freevars)
        yield from (text for text, one in zip(constants, code.co_consts) if not isinstance(one, types.CodeType))
    yield from function.__defaults__ or ()
    for key, value in (function.__kwdefaults__ or {}).items():
        yield from (key, value)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    names = sorted({name for code in codes for name in code.co_names})
    places, seen = [function.__globals__], [function.__globals__]
    while places:
        place = places.pop()
        for name in names:
            value = place.get(name)
            if not isinstance(value, types.ModuleType):
                yield value
            elif not _is_installed(value.__name__) and not any(vars(value) is one for one in seen):
                places.append(vars(value))
                seen.append(vars(value))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes(part)


def _is_installed(module: str) -> bool:
    """Return whether a module is Python's own, this library's, or lies where packages are installed."""
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None)
    if package in (OWN, "__main__"):
        return package == OWN
    return (file is None and package in sys.stdlib_module_names) or (file or "").startswith(INSTALLED)
