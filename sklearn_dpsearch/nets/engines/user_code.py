"""User code, read before it runs: refuses code that would see other records, or carry state from call to call.

Under ``vmap`` code sees one record. But the number of calls, and the place of a record in its batch, depend on the
other records: random numbers that are not secret, and states that advance with each call, would tell of them. All code
is read that ``forward`` can reach, except code of installed packages.
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ...privacy import LeakingEstimatorError
from ..code_references import Reference, codes, filled, references
from ..state import INSTALLED, OPAQUE, PYTHON, SIMPLE, is_installed

RANDOM = (
    "random numbers that are not drawn from PyTorch's generators as training has seeded them belong to a place in the "
    "batch, or to a whole batch, so that one record more moves those of other records. Draw with torch.rand, "
    "torch.bernoulli, nn.Dropout and the like, and leave their generator as it is"
)
SEES = "it sees the other records of the batch, or switches off what would refuse that. Remove it"
ADVANCES = (
    "it advances from call to call, and the number of calls depends on how many records there are. Compute constants "
    "in __init__, and keep them as buffers"
)
UNWRITTEN = (
    "memory that nothing was written to may hold other records. Use torch.zeros, torch.tensor, and torch.is_tensor(x) "
    "for isinstance(x, torch.Tensor)"
)
UNREAD = "what it does cannot be read beforehand. Write it as plain code"

_DRAWING = """
default_generator default_generators default_rng fork_rng get_rng_state get_rng_state_all manual_seed manual_seed_all
seed_all set_rng_state set_rng_state_all thread_safe_generator
"""
_SEEING = """
DisableTorchFunction DisableTorchFunctionSubclass TorchDispatchMode TorchFunctionMode __torch_dispatch__
__torch_function__ _current_frames _getframe _python_dispatch _remove_batch_dim _unwrap_batched _unwrap_for_grad
currentframe debug_unwrap f_back f_locals get_unwrapped gi_frame memory_allocated memory_reserved memory_stats tb_frame
unwrap_dead_wrappers unwrap_if_dead
"""
_NOT_WRITING = """
BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
Tensor empty empty_like empty_permuted empty_strided new new_empty new_empty_strided resize_ resize_as_
"""
#: Attributes, imports and functions that are refused from every source ↦ reason.
NAMES: dict[str, str] = {
    **dict.fromkeys(_DRAWING.split(), RANDOM),
    **dict.fromkeys(_SEEING.split(), SEES),
    **dict.fromkeys(_NOT_WRITING.split(), UNWRITTEN),
}
#: Names refused as text (``getattr(torch, "Generator")``): from NAMES, and others too common as attributes.
TEXT = {**NAMES, "Generator": RANDOM, "_C": SEES, "_functorch": SEES}
_OF_RANDOM = "numpy.random torch.cuda.random torch.mps torch.random torch.xpu.random"
_OF_SEEING = """
torch._tensor_str torch.autograd.profiler torch.cuda.memory torch.profiler torch.utils.flop_counter
"""
#: Modules of libraries that are refused with all their definitions ↦ reason.
MODULES: dict[str, str] = {**dict.fromkeys(_OF_RANDOM.split(), RANDOM), **dict.fromkeys(_OF_SEEING.split(), SEES)}
#: Modules whose functions also stand in others, mostly harmless there: refused by their own name only.
INSIDE = ("torch._C", "torch._functorch", "torch.overrides", "torch.utils._python_dispatch")
_HARMLESS = """
__future__ _abc _collections _collections_abc _functools _operator _py_abc _warnings abc builtins cmath collections
contextlib copy dataclasses enum functools itertools logging math numbers operator re string textwrap types typing
warnings
"""
#: Modules of Python without state, random draws, or access beyond their arguments; others are refused.
HARMLESS = frozenset(_HARMLESS.split())
#: Functions of Python whose effect cannot be read from code.
BUILTINS = (
    builtins.eval,
    builtins.exec,
    builtins.compile,
    builtins.__import__,
    globals,
    hash,
    id,
    input,
    object,  # its hash and its text are addresses
    setattr,
    delattr,
)
_NUMPYS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
GENERATORS = (torch.Generator, *_NUMPYS)
MODES = (TorchDispatchMode, TorchFunctionMode)
#: Kinds of objects whose contents are not compared, as other code may change them at any time.
UNSEEN = frozenset(
    {"_local", "Connection", "ContextVar", "Cursor", "mmap", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
)
#: Objects whose contents are read; for a user's own kinds the methods as well.
CONTAINERS = (dict, list, tuple, set, frozenset, deque, np.ndarray, property, functools.partial)
#: Methods of classes that are called when an object is made, not when it is used.
MAKING = frozenset({"__init__", "__new__", "__init_subclass__", "__class_getitem__", "__set_name__"})


def refuse_code(module: nn.Module, criterion: nn.Module) -> None:
    """Raise for code that would see other records, or carry state from call to call.

    Raises
    ------
    LeakingEstimatorError
        With the name, the reason, and the remedy.
    """
    for owner in (module, criterion):
        _Reading(f"{type(owner).__name__}.forward").read(owner)


class _Reading:
    """All objects that code can reach; methods count once their names occur."""

    def __init__(self, where: str) -> None:
        self.names = {"forward", "backward", "setup_context", "vmap", "jvp"}
        self.waiting: dict[str, list[object]] = defaultdict(list)
        self.kept: dict[int, object] = {}
        self.todo: list[tuple[object, str]] = []
        self.where = where

    def read(self, owner: object) -> None:
        self.todo.append((owner, self.where))
        while self.todo:
            thing, self.where = self.todo.pop()
            if type(thing) in SIMPLE or id(thing) in self.kept:
                continue
            self.kept[id(thing)] = thing
            self._refuse_kind(thing)
            self._refuse_by_origin(thing)
            self.todo += [(inner, self.where) for inner in self._inside(thing)]

    def _inside(self, thing: Any) -> Iterator[object]:
        if isinstance(thing, (*CONTAINERS, type)) and not _is_known(type(thing).__module__):
            yield from self._of_object(thing) if isinstance(thing, CONTAINERS) else (type(thing),)
        if isinstance(thing, dict):
            yield from (*thing.keys(), *thing.values())
        elif isinstance(thing, np.ndarray):
            yield from thing.ravel().tolist() if thing.dtype == object else ()
        elif isinstance(thing, (list, tuple, set, frozenset, deque)):
            yield from thing
        elif isinstance(thing, types.FunctionType):
            yield from self._of_function(thing)
        elif isinstance(thing, types.MethodType):
            yield from (thing.__func__, thing.__self__)
        elif isinstance(thing, (staticmethod, classmethod)):
            yield thing.__func__
        elif isinstance(thing, property):
            yield from (thing.fget, thing.fset)
        elif isinstance(thing, functools.partial):
            yield from (thing.func, thing.args, thing.keywords)
        elif isinstance(thing, types.ModuleType):
            yield from self._named_in(vars(thing)) if not _is_known(thing.__name__) else ()
        elif isinstance(thing, type):
            yield from self._of_class(thing, MAKING if issubclass(thing, nn.Module) else frozenset())
        elif not isinstance(thing, types.BuiltinFunctionType):
            yield from self._of_object(thing)

    def _of_object(self, thing: object) -> Iterator[object]:
        if type(thing).__module__.partition(".")[0] in OPAQUE:
            return
        yield from self._of_class(type(thing), MAKING)
        own = vars(thing) if hasattr(thing, "__dict__") else {}
        yield from own.values()
        slots = (getattr(kind, "__slots__", ()) for kind in type(thing).__mro__)
        names = [name for some in slots for name in ((some,) if isinstance(some, str) else some)]
        yield from (getattr(thing, name, None) for name in names)

    def _of_class(self, kind: type, without: frozenset[str]) -> Iterator[object]:
        """Methods of a class; of modules, which have many that training never calls, only those whose names occur."""
        for base in kind.__mro__:
            if _is_known(base.__module__):
                continue
            own = {name: value for name, value in vars(base).items() if name not in without}
            yield from self._named_in(own) if issubclass(base, nn.Module) else own.values()

    def _named_in(self, members: dict[str, Any]) -> Iterator[object]:
        """Members whose names occur; the others wait until their names do."""
        for name, value in list(members.items()):
            special = name.startswith("__") and callable(value)
            if name in self.names or (special and not isinstance(value, type)):
                yield value
            else:
                self.waiting[name].append(value)

    def _of_function(self, function: types.FunctionType) -> Iterator[object]:
        known = _is_known(function.__module__)
        if known or function.__code__.co_filename.startswith((*PYTHON, *INSTALLED)):
            if not known or function.__module__ == "functools":  # made by a library from the user's functions
                yield from (cell.cell_contents for cell in function.__closure__ or () if filled(cell))
            return
        self.where = f"{function.__qualname__} ({function.__module__})"
        for code in codes(function.__code__):
            self._refuse_code(code)
            new = set(code.co_names) - self.names
            self.names |= new
            for name in new:
                yield from self.waiting.pop(name, ())
        yield from (function.__defaults__ or ())
        yield from (function.__kwdefaults__ or {}).values()
        for found in references(function):
            self._refuse_reference(found)
            yield found.value

    # --- refused --------------------------------------------------------------------------------------------------

    def _refuse(self, found: str, reason: str) -> None:
        raise LeakingEstimatorError(f"Found {found} in {self.where}: {reason}.")

    def _refuse_code(self, code: types.CodeType) -> None:
        texts = {part for part in code.co_consts if isinstance(part, str)}
        if "__hash__" in code.co_names:  # called, and not only defined
            self._refuse("__hash__", UNREAD)
        for name in (*code.co_names, code.co_name):
            if name in NAMES:
                self._refuse(name, NAMES[name])
        for name in texts & TEXT.keys():
            self._refuse(repr(name), TEXT[name])

    def _refuse_reference(self, found: Reference) -> None:
        value = found.value
        library = callable(value) and _is_known(getattr(value, "__module__", None))
        if found.assigned and (value is None or library or isinstance(value, types.ModuleType)):
            self._refuse(f"an assignment to {found.path}", ADVANCES)
        if any(value is one for one in BUILTINS) or (found.module is not None and found.path.endswith(".__dict__")):
            self._refuse(found.path, UNREAD)
        self._refuse_by_origin(value, found.path)

    def _refuse_by_origin(self, value: Any, path: str | None = None) -> None:
        """Raise for a refused module, or for an object that a library's module defines."""
        name, own = getattr(value, "__module__", None), getattr(value, "__name__", type(value).__name__)
        if isinstance(value, types.ModuleType):
            self._refuse_origin(path or value.__name__, value.__name__, *INSIDE)
        elif callable(value) and type(value).__module__.partition(".")[0] not in OPAQUE:
            bound = type(getattr(value, "__self__", value)).__module__
            self._refuse_origin(path or str(own), name if isinstance(name, str) else bound)
            if own in NAMES:
                self._refuse(path or str(own), NAMES[str(own)])

    def _refuse_origin(self, path: str, name: str, *more: str) -> None:
        """Raise for an object that a refused module of a library defines."""
        for refused in (*MODULES, *more):
            if name == refused or name.startswith(f"{refused}."):
                self._refuse(path, MODULES.get(refused, SEES))
        package = name.partition(".")[0]
        if package in sys.stdlib_module_names and _is_known(package) and package not in HARMLESS:
            self._refuse(path, RANDOM if package in ("random", "_random", "secrets") else ADVANCES)

    def _refuse_kind(self, thing: Any) -> None:
        kind = type(thing)
        if isinstance(thing, GENERATORS) or kind.__module__ in ("random", "_random") or thing is torch.Generator:
            self._refuse(f"a generator of random numbers ({getattr(thing, '__name__', kind.__name__)})", RANDOM)
        if isinstance(thing, MODES) or (isinstance(thing, type) and issubclass(thing, MODES)):
            self._refuse(f"a mode of PyTorch ({getattr(thing, '__name__', kind.__name__)})", SEES)
        if isinstance(thing, functools._lru_cache_wrapper) and not _is_known(getattr(thing, "__module__", None)):
            self._refuse(f"a cache ({getattr(thing, '__qualname__', 'lru_cache')})", ADVANCES)
        if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
            self._refuse(f"an iterator ({kind.__name__})", ADVANCES)
        if kind.__name__ in UNSEEN and _is_known(kind.__module__):
            self._refuse(f"an object of kind {kind.__name__}", ADVANCES)


def _is_known(module: str | None) -> bool:
    """Return whether a module is of Python, or of an installed package."""
    return is_installed(str(module).partition(".")[0])
