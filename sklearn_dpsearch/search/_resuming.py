"""Searches that go on after a crash: what a checkpoint holds, and what must be the same for its noise to be used."""

from __future__ import annotations

import contextlib
import json
import os
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
from .._disk.marks import Marks, keyed, refuse_others, shown
from .._disk.secret_folder import ANEW, Kind, SecretFolder
from ..adapters import forget_seeds, seed_names
from ..privacy import PrivacyError
from ..privacy.statement.release import version_of
from ._any_make import with_parameters
from ._types import Candidate
from .execution.finished import NOTHING, PREFIX, UNDER_WAY, Finished
from .execution.outcome import NoModelError
from .execution.randomness import Randomness, entropy_of

TOLD = """\
This folder is as secret as the private records.

It holds a private search that has not ended: the secret from which its candidates, their number, its splits and its
noise follow, and the runs that are done, scores and models included. Whoever reads it can undo the noise of what is
released at the end. Show it to nobody, and keep it out of backups and shared folders.

To go on: call fit again, with the same arguments and the same records. A search that ends deletes the folder. If you
delete the folder by hand, count that search as spent. Do not go on from a copy.
"""
SEARCH = Kind(noun="search", state="search.checkpoint", told=TOLD, others=(PREFIX, UNDER_WAY))
#: Arguments that change nothing of what is released, and those whose part in it is compared otherwise.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")
STATEMENT = (
    "With checkpoint= all that is drawn follows from a secret of the operating system through statistical generators; "
    "it lies in that folder, which is as secret as the records, until the release."
)
REFUSALS = {
    "place": (
        "Found {name} {found}, and the search in {folder} began with {name} {needed}: elsewhere sums are rounded and "
        "noise is drawn in another way. Go on where it began. "
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
        "records, or what is released would tell the difference: give the same records in the same order. "
    ),
}


@dataclass(frozen=True)
class Checkpoint:
    """A folder in which a search keeps what it needs to go on after a crash.

    Parameters
    ----------
    folder : str or path
        Of its own, on a disk that all workers see. It is made, closed to everybody else, and deleted after the release.
    key : cryptography.fernet.Fernet, optional
        Encrypts what is in it. It is not kept there, and must be given again.

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
    """Where a search starts from: the secret that all follows from, and the runs that are done.

    Parameters
    ----------
    source : Randomness
    finished : Finished
    entry : str or None
        The name of its entry in a ledger, which is made once.
    """

    def __init__(self, source: Randomness, finished: Finished = NOTHING, entry: str | None = None) -> None:
        self.source, self.finished, self.entry = source, finished, entry
        self.has_spent = False

    def bind(self, prepared: Any, candidates: Sequence[Candidate]) -> None:
        """Say which search this is, before it uses a record for anything else."""


class Resumable(Start):
    """The same, in an open folder.

    Parameters
    ----------
    folder : SecretFolder
    lock : Fernet or None
    random_state : None, int or RandomState
        Of the search.
    """

    def __init__(self, folder: SecretFolder, lock: Any, random_state: int | np.random.RandomState | None) -> None:
        self.folder, self.lock = folder, lock
        self.saved = _opened(folder.read_bytes(), lock, folder)
        kept = self.saved or {
            "key": secrets.token_hex(32),
            "entropy": entropy_of(random_state),
            "entry": secrets.token_hex(16),
        }
        self.kept: dict[str, Any] = kept
        self.key = bytes.fromhex(kept["key"])
        super().__init__(Randomness.following(kept["entropy"]), Finished(folder.path, self.key, lock), kept["entry"])

    def bind(self, prepared: Any, candidates: Sequence[Candidate]) -> None:
        """Refuse another search than the one that began; a new one is written down."""
        found = marks(self.key, prepared, candidates)
        if self.saved is not None:
            refuse_others(found, self.saved["marks"], REFUSALS, self.folder.path)
            return
        plain = json.dumps({**self.kept, "marks": found}).encode()
        self.folder.write_bytes(plain if self.lock is None else self.lock.encrypt(plain))


def _opened(found: bytes | None, lock: Any, folder: SecretFolder) -> dict[str, Any] | None:
    """What the folder holds, if the key fits."""
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
    """Where a search starts; its folder goes when the search has ended, or if it never used a record."""
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
            folder.ended = start.saved is None and not start.has_spent
            raise
        folder.ended = True


# --- which search it is -----------------------------------------------------------------------------------------------


def marks(key: bytes, prepared: Any, candidates: Sequence[Candidate]) -> Marks:
    """All by which a search is known again."""
    search, plan = prepared.search, prepared.plan

    def described(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        return {name: (keyed(key, _digest(name, value)), shown(value)) for name, value in values.items()}

    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; what it gave is kept
    told = (repr(plan.spent.guarantee), plan.settings, plan.final_settings, _without_seeds(search.estimator))
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


def _place() -> dict[str, str]:
    """Versions and the kind of processor."""
    from .. import __version__  # which imports this file

    return {
        "sklearn_dpsearch": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "processor": platform.machine(),
        **{name: found for name in LIBRARIES if (found := version_of(name)) is not None},
    }


def _without_seeds(estimator: Any) -> Any:
    """The estimator without generators, which change with use and are replaced in every run."""
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
    """Records as arrays, whose every value counts.

    Raises
    ------
    PrivacyError
        For anything else, of which only its description would be compared.
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
    """They alone: pandas lays a frame and its copy out in different ways, and the layout counts in a digest."""
    return _digest("names or values of a data frame", np.ascontiguousarray(of))
