"""A folder for secrets: readable by its owner alone, locked while in use, with every file written as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from ..errors import PrivacyError
from .durable import settle, write_through

#: Names inside of the folder.
LOCK, README, NEW = "lock", "README.txt", ".new"
#: Beginning of a file, followed by the digest of the rest.
HEADER = b"sklearn_dpsearch checkpoint 1\n"
DIGEST = hashlib.sha256().digest_size
GOES_ON = "The last checkpoint is still good: call fit again, with the same arguments and records, to go on from it."
UNSPENT = "No record was used, and nothing is spent: make room, or give another folder, and call fit again."
ANEW = (
    "Or delete the folder and start anew. The first attempt is then spent as well: add what it promised to what the "
    "new one costs."
)


class NotWrittenError(OSError, PrivacyError):
    """A checkpoint that could not be written; this alone spends nothing."""


@dataclass(frozen=True)
class Kind:
    """Kind of the contents of a folder.

    Parameters
    ----------
    noun : str
        Name of the unfinished work: "training".
    state : str
        Name of the essential file.
    told : str
        Note to readers who find the folder.
    others : tuple of str
        Beginnings of the names of other files.
    """

    noun: str
    state: str
    told: str
    others: tuple[str, ...] = ()

    def owns(self, name: str) -> bool:
        """Return whether a file may be deleted together with the folder."""
        plain = name.removesuffix(NEW)
        return name in (LOCK, README) or plain == self.state or plain.startswith(self.others)


class SecretFolder:
    """An open folder, used by this process alone.

    Parameters
    ----------
    path : Path
    kind : Kind
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        #: Whether the folder is no longer needed, and is deleted when it is closed.
        self.ended = False
        #: Whether there is a state to go on from.
        self.begun = (path / kind.state).exists()

    def read_bytes(self) -> bytes | None:
        """Read what was written last; None if nothing was.

        Raises
        ------
        PrivacyError
            If the file is damaged or missing.
        """
        try:
            found = read_whole(self.path / self.kind.state)
        except FileNotFoundError:
            if self.has_others:
                raise self.unusable(f"without its file {self.kind.state!r}") from None
            return None
        if found is None:
            raise self.unusable("that is damaged, cut short or of another version of this library")
        return found

    @property
    def has_others(self) -> bool:
        """Return whether there are files that are written only after the essential file."""
        return any(name.startswith(self.kind.others) for name in os.listdir(self.path))

    def unusable(self, how: str) -> PrivacyError:
        """Make the error for a folder without a usable state."""
        return PrivacyError(
            f"Found a checkpoint in {self.path} {how}; the file as it was written is needed. Put it back if you can. "
            f"{ANEW}"
        )

    def write_bytes(self, payload: bytes | memoryview) -> None:
        """Replace what was written last, as a whole or not at all.

        Raises
        ------
        NotWrittenError
            If the file cannot be written; the previous one is still there.
        """
        try:
            write_whole(self.path / self.kind.state, payload)
        except OSError as error:
            raise not_written(self.path, error, GOES_ON if self.begun else UNSPENT) from None
        self.begun = True

    def delete(self) -> None:
        """Delete the library's files, and the folder.

        Raises
        ------
        OSError
            If the secrets cannot be deleted. Other files may stay if the system refuses to delete them.
        """
        plain = (README, LOCK)
        for name in sorted(set(os.listdir(self.path)) - set(plain)):
            if self.kind.owns(name):
                (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            settle(self.path)
            for name in plain:
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()


def read_whole(path: Path) -> bytes | None:
    """Read a file of ``write_whole``; None if it is damaged.

    Raises
    ------
    OSError
        If the file cannot be read; FileNotFoundError if it is missing.
    """
    found = path.read_bytes()
    head, rest = found[: len(HEADER) + DIGEST], found[len(HEADER) + DIGEST :]
    return rest if head == HEADER + hashlib.sha256(rest).digest() else None


def write_whole(path: Path, payload: bytes | memoryview) -> None:
    """Replace a file as a whole or not at all, also across a power cut; the previous file stays until then."""
    new = path.with_name(path.name + NEW)
    try:
        write_through(new, HEADER + hashlib.sha256(payload).digest(), payload)
        os.replace(new, path)
        settle(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def opened(given: str | os.PathLike[str], kind: Kind) -> Iterator[SecretFolder]:
    """Open the folder, made if missing, for this process alone; delete it at the end if ended or never written to.

    Raises
    ------
    PrivacyError
        If the folder holds foreign files, belongs to another user, or is in use.
    """
    path = Path(given).expanduser().absolute()
    lock = filelock.FileLock(path / LOCK, timeout=0, mode=0o600)
    try:
        with _made(path, kind):
            lock.acquire()
    except filelock.Timeout:
        raise PrivacyError(
            f"Found a {kind.noun} that is running with checkpoint={str(given)!r}; each {kind.noun} needs a folder of "
            f"its own. Wait for that one, or give another folder; if none is running, delete the file {LOCK!r} in it."
        ) from None
    folder = SecretFolder(path, kind)
    try:
        try:
            if not (path / README).exists():
                write_through(path / README, kind.told.encode())
        except OSError as error:
            raise not_written(path, error, GOES_ON if folder.begun else UNSPENT) from None
        yield folder
    finally:
        try:
            if folder.ended or not ((path / kind.state).exists() or folder.has_others):  # or never begun
                folder.delete()
        finally:
            lock.release()


@contextlib.contextmanager
def _made(path: Path, kind: Kind) -> Iterator[None]:
    """Make the folder, and explain errors of the system while it is made and locked."""
    try:
        _make(path, kind)
        yield
    except OSError as error:
        if isinstance(error, (filelock.Timeout, NotWrittenError)):
            raise
        with contextlib.suppress(OSError):
            path.rmdir()  # if nothing is in it
        raise not_written(path, error, UNSPENT) from None


def not_written(path: Path, error: OSError, then: str) -> NotWrittenError:
    """Make the error for a folder that cannot be made or written into."""
    return NotWrittenError(
        error.errno,
        f"Found no way to write a checkpoint into {path} ({error.strerror}); room and the right to write are needed. "
        f"{then}",
    )


def _make(path: Path, kind: Kind) -> None:
    """Make the folder, or take an empty one or one of this library, readable by its owner alone."""
    if path.exists() and not path.is_dir():
        raise PrivacyError(
            f"Found a file in the place of checkpoint={str(path)!r}; a folder is needed. Give one that is empty, or "
            "that does not exist yet."
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    strange = sorted(name for name in os.listdir(path) if not kind.owns(name))
    if strange:
        raise PrivacyError(
            f"Found {strange[0]!r} in checkpoint={str(path)!r}; a folder of its own is needed, because it is deleted "
            f"when the {kind.noun} has ended. Give a folder that is empty, or that does not exist yet."
        )
    if hasattr(os, "getuid"):
        if path.stat().st_uid != os.getuid():
            raise PrivacyError(
                f"Found checkpoint={str(path)!r}, which belongs to another user, who could read the noise. Give a "
                "folder of your own."
            )
        path.chmod(0o700)
