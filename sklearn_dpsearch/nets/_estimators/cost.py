"""Privacy cost of a net's parameters: all trainings that led to them, carried on the module.

The cost is a text on every module, which copies, pickles and saved parameters keep, and which needs
no class of this library. A net that starts from such parameters adds its own training to that cost.

Names of private attributes end in an underscore: skorch takes all others for constructor arguments.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from torch import nn

from ...privacy import PrivacyError, compose, from_dict
from ...privacy._spent import Component, PrivacySpent
from ...privacy._statement.content import Release
from .._fingerprint import NOTE, digest_of_tensors

_FITTED_ATTRIBUTES = """
module_ privacy_spent_ n_steps_ noise_multiplier_ learning_rate_init_ max_grad_norm_ weight_noise_
_inherited_ _known_parameters_ optimizer_memory_
"""
#: Attributes of a net after a successful training.
FITTED_ATTRIBUTES = frozenset(_FITTED_ATTRIBUTES.split())
#: Note on a module: text, or a number and the statement itself if the statement cannot be written
#: as text.
Note: TypeAlias = str | tuple[str, PrivacySpent]


def stated_cost(model: Any) -> PrivacySpent:
    """Privacy cost that a fitted model states.

    Raises
    ------
    AttributeError
        Before it is fitted.
    """
    if "privacy_spent_" not in vars(model):
        raise AttributeError(
            f"{type(model).__name__} has no attribute 'privacy_spent_' before it is fitted"
        )
    spent: PrivacySpent = vars(model)["privacy_spent_"]
    return spent


def state_cost(net: Any, *spent: PrivacySpent) -> None:
    """State the privacy cost of a net, and note it on the module."""
    vars(net)["privacy_spent_"] = spent[0]
    if "module_" in vars(net):
        write_notes(net.module_, spent)


def costs_before(net: Any, fresh: bool) -> list[PrivacySpent]:
    """Costs of the parameters from which a net's training starts.

    They are of this net's own trainings, or of those of other nets.
    """
    costs = costs_on_module(net.module_)
    if fresh:
        vars(net).pop("_inherited_", None)
        if costs:
            net._inherited_ = tuple(costs)
    spent = None if fresh else vars(net).get("privacy_spent_")
    return costs if costs or spent is None else [spent]


def remember_parameters(net: Any) -> None:
    """Remember a digest of a net's parameters, to recognise foreign ones."""
    net._known_parameters_ = digest_of_tensors(*net.module_.state_dict().values())


def foreign_parameters(net: Any) -> tuple[str, ...]:
    """Assumptions about parameters put into a net's module from elsewhere."""
    digest = vars(net).get("_known_parameters_")
    if digest is None or digest == digest_of_tensors(*net.module_.state_dict().values()):
        return ()
    name = type(net).__name__
    return (f"{name}: parameters put into module_ from elsewhere hold nothing of the records.",)


def check_same_unit(costs: Sequence[PrivacySpent], unit: str) -> None:
    """Raise for earlier costs of another unit of privacy."""
    for spent in costs:
        if spent.unit != unit:
            raise PrivacyError(
                f"Found parameters whose cost so far is for one {spent.unit}, and a training for "
                f"one {unit}; costs of different units do not add up. Give groups in every fit, or "
                f"in none, or begin anew."
            )


def combined(spent: Sequence[PrivacySpent], delta: float) -> PrivacySpent:
    """Combine privacy statements about the same parameters into one."""
    check_same_unit(spent, spent[-1].unit)
    assumptions = (text for statement in spent for text in statement.assumptions)
    return replace(
        spent[-1],
        guarantee=compose(*(statement.guarantee for statement in spent)),
        delta=delta,
        components=tuple(component for statement in spent for component in statement.components),
        assumptions=tuple(dict.fromkeys(assumptions)),
        budget=None,
    )


def remove_training(net: Any) -> None:
    """Remove all attributes of a failed training from a net."""
    for name in FITTED_ATTRIBUTES & vars(net).keys():
        delattr(net, name)  # skorch keeps lists of the attributes that it has set
    if "initialized_" in vars(net):
        net.initialized_ = False  # of a skorch net, whose module is gone


# --- notes on modules -----------------------------------------------------------------------------


def write_notes(module: nn.Module, spent: Sequence[PrivacySpent]) -> None:
    """Write privacy costs as notes on a module and its parts.

    A note is text, or the statement itself if a guarantee cannot be written as text. It has a
    number of its own, by which copies are recognised.
    """
    notes: list[Note] = []
    for statement in spent:
        token = secrets.token_hex(16)
        try:
            values = {"token": token, "spent": _statement_to_values(statement)}
            notes.append(json.dumps(values))
        except PrivacyError:
            notes.append((token, statement))
    put_notes(module, tuple(notes))


def put_notes(module: nn.Module, notes: tuple[Note, ...]) -> None:
    """Put notes of a privacy cost on a module and its parts."""
    for part in module.modules():
        vars(part)[NOTE] = notes


def costs_on_module(module: nn.Module) -> list[PrivacySpent]:
    """Privacy costs noted on a module, one for each training or search."""
    costs: dict[str, PrivacySpent] = {}
    for note in (note for part in module.modules() for note in vars(part).get(NOTE, ())):
        token, spent = note if isinstance(note, tuple) else json.loads(note).values()
        if token not in costs:  # copies of a note count once
            is_statement = isinstance(spent, PrivacySpent)
            costs[token] = spent if is_statement else _statement_from_values(spent)
    return list(costs.values())


@contextlib.contextmanager
def notes_in_state_dict(module: nn.Module) -> Iterator[None]:
    """Write a module's cost notes into its ``state_dict`` while open.

    Raises
    ------
    PrivacyError
        If the cost cannot be written as text.
    """
    notes = vars(module).get(NOTE, ())
    if unwritten := [note[1] for note in notes if isinstance(note, tuple)]:
        raise PrivacyError(
            f"Found a guarantee that cannot be written into a file of parameters: "
            f"{unwritten[0].guarantee!r}. Pickle the whole net, which keeps what it cost."
        )

    def write(_: nn.Module, state: object, prefix: str, metadata: dict[str, Any]) -> None:
        if notes:
            metadata[NOTE] = list(notes)

    with module._register_state_dict_hook(write):
        yield


@contextlib.contextmanager
def notes_of_state_dict(module: nn.Module) -> Iterator[list[tuple[str, ...]]]:
    """Collect cost notes of parameters loaded into a module while open, if a file has any."""
    notes: list[tuple[str, ...]] = []

    def note(state: object, prefix: str, metadata: dict[str, Any], *_: object) -> None:
        notes.append(tuple(text for text in metadata.get(NOTE, ()) if isinstance(text, str)))

    with module._register_load_state_dict_pre_hook(note):
        yield notes


# --- as text --------------------------------------------------------------------------------------


def _statement_to_values(spent: PrivacySpent) -> dict[str, Any]:
    """Privacy statement as plain values, in the versioned layout of ``to_dict``."""
    return {
        "guarantee": spent.guarantee.to_dict(),
        "delta": spent.delta,
        "components": [
            {"name": component.name, "guarantee": component.guarantee.to_dict()}
            for component in spent.components
        ],
        "assumptions": list(spent.assumptions),
        "unit": spent.unit,
        "release": None if spent.release is None else spent.release.to_dict(),
    }


def _statement_from_values(values: Mapping[str, Any]) -> PrivacySpent:
    """Read a privacy statement from plain values.

    The file may come from an untrusted source.
    """
    release = values["release"]
    return PrivacySpent(
        guarantee=from_dict(values["guarantee"]),
        delta=float(values["delta"]),
        components=tuple(
            Component(name=component["name"], guarantee=from_dict(component["guarantee"]))
            for component in values["components"]
        ),
        assumptions=tuple(values["assumptions"]),
        unit=str(values["unit"]),
        release=None if release is None else Release.from_dict(release),
    )
