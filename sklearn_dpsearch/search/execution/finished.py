"""Work of a search that has ended, in the folder of its checkpoint: what need not be done again after a crash.

Everything that a search with a checkpoint draws follows from one secret. So work that is done again comes out as it
was, and a file that is missing or damaged costs time and nothing else.
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

#: How the names of such files begin: of what has ended, and of trainings under way.
PREFIX, UNDER_WAY = "done-", "going-"
DIGEST = 32


@dataclass(frozen=True)
class Finished:
    """Where results lie, each under the seed from which it came. Workers get a copy.

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
        """The result that came from this seed; None if it is not there, or not as it was written."""
        if self.folder is None or seed is None:
            return None
        with contextlib.suppress(Exception):
            payload = self.read(_named(PREFIX, seed))
            return None if payload is None else pickle.loads(payload)
        return None

    def put(self, seed: Seed, result: Any) -> None:
        """Keep a result. If that cannot be done (a full disk, a model that cannot be pickled), it is not kept."""
        if self.folder is None or seed is None:
            return
        with contextlib.suppress(Exception):
            self.write(_named(PREFIX, seed), pickle.dumps(result))
            for path in self.folder.glob(f"{_named(UNDER_WAY, seed)}-*"):
                path.unlink()

    def keeper(self, seed: Seed) -> Keeper | None:
        """The place for a training under way, whose randomness comes from this seed."""
        return None if self.folder is None or seed is None else Keeper(self, f"{_named(UNDER_WAY, seed)}-")

    def read(self, name: str) -> bytes | None:
        """What a file holds; None if it is not there, or not as it was written."""
        assert self.folder is not None
        with contextlib.suppress(Exception):
            found = read_whole(self.folder / name) or b""
            plain = found if self.lock is None else self.lock.decrypt(found)
            digest, payload = plain[:DIGEST], plain[DIGEST:]
            return payload if hmac.compare_digest(digest, self._digest(name, payload)) else None
        return None

    def write(self, name: str, payload: bytes) -> None:
        """Put this in the place of what the file held."""
        assert self.folder is not None
        plain = self._digest(name, payload) + payload
        write_whole(self.folder / name, plain if self.lock is None else self.lock.encrypt(plain))

    def _digest(self, name: str, payload: bytes) -> bytes:
        return hmac.digest(self.key, name.encode() + b"\n" + payload, "sha256")


def _named(prefix: str, seed: Any) -> str:
    return f"{prefix}{'-'.join(map(str, seed.spawn_key))}"


@dataclass(frozen=True)
class Keeper:
    """The place for one training under way, or for several together.

    Parameters
    ----------
    finished : Finished
    name : str
        Of the file.
    """

    finished: Finished
    name: str

    def read(self) -> bytes | None:
        """What was written last; None if there is nothing, or not as it was written."""
        return self.finished.read(self.name)

    def write(self, payload: bytes) -> None:
        """Put this there.

        Raises
        ------
        OSError
            If that cannot be done.
        """
        self.finished.write(self.name, payload)

    def shared(self, names: Sequence[str]) -> Keeper:
        """The place of a training that several share: another one for others."""
        members = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
        return Keeper(self.finished, f"{self.name}{members}")


NOTHING = Finished()
