r"""Testing region on a grid, for bounds by the slope f', and the largest of many lines.

q is the probability, on one data set, that a run scores at most y; q_min(q) the least such
probability on a neighbouring data set. The bounds for best-of-K search compare f'(q) with
f'(q_min(q)) for all q at once.

A bound of the form δ(ε) ≤ E φ(e^{ε−L}), with φ the largest of the lines height − z·fall and 0,
needs no grid of losses: φ is convex, so φ(z) = Σ_k w_k·(1 − z/z_k)₊, a sum of hinges. The
expectation is Σ_k w_k·H(e^ε/z_k), with H the hockey-stick curve of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._checks import Array
from .._count_distributions.base import CountDistribution
from .._numerics.arithmetic import safe_exp
from .._numerics.loss_distribution import ROUNDING, LossDistribution, sums_from_above

#: Relative amount by which every line is raised, far above any floating-point error in it.
SLACK = 1e-9
#: Values of a hockey-stick curve that are computed at a time.
CHUNK = 2**18


class AffineLines(NamedTuple):
    """Affine lines height − z·fall.

    The largest of them and 0 is convex and falls.
    """

    height: Array
    fall: Array


@dataclass(frozen=True, eq=False)
class Hinges:
    """Convex function as a sum of hinges, φ(z) = Σ_k weights_k·(1 − z/ends_k)₊."""

    weights: Array
    ends: Array

    def delta_at(self, pld: LossDistribution, epsilon: Array) -> Array:
        """Expectation of the hinges: δ(ε) of a loss distribution.

        It is E φ(e^{ε−L}) = Σ_k weights_k·H(e^ε/ends_k).
        """
        log_ends, points = np.log(self.ends), np.ravel(epsilon)
        rows = max(1, CHUNK // max(log_ends.size, 1))
        chunks = [points[i : i + rows, None] - log_ends for i in range(0, points.size, rows)]
        delta = [np.sum(pld.delta_at(chunk) * self.weights, axis=1) for chunk in chunks]
        return np.minimum(np.reshape(np.concatenate(delta), np.shape(epsilon)), 1.0)

    def values_at(self, z: Array) -> Array:
        """Values φ(z) for z ≥ 0, rounded up."""
        order = np.argsort(self.ends)
        ends, weights = self.ends[order], self.weights[order]
        falling = (ends > 0) & np.isfinite(ends)  # a hinge that ends at 0 counts at z = 0 alone
        drops = np.where(falling, weights / np.where(falling, ends, 1.0), 0.0)
        beyond = np.where(z > 0, np.searchsorted(ends, z, side="right"), 0)
        height, fall = (sums_from_above(terms)[beyond] for terms in (weights, drops))
        return np.asarray(np.maximum(height * (1.0 + SLACK) - z * fall * (1.0 - SLACK), 0.0))

    def thinned(self, every: int) -> Hinges:
        """Fewer hinges, one in ``every`` and the last: chords of a convex function lie above it."""
        bends = np.isfinite(self.ends)
        if not bends.any():
            return self
        weights, ends = self.weights[bends], self.ends[bends]
        chosen = np.unique(np.append(np.arange(0, ends.size, every), ends.size - 1))
        height, fall = (sums_from_above(terms)[1:] for terms in (weights, weights / ends))
        values = np.append(weights.sum(), np.maximum(height - ends * fall, 0.0)[chosen])
        ends = ends[chosen]
        # the function is 0 from the last end on
        slopes = np.append(np.diff(values) / np.diff(ends, prepend=0.0), 0.0)
        weights = np.maximum(np.diff(slopes), 0.0) * ends * (1.0 + SLACK)
        ends = np.append(ends, self.ends[~bends])
        return Hinges(np.append(weights, self.weights[~bends]), ends)


def upper_envelope(lines: AffineLines) -> Hinges:
    """Upper envelope of affine lines and 0, as hinges."""
    with_zero = AffineLines(np.append(lines.height, 0.0), np.append(lines.fall, 0.0))
    height, fall = largest_lines(with_zero)
    weights, drops = -np.diff(height), -np.diff(fall)
    if height[-1] > 0:  # a line that never falls: an end at infinity
        weights, drops = np.append(weights, height[-1]), np.append(drops, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return Hinges(weights, np.where(drops > 0, weights / np.maximum(drops, 1e-320), np.inf))


def largest_lines(lines: AffineLines) -> AffineLines:
    """Lines that are the largest for some z ≥ 0, by falling height and fall."""
    order = np.lexsort((lines.fall, -lines.height))
    height, fall = lines.height[order], lines.fall[order]
    # a lower and steeper line never wins
    flatter = fall < np.minimum.accumulate(np.append(np.inf, fall[:-1]))
    height, fall = height[flatter], fall[flatter]
    hull = _hull_of_lines(height.tolist(), fall.tolist())
    return AffineLines(height[hull], fall[hull])


def _hull_of_lines(height: list[float], fall: list[float]) -> list[int]:
    """Indices of lines, with falling heights and falls, on their upper envelope."""
    hull, ends = [0], [-1.0]  # ends[i]: from this z on the line hull[i] is above those before it
    for i in range(1, len(height)):
        while True:
            last = hull[-1]
            drop = fall[last] - fall[i]
            crossing = (height[last] - height[i]) / (drop if drop > 1e-320 else 1e-320)
            if crossing > ends[-1]:
                break
            hull.pop()
            ends.pop()
        hull.append(i)
        ends.append(crossing)
    return hull


#: Ratio of neighbouring grid points of q (near 0) and of 1 − q (near 1).
SPACING = 1.015


class Nodes(NamedTuple):
    """Grid of quantiles q, with complements and gaps.

    Points 0 = q_0 < … < q_n = 1, all to full relative accuracy.
    """

    q: Array
    u: Array

    @property
    def gaps(self) -> Array:
        return np.where(self.q[1:] < 0.5, np.diff(self.q), -np.diff(self.u))


def nodes(smallest: float = 1e-18, spacing: float = SPACING) -> Nodes:
    """Grid of quantiles in [0, 1], geometric towards both ends."""
    steps = int(np.ceil(np.log(0.5 / smallest) / np.log(spacing)))
    half = np.append(0.0, np.geomspace(smallest, 0.5, steps))
    other = half[-2::-1]
    return Nodes(np.concatenate([half, 1.0 - other]), np.concatenate([1.0 - half, other]))


def cell_lines(
    pld: LossDistribution, count: CountDistribution, grid: Nodes
) -> tuple[AffineLines, AffineLines]:
    r"""Lines that bound f'(q) − z·f'(q_min(q)) on each cell.

    There is a line s − z·t for each node q_i and for each cell [q_i, q_{i+1}], from above.

    The bound is second-order accurate in the width of the cell.

    f' is convex, so it lies below its chord. G(q) = f'(q_min(q)) is convex too (f' and q_min are,
    and f' increases), so it lies above its tangents at both ends of the cell. Chord minus z·(the
    higher tangent) is largest at an end or where the tangents cross.
    """
    height = np.exp(count.log_slope(grid.q, grid.u)) * (1.0 + SLACK)
    edge, steepness = lower_edge(pld, grid)
    value, growth = composed(count, edge, steepness)
    share, fall = _crossing_of_tangents(value, growth, grid.gaps)
    between = height[1:] - share * (height[1:] - height[:-1])
    return AffineLines(height, value * (1.0 - SLACK)), AffineLines(between, fall * (1.0 - SLACK))


def _crossing_of_tangents(value: Array, growth: Array, gaps: Array) -> tuple[Array, Array]:
    """Crossing of the tangents at each cell's ends.

    It is given by its place (share of the width, from the right) and value.

    If rounding hides the crossing, the right end's place with the left end's value is valid: G is
    increasing.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rises, drops = growth[:-1] * gaps, growth[1:] * gaps
        share = np.clip((value[1:] - value[:-1] - rises) / (drops - rises), 0.0, 1.0)
        crossing = np.minimum(value[:-1] + rises * (1.0 - share), value[1:] - drops * share)
    valid = crossing >= value[:-1]  # False for nan
    return np.where(valid, share, 0.0), np.where(valid, crossing, value[:-1])


def lower_edge(pld: LossDistribution, at: Nodes) -> tuple[Nodes, Array]:
    """Lower edge q_min(q) of the testing region, and its slope.

    The point is just below the edge, with its complement.

    On each edge of the testing region q_min is linear with slope exp(−loss). It is followed from
    above (relative accuracy near 0) and, where the outcomes impossible under P are known exactly,
    from below (the same near 1).
    """
    point, slope = _edge_from_above(pld, at)
    complement = 1.0 - point
    if pld.minus_infinity is not None:
        top, top_slope = _edge_from_below(pld, at)
        high = at.u < 0.5
        point, complement = np.where(high, 1.0 - top, point), np.where(high, top, complement)
        slope = np.where(high, top_slope, slope)
    return Nodes(point, complement), slope


def _edge_from_above(pld: LossDistribution, at: Nodes) -> tuple[Array, Array]:
    """Lower edge q_min(q), rounded down, from the largest losses, with its slope.

    It is taken a little to the left of q, by more than the sums of p may be wrong: at losses far
    below zero the slope exp(−loss) would make a large error of a small one.
    """
    above_p, above_q = pld.from_above
    p = pld.infinity + above_p
    q = at.q * (1.0 - ROUNDING)
    edge = np.clip(np.searchsorted(-p, -q, side="right") - 1, 0, pld.losses.size - 1)
    slope = np.where(q > pld.infinity, safe_exp(-pld.losses[edge]), 0.0)
    point = np.where(q > pld.infinity, above_q[edge + 1] + slope * (q - p[edge + 1]), 0.0)
    return np.clip(point * (1.0 - ROUNDING), 0.0, 1.0), slope


def _edge_from_below(pld: LossDistribution, at: Nodes) -> tuple[Array, Array]:
    """Complement 1 − q_min(1 − u), rounded up, from the smallest losses.

    The second value is the slope of q_min, 0 where only outcomes impossible under P' are left.
    """
    below_p, below_q = pld.from_below
    edge = np.clip(np.searchsorted(below_p, at.u, side="right") - 1, 0, pld.losses.size - 1)
    slope = safe_exp(-pld.losses[edge])
    point = (below_q[edge] + slope * (at.u - below_p[edge])) * (1.0 + ROUNDING)
    return np.clip(point, 0.0, 1.0), np.where(point < 1.0, slope, 0.0)


def composed(count: CountDistribution, edge: Nodes, steepness: Array) -> tuple[Array, Array]:
    """Slope f'(q_min) along the lower edge, and its own slope f''(q_min)·q_min'."""
    value, growth = np.exp(count.log_slope(*edge)), np.exp(count.log_curvature(*edge))
    return value, growth * steepness


def slope_ratio(pld: LossDistribution, count: CountDistribution, grid: Nodes) -> Array:
    """Bound on log f'(q)/f'(q_min(q)) for each cell of q.

    Chord over tangent is a ratio of two linear functions, hence monotone: the largest of both ends
    and of the crossing of the tangents bounds it.
    """
    nodes_, cells = cell_lines(pld, count, grid)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_nodes = np.log(nodes_.height) - np.log(nodes_.fall)
        between = np.log(cells.height) - np.log(cells.fall)
    ratios = np.maximum(between, np.maximum(at_nodes[:-1], at_nodes[1:]))
    return np.where(np.isnan(ratios), np.inf, ratios)  # 0/0 where f' vanishes: no bound
