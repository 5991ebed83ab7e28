"""Public directions of columns: the start that they give, and a model that keeps them.

The directed columns, each rising with its direction, add up to an index, along which the start
rises. In every round they act by themselves, so that each of them has one table of effects. At the
end these are made monotone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ._features import INDEX_SIZE, Feature
from ._losses import Array, Loss
from ._random_cells import Partition
from ._rounds import BoostingStart, KnownHessians, NoisyRecords, Round

#: Releases that find the slope along the index, bins of each, share of each step, and the slope
#: that is expected.
RELEASES, BINS, RATE, SLOPE = 4, 16, 0.7, 3.0
#: Least share of the largest sum of Hessians that a code has.
LEAST_MASS = 1e-6
#: Rounds of a column that tell how many records have each code, and iterations of that.
MASS_ROUNDS, FITTINGS = 100, 30


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
) -> tuple[BoostingStart, list[Round]]:
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
    list of Round
        The steps.
    """
    known_hessians = KnownHessians(start.total, start.variance, noisy.noise_of_hessians)
    steps, step = list[Round](), start.outputs
    for _ in range(RELEASES):
        cuts = (np.arange(1, BINS) + random_state.uniform(-0.5, 0.5)) * INDEX_SIZE / BINS
        groups = np.searchsorted(cuts, np.arange(INDEX_SIZE), side="right").astype(np.uint8)
        partition = Partition((place,), (groups,), BINS)
        scores, hessians = noisy.sums(step, partition)
        hessians = np.maximum(known_hessians.see(hessians)[0][0], 0.0)
        step = RATE * _rising_line(scores[0], hessians, noisy.noise, noisy.records.loss)
        steps.append(Round(partition, step, np.zeros_like(step)))
    total, variance = known_hessians.total, known_hessians.variance
    return start._replace(outputs=step, total=total, variance=variance), steps


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
    grid = _grid(weights, _groups(partition))
    axes, mean = set(range(grid.ndim)), grid.mean()
    parts = [*({axis} for axis in directed), axes - set(directed)]
    additive = mean + sum(grid.mean(tuple(axes - part), keepdims=True) - mean for part in parts)
    return np.broadcast_to(additive, grid.shape).reshape(weights.shape, order="F")


def _directed_axes(features: Sequence[Feature], partition: Partition) -> list[int]:
    """Places of the columns of a round that have a direction, which are axes of its grid."""
    return [axis for axis, place in enumerate(partition.features) if features[place].direction]


def _groups(partition: Partition) -> list[NDArray[np.intp]]:
    """Group of each code, for each column of a round."""
    groups, stride = list[NDArray[np.intp]](), 1
    for lookup in partition.lookups:
        groups.append(lookup.astype(np.intp) // stride)
        stride *= int(groups[-1].max()) + 1
    return groups


def _grid(values: Array, groups: Sequence[NDArray[np.intp]]) -> Array:
    """Values of the cells of a round, with an axis for the groups of each column, in their order.

    Cells are numbered with the groups of the first column one after the other.
    """
    return values.reshape([int(numbers.max()) + 1 for numbers in groups], order="F")


# --- the end --------------------------------------------------------------------------------------


def monotone_terms(
    features: Sequence[Feature], rounds: Sequence[Round], hessians: Sequence[Array]
) -> tuple[list[Round], float]:
    """Terms of a boosted model with a monotone table for each directed column, and a constant.

    Parameters
    ----------
    features : sequence of Feature
    rounds : sequence of Round
        Without the start, and without interactions of directed columns.
    hessians : sequence of ndarray of shape (1, n_cells)
        Of the rounds.
    """
    terms, constant, effects = list[Round](), 0.0, list[_Effect]()
    for cells, hessians_of_cells in zip(rounds, hessians):
        directed = _directed_axes(features, cells.partition)
        if not directed:
            terms.append(cells)
            continue
        of_round, grid = _effects_of_round(cells, hessians_of_cells, directed)
        effects += of_round
        if len(directed) == grid.ndim:
            constant += float(grid.flat[0])
        else:
            terms.append(_undirected_part(cells, grid, directed))
    for place in sorted({effect.place for effect in effects}):
        of_place = [effect for effect in effects if effect.place == place]
        table = Partition.of_groups((place,), [np.arange(features[place].size)])
        terms.append(Round(table, *_table(features[place], of_place)))
    return terms, constant


def _effects_of_round(
    cells: Round, hessians: Array, directed: Sequence[int]
) -> tuple[list[_Effect], Array]:
    """Effects of the directed columns of a round, and the grid of its weights without them.

    A column that acts by itself has the same effect in all groups of the others: it is that in the
    first group of every other column.
    """
    groups, effects = _groups(cells.partition), list[_Effect]()
    weights, squares, masses = (
        _grid(values, groups)
        for values in (cells.weights, np.square(cells.noise), np.maximum(hessians, 0.0))
    )
    for axis in directed:
        other_axes = tuple(other for other in range(weights.ndim) if other != axis)
        in_first_groups = tuple(
            0 if other != axis else slice(None) for other in range(weights.ndim)
        )
        along = weights[in_first_groups]
        noise = np.sqrt(squares.sum(other_axes)) / (weights.size // len(along))
        place, mass = cells.partition.features[axis], masses.sum(other_axes)
        effects.append(_Effect(place, groups[axis], along - along[0], noise, mass))
        weights = weights - np.expand_dims(effects[-1].effects, other_axes)
    return effects, weights


def _undirected_part(cells: Round, grid: Array, directed: Sequence[int]) -> Round:
    """Columns of a round without a direction, by the grid of weights without directed effects."""
    groups = _groups(cells.partition)
    undirected = [axis for axis in range(grid.ndim) if axis not in directed]
    places = [cells.partition.features[axis] for axis in undirected]
    partition = Partition.of_groups(places, [groups[axis] for axis in undirected])
    weights = grid[tuple(slice(None) if axis in undirected else 0 for axis in range(grid.ndim))]
    squares = _grid(np.square(cells.noise), groups).sum(tuple(directed))
    noise = np.sqrt(squares) / (grid.size // weights.size)
    return Round(partition, weights.reshape(1, -1, order="F"), noise.reshape(1, -1, order="F"))


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
