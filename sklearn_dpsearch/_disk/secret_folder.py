"""Folders for secrets: readable by their owner alone, and used by one process at a time."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from ..errors import PrivacyError
from .durable import NEW, settle

LOCK, README, RELEASE = "lock", "README.txt", "release"
#: Beginning of the names of results.
DONE = "done-"
#: Names of all files that are written only after the essential one.
PIECE = re.compile(rf"({DONE}[0-9a-f-]*|{RELEASE})({NEW})?")
NOT_WRITTEN = (
    "Found no way to write a checkpoint into {path} ({reason}); room and the right to write are needed. No record was "
    "used, and nothing is spent: make room, or give another folder, and call fit again."
)
ABOUT = """\
This folder is as secret as the private records.

It holds a private {noun} that has not ended: {secrets}. A reader of this folder can undo the noise of the release. Keep
the folder to yourself, and out of backups and shared folders.

To go on, call fit again with the same arguments and the same records. Never go on from a copy. If you delete the folder
by hand, count the {noun} as spent.

A {noun} that has ended leaves its release here, with digests that recognise the same {noun}, its records included. The
same fit once more restores the release and spends nothing; another fit replaces it. The digests confirm a correct guess
of all records, so the folder stays as secret as before. Delete it once the model is saved elsewhere.
"""


class NotWrittenError(OSError, PrivacyError):
    """A checkpoint that could not be written; this alone spends nothing."""


@dataclass(frozen=True)
class Work:
    """Kind of work that a folder serves: its name, and its secrets in words."""

    noun: str
    secrets: str

    @property
    def state(self) -> str:
        """Name of the essential file."""
        return f"{self.noun}.checkpoint"

    def owns(self, name: str) -> bool:
        """Return whether a file may be deleted together with the folder."""
        return name in (LOCK, README, self.state, self.state + NEW) or PIECE.fullmatch(name) is not None


@contextlib.contextmanager
def locked(given: str | os.PathLike[str], work: Work) -> Iterator[Path]:
    """Open the folder, made if missing, for this process alone; a PrivacyError if that is impossible."""
    path = Path(given).expanduser().absolute()
    lock = filelock.FileLock(path / LOCK, timeout=0, mode=0o600)
    try:
        with explained(path):
            _make(path, work)
            _acquire(lock, given, work)
    except NotWrittenError:
        with contextlib.suppress(OSError):
            path.rmdir()  # if nothing is in it
        raise
    try:
        yield path
    finally:
        lock.release()


def delete(path: Path, work: Work) -> None:
    """Delete the library's files, or raise an OSError; then the folder, if the system allows it."""
    plain = (README, LOCK)
    for name in sorted(set(os.listdir(path)) - set(plain)):
        if work.owns(name):
            (path / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        settle(path)
        for name in plain:
            (path / name).unlink(missing_ok=True)
        path.rmdir()


def pieces(path: Path) -> list[Path]:
    """Files that are written only after the essential one."""
    return [path / name for name in os.listdir(path) if PIECE.fullmatch(name)]


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Explain an error of the system in a folder that is made, or into which the first files are written."""
    try:
        yield
    except OSError as error:
        raise NotWrittenError(error.errno, NOT_WRITTEN.format(path=path, reason=error.strerror)) from None


def _acquire(lock: filelock.FileLock, given: str | os.PathLike[str], work: Work) -> None:
    try:
        lock.acquire()
    except filelock.Timeout:
        raise PrivacyError(
            f"Found a {work.noun} that is running with checkpoint={str(given)!r}; each {work.noun} needs a folder of "
            f"its own. Wait for that one, or give another folder; if none is running, delete the file {LOCK!r} in it."
        ) from None


def _make(path: Path, work: Work) -> None:
    """Make the folder, or take an empty one or one of this library, readable by its owner alone."""
    if path.exists() and not path.is_dir():
        raise PrivacyError(
            f"Found a file in the place of checkpoint={str(path)!r}; a folder is needed. Give one that is empty, or "
            "that does not exist yet."
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    strange = sorted(name for name in os.listdir(path) if not work.owns(name))
    if strange:
        raise PrivacyError(
            f"Found {strange[0]!r} in checkpoint={str(path)!r}; a folder of its own is needed, because it is deleted "
            f"when the {work.noun} has ended. Give a folder that is empty, or that does not exist yet."
        )
    if hasattr(os, "getuid"):
        if path.stat().st_uid != os.getuid():
            raise PrivacyError(
                f"Found checkpoint={str(path)!r}, which belongs to another user, who could read the noise. Give a "
                "folder of your own."
            )
        path.chmod(0o700)
