"""Public facts of a fit beside its cost, as plain words."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from ..._version import __version__

#: Libraries whose versions a statement names, where they are installed.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")


@cache  # what is installed later is not what runs; and Python keeps a list of packages for each time that they changed
def version_of(library: str) -> str | None:
    """The version of an installed library, or None."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def versions() -> tuple[tuple[str, str], ...]:
    """Name and version of this library, of those that it computes with, and of Python."""
    found = [(name, known) for name in LIBRARIES if (known := version_of(name)) is not None]
    return (("sklearn_dpsearch", __version__), *found, ("Python", platform.python_version()))


@dataclass(frozen=True, kw_only=True)
class Release:
    """Public facts of a release. All are known before the data.

    Parameters
    ----------
    made_by : str
        The class whose ``fit`` it was.
    model : str
        The class of the model that was trained.
    attributes : tuple of str
        Names of what is released.
    tuned : bool
        Whether the choice among candidates is part of the total.
    seeded : bool
        Whether a known seed was used, which is for tests.
    kept : bool
        Whether all that is drawn follows from a secret that is kept until the release, so that a fit may go on.
    versions : tuple of (str, str)
        Libraries that made the release.
    n_samples : int or None
        Number of records, where it counts as public.
    columns : tuple of str
        Names of the schema's columns that are read; empty without a schema.
    target : str or None
        Name of the schema's column that is predicted.
    """

    made_by: str
    model: str
    attributes: tuple[str, ...]
    tuned: bool
    seeded: bool
    kept: bool = False
    versions: tuple[tuple[str, str], ...] = field(default_factory=versions)
    n_samples: int | None = None
    columns: tuple[str, ...] = ()
    target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        lists = {"attributes": list(self.attributes), "columns": list(self.columns)}
        return {**asdict(self), **lists, "versions": dict(self.versions)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Release:
        """The release of which ``to_dict`` made this dictionary."""
        lists = {name: tuple(found.get(name, ())) for name in ("attributes", "columns")}
        return cls(**{**found, **lists, "versions": tuple(found["versions"].items())})
