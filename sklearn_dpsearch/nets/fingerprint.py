"""Marks by which a training and its records are recognised after a crash."""

from __future__ import annotations

import copy
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn

from .._disk import store
from .._disk.store import Marks, shown
from ..privacy import PrivacyError
from .digest import digest
from .layout import named_trained
from .records import Records
from .task import TrainingTask

#: Arguments without effect on the release, and parts of a task that follow from arguments.
FREE = frozenset({"checkpoint", "verbose"})
DERIVED = frozenset({"module", "optimizer", "schedule", "seed", "notes", "memory"})
#: Devices whose generators can be saved.
DEVICES = ("cpu", "cuda")
#: Arguments that errors never show.
SECRET = frozenset({"noise_seed"})


def marks(task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[object], start: str) -> Marks:
    """Marks of a training; ``start`` is the digest of the starting point of a warm start."""
    own = {entry.name: getattr(task, entry.name) for entry in fields(task) if entry.name not in DERIVED}
    own["choice of parameters"] = [name for name, _ in named_trained(task.module)]
    own["module"] = _blank(task.module)
    given = {name: argument(value) for name, value in arguments.items() if name not in FREE}
    device = torch.device(arguments.get("device", "cpu"))
    if device.type not in DEVICES:
        raise PrivacyError(
            f"Found device={str(device)!r} together with a checkpoint; the generators of {' and '.join(DEVICES)} can "
            "be saved. Leave checkpoint=None."
        )
    where = {**store.place(("torch", "numpy")), **place_of(device)}
    return {
        "place": {name: (str(found), repr(found)) for name, found in where.items()},
        "argument": {name: _described(name, value) for name, value in given.items()},
        "training": {name: _described(name, value) for name, value in own.items()},
        "start": {"initial parameters or states of the optimizer": (start, "")},
        "records": marks_of_records(records),
    }


def _described(name: str, value: Any) -> tuple[str, str]:
    return digest(value), type(value).__name__ if name in SECRET else shown(value)


def place_of(device: torch.device) -> dict[str, str]:
    """Processor and device, on which rounding depends."""
    return {
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }


def argument(value: Any) -> Any:
    """Relevant part of an argument: of modules all but the parameters, of generators nothing, as use changes them."""
    if isinstance(value, nn.Module):
        return _blank(value)
    generators = (np.random.RandomState, np.random.SeedSequence, np.random.Generator)
    return type(value).__name__ if isinstance(value, generators) else value


def _blank(module: nn.Module) -> nn.Module:
    """Copy with zero parameters: a resumed training takes them from its checkpoint."""
    blank = copy.deepcopy(module).cpu()
    for value in blank.state_dict().values():
        if isinstance(value, torch.Tensor):
            value.zero_()
    return blank


def marks_of_records(records: Sequence[object]) -> dict[str, tuple[str, str]]:
    """Mark of records, by their digests."""
    return {"records": (digest(*records), "")}


# --- seeded noise -----------------------------------------------------------------------------------------------------

#: Arguments that change no result beyond rounding, or that show in the initial parameters.
OF_PLACE = frozenset({*FREE, "noise_seed", "random_state", "device", "max_physical_batch"})


def words_of(module: nn.Module, arguments: Mapping[str, Any], given: Records, trainings: int) -> Sequence[int]:
    """Fingerprint of a training, as words for a seed: trainings that differ share no noise.

    With one noise for two trainings, the difference of their releases would be exact, also for those without the seed.

    Parameters
    ----------
    module : Module
        With its initial parameters.
    arguments : mapping
        Names to the arguments of the net.
    given : records
    trainings : int
        Number of earlier trainings of these parameters.
    """
    named = {name: argument(value) for name, value in sorted(arguments.items()) if name not in OF_PLACE}
    start = [value.detach().cpu() for value in module.state_dict().values()]
    told = digest(named, start, trainings, *given.digests())
    return [int(word) for word in np.frombuffer(bytes.fromhex(told), np.uint32)]
