"""A training that is done again after a crash, with the same result and at no further cost.

All that is random in a training follows from its seed and its initial parameters. The store keeps both, before the
first record is used, for the same records and arguments only.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from .._disk import store
from .._disk.secret_folder import Work
from .._disk.store import Marks, Store, shown
from .engines.operations import attributes
from .randomness import sequence
from .records import Records
from .stack import TrainingTask
from .torch_settings import threads

TRAINING = Work("training", "its initial parameters, and the seed of its batches and noise")


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
        found = marks(task, arguments, records, start)
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


# --- fingerprints -----------------------------------------------------------------------------------------------------


#: Arguments without effect on the release.
FREE = frozenset({"checkpoint", "verbose"})
#: Arguments that change no result beyond rounding, or that show in the initial parameters.
OF_PLACE = frozenset({*FREE, "noise_seed", "random_state", "device", "max_physical_batch"})
#: Arguments that errors never show.
SECRET = frozenset({"noise_seed"})


def text_of(value: Any) -> str:
    """Text that tells a value from others, equal in every process.

    Of modules it has types and constants without parameters, of classes and functions the names, and of all other
    objects types and attributes.
    """
    if isinstance(value, (np.ndarray, torch.Tensor)) and value.dtype != object:
        return digest(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text_of(key)}: {text_of(one)}' for key, one in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        return f"set{sorted(map(text_of, value))}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"{type(value).__name__}({', '.join(map(text_of, value))})"
    if isinstance(value, nn.Module):
        return text_of([(name, type(layer), attributes(layer)) for name, layer in value.named_modules()])
    if named := getattr(value, "__qualname__", None):
        return f"{value.__module__}.{named}"
    if own := getattr(value, "__dict__", None):
        return f"{text_of(type(value))}{text_of(own)}"
    return text_of(type(value)) if " at 0x" in repr(value) else repr(value)


def digest(*tensors: np.ndarray | torch.Tensor) -> str:
    """Digest of the contents of tensors, or arrays, in order."""
    found = hashlib.sha256()
    for one in tensors:
        values = np.ascontiguousarray(one.detach().cpu().numpy() if isinstance(one, torch.Tensor) else one)
        found.update(f"{values.dtype}{values.shape}".encode())
        found.update(values.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def marks(task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[str], start: str) -> Marks:
    """Marks of a training, by digests of its records; ``start`` is the digest of the start of a warm start."""
    device = torch.device(arguments.get("device", "cpu"))
    where = {
        **store.place(("torch", "numpy")),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }
    trained = [name for name, parameter in task.module.named_parameters() if parameter.requires_grad]
    own = {"module": task.module, "choice of parameters": trained}
    return {
        "place": {name: (found, repr(found)) for name, found in where.items()},
        "argument": {name: _described(name, value) for name, value in arguments.items() if name not in FREE},
        "training": {name: _described(name, value) for name, value in own.items()},
        "start": {"initial parameters or states of the optimizer": (start, "")},
        "records": {"records": (text_of(records), "")},
    }


def _described(name: str, value: Any) -> tuple[str, str]:
    return text_of(value), type(value).__name__ if name in SECRET else shown(value)


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
    named = {name: value for name, value in sorted(arguments.items()) if name not in OF_PLACE}
    start = digest(*module.state_dict().values())
    told = text_of([named, start, trainings, *given.digests()])
    return [int(word) for word in np.frombuffer(hashlib.sha256(told.encode()).digest(), np.uint32)]
