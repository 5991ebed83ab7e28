"""Folders for private work, which are gone with their process; at the latest the next one removes
them."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
import uuid

import filelock

#: Beginning of the names of folders, and end of those of the files that are locked while a process
#: uses a folder.
PREFIX, LOCK = "sklearn-dpsearch-", ".lock"


class PrivateFolder:
    """Folder of this process, readable by its owner alone.

    Those of processes that were killed are removed before.
    """

    def __init__(self) -> None:
        for lock in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{PREFIX}*{LOCK}")):
            with contextlib.suppress(OSError, filelock.Timeout), filelock.FileLock(lock, timeout=0):
                remove(lock.removesuffix(LOCK))
        self.path = os.path.join(tempfile.gettempdir(), PREFIX + uuid.uuid4().hex)
        self._lock = filelock.FileLock(self.path + LOCK, timeout=0, mode=0o600)
        self._lock.acquire()
        os.mkdir(self.path, 0o700)

    def close(self) -> None:
        """Remove the folder."""
        remove(self.path)
        self._lock.release()
        remove(self.path)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()


def remove(folder: str) -> None:
    """Remove a folder and its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(folder + LOCK)
