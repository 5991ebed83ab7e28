"""What entries cost together, and what still fits into a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
from ..privacy.statement.numbers import up
from .entry import Entry, stated_under

#: How closely what is left is worked out, relative to the budget.
TOLERANCE = 1e-4


class Budget(Protocol):
    """What a ledger allows in total."""

    @property
    def path(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a fit would cost on top of what was spent. It is true (``bool``) where that is more than the budget.

    Parameters
    ----------
    spent : float
        ε of all entries so far.
    alone : float
        ε of the fit alone.
    total : float
        ε of both.
    epsilon, delta : float
        The budget; all numbers are at its δ.
    """

    spent: float
    alone: float
    total: float
    epsilon: float
    delta: float

    def __bool__(self) -> bool:
        return self.total > self.epsilon


def relation_of(entries: Sequence[Entry], fixed: Neighboring | None) -> Neighboring | None:
    """The relation of a ledger: its own, or that of its first entry."""
    return fixed or (entries[0].guarantee.neighboring if entries else None)


def total_of(entries: Sequence[Entry], relation: Neighboring | None) -> Guarantee:
    """The guarantee of all entries together."""
    if not entries:
        return PureDP(epsilon=0.0, neighboring=relation or "add_remove")
    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))


def forecast(entries: Sequence[Entry], more: Entry, fixed: Neighboring | None, budget: Budget) -> Forecast:
    """What one more entry would cost."""
    both = [*entries, more]
    relation = relation_of(both, fixed)
    return Forecast(
        spent=total_of(entries, relation).epsilon_at(budget.delta),
        alone=total_of([more], relation).epsilon_at(budget.delta),
        total=total_of(both, relation).epsilon_at(budget.delta),
        epsilon=budget.epsilon,
        delta=budget.delta,
    )


def check(entries: Sequence[Entry], more: Entry, fixed: Neighboring | None, budget: Budget) -> None:
    """Raise where one more entry would cost more than the budget, or cannot be stated under the ledger's relation."""
    both = [*entries, more]
    relation = relation_of(both, fixed)
    stated_under(more.guarantee, relation)
    if math.isinf(budget.epsilon) or total_of(both, relation).epsilon_at(budget.delta) <= budget.epsilon:
        return
    found = forecast(entries, more, fixed, budget)
    error = BudgetExceededError(
        f"Found {more.title}, which costs ε = {up(found.alone)} alone and ε = {up(found.total)} together with what was "
        f"spent before (ε = {up(found.spent)}), all at δ = {budget.delta:g}; at most ε = {budget.epsilon:g} in total "
        f"is allowed by the ledger {budget.path!r}. Give a smaller epsilon: ledger.remaining() says how much is left. "
        "No record was used."
    )
    error.forecast = found
    raise error


def left(
    spent: Guarantee, epsilon: float, delta: float, guarantee_of: Callable[[float], Guarantee] | None = None
) -> float:
    """ε at ``delta`` of the largest further mechanism of a family with which all of it stays within the budget."""
    if math.isinf(epsilon):
        return math.inf
    relation = spent.neighboring
    family = guarantee_of or _family(delta, relation)
    if spent.epsilon_at(delta) >= epsilon:
        return 0.0
    found = (_largest(base, spent, epsilon, delta, family) for base in (_as_one(spent), spent))
    return next((size for size in found if size is not None), 0.0)


def _largest(
    base: Guarantee, spent: Guarantee, epsilon: float, delta: float, family: Callable[[float], Guarantee]
) -> float | None:
    """ε of the largest of a family beside ``base``, if it fits beside ``spent``."""
    try:
        size = calibrate(lambda size: compose(base, family(size)), epsilon, delta, tolerance=TOLERANCE)
    except (BudgetUnreachableError, MissingDeltaError):  # none is small enough
        return None
    more = family(size)
    return more.epsilon_at(delta) if compose(spent, more).epsilon_at(delta) <= epsilon else None


def _as_one(spent: Guarantee) -> Guarantee:
    """Many parts as one, which is composed faster and costs a trace more."""
    return ProfileDP.from_pair(spent.pair, spent.neighboring) if isinstance(spent, Composition) else spent


def _family(delta: float, relation: Neighboring) -> Callable[[float], Guarantee]:
    """Gaussian mechanisms; where nothing but pure ones can be paid for, these."""
    if delta > 0:
        return lambda mu: GaussianDP(mu=mu, neighboring=relation)
    return lambda epsilon: PureDP(epsilon=epsilon, neighboring=relation)
