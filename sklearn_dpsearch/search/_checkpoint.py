"""Checkpoints: a search that was cut off goes on to the same release, at no further cost.

The header is written before any record is used. It holds a name, the fingerprint of the search and,
until the search ends, the entropy from which all its random draws follow. The release takes the
place of the entropy.
"""

from __future__ import annotations

import contextlib
import json
import platform
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher
from scipy.sparse import issparse
from sklearn.base import clone

from .._durable import read_whole, write_whole
from .._version import __version__
from ..adapters._seeds import forget_seeds, seed_names
from ..data._columns import is_data_set, is_frame
from ..data._plain_values import digest_of_objects
from ..privacy import PrivacyError
from ..privacy._statement.content import LIBRARIES as ACCOUNTANTS
from ..privacy._statement.content import version_of
from . import _checkpoint_folder as folder
from ._checkpoint_folder import RELEASE, STATE, FileOfSearch
from ._execution.job import NOTHING_FINISHED, Finished, NoModelError
from ._execution.randomness import Randomness, entropy_of
from ._pickling import Code, code_of, pickled, unpickled
from ._planning.space import listed
from ._records import KnownSeed, with_parameters

RESET = (
    "Or delete the folder and start anew. The first attempt is then spent as well: add what it "
    "promised to what the new one costs."
)
SAME_SEARCH = "a search that goes on must be the same. Give the same arguments."
OTHER_PLATFORM = "elsewhere rounding and noise differ. Go on where it began."
OTHER_RECORDS = (
    "the same noise must never meet other records, or the release would reveal the difference. "
    "Give the same records in the same order."
)


class Start(ABC):
    """Start of a search: its source of randomness, and what has been finished before.

    Attributes
    ----------
    entropy : int, list of int or None
        Source of all randomness; None for a search that draws on the operating system.
    finished : Finished
        Runs that were finished before.
    entry : str or None
        Name of the search's only entry in a ledger.
    """

    entropy: int | list[int] | None
    finished: Finished = NOTHING_FINISHED
    entry: str | None = None

    @abstractmethod
    def released(self, prepared: Any) -> dict[str, Any] | None:
        """Release of the same search, if it has ended already; else None."""

    @abstractmethod
    def begin(self, pay: Callable[[], None]) -> None:
        """Refuse a search other than the unfinished one, or write down a new one.

        Pay before any use of records.
        """

    @abstractmethod
    def keep(self, release: Mapping[str, Any], code: Code) -> None:
        """Keep the release of the ended search, with its code by number, and no secret."""


class WithoutCheckpoint(Start):
    """Start of a search that leaves nothing on the disk."""

    def __init__(self, random_state: KnownSeed) -> None:
        self.entropy = None if random_state is None else entropy_of(random_state)

    def released(self, prepared: Any) -> dict[str, Any] | None:
        """None: nothing was kept."""
        return None

    def begin(self, pay: Callable[[], None]) -> None:
        """Pay."""
        pay()

    def keep(self, release: Mapping[str, Any], code: Code) -> None:
        """Keep nothing."""


class Checkpoint(Start):
    """Start of a search with a checkpoint, in an open folder.

    Parameters
    ----------
    path : Path
    random_state : None, int or RandomState
        Of the search.

    Attributes
    ----------
    stays : bool
        Whether the folder is still needed.
    """

    def __init__(self, path: Path, random_state: KnownSeed) -> None:
        self.path, self._header = path, _header_in(path)
        self._begun, self.stays = "entropy" in self._header, bool(self._header)
        #: Header of an earlier search, whose release stays until the new one is paid for.
        earlier = self._header.get("earlier", {}) if self._begun else self._header
        self._earlier: dict[str, Any] = earlier
        self.entropy = self._header["entropy"] if self._begun else entropy_of(random_state)
        self.entry: str = self._header["name"] if self._begun else secrets.token_hex(16)
        self.finished = Finished(self._release_of(self.entry))

    def released(self, prepared: Any) -> dict[str, Any] | None:
        """Release of the same search, if it has ended already; else None.

        A PrivacyError is raised if the release of a search that has ended is missing.
        """
        self._fingerprint = fingerprint(prepared)
        if self._header.get("ended") != _digests(self._fingerprint):
            return None
        self.entry = self._header["name"]
        release = self._release_of(self.entry).read()
        if release is None:
            how = f"of a search that has ended, without its file {RELEASE!r} as it was written"
            raise _unusable(self.path, how)
        self._forget(but=RELEASE)  # should the process have died before
        code = code_of(prepared, prepared.shared)
        if not release.startswith(code.mark):
            how = "of a search that has ended, with other classes or functions of a script"
            raise _unusable(self.path, how)
        try:
            fields: dict[str, Any] = unpickled(release[len(code.mark) :], (), code)
        except Exception as error:
            why = f"({type(error).__name__}: {error}), perhaps as versions of libraries differ"
            how = f"of a search that has ended, whose release cannot be read here {why}"
            raise _unusable(self.path, how) from error
        return fields

    def begin(self, pay: Callable[[], None]) -> None:
        """Refuse a search other than the unfinished one, or write down a new one.

        Pay before any use of records.
        """
        if self._begun:
            self._check_same()
        else:
            began = {"began": self._fingerprint, "entropy": self.entropy, "earlier": self._earlier}
            self._write({"name": self.entry, **began})
            self._forget(but=RELEASE)
        earlier, needed = self._release_of(self._earlier.get("name", "")), self.stays
        has_earlier = bool(self._earlier) and (not self._begun or earlier.read() is not None)
        self.stays = True  # an interrupt may come when the ledger has entered it
        try:
            pay()
        except Exception:
            self.stays = needed
            if has_earlier:
                self._write(self._earlier)
            raise
        if has_earlier:
            earlier.path.unlink(missing_ok=True)

    def keep(self, release: Mapping[str, Any], code: Code) -> None:
        """Keep the release, and no secret.

        After an error nothing is kept: the caller has the release.

        The secrets are gone when this returns, and not before may anyone see the release.
        """
        try:
            self._release_of(self.entry).write(pickled(dict(release), (), code, code.mark))
            self._write({"name": self.entry, "ended": _digests(self._fingerprint)})
            self._forget(but=RELEASE)
        except Exception:
            self._forget()
            (self.path / STATE).unlink(missing_ok=True)
            self.stays = False

    def _check_same(self) -> None:
        """Refuse another search than the unfinished one, by the first fact that differs."""
        current, earlier = self._fingerprint, self._header["began"]
        for name in sorted({*current, *earlier}):
            digest, text = current.get(name, ("", "nothing"))
            other, was = earlier.get(name, ("", "nothing"))
            if digest != other:
                began = f"the search in {self.path} began"
                difference = f"{name}={text}, and {began} with {name}={was}"
                difference = difference if text else f"other {name} than those with which {began}"
                raise PrivacyError(f"Found {difference}: {REASONS.get(name, SAME_SEARCH)} {RESET}")

    def _release_of(self, search: str) -> FileOfSearch:
        return FileOfSearch(self.path / RELEASE, search)

    def _write(self, header: dict[str, Any]) -> None:
        with folder.explaining_write_errors(self.path):
            write_whole(self.path / STATE, json.dumps(header).encode())

    def _forget(self, but: str = "") -> None:
        for path in folder.files_after_state(self.path):
            if path.name != but:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def start_of_search(checkpoint: Any, random_state: KnownSeed) -> Iterator[Start]:
    """Open the start of a search.

    Its folder is deleted when no release was kept, or if no record was used.
    """
    if checkpoint is None:
        yield WithoutCheckpoint(random_state)
        return
    with folder.opened_folder(checkpoint) as path:
        start = Checkpoint(path, random_state)
        try:
            yield start
        except NoModelError:  # also a release: the search has ended
            start.stays = False
            raise
        finally:
            if not start.stays:
                folder.delete_folder(path)


def _header_in(path: Path) -> dict[str, Any]:
    try:
        content = read_whole(path / STATE)
    except FileNotFoundError:
        if folder.files_after_state(path):
            raise _unusable(path, f"without its file {STATE!r}") from None
        return {}
    if content is None:
        raise _unusable(path, "that is damaged, cut short or of another version of this library")
    header: dict[str, Any] = json.loads(content)
    return header


def _unusable(path: Path, how: str) -> PrivacyError:
    needed = "the file as it was written is needed. Put it back if you can."
    return PrivacyError(f"Found a checkpoint in {path} {how}; {needed} {RESET}")


# --- fingerprint ----------------------------------------------------------------------------------


#: Number of candidates drawn to recognise a space, and the seed for that, independent of the
#: search's candidates.
PROBES, PROBE_SEED = 32, 0
#: Arguments without effect on the release, and arguments that are compared in another way.
IGNORED_NAMES = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger", "rehearse"})
COMPARED_NAMES = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = (*ACCOUNTANTS, "joblib", "torch", "skorch", "opacus", "diffprivlib", "interpret-core")
#: Names of facts on which a release no longer depends once it is there.
PLATFORM = (*LIBRARIES, "sklearn_dpsearch", "Python", "processor")
#: Name in a fingerprint ↦ why it must be the same, and the remedy.
REASONS = {
    **dict.fromkeys(PLATFORM, OTHER_PLATFORM),
    **dict.fromkeys(("X", "y", "X_public", "y_public", "parameters of fit"), OTHER_RECORDS),
}
SCALARS = (bool, int, float, str, type(None))


def fingerprint(prepared: Any) -> dict[str, tuple[str, str]]:
    """Name ↦ digest of a fact that must be the same, and its text for errors."""
    search, plan = prepared.strategy.search, prepared.plan
    names = search.get_params(deep=False).keys() - IGNORED_NAMES - COMPARED_NAMES
    arguments = {name: getattr(search, name) for name in sorted(names)}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        # it changes with use; the entropy drawn from it is kept
        arguments["random_state"] = "RandomState"
    settings, estimator = (plan.promises.settings, plan.final_settings), clone(search.estimator)
    # without generators, which change with use and are replaced in every run
    forget_seeds(estimator)
    with_parameters(estimator, dict.fromkeys(seed_names(estimator)))
    candidates = [_sample_of_space(plan.space), repr(plan.spent.guarantee), *settings, estimator]
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    facts = {
        "candidates, estimator or numbers of records": candidates,
        **{name: plain_records(name, value) for name, value in records.items()},
        "parameters of fit": dict(prepared.fit_params),
    }
    digests = {name: (version, repr(version)) for name, version in versions().items()}
    for name, value in arguments.items():
        short = isinstance(value, SCALARS) and len(repr(value)) < 80
        digests[name] = digest(name, value), repr(value) if short else type(value).__name__
    return digests | {name: (digest(name, value), "") for name, value in facts.items()}


def versions() -> dict[str, str]:
    """Versions and the kind of processor, on which rounding and generators depend."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = {"sklearn_dpsearch": __version__, "Python": python}
    versions |= {name: text for name in LIBRARIES if (text := version_of(name)) is not None}
    return {**versions, "processor": platform.machine()}


def _digests(fingerprint: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Digests that recognise a search which has ended, without versions.

    Texts for errors may show a seed.
    """
    return {name: digest for name, (digest, _) in fingerprint.items() if name not in PLATFORM}


def _sample_of_space(space: Any) -> list[Any]:
    """Plain values of a space, and some candidates from it."""
    drawing = Randomness.following(PROBE_SEED).drawing()
    plain = [
        {name: [v for v in values if isinstance(v, SCALARS)] for name, values in listed(d).items()}
        for d in space.dictionaries
    ]
    return [plain, *(space.draw(drawing) for _ in range(PROBES))]


class _Hasher(NumpyHasher):
    """Hasher by values: a tensor of PyTorch is pickled with the address of its memory."""

    def save(self, obj: Any) -> None:
        if (torch := sys.modules.get("torch")) is not None and isinstance(obj, torch.Tensor):
            content = obj.detach().cpu().reshape(-1).view(torch.uint8).numpy()
            obj = type(obj), str(obj.dtype), tuple(obj.shape), obj.requires_grad, content
        super().save(obj)


def digest(name: str, value: Any) -> str:
    """Digest of an object by its value, the same in every process.

    An array in a file has that of its numbers.
    """
    with contextlib.suppress(Exception):
        return str(_Hasher("sha1", coerce_mmap=True).hash(value))
    raise PrivacyError(
        f"Found {name} ({type(value).__name__}) that cannot be pickled, so that a search with a "
        "checkpoint cannot tell whether it is the same when it goes on. Give functions and classes "
        "that a module defines, or leave checkpoint=None."
    )


def plain_records(name: str, value: Any) -> Any:
    """Records so that every value counts in a digest, and its object and place in memory do not.

    Raises
    ------
    PrivacyError
        For data sets, of which only a description could be compared.
    """
    if isinstance(value, dict):
        return {part: plain_records(name, array) for part, array in value.items()}
    if is_data_set(value):
        raise PrivacyError(
            f"Found {name} of type {type(value).__name__} together with checkpoint=; arrays or "
            "data frames are needed, so that a search that goes on can tell whether its records "
            "are the same. Leave checkpoint=None."
        )
    # of others, such as masked arrays, more than the values counts
    if type(value) in (np.ndarray, np.memmap):
        is_plain = value.dtype.kind != "O"
        return np.ascontiguousarray(value) if is_plain else (value.shape, digest_of_objects(value))
    if issparse(value):
        rows = value.tocsr().sorted_indices()
        return type(value).__name__, rows.shape, rows.indptr, rows.indices, rows.data
    if not is_frame(value):
        return value
    columns = [(label, plain_records(name, part.to_numpy())) for label, part in value.items()]
    return plain_records(name, np.asarray(value.index)), columns
