"""Trainings that go on after a crash: contents of a checkpoint, and conditions for using its noise again."""

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

from .._disk.digests import Marks, digests, keyed, refuse_others, shown
from .._version import __version__
from ..privacy import PrivacyError
from . import secret_folder
from .layout import named_trained
from .secret_folder import TrainingFolder
from .state import contents
from .switches import threads
from .task import TrainingTask
from .watchers import Watched

#: Part of a file that holds the release.
RELEASED = "released"
#: Seconds between two checkpoints.
EVERY = 60.0
#: Arguments without effect on the release, and parts of a task that follow from arguments.
FREE = frozenset({"checkpoint", "verbose"})
DERIVED = frozenset({"module", "optimizer", "schedule", "seed", "notes", "memory"})
#: Devices whose generators can be saved.
DEVICES = ("cpu", "cuda")
#: Arguments that errors never show.
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


CHANGED = (
    "Found that the file of records has changed since the training in {folder} began. The same noise must never meet "
    "other records, so nothing is released. Put the file back as it was, and call fit again."
)


class TrainingCheckpoint:
    """The checkpoint of one training, in an open folder.

    Parameters
    ----------
    folder : TrainingFolder
    """

    def __init__(self, folder: TrainingFolder) -> None:
        self.folder, read = folder, folder.read()
        #: Release of a finished training, until another begins; and state of an unfinished one.
        self._over = read if read and RELEASED in read else None
        self._saved = None if self._over else read
        #: Earlier release of the same training, set by ``bind``.
        self.released: Mapping[str, Any] | None = None
        #: Whether the folder holds a release that the same training gets back.
        self.keeps = self._over is not None
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
        """Identify this training. A resumed training gets its original initial parameters.

        Parameters
        ----------
        task : TrainingTask
        arguments : mapping
            Arguments of the estimator.
        records : sequence of tensors
            Inputs and targets in the form used by training.
        start : str
            Digest of the starting point of a warm start.

        Raises
        ------
        PrivacyError
            If the folder holds another training.
        """
        if self._over is not None:
            found = marks(self._over["key"], task, arguments, records, start)
            if digests(found) == self._over["marks"]:
                self.released = self._over[RELEASED]
                return
        self._marks = marks(self._key, task, arguments, records, start)
        if self._saved is None:
            self._start = {name: value.clone() for name, value in task.module.state_dict().items()}
            return
        refuse_others(self._marks, self._saved["marks"], REFUSALS, self.folder.path)
        self._start = self._saved["start"]
        task.module.load_state_dict(self._start)

    def confirm(self, records: Sequence[torch.Tensor]) -> None:
        """Raise if records that stay in a file have changed since the beginning.

        Raises
        ------
        PrivacyError
        """
        if _digest(self._key, *records) != self._marks["records"]["records"][0]:
            raise PrivacyError(CHANGED.format(folder=self.folder.path))

    @contextlib.contextmanager
    def as_it_began(self) -> Iterator[None]:
        """Use the number of threads of the first attempt: it decides how sums are rounded."""
        with threads(self._threads):
            yield

    def begin(self, training: Watched) -> None:
        """Go on from the last checkpoint; a new training writes its first one."""
        if self._saved is None:
            self._write(training)
            return
        training.restore(self._saved["training"])
        self._saved, self._written = None, time.monotonic()

    def give_back(self, task: TrainingTask) -> None:
        """Put the earlier release of the same training into a task, instead of training."""
        assert self.released is not None
        task.module.load_state_dict(self.released["module"])
        task.memory.update(self.released["memory"])
        if self.released["of a class"] and callable(task.optimizer):  # which is not written down: it is the same one
            task.memory["kept"] = {"of": type(task.optimizer(task.module)), **task.memory["kept"]}
        task.notes[:] = self.released["notes"]

    def keep(self, task: TrainingTask) -> None:
        """Keep the release, and nothing secret. If writing fails, nothing is kept."""
        if self.released is not None:
            return
        self.keeps = False
        memory, kept = dict(task.memory), task.memory.get("kept", {})
        of_a_class = isinstance(kept.get("of"), type)
        if of_a_class:
            memory["kept"] = {name: value for name, value in kept.items() if name != "of"}
        release = {
            "module": dict(task.module.state_dict()),
            "memory": memory,
            "of a class": of_a_class,
            "notes": list(task.notes),
        }
        with contextlib.suppress(Exception):
            self.folder.write({"key": self._key, "marks": digests(self._marks), RELEASED: release})
            self.keeps = True

    def look(self, training: Watched) -> None:
        """Write a checkpoint if it is time."""
        if training.tasks and time.monotonic() - self._written >= EVERY:
            self._write(training)

    def close(self) -> None:
        """Leave the last checkpoint: success of the training is known only later."""

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
def checkpoint_in(given: Any) -> Iterator[TrainingCheckpoint | None]:
    """Open the checkpoint in a folder, which at success keeps only the release; None without a folder."""
    if given is None:
        yield None
        return
    with secret_folder.opened(given) as folder:
        checkpoint = TrainingCheckpoint(folder)
        with checkpoint.as_it_began():
            yield checkpoint
        folder.ended = not checkpoint.keeps  # only now: a training that fails at its very end can be repeated


# --- identity of a training -------------------------------------------------------------------------------------------


def marks(
    key: bytes, task: TrainingTask, arguments: Mapping[str, Any], records: Sequence[torch.Tensor], start: str
) -> Marks:
    """All marks that identify a training. The digests are keyed: without the key they tell nothing of the data."""
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
    """Versions and processors on which rounding, generators or stored values depend.

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
    """Relevant part of an argument: of modules all but the parameters, of generators nothing, as use changes them."""
    if isinstance(value, nn.Module):
        return _blank(value)
    generators = (np.random.RandomState, np.random.SeedSequence, np.random.Generator)
    return type(value).__name__ if isinstance(value, generators) else value


def _blank(module: nn.Module) -> nn.Module:
    """Copy with zero parameters: a resumed training takes them from its checkpoint."""
    blank = copy.deepcopy(module).cpu()
    for value in blank.state_dict().values():
        if isinstance(value, torch.Tensor) and not is_lazy(value):
            value.zero_()
    return blank


def _shown(name: str, value: Any) -> str:
    return type(value).__name__ if name in SECRET else shown(value)


def _digest(key: bytes, *tensors: torch.Tensor) -> str:
    """Keyed digest of records: without the key, guesses of the records cannot be checked against it."""
    digest = hmac.new(key, digestmod="sha256")
    for values in tensors:
        own = np.ascontiguousarray(values.detach().cpu().numpy())
        digest.update(f"{own.dtype}{own.shape}".encode())
        digest.update(own.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
