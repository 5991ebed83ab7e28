"""Keyed digests that recognise resumed work after a crash without telling what it was."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import PrivacyError
from .secret_folder import ANEW

#: Kind ↦ name ↦ (keyed digest, text for errors).
Marks: TypeAlias = dict[str, dict[str, tuple[str, str]]]
SHOWN = (bool, int, float, str, type(None))


def keyed(key: bytes, text: str) -> str:
    """Keyed digest of a text: without the key, guesses of the text cannot be checked against it."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def shown(value: Any) -> str:
    """Text of a value for errors: a short plain value, or its type."""
    return repr(value) if isinstance(value, SHOWN) and len(repr(value)) < 80 else type(value).__name__


def digests(found: Marks) -> dict[str, dict[str, str]]:
    """Digests without their texts: texts for errors, for example of a seed, are not kept."""
    return {kind: {name: digest for name, (digest, _) in of.items()} for kind, of in found.items()}


def refuse_others(found: Marks, needed: Marks, refusals: Mapping[str, str], folder: Path) -> None:
    """Raise for the first mark that differs.

    Parameters
    ----------
    found, needed : dict
        Marks of the work to resume, and of the work that began.
    refusals : mapping
        Kind ↦ the message, which may name ``name``, ``found``, ``needed`` and ``folder``.
    folder : Path

    Raises
    ------
    PrivacyError
    """
    for kind, mine in found.items():
        theirs = needed.get(kind, {})
        for name in sorted({*mine, *theirs}):
            (one, said), (other, was) = mine.get(name, ("", "nothing")), theirs.get(name, ("", "nothing"))
            if one != other:
                told = {"name": name, "found": said, "needed": was, "folder": folder}
                raise PrivacyError(refusals[kind].format(**told) + ANEW)
