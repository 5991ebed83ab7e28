"""Combinations of guarantees: composition, averages and upper envelopes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from ...errors import MixedNeighborsError
from .._checks import Array, ArrayLike, as_numbers, check_kind, require
from .._numerics.arithmetic import float_above
from .._numerics.basic_mechanisms import LARGEST_LOSS
from .._numerics.convolution import convolve
from .._numerics.loss_distribution import (
    ROUNDING,
    DominatingPair,
    LossDistribution,
    combine,
    connect_the_dots,
    mix,
)
from .base import Guarantee, Statement, as_guarantee, check_parts, check_same_neighbors
from .pure import PureDP
from .single_mechanisms import ZCDP, ByBothRoutes, GaussianDP, NonPrivate, RenyiDP

#: Guarantees, or statements of them.
Stated: TypeAlias = Sequence[Guarantee] | Sequence[Guarantee | Statement]
#: Losses through which the pair of an envelope is drawn, at most.
MOST_LOSSES = 20_001


def _as_guarantees(guarantees: Stated) -> list[Guarantee]:
    """Guarantees from guarantees and statements, all about one unit."""
    if isinstance(guarantees, Guarantee | Statement):
        raise TypeError(
            f"Found {guarantees!r} alone; several guarantees are needed. Give a list, e.g. "
            f"[{guarantees!r}]."
        )
    units = {part.unit if isinstance(part, Statement) else "record" for part in guarantees}
    if len(units) > 1:
        raise MixedNeighborsError(
            f"Found statements about different units: {', '.join(sorted(units))}; one unit is "
            "needed for all. Combine the statements about records, then call for_group(total, "
            "records)."
        )
    return [as_guarantee(guarantee) for guarantee in guarantees]


def compose(*guarantees: Guarantee | Statement) -> Guarantee:
    """Guarantee of releasing the results of several mechanisms, chosen adaptively.

    Gaussian, zero-concentrated and Rényi guarantees add up in closed form; the rest is convolved
    numerically, and where all parts have a Rényi curve the smaller of both routes is reported.

    Parameters
    ----------
    *guarantees : Guarantee or PrivacySpent
        Of a statement ``search.privacy_spent_`` the total counts.

    Returns
    -------
    Guarantee
        Of all of them together.

    Examples
    --------
    >>> compose(PureDP(epsilon=1.0), PureDP(epsilon=0.5)).epsilon_at(0.0)
    1.5
    >>> compose(GaussianDP(mu=3.0), GaussianDP(mu=4.0))
    GaussianDP(neighboring='add_remove', mu=5.0)
    """
    require(len(guarantees) > 0, "at least one guarantee", number=0)
    stated = _as_guarantees(guarantees)
    check_same_neighbors(stated)
    flat: list[Guarantee] = []
    for guarantee in stated:
        flat += guarantee.parts if isinstance(guarantee, Composition) else (guarantee,)
    if any(isinstance(guarantee, NonPrivate) for guarantee in flat):
        return NonPrivate(neighboring=flat[0].neighboring)
    merged = [part for part in flat if type(part) not in CLOSED_FORMS]
    for kind, add in CLOSED_FORMS.items():
        alike = [part for part in flat if type(part) is kind]
        if len(alike) > 1:
            alike = [kind(**add(alike), neighboring=alike[0].neighboring)]
        merged += alike
    if len(merged) == 1:
        return merged[0]
    return Composition(parts=tuple(merged), neighboring=flat[0].neighboring)


def _sum_of_renyi_curves(parts: Sequence[RenyiDP]) -> dict[str, Any]:
    """Orders and bounds of the sum of Rényi curves."""
    orders = np.unique(np.concatenate([part.orders for part in parts]))
    return {"orders": orders, "epsilons": sum(part.renyi(orders) for part in parts)}


#: Kinds of guarantees ↦ the parameters of a composition of several.
CLOSED_FORMS: dict[type[Guarantee], Callable[[Sequence[Any]], dict[str, Any]]] = {
    GaussianDP: lambda parts: {"mu": math.hypot(*(part.mu for part in parts))},
    ZCDP: lambda parts: {"rho": _sum_rounded_up([part.rho for part in parts])},
    RenyiDP: _sum_of_renyi_curves,
}


def _sum_rounded_up(numbers: Sequence[float]) -> float:
    """Sum of numbers, rounded up."""
    if math.inf in numbers:
        return math.inf
    return float_above(sum(map(Fraction, numbers), Fraction(0)))


@dataclass(frozen=True, kw_only=True)
class _SeveralMechanisms(Guarantee):
    """Guarantee made of several mechanisms, under one relation."""

    parts: tuple[Guarantee, ...]

    def _check(self) -> None:
        check_kind("parts", self.parts, tuple, "a tuple of guarantees")
        require(len(self.parts) > 0, "at least one part", parts=self.parts)
        for part in self.parts:
            check_parts(self, parts=part)

    @property
    def has_renyi(self) -> bool:
        return all(part.has_renyi for part in self.parts)

    def _if_all_pure(self, combine: Callable[[Sequence[float]], float]) -> float | None:
        """Combination of the largest losses; None unless all are known."""
        epsilons = [epsilon for part in self.parts if (epsilon := part.pure_epsilon) is not None]
        return combine(epsilons) if len(epsilons) == len(self.parts) else None


@dataclass(frozen=True, kw_only=True)
class Composition(_SeveralMechanisms, ByBothRoutes):
    """Adaptive composition of several mechanisms."""

    @property
    def pure_epsilon(self) -> float | None:
        return self._if_all_pure(_sum_rounded_up)

    def renyi(self, order: ArrayLike) -> Array:
        """The sum of the parts' curves."""
        return np.asarray(np.sum([part.renyi(order) for part in self.parts], axis=0))

    def _pair(self) -> DominatingPair:
        different = Counter(self.parts)
        pairs, counts = [part.pair for part in different], list(different.values())
        return combine(pairs, lambda plds, _: convolve(plds, counts))


def mixture(guarantees: Stated, weights: Sequence[float]) -> Guarantee:
    """Guarantee of a mechanism drawn from a public distribution, and named.

    The output names the drawn mechanism and the distribution of the draw does not depend on the
    data, so hockey-stick divergences average (docs/theory/composition.md); Rényi divergences of
    order α average as exp((α − 1)·ρ).

    Parameters
    ----------
    guarantees : sequence of Guarantee or PrivacySpent
        One for each mechanism.
    weights : sequence of float
        Probabilities, summing to 1 within 1e-9.

    Returns
    -------
    Guarantee
        Of the mechanism that draws.
    """
    parts, shares = _as_guarantees(guarantees), as_numbers("weights", weights)
    valid = shares.shape == (len(parts),) != (0,)
    require(valid, "as many weights as guarantees", weights=weights, number=len(parts))
    valid = bool(np.all(shares >= 0)) and abs(shares.sum() - 1) < 1e-9
    require(valid, "weights >= 0 with sum 1", total=float(shares.sum()))
    check_same_neighbors(parts)
    total: dict[Guarantee, float] = {}
    for guarantee, share in zip(parts, shares / shares.sum()):
        total[guarantee] = total.get(guarantee, 0.0) + float(share)
    drawn = {guarantee: share for guarantee, share in total.items() if share > 0}
    if len(drawn) == 1:
        return next(iter(drawn))
    relation = parts[0].neighboring
    return Mixture(parts=tuple(drawn), weights=tuple(drawn.values()), neighboring=relation)


@dataclass(frozen=True, kw_only=True)
class Mixture(_SeveralMechanisms):
    """One of several mechanisms, drawn from a public distribution."""

    weights: tuple[float, ...]

    def _check(self) -> None:
        super()._check()
        check_kind("weights", self.weights, tuple, "a tuple of probabilities")
        valid = len(self.weights) == len(self.parts)
        require(valid, "as many weights as parts", weights=len(self.weights))
        for weight in self.weights:
            check_kind("weights", weight, float, "a tuple of floats")
        valid = min(self.weights) > 0 and abs(math.fsum(self.weights) - 1) < 1e-9
        require(valid, "weights > 0 with sum 1", weights=self.weights)

    @property
    def pure_epsilon(self) -> float | None:
        return self._if_all_pure(max)

    def renyi(self, order: ArrayLike) -> Array:
        """log Σ w_i·exp((α − 1)·ρ_i(α)) / (α − 1)."""
        order = np.asarray(order, dtype=float)
        weighted = zip(self.parts, self.weights)
        moments = [np.log(w) + (order - 1) * part.renyi(order) for part, w in weighted]
        return np.asarray(special.logsumexp(moments, axis=0) / (order - 1))

    def _profile(self, epsilon: Array) -> Array:
        return self._average([part._profile(epsilon) for part in self.parts])

    def _far_profile(self, epsilon: Array) -> Array:
        return self._average([part._far_profile(epsilon) for part in self.parts])

    def _average(self, profiles: Sequence[Array]) -> Array:
        """Weighted mean of privacy profiles, rounded up."""
        total = sum(w * values for values, w in zip(profiles, self.weights))
        return np.minimum(total * (1.0 + ROUNDING), 1.0)

    def _pair(self) -> DominatingPair:
        return combine([part.pair for part in self.parts], lambda plds, _: mix(plds, self.weights))


def envelope(guarantees: Stated) -> Guarantee:
    """Guarantee of an unknown one of several mechanisms.

    Its profile is the largest of theirs at each ε.

    Parameters
    ----------
    guarantees : sequence of Guarantee or PrivacySpent
        One for each mechanism.

    Returns
    -------
    Guarantee
        Never better than any of them.
    """
    members = _as_guarantees(guarantees)
    require(len(members) > 0, "at least one guarantee", number=0)
    check_same_neighbors(members)
    different = tuple(dict.fromkeys(members))
    for guarantee in different:
        if isinstance(guarantee, NonPrivate) or len(different) == 1:
            return guarantee
    if all(type(guarantee) is PureDP for guarantee in different):
        return max(different, key=lambda guarantee: guarantee.epsilon)  # type: ignore[attr-defined]
    return Envelope(parts=different, neighboring=members[0].neighboring)


@dataclass(frozen=True, kw_only=True)
class Envelope(_SeveralMechanisms):
    """The worst of several mechanisms at each ε."""

    @property
    def pure_epsilon(self) -> float | None:
        return self._if_all_pure(max)

    def renyi(self, order: ArrayLike) -> Array:
        """The largest of the parts' curves."""
        return np.asarray(np.max([part.renyi(order) for part in self.parts], axis=0))

    def _profile(self, epsilon: Array) -> Array:
        return np.asarray(np.max([part._profile(epsilon) for part in self.parts], axis=0))

    def _far_profile(self, epsilon: Array) -> Array:
        return np.asarray(np.max([part._far_profile(epsilon) for part in self.parts], axis=0))

    def _pair(self) -> DominatingPair:
        return combine([part.pair for part in self.parts], _upper_envelope)


def _upper_envelope(
    plds: Sequence[LossDistribution], reverses: Sequence[LossDistribution]
) -> LossDistribution:
    """Loss distribution through the pointwise maximum of several curves.

    Dots are at the losses that occur; a maximum of convex curves is convex.

    Of very many losses a part is enough, because chords of a convex curve lie above it.
    """
    occurring = np.concatenate([np.abs(pld.losses) for pld in (*plds, *reverses)])
    grid = np.unique(np.append(0.0, np.minimum(occurring, LARGEST_LOSS)))
    if grid.size > MOST_LOSSES:
        grid = grid[np.unique(np.linspace(0, grid.size - 1, MOST_LOSSES).astype(np.intp))]
    delta = np.max([pld.delta_at(grid) for pld in plds], axis=0)
    return connect_the_dots(grid, delta, np.max([pld.delta_at(grid) for pld in reverses], axis=0))
