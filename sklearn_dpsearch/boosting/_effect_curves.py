"""Curves of boosting: mean effects of each value of a column over the other columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..preprocessing import ColumnShape
from ..preprocessing._columns import CurvePoints, shape_of
from ._features import CodedValues
from ._losses import Array
from ._rounds import Round


def effect_curve(
    rounds: Sequence[Round], place: int, coded: CodedValues, contrasts: Array
) -> ColumnShape:
    """Effect curve of a feature: the sum of its steps in all rounds.

    Parameters
    ----------
    rounds : sequence of Round
    place : int
        Of the feature.
    coded : CodedValues
        Its values.
    contrasts : ndarray of shape (n_curves, n_outputs)
        Curves as sums of outputs.
    """
    empty = np.empty((contrasts.shape[1], 0))
    by_round = [(empty, empty, np.empty((len(coded.codes), 0)))]
    chosen = [cells for cells in rounds if place in cells.partition.features]
    by_round += [_effects_in_round(cells, place, coded) for cells in chosen]
    effects, noise, rows = (np.hstack(parts) for parts in zip(*by_round))
    points = CurvePoints(coded.name, coded.values, rows, coded.weights)
    return shape_of(points, contrasts @ effects, np.sqrt(contrasts**2 @ noise**2))


def _effects_in_round(cells: Round, place: int, coded: CodedValues) -> tuple[Array, Array, Array]:
    """Effects of a feature's groups in a round, their noise, and the group of each value, one-hot.

    Effects are averaged over the other features.
    All codes of these count the same, but for the last, which is for missing values.
    """
    other_cells, shares = np.zeros(1, np.intp), np.ones(1)
    for feature, lookup in zip(cells.partition.features, cells.partition.lookups):
        if feature == place:
            groups_of_codes = lookup
        else:
            groups, counts = np.unique(lookup[:-1], return_counts=True)
            other_cells = np.add.outer(other_cells, groups).ravel()
            shares = np.multiply.outer(shares, counts / counts.sum()).ravel()
    groups = np.unique(groups_of_codes)
    numbers = np.add.outer(groups, other_cells)
    return (
        cells.weights[:, numbers] @ shares,
        np.sqrt(np.square(cells.noise[:, numbers]) @ np.square(shares)),
        (groups_of_codes[coded.codes][:, np.newaxis] == groups).astype(np.float64),
    )
