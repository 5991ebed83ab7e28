r"""Theorem 5: potentials charge each outcome for its rank.

Theorem 1 lets all outcomes share the costliest rank.

Run through the outcomes by rising score. The point (q, q') of what scores less moves from (0, 0) to
(1, 1) through the testing region. For any continuous, piecewise linear W on it, c = e^ε and X the
likelihood ratio under P',

    δ(ε) ≤ W(1, 1) − W(0, 0) + E h(X),     h(t) = max over (q, q') of ( t·f'(q) − c·f'(q') )₊ −
    t·W_q − W_q'.

A small linear programme finds a smooth potential. The bound uses its interpolation on a fine mesh
of triangles, is computed line by line and rounded up: a bad potential costs tightness, never
correctness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from .._checks import Array
from .._count_distributions.base import CountDistribution
from .._numerics.loss_distribution import DominatingPair, LossDistribution, on_points
from .testing_region import SLACK, AffineLines, Nodes, largest_lines, lower_edge

#: Grid of the linear programme: columns of the region, points in each, and likelihood ratios.
PLACES, POINTS, RATIOS = 30, 7, 12
#: The mesh on which the bound is computed.
COLUMNS, DEPTH = 200, 26
#: Largest sum of exponents of f(q) and f(q') in a potential, and of q and q' themselves.
DEGREE, PLAIN_DEGREE = 4, 2
#: Largest coefficient.
MAX_COEF = 50.0
#: Least margin of the mesh around the region: narrower triangles would have no digits.
MARGIN = 1e-5
#: Largest distance of losses; beyond, Theorem 1 is used.
WIDEST_RANGE = 200.0
#: Rounding errors of a gradient are below this share of the terms that it is a sum of.
ROUNDING = 1e-13


# --- the mesh -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangular mesh that covers the testing region.

    It has u = 1 − q and v = 1 − q' of all corners, and each triangle's corners.

    Each column of corners, from u = 0 to u = 1, has ``depth`` of them with falling v.
    """

    u: Array
    v: Array
    triangles: npt.NDArray[np.intp]
    depth: int

    def change(self, values: Array) -> float:
        """Difference of a potential between the ends (1, 1) and (0, 0).

        It is interpolated from the corners above and below these points.
        """
        first, last = slice(self.depth), slice(-self.depth, None)
        end = np.interp(0.0, self.v[first][::-1], values[first][::-1])
        return float(end - np.interp(1.0, self.v[last][::-1], values[last][::-1]))

    def gradients(self, values: Array) -> tuple[Array, Array]:
        """Gradients of a potential on each triangle, with their errors."""
        x, y, w = self.u[self.triangles], self.v[self.triangles], values[self.triangles]
        following, last = np.roll(np.arange(3), -1), np.roll(np.arange(3), -2)
        area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
        by_q = -w * (y[:, following] - y[:, last]) / area[:, None]
        by_other = -w * (x[:, last] - x[:, following]) / area[:, None]
        return _sum_and_error(by_q), _sum_and_error(by_other)


def _sum_and_error(terms: Array) -> Array:
    """Sums of terms, with bounds on their rounding errors."""
    return np.stack([terms.sum(axis=1), ROUNDING * np.abs(terms).sum(axis=1)])


def mesh_of(pld: LossDistribution, columns: Array, depth: Array) -> Mesh:
    """Build a mesh of the testing region by columns and depths.

    Corners are at the given u (0 … 1), and in each column at shares ``depth`` (0 … 1) from its top
    down.

    v = 1 − q' is at most 1 − q_min(q), a concave curve. Corners there are raised by the most that
    it lies above its chords, as its tangents tell. The region is symmetric, so its bottom is its
    top turned around.
    """
    top = _raised_upper_edge(pld, columns)
    bottom = 1.0 - _raised_upper_edge(pld, 1.0 - columns[::-1])[::-1]
    v = top[:, None] - (top - bottom)[:, None] * depth
    number = np.arange(v.size).reshape(v.shape)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    halves = (np.stack(part, axis=-1).reshape(-1, 3) for part in ((a, b, d), (a, c, d)))
    corners = np.concatenate(list(halves))
    return Mesh(np.repeat(columns, depth.size), v.ravel(), corners, depth.size)


def _raised_upper_edge(pld: LossDistribution, u: Array) -> Array:
    """Upper edge of the testing region, raised above its chords.

    It is 1 − q_min(1 − u) at each column, and as much more as makes the chords between columns
    cover the curve.
    """
    edge, slope = lower_edge(pld, Nodes(1.0 - u, u))
    width, rise = np.diff(u), np.diff(edge.u)
    above = np.maximum(np.minimum(slope[:-1] * width - rise, rise - slope[1:] * width), 0.0)
    raised = np.maximum(np.append(0.0, above), np.append(above, 0.0)) * (1.0 + SLACK)
    return np.asarray(edge.u + raised + MARGIN)


def _denser_at_ends(number: int) -> Array:
    """Points of [0, 1], denser at its ends."""
    wave = np.sin(0.5 * np.pi * np.linspace(0.0, 1.0, number)) ** 2
    return np.asarray(0.5 * (wave + wave**1.5))


def fine_mesh(pld: LossDistribution) -> Mesh:
    """Mesh on which a bound by potentials is computed, with very narrow columns at both ends."""
    even = _denser_at_ends(COLUMNS + 1)
    low, high = np.geomspace(1e-7, even[1], 8)[:-1], np.geomspace(1e-7, 1.0 - even[-2], 8)[:-1]
    columns = np.sort(np.concatenate([even, low, 1.0 - high]))
    return mesh_of(pld, columns, np.linspace(0.0, 1.0, DEPTH))


# --- potentials -----------------------------------------------------------------------------------


def potential_basis(count: CountDistribution, u: Array, v: Array) -> tuple[Array, Array, Array]:
    """Basis functions of potentials, with derivatives by q and q'.

    They are products of powers of f(q) and f(q'), and of q and q'.
    """
    slopes = np.exp(count.log_slope(1.0 - u, u)), np.exp(count.log_slope(1.0 - v, v))
    distributions = count.generating(1.0 - u, u), count.generating(1.0 - v, v)
    parts = [
        (x**a * y**b, a * x ** max(a - 1, 0) * dx * y**b, b * x**a * y ** max(b - 1, 0) * dy)
        for (x, y), (dx, dy), degree in (
            (distributions, slopes, DEGREE),
            ((1.0 - u, 1.0 - v), (np.ones_like(u), np.ones_like(v)), PLAIN_DEGREE),
        )
        for a in range(degree + 1)
        for b in range(degree + 1 - a)
        if a + b > 0
    ]
    values, by_q, by_other = (np.stack(part, axis=1) for part in zip(*parts))
    return values, by_q, by_other


def potential(pld: LossDistribution, count: CountDistribution, epsilon: float) -> Array:
    """Coefficients of a good potential, by a linear programme.

    It minimises W(1, 1) − W(0, 0) + Σ P'(X = t)·h(t), with h at single places.
    """
    c, (ratios, masses) = np.exp(epsilon), _few_ratios(pld)
    u, v = _region_points(pld)
    _, by_q, by_other = potential_basis(count, u, v)
    gain = np.exp(count.log_slope(1.0 - u, u)), c * np.exp(count.log_slope(1.0 - v, v))
    rows, limits = [], []
    for j, t in enumerate(ratios):
        unit = np.zeros((u.size, ratios.size))
        unit[:, j] = -1.0
        line = min(1.0, t / c) * np.hstack([-by_q - by_other / t, unit])
        counts = gain[0] > gain[1] / t
        rows += [line, line[counts]]
        limits += [np.zeros(u.size), -min(1.0, t / c) * (gain[0] - gain[1] / t)[counts]]
    ends, _, _ = potential_basis(count, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    bounds = [(-MAX_COEF, MAX_COEF)] * ends.shape[1] + [(None, None)] * ratios.size
    cost = np.append(ends[0] - ends[1], masses)
    constraints, limit = np.vstack(rows), np.concatenate(limits)
    solution = linprog(cost, A_ub=constraints, b_ub=limit, bounds=bounds, method="highs")
    if solution.x is None:
        return np.zeros(ends.shape[1])
    return np.asarray(solution.x[: ends.shape[1]], dtype=float)


def _few_ratios(pld: LossDistribution) -> tuple[Array, Array]:
    """Likelihood ratios and masses, thinned to a few with the same means and ends."""
    losses, masses = pld.losses, pld.masses
    if losses.size <= RATIOS:
        return np.exp(losses), masses
    below, above = np.cumsum(masses), np.cumsum(masses[::-1])
    likely = losses[np.searchsorted(below, 1e-5)], losses[::-1][np.searchsorted(above, 1e-8)]
    few = np.unique(np.append(np.linspace(*likely, RATIOS), losses[[0, -1]]))
    return np.exp(few), on_points(pld, np.append(few, np.inf))[:-1]  # nothing lies above the last


def _region_points(pld: LossDistribution) -> tuple[Array, Array]:
    """Points all over the testing region."""
    u, depth = _denser_at_ends(PLACES), 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, POINTS))
    top, below = lower_edge(pld, Nodes(1.0 - u, u))[0].u, lower_edge(pld, Nodes(u, 1.0 - u))[0].q
    v: Array = top[:, None] - (top - below)[:, None] * depth
    return np.repeat(u, POINTS), v.ravel()


# --- the bound ------------------------------------------------------------------------------------


def theorem_5(
    pair: DominatingPair, direction: int, count: CountDistribution, epsilon: float
) -> float:
    """Bound on δ(ε), for one direction, by a potential that is made for this ε (Theorem 5)."""
    pld, reverse = pair.directions[direction], pair.directions[-1 - direction]
    if np.ptp(pld.losses) > WIDEST_RANGE:  # likelihood ratios without digits
        return 1.0
    mesh = fine_mesh(pld)
    coefficients = potential(pld, count, epsilon)
    values = potential_values(mesh, count, coefficients)
    return bound_by_potential(pld, reverse, count, epsilon, mesh, values)


def potential_values(mesh: Mesh, count: CountDistribution, coefficients: Array) -> Array:
    """Values of a potential at all corners of a mesh.

    Where corners lie outside of the square, the potential goes on straight.
    """
    inside = np.clip(mesh.v, 0.0, 1.0)
    values, _, by_other = potential_basis(count, mesh.u, inside)
    return np.asarray(values @ coefficients - (mesh.v - inside) * (by_other @ coefficients))


def bound_by_potential(
    pld: LossDistribution,
    reverse: LossDistribution,
    count: CountDistribution,
    epsilon: float,
    mesh: Mesh,
    values: Array,
) -> float:
    """Bound on δ(ε) by any values of a potential, rounded up.

    It is W(1, 1) − W(0, 0) + E h(X).

    h is the largest of lines in t. Written around t = 1, where E X = 1, it is h(1) + slope·(t − 1)
    and hinges to both sides, whose expectations are the curves of the pair and of the reversed
    pair.
    """
    lines = _lines_above_gain(count, float(np.exp(epsilon)), mesh, values)
    if not np.all(np.isfinite(lines)):
        return 1.0
    height, fall = largest_lines(lines)
    turns, weights = np.diff(height) / np.diff(fall), -np.diff(fall)
    above, below = turns >= 1.0, (turns > 0.0) & (turns < 1.0)
    at_one = float(np.max(height - fall))
    right_hinges = float(weights[above] @ pld.delta_at(np.log(turns[above])))
    left_hinges = float((weights * turns)[below] @ reverse.delta_at(-np.log(turns[below])))
    total = mesh.change(values) + at_one + right_hinges + left_hinges
    return min(total + 1e-12 * (1.0 + abs(at_one) + right_hinges + left_hinges), 1.0)


def _lines_above_gain(count: CountDistribution, c: float, mesh: Mesh, values: Array) -> AffineLines:
    """Lines in the likelihood ratio above the gain on each triangle.

    The lines of outcomes that count come first, then those of the others.

    f' is convex: in a triangle f'(q) lies below its chord through the corners, and f'(q') above its
    tangent in the middle. Both are linear, so the largest value is at a corner.
    """
    u, v = mesh.u[mesh.triangles], mesh.v[mesh.triangles]
    middle = np.clip(v.mean(axis=1), 0.0, 1.0)
    flat = np.exp(count.log_slope(1.0 - middle, middle))
    steep = np.exp(count.log_curvature(1.0 - middle, middle))
    slope = np.exp(count.log_slope(1.0 - u, u)) * (1.0 + SLACK)
    linear = flat[:, None] + steep[:, None] * (middle[:, None] - v)
    tangent = c * np.maximum(linear, 0.0) * (1.0 - SLACK)
    (by_q, error_q), (by_other, error_other) = mesh.gradients(values)
    slopes, heights = -by_q + error_q, -by_other + error_other
    counting = (slope + slopes[:, None]).ravel(), (-tangent + heights[:, None]).ravel()
    return AffineLines(np.append(counting[1], heights), -np.append(counting[0], slopes))
