r"""Theorem 6: prices on places in the order, for distributions of K with light tails.

**Gains.** Order the outcomes of one run by their score. The *place* of an outcome is the pair (q,
q') of the probabilities, on both data sets, of a lower score; its *density* f'(q), with f the
generating function of K, is the density of the winner there, relative to one run. With X the
likelihood ratio of an outcome and c = e^ε, δ(ε) is the mean of the gains (f'(q) − c/X·f'(q'))₊
(all means are those of the first data set). Theorem 1 lets every outcome take the place of its
largest gain, although few fit there.

**Room.** Fix a slope σ. An outcome takes up the room w = (σ − 1/X)₊, and Z = E w is the total room.
If outcomes with the room ξ are below a place, then q' ≥ max(q_min(q), σ·q − ξ), with q_min the
lower edge of the testing region: this limits the gain there.

**Prices.** In every order the outcomes fill the room from 0 to Z exactly once, and the
probabilities from 0 to 1. So with a price λ(ξ) ≥ 0 of room they pay ∫ λ dξ together, and with a
price μ(q) ≥ 0 of probability ∫ μ dq. What an outcome gains is at most what it pays, plus the
largest difference of gain and payment at any place; it may choose by its X how to pay. Hence

    δ(ε) ≤ ∫ λ dξ + ∫ μ dq + E min(h_λ(X), h_μ(X), h_0(X)),

    h_λ = max over (q, ξ) of ( f'(q) − c/X·f'(max(q_min(q), σ·q − ξ)) − w·λ(ξ) )₊ ,  if X > 1/σ,
    h_μ = max over q of ( f'(q) − c/X·f'(q_min(q)) − μ(q) )₊ ,

h_λ = ∞ for X ≤ 1/σ, and h_0 = φ(c/X), which is h_μ without prices, as in Theorem 1. Bad prices cost
tightness, never correctness: they are estimated, and only the bound for given prices is rounded up
(docs/theory/prices.md has the proof).

Profiles are convex in e^ε. So the bound is computed at a few ε (``Anchors``), with chords between.
``bound_by_prices`` is the bound at one ε; the parts below it follow in the order of their use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from .._checks import Array, cached_property
from .._count_distributions.base import CountDistribution
from .._guarantees.base import smallest_epsilon
from .._numerics.arithmetic import safe_exp
from .._numerics.basic_mechanisms import LARGEST_LOSS
from .._numerics.loss_distribution import ROUNDING, LossDistribution, normalized
from .testing_region import SLACK, Hinges, Nodes, composed, lower_edge

#: Least mean of K: below, Theorem 1 is within 0.3 % of a certificate.
LEAST_MEAN = 8.0
#: The bound is computed where Theorem 1 reaches δ = e^{−k·STEP}, for k from FIRST_K to LAST_K;
#: SLOPE_PLACES of these k have one slope.
STEP, FIRST_K, LAST_K, SLOPE_PLACES = 0.25, 4, 128, 4
#: k ↦ factor on δ from which prices are worth their time: in a pair, and (a stronger factor)
#: everywhere.
PAIR_FACTORS, FACTORS = {28: 0.75, 56: 0.75}, {56: 0.6}
#: At these k prices are tested; they gain if the bound is below this share of δ.
ENDS, GAINING_SHARE = range(16, LAST_K, 16), 0.98
#: Slopes tried: those of q_min at these 1 − q, and the number of refinements.
SHARES, REFINEMENTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4), 2
#: Cells of q, cells of room, and inverse ratios at which the largest gain is computed.
QUANTILES, ROOMS, RATIOS = 200, 80, 80
#: Gains below the largest by more than this (in nats) need no digits.
RANGE = 40.0


def prices_may_pay(count: CountDistribution) -> bool:
    """Return whether K has many runs, and a tail no heavier than a Poisson's."""
    return "Theorem 6" in count.theorems and count.mean >= LEAST_MEAN


class Anchors:
    """Bounds on δ by prices at a few ε, for one direction, computed on first use.

    The k-th ε is where Theorem 1 reaches δ = e^{−k·STEP}, which is a bound without prices.
    """

    def __init__(self, quantiles: Quantiles) -> None:
        self.unpriced = partial(quantiles.hinges.delta_at, quantiles.pld)
        self.epsilon = cache(lambda k: smallest_epsilon(self.unpriced, math.exp(-k * STEP)))
        self._room = cache(lambda k: best_room(quantiles, self.epsilon(k)))
        self._priced = cache(self._bound)

    def profile(self, epsilon: Array, every: int = 1) -> Array:
        """Upper bounds on δ(ε) by chords between one in ``every`` bound; 1 outside of them."""
        unpriced = np.maximum(self.unpriced(epsilon), 1e-300)
        steps = np.minimum(-np.log(unpriced) // STEP, LAST_K).astype(int) // every * every
        return np.array([self._chord(float(e), int(k), every) for e, k in zip(epsilon, steps)])

    def _chord(self, epsilon: float, k: int, every: int) -> float:
        """Upper bound on δ(ε) by the chord, in e^ε, that begins at the k-th ε or before.

        Profiles are convex in e^ε, and never rise.
        """
        # both are rounded; left of its start a chord is no bound
        while k >= FIRST_K and epsilon < self.epsilon(k):
            k -= every
        if k < FIRST_K:
            return 1.0
        start, delta = self.epsilon(k), self.delta(k)
        if k >= LAST_K or not np.isfinite(end := self.epsilon(k + every)):
            return delta
        share = min(math.expm1(epsilon - start) / math.expm1(end - start), 1.0)
        return (delta + (min(self.delta(k + every), delta) - delta) * share) * (1.0 + SLACK)

    def delta(self, k: int) -> float:
        """Upper bound on δ at the k-th ε, with prices where they gain; 1 if there is none."""
        if k < FIRST_K or k > LAST_K or not self.epsilon(k) <= LARGEST_LOSS:
            return 1.0
        return self._priced(k) if k < self.end else math.exp(-k * STEP)

    def _bound(self, k: int) -> float:
        """Upper bound on δ by prices at the k-th ε, with the slope of the first of SLOPE_PLACES k.

        Where it gains nothing, that slope may be a bad one: then the one before is taken.
        """
        unpriced, first = math.exp(-k * STEP), SLOPE_PLACES * (k // SLOPE_PLACES)
        bound = bound_by_prices(self._room(first), self.epsilon(k))
        if bound > GAINING_SHARE * unpriced:
            bound = bound_by_prices(self._room(first - SLOPE_PLACES), self.epsilon(k))
        return min(bound, unpriced)

    @cached_property
    def end(self) -> int:
        """First k at which prices gain nothing, from which on Theorem 1 serves.

        Prices gain less at smaller δ.
        """
        finite = (k for k in ENDS if self.epsilon(k) <= LARGEST_LOSS)
        useless = (k for k in finite if self._priced(k) > GAINING_SHARE * math.exp(-k * STEP))
        return next(useless, LAST_K + 1)

    def gains(self, factors: dict[int, float]) -> bool:
        """Return whether prices reduce δ by a factor at some k."""
        return any(self.delta(k) < factor * math.exp(-k * STEP) for k, factor in factors.items())


# --- the bound at one ε ---------------------------------------------------------------------------


def bound_by_prices(room: Room, epsilon: float) -> float:
    """Upper bound on δ(ε) by prices that are made for this ε and slope."""
    c = float(np.exp(epsilon))
    payments = [price_room(room, c)] if room.total > 0 else []
    return bound_with_payments(room, c, *payments, price_quantiles(room, c))


def bound_with_payments(room: Room, c: float, *payments: Payment) -> float:
    """Upper bound on δ(ε): all that is paid, and the mean of what outcomes gain beyond it.

    Each outcome pays in the way that leaves least, or nothing, as in Theorem 1: it may choose by
    its X alone.
    """
    unpriced = room.quantiles.hinges.values_at(c * room.inverse_ratios)
    gains = [unpriced, *(payment.gain_at(room.inverse_ratios) for payment in payments)]
    paid, unpaid = sum(payment.paid for payment in payments), np.min(gains, axis=0)
    bound = (paid + float(room.masses @ unpaid)) * (1.0 + SLACK)
    return min(bound, 1.0) if np.isfinite(bound) else 1.0


@dataclass(frozen=True, eq=False)
class Payment:
    """Total paid at some prices, and bounds on the gain beyond it at some 1/X."""

    paid: float
    inverse_ratios: Array
    gains: Array

    def gain_at(self, inverse: Array) -> Array:
        """Upper bounds on the gain beyond the payment at any 1/X, infinite where unknown.

        It is the largest of lines in 1/X, so it lies below its chords.
        """
        chords = np.interp(inverse, self.inverse_ratios, np.maximum(self.gains, 0.0))
        low, high = self.inverse_ratios[[0, -1]]
        return np.where((inverse >= low) & (inverse <= high), chords, np.inf)


def best_room(quantiles: Quantiles, epsilon: float) -> Room:
    """Room of the slope with the least estimated bound at ε; every slope gives a bound."""
    c, estimates = float(np.exp(epsilon)), dict[float, float]()

    def estimate(log_slope: float) -> float:
        if log_slope not in estimates:
            room = Room(quantiles, float(np.exp(log_slope)))
            estimates[log_slope] = np.inf
            if room.total > 0:
                estimates[log_slope] = estimated_gains(room, c).total + quantile_prices(room, c)[1]
        return estimates[log_slope]

    tried = np.unique(quantiles.log_slopes_of_edge(np.array(SHARES)))
    for _ in range(REFINEMENTS):
        best = int(np.argmin([estimate(float(log_slope)) for log_slope in tried]))
        around = tried[max(best - 1, 0) : best + 2]
        tried = np.sort(np.append(around, 0.5 * (around[1:] + around[:-1])))
    return Room(quantiles, float(np.exp(min(estimates, key=estimate))))


# --- prices of room -------------------------------------------------------------------------------


def price_room(room: Room, c: float) -> Payment:
    """Payment at prices λ(ξ) for outcomes with X > 1/σ.

    By rising ratio they fill the room from below. The prices are those at which each gains most
    beyond its payment in its own cell: from one end of a cell to the other the price, times w,
    changes as the gain. No price is negative, so that payments bound gains.
    """
    gains = RoomGains(room, c)
    above = gains.room_above
    inverse = room.inverse_ratios_at(0.5 * (above[1:] + above[:-1]))
    top, bottom = (np.maximum(gain, 0.0) for gain in gains.largest_at_ends(inverse))
    rises = (top - bottom) / np.maximum(room.slope - inverse, 1e-9)
    prices = np.append(_nonnegative_sums(rises[::-1])[::-1], 0.0)
    return Payment(_integral(prices, above), *gains.beyond_payment(prices))


@dataclass(frozen=True, eq=False)
class RoomGains:
    """Upper bounds on the gains of outcomes at all places, as lines height − c/X·fall in 1/X.

    On a cell of (q, ξ) f'(q) lies below its chord, and f'(max(q_min(q), σ·q − ξ)), which is convex,
    above its tangent plane in the middle. Both are linear, so the largest gain less a linear price
    is at a corner. Corners are indexed by [end of the cell of room, cell of room, cell and end of
    q]; ``room_above`` stands for Z − ξ.
    """

    room: Room
    c: float

    @cached_property
    def room_above(self) -> Array:
        """Room above at the ends of the cells, closer where estimated gains fall."""
        above, gains, _ = estimated_gains(self.room, self.c)
        fall = np.log(max(gains[0], 1e-300)) - np.log(np.maximum(gains, 1e-300))
        fall = np.maximum.accumulate(np.clip(fall, 0.0, RANGE))
        spread = 0.01 * np.log(np.maximum(above, above[1]) / above[1])
        steps = -np.expm1(-fall / 4.0) + 0.02 * fall + spread
        ends = np.interp(np.linspace(0.0, steps[-1], ROOMS), steps, above)
        return np.unique(np.append(ends, [0.0, self.room.total]))

    @cached_property
    def falls(self) -> Array:
        """Lower bounds on f'(max(q_min(q), σ·q − ξ)) at all corners.

        They are those of its tangent plane, or of f'(q_min(q)) where q_min is larger.
        """
        room, quantiles, above = self.room, self.room.quantiles, self.room_above
        shape = (above.size - 1, quantiles.middles.u.size)
        # v = 1 − (σ·q − ξ) in the middle of the cells, and the change of σ·q − ξ to each corner
        v = room.slope * quantiles.middles.u + room.excess - 0.5 * (above[1:] + above[:-1])[:, None]
        half_width = 0.5 * np.diff(above)[:, None, None, None] * np.array([[-1.0], [1.0]])
        moves = (room.slope * quantiles.to_ends[:, None, :] + half_width).reshape(*shape, 4)
        inside = np.clip(v, 0.0, 1.0)
        density, growth = self._density(inside)
        smallest, _ = self._density(np.clip(v - np.min(moves, axis=2), 0.0, 1.0))
        changes = growth[..., None] * (moves + (inside - v)[..., None])
        by_room = _below_tangent(density[..., None], changes, smallest[..., None])
        by_edge = np.tile(quantiles.edge_density_at_ends, 2)
        falls = np.where((v < quantiles.edge)[..., None], by_room, by_edge).reshape(*shape, 2, 2)
        return np.moveaxis(falls, 2, 0).reshape(2, shape[0], -1)

    def _density(self, v: Array) -> tuple[Array, Array]:
        """Density f' and its growth f'' at 1 − v."""
        count = self.room.quantiles.count
        return np.exp(count.log_slope(1.0 - v, v)), np.exp(count.log_curvature(1.0 - v, v))

    def largest_at_ends(self, inverse: Array) -> tuple[Array, Array]:
        """Largest gains at both ends of each cell of room, of an outcome with one 1/X in each."""
        heights = self.room.quantiles.density_at_ends.ravel()
        z, (top, bottom) = (self.c * inverse)[:, None], self.falls
        at_top, at_bottom = (np.max(heights - z * fall, axis=1) for fall in (top, bottom))
        # the end of a cell is also that of its neighbour, where the bound may be larger
        before = np.max(heights - z[1:] * bottom[:-1], axis=1)
        after = np.max(heights - z[:-1] * top[1:], axis=1)
        at_top = np.maximum(at_top, np.append(0.0, before))
        return at_top, np.maximum(at_bottom, np.append(after, 0.0))

    def beyond_payment(self, prices: Array) -> tuple[Array, Array]:
        """Some 1/X up to σ, and upper bounds on the gain beyond the payment there.

        They are the largest height − w·λ − c/X·fall of any corner.
        """
        slope, samples = self.room.slope, self.room.sampled_up_to_slope()
        paid = np.stack([prices[:-1], prices[1:]])[..., None]
        height = self.room.quantiles.density_at_ends.ravel() - slope * paid
        fall = self.c * self.falls - paid  # of the line in 1/X: w = σ − 1/X
        # a line that is below 0 at both ends of the samples is so between them
        wins = np.maximum(height - samples[0] * fall, height - samples[-1] * fall) > 0
        height, fall = height[wins], fall[wins]
        return samples, np.array([np.max(height - z * fall, initial=0.0) for z in samples])


class EstimatedGains(NamedTuple):
    """Estimated gains at some amounts of room above, and the sum of all of them."""

    room_above: Array
    gains: Array
    total: float


def estimated_gains(room: Room, c: float) -> EstimatedGains:
    """Estimate the gains of outcomes that fill the room by rising ratio, each at its best q.

    The estimate uses f' at the nodes alone; prices may depend on it, and bounds do not.
    """
    quantiles = room.quantiles
    above = np.append(0.0, np.geomspace(1e-5 * room.total, room.total, 80))
    edge, _ = lower_edge(quantiles.pld, quantiles.nodes)
    v = np.minimum(edge.u, room.slope * quantiles.nodes.u + room.excess - above[:, None])
    density = np.exp(quantiles.count.log_slope(1.0 - np.maximum(v, 0.0), np.maximum(v, 0.0)))
    inverse = room.inverse_ratios_at(np.maximum(above, above[1]))
    gains = np.where(v >= 0, quantiles.density - (c * inverse)[:, None] * density, 0.0)
    largest = np.maximum(np.max(gains, axis=1), 0.0)
    total = _integral(largest / np.maximum(room.slope - inverse, 1e-9), above)
    return EstimatedGains(above, largest, total)


# --- prices of probability ------------------------------------------------------------------------


def price_quantiles(room: Room, c: float) -> Payment:
    """Payment at prices μ(q) for outcomes of low likelihood ratio, which take up no room.

    Gains are upper bounds: on each cell f'(q) − c/X·f'(q_min(q)) − μ(q) is below a linear function,
    which is largest at a node.
    """
    quantiles = room.quantiles
    prices, paid = quantile_prices(room, c)
    fall = c * quantiles.edge_density
    samples = room.sampled_from(0.5 * room.slope)
    gains = np.array([np.max(quantiles.density - prices - z * fall) for z in samples])
    return Payment(paid, samples, gains)


def quantile_prices(room: Room, c: float) -> tuple[Array, float]:
    """Prices μ(q) ≥ 0 at the nodes, and their integral.

    Outcomes with X ≤ 1/σ come by rising ratio, the highest at some start and the others below it;
    the start is the one at which they gain most. From one end of a cell to the other μ changes as
    the gain of the outcomes in it.
    """
    quantiles, u, chosen = room.quantiles, room.quantiles.nodes.u, room.inverse_ratios >= room.slope
    if not np.any(chosen):
        return np.zeros(u.size), 0.0
    inverse = room.inverse_ratios[chosen][::-1]
    behind = np.cumsum(room.masses[chosen][::-1])
    # [start, cell]: probability between the start and the middle of the cell, outcome there, gains
    depth = quantiles.middles.u - u[::8, None]
    z = inverse[np.clip(np.searchsorted(behind, depth), 0, inverse.size - 1)]
    density, edge_density = quantiles.density, quantiles.edge_density
    lower = np.maximum(density[:-1] - c * z * edge_density[:-1], 0.0)
    upper = np.maximum(density[1:] - c * z * edge_density[1:], 0.0)
    served = depth < behind[-1]
    total = np.sum(np.where(served & (depth > 0), lower + upper, 0.0) * -np.diff(u), axis=1)
    rises = np.where(served, upper - lower, 0.0)[int(np.argmax(total))]
    prices = np.append(0.0, _nonnegative_sums(rises))
    return prices, _integral(prices, u)


def _nonnegative_sums(steps: Array) -> Array:
    """Running sums that never fall below 0."""
    sums = accumulate(steps.tolist(), lambda total, step: max(total + step, 0.0), initial=0.0)
    return np.array(list(sums)[1:])


def _integral(values: Array, points: Array) -> float:
    """Integral of a function that is linear between points."""
    return float(np.sum(0.5 * (values[1:] + values[:-1]) * np.abs(np.diff(points))))


# --- what does not depend on ε --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Room:
    """Room that outcomes take up in the order, for one slope σ."""

    quantiles: Quantiles
    slope: float

    @cached_property
    def inverse_ratios(self) -> Array:
        """Inverse likelihood ratios 1/X of all outcomes by rising X, 0 for infinite losses."""
        return np.append(safe_exp(-self.quantiles.pld.losses), 0.0)

    @cached_property
    def masses(self) -> Array:
        """Probabilities of all outcomes, in the same order."""
        return np.append(self.quantiles.pld.masses, self.quantiles.pld.infinity)

    @cached_property
    def room_from(self) -> Array:
        """Room w taken up together by the outcomes from each on, rounded up."""
        widths = np.maximum(self.slope - self.inverse_ratios, 0.0) * self.masses
        return np.asarray(np.cumsum(widths[::-1])[::-1] * (1.0 + ROUNDING))

    @property
    def total(self) -> float:
        """Total room Z of all outcomes."""
        return float(self.room_from[0])

    @cached_property
    def excess(self) -> float:
        """Constant Z + 1 − σ = E (1/X − σ)₊, rounded up, without cancellation.

        With it 1 − (σ·q − ξ) = σ·(1 − q) + excess − (Z − ξ).
        """
        low = float(np.maximum(self.inverse_ratios - self.slope, 0.0) @ self.masses)
        impossible = float(self.quantiles.pld.minus_infinity or 0.0)
        return (low + impossible) * (1.0 + ROUNDING) + 1e-15

    def inverse_ratios_at(self, room_above: Array) -> Array:
        """Inverse ratios of the outcomes with some room above, if all come by rising ratio."""
        at = np.searchsorted(-self.room_from, -room_above) - 1
        chosen = self.inverse_ratios[np.clip(at, 0, self.inverse_ratios.size - 1)]
        return np.minimum(chosen, self.slope)

    def sampled_up_to_slope(self) -> Array:
        """Rising 1/X > 0 up to σ: all if there are few, else more near σ, where gains rise."""
        inverse, slope = self.inverse_ratios, self.slope
        inside = inverse[(inverse > 0) & (inverse < slope)]
        if inside.size <= RATIOS:
            return np.unique(np.append(inside, slope))
        even = np.geomspace(np.min(inside), slope, RATIOS)
        close = slope * (1.0 - np.geomspace(1e-3, 0.2, RATIOS // 4))
        return np.unique(np.append(even, close))

    def sampled_from(self, start: float) -> Array:
        """Rising 1/X from a start to the largest: all if there are few, else more near it."""
        inside = self.inverse_ratios[self.inverse_ratios > start]
        if inside.size <= RATIOS:
            return np.unique(inside) if inside.size else np.array([start])
        far = float(np.max(inside))
        return np.unique(np.append(np.geomspace(start, min(far, 20.0 * start), RATIOS), far))


@dataclass(frozen=True, eq=False)
class Quantiles:
    """One direction of a search on a grid of quantiles q: densities f'(q) and f'(q_min(q)).

    ``hinges`` is φ of Theorem 1.
    """

    pld: LossDistribution
    count: CountDistribution
    hinges: Hinges

    @classmethod
    def of(cls, pld: LossDistribution, count: CountDistribution, hinges: Hinges) -> Quantiles:
        """Build from a loss distribution, mended to total masses of 1: prices need them."""
        return cls(normalized(pld), count, hinges)

    def log_slopes_of_edge(self, u: Array) -> Array:
        """Logarithms of the slope of q_min at some 1 − q."""
        at = np.searchsorted(self.pld.from_below[0], u) - 1
        return np.asarray(-self.pld.losses[np.minimum(at, self.pld.losses.size - 1)])

    @cached_property
    def nodes(self) -> Nodes:
        """Quantiles q from 0 to 1, closer where f' rises."""
        u = np.append(0.0, np.geomspace(1e-9, 1.0, 4000))
        log_density = self.count.log_slope(1.0 - u, u)
        fall = np.minimum(log_density[0] - log_density, RANGE)
        steps = fall + 0.02 * np.log(np.maximum(u, 1e-9) / 1e-9)
        few = np.interp(np.linspace(0.0, steps[-1], QUANTILES), steps, u)
        few = np.unique(np.append(few, [0.0, 1.0]))[::-1]
        return Nodes(1.0 - few, few)

    @cached_property
    def middles(self) -> Nodes:
        """Middle of each cell of quantiles."""
        q, u = self.nodes
        return Nodes(0.5 * (q[1:] + q[:-1]), 0.5 * (u[1:] + u[:-1]))

    @cached_property
    def to_ends(self) -> Array:
        """Distances in q from the middle of each cell to its ends."""
        return np.asarray(0.5 * np.diff(self.nodes.u)[:, None] * np.array([1.0, -1.0]))

    @cached_property
    def density(self) -> Array:
        """Densities f'(q) at the nodes, rounded up."""
        return np.asarray(np.exp(self.count.log_slope(*self.nodes)) * (1.0 + SLACK))

    @cached_property
    def density_at_ends(self) -> Array:
        """Densities f'(q) at both ends of each cell, whose chords bound f' from above."""
        return np.stack([self.density[:-1], self.density[1:]], axis=1)

    @cached_property
    def edge(self) -> Array:
        """Complement 1 − q_min in the middle of each cell."""
        return lower_edge(self.pld, self.middles)[0].u

    @cached_property
    def edge_density_at_ends(self) -> Array:
        """Values at both ends of each cell of a line below f'(q_min(q)), rounded down.

        f'(q_min(q)) is convex, and the line is its tangent in the middle.
        """
        point, steepness = lower_edge(self.pld, self.middles)
        density, growth = composed(self.count, point, steepness)
        starts = Nodes(self.nodes.q[:-1], self.nodes.u[:-1])
        smallest, _ = composed(self.count, lower_edge(self.pld, starts)[0], steepness)
        return _below_tangent(density[:, None], growth[:, None] * self.to_ends, smallest[:, None])

    @cached_property
    def edge_density(self) -> Array:
        """Lower bounds on f'(q_min(q)) at the nodes, and by lines between them.

        Each is below both tangents that meet at the node.
        """
        starts, ends = self.edge_density_at_ends.T
        return np.asarray(np.minimum(np.append(starts, np.inf), np.append(np.inf, ends)))


def _below_tangent(value: Array, changes: Array, smallest: Array) -> Array:
    """Tangent value + changes of a convex, rising function, rounded down.

    Where it falls to nearly 0 within the cell, the smallest value in the cell is the lower bound.
    """
    falls = np.min(changes, axis=-1, keepdims=True) < -0.9 * value
    tangent = value + changes - SLACK * (value + np.abs(changes))
    return np.asarray(np.where(falls, smallest * (1.0 - SLACK), tangent))
