"""The folder of a checkpoint, readable by its owner alone, and its files.

One search at a time uses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import filelock

from .._durable import NEW_SUFFIX, read_whole, sync_folder, write_through, write_whole
from ..errors import PrivacyError

#: The essential file: what the search is recognised by, and its secret.
STATE, LOCK, README, RELEASE = "search.checkpoint", "lock", "README.txt", "release"
#: Beginning of the names of finished runs.
RUN_PREFIX = "done-"
#: Names of files that are written only after the essential one, and of all files of a checkpoint.
PIECE = re.compile(rf"({RUN_PREFIX}[0-9a-f-]*|{RELEASE})({NEW_SUFFIX})?")
CHECKPOINT_FILES = re.compile(rf"{LOCK}|{README}|{STATE}({NEW_SUFFIX})?|{PIECE.pattern}")
NOT_WRITTEN = (
    "Found no way to write a checkpoint into {path} ({reason}); room and the right to write are "
    "needed. No record was used, and nothing is spent: make room, or give another folder, and call "
    "fit again."
)
README_TEXT = """\
This folder is as secret as the private records.

It holds a private search that has not ended: the secret from which candidates, their number, splits
and noise follow, and finished runs. A reader of this folder can undo the noise of the release. Keep
the folder to yourself, and out of backups and shared folders.

To go on, call fit again with the same arguments and the same records. Never go on from a copy. If
you delete the folder by hand, count the search as spent.

A search that has ended leaves its release here, with digests that recognise the same search, its
records included. The same fit once more restores the release and spends nothing; another fit
replaces it. The digests confirm a correct guess of all features, or of all targets, so the folder
stays as secret as before. Delete it once the model is saved elsewhere.
"""


class NotWrittenError(OSError, PrivacyError):
    """A checkpoint that could not be written; this alone spends nothing."""


@contextlib.contextmanager
def opened_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Open the folder, made if missing, for this process alone.

    A folder in which nothing was written is deleted.

    Raises
    ------
    PrivacyError
        If that is impossible.
    """
    path = Path(folder).expanduser().absolute()
    lock = filelock.FileLock(path / LOCK, timeout=0, mode=0o600)
    try:
        with explaining_write_errors(path):
            _make_folder(path)
            lock.acquire()
            if not (path / STATE).exists():
                write_through(path / README, README_TEXT.encode())
    except filelock.Timeout:
        raise PrivacyError(
            f"Found a search that is running with checkpoint={str(folder)!r}; each search needs a "
            f"folder of its own. Wait for that one, or give another folder; if none is running, "
            f"delete the file {LOCK!r} in it."
        ) from None
    except NotWrittenError:
        lock.release()
        _delete_if_unused(path)
        raise
    try:
        yield path
    finally:
        _delete_if_unused(path)
        lock.release()


def delete_folder(path: Path) -> None:
    """Delete the library's files, or raise an OSError; then the folder, if the system allows it."""
    plain = (README, LOCK)
    for name in sorted(set(os.listdir(path)) - set(plain)):
        if CHECKPOINT_FILES.fullmatch(name):
            (path / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        sync_folder(path)
        for name in plain:
            (path / name).unlink(missing_ok=True)
        path.rmdir()


def files_after_state(path: Path) -> list[Path]:
    """Files that are written only after the essential one."""
    return [path / name for name in os.listdir(path) if PIECE.fullmatch(name)]


def _delete_if_unused(path: Path) -> None:
    if path.is_dir() and not ((path / STATE).exists() or files_after_state(path)):
        delete_folder(path)


@contextlib.contextmanager
def explaining_write_errors(path: Path) -> Iterator[None]:
    """Explain an error of the system in making a folder, or in writing the first files into it."""
    try:
        yield
    except filelock.Timeout:
        raise
    except OSError as error:
        text = NOT_WRITTEN.format(path=path, reason=error.strerror)
        raise NotWrittenError(error.errno, text) from None


def _make_folder(path: Path) -> None:
    """Make the folder, or take an empty one or one of this library, readable by its owner alone."""
    if path.exists() and not path.is_dir():
        raise PrivacyError(
            f"Found a file in the place of checkpoint={str(path)!r}; a folder is needed. Give one "
            "that is empty, or that does not exist yet."
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    strange = sorted(name for name in os.listdir(path) if not CHECKPOINT_FILES.fullmatch(name))
    if strange:
        raise PrivacyError(
            f"Found {strange[0]!r} in checkpoint={str(path)!r}; a folder of its own is needed, "
            "because it is deleted when the search has ended. Give a folder that is empty, or that "
            "does not exist yet."
        )
    if hasattr(os, "getuid"):
        if path.stat().st_uid != os.getuid():
            raise PrivacyError(
                f"Found checkpoint={str(path)!r}, which belongs to another user, who could read "
                "the noise. Give a folder of your own."
            )
        path.chmod(0o700)


@dataclass(frozen=True)
class FileOfSearch:
    """File that costs only time if it is missing or damaged.

    Only what the same search has written is read.

    Parameters
    ----------
    path : Path
    search : str
        Name of the search.
    """

    path: Path
    search: str

    def read(self) -> bytes | None:
        """Read the content; None if it is missing, or not as it was written."""
        with contextlib.suppress(Exception):
            content, mark = read_whole(self.path) or b"", self._mark
            return content[len(mark) :] if content.startswith(mark) else None
        return None

    def write(self, content: bytes) -> None:
        """Replace the content, or raise an OSError."""
        write_whole(self.path, self._mark + content)

    def beside(self, name: str) -> FileOfSearch:
        """Another file in the same folder."""
        return replace(self, path=self.path.with_name(name))

    @property
    def _mark(self) -> bytes:
        return hashlib.sha256(f"{self.search}\n{self.path.name}".encode()).digest()
