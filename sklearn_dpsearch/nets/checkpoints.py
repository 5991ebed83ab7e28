"""Parameters carry what they cost: a note on every module, which copies, pickles and saved parameters keep.

A net that starts from such parameters adds its own training to that cost. The note is text, so that a pickled module
can be loaded without this library.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from torch import nn

from ..privacy import Guarantee, PrivacyError, compose
from ..privacy.count_laws.base import CountLaw
from ..privacy.spent import Component, PrivacySpent

#: The attribute of a module, and the entry of saved parameters, that hold the note.
NOTE = "_sklearn_dpsearch_spent"
#: Where guarantees are defined, and nothing else is made from a note.
PACKAGE = __name__.rpartition(".nets.")[0] + ".privacy."


#: What is written on a module: text, or a number and the statement itself, where that cannot be text.
Note: TypeAlias = str | tuple[str, PrivacySpent]


def mark(module: nn.Module, spent: Sequence[PrivacySpent]) -> None:
    """Write what its parameters have cost, together, on a module and on all of its parts."""
    place(module, tuple(map(_note_of, spent)))


def place(module: nn.Module, notes: tuple[Note, ...]) -> None:
    """Put notes on a module and on all of its parts."""
    for part in module.modules():
        vars(part)[NOTE] = notes


def costs(module: nn.Module) -> list[PrivacySpent]:
    """What the parameters of a module have cost so far: one entry for each training, or search, that left a note."""
    return read(note for part in module.modules() for note in vars(part).get(NOTE, ()))


def _note_of(spent: PrivacySpent) -> Note:
    """Text, or the object itself where a guarantee cannot be written as text.

    Each note has a number of its own, by which copies are recognised.
    """
    token = secrets.token_hex(16)
    try:
        return json.dumps({"token": token, "spent": _encode(spent)})
    except TypeError:
        return (token, spent)


def read(notes: Iterable[Note]) -> list[PrivacySpent]:
    """What notes say, copies of one taken once."""
    found: dict[str, PrivacySpent] = {}
    for note in notes:
        token, spent = note if isinstance(note, tuple) else json.loads(note).values()
        if token not in found:
            found[token] = spent if isinstance(spent, PrivacySpent) else _decode(spent)
    return list(found.values())


def together(spent: Sequence[PrivacySpent]) -> PrivacySpent:
    """One statement for several."""
    if len(spent) == 1:
        return spent[0]
    return PrivacySpent(
        guarantee=compose(*(statement.guarantee for statement in spent)),
        delta=spent[0].delta,
        components=tuple(component for statement in spent for component in statement.components),
        assumptions=tuple(dict.fromkeys(text for statement in spent for text in statement.assumptions)),
    )


@contextlib.contextmanager
def saving(module: nn.Module) -> Iterator[None]:
    """Write the notes of a module into its ``state_dict``, for as long as this lasts.

    Raises
    ------
    PrivacyError
        If the cost cannot be written as text.
    """
    notes = vars(module).get(NOTE, ())
    for note in notes:
        if isinstance(note, tuple):
            raise PrivacyError(
                f"Found a guarantee that cannot be written into a file of parameters: {note[1].guarantee!r}. Pickle "
                "the whole net, which keeps what it cost."
            )

    def write(_: nn.Module, state: object, prefix: str, metadata: dict[str, Any]) -> None:
        if notes:
            metadata[NOTE] = list(notes)

    handle = module._register_state_dict_hook(write)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def loading(module: nn.Module) -> Iterator[list[tuple[str, ...]]]:
    """Collects the notes of what is loaded into a module while this lasts; empty ones for a file without any."""
    found: list[tuple[str, ...]] = []

    def note(state: object, prefix: str, metadata: dict[str, Any], *rest: object) -> None:
        found.append(tuple(text for text in metadata.get(NOTE, ()) if isinstance(text, str)))

    handle = module._register_load_state_dict_pre_hook(note)
    try:
        yield found
    finally:
        handle.remove()


# --- as text -------------------------------------------------------------------------------------------------------


def _encode(value: object) -> Any:
    """A value as JSON, from which ``_decode`` makes an equal one."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [_encode(item) for item in value]}
    if is_dataclass(value) and type(value).__module__.startswith(PACKAGE):
        own = {entry.name: _encode(getattr(value, entry.name)) for entry in fields(value) if entry.init}
        return {"type": f"{type(value).__module__[len(PACKAGE) :]}.{type(value).__qualname__}", "fields": own}
    raise TypeError(type(value).__name__)


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.asarray(value["array"])
    for kind in (tuple, list):
        if kind.__name__ in value:
            return kind(_decode(item) for item in value[kind.__name__])
    module, _, name = value["type"].rpartition(".")
    # A file of parameters may come from anybody: nothing but statements is made from it, whatever it names.
    made = getattr(import_module(PACKAGE + module), name)
    if not (isinstance(made, type) and issubclass(made, (Guarantee, CountLaw, Component, PrivacySpent))):
        raise ValueError(f"Found {value['type']!r} in a note of what parameters cost; a guarantee is needed.")
    return made(**{name: _decode(item) for name, item in value["fields"].items()})
