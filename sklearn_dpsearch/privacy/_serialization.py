"""Guarantees as plain values for JSON, without loss, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from importlib import import_module
from inspect import isabstract, signature
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import PrivacyError, did_you_mean

Kind = TypeVar("Kind", bound=type)
#: Classes by their names.
Kinds: TypeAlias = dict[str, Any]
#: Version of the layout below. A reader refuses any other version.
VERSION = 1
#: Classes of the fields of guarantees: parents of several kinds, and single kinds.
ROOTS: list[type] = []
#: Kinds that are defined outside of the accountant ↦ their module, which is loaded where one of
#: them is read.
MODULES = dict.fromkeys(("DiscreteGaussianDP", "Sensitivity"), "sklearn_dpsearch.scoring._noise")
#: Kinds that are not built from their fields ↦ function that builds them from what their
#: ``written_fields`` says.
BUILDERS: dict[str, Callable[..., Any]] = {}
#: Types that JSON lacks.
READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "fraction": Fraction,
    "array": lambda values: np.array(
        [value["float"] if isinstance(value, Mapping) else value for value in values], dtype=float
    ),
}


def part_of_guarantees(kind: Kind) -> Kind:
    """Register a class whose values may be part of written guarantees.

    It is a class decorator, and includes subclasses.
    """
    ROOTS.append(kind)
    return kind


# --- writing --------------------------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """Convert a guarantee to dicts, lists, numbers and strings.

    A frozen value of this library becomes its fields and its kind.
    """
    match value:
        case None | bool() | int() | str():
            return value
        # with all digits that reading back needs; as text if it is infinite, which JSON lacks
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Fraction():
            return {"fraction": str(value)}
        case tuple():
            return [to_plain(member) for member in value]
        case np.ndarray():
            return {"array": [to_plain(number) for number in value.tolist()]}
    if not is_dataclass(value) or not is_ours(type(value)):
        raise PrivacyError(
            f"Found {type(value).__name__} in a guarantee; only the guarantees of sklearn_dpsearch "
            "and what they are made of can be written down. Use one of them, or keep the ε and δ "
            "that it states as ApproxDP."
        )
    frozen: Any = value
    kind = type(frozen).__name__
    if kind in BUILDERS:
        written = frozen.written_fields()
    else:
        written = {}
        for field in (field for field in fields(frozen) if field.init):
            number = getattr(frozen, field.name)
            # equal values are written alike: whole numbers as floats if any number is allowed
            is_integer = field.type == "float" and type(number) is int and float(number) == number
            written[field.name] = float(number) if is_integer else number
    return {"kind": kind, **{name: to_plain(member) for name, member in written.items()}}


def is_ours(kind: type) -> bool:
    """Return whether a class is of this library."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


# --- reading --------------------------------------------------------------------------------------


def from_plain(plain: Mapping[str, Any]) -> Any:
    """Rebuild the guarantee that was written as this dictionary, with its version."""
    if not isinstance(plain, Mapping) or "version" not in plain:
        raise PrivacyError(
            f"Found {short_repr(plain)}; the dictionary of a guarantee is needed, with its "
            "version. Give what to_dict() of a guarantee returned, or the part 'guarantee' of the "
            "dictionary of a statement."
        )
    if type(plain["version"]) is not int or plain["version"] != VERSION:
        raise PrivacyError(
            f"Found a guarantee written in version {plain['version']!r}; version {VERSION} is "
            "needed. Read it with the release of sklearn_dpsearch that wrote it, or a later one."
        )
    written = {name: value for name, value in plain.items() if name != "version"}
    return _value_from_plain(written, _concrete_kinds())


def _value_from_plain(value: Any, kinds: Kinds) -> Any:
    """Rebuild a value of any kind from plain ones."""
    if isinstance(value, list | tuple):
        return tuple(_value_from_plain(member, kinds) for member in value)
    if not isinstance(value, Mapping):
        return value
    if "kind" in value:
        return _build_kind(value, kinds)
    name = next(iter(value), "")
    if len(value) != 1 or name not in READERS:
        raise PrivacyError(
            f"Found {short_repr(value)} in a guarantee; one of {', '.join(READERS)} or a kind is "
            "needed."
        )
    try:
        return READERS[name](value[name])
    except (ValueError, TypeError, ArithmeticError, LookupError):
        raise PrivacyError(
            f"Found {short_repr(value)} in a guarantee, which is no {name}. Give what to_dict() of "
            "a guarantee returned."
        ) from None


def _build_kind(value: Mapping[str, Any], kinds: Kinds) -> Any:
    """Build a frozen value from exactly the fields of its kind.

    No field is guessed, even with a default.
    """
    name = value["kind"] if isinstance(value["kind"], str) else ""
    if name in MODULES and name not in kinds:
        import_module(MODULES[name])
        kinds.update(_concrete_kinds())
    if name not in kinds:
        raise PrivacyError(
            f"Found a guarantee of kind {value['kind']!r}, which this version does not know. Read "
            "it with the release of sklearn_dpsearch that wrote it, or a later one."
            + did_you_mean(value["kind"], kinds)
        )
    written = {part: member for part, member in value.items() if part != "kind"}
    arguments = {part: _value_from_plain(member, kinds) for part, member in written.items()}
    build: Any = BUILDERS.get(name, kinds[name])
    parameters = set(signature(build).parameters)
    if arguments.keys() != parameters:
        raise PrivacyError(
            f"Found {name} with {sorted(arguments)}; {sorted(parameters)} are needed. Read it with "
            "the release of sklearn_dpsearch that wrote it, or a later one."
        )
    return build(**arguments)


def _concrete_kinds() -> Kinds:
    """Concrete classes that may be part of guarantees, by name."""
    waiting, kinds = list(ROOTS), dict[str, Any]()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if not isabstract(kind) and is_ours(kind):
            # two of one name could not be told apart
            assert kinds.setdefault(kind.__name__, kind) is kind
    return kinds


def short_repr(value: object) -> str:
    """The beginning of a value's ``repr``."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
