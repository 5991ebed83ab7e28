r"""From one record to several records of one person: group privacy.

Between two data sets that differ in the m records of one person lies a chain of m neighbours. For distributions P, R, Q
on such a chain, and any real ε₁ + ε₂ = ε,

    δ_PQ(ε)  ≤  δ_PR(ε₁) + e^{ε₁}·δ_RQ(ε₂)

(docs/theory/composition.md, "From one record to one person"), so halves of the chain are joined, and halves of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from .._checks import plain_number, require
from .._types import Array
from ..numerics.basic_mechanisms import LARGEST_LOSS
from ..numerics.exact_numbers import float_above
from ..numerics.loss_distribution import ROUNDING, DominatingPair, LossDistribution
from .base import Guarantee, Statement, as_guarantee, check_parts, discretized
from .changed_record import delta_of_two_steps
from .pure import BoundedRangeDP, LaplaceDP, PureDP
from .values import ZCDP, GaussianDP, NonPrivate

#: Most records of one person: beyond, every bound is vacuous.
MOST_RECORDS = 10**6
#: Points of the profile through which a dominating pair is drawn.
POINTS = 4001


def for_group(guarantee: Guarantee | Statement, records: int) -> Guarantee:
    """Guarantee for a person with several records, from one for a single record (group privacy).

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        For one record, under any relation.
    records : int
        The largest number of records of one person, ≥ 1.

    Returns
    -------
    Guarantee
        Under the same relation for persons: up to ``records`` records, all of which leave or all of which join
        (``add_remove``), are replaced by nothing or come in place of nothing (``zero_out``), or are changed.
        Pure, bounded-range, Laplace and Gaussian guarantees are multiplied by ``records``, zero-concentrated ones by
        its square. All others are carried over by their profile.

    Notes
    -----
    Apply this function last, to the total. Subsets and batches are drawn record by record, not person by person, so
    ``subset_then_train`` needs guarantees for records.

    Examples
    --------
    >>> for_group(PureDP(epsilon=0.25), 4)
    PureDP(neighboring='add_remove', epsilon=1.0)
    """
    found = as_guarantee(guarantee)
    plain_number("records", records)
    require(float(records).is_integer() and records >= 1, "an integer records >= 1", records=records)
    if records == 1:
        return found
    return MULTIPLIED.get(type(found), _by_profile)(found, int(records))


@dataclass(frozen=True, kw_only=True)
class OfGroup(Guarantee):
    """Guarantee for a person with several records, derived only from the guarantee for one record.

    Parameters
    ----------
    one_record : Guarantee
    records : int
        ≥ 2.
    """

    one_record: Guarantee
    records: int

    def _check(self) -> None:
        whole = float(self.records).is_integer() and 2 <= self.records <= MOST_RECORDS
        require(whole, f"an integer records from 2 to {MOST_RECORDS}", records=self.records)
        check_parts(self, one_record=self.one_record)

    @property
    def pure_epsilon(self) -> float | None:
        one = self.one_record.pure_epsilon
        return None if one is None else _times_above(one, self.records)

    def _profile(self, epsilon: Array) -> Array:
        """The smaller of two bounds: that of the chain, known at points, and equal steps of ε."""
        values = np.minimum(super()._profile(epsilon), self._equal_steps(epsilon))
        return self._none_beyond(epsilon, values)

    def _equal_steps(self, epsilon: Array) -> Array:
        """δ(ε/m)·(1 + e^{ε/m} + … + e^{(m−1)ε/m}), rounded up."""
        each = epsilon / self.records * (1.0 - ROUNDING)
        step = np.clip(each, 1e-300, LARGEST_LOSS / self.records)
        growth = np.expm1(self.records * step) / np.expm1(step) * (1.0 + ROUNDING)
        values: Array = np.minimum(self.one_record._profile(each) * growth * (1.0 + ROUNDING), 1.0)
        return np.where(epsilon > LARGEST_LOSS, 1.0, values)

    def _pair(self) -> DominatingPair:
        return chain(self.one_record.pair, int(self.records))


def chain(pair: DominatingPair, steps: int) -> DominatingPair:
    """The pair of both ends of a chain of ``steps`` neighbours, each with a record less than the one before."""
    if steps == 1:
        return pair
    half = chain(pair, steps // 2)
    both = joined(half, half)
    return both if steps % 2 == 0 else joined(both, pair)


def joined(first: DominatingPair, second: DominatingPair) -> DominatingPair:
    """The pair of the ends of two joined chains."""
    removed = _two_steps(first.removed, second.removed)
    if all(pair.removed is pair.added for pair in (first, second)):
        above = discretized(removed, number=POINTS)
        return DominatingPair(above, above)
    added = _two_steps(second.added, first.added)
    return DominatingPair(discretized(removed, added, POINTS), discretized(added, removed, POINTS))


def _two_steps(first: LossDistribution, second: LossDistribution) -> Callable[[Array], Array]:
    return partial(delta_of_two_steps, DominatingPair(first, second))


def _by_profile(guarantee: Guarantee, records: int) -> Guarantee:
    return OfGroup(one_record=guarantee, records=records, neighboring=guarantee.neighboring)


def _times(name: str, power: int) -> Callable[[Any, int], Guarantee]:
    """Guarantee of the same kind with a multiple of its parameter."""
    return lambda found, records: replace(found, **{name: _times_above(getattr(found, name), records**power)})


def _times_above(number: float, factor: int) -> float:
    """A multiple, rounded up."""
    return float_above(Fraction(number) * factor) if math.isfinite(number) else math.inf


#: Kinds of guarantees that keep their kind; all others by ``_by_profile``. As for changed records, the parts of a
#: composition are not converted one by one, because the composition may be a mere bound.
MULTIPLIED: dict[type[Guarantee], Callable[[Any, int], Guarantee]] = {
    PureDP: _times("epsilon", 1),
    BoundedRangeDP: _times("epsilon", 1),
    LaplaceDP: _times("epsilon", 1),
    GaussianDP: _times("mu", 1),
    ZCDP: _times("rho", 2),
    NonPrivate: lambda found, records: found,
}
