"""Cells of the rounds: random partitions of a few features, from public and released facts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._features import Codes, Feature

#: One byte each, or two where a round has many cells.
CellNumbers: TypeAlias = NDArray[np.unsignedinteger[Any]]


class Partition(NamedTuple):
    """Cells of one boosting round: every record is in exactly one.

    ``lookups`` has an array for each feature: code ↦ its group × the number of cells of the
    features before it. The sum over the features is the number of the cell.
    """

    features: tuple[int, ...]
    lookups: tuple[CellNumbers, ...]
    n_cells: int

    @classmethod
    def of_groups(cls, features: Sequence[int], groups: Sequence[NDArray[np.intp]]) -> Partition:
        """Partition by the group of each code of some features."""
        lookups, n_cells = [], 1
        for numbers in groups:
            lookups.append(numbers * n_cells)
            n_cells *= int(numbers.max()) + 1
        small = np.min_scalar_type(n_cells - 1)
        return cls(tuple(features), tuple(lookup.astype(small) for lookup in lookups), n_cells)

    def cells(self, codes: Codes) -> CellNumbers:
        """Number of the cell of each record, by the record's codes."""
        pairs = zip(self.features, self.lookups)
        groups = [lookup.take(codes[place], mode="wrap") for place, lookup in pairs]
        if not groups:
            return np.zeros(codes.shape[1], np.uint8)
        return functools.reduce(operator.iadd, groups)


#: Share of the rounds in which all features are drawn as often, and of later draws that follow the
#: gains.
EXPLORATION, GAIN_SHARE = 0.2, 0.6
#: Codes without an order from which on a column has many values, and the share of rounds for one
#: such column alone.
MANY_VALUES, LONE_SHARE = 25, 0.5
#: One cell, for the start.
SINGLE_CELL = Partition((), (), 1)


class PartitionDraws:
    """Random partitions of boosting rounds, one after the other.

    They follow from the schema, a public seed, and the gains of the rounds before.

    The gains of a round follow from its noisy sums, so nothing else of the records is used. In the
    first rounds all features are drawn as often; later a share of the draws is in proportion to the
    root of the mean gain of the rounds with a feature. Features of many values without an order are
    alone in half of all rounds: each value then shares its group with few others.

    Parameters
    ----------
    features : sequence of Feature
    rounds : int
    groups : mapping of int to int
        Number of features of a cell, all of which are drawn as often ↦ groups that each of them is
        cut into.
    random_state : Generator
        Of a public seed.

    Attributes
    ----------
    drawn : list of Partition
    """

    def __init__(
        self,
        features: Sequence[Feature],
        rounds: int,
        groups: Mapping[int, int],
        random_state: np.random.Generator,
    ) -> None:
        self._features, self._groups, self._random_state = features, groups, random_state
        self._widths: list[int] = random_state.choice(list(groups), rounds).tolist()
        self._gains, self._counts = np.zeros((2, len(features)))
        self.drawn: list[Partition] = []

    def __iter__(self) -> Iterator[Partition]:
        unordered = [feature.size if feature.cuts is None else 0 for feature in self._features]
        many = np.array(unordered) > MANY_VALUES
        random_state = self._random_state
        for drawn in self._widths:
            alone = many.any() and random_state.random() < LONE_SHARE
            wanted = 1 if alone else drawn
            width = min(wanted, len(self._features))
            # the first ones are drawn
            turns = random_state.exponential(size=len(self._features)) / self._odds()
            chosen = np.argsort(np.where(many, turns, np.inf) if alone else turns)[:width]
            features, n_groups = [self._features[place] for place in chosen], self._groups[wanted]
            groups = [
                _random_groups(feature, n_groups, width == 1, random_state) for feature in features
            ]
            self.drawn.append(Partition.of_groups(chosen.tolist(), groups))
            yield self.drawn[-1]

    def see(self, gain: float) -> None:
        """Take in the gain of the partition that was drawn last."""
        chosen = list(self.drawn[-1].features)
        self._gains[chosen] += gain
        self._counts[chosen] += 1

    def _odds(self) -> NDArray[np.float64]:
        """Odds of drawing each feature next, up to a constant."""
        equal = np.ones(len(self._gains))
        if len(self.drawn) < EXPLORATION * len(self._widths):
            return equal
        roots = np.sqrt(np.maximum(self._gains / np.maximum(self._counts, 1), 0.0))
        mean = float(roots.mean())
        return equal if mean == 0.0 else (1.0 - GAIN_SHARE) + GAIN_SHARE / mean * roots


def _random_groups(
    feature: Feature, n_groups: int, apart: bool, random_state: np.random.Generator
) -> NDArray[np.intp]:
    """Random group of each code of a feature; all groups occur.

    Values in order are cut at random places of one scale; other values are dealt into groups of
    equal size. Missing ones have a group of their own, ``apart``, or else join a random one.
    """
    if feature.cuts is None:
        return random_state.permutation(np.arange(feature.size) % n_groups)
    scale = feature.cuts[int(random_state.integers(len(feature.cuts)))]
    cuts = np.sort(random_state.choice(scale, min(n_groups - 1, len(scale)), replace=False))
    groups = np.searchsorted(cuts, np.arange(feature.size - 1), side="left")
    return np.append(groups, len(cuts) + 1 if apart else random_state.integers(len(cuts) + 1))
