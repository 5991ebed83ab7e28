"""Work of a search that has ended, in the folder of its checkpoint: what need not be done again after a crash.

Everything that a search with a checkpoint draws follows from one secret. So work that is done again comes out as it
was, and a file that is missing or damaged costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hmac
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._disk.secret_folder import read_whole, write_whole
from .._types import Seed

#: How the names of such files begin.
PREFIX = "done-"
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
            found = read_whole(self._file(seed)) or b""
            plain = found if self.lock is None else self.lock.decrypt(found)
            digest, payload = plain[:DIGEST], plain[DIGEST:]
            if hmac.compare_digest(digest, self._digest(seed, payload)):
                return pickle.loads(payload)
        return None

    def put(self, seed: Seed, result: Any) -> None:
        """Keep a result. If that cannot be done (a full disk, a model that cannot be pickled), it is not kept."""
        if self.folder is None or seed is None:
            return
        with contextlib.suppress(Exception):
            payload = pickle.dumps(result)
            plain = self._digest(seed, payload) + payload
            write_whole(self._file(seed), plain if self.lock is None else self.lock.encrypt(plain))

    def _file(self, seed: Any) -> Path:
        assert self.folder is not None
        return self.folder / f"{PREFIX}{'-'.join(map(str, seed.spawn_key))}"

    def _digest(self, seed: Any, payload: bytes) -> bytes:
        return hmac.digest(self.key, repr(seed.spawn_key).encode() + payload, "sha256")


NOTHING = Finished()
