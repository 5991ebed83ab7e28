"""File of a ledger: lines are only added, by one writer, and on the disk before they count.

A line is JSON. Its last value is a digest of the line and of all lines before, so a line that was
changed, removed or moved is noticed. A write cut off by a crash leaves bytes after the last
newline. No record was used for that entry, because a fit waits until its line is on the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from .._durable import replace_through, sync_folder
from ..privacy import PrivacyError

#: Version of the layout of lines. A reader refuses any other version.
VERSION = 1
#: Separator before the digest of a line.
MARK = b', "digest": "'
#: Seconds to wait for other processes that write.
PATIENCE = 600.0
#: End of the name of the file beside a ledger that is locked.
LOCK = ".lock"


@dataclass(frozen=True)
class Pages:
    """Content of a ledger's file: header, lines and digests.

    Parameters
    ----------
    header : dict
        The first line.
    bodies : tuple of str
        The other lines, as JSON without their digests.
    digests : tuple of str
        Digests of each line and all lines before, the header included.
    end : int
        Position of the next line; bytes behind it are an unfinished write.
    open_end : bool
        Whether the last line lacks only its newline: an editor may have removed it.
    """

    header: dict[str, Any]
    bodies: tuple[str, ...]
    digests: tuple[str, ...]
    end: int
    open_end: bool = False

    @property
    def digest(self) -> str:
        """Digest of the last line, and so of all lines."""
        return self.digests[-1]


# --- reading --------------------------------------------------------------------------------------


def read(path: Path) -> Pages:
    """Read a ledger's file; no lock is needed, as lines are only added.

    Raises
    ------
    PrivacyError
        If there is no ledger, or one that is damaged.
    """
    with _translate_os_errors(path, "read"):
        content = path.read_bytes()
    return parse(content, path)


def parse(content: bytes, path: Path) -> Pages:
    """Parse the bytes of a ledger's file, checking each digest."""
    *lines, tail = content.split(b"\n")
    bodies, digests = list[bytes](), [""]
    for number, line in enumerate((*lines, tail), start=1):
        body = _body_if_unchanged(line, digests[-1])
        if body is None and number <= len(lines):
            raise _damaged_error(path, number)
        if body is not None:
            bodies.append(body)
            digests.append(_digest(body, digests[-1]))
    if not bodies:
        raise _damaged_error(path, 1)
    open_end = len(bodies) > len(lines)
    end = len(content) if open_end else len(content) - len(tail)
    entered = tuple(body.decode() for body in bodies[1:])
    return Pages(_read_header(bodies[0], path), entered, tuple(digests[1:]), end, open_end)


def _body_if_unchanged(line: bytes, before: str) -> bytes | None:
    """Body of a line without its digest; None if it, or a line before it, was changed."""
    inside, mark, digest = line.rpartition(MARK)
    body = inside + b"}"
    return body if mark and digest == f'{_digest(body, before)}"}}'.encode() else None


def _digest(body: bytes, before: str) -> str:
    """Digest of a line and of all lines before."""
    return hashlib.sha256(before.encode() + body).hexdigest()


def _read_header(body: bytes, path: Path) -> dict[str, Any]:
    """Header of a ledger, if its version is known."""
    header: dict[str, Any] = json.loads(body)
    if header.get("ledger") != VERSION:
        raise PrivacyError(
            f"Found a ledger of version {header.get('ledger')!r} in {str(path)!r}; version "
            f"{VERSION} is needed. Read it with the release of sklearn_dpsearch that wrote it, or "
            "a later one."
        )
    return header


def _damaged_error(path: Path, number: int) -> PrivacyError:
    """Error for a ledger with a changed line."""
    return PrivacyError(
        f"Found {str(path)!r}, of which line {number} is not as it was written: changed, moved, "
        "behind a line that was taken out, or of another kind of file. A ledger as it was written "
        "is needed, because what a lost entry spent is spent. Put back a copy from before the "
        "damage and enter by hand (ledger.spend) what was fitted since; or begin another ledger, "
        "and enter everything that was done with the records."
    )


# --- writing --------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Exclude all other writers of a ledger, in any process."""
    lock = filelock.FileLock(f"{path}{LOCK}", timeout=PATIENCE)
    with _translate_os_errors(path, "lock"):
        # a new folder would begin a new ledger, and the old entries be forgotten
        os.stat(path.parent)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def begin(path: Path, header: dict[str, Any]) -> None:
    """Create a ledger's file with a header, or not at all.

    It is called under the lock.
    """
    line = _line_with_digest(json.dumps({"ledger": VERSION, **header}), "")
    with _translate_os_errors(path, "begin"):
        replace_through(path, line, mode=0o666)


def add(path: Path, pages: Pages, body: str) -> Pages:
    """Add a line to a ledger's file, durably.

    The pages are returned when the line is on the disk. Read and call under one lock.

    Raises
    ------
    PrivacyError
        If writing fails; the file is unchanged, or has the line, which then counts.
    """
    line = b"\n" * pages.open_end + _line_with_digest(body, pages.digest)
    with _translate_os_errors(path, "write"):
        # the file's name has to outlast a power cut too, also if another process began it
        sync_folder(path.parent)
        with path.open("r+b", buffering=0) as file:
            descriptor = file.fileno()
            if os.fstat(descriptor).st_nlink > 1:  # each name would have its own lock
                raise PrivacyError(
                    f"Found {str(path)!r} under several names (hard links), under each of which "
                    "processes would lock out only each other; a file with one name is needed. "
                    "Delete the other names."
                )
            os.ftruncate(descriptor, pages.end)
            os.lseek(descriptor, pages.end, os.SEEK_SET)
            try:
                _write_through(descriptor, line)
            except OSError:
                # bytes that cannot be removed count as spent, or are no whole line
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, pages.end)
                    os.fsync(descriptor)
                raise
    digests = (*pages.digests, _digest(body.encode(), pages.digest))
    return Pages(pages.header, (*pages.bodies, body), digests, pages.end + len(line))


def _line_with_digest(body: str, before: str) -> bytes:
    """Bytes of a line with its digest."""
    plain = body.encode()
    return plain[:-1] + MARK + _digest(plain, before).encode() + b'"}\n'


def _write_through(descriptor: int, line: bytes) -> None:
    """Write bytes to a file, and wait for the disk."""
    unwritten = memoryview(line)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]
    os.fsync(descriptor)


ACCESS = (
    "the file under the name with which it was begun, the right to write, room, and a folder that "
    "exists and may be written into, on a file system with locks, are needed, also where worker "
    "processes run"
)


@contextlib.contextmanager
def _translate_os_errors(path: Path, doing: str) -> Iterator[None]:
    """Translate errors of the operating system into errors of ledgers."""
    try:
        yield
        return
    except filelock.Timeout:
        problem = (
            f"Found {str(path)!r} locked by another process for {PATIENCE:.0f} s; the lock is "
            f"needed to enter what is about to be spent. Wait for that process, or end it; if none "
            f"is running, delete {f'{path}{LOCK}'!r}."
        )
    except (OSError, NotImplementedError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        problem = (
            f"Found no way to {doing} the ledger {str(path)!r} ({why}); {ACCESS}. Mend that and "
            "try again. No record was used."
        )
    raise PrivacyError(problem)
