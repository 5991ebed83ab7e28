r"""Guarantees for other neighbours: changed and blank records, several of one person.

Each pair of new neighbours is the two ends of a chain of old ones. To change a record is to remove
one and to add another; the records of a person leave one by one. For distributions P, R, Q on a
chain, and any real ε₁ + ε₂ = ε,

    δ_PQ(ε)  ≤  δ_PR(ε₁) + e^{ε₁}·δ_RQ(ε₂)

(docs/theory/composition.md, "From one relation to another" and "From one record to one person").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from .._checks import Array, ArrayLike, Neighboring, check_kind, require, require_whole
from .._numerics.arithmetic import float_above
from .._numerics.basic_mechanisms import LARGEST_LOSS
from .._numerics.loss_distribution import ROUNDING, DominatingPair
from .base import Guarantee, Statement, as_guarantee, check_parts, discretize_profiles
from .composition import Composition, compose
from .pure import BoundedRangeDP, LaplaceDP, PureDP
from .single_mechanisms import DPSGD, ZCDP, GaussianDP, NonPrivate, ProfileDP, RenyiDP

#: Points of the profile through which a dominating pair is drawn.
POINTS = 4001
#: Steps of the golden-section search for ε₁, each of which leaves 0.618 of the interval.
STEPS = 50
GOLDEN_RATIO = 0.5 * (5**0.5 - 1)
#: Most records of one person: beyond, every bound is vacuous.
MOST_RECORDS = 10**6
#: Kinds of guarantees that keep their kind on a chain of m steps ↦ parameter, and the power of m
#: that multiplies it. The parts of a composition are not converted one by one: the composition may
#: be a mere bound (as ``gaussian_target`` is), and its parts would promise too much.
MULTIPLIED_PARAMETERS: dict[type[Guarantee], tuple[str, int]] = {
    PureDP: ("epsilon", 1),
    BoundedRangeDP: ("epsilon", 1),
    LaplaceDP: ("epsilon", 1),
    GaussianDP: ("mu", 1),
    ZCDP: ("rho", 2),
}


def _multiply_parameter(guarantee: Guarantee, steps: int) -> Guarantee:
    """Guarantee for a chain of neighbours, by multiplying its parameter."""
    name, power = MULTIPLIED_PARAMETERS[type(guarantee)]
    number = getattr(guarantee, name)
    more = float_above(Fraction(number) * steps**power) if math.isfinite(number) else math.inf
    changed: dict[str, Any] = {name: more}
    return replace(guarantee, **changed)


def delta_of_two_steps(pair: DominatingPair, epsilon: Array) -> Array:
    """Smallest δ_removed(ε₁) + e^{ε₁}·δ_added(ε − ε₁) over ε₁, rounded up.

    Both terms are convex in e^{ε₁}, the second as the perspective of a convex function. So a
    golden-section search finds the minimum, and every value on its way is a valid bound.
    """

    def bound(first: Array) -> Array:
        values = pair.removed.delta_at(first) + np.exp(first) * pair.added.delta_at(epsilon - first)
        return np.asarray(values)

    reach = max(float(np.max(np.abs(part.losses), initial=0.0)) for part in pair.directions)
    low, high = np.full_like(epsilon, -reach), np.full_like(epsilon, reach)
    best = np.minimum(bound(low), bound(high))
    for _ in range(STEPS):
        lower, upper = high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low)
        at_lower, at_upper = bound(lower), bound(upper)
        best = np.minimum(best, np.minimum(at_lower, at_upper))
        low = np.where(at_lower < at_upper, low, lower)
        high = np.where(at_lower < at_upper, upper, high)
    return np.asarray(np.minimum(best * (1.0 + ROUNDING), 1.0))


# --- a changed record -----------------------------------------------------------------------------


def as_replace_one(guarantee: Guarantee | Statement) -> Guarantee:
    """Guarantee for a changed record, from one for its presence.

    Pure, bounded-range, Laplace and Gaussian guarantees double, zero-concentrated ones count four
    times. ``DPSGD``, also composed with itself, has its own accounting, which costs less than
    twice. All others are converted by their profile.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        Under ``add_remove`` or ``zero_out``; a guarantee under ``replace_one`` is returned
        unchanged.

    Returns
    -------
    Guarantee
        Under ``replace_one``. The reverse is impossible: data sets with a record less are no
        neighbours under ``replace_one``.

    Examples
    --------
    >>> as_replace_one(PureDP(epsilon=1.0, neighboring="zero_out"))
    PureDP(neighboring='replace_one', epsilon=2.0)
    """
    presence = as_guarantee(guarantee)
    if presence.neighboring == "replace_one":
        return presence
    if type(presence) is Composition and all(type(part) is DPSGD for part in presence.parts):
        return compose(*(as_replace_one(part) for part in presence.parts))
    if type(presence) in MULTIPLIED_PARAMETERS:
        return replace(_multiply_parameter(presence, 2), neighboring="replace_one")
    if type(presence) in CONVERSIONS:
        return CONVERSIONS[type(presence)](presence)
    return ChangedRecord(presence=presence)


@dataclass(frozen=True, kw_only=True)
class ChangedRecord(Guarantee):
    """Guarantee for a changed record, derived from one for its presence.

    Parameters
    ----------
    presence : Guarantee
        Under ``add_remove`` or ``zero_out``.
    neighboring : {"replace_one"}
    """

    presence: Guarantee
    neighboring: Neighboring = "replace_one"

    def _check(self) -> None:
        check_kind("presence", self.presence, Guarantee, "a guarantee")
        valid = self.neighboring == "replace_one"
        require(valid, 'neighboring="replace_one"', neighboring=self.neighboring)
        valid = self.presence.neighboring != "replace_one"
        require(valid, 'presence under "add_remove" or "zero_out"', presence=self.presence)

    @property
    def pure_epsilon(self) -> float | None:
        epsilon = self.presence.pure_epsilon
        return None if epsilon is None else 2.0 * epsilon

    @property
    def has_renyi(self) -> bool:
        return self.presence.has_renyi

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi curve of two steps, by the weak triangle inequality."""
        return renyi_of_two_steps(self.presence.renyi, np.asarray(order, dtype=float))

    def _pair(self) -> DominatingPair:
        """Dominating pair of two steps, equal for both orders."""
        return discretize_profiles(partial(delta_of_two_steps, self.presence.pair), number=POINTS)


def renyi_of_two_steps(curve: Callable[[Array], Array], order: Array) -> Array:
    """Rényi divergence across two neighbouring steps, from a curve ρ.

    It is 2α/(2α−1)·ρ(2α−1) + ρ(2α) (Bun & Steinke 2016, section 5: the triangle-like inequality,
    for two steps).
    """
    return np.asarray(2 * order / (2 * order - 1) * curve(2 * order - 1) + curve(2 * order))


def _renyi_of_changed_record(guarantee: Any) -> Guarantee:
    """Rényi guarantee for a changed record, from one for its presence."""
    orders = np.unique(np.concatenate([0.5 * guarantee.orders, 0.5 * (guarantee.orders + 1)]))
    orders = orders[orders > 1]
    epsilons = renyi_of_two_steps(guarantee.renyi, orders)
    if not np.any(np.isfinite(epsilons)):  # no known order is far enough from 1
        return ChangedRecord(presence=guarantee)
    return RenyiDP(orders=orders, epsilons=epsilons, neighboring="replace_one")


#: Further kinds of guarantees for changed records.
CONVERSIONS: dict[type[Guarantee], Callable[[Any], Guarantee]] = {
    RenyiDP: _renyi_of_changed_record,
    DPSGD: lambda guarantee: replace(guarantee, neighboring="replace_one"),
    NonPrivate: lambda guarantee: NonPrivate(neighboring="replace_one"),
}


# --- a blank record -------------------------------------------------------------------------------


def as_zero_out(guarantee: Guarantee | Statement) -> Guarantee:
    """Guarantee for a blank record, from one for its presence.

    It holds with the number of records as a public constant, of a mechanism that ignores a blank
    record as it ignores one that is not there (docs/theory/composition.md, "From one relation to
    another"). The numbers are the same.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        Under ``add_remove``; others are returned unchanged.

    Returns
    -------
    Guarantee
        Under ``zero_out``.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> as_zero_out(PureDP(epsilon=1.0))
    PureDP(neighboring='zero_out', epsilon=1.0)
    """
    relabelled: Guarantee = _relabel_as_zero_out(as_guarantee(guarantee))
    return relabelled


def _relabel_as_zero_out(value: Any) -> Any:
    """Replace add_remove by zero_out in guarantees at any depth."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_relabel_as_zero_out, value))
    if not isinstance(value, Guarantee) or value.neighboring != "add_remove":
        return value
    if not is_dataclass(value):
        return ProfileDP.from_pair(value.pair, "zero_out")
    names = [field.name for field in fields(value) if field.init]
    parts = {name: _relabel_as_zero_out(getattr(value, name)) for name in names}
    return replace(value, **{**parts, "neighboring": "zero_out"})


# --- several records of one person ----------------------------------------------------------------


def for_group(guarantee: Guarantee | Statement, records: int) -> Guarantee:
    """Guarantee for a person with several records (group privacy).

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        For one record, under any relation.
    records : int
        The largest number of records of one person, ≥ 1.

    Returns
    -------
    Guarantee
        Under the same relation for persons: up to ``records`` records, all of which leave or all of
        which join (``add_remove``), are replaced by nothing or come in place of nothing
        (``zero_out``), or are changed. Pure, bounded-range, Laplace and Gaussian guarantees are
        multiplied by ``records``, zero-concentrated ones by its square. All others are carried over
        by their profile.

    Notes
    -----
    Apply this function last, to the total. Subsets and batches are drawn record by record, not
    person by person, so ``subset_then_train`` needs guarantees for records.

    Examples
    --------
    >>> for_group(PureDP(epsilon=0.25), 4)
    PureDP(neighboring='add_remove', epsilon=1.0)
    """
    one_record = as_guarantee(guarantee)
    require_whole(1, records=records)
    if records == 1 or isinstance(one_record, NonPrivate):
        return one_record
    if type(one_record) in MULTIPLIED_PARAMETERS:
        return _multiply_parameter(one_record, int(records))
    return OfGroup(one_record=one_record, records=int(records), neighboring=one_record.neighboring)


@dataclass(frozen=True, kw_only=True)
class OfGroup(Guarantee):
    """Guarantee for several records, derived from one for one record.

    Parameters
    ----------
    one_record : Guarantee
    records : int
        ≥ 2.
    """

    one_record: Guarantee
    records: int

    def _check(self) -> None:
        require_whole(2, records=self.records)
        few = self.records <= MOST_RECORDS
        require(few, f"at most {MOST_RECORDS} records", records=self.records)
        check_parts(self, one_record=self.one_record)

    @property
    def pure_epsilon(self) -> float | None:
        epsilon = self.one_record.pure_epsilon
        return None if epsilon is None else float_above(Fraction(epsilon) * self.records)

    def _profile(self, epsilon: Array) -> Array:
        """Smaller of two bounds on δ for a group; profiles never rise, nor beyond all numbers."""
        finite = np.minimum(epsilon, LARGEST_LOSS)
        values = np.minimum(super()._profile(finite), self._equal_steps(finite))
        return self._zero_beyond_largest_loss(epsilon, values)

    def _equal_steps(self, epsilon: Array) -> Array:
        """Bound on δ of a group by equal steps of ε, rounded up.

        The bound is δ(ε/m)·(1 + e^{ε/m} + … + e^{(m−1)ε/m}).
        """
        share = epsilon / self.records * (1.0 - ROUNDING)
        step = np.clip(share, 1e-300, LARGEST_LOSS / self.records)
        growth = np.expm1(self.records * step) / np.expm1(step) * (1.0 + ROUNDING)
        values = np.minimum(self.one_record._profile(share) * growth * (1.0 + ROUNDING), 1.0)
        return np.asarray(values)

    def _pair(self) -> DominatingPair:
        return pair_of_chain(self.one_record.pair, int(self.records))


def pair_of_chain(pair: DominatingPair, steps: int) -> DominatingPair:
    """Dominating pair of both ends of a chain of neighbours."""
    if steps == 1:
        return pair
    half = pair_of_chain(pair, steps // 2)
    joined = pair_of_joined_chains(half, half)
    return joined if steps % 2 == 0 else pair_of_joined_chains(joined, pair)


def pair_of_joined_chains(first: DominatingPair, second: DominatingPair) -> DominatingPair:
    """Dominating pair of the ends of two joined chains of neighbours."""
    pairs = [DominatingPair(first.removed, second.removed)]
    if len(first.directions) == 2 or len(second.directions) == 2:
        pairs.append(DominatingPair(second.added, first.added))
    curves = (partial(delta_of_two_steps, pair) for pair in pairs)
    return discretize_profiles(*curves, number=POINTS)
