"""Digests of all that a module, a criterion and their code hold: a change could tell about records."""

from __future__ import annotations

import builtins
import copyreg
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from .code_references import Reference, references

#: Digested text of objects that are compared by identity.
Identity: TypeAlias = Callable[[object], str]

OWN = __name__.partition(".")[0]
#: Packages whose functions and classes keep nothing of the user's records.
LIBRARIES = frozenset({"torch", "numpy", "skorch", "opacus", "sklearn", "scipy", "pandas", "torchvision", "PIL", OWN})
#: Parts of libraries whose objects serve the whole process, and change by themselves.
OPAQUE = frozenset({"logging", "threading", "_thread", "_weakref", "weakref", "multiprocessing"})
#: Attributes of a class other than its code, and attributes that locate the code in its file.
NOT_CODE = frozenset(
    {
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl"),
        *("__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    }
)
SIMPLE = frozenset(
    {int, float, complex, str, bytes, bool, type(None), type(Ellipsis), torch.dtype, torch.device, torch.Size}
)
CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
#: Folders of installed packages.
INSTALLED = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})
#: Folder of Python's own modules: a user's file may have the name of one.
PYTHON = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


def contents(*things: object, lasting: bool = False) -> str:
    """Digest of all that can be reached from these objects: attributes, slots, containers, classes, code, closures.

    Code of libraries, and objects that cannot be copied (open files, locks), count by identity. In a ``lasting``
    digest, for comparison in another process, they count by name, as does the code of all installed packages.
    """
    identity = _name if lasting else _number
    digest = hashlib.blake2b(digest_size=16)
    seen: dict[int, int] = {}
    kept: list[object] = []  # a freed object's address could be reused
    stack: list[object] = list(reversed(things))
    while stack:
        thing = stack.pop()
        if type(thing) in SIMPLE:
            digest.update(f"{type(thing).__name__}:{thing!r};".encode())
            continue
        if id(thing) in seen:  # by its number: cycles end, and one object twice differs from two equal objects
            digest.update(f"again:{seen[id(thing)]};".encode())
            continue
        seen[id(thing)] = len(seen)
        kept.append(thing)
        digest.update(f"{type(thing).__qualname__}(".encode())
        raw = _raw(thing, identity)
        if raw is not None:
            for part in raw:
                digest.update(part)
            if isinstance(thing, torch.Tensor) and vars(thing):
                stack.append(vars(thing))
        else:
            inside = list(_inside(thing, identity))
            digest.update(f"{len(inside)}".encode())
            stack.extend(reversed(inside))
    return digest.hexdigest()


#: Bytes, or numbers as they lie in memory.
Buffer: TypeAlias = bytes | memoryview


def _number(thing: object) -> str:
    """Identity of an object, as long as it lives."""
    return f"{id(thing)}"


def _name(thing: Any) -> str:
    """Identity of an object in every process; for a user's module with the text of its file."""
    if isinstance(thing, types.ModuleType) and not is_installed(thing.__name__.partition(".")[0]):
        return f"{thing.__name__} {_text_of(getattr(thing, '__file__', None))}"
    named = thing if hasattr(thing, "__qualname__") or isinstance(thing, types.ModuleType) else type(thing)
    package = sys.modules.get(_package(named)) if hasattr(named, "__module__") else named
    version = getattr(package, "__version__", "")
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named.__name__)} {version}"


def _sorting(thing: object) -> str:
    return repr(thing) if type(thing) in SIMPLE else _name(thing)


def _raw(thing: object, identity: Identity) -> Sequence[Buffer] | None:
    """Bytes of numbers, and of objects that count by identity."""
    if isinstance(thing, torch.Tensor):
        return _tensor(thing, identity)
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return _array(thing, identity)
    if isinstance(thing, types.CodeType):
        return [_code(thing).encode()]
    is_known = is_installed if identity is _name else _is_library
    library = isinstance(thing, (type, types.FunctionType)) and is_known(_package(thing))
    shared = _package(type(thing)) in OPAQUE
    if library or shared or isinstance(thing, (types.ModuleType, types.BuiltinFunctionType)):
        return [identity(thing).encode()]
    return None


def _array(thing: np.ndarray, identity: Identity) -> Sequence[Buffer]:
    """Numbers of an array, not copied. A read-only file counts by identity: it may be larger than memory."""
    kind = f"{thing.dtype}{thing.shape}".encode()
    if isinstance(thing, np.memmap) and not thing.flags.writeable and identity is _number:
        return [kind, identity(thing).encode()]
    return [kind, np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data]


def _package(thing: Any) -> str:
    return str(thing.__module__).partition(".")[0]


@functools.lru_cache(maxsize=1024)
def _is_library(package: str) -> bool:
    if package not in sys.stdlib_module_names:
        return package in LIBRARIES
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is None or file.startswith(PYTHON)


@functools.lru_cache(maxsize=1024)
def is_installed(package: str) -> bool:
    """Return whether a package is a library, Python's own, or lies where packages are installed."""
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return _is_library(package) or file.startswith(INSTALLED)


def _text_of(file: str | None) -> str:
    try:
        with open(file or "", "rb") as opened:
            return hashlib.blake2b(opened.read(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _tensor(thing: torch.Tensor, identity: Identity) -> Sequence[Buffer]:
    try:
        values = thing.detach().cpu().contiguous()
        return [
            f"{values.dtype}{tuple(values.shape)}".encode(),
            memoryview(values.reshape(-1).view(torch.uint8).numpy()),
        ]
    except Exception:  # a tensor without values, or of another transformation
        return [identity(thing).encode()]


def _inside(thing: object, identity: Identity) -> Iterator[object]:
    """Everything that an object refers to."""
    if isinstance(thing, dict):
        yield from _entries(thing)
    elif isinstance(thing, (list, tuple)):
        yield from thing
    elif isinstance(thing, (set, frozenset)):
        yield from sorted(thing, key=repr if identity is _number else _sorting)
    elif isinstance(thing, types.FunctionType):
        yield from _of_function(thing, identity)
    elif isinstance(thing, types.MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, (staticmethod, classmethod)):
        yield thing.__func__
    elif isinstance(thing, property):
        yield from (thing.fget, thing.fset)
    elif isinstance(thing, types.CellType):
        yield from _of_cell(thing)
    elif isinstance(thing, type):
        yield from _of_class(thing)
        return
    if type(thing) not in (dict, list, tuple, set, frozenset):
        yield from _attributes(thing, identity)


def _entries(thing: dict[object, object]) -> Iterator[object]:
    for key, value in list(thing.items()):
        yield from (key, value)


def _attributes(thing: object, identity: Identity) -> Iterator[object]:
    """Class and attributes of an object, slots included; for objects made in C also the parts of their pickle."""
    own = getattr(thing, "__dict__", {})  # read first: reading creates it on some objects
    if not isinstance(thing, (types.FunctionType, types.MethodType, types.CellType)):
        yield type(thing)
        if not isinstance(thing, torch.nn.Module):
            yield from _reduced(thing, identity)
    if isinstance(thing, torch.nn.Module):
        own = {name: value for name, value in own.items() if name != "training"}  # changed on purpose
    yield from _entries({**own, **{name: getattr(thing, name, None) for name in _slots(thing)}})


def _slots(thing: object) -> list[str]:
    found = [name for kind in type(thing).__mro__ for name in _names(vars(kind).get("__slots__", ()))]
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _reduced(thing: object, identity: Identity) -> Iterator[object]:
    """Parts that an object would be pickled as; its identity if it cannot be pickled."""
    try:
        made = thing.__reduce_ex__(4)
        parts = [made] if isinstance(made, str) else [list(part) if _is_iterator(part) else part for part in made]
        yield from (part for part in parts if part is not copyreg.__newobj__)  # type: ignore[attr-defined]
    except Exception:
        yield identity(thing)


@functools.lru_cache(maxsize=4096)
def _code(thing: types.CodeType) -> str:
    """Text of a function's code: its instructions, names and constants."""
    constants = [_code(part) if isinstance(part, types.CodeType) else _constant(part) for part in thing.co_consts]
    return f"{thing.co_code.hex()}{thing.co_names}{thing.co_freevars}{constants}"


def _constant(part: object) -> str:
    return repr(sorted(part, key=repr)) if isinstance(part, frozenset) else repr(part)


def _is_iterator(part: object) -> bool:
    return hasattr(part, "__next__")


def _of_function(thing: types.FunctionType, identity: Identity) -> Iterator[object]:
    """Code, closures and defaults of a function, and all that it names: globals, attributes of modules, imports."""
    yield from (thing.__code__, thing.__closure__ or (), thing.__defaults__ or (), thing.__kwdefaults__ or {})
    for found in references(thing):
        if _counts(found):
            alone = isinstance(found.value, CODE) and _in_library(found)  # the function, and not all that it calls
            yield from (found.path, identity(found.value) if alone else found.value)
        if isinstance(found.value, types.ModuleType) and found.goes_on and not is_installed(_package_of(found.value)):
            yield from _entries({name: value for name, value in vars(found.value).items() if not _is_own(name)})


def _counts(found: Reference) -> bool:
    """Return whether the meaning of a name may change; in libraries only functions and constants count."""
    constant = type(found.value) in SIMPLE or isinstance(found.value, CODE)
    return vars(builtins).get(found.path) is not found.value and (constant or not _in_library(found))


def _in_library(found: Reference) -> bool:
    """Return whether a name was looked up in a module of an installed package."""
    return found.module is not None and is_installed(_package_of(found.module))


def _is_own(name: str) -> bool:
    """Return whether Python gives this name to every module."""
    return name.startswith("__") and name.endswith("__")


def _package_of(module: types.ModuleType) -> str:
    return module.__name__.partition(".")[0]


def _of_cell(thing: types.CellType) -> Iterator[object]:
    try:
        yield thing.cell_contents
    except ValueError:  # empty
        return


def _of_class(thing: type) -> Iterator[object]:
    yield from thing.__mro__[1:]
    for name, value in list(vars(thing).items()):
        if name not in NOT_CODE:
            yield from (name, value)
