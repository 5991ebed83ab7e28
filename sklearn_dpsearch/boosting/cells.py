"""Cells of the rounds: coarse partitions of a few features, drawn from public facts and a public seed alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .features import Codes, Feature

#: One byte each, or two where a round has many cells.
CellNumbers: TypeAlias = NDArray[np.unsignedinteger[Any]]


class Partition(NamedTuple):
    """Cells of one round: every record is in exactly one of them.

    ``lookups`` has an array for each feature: code ↦ its group × the number of cells of the features before it. The
    sum over the features is the number of the cell.
    """

    features: tuple[int, ...]
    lookups: tuple[CellNumbers, ...]
    n_cells: int

    def cells(self, codes: Codes) -> CellNumbers:
        """Number of the cell of each record, shape (n_samples,), from codes of shape (n_features, n_samples)."""
        groups = (lookup[codes[place]] for place, lookup in zip(self.features, self.lookups))
        return functools.reduce(np.add, groups, np.zeros(codes.shape[1], np.uint8))


#: One cell, for the start.
WHOLE = Partition((), (), 1)


def drawn(
    features: Sequence[Feature], rounds: int, groups: Mapping[int, int], random_state: np.random.Generator
) -> list[Partition]:
    """Draw the partitions of all rounds.

    Parameters
    ----------
    features : sequence of Feature
    rounds : int
    groups : mapping of int to int
        Number of features of a cell, all of which are drawn as often ↦ groups that each of them is cut into.
    random_state : Generator
        Of a public seed.
    """
    widths = random_state.choice(list(groups), rounds).tolist()
    return [_one(features, width, groups[width], random_state) for width in widths]


def _one(features: Sequence[Feature], wanted: int, most: int, random_state: np.random.Generator) -> Partition:
    width = min(wanted, len(features))
    chosen = random_state.choice(len(features), width, replace=False)
    lookups, n_cells = [], 1
    for place in chosen.tolist():
        groups = _groups(features[place], most, width == 1, random_state)
        lookups.append(groups * n_cells)
        n_cells *= int(groups.max()) + 1
    small = np.min_scalar_type(n_cells - 1)
    return Partition(tuple(chosen.tolist()), tuple(lookup.astype(small) for lookup in lookups), n_cells)


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
