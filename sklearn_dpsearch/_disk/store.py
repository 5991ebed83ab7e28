"""The checkpoint store of searches and nets: a header, written before any record is used, and files that save time.

The header holds a key, marks that recognise the work and, until the work ends, the secrets from which all its random
draws follow. So work that is done again has the same result. The release takes the place of the secrets.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from .._version import __version__
from ..errors import PrivacyError
from .durable import read_whole, write_through, write_whole
from .secret_folder import ABOUT, README, RELEASE, Work, delete, explained, locked, pieces

#: Kind ↦ name ↦ (text that identifies, text for errors).
Marks: TypeAlias = dict[str, dict[str, tuple[str, str]]]
PLAIN = (bool, int, float, str, type(None))
DIGEST = hashlib.sha256().digest_size
ANEW = (
    "Or delete the folder and start anew. The first attempt is then spent as well: add what it promised to what the "
    "new one costs."
)
SAME = "work that goes on must be the same. Give the same arguments."
#: Kind of marks ↦ why they must be the same, and the remedy.
REASONS = {
    "place": "elsewhere rounding and noise differ. Go on where it began.",
    "records": "the same noise must never meet other records, or the release would reveal the difference. Give the "
    "same records in the same order.",
    "start": "the cost of the start would differ. Start from the same net as then, loaded from its pickle.",
}


class Store:
    """The checkpoint in an open folder."""

    def __init__(self, path: Path, work: Work) -> None:
        self.path, self.work = path, work
        self._header, self.secrets = self._read()
        #: Whether the folder holds a release, and whether it holds unfinished work.
        self.keeps = bool(self._header.get("ended"))
        self.begun = bool(self._header) and not self.keeps
        #: Whether the folder is no longer needed.
        self.ended = False
        self.key = bytes.fromhex(self._header["key"]) if self.begun else secrets.token_bytes(32)

    @property
    def name(self) -> str:
        """Lasting name of the work, which tells nothing else of its key."""
        return _keyed(self.key, "name")[:32]

    def file(self, name: str = RELEASE) -> KeyedFile:
        """File under the present key."""
        return KeyedFile(self.path / name, self.key)

    def released(self, marks: Marks) -> bytes | None:
        """Release of the same work, if it has ended; a PrivacyError if the release is missing; else None."""
        if not self.keeps or self._header["marks"] != _digests(key := bytes.fromhex(self._header["key"]), marks):
            return None
        self.key = key
        found = self.file().read()
        if found is None:
            raise self._unusable(
                f"of a {self.work.noun} that has ended, without its file {RELEASE!r} as it was written"
            )
        self._forget(but=RELEASE)  # should the process have died before
        return found

    def bind(self, marks: Marks, until_the_end: Marks | None = None) -> None:
        """Refuse other work than the unfinished one, by a PrivacyError for the first mark that differs."""
        self._lasting = marks
        self._marks = _described(self.key, {**marks, **(until_the_end or {})})
        for kind, mine in self._marks.items() if self.begun else ():
            theirs = self._header["marks"].get(kind, {})
            for name in sorted({*mine, *theirs}):
                (one, said), (other, was) = mine.get(name, ("", "nothing")), theirs.get(name, ("", "nothing"))
                if one != other:
                    began = f"the {self.work.noun} in {self.path} began"
                    told = f"{name}={said}, and {began} with {name}={was}"
                    told = told if said else f"other {name} than those with which {began}"
                    raise PrivacyError(f"Found {told}: {REASONS.get(kind, SAME)} {ANEW}")

    def begin(self, own: bytes, pay: Callable[[], None] = lambda: None) -> None:
        """Write down the work and its secrets, or raise a NotWrittenError; then pay, and forget an earlier release.

        If paying fails, the earlier release stays. Unfinished work only pays.
        """
        before = self._header.get("before", {}) if self.begun else self._header
        if not self.begun:
            self._write({"marks": self._marks, "before": before}, own)
            self._forget(but=RELEASE)
        earlier = KeyedFile(self.path / RELEASE, bytes.fromhex(before.get("key", "")))
        stays = bool(before) and (not self.begun or earlier.read() is not None)
        try:
            pay()
        except Exception:
            if stays:
                self._write(before, b"")
                self.keeps, self.begun = True, False
            raise
        if stays:
            earlier.path.unlink(missing_ok=True)
        self.secrets, self.keeps = own, False

    def keep(self, release: Callable[[], bytes]) -> None:
        """Keep the release, and no secret. After an error nothing is kept: the caller has the release.

        The secrets are gone when this returns, and not before may anyone see the release.
        """
        try:
            self.file().write(release())
            self._write({"marks": _digests(self.key, self._lasting), "ended": True}, b"")
            self._forget(but=RELEASE)
            self.keeps = True
        except Exception:
            self._forget()
            (self.path / self.work.state).unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Any], bytes]:
        try:
            found = read_whole(self.path / self.work.state)
        except FileNotFoundError:
            if pieces(self.path):
                raise self._unusable(f"without its file {self.work.state!r}") from None
            return {}, b""
        if found is None:
            raise self._unusable("that is damaged, cut short or of another version of this library")
        header, _, own = found.partition(b"\n")
        return json.loads(header), own

    def _write(self, header: dict[str, Any], own: bytes) -> None:
        plain = json.dumps({"key": self.key.hex(), **header}).encode() + b"\n" + own
        with explained(self.path):
            write_whole(self.path / self.work.state, plain)

    def _forget(self, but: str = "") -> None:
        for path in pieces(self.path):
            if path.name != but:
                path.unlink(missing_ok=True)

    def _unusable(self, how: str) -> PrivacyError:
        needed = "the file as it was written is needed. Put it back if you can."
        return PrivacyError(f"Found a checkpoint in {self.path} {how}; {needed} {ANEW}")


@contextlib.contextmanager
def opened(given: str | os.PathLike[str], work: Work) -> Iterator[Store]:
    """Open the store in a folder for this process alone; delete the folder after work that left no release."""
    with locked(given, work) as path:
        store = None
        try:
            if not (path / work.state).exists():
                with explained(path):
                    write_through(path / README, ABOUT.format(noun=work.noun, secrets=work.secrets).encode())
            store = Store(path, work)
            yield store
            store.ended = not store.keeps
        finally:
            if (store is not None and store.ended) or not ((path / work.state).exists() or pieces(path)):
                delete(path, work)


@dataclass(frozen=True)
class KeyedFile:
    """File that costs only time if it is missing or damaged. Only what was written under its key is read."""

    path: Path
    key: bytes = field(repr=False)

    def read(self) -> bytes | None:
        """Read the content; None if it is missing, or not as it was written."""
        with contextlib.suppress(Exception):
            found = read_whole(self.path) or b""
            digest, payload = found[:DIGEST], found[DIGEST:]
            return payload if hmac.compare_digest(digest, self._digest(payload)) else None
        return None

    def write(self, payload: bytes) -> None:
        """Replace the content, or raise an OSError."""
        write_whole(self.path, self._digest(payload) + payload)

    def beside(self, name: str) -> KeyedFile:
        """Another file in the same folder."""
        return replace(self, path=self.path.with_name(name))

    def _digest(self, payload: bytes) -> bytes:
        return hmac.digest(self.key, self.path.name.encode() + b"\n" + payload, "sha256")


# --- marks ------------------------------------------------------------------------------------------------------------


def place(libraries: Sequence[str]) -> dict[str, str]:
    """Versions and the kind of processor, on which rounding and generators depend."""
    found = {"sklearn_dpsearch": __version__, "Python": ".".join(platform.python_version_tuple()[:2])}
    for name in libraries:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return {**found, "processor": platform.machine()}


def shown(value: Any) -> str:
    """Text of a value for errors: a short plain value, or its type."""
    return repr(value) if isinstance(value, PLAIN) and len(repr(value)) < 80 else type(value).__name__


def _keyed(key: bytes, text: str) -> str:
    """Keyed digest of a text: without the key, guesses of the text cannot be checked against it."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _described(key: bytes, marks: Marks) -> dict[str, dict[str, tuple[str, str]]]:
    """Digests with texts for errors."""
    return {kind: {name: (_keyed(key, text), said) for name, (text, said) in of.items()} for kind, of in marks.items()}


def _digests(key: bytes, marks: Marks) -> dict[str, dict[str, str]]:
    """Digests alone: texts for errors may show a seed."""
    return {kind: {name: digest for name, (digest, _) in of.items()} for kind, of in _described(key, marks).items()}
