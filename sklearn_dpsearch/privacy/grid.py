r"""The testing region on a grid: where the slope of the generating function meets its lower edge.

q is the probability, on one data set, that a run scores at most y; q_min(q) the least that it can be on a neighbouring
one. The bounds for best-of-K search look at f'(q) against f'(q_min(q)) for all q at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._types import Array
from .laws import CountLaw
from .profiles import LossDistribution

#: Ratio of neighbouring grid points of q (near 0) and of 1 − q (near 1).
SPACING = 1.015
#: Relative amount by which every line is raised, far above any floating-point error in it.
SLACK = 1e-9


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


class Lines(NamedTuple):
    """Lines s − z·t, of which at each z at least one is an upper bound on f'(q) − z·f'(q_min(q)) for each q."""

    height: Array
    fall: Array


def cell_lines(one: LossDistribution, count: CountLaw, grid: Nodes) -> Lines:
    r"""Two lines per cell [q_i, q_{i+1}], second-order accurate in its width.

    f' is convex, so it lies below its chord. G(q) = f'(q_min(q)) is convex too (f' and q_min are, and f' increases), so
    it lies above its tangent, here at the cell's middle. Chord minus z·tangent is linear in q: its maximum is at an end.
    """
    height = np.exp(count.log_slope(grid.q, grid.u)) * (1.0 + SLACK)
    middle, left, right = middles(grid)
    edge, steepness = lower_edge(one, middle)
    value, growth = composed(count, edge, steepness)
    floor = np.exp(count.log_slope(np.array([0.0]), np.array([1.0])))[0]
    fall_left, fall_right = value - growth * left, value + growth * right
    fall = np.maximum(np.concatenate([fall_left, fall_right]), floor) * (1.0 - SLACK)
    return Lines(np.concatenate([height[:-1], height[1:]]), np.maximum(fall, 0.0))


def middles(grid: Nodes) -> tuple[Nodes, Array, Array]:
    """Middle of each cell and its distances to both ends."""
    q = 0.5 * (grid.q[:-1] + grid.q[1:])
    u = 0.5 * (grid.u[:-1] + grid.u[1:])
    return Nodes(q, u), 0.5 * grid.gaps, 0.5 * grid.gaps


def lower_edge(one: LossDistribution, at: Nodes) -> tuple[Nodes, Array]:
    """A point just below q_min(q), with its complement, and the slope of q_min there.

    On each edge of the testing region q_min is linear with slope exp(−loss). It is followed from above (relative accuracy
    near 0) and, where the outcomes impossible under P are known exactly, from below (relative accuracy near 1).
    """
    point, slope = _edge_from_above(one, at)
    complement = 1.0 - point
    if one.minus_infinity is not None:
        top, top_slope = _edge_from_below(one, at)
        high = at.u < 0.5
        point, complement = np.where(high, 1.0 - top, point), np.where(high, top, complement)
        slope = np.where(high, top_slope, slope)
    return Nodes(point, complement), slope


def _edge_from_above(one: LossDistribution, at: Nodes) -> tuple[Array, Array]:
    """q_min(q), rounded down, and its slope."""
    above_p, above_q = one.from_above
    p = one.infinity + above_p
    edge = np.clip(np.searchsorted(-p, -at.q, side="right") - 1, 0, one.losses.size - 1)
    slope = np.where(at.q > one.infinity, np.exp(-one.losses[edge]), 0.0)
    point = np.where(at.q > one.infinity, above_q[edge + 1] + slope * (at.q - p[edge + 1]), 0.0)
    return np.clip(point * (1.0 - 1e-12), 0.0, 1.0), slope


def _edge_from_below(one: LossDistribution, at: Nodes) -> tuple[Array, Array]:
    """1 − q_min(1 − u), rounded up, and the slope of q_min."""
    below_p, below_q = one.from_below
    edge = np.clip(np.searchsorted(below_p, at.u, side="right") - 1, 0, one.losses.size - 1)
    slope = np.exp(-one.losses[edge])
    point = below_q[edge] + slope * (at.u - below_p[edge])
    return np.clip(point * (1.0 + 1e-12), 0.0, 1.0), slope


def composed(count: CountLaw, edge: Nodes, steepness: Array) -> tuple[Array, Array]:
    """G = f'(q_min) and its slope f''(q_min)·q_min'."""
    return np.exp(count.log_slope(edge.q, edge.u)), np.exp(count.log_curvature(edge.q, edge.u)) * steepness


def slope_ratio(one: LossDistribution, count: CountLaw, grid: Nodes) -> Array:
    """log of an upper bound on f'(q)/f'(q_min(q)) for each cell.

    Chord over tangent is a ratio of two linear functions, hence monotone on the cell: the larger end bounds it.
    """
    lines = cell_lines(one, count, grid)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(lines.height) - np.log(lines.fall)
    return np.max(ratios.reshape(2, -1), axis=0)
