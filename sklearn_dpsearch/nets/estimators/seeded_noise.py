"""Fingerprint of a training, which seeded noise depends on: trainings that differ share no noise.

With one noise for two trainings, the difference of their releases would be exact, also for those without the seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..digest import digest
from ..fingerprint import FREE, argument
from ..named_tensors import tensors_of
from .training_records import Given

#: Arguments that change no result beyond rounding, or that show in the initial parameters.
OF_PLACE = frozenset({*FREE, "noise_seed", "random_state", "device", "max_physical_batch"})
#: Records that are read at once.
BLOCK = 1024


def words_of(module: nn.Module, arguments: Mapping[str, Any], given: Given, trainings: int) -> Sequence[int]:
    """Fingerprint of a training, as words for a seed.

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
    told = digest(named, start, trainings, *_digests(given))
    return [int(word) for word in np.frombuffer(bytes.fromhex(told), np.uint32)]


def _digests(given: Given) -> list[str]:
    """Digest of the inputs and of the targets, equal for all forms of the same records."""
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
