"""A training that is done again after a crash, with the same result and at no further cost.

All that is random in a training follows from its seed and its initial parameters. The store keeps both, before the
first record is used, for the same records and arguments only.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._disk import store
from .._disk.secret_folder import Work
from .._disk.store import Store
from ..privacy import PrivacyError
from .fingerprint import marks
from .randomness import sequence
from .stack import TrainingTask
from .torch_settings import threads

TRAINING = Work("training", "its initial parameters, and the seed of its batches and noise")
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
        self, task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[str], start: str
    ) -> TrainingTask:
        """Identify this training, and return it: done again, it has its original seed and initial parameters."""
        self._records, found = list(records), marks(task, arguments, records, start)
        release = self.store.released(found)
        if release is not None:
            self.released = loaded(release)
            return task
        self.store.bind(found)
        if self._begun is not None:
            task.module.load_state_dict(self._begun["start"])
            return replace(task, seed=np.random.SeedSequence(**self._begun["seed"]))
        seed = sequence(task.seed)
        drawn = {"entropy": seed.entropy, "spawn_key": seed.spawn_key, "pool_size": seed.pool_size}
        self.store.begin(stored({"threads": self.threads, "seed": drawn, "start": task.module.state_dict()}))
        return replace(task, seed=seed)

    def confirm(self, records: Sequence[str]) -> None:
        """Raise a PrivacyError if records that stay in a file have changed since the beginning."""
        if list(records) != self._records:
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
            release = {"module": task.module.state_dict(), "memory": task.memory, "notes": task.notes}
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


def stored(value: dict[str, Any]) -> bytes:
    """Tensors, numbers and containers as bytes, which are read without running code."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def loaded(payload: bytes) -> dict[str, Any]:
    """Read the bytes of ``stored``."""
    found: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    return found
