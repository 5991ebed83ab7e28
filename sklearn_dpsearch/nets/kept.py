"""Trainings inside of a search that goes on after a crash: kept from time to time, so that none starts anew.

The search's own checkpoint sees to all that makes this private: the same records, the same arguments and the same
seeds, in a folder that is as secret as the records. So what is found here is only ever what this training would have
come to by itself, and a state that is missing, damaged or from another machine costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from . import resuming
from .secret_folder import storable
from .stack import Stack
from .task import TrainingTask

#: Seconds of a training that are worth a file when it has ended.
AT_THE_END = 1.0


class Keeper(Protocol):
    """A place for the state of one training, which nobody else can read or write."""

    @property
    def name(self) -> str:
        """What it is called in its folder."""

    def read(self) -> bytes | None:
        """What was written last; None if there is nothing, or not as it was written."""

    def write(self, payload: bytes) -> None:
        """Put this there. Where that cannot be done, nothing is."""

    def shared(self, names: Sequence[str]) -> Keeper:
        """The place of a training that several share."""


class Kept:
    """Keeps a training of one net, or of a stack, every minute, and goes on where it was kept last.

    Parameters
    ----------
    keeper : Keeper
    tasks : sequence of TrainingTask
        Those of the stack, in its order.
    """

    def __init__(self, keeper: Keeper, tasks: Sequence[TrainingTask]) -> None:
        self.keeper, self.tasks = keeper, list(tasks)

    def begin(self, training: Any) -> None:
        """Go on where it was kept, if it was: on the same kind of processor, with as many threads."""
        self._written = time.monotonic()
        found = self._read()
        if found is None or found["place"] != _place(training):
            return
        for i, (parameters, memory) in found["ended"].items():
            self.tasks[i].module.load_state_dict(parameters)
            self.tasks[i].memory.clear()
            self.tasks[i].memory.update(memory)
        training.only([i for i in range(len(self.tasks)) if i not in found["ended"]])
        if training.tasks:
            training.restore(found["training"])

    def look(self, training: Any) -> None:
        """Keep it, if it is time; also what it came to: its run may wait for many others."""
        patience = resuming.EVERY if training.tasks else min(AT_THE_END, resuming.EVERY)
        if time.monotonic() - self._written >= patience:
            self._write(training)

    def close(self) -> None:
        """Leave all as it is: the search knows when it is no longer needed."""

    def _read(self) -> dict[str, Any] | None:
        with contextlib.suppress(Exception):
            payload = self.keeper.read()
            if payload is not None:
                # Tensors, numbers and containers alone: nothing is run that a file could bring along.
                found: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
                return found
        return None

    def _write(self, training: Any) -> None:
        left = {id(task) for task in training.tasks}
        ended = {i: task for i, task in enumerate(self.tasks) if id(task) not in left}
        state = {
            "place": _place(training),
            "ended": {i: (dict(task.module.state_dict()), task.memory) for i, task in ended.items()},
            "training": training.state() if training.tasks else None,
        }
        self._written = time.monotonic()
        with contextlib.suppress(Exception):  # what cannot be kept is done again
            buffer = io.BytesIO()
            torch.save(storable(state), buffer)
            self.keeper.write(buffer.getvalue())


def kept(keeper: Keeper | None, tasks: Sequence[TrainingTask]) -> list[Kept]:
    """Who keeps a training; nobody without a place for it."""
    return [] if keeper is None else [Kept(keeper, tasks)]


def shared(keepers: Sequence[Keeper | None]) -> Keeper | None:
    """The place of a stack, which depends on who is in it; none if one of its nets has none."""
    known = [keeper for keeper in keepers if keeper is not None]
    return known[0].shared([keeper.name for keeper in known]) if known and len(known) == len(keepers) else None


def _place(training: Stack) -> list[str | int]:
    """What sums are rounded by besides the versions of libraries, which the search compares."""
    device = training.device
    there = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return [torch.backends.cpu.get_cpu_capability(), there, torch.get_num_threads()]
