"""Searches that go on after a crash: their checkpoint, and what recognises a search and its records."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from .._disk import store
from .._disk.secret_folder import Work
from .._disk.store import PLAIN, Marks, Store, shown
from ..adapters import forget_seeds, seed_names
from ..privacy import PrivacyError
from ._records import with_parameters
from ._types import Candidate
from .execution.finished import NOTHING, Finished
from .execution.outcome import NoModelError
from .execution.randomness import Randomness, entropy_of

SEARCH = Work("search", "the number of candidates, splits and noise follow from it, and it has the finished runs")
#: Number of candidates drawn to recognise a space, and the seed for that, independent of the search's candidates.
PROBES, PROBING = 32, 0
#: Arguments without effect on the release, and arguments that are compared in another way.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")
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
    """

    def __init__(self, random_state: int | np.random.RandomState | None, kept: Store | None = None) -> None:
        self.store, self.has_spent = kept, False
        entropy = json.loads(kept.secrets)["entropy"] if kept is not None and kept.begun else entropy_of(random_state)
        self._secret = json.dumps({"entropy": entropy}).encode()
        seeded = kept is not None or random_state is not None
        self.source = Randomness.following(entropy) if seeded else Randomness()
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
        return None if found is None else pickle.loads(found)

    def bind(self, candidates: Sequence[Candidate]) -> None:
        """Refuse a search other than the unfinished one, or write down a new one, before any other use of records."""
        if self.store is not None:
            drawn = (_digest("the space of candidates", list(candidates)), "")
            self.store.bind(self._marks, {"drawn": {"candidates": drawn}})
            if not self.store.begun:
                self.store.begin(self._secret)

    def keep(self, release: Mapping[str, Any]) -> None:
        """Keep the release of the search, which has ended."""
        if self.store is not None:
            self.store.keep(lambda: pickle.dumps(dict(release)))


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


# --- which search it is -----------------------------------------------------------------------------------------------


def marks(prepared: Any) -> Marks:
    """Texts and digests by which a search is recognised."""
    search, plan = prepared.search, prepared.plan
    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; the entropy drawn from it is kept
    told = (repr(plan.spent.guarantee), plan.settings, plan.final_settings, _without_seeds(search.estimator))
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    return {
        "place": {name: (found, repr(found)) for name, found in store.place(LIBRARIES).items()},
        "argument": {name: (_digest(name, value), shown(value)) for name, value in arguments.items()},
        "candidates": {
            "candidates, estimator or numbers of records": (_digest("the estimator", [_probed(plan.space), *told]), "")
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
    """Records as arrays, so that every value counts in a digest.

    Raises
    ------
    PrivacyError
        For other containers, whose digest may not cover every value.
    """
    if value is None or type(value) in (np.ndarray, np.memmap) or issparse(value):
        return value
    if isinstance(value, np.ndarray):  # a mask or a unit may be beside the numbers
        return [np.asarray(value), vars(value)] if hasattr(value, "__dict__") else value
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        columns = value.items() if hasattr(value, "items") else ((name, value[name]) for name in value.columns)
        return [_names(value), *((str(name), *_column(values)) for name, values in columns)]
    if isinstance(value, dict):
        return {str(part): _plain(name, one) for part, one in value.items()}
    if isinstance(value, (list, tuple)):
        return value
    if hasattr(value, "__array__"):
        return [_names(value), *_column(value)] if hasattr(value, "dtype") else np.asarray(value)
    raise PrivacyError(
        f"Found {name} of type {type(value).__name__} together with checkpoint=; arrays, data frames, lists or dicts "
        "of them are needed, so that a search that goes on can tell whether its records are the same. Leave "
        "checkpoint=None."
    )


def _names(values: Any) -> str | None:
    """Names of rows, which pandas keeps beside the values, and which an estimator may look at."""
    found = getattr(values, "index", None)
    return None if callable(found) else _values(found)


def _column(values: Any) -> tuple[str, str, str]:
    """A column: its kind, its categories, which are not in the name of the kind, and its values."""
    return str(values.dtype), _values(getattr(values.dtype, "categories", None)), _values(values)


def _values(of: Any) -> str:
    """Digest of the values without their memory layout, which differs between a pandas frame and its copy."""
    return _digest("names or values of a data frame", np.ascontiguousarray(of))
