r"""From the presence of a record to its change: a guarantee carried over to ``replace_one`` neighbours.

A changed record is a record that leaves, and one that comes. Between the two data sets x and x' lies z, which holds
neither: x and z are neighbours under ``add_remove`` or ``zero_out``, and so are z and x'. For any real ε₁ + ε₂ = ε

    δ(ε)  ≤  δ_removed(ε₁) + e^{ε₁}·δ_added(ε₂)

(docs/theory/composition.md, "From one relation to another"). The way back is closed: what is promised for changed
records says nothing about data sets with a record less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._checks import require
from .._types import Array, ArrayLike, Neighboring
from ..numerics.loss_distribution import ROUNDING, DominatingPair, symmetric
from .base import Guarantee, Statement, as_guarantee, dots
from .composition import Composition, compose
from .pure import BoundedRangeDP, LaplaceDP, PureDP
from .values import DPSGD, ZCDP, GaussianDP, NonPrivate, RenyiDP

#: Points of the profile through which a dominating pair is drawn.
POINTS = 4001
#: Steps of the golden-section search for ε₁, each of which leaves 0.618 of the interval.
STEPS = 50
GOLDEN = 0.5 * (5**0.5 - 1)


def as_replace_one(guarantee: Guarantee | Statement) -> Guarantee:
    """What a guarantee for the presence of a record promises if a record is changed.

    Pure, bounded-range, Laplace and Gaussian guarantees double, zero-concentrated ones count four times. ``DPSGD``, and
    several of them composed, have an accounting of their own, which costs less than twice. All others are carried over
    by their profile.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        Under ``add_remove`` or ``zero_out``. One under ``replace_one`` is returned as it is.

    Returns
    -------
    Guarantee
        Under ``replace_one``. There is no way back: a data set with a record less is no neighbour under
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
    """What a mechanism promises for changed records, known only by what it promises for their presence.

    Parameters
    ----------
    presence : Guarantee
        Under ``add_remove`` or ``zero_out``.
    neighboring : {"replace_one"}
    """

    presence: Guarantee
    neighboring: Neighboring = "replace_one"

    def _check(self) -> None:
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
        """Either record may be the one that leaves: the same for both orders."""
        return symmetric(dots(partial(delta_of_two_steps, self.presence.pair), number=POINTS))


def delta_of_two_steps(pair: DominatingPair, epsilon: Array) -> Array:
    """min over ε₁ of δ_removed(ε₁) + e^{ε₁}·δ_added(ε − ε₁), rounded up.

    It is convex in e^{ε₁}: the first term is, and the second is the perspective of a convex function. So a golden-
    section search finds the smallest. Wherever it stops, the value is a bound.
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
    """The same kind of guarantee, with a multiple of its parameter (by a power of two: exact)."""
    return lambda found: replace(found, neighboring="replace_one", **{name: factor * getattr(found, name)})


def _same_parameters(guarantee: Any) -> Guarantee:
    return replace(guarantee, neighboring="replace_one")  # type: ignore[no-any-return]


def _renyi(guarantee: Any) -> Guarantee:
    orders = np.unique(np.concatenate([0.5 * guarantee.orders, 0.5 * (guarantee.orders + 1)]))
    orders = orders[orders > 1]
    epsilons = renyi_of_two_steps(guarantee.renyi, orders)
    if not np.any(np.isfinite(epsilons)):  # no order is known that is far enough from 1
        return ChangedRecord(presence=guarantee)
    return RenyiDP(orders=orders, epsilons=epsilons, neighboring="replace_one")


#: Kinds of guarantees that stay what they are; all others by ``_by_profile``. The parts of a composition are not
#: carried over one by one: it may be no more than a bound (``gaussian_target`` is), and they would promise too much.
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
