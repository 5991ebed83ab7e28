"""One entry of a ledger: a fit, or another release, and what it promised before it began."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from ..privacy import Guarantee, MixedNeighborsError, PrivacyError, as_replace_one, from_dict
from ..privacy._types import Neighboring
from ..privacy.guarantees.base import Statement, as_guarantee

#: Different guarantees whose loss distributions are kept: they take much longer than to read them.
KEPT = 256


def today() -> str:
    """The day, by UTC. The time of day would tell how long one fit took before the next began."""
    return datetime.now(timezone.utc).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was about to be spent. Whether the fit came to its end, when, and what came out, is not in it.

    Parameters
    ----------
    name : str
        What spends: the class of a search.
    label : str
        What its owner calls it.
    guarantee : Guarantee
        What it promised.
    delta : float or None
        The δ of its own statement.
    assumptions : tuple of str
        What that rests on.
    id : str
        Drawn at random.
    day : str
        When it began, by UTC. No time of day: that of the next one would tell how long the fit took.
    library : str
        The version that wrote it.
    """

    name: str
    label: str
    guarantee: Guarantee
    delta: float | None = None
    assumptions: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    day: str = field(default_factory=today)
    library: str = ""

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return f"{self.name}: {self.label}" if self.label else self.name

    def written(self) -> str:
        """As JSON.

        Raises
        ------
        PrivacyError
            If the guarantee cannot be written down so that the same one is read again.
        """
        plain = {**vars(self), "guarantee": self.guarantee.to_dict(), "assumptions": list(self.assumptions)}
        return json.dumps(plain, allow_nan=False)


def read_entry(body: str) -> Entry:
    """The entry of which ``written`` made this text."""
    plain: dict[str, Any] = json.loads(body)
    guarantee = _guarantee_of(json.dumps(plain["guarantee"], sort_keys=True))
    return Entry(**{**plain, "guarantee": guarantee, "assumptions": tuple(plain["assumptions"])})


@lru_cache(maxsize=KEPT)
def _guarantee_of(text: str) -> Guarantee:
    """Equal ones are one object, which keeps the loss distribution that was computed for it."""
    return from_dict(json.loads(text))


@lru_cache(maxsize=KEPT)
def _for_changed(guarantee: Guarantee) -> Guarantee:
    return as_replace_one(guarantee)


def stated_under(guarantee: Guarantee, relation: Neighboring | None) -> Guarantee:
    """The guarantee under the relation of a ledger; None takes any.

    Raises
    ------
    MixedNeighborsError
        If it says nothing under that relation.
    """
    if relation is None or guarantee.neighboring == relation:
        return guarantee
    if relation == "replace_one":
        return _for_changed(guarantee)
    raise MixedNeighborsError(
        f"Found a guarantee under {guarantee.neighboring} for a ledger under {relation}; the same relation is needed "
        "for all entries, and only replace_one can be reached from the others. Begin a ledger with "
        'neighboring="replace_one", and enter there what was spent here: new.spend(old.spent(), label="before").'
    )


def for_records(value: Guarantee | Statement) -> Guarantee:
    """The guarantee of a value or of a statement, which must be about single records.

    Raises
    ------
    PrivacyError
        If it is about persons.
    """
    if isinstance(value, Statement) and value.unit != "record":
        raise PrivacyError(
            f"Found a statement whose unit is {value.unit!r}; one about single records is needed, as entries of one "
            "ledger have one unit. Enter the statement of the fit itself, and read the total with "
            "ledger.spent().for_person(records)."
        )
    if hasattr(value, "privacy_guarantee"):
        raise TypeError(
            f"Found {type(value).__name__}; a guarantee is needed. A search enters itself (ledger=...). Of another "
            "estimator give what a fit promises: ledger.spend(net.privacy_guarantee(n_samples))."
        )
    return as_guarantee(value)
