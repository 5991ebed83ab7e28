"""Entries of a ledger, the total of several, and the rest of a budget."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..errors import BudgetUnreachableError, MixedNeighborsError, PrivacyError
from ..privacy import GaussianDP, Guarantee, LaplaceDP, ProfileDP, PureDP, calibrate, from_dict
from ..privacy._checks import Neighboring
from ..privacy._guarantees.composition import Composition, compose
from ..privacy._guarantees.neighboring_relations import as_replace_one, as_zero_out
from ..privacy._statement.sections import PERSON

#: Number of guarantees whose loss distributions are kept, because computing these is slow.
CACHE_SIZE = 256
#: Precision of the remaining ε, relative to the budget.
TOLERANCE = 1e-4
#: Every decimal number with this many digits is read back from its nearest double, so the double
#: can stand for it.
DIGITS = 15
MANUAL_ENTRY = "by hand"


def today() -> str:
    """Date of today, by UTC.

    A time of day would reveal how long one fit took before the next began.
    """
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Entry of a ledger: the cost announced before a fit.

    Its end, its time and its result are not part of the entry.

    Parameters
    ----------
    name : str
        Class of the model, or of the search, that spends.
    label : str
        The owner's name for it, and the columns that it reads.
    guarantee : Guarantee
        Guarantee of the fit.
    delta : float or None
        The δ of its own statement.
    assumptions : tuple of str
        Assumptions of the guarantee.
    id : str
        Drawn at random.
    day : str
        Day of its begin, by UTC. No time of day: times of two entries would reveal the duration of
        a fit.
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
        """Name of a ledger entry in tables."""
        return f"{self.name}: {self.label}" if self.label else self.name

    @property
    def is_declared(self) -> bool:
        """True if the owner gave the guarantee in numbers, not as a search or a statement."""
        by_hand = self.name == MANUAL_ENTRY and not self.assumptions
        return by_hand and type(self.guarantee) in (PureDP, LaplaceDP)

    def written(self) -> str:
        """Convert a ledger entry to JSON.

        Raises
        ------
        PrivacyError
            If the guarantee would change by writing and reading.
        """
        plain = {"guarantee": self.guarantee.to_dict(), "assumptions": list(self.assumptions)}
        return json.dumps({**vars(self), **plain}, allow_nan=False)


def read_entry(body: str) -> Entry:
    """Read a ledger entry from the text of ``written``."""
    plain: dict[str, Any] = json.loads(body)
    guarantee = _guarantee_of(json.dumps(plain["guarantee"], sort_keys=True))
    return Entry(**{**plain, "guarantee": guarantee, "assumptions": tuple(plain["assumptions"])})


@lru_cache(maxsize=CACHE_SIZE)
def _guarantee_of(text: str) -> Guarantee:
    """Guarantee from JSON, one object for equal ones, which keeps its loss distribution."""
    return from_dict(json.loads(text))


@lru_cache(maxsize=CACHE_SIZE)
def stated_under(guarantee: Guarantee, relation: Neighboring | None) -> Guarantee:
    """Guarantee under the relation of a ledger; None accepts any relation.

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
        f"Found a guarantee under {guarantee.neighboring} for a ledger under {relation}; the same "
        "relation is needed for all entries, and replace_one can be reached from the others. Begin "
        'a ledger with neighboring="replace_one", and enter there what was spent here: '
        'new.spend(old.spent(), label="before").'
    )


def check_unit(entry: Entry, unit: str) -> None:
    """Raise if an entry does not cover the ledger's unit, a record or a person.

    Raises
    ------
    PrivacyError
    """
    if unit != PERSON and entry.unit not in ("record", PERSON):
        raise PrivacyError(
            f"Found a statement whose unit is {entry.unit!r}; one about single records is needed, "
            "as entries of one ledger have one unit. Enter the statement of the fit itself, and "
            "read the total with ledger.spent().for_group(records)."
        )
    if unit == PERSON and entry.unit == "record":
        raise PrivacyError(
            f"Found {entry.title}, whose guarantee is for one record, and a ledger of persons, as "
            "its first entry is; one for persons is needed, as one for a record says nothing about "
            "all records of a person. Fit with groups=, or enter spent.for_group(number) if the "
            "largest number of records of one person is public."
        )


def entry_in_unit(entry: Entry, unit: str) -> Entry:
    """Ledger entry, converted to the ledger's unit.

    A person's guarantee covers a record of his that is replaced.

    A record that is blanked leaves the person's other records, so blanking all of them is no bound
    for it. But both sets of records are two steps apart, from the one to none and from none to the
    other.
    """
    if unit == PERSON or entry.unit != PERSON:
        return entry
    return replace(entry, guarantee=stated_under(entry.guarantee, "replace_one"))


# --- several entries ------------------------------------------------------------------------------


def ledger_relation(entries: Sequence[Entry], fixed: Neighboring | None) -> Neighboring | None:
    """Neighbouring relation of a ledger, its own or of its entries.

    Without its own it has that of its first entry; beside zero_out, add_remove means zero_out.
    """
    if fixed or not entries:
        return fixed
    relations = [entry.guarantee.neighboring for entry in entries]
    return "zero_out" if relations[0] == "add_remove" and "zero_out" in relations else relations[0]


def total_guarantee(entries: Sequence[Entry], relation: Neighboring | None) -> Guarantee:
    """Guarantee of all ledger entries together."""
    if not entries:
        return PureDP(epsilon=0.0, neighboring=relation or "add_remove")
    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))


def total_epsilon(entries: Sequence[Entry], relation: Neighboring | None, delta: float) -> float:
    """ε of all ledger entries together at δ.

    If all are pure, it is at most the sum of their ε as written.
    """
    total = total_guarantee(entries, relation)
    epsilon, pure = float(total.epsilon_at(delta)), total.pure_epsilon
    if pure is None or not math.isfinite(pure):
        return epsilon
    exact = sum((_exact_pure_epsilon(entry, relation) for entry in entries), Fraction(0))
    # or the next double, if no decimal number of at least this sum is read as it
    nearest = float(exact)
    if as_written(nearest) < exact:
        nearest = math.nextafter(nearest, math.inf)
    return min(epsilon, nearest)


def _exact_pure_epsilon(entry: Entry, relation: Neighboring | None) -> Fraction:
    """Exact ε of a pure entry, as a fraction.

    It is the decimal number if its owner declared it, and the exact double if it was computed.
    """
    pure = stated_under(entry.guarantee, relation).pure_epsilon
    assert pure is not None
    if entry.is_declared and entry.guarantee.pure_epsilon == pure:
        return as_written(pure)
    return Fraction(pure)


def as_written(number: float) -> Fraction:
    """Decimal number that an owner wrote, as a fraction.

    0.1 is one tenth, and not the slightly larger double.
    """
    text = repr(float(number))
    digits = text.partition("e")[0].replace(".", "").lstrip("0")
    return Fraction(text) if len(digits) <= DIGITS else Fraction(number)


def epsilon_left(spent: Guarantee, epsilon: float, delta: float) -> float:
    """Largest ε at δ of a Gaussian mechanism, or of a pure one at δ = 0, that still fits."""
    if math.isinf(epsilon):
        return math.inf

    def of_size(size: float) -> Guarantee:
        relation = spent.neighboring
        if delta > 0:
            return GaussianDP(mu=size, neighboring=relation)
        return PureDP(epsilon=size, neighboring=relation)

    # composed faster as one, and costs a trace more
    if delta > 0 and isinstance(spent, Composition):
        spent = ProfileDP.from_pair(spent.pair, spent.neighboring)
    try:
        size = calibrate(
            lambda size: compose(spent, of_size(size)), epsilon, delta, tolerance=TOLERANCE
        )
    except BudgetUnreachableError:
        return 0.0
    return float(of_size(size).epsilon_at(delta))
