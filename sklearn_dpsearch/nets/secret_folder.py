"""A folder for one file of secrets: for its owner alone, locked while in use, and never half written."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import torch

from ..privacy import PrivacyError

#: Names inside of the folder.
STATE, NEW, LOCK, README = "training.checkpoint", "training.new", "lock", "README.txt"
#: How the file begins; what follows is the digest of the rest.
HEADER = b"sklearn_dpsearch checkpoint 1\n"
DIGEST = hashlib.sha256().digest_size
TOLD = """\
This folder is as secret as the private records.

It holds a training with differential privacy that has not ended: its parameters, and the generators of its noise and
batches. Whoever reads it can undo the noise of what is released at the end. Show it to nobody, and keep it out of
backups and shared folders.

To go on: call fit again, with the same arguments and the same records. A training that ends well deletes the folder.
Do not go on from a copy. If you delete the folder by hand, count that training as spent.
"""
ANEW = (
    "Or delete the folder and start anew. The first attempt is then spent as well: add what it promised to what the "
    "new one costs."
)


class SecretFolder:
    """An open folder, which nobody else uses meanwhile.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Whether it is no longer needed, and is deleted when it is closed.
        self.ended = False

    def read(self) -> dict[str, Any] | None:
        """What was written last; None if nothing was.

        Raises
        ------
        PrivacyError
            If it is not what was written.
        """
        try:
            found = (self.path / STATE).read_bytes()
        except FileNotFoundError:
            return None
        head, rest = found[: len(HEADER) + DIGEST], found[len(HEADER) + DIGEST :]
        if head != HEADER + hashlib.sha256(rest).digest():
            raise PrivacyError(
                f"Found a checkpoint in {self.path} that is damaged, cut short or of another version of this library; "
                f"the file as it was written is needed. Put it back if you can. {ANEW}"
            )
        # Tensors, numbers and containers alone: nothing is run that a file could bring along.
        loaded: dict[str, Any] = torch.load(io.BytesIO(rest), map_location="cpu", weights_only=True)
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
        payload = buffer.getbuffer()
        try:
            _write_through(self.path / NEW, HEADER + hashlib.sha256(payload).digest(), payload)
            os.replace(self.path / NEW, self.path / STATE)
            _settle(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                (self.path / NEW).unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"Found no way to write a checkpoint into {self.path} ({error.strerror}); room and the right to write "
                "are needed. The last checkpoint that was written is still good: call fit again, with the same "
                "arguments and records, to go on from it.",
            ) from None

    def delete(self) -> None:
        """Delete what was put there, and the folder.

        Raises
        ------
        OSError
            If the secrets cannot be deleted. What is not secret may stay, where a system does not let it go.
        """
        for name in (STATE, NEW):
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            _settle(self.path)
            for name in (README, LOCK):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()


@contextlib.contextmanager
def opened(given: str | os.PathLike[str]) -> Iterator[SecretFolder]:
    """The folder, made if it is not there, for this process alone. It goes if nothing was written, or it has ended.

    Raises
    ------
    PrivacyError
        If it holds something else, belongs to somebody else, or is in use.
    """
    path = Path(given).expanduser().absolute()
    _make(path)
    lock = filelock.FileLock(path / LOCK, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise PrivacyError(
            f"Found a training that is running with checkpoint={str(given)!r}; each training needs a folder of its "
            f"own. Wait for that one, or give another folder; if none is running, delete the file {LOCK!r} in it."
        ) from None
    folder = SecretFolder(path)
    try:
        if not (path / README).exists():
            _write_through(path / README, TOLD.encode())
        yield folder
    finally:
        try:
            if folder.ended or not (path / STATE).exists():  # or never begun
                folder.delete()
        finally:
            lock.release()


def _make(path: Path) -> None:
    """Make the folder, or take one that is empty or was made here, for its owner's eyes alone."""
    if path.exists() and not path.is_dir():
        raise PrivacyError(
            f"Found a file in the place of checkpoint={str(path)!r}; a folder is needed. Give one that is empty, or "
            "that does not exist yet."
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    strange = sorted(set(os.listdir(path)) - {STATE, NEW, LOCK, README})
    if strange:
        raise PrivacyError(
            f"Found {strange[0]!r} in checkpoint={str(path)!r}; a folder of its own is needed, because it is deleted "
            "when the training has ended. Give a folder that is empty, or that does not exist yet."
        )
    if hasattr(os, "getuid"):
        if path.stat().st_uid != os.getuid():
            raise PrivacyError(
                f"Found checkpoint={str(path)!r}, which belongs to somebody else, who could read the noise. Give a "
                "folder of your own."
            )
        path.chmod(0o700)


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


def _write_through(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file that is there after a power cut."""
    kind = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)  # a link could lead the secrets elsewhere
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | kind, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _settle(folder: Path) -> None:
    """Make new names in a folder outlast a power cut. Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
