"""The folder of one training: tensors, numbers and containers, which are read without running what a file says."""

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
batches. Whoever reads it can undo the noise of what is released at the end. Show it to nobody, and keep it out of
backups and shared folders.

To go on: call fit again, with the same arguments and the same records. A training that ends well deletes the folder.
Do not go on from a copy. If you delete the folder by hand, count that training as spent.
"""
TRAINING = Kind(noun="training", state=STATE, told=TOLD)


class SecretFolder(secret_folder.SecretFolder):
    """An open folder, which nobody else uses meanwhile."""

    def read(self) -> dict[str, Any] | None:
        """What was written last; None if nothing was.

        Raises
        ------
        PrivacyError
            If it is not what was written.
        """
        found = self.read_bytes()
        if found is None:
            return None
        # Tensors, numbers and containers alone: nothing is run that a file could bring along.
        loaded: dict[str, Any] = torch.load(io.BytesIO(found), map_location="cpu", weights_only=True)
        return loaded

    def write(self, value: dict[str, Any]) -> None:
        """Put this in the place of what was written last, as a whole or not at all.

        Raises
        ------
        OSError
            If that cannot be done; what was written last is still there.
        """
        buffer = io.BytesIO()
        torch.save(storable(value), buffer)
        self.write_bytes(buffer.getbuffer())


@contextlib.contextmanager
def opened(given: str | os.PathLike[str]) -> Iterator[SecretFolder]:
    """The folder of a training, as ``_disk.secret_folder.opened`` has it."""
    with secret_folder.opened(given, TRAINING) as folder:
        own = SecretFolder(folder.path, folder.kind)
        yield own
        folder.ended = own.ended


def storable(value: Any) -> Any:
    """A copy of tensors, numbers and containers, on the CPU.

    Raises
    ------
    ValueError
        For anything else: it could not be read without running what the file says.
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
