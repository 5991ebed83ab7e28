"""Content of a statement: numbers as printed, public facts, one structure for all forms."""

from __future__ import annotations

import math
import platform
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..._version import __version__
from .._checks import Array
from .._guarantees.base import Guarantee
from .._guarantees.risk import TradeOff

#: More digits than any double has on either side of its point.
EXACT_CONTEXT = Context(prec=700)


def up(value: float, digits: int = 3) -> str:
    """Text of a number with some decimals, rounded up.

    Read as a float it is at least ``value``.
    """
    if not math.isfinite(value):
        return "infinity"
    return _decimals_up(Decimal(repr(float(value))), digits)


def _decimals_up(value: Decimal, digits: int) -> str:
    """Text of an exact number with some decimals, rounded up."""
    return format(value.quantize(Decimal(1).scaleb(-digits), ROUND_CEILING, EXACT_CONTEXT), "f")


def hundredths_up(probability: float) -> str:
    """Text of a probability in hundredths with two decimals, rounded up, at most 100."""
    return _decimals_up(min(Decimal(repr(float(probability))).scaleb(2), Decimal(100)), 2)


def percent_up(probability: float) -> str:
    """Text of a probability in per cent with two decimals, rounded up, at most 100."""
    return f"{hundredths_up(probability)} %"


def short_up(value: float, digits: int = 6) -> str:
    """Text of a number in few digits, rounded up.

    A number with no more digits stays as it was given.
    """
    return _rounded_short(value, digits, ROUND_CEILING)


def short_down(value: float, digits: int = 6) -> str:
    """Text of a number in few digits, rounded down."""
    return _rounded_short(value, digits, ROUND_FLOOR)


def _rounded_short(value: float, digits: int, rounding: str) -> str:
    """Text of a number in few digits, rounded in one direction."""
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(repr(float(value))))
    return f"{float(rounded):.{digits}g}"


def json_number(value: float) -> float | None:
    """Number for JSON; None for infinity, which it lacks."""
    return float(value) if math.isfinite(value) else None


@cache
def template(name: str) -> str:
    """Text of the template file of this name, which lies beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


#: Libraries whose versions a statement names, where they are installed.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")


# what is installed later is not what runs; and Python keeps a list of packages for each time that
# they changed
@cache
def version_of(library: str) -> str | None:
    """The version of an installed library, or None."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def versions() -> tuple[tuple[str, str], ...]:
    """Name and version of this library, of those that it computes with, and of Python."""
    installed = [(name, version) for name in LIBRARIES if (version := version_of(name)) is not None]
    return (("sklearn_dpsearch", __version__), *installed, ("Python", platform.python_version()))


@dataclass(frozen=True, kw_only=True)
class Release:
    """Public facts of a release, all known before the data.

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
        Whether all that is drawn follows from a secret that is kept until the release, so that a
        fit may go on.
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
        """Convert the release to plain values, ready for JSON."""
        lists = {"attributes": list(self.attributes), "columns": list(self.columns)}
        return {**asdict(self), **lists, "versions": dict(self.versions)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Release:
        """Rebuild a release from the dictionary of ``to_dict``."""
        lists = {name: tuple(plain.get(name, ())) for name in ("attributes", "columns")}
        return cls(**{**plain, **lists, "versions": tuple(plain["versions"].items())})


#: Headings of a table of facts.
FACTS = ("field", "stated")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Largest true positive rates of any attack, at false positive rates rising from 0 to 1."""

    false_positive_rates: Array
    true_positive_rates: Array

    @classmethod
    def of(cls, trade_off: TradeOff) -> Curve:
        """Build the curve from the corners of a trade-off curve that are far enough apart."""
        alpha, power = trade_off.corners
        low, high = np.append(0.0, alpha[::-1]), np.append(power[-1], power[::-1])
        mirrored = np.stack([1.0 - high[::-1], 1.0 - low[::-1]], axis=1)
        rates = np.concatenate([np.stack([low, high], axis=1), mirrored])
        _, visible = np.unique(np.round(rates, 3), axis=0, return_index=True)
        points = rates[np.sort(np.append(visible, rates.shape[0] - 1))]
        return cls(false_positive_rates=points[:, 0], true_positive_rates=points[:, 1])


@dataclass(frozen=True, eq=False)
class Section:
    """Section of a statement: heading, sentences, table and picture, cleaned.

    Parameters
    ----------
    key : str
        Name of the section in a style sheet.
    title : str
    sentences : tuple of str
        In the order in which they are read.
    listed : bool
        Whether the sentences are points of a list.
    columns : tuple of str
        Headings of a table; the first column names its rows.
    rows : tuple of tuple of str
    curve : Curve, optional
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    listed: bool = False
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    curve: Curve | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentences", tuple(map(clean, self.sentences)))
        object.__setattr__(self, "rows", tuple(tuple(map(clean, row)) for row in self.rows))


@dataclass(frozen=True, eq=False)
class Content:
    """Content of a whole statement, common to all forms.

    The date is written as in 2026-01-31, and numbers are rounded up.
    """

    title: str
    date: str
    sections: tuple[Section, ...]
    epsilon: float
    delta: float
    of_a_ledger: bool


def clean(text: object) -> str:
    """Untrusted text on one line, without control characters or changed reading direction."""
    words = " ".join(str(text).split())
    return "".join(character if character.isprintable() else "�" for character in words)


# --- words: sentences, and mechanisms for people who do not read code -----------------------------

#: Section ↦ name ↦ sentences, some with words to fill in.
SENTENCES: dict[str, Any] = tomllib.loads(template("sentences.toml"))
#: Most different parts that are named.
MOST_PARTS = 4


def _percent(share: float) -> str:
    """Text of a public share in per cent."""
    return f"{100 * share:.4g} %"


#: Fields of guarantees whose text is no number that is rounded up ↦ their text.
FIELDS: dict[str, Callable[[Any], object]] = {
    "count": repr,
    "fraction": _percent,
    "noise_multiplier": short_down,
    "orders": len,
    "share": _percent,
    "stop_probability": "{:.4g}".format,
    "train_on": {"all": "all records", "rest": "the rest"}.get,
}


def in_words(guarantee: Guarantee) -> str:
    """Mechanism of a guarantee in words.

    Losses are rounded up, and noise is rounded down.
    """
    kind = type(guarantee).__name__
    scored = getattr(guarantee, "validate", None) is not None
    words = SENTENCES["mechanism"].get(f"{kind} with scores" if scored else kind)
    if words is None:
        return f"a mechanism with a {kind} guarantee"
    named = [field for field in fields(guarantee) if f"{{{field.name}}}" in words]
    return str(words.format(**{field.name: _field_in_words(guarantee, field) for field in named}))


def _field_in_words(guarantee: Guarantee, field: Field[Any]) -> object:
    """Field of a guarantee in words."""
    value = getattr(guarantee, field.name)
    if field.name in FIELDS:
        return FIELDS[field.name](value)
    if isinstance(value, Guarantee):
        return in_words(value)
    if isinstance(value, tuple):
        return _parts_in_words(value)
    return short_up(value) if field.type == "float" else value


def _parts_in_words(parts: Sequence[Guarantee]) -> str:
    """At most ``MOST_PARTS`` different mechanisms of parts in words, equal ones together."""
    counted = Counter(map(in_words, parts))
    named = [text if number == 1 else f"{number} × ({text})" for text, number in counted.items()]
    more = f"; and {len(named) - MOST_PARTS} more" if len(named) > MOST_PARTS else ""
    return "; ".join(named[:MOST_PARTS]) + more
