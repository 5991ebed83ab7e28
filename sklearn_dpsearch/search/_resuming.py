"""Searches that go on after a crash."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from .._disk import store
from .._disk.secret_folder import Work
from .._disk.store import PLAIN, Marks, Store, shown
from ..adapters.seeds import forget_seeds, seed_names
from ..data.columns import is_data_set, is_frame
from ..privacy import PrivacyError
from ._records import with_parameters
from .execution.job import NOTHING, Finished, NoModelError
from .execution.randomness import Randomness, entropy_of
from .pickling import pickled, unpickled

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


#: Number of candidates drawn to recognise a space, and the seed for that, independent of the search's candidates.
PROBES, PROBING = 32, 0
#: Arguments without effect on the release, and arguments that are compared in another way.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")


def marks(prepared: Any) -> Marks:
    """Marks of a search."""
    search, plan = prepared.strategy.search, prepared.plan
    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; the entropy drawn from it is kept
    settings = plan.recipe.settings, plan.final_recipe.settings
    told = [_probed(plan.space), repr(plan.spent.guarantee), *settings, _without_seeds(search.estimator)]
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    return {
        "place": {name: (found, repr(found)) for name, found in store.place(LIBRARIES).items()},
        "argument": {name: (_digest(name, value), shown(value)) for name, value in arguments.items()},
        "candidates": {
            "candidates, estimator or numbers of records": (
                _digest("the estimator", told),
                "",
            )
        },
        "records": {
            **{name: (_digest(name, _plain(name, value)), "") for name, value in records.items()},
            "parameters of fit": (_digest("parameters of fit", dict(prepared.fit_params)), ""),
        },
    }


def _probed(space: Any) -> list[Any]:
    """Plain values of a space, and some candidates from it."""
    drawing = Randomness.following(PROBING).drawing()
    plain = [
        {name: [v for v in values if isinstance(v, PLAIN)] for name, values in d.items() if not hasattr(values, "rvs")}
        for d in space.dictionaries
    ]
    return [plain, *(space.draw(drawing) for _ in range(PROBES))]


def _without_seeds(estimator: Any) -> Any:
    """Copy the estimator without generators, which change with use and are replaced in every run."""
    plain = clone(estimator)
    forget_seeds(plain)
    return with_parameters(plain, dict.fromkeys(seed_names(plain)))


def _digest(name: str, value: Any) -> str:
    try:
        return str(joblib.hash(value, hash_name="sha1"))
    except Exception:
        pass
    raise PrivacyError(
        f"Found {name} ({type(value).__name__}) that cannot be pickled, so that a search with a checkpoint cannot tell "
        "whether it is the same when it goes on. Give functions and classes that a module defines, or leave "
        "checkpoint=None."
    )


def _plain(name: str, value: Any) -> Any:
    """Records so that every value counts in a digest, and the layout of a data frame's columns in memory does not.

    Raises
    ------
    PrivacyError
        For data sets, of which only a description could be compared.
    """
    if isinstance(value, dict):
        return {part: np.ascontiguousarray(one) for part, one in value.items()}
    if is_data_set(value):
        raise PrivacyError(
            f"Found {name} of type {type(value).__name__} together with checkpoint=; arrays or data frames are needed, "
            "so that a search that goes on can tell whether its records are the same. Leave checkpoint=None."
        )
    if not is_frame(value):
        return value
    columns = [(label, column.to_numpy()) for label, column in value.items()]
    return [np.asarray(value.index), *((label, np.ascontiguousarray(one)) for label, one in columns)]
