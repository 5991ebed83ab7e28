"""Trainings that go on after a crash: what a checkpoint holds, and what must be the same for its noise to be used."""

from __future__ import annotations

import contextlib
import copy
import hmac
import platform
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from .. import __version__
from .._disk.marks import Marks, keyed, refuse_others, shown
from ..privacy import PrivacyError
from . import secret_folder
from .layout import named_trained
from .secret_folder import SecretFolder
from .state import contents
from .switches import threads
from .task import TrainingTask
from .watchers import Watched

#: Seconds between two checkpoints.
EVERY = 60.0
#: Arguments that change nothing of what is released, and parts of a task that follow from arguments.
FREE = frozenset({"checkpoint", "verbose"})
DERIVED = frozenset({"module", "optimizer", "schedule", "seed", "notes", "memory"})
#: Devices whose generators can be saved.
DEVICES = ("cpu", "cuda")
#: Arguments that no error shows.
SECRET = frozenset({"noise_seed"})

REFUSALS = {
    "records": (
        "Found other records than those with which the training in {folder} began. The same noise must never meet "
        "other records, or what is released would tell the difference: give the same records in the same order. "
    ),
    "start": (
        "Found other initial parameters, or another state of the optimizer, than those with which the training in "
        "{folder} began. Start from the same net as then, loaded from its pickle. "
    ),
    "argument": (
        "Found {name}={found}, and the training in {folder} began with {name}={needed}: a training that goes on must "
        "be the same. Give the same arguments, and a module with the same code. "
    ),
    "training": (
        "Found another {name} ({found}) than that with which the training in {folder} began ({needed}). Give the same "
        "arguments, and a module with the same code. "
    ),
    "place": (
        "Found {name} {found}, and the training in {folder} began with {name} {needed}: elsewhere sums are rounded in "
        "another way, or secrets are kept in another way. Go on where it began. "
    ),
}


class Checkpoint:
    """The checkpoint of one training, in an open folder.

    Parameters
    ----------
    folder : SecretFolder
    """

    def __init__(self, folder: SecretFolder) -> None:
        self.folder, self._saved = folder, folder.read()
        found = self._saved or {}
        self._key: bytes = found.get("key") or secrets.token_bytes(32)
        self._threads: int = found.get("threads") or torch.get_num_threads()

    def bind(
        self,
        task: TrainingTask,
        arguments: Mapping[str, Any],
        records: Sequence[torch.Tensor],
        start: str,
    ) -> None:
        """Say which training this is. A training that goes on gets the initial parameters with which it began.

        Parameters
        ----------
        task : TrainingTask
        arguments : mapping
            Of the estimator.
        records : sequence of tensors
            Inputs and targets, as training sees them.
        start : str
            What a training that does not start afresh starts from.

        Raises
        ------
        PrivacyError
            If the folder holds another training.
        """
        self._marks = marks(self._key, task, arguments, records, start)
        if self._saved is None:
            self._start = {name: value.clone() for name, value in task.module.state_dict().items()}
            return
        refuse_others(self._marks, self._saved["marks"], REFUSALS, self.folder.path)
        self._start = self._saved["start"]
        task.module.load_state_dict(self._start)

    @contextlib.contextmanager
    def as_it_began(self) -> Iterator[None]:
        """So many threads as in the first attempt: how many share a sum decides how it is rounded."""
        with threads(self._threads):
            yield

    def begin(self, training: Watched) -> None:
        """Go on where the last checkpoint was written; a new training writes its first one."""
        if self._saved is None:
            self._write(training)
            return
        training.restore(self._saved["training"])
        self._saved, self._written = None, time.monotonic()

    def look(self, training: Watched) -> None:
        """Write a checkpoint if it is time."""
        if training.tasks and time.monotonic() - self._written >= EVERY:
            self._write(training)

    def close(self) -> None:
        """Leave the last checkpoint as it is: whether the training ended well is known later."""

    def _write(self, training: Watched) -> None:
        self.folder.write(
            {
                "key": self._key,
                "marks": self._marks,
                "threads": self._threads,
                "start": self._start,
                "training": training.state(),
            }
        )
        self._written = time.monotonic()


@contextlib.contextmanager
def checkpoint_in(given: Any) -> Iterator[Checkpoint | None]:
    """The checkpoint in a folder, which is deleted if all ends well; None without a folder."""
    if given is None:
        yield None
        return
    with secret_folder.opened(given) as folder:
        checkpoint = Checkpoint(folder)
        with checkpoint.as_it_began():
            yield checkpoint
        folder.ended = True  # only now: a training that fails at its very end can be repeated


# --- which training it is ---------------------------------------------------------------------------------------------


def marks(
    key: bytes, task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[torch.Tensor], start: str
) -> Marks:
    """All by which a training is known again. Without the key digests tell nothing: they are not those of the data."""
    own = {entry.name: getattr(task, entry.name) for entry in fields(task) if entry.name not in DERIVED}
    own["choice of parameters"] = [name for name, _ in named_trained(task.module)]
    given = {name: _argument(value) for name, value in arguments.items() if name not in FREE}
    device = torch.device(arguments.get("device", "cpu"))

    def described(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        digests = {name: keyed(key, contents(value, lasting=True)) for name, value in values.items()}
        return {name: (digest, _shown(name, values[name])) for name, digest in digests.items()}

    return {
        "place": described(_place(device)),
        "argument": described(given),
        "training": described({**own, "module": _blank(task.module)}),
        "start": {"start": (keyed(key, start), "")},
        "records": {"records": (_digest(key, *records), "")},
    }


def _place(device: torch.device) -> dict[str, str]:
    """Versions and processors on which rounding, generators or what is stored depend.

    Raises
    ------
    PrivacyError
        For a device whose generators are not known here.
    """
    if device.type not in DEVICES:
        raise PrivacyError(
            f"Found device={str(device)!r} together with a checkpoint; the generators of {' and '.join(DEVICES)} can "
            "be saved. Leave checkpoint=None."
        )
    return {
        "sklearn_dpsearch": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }


def _argument(value: Any) -> Any:
    """An argument as it counts: of modules all but their parameters, of generators nothing, as they change with use."""
    if isinstance(value, nn.Module):
        return _blank(value)
    generators = (np.random.RandomState, np.random.SeedSequence, np.random.Generator)
    return type(value).__name__ if isinstance(value, generators) else value


def _blank(module: nn.Module) -> nn.Module:
    """A copy whose parameters are zero: a training that goes on takes them from its checkpoint."""
    blank = copy.deepcopy(module).cpu()
    for value in blank.state_dict().values():
        if isinstance(value, torch.Tensor) and not is_lazy(value):
            value.zero_()
    return blank


def _shown(name: str, value: Any) -> str:
    return type(value).__name__ if name in SECRET else shown(value)


def _digest(key: bytes, *tensors: torch.Tensor) -> str:
    """A digest of records under the key: whoever has only the digest cannot try what the records might be."""
    digest = hmac.new(key, digestmod="sha256")
    for values in tensors:
        own = np.ascontiguousarray(values.detach().cpu().numpy())
        digest.update(f"{own.dtype}{own.shape}".encode())
        digest.update(own.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
