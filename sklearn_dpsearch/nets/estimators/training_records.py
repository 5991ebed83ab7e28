"""Records in the form in which nets train on them, and the device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch

from ...privacy import PrivacyError
from ..datasets import ReadRecords
from ..memory_mapped import MappedRecords
from ..named_tensors import Inputs, tensors_of
from ..task import Records

#: Inputs and targets as tensors, or records that are read when a batch needs them.
Given: TypeAlias = tuple[Inputs, torch.Tensor] | ReadRecords | MappedRecords

#: Records that are read at once.
BLOCK = 1024


def number_of(given: Given) -> int:
    """Number of records."""
    return len(given[1]) if isinstance(given, tuple) else len(given)


def records_of(given: Given, device: torch.device) -> Records:
    """Records for training on a device."""
    return Records.of(*given, device) if isinstance(given, tuple) else given.on(device)


def digests(given: Given) -> list[str]:
    """Digest of each part of the inputs, and of the targets, equal for all forms of the same records."""
    found: list[Any] = []
    for tensors in _blocks(given):
        found = found or [hashlib.blake2b() for _ in tensors]
        for one, rows in zip(found, tensors):
            one.update(rows.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return [one.hexdigest() for one in found]


def _blocks(given: Given) -> Iterator[list[torch.Tensor]]:
    if isinstance(given, tuple):
        yield [*tensors_of(given[0]), given[1]]
        return
    with given.on(torch.device("cpu")).opened(0) as records:
        for places in torch.arange(len(records)).split(BLOCK):
            inputs, targets = records.take(places)
            yield [*tensors_of(inputs), targets]


def held(given: Given) -> list[str]:
    """Digests of records, by which a checkpoint recognises them.

    Raises
    ------
    PrivacyError
        For records that are read one by one, which may differ between readings.
    """
    if isinstance(given, ReadRecords):
        raise PrivacyError(
            "Found checkpoint together with a Dataset, whose records are read as they are needed: whether a training "
            "goes on with the same records cannot be told. Give arrays (np.load(..., mmap_mode='r') for large ones), "
            "or leave checkpoint=None."
        )
    return digests(given)


def device_of(name: Any) -> torch.device:
    """Torch device, checked for presence.

    Raises
    ------
    ValueError
        If this machine does not have the device.
    """
    if str(name).startswith("mps"):
        raise ValueError(
            f"Found device={name!r}, where PyTorch has no double precision, in which clipped sums and noise are added. "
            "Use device='cpu', or a CUDA device."
        )
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except Exception as error:
        raise ValueError(
            f"Found device={name!r}, which is not available here ({type(error).__name__}). Use device='cpu', or a CUDA "
            "device that torch.cuda.is_available() confirms."
        ) from None
    return device
