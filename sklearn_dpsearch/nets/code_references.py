"""Code of functions, read and never run: the globals, attributes of modules, and imports that it names."""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

#: Instructions that only prepare others.
SILENT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})
GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
LOCAL = frozenset({"LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
STORED_LOCALLY = frozenset({"STORE_DEREF", "STORE_FAST", "STORE_NAME"})
ASSIGNED = frozenset({"DELETE_ATTR", "STORE_ATTR"})
ASSIGNED_GLOBALLY = frozenset({"DELETE_GLOBAL", "STORE_GLOBAL"})
COPIES = frozenset({"COPY", "DUP_TOP"})
_MISSING = object()


@dataclass(frozen=True)
class Reference:
    """One object that code names.

    Parameters
    ----------
    path : str
        As written: ``"helpers.table"``.
    value : object
        Current value; for an assigned attribute its owner; for an assigned global None.
    assigned : bool
        Whether the code assigns it.
    goes_on : bool
        Whether the object itself is used, not only one of its attributes.
    module : module or None
        Module of the lookup.
    """

    path: str
    value: Any
    module: types.ModuleType | None = None
    assigned: bool = False
    goes_on: bool = True


def references(function: types.FunctionType) -> list[Reference]:
    """Yield all existing objects that the code of a function, and of the functions inside of it, names."""
    names = function.__code__.co_freevars
    cells = {name: cell for name, cell in zip(names, function.__closure__ or ()) if filled(cell)}
    own = {name: cell.cell_contents for name, cell in cells.items()}
    return list(_Reader(function.__globals__, own).read(function.__code__))


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and those inside of it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from codes(part)


def filled(cell: types.CellType) -> bool:
    """Return whether a variable of an outer function has a value yet."""
    try:
        return cell.cell_contents is not _MISSING
    except ValueError:
        return False


class _Reader:
    """Follows names from one instruction to the next."""

    def __init__(self, known: dict[str, Any], own: dict[str, Any]) -> None:
        self.globals, self.own = known, own
        self.imported: list[Any] = []

    def read(self, code: types.CodeType) -> Iterator[Reference]:
        now: Reference | None = None
        copied: Reference | None = None  # of ``module.count += 1``
        for step in _steps(code):
            if step.opname in COPIES and now is not None:
                copied = now if isinstance(now.value, types.ModuleType) else None
                continue
            follows = self._next(step, now)
            if follows is not None and now is not None and step.opname in ATTRIBUTE:
                yield replace(now, goes_on=False)
            elif now is not None:
                yield now
            owner = now or copied
            if step.opname in ASSIGNED and owner is not None:
                yield replace(owner, path=f"{owner.path}.{step.argval}", assigned=True, goes_on=False)
                copied = None
            if step.opname in ASSIGNED_GLOBALLY:
                yield Reference(str(step.argval), None, assigned=True)
            if step.opname in STORED_LOCALLY and now is not None:
                self.own[step.argval] = now.value
            now = follows
        if now is not None:
            yield now
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                yield from self.read(part)

    def _next(self, step: dis.Instruction, now: Reference | None) -> Reference | None:
        """Object on the stack after an instruction."""
        value: Any = _MISSING
        name, module = str(step.argval), None
        if step.opname in GLOBAL:
            value = self.globals.get(name, vars(builtins).get(name, _MISSING))
        elif step.opname in LOCAL:
            value = self.own.get(name, _MISSING)
        elif step.opname in ATTRIBUTE and now is not None and isinstance(now.value, (types.ModuleType, type)):
            value, name = getattr(now.value, name, _MISSING), f"{now.path}.{name}"
            module = now.value if isinstance(now.value, types.ModuleType) else now.module
        elif step.opname == "IMPORT_NAME":
            value = self._import(name)
        elif step.opname == "IMPORT_FROM":
            named = (one for one in self.imported if one.__name__.endswith(f".{name}"))
            found = (getattr(module, name, _MISSING) for module in self.imported)
            value = next((one for one in (*named, *found) if one is not _MISSING), _MISSING)
            module = self.imported[0] if self.imported else None
        return None if value is _MISSING else Reference(name, value, module)

    def _import(self, name: str) -> Any:
        package = self.globals.get("__package__") or ""
        found = [sys.modules.get(one) for one in (name, f"{package}.{name}".rstrip("."), name.partition(".")[0])]
        self.imported = [module for module in found if module is not None]
        return self.imported[0] if self.imported else _MISSING


@functools.lru_cache(maxsize=4096)
def _steps(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    """Instructions in the form of earlier versions of Python, with one variable each."""
    found: list[dis.Instruction] = []
    for step in dis.get_instructions(code):
        if step.opname in SILENT:
            continue
        if isinstance(step.argval, tuple) and "_FAST" in step.opname:  # two in one, since Python 3.13
            kinds = [f"{kind}_FAST" for kind in step.opname.replace("_BORROW", "").split("_FAST")[:-1]]
            names = zip((kind.strip("_") for kind in kinds), step.argval)
            found += [step._replace(opname=kind, argval=name) for kind, name in names]
        else:
            found.append(step)
    return tuple(found)
