r"""Guarantees for ``replace_one`` neighbours from those for the presence of a record.

To change a record is to remove one and to add another. Between the two data sets x and x' lies z, which holds
neither: x and z are neighbours under ``add_remove`` or ``zero_out``, and so are z and x'. For any real ε₁ + ε₂ = ε

    δ(ε)  ≤  δ_removed(ε₁) + e^{ε₁}·δ_added(ε₂)

(docs/theory/composition.md, "From one relation to another"). The reverse fails: a
guarantee for changed records implies nothing for data sets with a record less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._checks import check_kind, require
from .._types import Array, ArrayLike, Neighboring
from ..numerics.loss_distribution import ROUNDING, DominatingPair, symmetric
from .base import Guarantee, Statement, as_guarantee, discretized
from .composition import Composition, compose
from .pure import BoundedRangeDP, LaplaceDP, PureDP
from .values import DPSGD, ZCDP, GaussianDP, NonPrivate, RenyiDP

#: Points of the profile through which a dominating pair is drawn.
POINTS = 4001
#: Steps of the golden-section search for ε₁, each of which leaves 0.618 of the interval.
STEPS = 50
GOLDEN = 0.5 * (5**0.5 - 1)


def as_replace_one(guarantee: Guarantee | Statement) -> Guarantee:
    """Guarantee for a changed record that follows from one for the presence of a record.

    Pure, bounded-range, Laplace and Gaussian guarantees double, zero-concentrated ones count four times. ``DPSGD``,
    also composed with itself, has its own accounting, which costs less than twice. All others are converted by their
    profile.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        Under ``add_remove`` or ``zero_out``; a guarantee under ``replace_one`` is returned unchanged.

    Returns
    -------
    Guarantee
        Under ``replace_one``. The reverse is impossible: data sets with a record less are no neighbours under
        ``replace_one``.

    Examples
    --------
    >>> as_replace_one(PureDP(epsilon=1.0, neighboring="zero_out"))
    PureDP(neighboring='replace_one', epsilon=2.0)
    """
    found = as_guarantee(guarantee)
    if found.neighboring == "replace_one":
        return found
    if type(found) is Composition and all(type(part) is DPSGD for part in found.parts):
        return compose(*(as_replace_one(part) for part in found.parts))
    return CARRIED_OVER.get(type(found), _by_profile)(found)


@dataclass(frozen=True, kw_only=True)
class ChangedRecord(Guarantee):
    """Guarantee for a changed record, derived only from the guarantee for its presence.

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
        require(self.neighboring == "replace_one", 'neighboring="replace_one"', neighboring=self.neighboring)
        require(
            self.presence.neighboring != "replace_one",
            'presence under "add_remove" or "zero_out"',
            presence=self.presence,
        )

    @property
    def pure_epsilon(self) -> float | None:
        one = self.presence.pure_epsilon
        return None if one is None else 2.0 * one

    @property
    def has_renyi(self) -> bool:
        return self.presence.has_renyi

    def renyi(self, order: ArrayLike) -> Array:
        """Two steps by the weak triangle inequality."""
        return renyi_of_two_steps(self.presence.renyi, np.asarray(order, dtype=float))

    def _pair(self) -> DominatingPair:
        """The pair, equal for both orders, as either record may be the removed one."""
        return symmetric(discretized(partial(delta_of_two_steps, self.presence.pair), number=POINTS))


def delta_of_two_steps(pair: DominatingPair, epsilon: Array) -> Array:
    """min over ε₁ of δ_removed(ε₁) + e^{ε₁}·δ_added(ε − ε₁), rounded up.

    Both terms are convex in e^{ε₁}, the second as the perspective of a convex function. So a golden-section search
    finds the minimum, and every value on its way is a valid bound.
    """

    def bound(first: Array) -> Array:
        value: Array = pair.removed.delta_at(first) + np.exp(first) * pair.added.delta_at(epsilon - first)
        return value

    reach = max(float(np.max(np.abs(part.losses), initial=0.0)) for part in pair.directions)
    low, high = np.full_like(epsilon, -reach), np.full_like(epsilon, reach)
    best = np.minimum(bound(low), bound(high))
    for _ in range(STEPS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = bound(left), bound(right)
        best = np.minimum(best, np.minimum(at_left, at_right))
        low, high = np.where(at_left < at_right, low, left), np.where(at_left < at_right, right, high)
    found: Array = np.minimum(best * (1.0 + ROUNDING), 1.0)
    return found


def renyi_of_two_steps(curve: Callable[[Array], Array], order: Array) -> Array:
    """2α/(2α−1)·ρ(2α−1) + ρ(2α) (Bun & Steinke 2016, section 5: the triangle-like inequality, for two steps)."""
    total: Array = 2 * order / (2 * order - 1) * curve(2 * order - 1) + curve(2 * order)
    return total


def _by_profile(guarantee: Guarantee) -> Guarantee:
    return ChangedRecord(presence=guarantee)


def _times(name: str, factor: float) -> Callable[[Any], Guarantee]:
    """Guarantee of the same kind with a multiple of its parameter (by a power of two: exact)."""
    return lambda found: replace(found, neighboring="replace_one", **{name: factor * getattr(found, name)})


def _same_parameters(guarantee: Any) -> Guarantee:
    return replace(guarantee, neighboring="replace_one")  # type: ignore[no-any-return]


def _renyi(guarantee: Any) -> Guarantee:
    orders = np.unique(np.concatenate([0.5 * guarantee.orders, 0.5 * (guarantee.orders + 1)]))
    orders = orders[orders > 1]
    epsilons = renyi_of_two_steps(guarantee.renyi, orders)
    if not np.any(np.isfinite(epsilons)):  # no known order is far enough from 1
        return ChangedRecord(presence=guarantee)
    return RenyiDP(orders=orders, epsilons=epsilons, neighboring="replace_one")


#: Kinds of guarantees that keep their kind; all others by ``_by_profile``. The parts of a composition are not converted
#: one by one: the composition may be a mere bound (as ``gaussian_target`` is), and its parts would promise too much.
CARRIED_OVER: dict[type[Guarantee], Callable[[Any], Guarantee]] = {
    PureDP: _times("epsilon", 2.0),
    BoundedRangeDP: _times("epsilon", 2.0),
    LaplaceDP: _times("epsilon", 2.0),
    GaussianDP: _times("mu", 2.0),
    ZCDP: _times("rho", 4.0),
    RenyiDP: _renyi,
    DPSGD: _same_parameters,
    NonPrivate: _same_parameters,
}
