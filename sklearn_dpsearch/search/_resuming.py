"""Searches that go on after a crash: a checkpoint, and checks that the search and its records are the same."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import platform
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from .._disk import secret_folder
from .._disk.digests import SHOWN, Marks, digests, keyed, refuse_others, shown
from .._disk.secret_folder import ANEW, Kind, SecretFolder
from .._version import __version__
from ..adapters.seeds import forget_seeds, seed_names
from ..privacy import PrivacyError
from ..privacy.statement.release import version_of
from ._records import with_parameters
from ._types import Candidate
from .execution.finished import NOTHING, PREFIX, UNDER_WAY, Finished
from .execution.outcome import NoModelError
from .execution.randomness import Randomness, entropy_of

TOLD = """\
This folder is as secret as the private records.

It holds a private search that has not ended: the secret from which its candidates, their number, its splits and its
noise follow, and the finished runs with their scores and models. With these files the noise of the release can be
undone. Keep them secret, and out of backups and shared folders.

To go on: call fit again, with the same arguments and the same records. If you delete the folder by hand, count that
search as spent. Do not go on from a copy.

A search that has ended leaves two files here: its release, and digests by which the same search on the same records is
known again. The same fit once more restores the release and spends nothing; another fit replaces the files. The files
confirm a correct guess of all records, so they are as secret. When the model is saved elsewhere, delete the folder.
"""
#: File of a search's release.
RELEASE = "release"
SEARCH = Kind(noun="search", state="search.checkpoint", told=TOLD, others=(PREFIX, UNDER_WAY, RELEASE))
#: Number of candidates drawn to recognise a space, independent of the search's candidates.
PROBES = 32
#: Arguments without effect on the release, and arguments that are compared in another way.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")
STATEMENT = (
    "With checkpoint= all random draws follow from a secret of the operating system through statistical generators; "
    "the secret stays in that folder, which is as secret as the records, until the release."
)
REFUSALS = {
    "place": (
        "Found {name} {found}, and the search in {folder} began with {name} {needed}: elsewhere rounding and noise "
        "differ. Go on where the search began. "
    ),
    "argument": (
        "Found another {name} ({found}) than that with which the search in {folder} began ({needed}): a search that "
        "goes on must be the same. Give the same arguments. "
    ),
    "candidates": (
        "Found a space of candidates, an estimator or numbers of records other than those with which the search in "
        "{folder} began. Give the same arguments, and the same records in the same order. "
    ),
    "records": (
        "Found other {name} than those with which the search in {folder} began. The same noise must never meet other "
        "records, or the release would reveal the difference: give the same records in the same order. "
    ),
}


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
    """Starting point of a search: the secret that all randomness follows from, and the finished runs.

    Parameters
    ----------
    source : Randomness
    finished : Finished
    entry : str or None
        Name of the search's only entry in a ledger.
    """

    def __init__(self, source: Randomness, finished: Finished = NOTHING, entry: str | None = None) -> None:
        self.source, self.finished, self.entry = source, finished, entry
        self.has_spent = False

    def bind(self, prepared: Any, candidates: Sequence[Candidate]) -> None:
        """Bind to one search, before any other use of its records."""

    def released(self, prepared: Any) -> dict[str, Any] | None:
        """Release of the same search, if it has ended already; else None."""
        return None

    def keep(self, release: Mapping[str, Any]) -> None:
        """Keep the release of the search, which has ended."""


class Resumable(Start):
    """Starting point kept in an open folder.

    Parameters
    ----------
    folder : SecretFolder
    lock : Fernet or None
    random_state : None, int or RandomState
        Of the search.
    """

    def __init__(self, folder: SecretFolder, lock: Any, random_state: int | np.random.RandomState | None) -> None:
        self.folder, self.lock = folder, lock
        found = _opened(folder.read_bytes(), lock, folder)
        #: State of a search that has ended, until another search begins; and state of an unfinished search.
        self.over = found if found and found.get("over") else None
        self.saved = None if self.over else found
        #: Whether the folder holds a release that the same search restores.
        self.keeps = self.over is not None
        kept = self.saved or {
            "key": secrets.token_hex(32),
            "entropy": entropy_of(random_state),
            "entry": secrets.token_hex(16),
        }
        self.kept: dict[str, Any] = kept
        self.key = bytes.fromhex(kept["key"])
        super().__init__(Randomness.following(kept["entropy"]), Finished(folder.path, self.key, lock), kept["entry"])

    def bind(self, prepared: Any, candidates: Sequence[Candidate]) -> None:
        """Refuse a search other than the unfinished one; write down a new search in place of one that has ended."""
        found = marks(self.key, prepared, candidates)
        self._known_by = {**found, "candidates": _space_of(self.key, prepared)}
        if self.saved is not None:
            refuse_others(found, self.saved["marks"], REFUSALS, self.folder.path)
            return
        self._write({**self.kept, "marks": found})
        self.over, self.keeps = None, False
        self._forget(SEARCH.others)

    def released(self, prepared: Any) -> dict[str, Any] | None:
        """Release of the same search, if it has ended already; else None.

        Raises
        ------
        PrivacyError
            If the search has ended and its release is missing: the search would be spent a second time.
        """
        if self.over is None:
            return None
        key = bytes.fromhex(self.over["key"])
        found = {**marks(key, prepared, ()), "candidates": _space_of(key, prepared)}
        if digests(found) != self.over["marks"]:
            return None
        payload = Finished(self.folder.path, key, self.lock).read(RELEASE)
        if payload is None:
            raise self.folder.unusable(f"of a search that has ended, without its file {RELEASE!r} as it was written")
        self._forget((PREFIX, UNDER_WAY))  # should the process have died before
        self.entry = self.over["entry"]
        kept: dict[str, Any] = pickle.loads(payload)
        return kept

    def keep(self, release: Mapping[str, Any]) -> None:
        """Keep the release, and no secret. After an error nothing is kept: the caller has the release."""
        with contextlib.suppress(Exception):
            self.finished.write(RELEASE, pickle.dumps(dict(release)))
            known = {"key": self.kept["key"], "entry": self.kept["entry"], "marks": digests(self._known_by)}
            self._write({**known, "over": True})
            self._forget((PREFIX, UNDER_WAY))
            self.keeps = True

    def _write(self, value: Mapping[str, Any]) -> None:
        plain = json.dumps(value).encode()
        self.folder.write_bytes(plain if self.lock is None else self.lock.encrypt(plain))

    def _forget(self, prefixes: tuple[str, ...]) -> None:
        """Delete the files with names that begin with one of the prefixes."""
        for name in os.listdir(self.folder.path):
            if name.startswith(prefixes):
                (self.folder.path / name).unlink(missing_ok=True)


def _opened(found: bytes | None, lock: Any, folder: SecretFolder) -> dict[str, Any] | None:
    """Read the contents found in the folder, if there are any; raise if the key does not fit."""
    if found is None:
        return None
    try:
        plain = found if lock is None else lock.decrypt(found)
        saved: dict[str, Any] = json.loads(plain)
        return saved
    except Exception:  # the type is cryptography's own, which need not be there
        pass
    raise PrivacyError(
        f"Found a checkpoint in {folder.path} that {'was encrypted' if lock is None else 'this key does not open'}; "
        f"the key under which it was written is needed: checkpoint=Checkpoint(folder, key=...). {ANEW}"
    )


@contextlib.contextmanager
def starting(checkpoint: Any, random_state: int | np.random.RandomState | None) -> Iterator[Start]:
    """Open the starting point; delete its folder when the search has ended, or if no record was used."""
    if checkpoint is None:
        yield Start(Randomness(random_state))
        return
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with secret_folder.opened(given.folder, SEARCH) as folder:
        start = Resumable(folder, given.key, random_state)
        try:
            yield start
        except NoModelError:  # also a release: the search has ended
            folder.ended = True
            raise
        except BaseException:
            folder.ended = start.saved is None and not start.has_spent and not start.keeps
            raise
        folder.ended = not start.keeps


# --- which search it is -----------------------------------------------------------------------------------------------


def marks(key: bytes, prepared: Any, candidates: Sequence[Candidate]) -> Marks:
    """Keyed digests by which a search is recognised."""
    search = prepared.search

    def described(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        return {name: (keyed(key, _digest(name, value)), shown(value)) for name, value in values.items()}

    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; the entropy drawn from it is kept
    told = _told(prepared)
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    return {
        "place": described(_place()),
        "argument": described(arguments),
        "candidates": {"candidates": (keyed(key, _digest("the space of candidates", [*candidates, *told])), "")},
        "records": {
            **{name: (keyed(key, _digest(name, _plain(name, value))), "") for name, value in records.items()},
            "parameters of fit": (keyed(key, _digest("parameters of fit", dict(prepared.fit_params))), ""),
        },
    }


def _space_of(key: bytes, prepared: Any) -> dict[str, tuple[str, str]]:
    """Keyed digest of the space and the estimator, for a search that has ended: its candidates' secret is gone."""
    space, drawing = prepared.plan.space, Randomness.following(int.from_bytes(key, "little")).drawing()
    listed = [
        {name: [one for one in values if isinstance(one, SHOWN)] for name, values in d.items() if _is_list(values)}
        for d in space.dictionaries
    ]
    drawn = [space.draw(drawing) for _ in range(PROBES)]
    told = _told(prepared)
    return {"candidates": (keyed(key, _digest("the space of candidates", [listed, drawn, *told])), "")}


def _told(prepared: Any) -> tuple[Any, ...]:
    """Guarantee, noise and estimator of a search."""
    plan = prepared.plan
    settings = plan.recipe.settings, plan.final_recipe.settings
    return (repr(plan.spent.guarantee), *settings, _without_seeds(prepared.search.estimator))


def _is_list(values: Any) -> bool:
    return not hasattr(values, "rvs")


def _place() -> dict[str, str]:
    """Versions and the kind of processor."""
    return {
        "sklearn_dpsearch": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "processor": platform.machine(),
        **{name: found for name in LIBRARIES if (found := version_of(name)) is not None},
    }


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
