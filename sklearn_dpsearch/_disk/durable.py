"""Files that survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def write_through(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file that only its owner can read, and wait until it is on the disk."""
    kind = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)  # a link could lead secrets elsewhere
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | kind, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def settle(folder: Path) -> None:
    """Make the names in a folder survive a power cut, as Windows does by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
