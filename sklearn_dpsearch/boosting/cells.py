"""Cells of the rounds: coarse partitions of a few features, drawn from public facts and a public seed alone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .features import Codes, Feature

#: Number of features of a cell ↦ groups that each of them is cut into: about as many cells whichever is drawn.
GROUPS = {1: 16, 2: 5, 4: 2}
#: One byte is enough for the cells of GROUPS.
CellNumbers: TypeAlias = NDArray[np.uint8]


class Partition(NamedTuple):
    """Cells of one round: every record is in exactly one of them.

    ``lookups`` has an array for each feature: code ↦ its group × the number of cells of the features before it. The
    sum over the features is the number of the cell.
    """

    features: tuple[int, ...]
    lookups: tuple[NDArray[np.uint8], ...]
    n_cells: int

    def cells(self, codes: Codes) -> CellNumbers:
        """Number of the cell of each record, shape (n_samples,), from codes of shape (n_features, n_samples)."""
        groups = (lookup[codes[place]] for place, lookup in zip(self.features, self.lookups))
        return functools.reduce(np.add, groups, np.zeros(codes.shape[1], np.uint8))


def drawn(
    features: Sequence[Feature], rounds: int, max_features: int, random_state: np.random.Generator
) -> list[Partition]:
    """Draw the partitions of all rounds; the first has one cell, for the start.

    Parameters
    ----------
    features : sequence of Feature
    rounds : int
        Rounds after the start.
    max_features : int
        The most features of a cell.
    random_state : Generator
        Of a public seed.
    """
    shapes = [shape for shape in GROUPS if shape <= max_features]
    start = Partition((), (), 1)
    return [start, *(_one(features, int(random_state.choice(shapes)), random_state) for _ in range(rounds))]


def _one(features: Sequence[Feature], wanted: int, random_state: np.random.Generator) -> Partition:
    width = min(wanted, len(features))
    chosen = random_state.choice(len(features), width, replace=False)
    lookups, n_cells = [], 1
    for place in chosen.tolist():
        groups = _groups(features[place], GROUPS[wanted], width == 1, random_state)
        lookups.append((groups * n_cells).astype(np.uint8))
        n_cells *= int(groups.max()) + 1
    return Partition(tuple(chosen.tolist()), tuple(lookups), n_cells)


def _groups(feature: Feature, most: int, apart: bool, random_state: np.random.Generator) -> NDArray[np.intp]:
    """Group of each code, shape (feature.size,): all groups occur.

    Values in order are cut at random places of one scale; other values are dealt into groups of equal size. Missing
    ones have a group of their own, ``apart``, or else join a random one.
    """
    if feature.cuts is None:
        return random_state.permutation(np.arange(feature.size) % most)
    scale = feature.cuts[int(random_state.integers(len(feature.cuts)))]
    cuts = np.sort(random_state.choice(scale, min(most - 1, len(scale)), replace=False))
    groups = np.searchsorted(cuts, np.arange(feature.size - 1), side="left")
    return np.append(groups, len(cuts) + 1 if apart else random_state.integers(len(cuts) + 1))
