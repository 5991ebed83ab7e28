"""Folder of one training: tensors, numbers and containers, read without running code from a file."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from .._disk import secret_folder
from .._disk.secret_folder import Kind

STATE = "training.checkpoint"
TOLD = """\
This folder is as secret as the private records.

It holds a training with differential privacy that has not ended: its parameters, and the generators of its noise and
batches. A reader of this folder can undo the noise of the released model. Keep the folder to yourself, and out of
backups and shared folders.

To go on, call fit again with the same arguments and the same records. Never go on from a copy. If you delete the
folder by hand, count the training as spent.

A finished training leaves its release here, with digests that recognise the same training, its records included.
The same fit once more returns the release and spends nothing; a different fit replaces it. The digests confirm a
correct guess of all records, so the folder stays as secret as before. Delete it once the model is saved elsewhere.
"""
TRAINING = Kind(noun="training", state=STATE, told=TOLD)


class TrainingFolder(secret_folder.SecretFolder):
    """An open folder, used by this process alone."""

    def read(self) -> dict[str, Any] | None:
        """Read what was written last; None if nothing was.

        Raises
        ------
        PrivacyError
            If the file is damaged.
        """
        found = self.read_bytes()
        if found is None:
            return None
        # Tensors, numbers and containers only: no code from the file is run.
        loaded: dict[str, Any] = torch.load(io.BytesIO(found), map_location="cpu", weights_only=True)
        return loaded

    def write(self, value: dict[str, Any]) -> None:
        """Replace what was written last, as a whole or not at all.

        Raises
        ------
        OSError
            If the file cannot be written; the previous one is still there.
        """
        buffer = io.BytesIO()
        torch.save(storable(value), buffer)
        self.write_bytes(buffer.getbuffer())


@contextlib.contextmanager
def opened(given: str | os.PathLike[str]) -> Iterator[TrainingFolder]:
    """Open the folder of a training, by ``_disk.secret_folder.opened``."""
    with secret_folder.opened(given, TRAINING) as folder:
        own = TrainingFolder(folder.path, folder.kind)
        yield own
        folder.ended = own.ended


def storable(value: Any) -> Any:
    """A copy of tensors, numbers and containers, on the CPU.

    Raises
    ------
    ValueError
        For any other object, which could not be read without running code from the file.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(storable, value))
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    raise ValueError(
        f"Found {type(value).__name__} in what is to be written into a checkpoint (an optimizer's state, say); "
        "tensors, numbers, text, lists and dicts are needed. Leave checkpoint=None."
    )
