r"""Theorem 6: prices on places in the order, for distributions of K with light tails.

Theorem 1 lets every outcome take the best place in the order, although few fit there. Fix a slope
σ. An outcome with the likelihood ratio X takes up the room w = (σ − 1/X)₊, and Z = E w is the total
room. If outcomes with the room ξ are below a place (q, q') of the order, then q' ≥ max(q_min(q),
σ·q − ξ). So with any price λ(ξ) ≥ 0

    δ(ε) ≤ ∫ λ dξ + E_{L~P} [ max over (q, ξ) of f'(q) − e^{ε−L}·f'(max(q_min(q), σ·q − ξ)) − w·λ(ξ)
    ]₊ .

Outcomes with X ≤ 1/σ take up no such room; they pay for q itself (docs/theory/prices.md). Good
prices follow from the best assignment of places to outcomes; bad prices cost tightness, never
correctness.

The bound is computed at a few ε; between them are chords, as profiles are convex in e^ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from .._checks import cached_property
from .._types import Array
from ..count_distributions.base import Capped, Conditioned, CountDistribution
from ..count_distributions.distributions import Binomial, Fixed, FromPMF, Poisson
from ..guarantees.base import smallest_epsilon
from ..numerics.arithmetic import safe_exp
from ..numerics.basic_mechanisms import LARGEST_LOSS
from ..numerics.loss_distribution import ROUNDING, LossDistribution, normalized
from .testing_region import SLACK, Hinges, Nodes, composed, lower_edge

#: Cells of q, cells of room, and losses at which the largest gain is computed.
QUANTILES, ROOMS, LOSSES = 200, 80, 80
#: Gains below the largest by more than this (in nats) need no digits.
RANGE = 40.0
#: Slopes tried: those of the testing region with this much probability above, and the number of
#: refinements.
SHARES, FINER = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4), 2


# --- parts independent of ε -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ground:
    """Slopes of K and one run's pair on a grid of quantiles q."""

    pld: LossDistribution
    count: CountDistribution
    free: Hinges

    @classmethod
    def of(cls, pld: LossDistribution, count: CountDistribution, free: Hinges) -> Ground:
        """Build from a loss distribution, normalized to masses of 1.

        Prices need probabilities. ``free`` is φ of Theorem 1.
        """
        return cls(normalized(pld), count, free)

    def unpriced(self, epsilon: Array) -> Array:
        """δ(ε) of Theorem 1, without prices."""
        return self.free.delta_at(self.pld, epsilon)

    @cached_property
    def grid(self) -> Nodes:
        """Quantiles q from 0 to 1, closer where f' rises."""
        u = np.append(0.0, np.geomspace(1e-9, 1.0, 4000))
        rise = self.count.log_slope(1.0 - u, u)
        steps = np.minimum(rise[0] - rise, RANGE) + 0.02 * np.log(np.maximum(u, 1e-9) / 1e-9)
        few = np.interp(np.linspace(0.0, steps[-1], QUANTILES), steps, u)
        few = np.unique(np.append(few, [0.0, 1.0]))[::-1]
        return Nodes(1.0 - few, few)

    def losses_above(self, shares: Array) -> Array:
        """Losses that are exceeded with given probabilities.

        −log of the slope of the testing region there.
        """
        at = np.searchsorted(self.pld.from_below[0], shares) - 1
        return self.pld.losses[np.minimum(at, self.pld.losses.size - 1)]

    @cached_property
    def middle(self) -> Nodes:
        """Middle of each cell of quantiles."""
        grid = self.grid
        return Nodes(0.5 * (grid.q[1:] + grid.q[:-1]), 0.5 * (grid.u[1:] + grid.u[:-1]))

    @cached_property
    def ours(self) -> Array:
        """Slope f'(q) at the grid, rounded up."""
        return np.asarray(np.exp(self.count.log_slope(self.grid.q, self.grid.u)) * (1.0 + SLACK))

    @cached_property
    def edge(self) -> Array:
        """Complement 1 − q_min in the middle of each cell."""
        return lower_edge(self.pld, self.middle)[0].u

    @cached_property
    def edge_ends(self) -> Array:
        """Slope f'(q_min(q)) at both ends of each cell, rounded down.

        By a line that is below it inside.
        """
        point, slope = lower_edge(self.pld, self.middle)
        value, growth = composed(self.count, point, slope)
        starts = Nodes(self.grid.q[:-1], self.grid.u[:-1])
        least, _ = composed(self.count, lower_edge(self.pld, starts)[0], slope)
        return _below_tangent(value[:, None], growth[:, None] * self.to_ends, least[:, None])

    @cached_property
    def edge_falls(self) -> Array:
        """Slope f'(q_min(q)) at the grid, rounded down.

        By both lines that meet there.
        """
        starts, ends = self.edge_ends.T
        return np.asarray(np.minimum(np.append(starts, np.inf), np.append(np.inf, ends)))

    @cached_property
    def to_ends(self) -> Array:
        """Distances from the middle of each cell to its ends."""
        return np.asarray(0.5 * np.diff(self.grid.u)[:, None] * np.array([1.0, -1.0]))

    @cached_property
    def ours_at_ends(self) -> Array:
        """Slope f'(q) at both ends of each cell, rounded up."""
        return np.stack([self.ours[:-1], self.ours[1:]], axis=1)


def _below_tangent(value: Array, changes: Array, least: Array) -> Array:
    """Tangent of a convex, rising function, rounded down.

    value + changes.

    If the tangent falls to 0 within the cell, the least value in the cell is used.
    """
    falls = np.min(changes, axis=-1, keepdims=True) < -0.9 * value
    return np.asarray(
        np.where(falls, least * (1.0 - SLACK), value + changes - SLACK * (value + np.abs(changes)))
    )


@dataclass(frozen=True, eq=False)
class Room:
    """Room that outcomes take up in the order, for one slope σ.

    ``above`` stands for Z − ξ.
    """

    ground: Ground
    slope: float

    @cached_property
    def inverse(self) -> Array:
        """Inverse likelihood ratios 1/X of all outcomes.

        Of all finite losses, by rising X, and 0 for the infinite ones.
        """
        return np.append(safe_exp(-self.ground.pld.losses), 0.0)

    @cached_property
    def masses(self) -> Array:
        """Probabilities of all outcomes, the infinite losses last."""
        return np.append(self.ground.pld.masses, self.ground.pld.infinity)

    @cached_property
    def taken(self) -> Array:
        """Room taken by the outcomes from each on.

        j = 0 … n.
        """
        widths = np.maximum(self.slope - self.inverse, 0.0) * self.masses
        return np.asarray(np.cumsum(widths[::-1])[::-1] * (1.0 + ROUNDING))

    @property
    def whole(self) -> float:
        """Total room Z of all outcomes."""
        return float(self.taken[0])

    @cached_property
    def beyond(self) -> float:
        """Largest excess of 1 − q' over σ·(1 − q), less the room above.

        E (1/X − σ)₊ = Z + 1 − σ.
        """
        low = float(np.maximum(self.inverse - self.slope, 0.0) @ self.masses)
        return (low + float(self.ground.pld.minus_infinity or 0.0)) * (1.0 + ROUNDING) + 1e-15

    def inverse_at(self, above: Array) -> Array:
        """Inverse likelihood ratio of the outcome with a given room above.

        In the best order: by rising ratio.
        """
        at = np.searchsorted(-self.taken, -above) - 1
        return np.minimum(self.inverse[np.clip(at, 0, self.inverse.size - 1)], self.slope)


# --- outcomes that take up room -------------------------------------------------------------------


def pilot_gains(room: Room, c: float) -> tuple[Array, Array, float]:
    """Estimated gains of outcomes at some amounts of room.

    The amounts above, the gains there of outcomes by rising ratio, and the sum of all gains.

    The estimate uses f' on the grid alone.
    """
    ground, above = room.ground, np.append(0.0, np.geomspace(1e-5 * room.whole, room.whole, 80))
    edge, _ = lower_edge(ground.pld, ground.grid)
    v = np.minimum(edge.u, room.slope * ground.grid.u + room.beyond - above[:, None])
    theirs = np.exp(ground.count.log_slope(1.0 - np.maximum(v, 0.0), np.maximum(v, 0.0)))
    inverse = room.inverse_at(np.maximum(above, above[1]))
    gain = np.maximum(
        np.max(np.where(v >= 0, ground.ours - (c * inverse)[:, None] * theirs, 0.0), axis=1), 0.0
    )
    return above, gain, _integral_of_prices(gain / np.maximum(room.slope - inverse, 1e-9), above)


def room_places(room: Room, c: float) -> Array:
    """Amounts of room at which prices are made, closer where gains are."""
    above, gain, _ = pilot_gains(room, c)
    fall = np.log(max(gain[0], 1e-300)) - np.log(np.maximum(gain, 1e-300))
    fall = np.maximum.accumulate(np.clip(fall, 0.0, RANGE))
    steps = (
        -np.expm1(-fall / 4.0) + 0.02 * fall + 0.01 * np.log(np.maximum(above, above[1]) / above[1])
    )
    return np.unique(
        np.append(np.interp(np.linspace(0.0, steps[-1], ROOMS), steps, above), [0.0, room.whole])
    )


@dataclass(frozen=True, eq=False)
class Gains:
    """Largest gains of outcomes at every place, as lines in 1/X.

    height − c/X·fall: [side, cell of room, cell and end of q].

    On a cell f' lies below its chord, and f'(max(q_min(q), σ·q − ξ)), which is convex, above its
    tangent plane in the middle. Both are linear, so the largest gain less the price is at a corner.
    """

    room: Room
    c: float

    @cached_property
    def above(self) -> Array:
        """Amounts of room above, at the ends of cells."""
        return room_places(self.room, self.c)

    @cached_property
    def falls(self) -> Array:
        """Falls of the lines of gains.

        [side, cell of room, cell and end of q].
        """
        room, ground = self.room, self.room.ground
        shape = (self.above.size - 1, ground.middle.u.size)
        v = (
            room.slope * ground.middle.u
            + room.beyond
            - 0.5 * (self.above[1:] + self.above[:-1])[:, None]
        )
        wide = 0.5 * np.diff(self.above)[:, None, None, None] * np.array([[-1.0], [1.0]])
        moves = (room.slope * ground.to_ends[:, None, :] + wide).reshape(*shape, 4)
        inside = np.clip(v, 0.0, 1.0)
        value, growth = self._tangent(inside)
        least, _ = self._tangent(np.clip(v - np.min(moves, axis=2), 0.0, 1.0))
        changes = growth[..., None] * (moves + (inside - v)[..., None])
        by_line = _below_tangent(value[..., None], changes, least[..., None])
        edges = np.tile(ground.edge_ends, 2)
        both = np.where((v < ground.edge)[..., None], by_line, edges).reshape(*shape, 2, 2)
        return np.moveaxis(both, 2, 0).reshape(2, shape[0], -1)

    def _tangent(self, v: Array) -> tuple[Array, Array]:
        """Slope f' and curvature f'' at 1 − v."""
        count = self.room.ground.count
        return np.exp(count.log_slope(1.0 - v, v)), np.exp(count.log_curvature(1.0 - v, v))

    def at_own_ends(self, inverse: Array) -> tuple[Array, Array]:
        """Largest gains at both ends of each cell of room.

        For one 1/X in each cell.
        """
        heights, z = self.room.ground.ours_at_ends.ravel(), (self.c * inverse)[:, None]
        near, far = self.falls
        first, last = (np.max(heights - z * one, axis=1) for one in (near, far))
        before = np.max(heights - z[1:] * far[:-1], axis=1)
        after = np.max(heights - z[:-1] * near[1:], axis=1)
        return np.maximum(first, np.append(0.0, before)), np.maximum(last, np.append(after, 0.0))

    def left(self, prices: Array) -> tuple[Array, Array]:
        """Gains that prices leave, at some values of 1/X.

        One price for each place.
        """
        slope, samples = self.room.slope, _inverse_ratios(self.room.inverse, self.room.slope)
        paid = np.stack([prices[:-1], prices[1:]])[..., None]
        height, fall = (
            self.room.ground.ours_at_ends.ravel() - slope * paid,
            self.c * self.falls - paid,
        )
        # elsewhere 0 is larger
        wins = np.maximum(height - samples[0] * fall, height - samples[-1] * fall) > 0
        height, fall = height[wins], fall[wins]
        return samples, np.array([np.max(height - z * fall, initial=0.0) for z in samples])


@dataclass(frozen=True, eq=False)
class Priced:
    """Prices paid, and the gain they leave at some 1/X.

    It is the largest of lines, so below its chords.
    """

    paid: float
    samples: Array
    left: Array

    def at(self, inverse: Array) -> Array:
        """Gain left of each outcome; infinite where unknown."""
        known = np.interp(inverse, self.samples, np.maximum(self.left, 0.0))
        return np.where((inverse >= self.samples[0]) & (inverse <= self.samples[-1]), known, np.inf)


def price_room(room: Room, c: float) -> Priced:
    """Prices λ(ξ) for outcomes that take up room."""
    gains = Gains(room, c)
    above = gains.above
    inverse = room.inverse_at(0.5 * (above[1:] + above[:-1]))
    near, far = (np.maximum(one, 0.0) for one in gains.at_own_ends(inverse))
    prices = np.append(
        _nonnegative_sums(((near - far) / np.maximum(room.slope - inverse, 1e-9))[::-1])[::-1], 0.0
    )
    return Priced(_integral_of_prices(prices, above), *gains.left(prices))


def _nonnegative_sums(steps: Array) -> Array:
    """Running sums that never fall below 0."""
    total, found = 0.0, np.empty(steps.size)
    for i, step in enumerate(steps.tolist()):
        found[i] = total = max(total + step, 0.0)
    return found


def _integral_of_prices(prices: Array, room_places: Array) -> float:
    """Integral of prices that are linear between places."""
    return float(np.sum(0.5 * (prices[1:] + prices[:-1]) * np.abs(np.diff(room_places))))


def _inverse_ratios(inverse: Array, slope: float) -> Array:
    """Sampled inverse likelihood ratios 1/X up to the slope.

    Rising values > 0: all if there are few, else more near the slope, where gains rise.
    """
    inside = inverse[(inverse > 0) & (inverse < slope)]
    if inside.size <= LOSSES:
        return np.unique(np.append(inside, slope))
    even = np.geomspace(np.min(inside), slope, LOSSES)
    close = slope * (1.0 - np.geomspace(1e-3, 0.2, LOSSES // 4))
    return np.unique(np.append(even, close))


# --- all others -----------------------------------------------------------------------------------


def price_quantiles(room: Room, c: float) -> Priced:
    """Prices λ(q) for outcomes of low likelihood ratio."""
    ground, fall = room.ground, c * room.ground.edge_falls
    prices, paid = prices_of_quantiles(room, c)
    samples = _inverse_ratios_from(room, 0.5 * room.slope)
    left = np.array([np.max(ground.ours - prices - z * fall) for z in samples])
    return Priced(paid, samples, left)


def prices_of_quantiles(room: Room, c: float) -> tuple[Array, float]:
    """Prices at the grid of quantiles, and their integral.

    What is gained if outcomes come by rising ratio, from the best q down.
    """
    ground, u, chosen = room.ground, room.ground.grid.u, room.inverse >= room.slope
    if not np.any(chosen):
        return np.zeros(u.size), 0.0
    inverse, behind = room.inverse[chosen][::-1], np.cumsum(room.masses[chosen][::-1])
    # what is above the middle of each cell, less what starts are above
    middle = ground.middle.u - u[::8, None]
    z = inverse[np.clip(np.searchsorted(behind, middle), 0, inverse.size - 1)]
    gain = [
        np.maximum(ground.ours[side] - c * z * ground.edge_falls[side], 0.0)
        for side in (_LOW, _HIGH)
    ]
    served = middle < behind[-1]
    total = np.sum(np.where(served & (middle > 0), gain[0] + gain[1], 0.0) * -np.diff(u), axis=1)
    best = int(np.argmax(total))
    prices = np.append(0.0, _nonnegative_sums(np.where(served, gain[1] - gain[0], 0.0)[best]))
    return prices, _integral_of_prices(prices, u)


_LOW, _HIGH = slice(None, -1), slice(1, None)


def _inverse_ratios_from(room: Room, start: float) -> Array:
    """Sampled inverse likelihood ratios 1/X above a start."""
    inside = room.inverse[room.inverse > start]
    if inside.size <= LOSSES:
        return np.unique(inside) if inside.size else np.array([start])
    far = float(np.max(inside))
    return np.unique(np.append(np.geomspace(start, min(far, 20.0 * start), LOSSES), far))


# --- together -------------------------------------------------------------------------------------


def bound_by_prices(room: Room, epsilon: float) -> float:
    """Bound on δ(ε) by prices for this ε and slope, rounded up."""
    c = float(np.exp(epsilon))
    first = [price_room(room, c)] if room.whole > 0 else []
    return total(room, c, *first, price_quantiles(room, c))


def total(room: Room, c: float, *ways: Priced) -> float:
    """Bound on δ(ε): all prices paid, and the gains left.

    Each outcome pays in one of these ways, or pays nothing and takes the best place, as in Theorem
    1.
    """
    free = hinges_at(room.ground.free, c * room.inverse)
    left = np.min([free, *(way.at(room.inverse) for way in ways)], axis=0)
    found = (sum(way.paid for way in ways) + float(room.masses @ left)) * (1.0 + SLACK)
    return min(found, 1.0) if np.isfinite(found) else 1.0


def hinges_at(hinges: Hinges, z: Array) -> Array:
    """Value φ(z) of a sum of hinges for z ≥ 0, rounded up."""
    order = np.argsort(hinges.ends)
    ends, weights = hinges.ends[order], hinges.weights[order]
    falling = (ends > 0) & np.isfinite(ends)  # a hinge that ends at 0 counts at z = 0 alone
    drops = np.where(falling, weights / np.where(falling, ends, 1.0), 0.0)
    beyond = np.where(z > 0, np.searchsorted(ends, z, side="right"), 0)
    height, fall = (np.append(np.cumsum(one[::-1])[::-1], 0.0)[beyond] for one in (weights, drops))
    return np.asarray(np.maximum(height * (1.0 + SLACK) - z * fall * (1.0 - SLACK), 0.0))


def best_room(ground: Ground, epsilon: float) -> Room:
    """Room of the slope with the least estimated bound."""
    c, known = float(np.exp(epsilon)), {}

    def estimate(log_slope: float) -> float:
        if log_slope not in known:
            room = Room(ground, float(np.exp(log_slope)))
            known[log_slope] = (
                pilot_gains(room, c)[2] + prices_of_quantiles(room, c)[1]
                if room.whole > 0
                else np.inf
            )
        return known[log_slope]

    tried = np.unique(-ground.losses_above(np.array(SHARES)))
    for _ in range(FINER):
        best = int(np.argmin([estimate(float(one)) for one in tried]))
        around = tried[max(best - 1, 0) : best + 2]
        tried = np.sort(np.append(around, 0.5 * (around[1:] + around[:-1])))
    return Room(ground, float(np.exp(min(known, key=estimate))))


#: Distributions of K for which Theorem 1 loses much if there are many runs.
LIGHT = (Poisson, Binomial, Fixed, FromPMF)
#: The bound is computed where Theorem 1 reaches e^{−k·STEP}, for k from FIRST to LAST.
STEP, FIRST, LAST = 0.25, 4, 128
#: Number of k that share one slope.
SHARED = 4
#: k ↦ factor on δ from which prices are worth their time: in a pair, and (a stronger factor)
#: everywhere.
PAIR, EVERYWHERE = {28: 0.75, 56: 0.75}, {56: 0.6}
#: At these k prices are tested; they gain if the bound is below this share of δ.
ENDS, NOTHING = range(16, LAST, 16), 0.98
#: Least mean of K: below, Theorem 1 is within 0.3 % of a certificate.
FEWEST = 8.0


def light_tailed(count: CountDistribution) -> bool:
    """Return whether prices may pay for this distribution of K.

    Many runs, and a tail no heavier than a Poisson's.
    """
    mean = count.mean
    while isinstance(count, (Capped, Conditioned)):
        count = count.distribution
    return isinstance(count, LIGHT) and mean >= FEWEST


class Anchors:
    """Bounds on δ by prices at a few ε, computed on first use.

    For one direction. Theorem 1 determines the ε.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        #: k ↦ ε at which Theorem 1 reaches δ = e^{−k·STEP}, in this direction.
        self.epsilon = cache(lambda k: smallest_epsilon(ground.unpriced, math.exp(-k * STEP)))
        self._room = cache(lambda k: best_room(ground, self.epsilon(k)))
        self._priced = cache(self._bound)

    def delta(self, k: int) -> float:
        """Bound on δ at the k-th ε, 1 if there is none."""
        if k < FIRST or k > LAST or not self.epsilon(k) <= LARGEST_LOSS:
            return 1.0
        return self._priced(k) if k < self.end else math.exp(-k * STEP)

    def _bound(self, k: int) -> float:
        """Bound on δ by prices at the k-th ε, with a shared slope.

        That of the first of SHARED k; where it gains nothing it may be a bad one: then that of the
        one before.
        """
        unpriced, first = math.exp(-k * STEP), SHARED * (k // SHARED)
        found = bound_by_prices(self._room(first), self.epsilon(k))
        if found > NOTHING * unpriced:
            found = bound_by_prices(self._room(first - SHARED), self.epsilon(k))
        return min(found, unpriced)

    @cached_property
    def end(self) -> int:
        """First k at which prices gain nothing.

        From there Theorem 1 serves: prices gain less at smaller δ.
        """
        seen = (k for k in ENDS if self.epsilon(k) <= LARGEST_LOSS)
        return next((k for k in seen if self._priced(k) > NOTHING * math.exp(-k * STEP)), LAST + 1)

    def gains(self, factors: dict[int, float]) -> bool:
        """Return whether prices reduce δ by a factor at some k."""
        return any(self.delta(k) < factor * math.exp(-k * STEP) for k, factor in factors.items())

    def profile(self, epsilon: Array, every: int = 1) -> Array:
        """Profile δ(ε) by chords between the bounds.

        In e^ε, or between one in ``every``; 1 where there are none.
        """
        unpriced = np.maximum(self.ground.unpriced(epsilon), 1e-300)
        steps = np.minimum(-np.log(unpriced) // STEP, LAST).astype(int) // every * every
        return np.array([self._chord(float(e), int(k), every) for e, k in zip(epsilon, steps)])

    def _chord(self, epsilon: float, k: int, every: int) -> float:
        """Chord between two bounds, at one ε."""
        # both are rounded; left of its start a chord is no bound
        while k >= FIRST and epsilon < self.epsilon(k):
            k -= every
        if k < FIRST:
            return 1.0
        if k >= LAST or not np.isfinite(self.epsilon(k + every)):
            return self.delta(k)
        low, high, start, end = (
            self.delta(k),
            self.delta(k + every),
            self.epsilon(k),
            self.epsilon(k + every),
        )
        share = min(math.expm1(epsilon - start) / math.expm1(end - start), 1.0)
        return (low + (min(high, low) - low) * share) * (1.0 + SLACK)
