"""Trainings inside of a resumable search: saved from time to time, so that none restarts after a crash.

The search's own checkpoint ensures privacy: equal records, arguments and seeds, in a folder that is as secret as the
records. So a saved state is always one that this training would have reached by itself, and a state that is missing,
damaged or from another machine costs time only.
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

#: Least seconds of a training whose result is saved.
AT_THE_END = 1.0


class StateStore(Protocol):
    """Private storage for the state of one training."""

    @property
    def name(self) -> str:
        """Name in the folder."""

    def read(self) -> bytes | None:
        """Read what was written last; None if nothing was, or if the file is damaged."""

    def write(self, payload: bytes) -> None:
        """Write a payload, or do nothing where writing fails."""

    def shared(self, names: Sequence[str]) -> StateStore:
        """Storage of a training that several nets share."""


class SavedTraining:
    """Saves a training of one net, or of a stack, every minute, and goes on from the last save.

    Parameters
    ----------
    keeper : StateStore
    tasks : sequence of TrainingTask
        Tasks of the stack, in its order.
    """

    def __init__(self, keeper: StateStore, tasks: Sequence[TrainingTask]) -> None:
        self.keeper, self.tasks = keeper, list(tasks)

    def begin(self, training: Any) -> None:
        """Go on from a saved state, if there is one from the same kind of processor and number of threads."""
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
        """Save the training when it is time, and at its end: its run may wait for many others."""
        patience = resuming.EVERY if training.tasks else min(AT_THE_END, resuming.EVERY)
        if time.monotonic() - self._written >= patience:
            self._write(training)

    def close(self) -> None:
        """Leave the saved state: the search deletes it when it is no longer needed."""

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
        with contextlib.suppress(Exception):  # a state that cannot be saved is computed again
            buffer = io.BytesIO()
            torch.save(storable(state), buffer)
            self.keeper.write(buffer.getvalue())


def kept(keeper: StateStore | None, tasks: Sequence[TrainingTask]) -> list[SavedTraining]:
    """Watchers that keep a training: one if there is a keeper, else none."""
    return [] if keeper is None else [SavedTraining(keeper, tasks)]


def shared(keepers: Sequence[StateStore | None]) -> StateStore | None:
    """Storage of a stack, by the names of its members; None if a member has none."""
    known = [keeper for keeper in keepers if keeper is not None]
    return known[0].shared([keeper.name for keeper in known]) if known and len(known) == len(keepers) else None


def _place(training: Stack) -> list[str | int]:
    """Device and threads, which decide how sums are rounded (the search compares versions of libraries)."""
    device = training.device
    there = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return [torch.backends.cpu.get_cpu_capability(), there, torch.get_num_threads()]
