"""Capacity by rule: number and length of rounds, and fineness of cells, from the start of a fit.

The start is released first, with noise of its own. It tells how much can be learned at this budget:
n·μ, and the information I = μ · (noisy sum of the Hessians at the start's outputs), in the mean
over the outputs. All else follows from these two and from the schema, at no further cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

#: The start has the noise of one of START equal releases, and so this part of μ².
START = 64
#: Parts of a feature that is alone in a cell, ÷ √(I ÷ number of features), and the fewest and the
#: most.
PARTS, FEWEST_PARTS, MOST_PARTS = 1.2, 8, 128
#: Most parts of all features together: with many features each of them has few rounds.
ALL_PARTS = 640
#: Number of features of a cell ↦ parts of one that is alone, ÷ further parts of each of them.
SHARED_PARTS = {2: 4, 3: 10, 4: 16}
#: Cells are numbered in two bytes.
MOST_CELLS = 2**16
#: n·μ from which on there are more rounds, in proportion.
LARGE_SIGNAL = 10_000.0
#: Largest share of a step that is taken.
LONGEST_STEP = 0.4


class Pace(NamedTuple):
    """Numbers of boosting rounds by rule, and how far their steps go together.

    Parameters
    ----------
    minimum, usual, maximum : int
        Rounds where I is smallest, where it is not small, and where n·μ is largest.
    path : float
        Rounds × share of each step that is taken.
    """

    minimum: int
    usual: int
    maximum: int
    path: float


CLASS_PACE, NUMBER_PACE = Pace(200, 400, 1200, 120.0), Pace(400, 800, 1600, 240.0)


def rounds_by_rule(information: float, size: float, pace: Pace) -> int:
    """Number of boosting rounds by rule.

    Parameters
    ----------
    information : float
        I.
    size : float
        n·μ.
    pace : Pace
    """
    if information < pace.usual:
        return int(max(information, pace.minimum))
    return int(min(max(pace.usual, pace.usual * size / LARGE_SIGNAL), pace.maximum))


def step_by_rule(rounds: int, pace: Pace) -> float:
    """Share of each boosting step that is taken, by rule."""
    return min(LONGEST_STEP, pace.path / rounds)


def parts_by_rule(information: float, n_features: int) -> int:
    """Parts by rule of a feature that is alone in a cell."""
    parts = PARTS * math.sqrt(max(information, 0.0) / n_features)
    return int(max(min(parts, MOST_PARTS, ALL_PARTS / n_features), FEWEST_PARTS))


def parts_by_cell_width(parts: int, max_features: int) -> Mapping[int, int]:
    """Number of features of a cell ↦ parts of each of them.

    Widths with one part alone are left out.
    """
    by_width = {1: parts, **{width: 1 + parts // share for width, share in SHARED_PARTS.items()}}
    largest = {width: int((MOST_CELLS - 1) ** (1 / width)) for width in by_width}
    return {
        width: min(groups, largest[width])
        for width, groups in by_width.items()
        if groups > 1 and width <= max_features
    }
