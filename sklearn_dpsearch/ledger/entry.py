"""One entry of a ledger: a fit or another release, with its guarantee."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ..privacy import (
    Guarantee,
    LaplaceDP,
    MixedNeighborsError,
    PrivacyError,
    PureDP,
    as_replace_one,
    as_zero_out,
    from_dict,
)
from ..privacy._types import Neighboring
from ..privacy.guarantees.base import Statement, as_guarantee
from ..privacy.statement.sections import PERSON

#: Number of guarantees whose loss distributions are kept, because computing these is slow.
KEPT = 256


#: Name of entries made by hand.
BY_HAND = "by hand"


def today() -> str:
    """The day, by UTC. A time of day would reveal how long one fit took before the next began."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Cost announced before a fit. Its end, its time and its result are not part of the entry.

    Parameters
    ----------
    name : str
        Class of the search that spends.
    label : str
        The owner's name for it.
    guarantee : Guarantee
        Guarantee of the fit.
    delta : float or None
        The δ of its own statement.
    assumptions : tuple of str
        Assumptions of the guarantee.
    id : str
        Drawn at random.
    day : str
        Day of its begin, by UTC. No time of day: times of two entries would reveal the duration of a fit.
    library : str
        The version that wrote it.
    unit : str
        Unit of the guarantee, as ``PrivacySpent`` has it.
    """

    name: str
    label: str
    guarantee: Guarantee
    delta: float | None = None
    assumptions: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    day: str = field(default_factory=today)
    library: str = ""
    unit: str = "record"

    @property
    def title(self) -> str:
        """Name of the entry in tables."""
        return f"{self.name}: {self.label}" if self.label else self.name

    @property
    def is_declared(self) -> bool:
        """True if the owner gave the guarantee in numbers, instead of a search or a statement."""
        return self.name == BY_HAND and not self.assumptions and type(self.guarantee) in (PureDP, LaplaceDP)

    def written(self) -> str:
        """JSON of the entry.

        Raises
        ------
        PrivacyError
            If the guarantee would change by writing and reading.
        """
        plain = {**vars(self), "guarantee": self.guarantee.to_dict(), "assumptions": list(self.assumptions)}
        return json.dumps(plain, allow_nan=False)


def read_entry(body: str) -> Entry:
    """Read an entry from the text of ``written``."""
    plain: dict[str, Any] = json.loads(body)
    guarantee = _guarantee_of(json.dumps(plain["guarantee"], sort_keys=True))
    return Entry(**{**plain, "guarantee": guarantee, "assumptions": tuple(plain["assumptions"])})


@lru_cache(maxsize=KEPT)
def _guarantee_of(text: str) -> Guarantee:
    """Guarantee from JSON; equal guarantees are one object, which keeps its computed loss distribution."""
    return from_dict(json.loads(text))


@lru_cache(maxsize=KEPT)
def stated_under(guarantee: Guarantee, relation: Neighboring | None) -> Guarantee:
    """The guarantee under the relation of a ledger; None accepts any relation.

    Raises
    ------
    MixedNeighborsError
        If the guarantee implies nothing under that relation.
    """
    if relation is None or guarantee.neighboring == relation:
        return guarantee
    if relation == "replace_one":
        return as_replace_one(guarantee)
    if relation == "zero_out" and guarantee.neighboring == "add_remove":
        return as_zero_out(guarantee)
    raise MixedNeighborsError(
        f"Found a guarantee under {guarantee.neighboring} for a ledger under {relation}; the same relation is needed "
        "for all entries, and replace_one can be reached from the others. Begin a ledger with "
        'neighboring="replace_one", and enter there what was spent here: new.spend(old.spent(), label="before").'
    )


def check_unit(entry: Entry, unit: str) -> None:
    """Raise if an entry says nothing about the unit of a ledger: a record, or a person.

    Raises
    ------
    PrivacyError
    """
    if unit != PERSON and entry.unit not in ("record", PERSON):
        raise PrivacyError(
            f"Found a statement whose unit is {entry.unit!r}; one about single records is needed, as entries of one "
            "ledger have one unit. Enter the statement of the fit itself, and read the total with "
            "ledger.spent().for_group(records)."
        )
    if unit == PERSON and entry.unit == "record":
        raise PrivacyError(
            f"Found {entry.title}, whose guarantee is for one record, and a ledger of persons, as its first entry is; "
            "one for persons is needed, as one for a record says nothing about all records of a person. Fit with "
            "groups=, or enter spent.for_group(number) if the largest number of records of one person is public."
        )


def in_unit(entry: Entry, unit: str) -> Entry:
    """Entry in a ledger of another unit: a person's guarantee covers a record of his that is replaced.

    A record that is blanked leaves the person's other records, so blanking all of them is no bound for it. But both
    sets of records are two steps apart, from the one to none and from none to the other.
    """
    if unit == PERSON or entry.unit != PERSON:
        return entry
    return replace(entry, guarantee=stated_under(entry.guarantee, "replace_one"))


def guarantee_in(value: Guarantee | Statement) -> Guarantee:
    """The guarantee itself, or that of a statement."""
    if hasattr(value, "privacy_guarantee"):
        raise TypeError(
            f"Found {type(value).__name__}; a guarantee is needed. A search enters itself (ledger=...). Of another "
            "estimator give what a fit promises: ledger.spend(net.privacy_guarantee(n_samples))."
        )
    return as_guarantee(value)
