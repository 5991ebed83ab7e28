"""Public directions of columns: the start that they give, and a model that keeps them.

The directed columns, each rising with its direction, add up to an index, along which the start
rises. In every round they act by themselves, so that each of them has one table of effects. At the
end these are made monotone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ._features import INDEX_SIZE, Feature
from ._losses import Array, Loss
from ._random_cells import Partition
from ._rounds import Boosted, BoostingStart, KnownHessians, NoisyRecords

#: Releases that find the slope along the index, bins of each, share of each step, and the slope
#: that is expected.
RELEASES, BINS, RATE, SLOPE = 4, 16, 0.7, 3.0
#: Least share of the largest sum of Hessians that a code has.
LEAST_MASS = 1e-6
#: Rounds of a column that tell how many records have each code, and iterations of that.
MASS_ROUNDS, FITTINGS = 100, 30


class Terms(NamedTuple):
    """Terms of a model: cells, their weights, and the noise in these.

    ``weights`` and ``noise`` have the shape (1, n_cells).
    """

    partitions: list[Partition]
    weights: list[Array]
    noise: list[Array]

    def append(self, partition: Partition, weights: Array, noise: Array) -> None:
        """Add a term."""
        self.partitions.append(partition)
        self.weights.append(weights)
        self.noise.append(noise)


class _Effect(NamedTuple):
    """Effect of each group of a column in one round, its noise, and the Hessians of each group."""

    place: int
    groups: NDArray[np.intp]
    effects: Array
    noise: Array
    masses: Array


# --- the start ------------------------------------------------------------------------------------


def start_along_index(
    noisy: NoisyRecords, start: BoostingStart, place: int, random_state: np.random.Generator
) -> tuple[BoostingStart, Terms]:
    """Go along the index as noisy sums over its bins say.

    Parameters
    ----------
    noisy : NoisyRecords
        They release RELEASES sums.
    start : BoostingStart
    place : int
        Of the index among the codes.
    random_state : Generator
        Of a public seed.

    Returns
    -------
    BoostingStart
        Its outputs are the last step, which the records have still to take.
    Terms
        The steps.
    """
    known_hessians = KnownHessians(start.total, start.variance, noisy.noise_of_hessians)
    terms, step = Terms([], [], []), start.outputs
    for _ in range(RELEASES):
        cuts = (np.arange(1, BINS) + random_state.uniform(-0.5, 0.5)) * INDEX_SIZE / BINS
        groups = np.searchsorted(cuts, np.arange(INDEX_SIZE), side="right").astype(np.uint8)
        partition = Partition((place,), (groups,), BINS)
        scores, hessians = noisy.sums(step, partition)
        hessians = np.maximum(known_hessians.see(hessians)[0][0], 0.0)
        step = RATE * _rising_line(scores[0], hessians, noisy.noise, noisy.records.loss)
        terms.append(partition, step, np.zeros_like(step))
    total, variance = known_hessians.total, known_hessians.variance
    return start._replace(outputs=step, total=total, variance=variance), terms


def _rising_line(scores: Array, hessians: Array, noise: float, loss: Loss) -> Array:
    """Line of shape (1, n_bins) along the index that never falls: a shrunk Newton step."""
    places = np.linspace(-1.0, 1.0, len(scores))
    places = places - np.average(places, weights=hessians + LEAST_MASS)
    slope, curvature = float(scores @ places), float(hessians @ np.square(places))
    variance = float((noise**2 + loss.spread * hessians) @ np.square(places))
    size: float = slope * curvature / (curvature**2 + variance / SLOPE**2)
    return max(size, 0.0) * places[np.newaxis]


# --- rounds ---------------------------------------------------------------------------------------


def without_interactions(
    features: Sequence[Feature], partition: Partition, weights: Array
) -> Array:
    """Weights of a round in which directed columns act by themselves, whatever the other columns.

    They are the nearest such weights, of shape (1, n_cells): means over the cells of each group of
    a directed column, and over the cells of each combination of other groups.
    """
    directed = _directed_axes(features, partition)
    if not directed or len(partition.features) == 1:
        return weights
    grid = weights.reshape(_shape(partition))
    axes, mean = set(range(grid.ndim)), grid.mean()
    parts = [*({axis} for axis in directed), axes - set(directed)]
    additive = mean + sum(grid.mean(tuple(axes - part), keepdims=True) - mean for part in parts)
    return np.broadcast_to(additive, grid.shape).reshape(weights.shape)


def _directed_axes(features: Sequence[Feature], partition: Partition) -> list[int]:
    """Axes of a round's cells whose columns have a direction."""
    last = len(partition.features) - 1
    places = enumerate(partition.features)
    return [last - number for number, place in places if features[place].direction]


def _shape(partition: Partition) -> tuple[int, ...]:
    """Number of groups of each column of a round, the last column first, as cells are numbered."""
    return tuple(int(groups.max()) + 1 for groups in _groups(partition))[::-1]


def _groups(partition: Partition) -> Iterator[NDArray[np.intp]]:
    """Group of each code of the columns of a round."""
    stride = 1
    for lookup in partition.lookups:
        groups = lookup.astype(np.intp) // stride
        stride *= int(groups.max()) + 1
        yield groups


# --- the end --------------------------------------------------------------------------------------


def monotone_terms(
    features: Sequence[Feature], partitions: Sequence[Partition], boosted: Boosted
) -> tuple[Terms, float]:
    """Terms of a boosted model with a monotone table for each directed column, and a constant.

    Parameters
    ----------
    features : sequence of Feature
    partitions : sequence of Partition
        Of the rounds, without the start.
    boosted : Boosted
        Rounds without interactions of directed columns.
    """
    terms, constant, effects = Terms([], [], []), 0.0, list[_Effect]()
    rounds = zip(partitions, boosted.weights[1:], boosted.noise, boosted.hessians)
    for partition, weights, noise, hessians in rounds:
        directed = _directed_axes(features, partition)
        if not directed:
            terms.append(partition, weights, noise)
            continue
        shape, groups = _shape(partition), list(_groups(partition))
        grid, squares = weights.reshape(shape), np.square(noise).reshape(shape)
        masses = np.maximum(hessians, 0.0).reshape(shape)
        for axis in directed:
            effects.append(_effect_on_axis(partition, groups, axis, grid, squares, masses))
            along = [-1 if other == axis else 1 for other in range(grid.ndim)]
            grid = grid - effects[-1].effects.reshape(along)
        last = len(groups) - 1
        undirected = [number for number in range(len(groups)) if last - number not in directed]
        if not undirected:
            constant += float(grid.flat[0])
            continue
        places = [partition.features[number] for number in undirected]
        smaller = Partition.of_groups(places, [groups[number] for number in undirected])
        first = tuple(0 if axis in directed else slice(None) for axis in range(len(shape)))
        count = math.prod(shape[axis] for axis in directed)
        spread = np.sqrt(squares.sum(tuple(directed)).reshape(1, -1)) / count
        terms.append(smaller, grid[first].reshape(1, -1), spread)
    for place in sorted({effect.place for effect in effects}):
        size = features[place].size
        of_place = [effect for effect in effects if effect.place == place]
        monotone, noise = _table(features[place], of_place)
        terms.append(Partition.of_groups((place,), [np.arange(size)]), monotone, noise)
    return terms, constant


def _effect_on_axis(
    partition: Partition,
    groups: Sequence[NDArray[np.intp]],
    axis: int,
    grid: Array,
    squares: Array,
    masses: Array,
) -> _Effect:
    """Effect of a column that acts by itself, from the cells of one group of every other column."""
    number = len(groups) - 1 - axis
    other_axes = tuple(other for other in range(grid.ndim) if other != axis)
    count = grid.size // grid.shape[axis]
    along = grid[tuple(slice(None) if other == axis else 0 for other in range(grid.ndim))]
    noise = np.sqrt(squares.sum(other_axes)) / count
    place, mass = partition.features[number], masses.sum(other_axes)
    return _Effect(place, groups[number], along - along[0], noise, mass)


def _table(feature: Feature, effects: Sequence[_Effect]) -> tuple[Array, Array]:
    """Monotone sum of a column's effects for each code, shape (1, n_codes), and its noise before.

    The monotone one is the nearest, weighted by the Hessians of the codes as noisy sums tell them;
    a missing value keeps its effect.
    """
    table, squares = np.zeros((2, feature.size))
    for effect in effects:
        table += effect.effects[effect.groups]
        squares += np.square(effect.noise)[effect.groups]
    weights = _masses(effects[-MASS_ROUNDS:])[:-1]
    rising = feature.direction > 0
    ordered = isotonic_regression(table[:-1], sample_weight=weights, increasing=rising)
    return np.append(ordered, table[-1])[np.newaxis], np.sqrt(squares)[np.newaxis]


def _masses(effects: Sequence[_Effect]) -> Array:
    """Hessians of each code, from those of groups of codes, by iterated proportional fitting.

    It finds codes that many records have, whatever codes share their groups (Richardson 1972, Lucy
    1974).
    """
    groups = [effect.groups for effect in effects]
    sums = [np.maximum(effect.masses, 0.0) for effect in effects]
    n_codes, total = len(groups[0]), float(np.mean([values.sum() for values in sums]))
    masses = np.full(n_codes, total / n_codes + LEAST_MASS)
    for _ in range(FITTINGS):
        ratios = [values / np.bincount(group, masses) for group, values in zip(groups, sums)]
        masses *= np.mean([ratio[group] for group, ratio in zip(groups, ratios)], axis=0)
        masses = np.maximum(masses, LEAST_MASS * max(float(masses.max()), 1.0))
    return masses
