"""Folders for private work, which are gone with their process; at the latest the next one removes them."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile

import filelock

#: Beginning of the names of folders, and the file that is locked while a process uses a folder.
PREFIX, LOCK = "sklearn-dpsearch-", "lock"


class PrivateFolder:
    """Folder of this process, readable by its owner alone.

    Those of processes that were killed are removed before.
    """

    def __init__(self) -> None:
        _remove_abandoned()
        new = tempfile.mkdtemp(prefix=f"new-{PREFIX}")
        self._lock = filelock.FileLock(os.path.join(new, LOCK), timeout=0)
        self._lock.acquire()
        self.path = os.path.join(os.path.dirname(new), os.path.basename(new).removeprefix("new-"))
        os.rename(new, self.path)  # nobody sees it unlocked

    def close(self) -> None:
        """Remove the folder."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()


def _remove_abandoned() -> None:
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{PREFIX}*")):
        with contextlib.suppress(OSError, filelock.Timeout), filelock.FileLock(os.path.join(folder, LOCK), timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
