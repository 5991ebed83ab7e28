"""Cost notes of parameters: a text on every module, which copies, pickles and saved parameters keep.

A net that starts from such parameters adds its own training to that cost. A note is text, so that a pickled module
can be loaded without this library.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from torch import nn

from ..privacy import PrivacyError, compose, from_dict
from ..privacy.spent import Component, PrivacySpent
from ..privacy.statement.release import Release

#: The attribute of a module, and the entry of saved parameters, that hold the note.
NOTE = "_sklearn_dpsearch_spent"
#: Note on a module: text, or a number and the statement itself if the statement cannot be written as text.
Note: TypeAlias = str | tuple[str, PrivacySpent]


def mark(module: nn.Module, spent: Sequence[PrivacySpent]) -> None:
    """Write the total cost of a module's parameters on the module and on all of its parts."""
    place(module, tuple(map(_note_of, spent)))


def place(module: nn.Module, notes: tuple[Note, ...]) -> None:
    """Put notes on a module and on all of its parts."""
    for part in module.modules():
        vars(part)[NOTE] = notes


def costs(module: nn.Module) -> list[PrivacySpent]:
    """Privacy cost of a module's parameters so far: one entry for each training, or search, that left a note."""
    return read(note for part in module.modules() for note in vars(part).get(NOTE, ()))


def _note_of(spent: PrivacySpent) -> Note:
    """Make a note: text, or the object itself if a guarantee cannot be written as text.

    Each note has its own number, by which copies are recognised.
    """
    token = secrets.token_hex(16)
    try:
        return json.dumps({"token": token, "spent": _written(spent)})
    except PrivacyError:
        return (token, spent)


def read(notes: Iterable[Note]) -> list[PrivacySpent]:
    """Costs that notes state; copies of a note count once."""
    found: dict[str, PrivacySpent] = {}
    for note in notes:
        token, spent = note if isinstance(note, tuple) else json.loads(note).values()
        if token not in found:
            found[token] = spent if isinstance(spent, PrivacySpent) else _statement(spent)
    return list(found.values())


def together(spent: Sequence[PrivacySpent]) -> PrivacySpent:
    """Combine several statements into one."""
    if len(spent) == 1:
        return spent[0]
    if len({statement.unit for statement in spent}) > 1:
        raise PrivacyError("Found parameters with costs for records and for persons, which do not add up.")
    return PrivacySpent(
        unit=spent[0].unit,
        guarantee=compose(*(statement.guarantee for statement in spent)),
        delta=spent[0].delta,
        components=tuple(component for statement in spent for component in statement.components),
        assumptions=tuple(dict.fromkeys(text for statement in spent for text in statement.assumptions)),
    )


@contextlib.contextmanager
def saving(module: nn.Module) -> Iterator[None]:
    """Write the notes of a module into its ``state_dict`` while the block lasts.

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
    """Collect the notes of parameters loaded into a module while the block lasts; empty for a file without notes."""
    found: list[tuple[str, ...]] = []

    def note(state: object, prefix: str, metadata: dict[str, Any], *rest: object) -> None:
        found.append(tuple(text for text in metadata.get(NOTE, ()) if isinstance(text, str)))

    handle = module._register_load_state_dict_pre_hook(note)
    try:
        yield found
    finally:
        handle.remove()


# --- as text -------------------------------------------------------------------------------------------------------


def _written(spent: PrivacySpent) -> dict[str, Any]:
    """A statement as plain values, whose guarantees are in the versioned layout of ``to_dict``."""
    return {
        "guarantee": spent.guarantee.to_dict(),
        "delta": spent.delta,
        "components": [{"name": one.name, "guarantee": one.guarantee.to_dict()} for one in spent.components],
        "assumptions": list(spent.assumptions),
        "unit": spent.unit,
        "release": None if spent.release is None else spent.release.to_dict(),
    }


def _statement(found: Mapping[str, Any]) -> PrivacySpent:
    """Read a statement from plain values; the file may come from an untrusted source."""
    release = found["release"]
    return PrivacySpent(
        guarantee=from_dict(found["guarantee"]),
        delta=float(found["delta"]),
        components=tuple(
            Component(name=one["name"], guarantee=from_dict(one["guarantee"])) for one in found["components"]
        ),
        assumptions=tuple(found["assumptions"]),
        unit=str(found["unit"]),
        release=None if release is None else Release.from_dict(release),
    )
