"""Trainings that go on after a crash: alone, or as the candidates of a search.

All that is random in a training follows from its seed and its initial parameters. The store keeps both, for the same
records and arguments only. So a saved state is one that the training would have reached by itself, and a state that is
missing, damaged or from another machine costs only time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._disk import store
from .._disk.secret_folder import GOING, Work
from .._disk.store import KeyedFile, Store
from ..errors import TrainingError
from ..privacy import PrivacyError
from .fingerprint import marks, marks_of_records, place_of
from .randomness import sequence
from .task import TrainingTask
from .torch_settings import threads

TRAINING = Work("training", "its initial parameters, the seed of its batches and noise, and its state")
#: Seconds between two saved states, and least seconds of a training whose end is saved.
EVERY, AT_THE_END = 60.0, 1.0
CHANGED = (
    "Found that the file of records has changed since the training in {folder} began. The same noise must never meet "
    "other records, so nothing is released. Put the file back as it was, and call fit again."
)


class TrainingCheckpoint:
    """The checkpoint of one training, in an open store."""

    def __init__(self, kept: Store) -> None:
        self.store = kept
        self._begun = loaded(kept.secrets) if kept.begun else None
        #: Number of threads of the first attempt, which decides how sums are rounded.
        self.threads: int = self._begun["threads"] if self._begun else torch.get_num_threads()
        #: Earlier release of the same training, set by ``bind``.
        self.released: dict[str, Any] | None = None

    def bind(
        self, task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[object], start: str
    ) -> TrainingTask:
        """Identify this training, and return it: resumed, it has its original seed and initial parameters."""
        found = marks(task, arguments, records, start)
        self._records, release = found["records"], self.store.released(found)
        if release is not None:
            self.released = loaded(release)
            return task
        self.store.bind(found)
        if self._begun is not None:
            task.module.load_state_dict(self._begun["start"])
            return replace(task, seed=np.random.SeedSequence(**self._begun["seed"]))
        seed = sequence(task.seed)
        drawn = {"entropy": seed.entropy, "spawn_key": seed.spawn_key, "pool_size": seed.pool_size}
        self.store.begin(stored({"threads": self.threads, "seed": drawn, "start": dict(task.module.state_dict())}))
        return replace(task, seed=seed)

    def saved(self, task: TrainingTask) -> SavedTraining:
        """Watcher that saves this training. A state that cannot be saved is an error; a full disk costs only time."""
        return SavedTraining(self.store.file(GOING), [task], harmless=OSError)

    def confirm(self, records: Sequence[object]) -> None:
        """Raise a PrivacyError if records that stay in a file have changed since the beginning."""
        if marks_of_records(records) != self._records:
            raise PrivacyError(CHANGED.format(folder=self.store.path))

    def give_back(self, task: TrainingTask) -> None:
        """Put the earlier release of the same training into a task, instead of training."""
        assert self.released is not None
        task.module.load_state_dict(self.released["module"])
        task.memory.update(self.released["memory"])
        task.notes[:] = self.released["notes"]

    def keep(self, task: TrainingTask) -> None:
        """Keep the release, and nothing secret."""
        if self.released is None:
            release = {"module": dict(task.module.state_dict()), "memory": task.memory, "notes": task.notes}
            self.store.keep(lambda: stored(release))


@contextlib.contextmanager
def checkpoint_in(given: Any) -> Iterator[TrainingCheckpoint | None]:
    """Open the checkpoint in a folder, which at success keeps only the release; None without a folder."""
    if given is None:
        yield None
        return
    with store.opened(given, TRAINING) as kept:
        checkpoint = TrainingCheckpoint(kept)
        with threads(checkpoint.threads):
            yield checkpoint


class SavedTraining:
    """Saves a training of one net, or of a stack, every minute, and goes on from the last save.

    ``harmless`` are errors by which only a saved state is lost: it is computed again.
    """

    def __init__(self, keeper: KeyedFile, tasks: Sequence[TrainingTask], harmless: type[Exception] = Exception) -> None:
        self.keeper, self.tasks, self.harmless = keeper, list(tasks), harmless

    def begin(self, training: Any) -> None:
        """Go on from a saved state, if there is one from the same kind of processor and number of threads."""
        self._written = time.monotonic()
        self._restore(training)
        if training.tasks:
            with contextlib.suppress(self.harmless):
                training.state()  # from here on an optimizer shows whether it keeps something elsewhere

    def look(self, training: Any) -> None:
        """Save the training when it is time, and at its end: its run may wait for many others."""
        patience = EVERY if training.tasks else min(AT_THE_END, EVERY)
        if time.monotonic() - self._written >= patience:
            self._write(training)

    def close(self) -> None:
        """Leave the saved state, which is deleted when it is no longer needed."""

    def _restore(self, training: Any) -> None:
        found = None
        with contextlib.suppress(Exception):
            payload = self.keeper.read()
            found = None if payload is None else loaded(payload)
        if found is None or found["place"] != [place_of(training.device), torch.get_num_threads()]:
            return
        for i, (parameters, memory) in found["ended"].items():
            self.tasks[i].module.load_state_dict(parameters)
            self.tasks[i].memory.clear()
            self.tasks[i].memory.update(memory)
        training.only([i for i in range(len(self.tasks)) if i not in found["ended"]])
        if training.tasks:
            training.restore(found["training"])

    def _write(self, training: Any) -> None:
        left = {id(task) for task in training.tasks}
        ended = {i: task for i, task in enumerate(self.tasks) if id(task) not in left}
        self._written = time.monotonic()
        with contextlib.suppress(self.harmless):
            state = {
                "place": [place_of(training.device), torch.get_num_threads()],
                "ended": {i: (dict(task.module.state_dict()), task.memory) for i, task in ended.items()},
                "training": training.state() if training.tasks else None,
            }
            self.keeper.write(stored(state))


def kept(keeper: KeyedFile | None, tasks: Sequence[TrainingTask]) -> list[SavedTraining]:
    """Watchers that keep a candidate's training: one if there is a keeper, else none."""
    return [] if keeper is None else [SavedTraining(keeper, tasks)]


def shared(keepers: Sequence[KeyedFile | None]) -> KeyedFile | None:
    """File of a stack, by the names of its members; None if a member has none."""
    known = [keeper for keeper in keepers if keeper is not None]
    if not known or len(known) < len(keepers):
        return None
    members = hashlib.sha256(" ".join(keeper.path.name for keeper in known).encode()).hexdigest()[:16]
    return known[0].beside(f"{known[0].path.name}{members}")


# --- bytes ------------------------------------------------------------------------------------------------------------


def stored(value: dict[str, Any]) -> bytes:
    """Tensors, numbers and containers as bytes, which are read without running code; else a ValueError."""
    buffer = io.BytesIO()
    torch.save(_plain(value), buffer)
    return buffer.getvalue()


def loaded(payload: bytes) -> dict[str, Any]:
    """Read the bytes of ``stored``."""
    found: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    raise TrainingError(
        f"Found {type(value).__name__} in what is to be written into a checkpoint (an optimizer's state, say); "
        "tensors, numbers, text, lists and dicts are needed. Leave checkpoint=None."
    )
