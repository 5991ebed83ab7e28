"""Files that survive a power cut."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

#: Beginning of a whole file, followed by the digest of the rest; and end of its name until it is
#: complete.
HEADER, NEW_SUFFIX = b"sklearn_dpsearch checkpoint 4\n", ".new"
PAYLOAD_START = len(HEADER) + hashlib.sha256().digest_size


def write_through(path: Path, *parts: bytes, mode: int = 0o600) -> None:
    """Write a file, and wait until it is on the disk.

    By default only its owner can read it.
    """
    # a link could lead secrets elsewhere
    kind = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | kind, mode)
    with os.fdopen(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, as Windows does by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_whole(path: Path) -> bytes | None:
    """Read a file of ``write_whole``; None if it is damaged; an OSError if it cannot be read."""
    content = path.read_bytes()
    payload = content[PAYLOAD_START:]
    return payload if content[:PAYLOAD_START] == HEADER + hashlib.sha256(payload).digest() else None


def write_whole(path: Path, payload: bytes) -> None:
    """Replace a file by one that ``read_whole`` reads."""
    replace_through(path, HEADER + hashlib.sha256(payload).digest(), payload)


def replace_through(path: Path, *parts: bytes, mode: int = 0o600) -> None:
    """Replace a file as a whole or not at all, also across a power cut.

    The previous file stays until the new one is in its place.
    """
    new = path.with_name(path.name + NEW_SUFFIX)
    try:
        write_through(new, *parts, mode=mode)
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise
