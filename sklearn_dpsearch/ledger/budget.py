"""Total cost of entries, and the rest of a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..privacy import (
    BudgetExceededError,
    BudgetUnreachableError,
    GaussianDP,
    Guarantee,
    MissingDeltaError,
    ProfileDP,
    PureDP,
    calibrate,
    compose,
)
from ..privacy._types import Neighboring
from ..privacy.guarantees.composition import Composition
from ..privacy.statement.content import up
from .entry import Entry, check_unit, in_unit, stated_under
from .policy import check_entry, check_risk

#: Precision of the remaining ε, relative to the budget.
TOLERANCE = 1e-4
#: Every decimal number with this many digits is read back from its nearest double, so the double can stand for it.
DIGITS = 15


def relation_of(entries: Sequence[Entry], fixed: Neighboring | None) -> Neighboring | None:
    """The relation of a ledger: its own, or that of its first entry; beside zero_out add_remove means zero_out."""
    if fixed or not entries:
        return fixed
    relations = [entry.guarantee.neighboring for entry in entries]
    return "zero_out" if relations[0] == "add_remove" and "zero_out" in relations else relations[0]


def total_of(entries: Sequence[Entry], relation: Neighboring | None) -> Guarantee:
    """The guarantee of all entries together."""
    if not entries:
        return PureDP(epsilon=0.0, neighboring=relation or "add_remove")
    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))


def epsilon_of(entries: Sequence[Entry], relation: Neighboring | None, delta: float) -> float:
    """ε of all entries at δ; if all are pure, at most the sum of their ε as written."""
    total = total_of(entries, relation)
    found, pure = float(total.epsilon_at(delta)), total.pure_epsilon
    if pure is None or not math.isfinite(pure):
        return found
    return min(found, _as_double(sum((_stated(entry, relation) for entry in entries), Fraction(0))))


def _stated(entry: Entry, relation: Neighboring | None) -> Fraction:
    """ε of a pure entry: the decimal number if its owner declared it, the exact double if it was computed."""
    pure = stated_under(entry.guarantee, relation).pure_epsilon
    assert pure is not None
    return as_written(pure) if entry.is_declared and entry.guarantee.pure_epsilon == pure else Fraction(pure)


def as_written(number: float) -> Fraction:
    """The decimal number that the owner wrote: 0.1 is one tenth, and not the slightly larger double."""
    text = repr(float(number))
    digits = text.partition("e")[0].replace(".", "").lstrip("0")
    return Fraction(text) if len(digits) <= DIGITS else Fraction(number)


def _as_double(exact: Fraction) -> float:
    """The least double that stands for a decimal number of at least this value."""
    nearest = float(exact)
    return nearest if as_written(nearest) >= exact else math.nextafter(nearest, math.inf)


def check(entries: Sequence[Entry], more: Entry, ledger: Any) -> None:
    """Raise if one more entry would exceed a ledger's budget, or cannot be stated under its relation."""
    policy, unit = ledger.policy or {}, ledger._unit(entries) or more.unit
    check_entry(policy, more)
    check_unit(more, unit)
    entries, more = [in_unit(entry, unit) for entry in entries], in_unit(more, unit)
    both = [*entries, more]
    relation = relation_of(both, ledger.neighboring)
    stated_under(more.guarantee, relation)
    check_risk(policy, more, total_of(both, relation))
    if math.isinf(ledger.epsilon):
        return
    total = epsilon_of(both, relation, ledger.delta)
    if total <= ledger.epsilon:
        return
    alone, before = (epsilon_of(part, relation, ledger.delta) for part in ([more], entries))
    raise BudgetExceededError(
        f"Found {more.title}, which costs ε = {up(alone)} alone and ε = {up(total)} together with what was "
        f"spent before (ε = {up(before)}), all at δ = {ledger.delta:g}; at most ε = {ledger.epsilon:g} in total is "
        f"allowed by the ledger {ledger.path!r}. Give a smaller epsilon: ledger.remaining() says how much is left. "
        "No record was used."
    )


def left(spent: Guarantee, epsilon: float, delta: float) -> float:
    """ε at ``delta`` of the largest Gaussian mechanism that still fits into the budget; of a pure one if δ is 0."""
    if math.isinf(epsilon):
        return math.inf
    joined = ProfileDP.from_pair(spent.pair, spent.neighboring)  # composed faster, and costs a trace more
    for base in (joined, spent) if isinstance(spent, Composition) else (spent,):
        largest = _largest(base, epsilon, delta)
        if largest is not None and compose(spent, largest).epsilon_at(delta) <= epsilon:
            return float(largest.epsilon_at(delta))
    return 0.0


def _largest(base: Guarantee, epsilon: float, delta: float) -> Guarantee | None:
    """The largest mechanism that fits beside ``base``, if any: Gaussian, or pure if the budget allows no other."""

    def of_size(size: float) -> Guarantee:
        relation = base.neighboring
        return GaussianDP(mu=size, neighboring=relation) if delta > 0 else PureDP(epsilon=size, neighboring=relation)

    try:
        return of_size(calibrate(lambda size: compose(base, of_size(size)), epsilon, delta, tolerance=TOLERANCE))
    except (BudgetUnreachableError, MissingDeltaError):
        return None
