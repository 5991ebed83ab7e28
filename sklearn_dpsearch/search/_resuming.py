"""Searches that go on after a crash."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
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
    """Open the starting point; its folder is deleted when the search has ended, or if no record was used."""
    if checkpoint is None:
        yield Start(random_state)
        return
    with store.opened(checkpoint, SEARCH) as kept:
        start = Start(random_state, kept)
        try:
            yield start
        except NoModelError:  # also a release: the search has ended
            kept.ended = True
            raise
        except BaseException:
            kept.ended = not (kept.begun or start.has_spent or kept.keeps)
            raise
