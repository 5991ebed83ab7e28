"""Points of a finite space of candidates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from .space import Space

#: Most points of a grid.
MOST_POINTS = 10**6


def is_finite(space: Space) -> bool:
    """Return whether all values of a space are listed, so that it has finitely many points."""
    return not any(_distributions(dictionary) for dictionary in space.dictionaries)


def points_of(space: Space) -> list[tuple[int, dict[str, Any]]]:
    """Every point of a finite space, with the number of its dictionary.

    Raises
    ------
    ValueError
        For a distribution, which has no finite grid.
    """
    number_of_points(space)
    return [
        (which, dict(zip(dictionary, values)))
        for which, dictionary in enumerate(space.dictionaries)
        for values in itertools.product(*dictionary.values())
    ]


def number_of_points(space: Space) -> int:
    """Count the points of a finite space."""
    for dictionary in space.dictionaries:
        for name in _distributions(dictionary):
            raise ValueError(
                f"Found a distribution for {name!r}, but the whole grid is searched. Give a list of values, or use "
                "DPRandomSearchCV."
            )
    number = sum(size_of(dictionary) for dictionary in space.dictionaries)
    if number > MOST_POINTS:
        raise ValueError(
            f"Found a grid of {number} candidates; all of them would run, and at most {MOST_POINTS} are tried. Give "
            "fewer values, or use DPRandomSearchCV, which draws candidates."
        )
    return number


def size_of(dictionary: Mapping[str, Any]) -> int:
    """Count the points of one dictionary of lists."""
    return math.prod(len(values) for values in dictionary.values())


def _distributions(dictionary: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that are drawn from distributions."""
    return [name for name, values in dictionary.items() if hasattr(values, "rvs")]
