"""Finished work in the folder of a checkpoint, which is not repeated after a crash.

All random draws of a search with a checkpoint follow from one secret. So repeated work has the same result, and a
missing or damaged file costs only time.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._disk.secret_folder import read_whole, write_whole
from .._types import Seed

#: Prefixes of the files of finished runs, and of trainings under way.
PREFIX, UNDER_WAY = "done-", "going-"
DIGEST = 32


@dataclass(frozen=True)
class Finished:
    """Store of finished results, each under the seed from which it came. Workers get a copy.

    Parameters
    ----------
    folder : Path or None
        None: nothing is kept.
    key : bytes
        Only what was written under it is read: nothing else is unpickled.
    lock : Fernet or None
        What encrypts.
    """

    folder: Path | None = None
    key: bytes = field(default=b"", repr=False)
    lock: Any = field(default=None, repr=False)

    def get(self, seed: Seed) -> Any:
        """Read the result of a seed; None if it is missing, or not as it was written."""
        if self.folder is None or seed is None:
            return None
        with contextlib.suppress(Exception):
            payload = self.read(_named(PREFIX, seed))
            return None if payload is None else pickle.loads(payload)
        return None

    def put(self, seed: Seed, result: Any) -> None:
        """Keep a result if possible: after an error (a full disk, a model that cannot be pickled) it is dropped."""
        if self.folder is None or seed is None:
            return
        with contextlib.suppress(Exception):
            self.write(_named(PREFIX, seed), pickle.dumps(result))
            for path in self.folder.glob(f"{_named(UNDER_WAY, seed)}-*"):
                path.unlink()

    def keeper(self, seed: Seed) -> StateFile | None:
        """File for a training under way, whose randomness comes from this seed."""
        return None if self.folder is None or seed is None else StateFile(self, f"{_named(UNDER_WAY, seed)}-")

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it is missing, or not as it was written."""
        assert self.folder is not None
        with contextlib.suppress(Exception):
            found = read_whole(self.folder / name) or b""
            plain = found if self.lock is None else self.lock.decrypt(found)
            digest, payload = plain[:DIGEST], plain[DIGEST:]
            return payload if hmac.compare_digest(digest, self._digest(name, payload)) else None
        return None

    def write(self, name: str, payload: bytes) -> None:
        """Replace the content of a file."""
        assert self.folder is not None
        plain = self._digest(name, payload) + payload
        write_whole(self.folder / name, plain if self.lock is None else self.lock.encrypt(plain))

    def _digest(self, name: str, payload: bytes) -> bytes:
        return hmac.digest(self.key, name.encode() + b"\n" + payload, "sha256")


def _named(prefix: str, seed: Any) -> str:
    return f"{prefix}{'-'.join(map(str, seed.spawn_key))}"


@dataclass(frozen=True)
class StateFile:
    """Place for the state of one training under way, or of several together.

    Parameters
    ----------
    finished : Finished
    name : str
        Of the file.
    """

    finished: Finished
    name: str

    def read(self) -> bytes | None:
        """Read the last result; None if it is missing, or not as it was written."""
        return self.finished.read(self.name)

    def write(self, payload: bytes) -> None:
        """Replace the kept state.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        self.finished.write(self.name, payload)

    def shared(self, names: Sequence[str]) -> StateFile:
        """File of a training that several candidates share; other candidates get another keeper."""
        members = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
        return StateFile(self.finished, f"{self.name}{members}")


NOTHING = Finished()
