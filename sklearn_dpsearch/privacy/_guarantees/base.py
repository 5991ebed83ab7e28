"""Base classes of guarantees: values with a profile, a Rényi curve and a dominating pair.

Every guarantee answers ``delta_at(epsilon)`` and ``epsilon_at(delta)`` (both rounded up), and knows
the pair of output distributions that dominates it (``pair``); those with a Rényi curve also answer
``renyi(order)``. ``SmallestOf`` has several bounds for one mechanism, by name.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy import optimize

from ...errors import MixedNeighborsError, PrivacyError
from .._checks import Array, ArrayLike, FrozenValue, Neighboring, cached_property, check_kind
from .._numerics import basic_mechanisms
from .._numerics.bisection import bracket, geometric
from .._numerics.loss_distribution import DominatingPair, pair_through
from .._serialization import VERSION, from_plain, part_of_guarantees, short_repr, to_plain
from .risk import Accounted, TradeOff, trade_off

#: Losses beyond it count as infinite where a profile becomes a pair.
LARGEST_EPSILON = basic_mechanisms.LARGEST_LOSS
#: ε beyond which a guarantee is reported as infinite.
FURTHEST_EPSILON = 1e5
#: Some bounds pay only above this δ.
WORTHWHILE_DELTA = 0.02
#: Stand-in for a δ of 0 on a logarithmic scale.
SMALLEST_DELTA = 1e-300
#: Least |log(δ(ε)/δ)|: 0 would end an inversion on a flat part of a profile, and far from its
#: beginning.
FLOOR = 1e-15
#: Least positive double with all its digits.
LEAST_DOUBLE = float(np.finfo(float).tiny)
#: Number of even points at which a costly profile is evaluated first.
EVEN_POINTS = 65
#: Points at which the smallest of several profiles is evaluated in compositions.
ENVELOPE_POINTS = 1000
#: Values of δ at which bounds are compared.
DELTAS = (0.1, 1e-3, 1e-6, 1e-12)
#: Compositions of more parts are long: the ε of a few of them is kept.
MANY_PARTS = 64

#: ε ↦ δ, on arrays.
Profile: TypeAlias = Callable[[Array], Array]


class Statement(Accounted):
    """A statement of privacy cost, which stands for the guarantee of its total."""

    guarantee: Guarantee
    #: Unit of privacy.
    unit: str = "record"

    @property
    def _total(self) -> Guarantee:
        """Guarantee of everything together."""
        return self.guarantee


def as_guarantee(value: object, name: str = "guarantee") -> Guarantee:
    """Guarantee as given, or the total of a ``PrivacySpent``."""
    guarantee = value.guarantee if isinstance(value, Statement) else value
    if isinstance(guarantee, Guarantee):
        return guarantee
    raise TypeError(
        f"Found {value!r} ({type(value).__name__}) as {name}; a guarantee from "
        "sklearn_dpsearch.privacy is needed. Write e.g. PureDP(epsilon=1.0), or give the "
        "privacy_spent_ of what has been fitted."
    )


# of subclasses that are no dataclasses an object equals itself alone
@part_of_guarantees
@dataclass(frozen=True, kw_only=True, eq=False)
class Guarantee(Accounted, FrozenValue):
    """A differential-privacy guarantee under one neighbouring relation.

    Parameters
    ----------
    neighboring : {"add_remove", "zero_out", "replace_one"}
        Neighbouring data sets have one record more or less; one record replaced by nothing in its
        place (n public); one record changed (n public).
    """

    neighboring: Neighboring = "add_remove"

    @cached_property
    def pair(self) -> DominatingPair:
        """Dominating loss distributions, one for each order of the neighbours."""
        return self._pair()

    @abstractmethod
    def _pair(self) -> DominatingPair: ...

    @property
    def pure_epsilon(self) -> float | None:
        """Largest privacy loss if finite and known, else None."""
        return None

    @property
    def has_renyi(self) -> bool:
        """True if ``renyi`` is defined."""
        return type(self).renyi is not Guarantee.renyi

    def renyi(self, order: ArrayLike) -> Array:
        """Bound on the Rényi divergence of each order > 1 (array-like), in nats."""
        raise PrivacyError(f"{type(self).__name__} has no Rényi curve. Use delta_at or epsilon_at.")

    @property
    def _total(self) -> Guarantee:
        return self

    @cached_property
    def _trade_off(self) -> TradeOff:
        """Trade-off curve of the privacy profile."""
        return trade_off(self._delta, self.pure_epsilon)

    def _delta(self, epsilon: Array) -> Array:
        """δ at checked values of ε."""
        values = self._profile(np.minimum(epsilon, 1e6))  # never rises: safe for infinity too
        # an underflow to 0 would claim pure privacy
        return values if self.pure_epsilon is not None else np.maximum(values, LEAST_DOUBLE)

    def _profile(self, epsilon: Array) -> Array:
        """δ at values of ε of at most 1e6, which may underflow."""
        return self._zero_beyond_largest_loss(epsilon, self.pair.delta_at(epsilon))

    def _far_profile(self, epsilon: Array) -> Array:
        """Upper bound of ``_profile`` that skips costly bounds.

        These only pay where δ is above ``WORTHWHILE_DELTA``.
        """
        return self._profile(epsilon)

    def _roughly(self) -> Guarantee:
        """Looser guarantee that is faster to compute, or this one."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        rough = {name: _rough_part(part) for name, part in values.items()}
        changed = {name: part for name, part in rough.items() if part is not values[name]}
        return replace(self, **changed) if changed else self

    def _zero_beyond_largest_loss(self, epsilon: Array, values: Array) -> Array:
        """Set a profile to 0 from the largest loss on, if known.

        Numerics stop a little above 0.
        """
        largest = self.pure_epsilon
        return values if largest is None else np.where(epsilon >= largest, 0.0, values)

    def _epsilon(self, delta: float) -> float:
        """Smallest ε at δ, by inversion of the profile."""
        if delta == 0:
            return np.inf if self.pure_epsilon is None else self.pure_epsilon
        profile = self._far_profile if delta < WORTHWHILE_DELTA else self._profile
        return smallest_epsilon(profile, delta, self.pure_epsilon)

    def _known_epsilon(self, delta: float) -> float:
        """Smallest ε at δ, computed once for equal guarantees.

        Nothing here comes from data.
        """
        try:
            hash(self)
        except TypeError:  # a user's own guarantee with a list in it
            return self._epsilon(delta)
        cached = EPSILONS if len(getattr(self, "parts", ())) <= MANY_PARTS else EPSILONS_OF_MANY
        return float(cached(self, delta))

    def to_dict(self) -> dict[str, Any]:
        """Parameters of this guarantee as plain values ready for JSON.

        ``privacy.from_dict`` rebuilds it.

        Returns
        -------
        dict
            With the ``version`` of its layout, and lossless: every ε and δ is equal to the last
            bit. A profile that is known only as a function cannot be written.
        """
        return {"version": VERSION, **to_plain(self)}


def from_dict(found: Mapping[str, Any]) -> Guarantee:
    """Rebuild a guarantee from the dictionary of its ``to_dict``.

    Parameters
    ----------
    found : dict
        From ``guarantee.to_dict()``, or the entry ``"guarantee"`` of a ``PrivacySpent``'s
        dictionary; also after a round trip through JSON.

    Returns
    -------
    Guarantee
        Equal to the original: every ε and δ agrees to the last bit.

    Raises
    ------
    PrivacyError
        If the dictionary has another layout, or kinds unknown to this version.

    Examples
    --------
    >>> import json
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, best_of
    >>> search = best_of(GaussianDP(mu=0.5), Geometric(10))
    >>> from_dict(json.loads(json.dumps(search.to_dict()))) == search
    True
    """
    guarantee = from_plain(found)
    if not isinstance(guarantee, Guarantee):
        raise PrivacyError(
            f"Found {short_repr(found)}; a guarantee is needed. Give what its to_dict() returned."
        )
    return guarantee


def _rough_part(part: Any) -> Any:
    """Field of a guarantee with rougher guarantees in it."""
    if isinstance(part, Guarantee):
        return part._roughly()
    if not isinstance(part, tuple):
        return part
    rough = tuple(map(_rough_part, part))
    return part if all(map(operator.is_, rough, part)) else rough


@lru_cache(maxsize=128)
def built_once(kind: type[Guarantee], **parts: Any) -> Guarantee:
    """Guarantee of checked parts; one that was built before is not checked again.

    It keeps its computed values.
    """
    return kind(**parts)


def check_same_neighbors(guarantees: Sequence[Guarantee]) -> None:
    """Raise unless guarantees are under one neighbouring relation."""
    relations = {guarantee.neighboring for guarantee in guarantees}
    if len(relations) != 1:
        listed = ", ".join(f"{type(part).__name__}({part.neighboring})" for part in guarantees)
        raise MixedNeighborsError(
            f"Found guarantees under different neighbouring relations: {listed}; one relation is "
            "needed for all. diffprivlib's models hold under replace_one alone, the nets of "
            "sklearn_dpsearch.nets under it with neighboring='replace_one': use parts that share "
            "one (a step with public constants, FunctionTransformer, holds under every one), or "
            "declare guarantee= for the whole. as_replace_one(guarantee) carries one over from "
            "add_remove or zero_out; what is ε-private there is 2ε under replace_one."
        )


def check_parts(guarantee: Guarantee, **parts: object) -> None:
    """Raise unless parts are guarantees under the relation of the whole."""
    for name, part in parts.items():
        needed = "a guarantee from sklearn_dpsearch.privacy, e.g. PureDP(epsilon=1.0),"
        check_kind(name, part, Guarantee, needed)
        assert isinstance(part, Guarantee)
        check_same_neighbors((guarantee, part))


#: ε by guarantee and δ. A ledger asks for a longer composition at each entry, and each would keep
#: all its parts.
EPSILONS, EPSILONS_OF_MANY = (
    lru_cache(size)(lambda guarantee, delta: guarantee._epsilon(delta)) for size in (128, 4)
)


def smallest_epsilon(profile: Profile, delta: float, pure_epsilon: float | None = None) -> float:
    """The least ε with ``profile`` at most ``delta``, rounded up; infinite if there is none."""
    values: dict[float, float] = {}

    def excess(epsilon: float) -> float:
        """log(δ(ε)/δ), on which scale profiles are nearly lines; below 0 where δ(ε) ≤ δ."""
        if epsilon not in values:
            with np.errstate(over="ignore", invalid="ignore"):  # e^ε may leave the range of doubles
                reached = float(profile(np.array([epsilon]))[0])
            positive = max(1.0 if math.isnan(reached) else reached, SMALLEST_DELTA)
            logarithm = math.log(positive) - math.log(delta)
            values[epsilon] = min(logarithm, -FLOOR) if reached <= delta else max(logarithm, FLOOR)
        return values[epsilon]

    start = 1.0 if pure_epsilon is None else min(pure_epsilon, FURTHEST_EPSILON)
    rising = geometric(start, 2.0, FURTHEST_EPSILON)
    turn = bracket(lambda epsilon: excess(epsilon) < 0, start, falling=(0.0,), rising=rising)
    if turn.fails is not None and turn.holds is not None:
        # run for the points that it tries, which ``values`` keeps
        optimize.brentq(excess, turn.fails, turn.holds, xtol=1e-10, rtol=1e-9, disp=False)
    largest = np.inf if pure_epsilon is None else pure_epsilon
    return min((epsilon for epsilon, log_ratio in values.items() if log_ratio < 0), default=largest)


def discretize_profiles(
    *curves: Profile, number: int = 8001, adaptive: bool = False
) -> DominatingPair:
    """Dominating pair through points of profiles known as functions of ε.

    One profile serves both directions, or each has its own.

    The points are even or, of costly profiles, closer together where these fall faster.
    """
    reach = min(max(map(basic_mechanisms.negligible_from, curves)), LARGEST_EPSILON)
    if adaptive:
        # Chords cost alike: one over a gap g, over which a curve falls by a factor of e^{s·g},
        # costs about s·g²/8.
        even = np.linspace(0.0, reach, EVEN_POINTS)
        largest = np.max([curve(even) for curve in curves], axis=0)
        falls = -np.diff(np.log(np.maximum(largest, SMALLEST_DELTA)))
        places = np.append(0.0, np.cumsum(np.sqrt(np.clip(falls, 0.1, 100.0))))
        grid = np.union1d(even, np.interp(np.linspace(0.0, places[-1], number), places, even))
    else:
        grid = reach * np.linspace(0.0, 1.0, number)
    return pair_through(grid, *(np.clip(curve(grid), 0.0, 1.0) for curve in curves))


# --- several bounds for one mechanism -------------------------------------------------------------

#: Name of what is below all bounds of a mechanism: its profile is convex in e^ε.
CHORD = "chord between two bounds"


@dataclass(frozen=True, kw_only=True)
class SmallestOf(Guarantee):
    """A guarantee with several valid ``bounds``: at each ε the smallest counts."""

    #: True if the pair is below every bound, not only the first.
    pair_of_all: ClassVar[bool] = True

    @cached_property
    def bounds(self) -> dict[str, Guarantee]:
        """Every bound that applies, by name."""
        return {name: bound for name, bound in self._bounds().items() if bound is not None}

    @abstractmethod
    def _bounds(self) -> dict[str, Guarantee | None]:
        """Valid bounds by name, the best of equal ones first."""

    def tightest(self, delta: float) -> str:
        """Name of the bound that gives ``epsilon_at(delta)``.

        It is the first of those that agree to a billionth, or ``CHORD`` where a chord between two
        of them is below each.
        """
        values = {name: float(bound.epsilon_at(delta)) for name, bound in self.bounds.items()}
        smallest = min(values.values())
        if self.epsilon_at(delta) < smallest * (1.0 - 2e-9) - 2e-10:
            return CHORD
        close = smallest * (1.0 + 2e-9) + 2e-10
        return next(name for name, value in values.items() if value <= close)

    @property
    def pure_epsilon(self) -> float | None:
        largest = (bound.pure_epsilon for bound in self.bounds.values())
        return min((epsilon for epsilon in largest if epsilon is not None), default=None)

    @property
    def has_renyi(self) -> bool:
        return any(bound.has_renyi for bound in self.bounds.values())

    def renyi(self, order: ArrayLike) -> Array:
        """The smallest of the bounds' Rényi curves."""
        curves = [bound.renyi(order) for bound in self.bounds.values() if bound.has_renyi]
        if not curves:
            raise PrivacyError(
                f"{type(self).__name__} has no Rényi curve here. Use delta_at or epsilon_at."
            )
        return np.asarray(np.min(curves, axis=0))

    def _profile(self, epsilon: Array) -> Array:
        return self._smallest_of(epsilon, (bound._profile for bound in self.bounds.values()))

    def _far_profile(self, epsilon: Array) -> Array:
        return self._smallest_of(epsilon, (bound._far_profile for bound in self.bounds.values()))

    def _smallest_of(self, epsilon: Array, profiles: Iterable[Profile]) -> Array:
        """Smallest of several profiles, with the chords of the pair."""
        values: Array = np.min([profile(epsilon) for profile in profiles], axis=0)
        return np.minimum(values, self.pair.delta_at(epsilon)) if self._bounds_cross else values

    def _epsilon(self, delta: float) -> float:
        smallest = min(bound._epsilon(delta) for bound in self.bounds.values())
        if delta == 0 or not self._bounds_cross:
            return smallest
        return min(smallest, smallest_epsilon(self.pair.delta_at, delta))

    @cached_property
    def _bounds_cross(self) -> bool:
        """True if several bounds are each the smallest somewhere.

        A true profile is convex in e^ε, so it is also below the chords between two bounds. The pair
        has these chords, and this guarantee uses them too: otherwise a composition of the pair
        could seem to lose less.
        """
        compared = self._bounds_of_pair
        if len(compared) == 1:
            return False
        crossed = [bound._known_epsilon(delta) for bound in compared[1:] for delta in DELTAS]
        places = np.unique(np.minimum(crossed, LARGEST_EPSILON))
        values = np.array([bound._profile(places) for bound in compared])
        return not bool(np.any(np.all(values <= values.min(axis=0) * (1.0 + 1e-10), axis=1)))

    @property
    def _bounds_of_pair(self) -> list[Guarantee]:
        """Bounds that make up the dominating pair."""
        bounds = list(self.bounds.values())
        return bounds if self.pair_of_all else bounds[:1]

    def _pair(self) -> DominatingPair:
        bounds = self._bounds_of_pair
        if len(bounds) == 1:
            return bounds[0].pair
        directions = ("removed", "added")[: max(len(bound.pair.directions) for bound in bounds)]

        def curve(direction: str, epsilon: Array) -> Array:
            profiles = [bound._profile(epsilon) for bound in bounds]
            of_pairs = [getattr(bound.pair, direction).delta_at(epsilon) for bound in bounds]
            return np.asarray(np.min(profiles + of_pairs, axis=0))

        curves = (partial(curve, direction) for direction in directions)
        return discretize_profiles(*curves, number=ENVELOPE_POINTS, adaptive=True)
