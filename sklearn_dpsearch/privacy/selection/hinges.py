r"""Convex functions as sums of hinges: the largest of many lines, and its expectation over a privacy loss.

A bound of the form δ(ε) ≤ E φ(e^{ε−L}), with φ the largest of the lines height − z·fall and 0, needs no grid of losses:
φ(z) = Σ_k w_k·(1 − z/z_k)₊, so the expectation is Σ_k w_k·H(e^ε/z_k), with H the hockey-stick curve of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Array
from ..numerics.loss_distribution import LossDistribution

#: Relative amount by which every line is raised, far above any floating-point error in it.
SLACK = 1e-9
#: Values of a hockey-stick curve that are computed at a time.
CHUNK = 2**18


class AffineLines(NamedTuple):
    """Lines height − z·fall; the largest of them and 0 is convex and falls."""

    height: Array
    fall: Array


@dataclass(frozen=True, eq=False)
class Hinges:
    """φ(z) = Σ_k weights_k·(1 − z/ends_k)₊."""

    weights: Array
    ends: Array

    def delta_at(self, pld: LossDistribution, epsilon: Array) -> Array:
        """E φ(e^{ε−L}) = Σ_k weights_k·H(e^ε/ends_k)."""
        log_ends, points = np.log(self.ends), np.ravel(epsilon)
        rows = max(1, CHUNK // max(log_ends.size, 1))
        chunks = [points[i : i + rows, None] - log_ends for i in range(0, points.size, rows)]
        delta = np.concatenate([np.sum(pld.delta_at(chunk) * self.weights, axis=1) for chunk in chunks])
        return np.minimum(np.reshape(delta, np.shape(epsilon)), 1.0)

    def thinned(self, every: int) -> Hinges:
        """One hinge in ``every``, and the last: chords of a convex function lie above it."""
        bends = np.isfinite(self.ends)
        if not bends.any():
            return self
        weights, ends = self.weights[bends], self.ends[bends]
        kept = np.unique(np.append(np.arange(0, ends.size, every), ends.size - 1))
        beyond = (
            np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0),
            np.append(np.cumsum((weights / ends)[::-1])[::-1][1:], 0.0),
        )
        values = np.append(weights.sum(), np.maximum(beyond[0] - ends * beyond[1], 0.0)[kept])
        chords = through(np.append(0.0, ends[kept]), values)
        return Hinges(np.append(chords.weights, self.weights[~bends]), np.append(chords.ends, self.ends[~bends]))


def through(points: Array, values: Array) -> Hinges:
    """Chords of a convex, falling function that is 0 from the last point on; the first point is 0."""
    slopes = np.append(np.diff(values) / np.diff(points), 0.0)
    return Hinges(np.maximum(np.diff(slopes), 0.0) * points[1:] * (1.0 + SLACK), points[1:])


def upper_envelope(lines: AffineLines) -> Hinges:
    """The largest of the lines and 0, as hinges."""
    order = np.lexsort((lines.fall, -lines.height))
    height, fall = lines.height[order], lines.fall[order]
    lower = fall < np.minimum.accumulate(np.append(np.inf, fall[:-1]))  # a smaller and steeper line never wins
    height, fall = np.append(height[lower], 0.0), np.append(fall[lower], 0.0)
    if fall[-2] == 0.0:
        height, fall = height[:-1], fall[:-1]
    kept = _hull(height.tolist(), fall.tolist())
    weights, drops = -np.diff(height[kept]), -np.diff(fall[kept])
    if height[kept[-1]] > 0:  # a line that never falls: an end at infinity
        weights, drops = np.append(weights, height[kept[-1]]), np.append(drops, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return Hinges(weights, np.where(drops > 0, weights / np.maximum(drops, 1e-320), np.inf))


def _hull(height: list[float], fall: list[float]) -> list[int]:
    """Indices of the lines that are the largest somewhere, of lines with falling heights and falls."""
    kept, ends = [0], [-1.0]  # ends[i]: from this z on the line kept[i] is above those before it
    for i in range(1, len(height)):
        while True:
            last = kept[-1]
            drop = fall[last] - fall[i]
            crossing = (height[last] - height[i]) / (drop if drop > 1e-320 else 1e-320)
            if crossing > ends[-1]:
                break
            kept.pop()
            ends.pop()
        kept.append(i)
        ends.append(crossing)
    return kept
