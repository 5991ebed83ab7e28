"""Ways of a user's containers through the source: a parameter may be handed on, and only ``data/``
may look into it.

A parameter that holds what a user gave may be compared with None, asked for its type, kept,
returned, or given to a function of the package: of ``data/``, or one that is then followed in the
same way. All else is a violation: an attribute, an entry, a length, a call of other code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import sklearn_dpsearch

PACKAGE = Path(sklearn_dpsearch.__file__).parent
#: Functions that ask for a type, or keep what they get.
HARMLESS = {"isinstance", "type", "id", "partial", "replace"}
#: Frozen values that keep a container until the door reads it.
FROZEN = {"PartitionReader", "Neighbours"}
#: Methods of estimators, which are entries themselves.
ENTRIES = {
    "fit", "partial_fit", "predict", "predict_proba", "decision_function", "transform", "dry_run",
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function of the package: its file, its class, and its syntax."""

    path: str
    owner: str | None
    node: ast.FunctionDef

    @property
    def parameters(self) -> list[str]:
        arguments = self.node.args
        return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]

    @property
    def folder(self) -> str:
        return self.path.partition("/")[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def functions() -> dict[str, list[Function]]:
    """Functions and methods of the package by name; a class is found by its constructor."""
    named: dict[str, list[Function]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            owner = node.name if isinstance(node, ast.ClassDef) else None
            if owner is None and not isinstance(node, ast.Module):
                continue
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    function = Function(path.relative_to(PACKAGE).as_posix(), owner, part)
                    named.setdefault(owner if part.name == "__init__" else part.name, []).append(
                        function
                    )
    return named


@cache
def classes() -> set[str]:
    """Names of the classes of the package."""
    nodes = (node for path in PACKAGE.rglob("*.py") for node in ast.walk(tree_of(path)))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


@cache
def imports_of(path: str) -> dict[str, str]:
    """Name in a file ↦ file or folder of the package from which it comes."""
    names = {}
    for node in ast.walk(tree_of(PACKAGE / path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parents = Path(path).parts[: -node.level]
            module = "/".join([*parents, *(node.module or "").split(".")]).strip("/")
            names |= {alias.asname or alias.name: module for alias in node.names}
    return names


def is_among(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


@dataclass
class Flow:
    """Uses of parameters that hold what a user gave."""

    violations: list[str] = field(default_factory=list)
    seen: set[tuple[Function, frozenset[str]]] = field(default_factory=set)

    def follow(self, function: Function, raw: frozenset[str]) -> None:
        if raw and (function, raw) not in self.seen and function.folder != "data":
            self.seen.add((function, raw))
            self._block(function.node.body, function, raw)

    def _block(
        self, lines: list[ast.stmt], function: Function, names: frozenset[str]
    ) -> frozenset[str]:
        """Names that hold the container after these lines; a name that is assigned anew is
        clean."""
        for line in lines:
            if isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value is not None:
                names = self._assign(line, function, names)
                continue
            cases = ("body", "orelse", "finalbody")
            blocks = [part for name in cases for part in [getattr(line, name, [])] if part]
            nested = {id(part) for block in blocks for part in block}
            for part in ast.iter_child_nodes(line):
                if id(part) not in nested:
                    self._use(part, function, names, kept=isinstance(line, (ast.Return, ast.Expr)))
            names |= frozenset().union(*(self._block(block, function, names) for block in blocks))
        return names

    def _assign(
        self, line: ast.Assign | ast.AnnAssign, function: Function, names: frozenset[str]
    ) -> frozenset[str]:
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        values = [line.value]
        if isinstance(line.value, ast.Tuple) and isinstance(targets[0], ast.Tuple):
            targets, values = targets[0].elts, line.value.elts
        for value in values:
            self._use(value, function, names, kept=True)
        for target, value in zip(targets, values):
            stored = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            names = names | stored if is_among(value, names) else names - stored
        return names

    def _use(
        self, node: ast.AST | None, function: Function, names: frozenset[str], *, kept: bool = False
    ) -> None:
        """Look at an expression; ``kept``: whether it may be the container itself."""
        if is_among(node, names):
            if not kept:
                self._violate(node, function, "is used")
        elif isinstance(node, ast.Call):
            self._call(node, function, names)
        elif isinstance(node, ast.Compare) and all(
            isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops
        ):
            pass
        else:
            kept = isinstance(node, (ast.Tuple, ast.List, ast.Starred)) or (
                kept and isinstance(node, ast.IfExp)
            )
            for part in ast.iter_child_nodes(node):
                self._use(part, function, names, kept=kept)

    def _call(self, node: ast.Call, function: Function, names: frozenset[str]) -> None:
        if isinstance(node.func, ast.Attribute):
            self._use(node.func.value, function, names)
        given: list[tuple[int | str | None, ast.expr]] = [
            *enumerate(node.args),
            *((one.arg, one.value) for one in node.keywords),
        ]
        for _, value in given:
            self._use(value, function, names, kept=True)
        places = [place for place, value in given if is_among(value, names)]
        is_method = isinstance(node.func, ast.Attribute)
        name = node.func.attr if is_method else getattr(node.func, "id", "?")
        is_users = name in function.parameters
        if not places or name in HARMLESS | FROZEN or (name in ENTRIES if is_method else is_users):
            return
        targets = list(self._targets(node, function, name))
        if not targets:
            self._violate(node, function, f"is given to {name}")
        for target in targets:
            parameters = target.parameters[target.parameters[:1] in (["self"], ["cls"]) :]
            chosen = {
                parameters[one] if isinstance(one, int) and one < len(parameters) else one
                for one in places
            }
            self.follow(target, frozenset(one for one in chosen if one in parameters))

    def _targets(self, node: ast.Call, function: Function, name: str) -> Iterator[Function]:
        """Functions of the package that a call may mean."""
        if isinstance(node.func, ast.Name):
            home = imports_of(function.path).get(name, function.path.removesuffix(".py"))
            yield from (one for one in functions().get(name, []) if one.path.startswith(home))
            return
        value = node.func.value
        if isinstance(value, ast.Name) and value.id in imports_of(function.path):
            module = f"{imports_of(function.path)[value.id]}/{value.id}.py".lstrip("/")
            if (PACKAGE / module).is_file():
                yield from (one for one in functions().get(name, []) if one.path == module)
                return
        if isinstance(value, ast.Name) and value.id in classes():
            yield from (one for one in functions().get(name, []) if one.owner == value.id)
            return
        yield from (one for one in functions().get(name, []) if one.owner and near(one, function))

    def _violate(self, node: ast.AST, function: Function, what: str) -> None:
        place = (
            f"{function.path}:{getattr(node, 'lineno', 0)} "
            f"{function.owner or ''}.{function.node.name}"
        )
        self.violations.append(f"{place}: {ast.unparse(node)[:70]!r} {what}")


def near(method: Function, caller: Function) -> bool:
    """Return whether a method may be meant by its name alone: it is of the same folder, or of
    schemas and encoders."""
    return method.folder in (caller.folder, "preprocessing", "data")


def flow_of(entries: list[tuple[str, str | None, str, tuple[str, ...]]]) -> Flow:
    """Uses of containers outside of ``data/``, from entries: file, class, function, parameters."""
    flow = Flow()
    for path, owner, name, raw in entries:
        (function,) = (one for one in functions()[name] if one.path == path and one.owner == owner)
        flow.follow(function, frozenset(raw))
    return flow
