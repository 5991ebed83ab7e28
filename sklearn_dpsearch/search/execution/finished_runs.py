"""Finished work in a checkpoint store, which is not repeated after a crash."""

from __future__ import annotations

import contextlib
import pickle
from dataclasses import dataclass
from typing import Any

from ..._disk.secret_folder import DONE, GOING
from ..._disk.store import KeyedFile
from .._types import Seed


@dataclass(frozen=True)
class Finished:
    """Finished results, each under the seed from which it came. Workers get a copy.

    Parameters
    ----------
    beside : KeyedFile or None
        A file in the folder, under the same key; None: nothing is kept.
    """

    beside: KeyedFile | None = None

    def get(self, seed: Seed) -> Any:
        """Read the result of a seed; None if it is missing, or not as it was written."""
        found = self._file(DONE, seed)
        with contextlib.suppress(Exception):
            payload = None if found is None else found.read()
            return None if payload is None else pickle.loads(payload)
        return None

    def put(self, seed: Seed, result: Any) -> None:
        """Keep a result if possible: after an error (a full disk, a model that cannot be pickled) it is dropped."""
        done, going = self._file(DONE, seed), self.keeper(seed)
        with contextlib.suppress(Exception):
            if done is not None and going is not None:
                done.write(pickle.dumps(result))
                for path in going.path.parent.glob(f"{going.path.name}*"):
                    path.unlink()

    def keeper(self, seed: Seed) -> KeyedFile | None:
        """File for a training under way, whose randomness comes from this seed."""
        return self._file(GOING, seed, "-")

    def _file(self, kind: str, seed: Any, end: str = "") -> KeyedFile | None:
        if self.beside is None or seed is None:
            return None
        return self.beside.beside(f"{kind}{'-'.join(map(str, seed.spawn_key))}{end}")


NOTHING = Finished()
