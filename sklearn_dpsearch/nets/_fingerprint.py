"""Fingerprints of parameters and trainings: texts and digests that are equal in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from ._engines.operations import layer_constants
from ._records import TrainingData

#: Arguments that change no result beyond rounding, or that show in the initial parameters.
IGNORED_NAMES = frozenset({"verbose", "noise_seed", "random_state", "device", "max_physical_batch"})


def text_of_value(value: Any) -> str:
    """Text of a value for a fingerprint, equal in every process.

    Of modules it has types and constants without parameters, of classes and functions the names,
    and of all other objects types and attributes.
    """
    if isinstance(value, (np.ndarray, Tensor)) and value.dtype != object:
        return digest_of_arrays(value)
    if isinstance(value, Mapping):
        pairs = (f"{text_of_value(key)}: {text_of_value(entry)}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (set, frozenset)):
        return f"set{sorted(map(text_of_value, value))}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"{type(value).__name__}({', '.join(map(text_of_value, value))})"
    if isinstance(value, nn.Module):
        layers = value.named_modules()
        return text_of_value([(name, type(part), layer_constants(part)) for name, part in layers])
    if named := getattr(value, "__qualname__", None):
        return f"{value.__module__}.{named}"
    if attributes := getattr(value, "__dict__", None):
        return f"{text_of_value(type(value))}{text_of_value(attributes)}"
    return text_of_value(type(value)) if " at 0x" in repr(value) else repr(value)


def digest_of_arrays(*tensors: np.ndarray | Tensor) -> str:
    """SHA-256 digest of the contents of tensors, or arrays, in order."""
    digest = hashlib.sha256()
    for tensor in tensors:
        array = tensor.detach().cpu().numpy() if isinstance(tensor, Tensor) else tensor
        values = np.ascontiguousarray(array)
        digest.update(f"{values.dtype}{values.shape}".encode())
        digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def words_of_training(
    module: nn.Module, arguments: Mapping[str, Any], records: TrainingData, trainings: int
) -> Sequence[int]:
    """Fingerprint of a training, as words for a seed.

    Trainings that differ share no noise.

    With one noise for two trainings, the difference of their releases would be exact, also for
    those without the seed.

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
    named = {name: value for name, value in sorted(arguments.items()) if name not in IGNORED_NAMES}
    start = digest_of_arrays(*module.state_dict().values())
    text = text_of_value([named, start, trainings, *records.digests()])
    return [int(word) for word in np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint32)]
