"""A folder for secrets: for its owner alone, locked while in use, and no file of it ever half written."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from ..privacy import PrivacyError
from .durable import settle, write_through

#: Names inside of the folder.
LOCK, README, NEW = "lock", "README.txt", ".new"
#: How a file begins; what follows is the digest of the rest.
HEADER = b"sklearn_dpsearch checkpoint 1\n"
DIGEST = hashlib.sha256().digest_size
ANEW = (
    "Or delete the folder and start anew. The first attempt is then spent as well: add what it promised to what the "
    "new one costs."
)


@dataclass(frozen=True)
class Kind:
    """What is kept in a folder.

    Parameters
    ----------
    noun : str
        What did not come to its end: "training".
    state : str
        The file without which the folder is worth nothing.
    told : str
        For whoever finds the folder.
    others : tuple of str
        How the names of other files begin.
    """

    noun: str
    state: str
    told: str
    others: tuple[str, ...] = ()

    def owns(self, name: str) -> bool:
        """Whether a file may be deleted together with the folder."""
        plain = name.removesuffix(NEW)
        return name in (LOCK, README) or plain == self.state or plain.startswith(self.others)


class SecretFolder:
    """An open folder, which nobody else uses meanwhile.

    Parameters
    ----------
    path : Path
    kind : Kind
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        #: Whether it is no longer needed, and is deleted when it is closed.
        self.ended = False

    def read_bytes(self) -> bytes | None:
        """What was written last; None if nothing was.

        Raises
        ------
        PrivacyError
            If it is not what was written.
        """
        try:
            found = read_whole(self.path / self.kind.state)
        except FileNotFoundError:
            if self.has_others:
                raise self._unusable(f"without its file {self.kind.state!r}") from None
            return None
        if found is None:
            raise self._unusable("that is damaged, cut short or of another version of this library")
        return found

    @property
    def has_others(self) -> bool:
        """Whether there are files that are only written after the first one."""
        return any(name.startswith(self.kind.others) for name in os.listdir(self.path))

    def _unusable(self, how: str) -> PrivacyError:
        return PrivacyError(
            f"Found a checkpoint in {self.path} {how}; the file as it was written is needed. Put it back if you can. "
            f"{ANEW}"
        )

    def write_bytes(self, payload: bytes | memoryview) -> None:
        """Put this in the place of what was written last, as a whole or not at all.

        Raises
        ------
        OSError
            If that cannot be done; what was written last is still there.
        """
        try:
            write_whole(self.path / self.kind.state, payload)
        except OSError as error:
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
    """What ``write_whole`` put there; None if it is not as it was written.

    Raises
    ------
    OSError
        If it cannot be read; FileNotFoundError if nothing is there.
    """
    found = path.read_bytes()
    head, rest = found[: len(HEADER) + DIGEST], found[len(HEADER) + DIGEST :]
    return rest if head == HEADER + hashlib.sha256(rest).digest() else None


def write_whole(path: Path, payload: bytes | memoryview) -> None:
    """A file that is there as a whole or not at all, and after a power cut; what was there before stays until then."""
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
    """The folder, made if it is not there, for this process alone. It goes if nothing was written, or it has ended.

    Raises
    ------
    PrivacyError
        If it holds something else, belongs to somebody else, or is in use.
    """
    path = Path(given).expanduser().absolute()
    _make(path, kind)
    lock = filelock.FileLock(path / LOCK, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise PrivacyError(
            f"Found a {kind.noun} that is running with checkpoint={str(given)!r}; each {kind.noun} needs a folder of "
            f"its own. Wait for that one, or give another folder; if none is running, delete the file {LOCK!r} in it."
        ) from None
    folder = SecretFolder(path, kind)
    try:
        if not (path / README).exists():
            write_through(path / README, kind.told.encode())
        yield folder
    finally:
        try:
            if folder.ended or not ((path / kind.state).exists() or folder.has_others):  # or never begun
                folder.delete()
        finally:
            lock.release()


def _make(path: Path, kind: Kind) -> None:
    """Make the folder, or take one that is empty or was made here, for its owner's eyes alone."""
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
                f"Found checkpoint={str(path)!r}, which belongs to somebody else, who could read the noise. Give a "
                "folder of your own."
            )
        path.chmod(0o700)
