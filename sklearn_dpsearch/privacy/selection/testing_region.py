r"""The testing region on a grid, for bounds by the slope f' of the generating function.

q is the probability, on one data set, that a run scores at most y; q_min(q) the least such probability on a
neighbouring data set. The bounds for best-of-K search compare f'(q) with f'(q_min(q)) for all q at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array
from ..count_distributions.base import CountDistribution
from ..numerics.logspace import safe_exp
from ..numerics.loss_distribution import ROUNDING, LossDistribution
from .hinges import SLACK, AffineLines

#: Ratio of neighbouring grid points of q (near 0) and of 1 − q (near 1).
SPACING = 1.015


class Nodes(NamedTuple):
    """Points 0 = q_0 < … < q_n = 1, with their complements and the gaps between them to full relative accuracy."""

    q: Array
    u: Array

    @property
    def gaps(self) -> Array:
        return np.where(self.q[1:] < 0.5, np.diff(self.q), -np.diff(self.u))


def nodes(smallest: float = 1e-18, spacing: float = SPACING) -> Nodes:
    """A grid of [0, 1], geometric towards both ends."""
    steps = int(np.ceil(np.log(0.5 / smallest) / np.log(spacing)))
    half = np.append(0.0, np.geomspace(smallest, 0.5, steps))
    return Nodes(np.concatenate([half, 1.0 - half[-2::-1]]), np.concatenate([1.0 - half, half[-2::-1]]))


def cell_lines(pld: LossDistribution, count: CountDistribution, grid: Nodes) -> tuple[AffineLines, AffineLines]:
    r"""A line s − z·t per node q_i and per cell [q_i, q_{i+1}], which bounds f'(q) − z·f'(q_min(q)) there from above.

    The bound is second-order accurate in the width of the cell.

    f' is convex, so it lies below its chord. G(q) = f'(q_min(q)) is convex too (f' and q_min are, and f' increases),
    so it lies above its tangents at both ends of the cell. Chord minus z·(the higher tangent) is largest at an end or
    where the tangents cross.
    """
    height = np.exp(count.log_slope(grid.q, grid.u)) * (1.0 + SLACK)
    edge, steepness = lower_edge(pld, grid)
    value, growth = composed(count, edge, steepness)
    rest, fall = _crossing_of_tangents(value, growth, grid.gaps)
    between = height[1:] - rest * (height[1:] - height[:-1])
    return AffineLines(height, value * (1.0 - SLACK)), AffineLines(between, fall * (1.0 - SLACK))


def _crossing_of_tangents(value: Array, growth: Array, gaps: Array) -> tuple[Array, Array]:
    """Crossing of the tangents at each cell's ends: its place (share of the width, from the right) and value.

    If rounding hides the crossing, the right end's place with the left end's value is valid: G is increasing.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rises, drops = growth[:-1] * gaps, growth[1:] * gaps
        rest = np.clip((value[1:] - value[:-1] - rises) / (drops - rises), 0.0, 1.0)
        crossing = np.minimum(value[:-1] + rises * (1.0 - rest), value[1:] - drops * rest)
    found = crossing >= value[:-1]  # False for nan
    return np.where(found, rest, 0.0), np.where(found, crossing, value[:-1])


def lower_edge(pld: LossDistribution, at: Nodes) -> tuple[Nodes, Array]:
    """A point just below q_min(q), with its complement, and the slope of q_min there.

    On each edge of the testing region q_min is linear with slope exp(−loss). It is followed from above (relative
    accuracy near 0) and, where the outcomes impossible under P are known exactly, from below (the same near 1).
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
    """q_min(q), rounded down, and its slope.

    It is taken a little to the left of q, by more than the sums of p may be wrong: at losses far below zero the slope
    exp(−loss) would make a large error of a small one.
    """
    above_p, above_q = pld.from_above
    p = pld.infinity + above_p
    q = at.q * (1.0 - ROUNDING)
    edge = np.clip(np.searchsorted(-p, -q, side="right") - 1, 0, pld.losses.size - 1)
    slope = np.where(q > pld.infinity, safe_exp(-pld.losses[edge]), 0.0)
    point = np.where(q > pld.infinity, above_q[edge + 1] + slope * (q - p[edge + 1]), 0.0)
    return np.clip(point * (1.0 - ROUNDING), 0.0, 1.0), slope


def _edge_from_below(pld: LossDistribution, at: Nodes) -> tuple[Array, Array]:
    """1 − q_min(1 − u), rounded up, and the slope of q_min: 0 where only outcomes impossible under P' are left."""
    below_p, below_q = pld.from_below
    edge = np.clip(np.searchsorted(below_p, at.u, side="right") - 1, 0, pld.losses.size - 1)
    slope = safe_exp(-pld.losses[edge])
    point = (below_q[edge] + slope * (at.u - below_p[edge])) * (1.0 + ROUNDING)
    return np.clip(point, 0.0, 1.0), np.where(point < 1.0, slope, 0.0)


def composed(count: CountDistribution, edge: Nodes, steepness: Array) -> tuple[Array, Array]:
    """G = f'(q_min) and its slope f''(q_min)·q_min'."""
    return np.exp(count.log_slope(edge.q, edge.u)), np.exp(count.log_curvature(edge.q, edge.u)) * steepness


def slope_ratio(pld: LossDistribution, count: CountDistribution, grid: Nodes) -> Array:
    """log of an upper bound on f'(q)/f'(q_min(q)) for each cell.

    Chord over tangent is a ratio of two linear functions, hence monotone: the largest of both ends and of the crossing
    of the tangents bounds it.
    """
    nodes_, cells = cell_lines(pld, count, grid)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_nodes = np.log(nodes_.height) - np.log(nodes_.fall)
        between = np.log(cells.height) - np.log(cells.fall)
    ratios = np.maximum(between, np.maximum(at_nodes[:-1], at_nodes[1:]))
    return np.where(np.isnan(ratios), np.inf, ratios)  # 0/0 where f' vanishes: no bound
