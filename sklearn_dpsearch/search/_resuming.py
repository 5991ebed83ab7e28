"""Searches that go on after a crash."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._disk import store
from .._disk.secret_folder import Work
from .._disk.store import Store
from ._fingerprint import marks
from .execution.finished_runs import NOTHING, Finished
from .execution.outcome import NoModelError
from .execution.randomness import entropy_of
from .packed import pickled, unpickled

SEARCH = Work("search", "the secret from which candidates, their number, splits and noise follow, and finished runs")
STATEMENT = (
    "With checkpoint= all random draws follow from a secret of the operating system through statistical generators; "
    "the secret stays in that folder, which is as secret as the records, until the release."
)


@dataclass(frozen=True)
class Checkpoint:
    """A folder from which a search goes on after a crash.

    Parameters
    ----------
    folder : str or path
        A separate folder on a disk that all workers see. It is created, and closed to other users. After the release it
        holds only the release, which the same fit restores and another fit replaces.
    key : cryptography.fernet.Fernet, optional
        Encrypts the files. The key is not kept in the folder, and must be given again.

    Examples
    --------
    >>> Checkpoint("search.checkpoint")
    Checkpoint('search.checkpoint')
    """

    folder: str | os.PathLike[str]
    key: Any = None

    def __post_init__(self) -> None:
        if self.key is not None and not (hasattr(self.key, "encrypt") and hasattr(self.key, "decrypt")):
            raise TypeError(
                f"Found key of type {type(self.key).__name__}; a Fernet is needed: "
                "cryptography.fernet.Fernet(Fernet.generate_key())."
            )

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.folder)!r}{'' if self.key is None else ', key=...'})"


class Start:
    """Starting point of a search: where its randomness comes from, and what has been finished before.

    Parameters
    ----------
    random_state : None, int or RandomState
        Of the search.
    kept : Store or None
        The store of a search with a checkpoint, in which a secret is kept that all randomness follows from.

    Attributes
    ----------
    entropy : int, list of int or None
        None for a search that draws on the operating system.
    """

    def __init__(self, random_state: int | np.random.RandomState | None, kept: Store | None = None) -> None:
        self.store, self.has_spent = kept, False
        if kept is not None and kept.begun:
            self.entropy = json.loads(kept.secrets)["entropy"]
        else:
            self.entropy = None if kept is None and random_state is None else entropy_of(random_state)
        self.finished = NOTHING if kept is None else Finished(kept.file())

    @property
    def entry(self) -> str | None:
        """Name of the search's only entry in a ledger."""
        return None if self.store is None else self.store.name

    def released(self, prepared: Any) -> dict[str, Any] | None:
        """Release of the same search, if it has ended already; else None."""
        if self.store is None:
            return None
        self._marks = marks(prepared)
        found = self.store.released(self._marks)
        return None if found is None else unpickled(found)

    def begin(self, pay: Callable[[], None]) -> None:
        """Refuse a search other than the unfinished one, or write down a new one; pay before any other use of records.

        An earlier release in the folder stays until the new search is paid for.
        """
        if self.store is None:
            pay()
            return
        self.store.bind(self._marks)
        self.store.begin(json.dumps({"entropy": self.entropy}).encode(), partial(self._pay, pay))

    def _pay(self, pay: Callable[[], None]) -> None:
        self.has_spent = True  # an interrupt may come when the ledger has entered it
        try:
            pay()
        except Exception:
            self.has_spent = False
            raise

    def keep(self, release: Mapping[str, Any]) -> None:
        """Keep the release of the search, which has ended."""
        if self.store is not None:
            self.store.keep(lambda: pickled(dict(release)))


@contextlib.contextmanager
def starting(checkpoint: Any, random_state: int | np.random.RandomState | None) -> Iterator[Start]:
    """Open the starting point; delete its folder when the search has ended, or if no record was used."""
    if checkpoint is None:
        yield Start(random_state)
        return
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with store.opened(given.folder, SEARCH, given.key) as kept:
        start = Start(random_state, kept)
        try:
            yield start
        except NoModelError:  # also a release: the search has ended
            kept.ended = True
            raise
        except BaseException:
            kept.ended = not (kept.begun or start.has_spent or kept.keeps)
            raise
