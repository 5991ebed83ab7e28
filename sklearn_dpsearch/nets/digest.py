"""Digests of arguments, parameters and records, by which a training is recognised."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

#: Packages whose code is recognised by its version alone.
LIBRARIES = frozenset({"builtins", "numpy", "sklearn", "skorch", "torch", __name__.partition(".")[0]})


def digest(*things: object) -> str:
    """Digest of numbers, tensors, containers, and of objects by their attributes and the code of their classes.

    Equal in every process. What code refers to outside of itself does not count.
    """
    found = hashlib.blake2b(digest_size=16)
    seen: dict[int, int] = {}
    kept: list[object] = []  # the address of a freed object could be reused
    stack: list[object] = list(reversed(things))
    while stack:
        thing = stack.pop()
        if isinstance(thing, _Raw):
            found.update(thing)
        elif type(thing) in (bool, int, float, str, bytes, type(None)):
            found.update(f"{type(thing).__name__}:{thing!r};".encode())
        elif id(thing) in seen:  # cycles end
            found.update(f"again:{seen[id(thing)]};".encode())
        else:
            seen[id(thing)] = len(seen)
            kept.append(thing)
            inside = list(_inside(thing))
            found.update(f"{_name(type(thing))}({len(inside)}".encode())
            stack.extend(reversed(inside))
    return found.hexdigest()


class _Raw(bytes):
    """Bytes that need no name."""


def _name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', type(kind).__qualname__)}"


def _inside(thing: Any) -> Iterator[object]:
    """Everything that tells an object from others of its type."""
    if isinstance(thing, torch.Tensor):
        yield from _inside(thing.detach().cpu().contiguous().numpy())
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        yield f"{thing.dtype}{thing.shape}"
        yield _Raw(np.ascontiguousarray(thing).reshape(-1).view(np.uint8).tobytes())
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from (key, value)
    elif isinstance(thing, (set, frozenset)):
        yield from sorted(map(digest, thing))
    elif isinstance(thing, (list, tuple, np.ndarray)):
        yield from thing
    elif isinstance(thing, functools.partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, types.MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, types.FunctionType):
        yield from (_name(thing), _code(thing.__code__), thing.__defaults__, thing.__kwdefaults__)
        yield from (cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell))
    elif isinstance(thing, type):
        own = thing.__module__.partition(".")[0] not in LIBRARIES
        yield _name(thing)
        yield from (one for one in vars(thing).values() if own and isinstance(one, types.FunctionType))
        yield from (parent for parent in thing.__bases__ if own)
    elif getattr(thing, "__dict__", None):
        yield type(thing)
        yield from _inside({name: value for name, value in vars(thing).items() if name != "training"})
    else:
        text = repr(thing)
        yield _name(type(thing)) if " at 0x" in text else text


@functools.lru_cache(maxsize=4096)
def _code(code: types.CodeType) -> str:
    """Text of a function's code: its instructions, names and constants."""
    return f"{code.co_code.hex()}{code.co_names}{[_constant(part) for part in code.co_consts]}"


def _constant(part: object) -> str:
    if isinstance(part, types.CodeType):
        return _code(part)
    return repr(sorted(part, key=repr)) if isinstance(part, frozenset) else repr(part)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a variable without a value yet
        return False
