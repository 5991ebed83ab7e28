"""Curves of boosting: the effect of each value of a column, in the mean over the other columns of
its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..preprocessing import ColumnShape
from ..preprocessing.columns import CurvePoints, shape_of
from .features import CodedValues
from .losses import Array
from .random_cells import Partition


class Round(NamedTuple):
    """Cells of a boosting round, their weights, and the noise in these.

    ``weights`` and ``noise`` have the shape (n_outputs, n_cells).
    """

    partition: Partition
    weights: Array
    noise: Array


class _Effects(NamedTuple):
    """Effects of a feature's groups in one round, and their noise.

    ``rows`` has the group of each value as one-hot rows.
    """

    effects: Array
    noise: Array
    rows: Array


def effect_curve(
    rounds: Sequence[Round], place: int, given: CodedValues, contrasts: Array
) -> ColumnShape:
    """Effect curve of a feature: the sum of its steps in all rounds.

    Parameters
    ----------
    rounds : sequence of Round
    place : int
        Of the feature.
    given : CodedValues
        Its values.
    contrasts : ndarray of shape (n_curves, n_outputs)
        Curves as sums of outputs.
    """
    nothing = np.empty((contrasts.shape[1], 0))
    found = [_Effects(nothing, nothing, np.empty((len(given.codes), 0)))]
    found += [
        _effects_in_round(one, place, given) for one in rounds if place in one.partition.features
    ]
    effects, noise, rows = (np.hstack(parts) for parts in zip(*found))
    points = CurvePoints(given.name, given.values, rows, given.weights)
    return shape_of(points, contrasts @ effects, np.sqrt(contrasts**2 @ noise**2))


def _effects_in_round(one: Round, place: int, given: CodedValues) -> _Effects:
    """Effects of a feature in a round, averaged over the other features.

    All codes of these count the same, but for the last, which is for missing values.
    """
    others, shares = np.zeros(1, np.intp), np.ones(1)
    for feature, lookup in zip(one.partition.features, one.partition.lookups):
        if feature == place:
            mine = lookup
        else:
            groups, counts = np.unique(lookup[:-1], return_counts=True)
            others = np.add.outer(others, groups).ravel()
            shares = np.multiply.outer(shares, counts / counts.sum()).ravel()
    groups = np.unique(mine)
    cells = np.add.outer(groups, others)
    return _Effects(
        one.weights[:, cells] @ shares,
        np.sqrt(np.square(one.noise[:, cells]) @ np.square(shares)),
        (mine[given.codes][:, np.newaxis] == groups).astype(np.float64),
    )
