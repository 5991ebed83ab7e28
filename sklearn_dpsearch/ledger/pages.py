"""The file of a ledger: lines that are only ever added, one writer at a time, each on the disk before it counts.

A line is JSON. Its last value is a digest of the line and of all before it, so that a line that was changed, taken out
or moved is noticed. What was being written when a process or a machine died stands behind the last end of a line. It
was followed by no use of records, because those wait until the line is on the disk.
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

from .._disk.durable import settle
from ..privacy import PrivacyError

#: Of the layout of lines. A reader refuses any other one.
VERSION = 1
#: What stands before the digest of a line.
MARK = b', "digest": "'
#: How long to wait, in seconds, for other processes that write.
PATIENCE = 600.0
#: Names of files beside a ledger.
LOCK, NEW = ".lock", ".new"


@dataclass(frozen=True)
class Pages:
    """What is in a file.

    Parameters
    ----------
    header : dict
        The first line.
    bodies : tuple of str
        The other lines, as JSON without their digests.
    digest : str
        Of the last line, and so of all.
    end : int
        Where the next line goes; what stands behind it was never finished.
    open_end : bool
        Whether the last line is whole but for its end: an editor may have taken it away.
    """

    header: dict[str, Any]
    bodies: tuple[str, ...]
    digest: str
    end: int
    open_end: bool = False


# --- reading ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> Pages:
    """The pages as they are now; no lock is needed, as lines are only added.

    Raises
    ------
    PrivacyError
        If there is no ledger, or one that is damaged.
    """
    with _said(path, "read"):
        found = path.read_bytes()
    return parse(found, path)


def parse(found: bytes, path: Path) -> Pages:
    """Pages from the bytes of a file."""
    *lines, tail = found.split(b"\n")
    digest, bodies = "", list[bytes]()
    for number, line in enumerate(lines, start=1):
        body = _body(line, digest)
        if body is None:
            raise _damaged(path, number)
        digest = _digest_in(line)
        bodies.append(body)
    last = _body(tail, digest)
    if last is not None:
        bodies, digest = [*bodies, last], _digest_in(tail)
    if not bodies:
        raise _damaged(path, 1)
    end = len(found) if last is not None else len(found) - len(tail)
    return Pages(_header(bodies[0], path), tuple(one.decode() for one in bodies[1:]), digest, end, last is not None)


def _body(line: bytes, before: str) -> bytes | None:
    """A line without its digest; None if it is not as it was written, behind the lines that it was written behind."""
    inside, mark, digest = line.rpartition(MARK)
    body = inside + b"}"
    return body if mark and digest == f'{_digest(body, before)}"}}'.encode() else None


def _digest_in(line: bytes) -> str:
    return line.rpartition(MARK)[2][:-2].decode()


def _digest(body: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _header(body: bytes, path: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(body)
    if header.get("ledger") != VERSION:
        raise PrivacyError(
            f"Found a ledger of version {header.get('ledger')!r} in {str(path)!r}; version {VERSION} is needed. Read "
            "it with the release of sklearn_dpsearch that wrote it, or a later one."
        )
    return header


def _damaged(path: Path, number: int) -> PrivacyError:
    return PrivacyError(
        f"Found {str(path)!r}, of which line {number} is not as it was written: changed, moved, behind a line that was "
        "taken out, or of another kind of file. A ledger as it was written is needed, because what a lost entry spent "
        "is spent. Put back a copy from before the damage and enter by hand (ledger.spend) what was fitted since; or "
        "begin another ledger, and enter everything that was done with the records."
    )


# --- writing ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """While nobody else, in any process, writes into this ledger."""
    lock = filelock.FileLock(f"{path}{LOCK}", timeout=PATIENCE)
    with _said(path, "lock"):
        os.stat(path.parent)  # a new folder would hold a new ledger, and the old one be forgotten
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def begin(path: Path, header: dict[str, Any]) -> None:
    """A file with a header alone, there as a whole or not at all. Under the lock."""
    new = Path(f"{path}{NEW}")
    with _said(path, "begin"):
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _write_through(descriptor, _line(json.dumps({"ledger": VERSION, **header}), ""))
        finally:
            os.close(descriptor)
        os.replace(new, path)
        settle(path.parent)


def add(path: Path, pages: Pages, body: str) -> None:
    """Add a line to these pages, and return when it is on the disk. Under the lock, where they were read.

    Raises
    ------
    PrivacyError
        If that cannot be done; the file is as it was before, or else has the line, which then counts.
    """
    line = b"\n" * pages.open_end + _line(body, pages.digest)
    with _said(path, "write"):
        settle(path.parent)  # its name too has to outlast a power cut, whoever began it
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            _check_one_name(descriptor, path)
            os.ftruncate(descriptor, pages.end)
            os.lseek(descriptor, pages.end, os.SEEK_SET)
            _write_or_undo(descriptor, line, pages.end)
        finally:
            os.close(descriptor)


def _line(body: str, before: str) -> bytes:
    plain = body.encode()
    return plain[:-1] + MARK + _digest(plain, before).encode() + b'"}\n'


def _write_or_undo(descriptor: int, line: bytes, end: int) -> None:
    try:
        _write_through(descriptor, line)
    except OSError:
        with contextlib.suppress(OSError):  # what cannot be taken back counts as spent, or is no whole line
            os.ftruncate(descriptor, end)
            os.fsync(descriptor)
        raise


def _write_through(descriptor: int, line: bytes) -> None:
    """Write all of it, and wait until it is on the disk."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _check_one_name(descriptor: int, path: Path) -> None:
    """A second name of the file would have a lock of its own."""
    if os.fstat(descriptor).st_nlink > 1:
        raise PrivacyError(
            f"Found {str(path)!r} under several names (hard links), under each of which processes would lock out only "
            "each other; a file with one name is needed. Delete the other names."
        )


#: What could not be done, and what is needed for it.
NEEDED = {
    "read": "a ledger that can be read, under the name with which it was begun, also where worker processes run",
    "lock": "a folder that exists and may be written into, on a file system with locks",
    "begin": "a folder that exists and may be written into, and room",
    "write": "the right to write, and room",
}


@contextlib.contextmanager
def _said(path: Path, doing: str) -> Iterator[None]:
    """Errors of the system, said as what they mean for the ledger."""
    try:
        yield
        return
    except filelock.Timeout:
        problem = (
            f"Found {str(path)!r} locked by another process for {PATIENCE:.0f} s; the lock is needed to enter what is "
            f"about to be spent. Wait for that process, or end it; if none is running, delete {f'{path}{LOCK}'!r}."
        )
    except (OSError, NotImplementedError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        problem = (
            f"Found no way to {doing} the ledger {str(path)!r} ({why}); {NEEDED[doing]} is needed. Mend that and try "
            "again. No record was used."
        )
    raise PrivacyError(problem)
