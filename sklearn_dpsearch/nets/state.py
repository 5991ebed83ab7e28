"""What a module, a criterion and their code hold, compared by contents: what has changed could tell about records."""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

OWN = __name__.partition(".")[0]
#: Packages whose functions and classes keep nothing of a user's records.
LIBRARIES = frozenset({"torch", "numpy", "skorch", "opacus", "sklearn", "scipy", "pandas", OWN})
#: Parts of libraries whose objects serve the whole process, and change by themselves.
OPAQUE = frozenset({"logging", "threading", "_thread", "_weakref", "weakref", "multiprocessing"})
SIMPLE = frozenset(
    {int, float, complex, str, bytes, bool, type(None), type(Ellipsis), torch.dtype, torch.device, torch.Size}
)
#: Where the modules of Python itself lie: a file of a user's may have the name of one.
PYTHON = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


def contents(*things: Any) -> str:
    """A digest of all that can be reached from these objects: attributes, slots, containers, classes, closures.

    Code of libraries, and what cannot be copied either (open files, locks), counts by identity.
    """
    digest = hashlib.blake2b(digest_size=16)
    seen: dict[int, int] = {}
    kept: list[Any] = []  # an object that is freed could leave its address to another
    stack: list[Any] = list(reversed(things))
    while stack:
        one = stack.pop()
        if type(one) in SIMPLE:
            digest.update(f"{type(one).__name__}:{one!r};".encode())
            continue
        if id(one) in seen:
            digest.update(f"again:{seen[id(one)]};".encode())
            continue
        seen[id(one)] = len(seen)
        kept.append(one)
        digest.update(f"{type(one).__qualname__}(".encode())
        raw = _raw(one)
        if raw is not None:
            digest.update(raw)
            if isinstance(one, torch.Tensor) and vars(one):
                stack.append(vars(one))
        else:
            inside = list(_inside(one))
            digest.update(f"{len(inside)}".encode())
            stack.extend(reversed(inside))
    return digest.hexdigest()


def _raw(one: Any) -> bytes | None:
    """Numbers, and what counts by identity, as bytes."""
    if isinstance(one, torch.Tensor):
        return _tensor(one)
    if isinstance(one, np.ndarray) and one.dtype != object:
        return f"{one.dtype}{one.shape}".encode() + np.ascontiguousarray(one).tobytes()
    library = isinstance(one, (type, types.FunctionType)) and _is_library(_package(one))
    shared = _package(type(one)) in OPAQUE
    if library or shared or isinstance(one, (types.ModuleType, types.BuiltinFunctionType)):
        return f"{id(one)}".encode()
    return None


def _package(one: Any) -> str:
    return str(one.__module__).partition(".")[0]


@functools.lru_cache(maxsize=1024)
def _is_library(package: str) -> bool:
    if package not in sys.stdlib_module_names:
        return package in LIBRARIES
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is None or file.startswith(PYTHON)


def _tensor(one: torch.Tensor) -> bytes:
    try:
        values = one.detach().cpu().contiguous()
        numbers: bytes = values.reshape(-1).view(torch.uint8).numpy().tobytes()
        return f"{values.dtype}{tuple(values.shape)}".encode() + numbers
    except Exception:  # a stand-in without values, or one of another transformation
        return f"{id(one)}".encode()


def _inside(one: Any) -> Iterator[Any]:
    """Everything that an object refers to."""
    if isinstance(one, dict):
        yield from _entries(one)
    elif isinstance(one, (list, tuple)):
        yield from one
    elif isinstance(one, (set, frozenset)):
        yield from sorted(one, key=repr)
    elif isinstance(one, types.FunctionType):
        yield from _of_function(one)
    elif isinstance(one, types.MethodType):
        yield from (one.__func__, one.__self__)
    elif isinstance(one, (staticmethod, classmethod)):
        yield one.__func__
    elif isinstance(one, property):
        yield from (one.fget, one.fset)
    elif isinstance(one, types.CellType):
        yield from _of_cell(one)
    elif isinstance(one, type):
        yield from _of_class(one)
        return
    if type(one) not in (dict, list, tuple, set, frozenset):
        yield from _attributes(one)


def _entries(one: dict[Any, Any]) -> Iterator[Any]:
    for key, value in list(one.items()):
        yield from (key, value)


def _attributes(one: Any) -> Iterator[Any]:
    """The class, all attributes, in slots too, and what an object made in C says of itself when it is pickled."""
    own = getattr(one, "__dict__", {})  # asked for first: some objects have one from then on
    if not isinstance(one, (types.FunctionType, types.MethodType, types.CellType)):
        yield type(one)
        if not isinstance(one, torch.nn.Module):
            yield from _reduced(one)
    if isinstance(one, torch.nn.Module):
        own = {name: value for name, value in own.items() if name != "training"}  # changed on purpose
    yield from _entries({**own, **{name: getattr(one, name, None) for name in _slots(one)}})


def _slots(one: Any) -> list[str]:
    found = [name for kind in type(one).__mro__ for name in _names(vars(kind).get("__slots__", ()))]
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _reduced(one: Any) -> Iterator[Any]:
    """What an object would be pickled as; its identity if it cannot be."""
    try:
        made = one.__reduce_ex__(4)
        parts = [made] if isinstance(made, str) else [list(part) if _is_iterator(part) else part for part in made]
        yield from (part for part in parts if part is not copyreg.__newobj__)  # type: ignore[attr-defined]
    except Exception:
        yield f"{id(one)}"


def _is_iterator(part: Any) -> bool:
    return hasattr(part, "__next__")


def _of_function(one: types.FunctionType) -> Iterator[Any]:
    """Closures, defaults, and the globals that the code names."""
    yield from (one.__closure__ or (), one.__defaults__ or (), one.__kwdefaults__ or {})
    for name in _named(one.__code__):
        if name in one.__globals__:
            yield from (name, one.__globals__[name])


@functools.lru_cache(maxsize=4096)
def _named(code: types.CodeType) -> tuple[str, ...]:
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _named(part)]
    own = [one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return tuple(dict.fromkeys([*own, *inner]))


def _of_cell(one: types.CellType) -> Iterator[Any]:
    try:
        yield one.cell_contents
    except ValueError:  # empty
        return


def _of_class(one: type) -> Iterator[Any]:
    yield from one.__mro__[1:]
    for name, value in list(vars(one).items()):
        if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl"):
            yield from (name, value)
