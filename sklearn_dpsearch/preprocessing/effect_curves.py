"""Shapes: the effect of each value of a column in an additive model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import Array, CurvePoints


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnShape:
    """Effects of the values of a column in an additive model, less their mean over the public range or list.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        In the column's own unit. Numbers and dates rise, with two values where the curve jumps; others are objects.
    effects : ndarray of shape (n_curves, n_values)
        In the unit of the model's output, such as log odds.
    noise : ndarray of shape (n_curves, n_values) or None
        Standard deviation of the privacy noise in each effect; None if it is not known.
    """

    values: NDArray[Any]
    effects: Array
    noise: Array | None

    @property
    def of_list(self) -> bool:
        """Values without an order, as those of a list."""
        return bool(self.values.dtype == object)


def shape_of(points: CurvePoints, coefficients: Array, noise: Array | None) -> ColumnShape:
    """ColumnShape from the coefficients of a column's outputs.

    Parameters
    ----------
    points : CurvePoints
    coefficients : ndarray of shape (n_curves, n_outputs)
    noise : ndarray of shape (n_curves, n_outputs) or None
        Standard deviations of independent noise in the coefficients.
    """
    rows = points.rows - np.average(points.rows, axis=0, weights=points.weights)
    return ColumnShape(
        values=points.values,
        effects=coefficients @ rows.T,
        noise=None if noise is None else np.sqrt(noise**2 @ (rows**2).T),
    )
