"""By what something that goes on after a crash is known again, without telling what it was."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..privacy import PrivacyError
from .secret_folder import ANEW

#: Kind ↦ name ↦ (keyed digest, what an error shows of it).
Marks: TypeAlias = dict[str, dict[str, tuple[str, str]]]
SHOWN = (bool, int, float, str, type(None))


def keyed(key: bytes, text: str) -> str:
    """A digest under a key: whoever has only the digest cannot try what it may be of."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def shown(value: Any) -> str:
    """A value as an error may show it: short and plain, or its type."""
    return repr(value) if isinstance(value, SHOWN) and len(repr(value)) < 80 else type(value).__name__


def refuse_others(found: Marks, needed: Marks, refusals: Mapping[str, str], folder: Path) -> None:
    """Raise for the first thing that is not as it was.

    Parameters
    ----------
    found, needed : dict
        Of what wants to go on, and of what began.
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
