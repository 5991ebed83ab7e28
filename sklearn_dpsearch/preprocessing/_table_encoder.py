"""Encoder of tables by a public schema."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from .._documentation import linked
from ..data._columns import names_of
from ._columns import Array, ColumnShape, Detail, Unit, shape_of
from ._ranges import AUTO
from ._schema import SHOWN_VALUES, Schema, numbers_of_bins

#: Records encoded at once where a block at a time is wanted.
BLOCK = 2**14


@linked
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as numbers of unit scale, by a public schema.

    Nothing is learned from the records, so encoding is free under every neighbouring relation. A
    range becomes [-1, 1]: values outside are clipped, missing values become 0. With ``bins`` each
    range also has one-hot columns for several equal parts, and dates have one-hot columns for
    months, weekdays and hours: a linear model then learns curves. Each value of a list becomes a
    one-hot column. With ``indicators`` each range has a further column that is 1 if the value is
    missing, and each list one that is 1 if the value is missing or not in the list. No value of a
    record raises an error.

    Parameters
    ----------
    schema : Schema or dict
        Columns by name: (lower, upper) as a tuple of numbers or of dates, a list of all values, or
        a dictionary with options (see ``Schema``). Other columns of a table are left out. Arrays
        without names must have these columns in this order.
    bins : int, "auto" or None, default=None
        Equal bins of each range without bins in the schema. "auto": 16, or one for each whole
        number if there are fewer. Use bins for linear models; hidden layers find curves themselves.
    indicators : bool, default=True
        Whether missing or unknown values have columns of their own.
    row_norm : float, optional
        If given, all numbers are multiplied by one constant, so that every row has at most this
        Euclidean norm.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only after ``fit`` on a data frame.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = TableEncoder({"age": (20, 80), "job": ["clerk", "nurse"]})
    >>> encoder.set_output(transform="pandas").fit_transform(
    ...     pd.DataFrame({"age": [50, 95, None], "job": ["clerk", "nurse", "pilot"]})
    ... ).astype(int)
       age  age_missing  job_clerk  job_nurse  job_unknown
    0    0            0          1          0            0
    1    1            0          0          1            0
    2    0            1          0          0            1
    """

    _parameter_constraints: dict[str, Any] = {
        "schema": [Mapping, str, PathLike],  # of files ``Schema.of`` says more
        "bins": [None, StrOptions({AUTO}), Interval(numbers.Integral, 2, None, closed="left")],
        "indicators": ["boolean"],
        "row_norm": [None, Interval(numbers.Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        schema: Schema | Mapping[str, Any],
        *,
        bins: int | str | None = None,
        indicators: bool = True,
        row_norm: float | None = None,
    ):
        self.schema = schema
        self.bins = bins
        self.indicators = indicators
        self.row_norm = row_norm

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the names and types of the columns; nothing is learned.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
        y : object
            Not used.

        Returns
        -------
        self : object
        """
        schema = self._checked_schema()
        schema.read_columns(X)
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = len(schema) if names is None else len(names)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encode a table as numbers between -1 and 1, shape (n_samples, n_outputs).

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
        """
        return next(self.blocks(X, None))

    def blocks(self, X: Any, size: int | None = BLOCK) -> Iterator[NDArray[np.float64]]:
        """Yield the encoded table in blocks of records, as all of them may not fit into memory.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
        size : int, optional
            Most records of a block; None: one block.

        Yields
        ------
        ndarray of shape (at most size, n_outputs)
        """
        schema = self._checked_schema()
        columns = schema.read_columns(X).items()
        read = [(schema.columns[name], entries.values) for name, entries in columns]
        width, scale, n = len(self._output_units(schema)), self._row_scale(schema), len(read[0][1])
        for start in range(0, max(n, 1), size or max(n, 1)):
            rows = slice(start, min(start + size, n) if size else n)
            # filled column by column: it may be large
            encoded, end = np.empty((rows.stop - rows.start, width)), 0
            for column, values in read:
                part = column.encoded(values[rows], self._detail)
                encoded[:, end : end + part.shape[1]] = part
                end += part.shape[1]
            encoded *= scale
            yield encoded

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run.

        They hold nothing about real records.

        Parameters
        ----------
        n_samples : int
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
            Of pandas; without it an array of objects.
        """
        rng = np.random.default_rng(random_state)
        columns = self._checked_schema().columns.items()
        values = {name: column.made_up(rng, n_samples) for name, column in columns}
        try:
            import pandas as pd
        except ImportError:
            return np.column_stack([part.astype(object) for part in values.values()])
        return pd.DataFrame(values)

    def columns_read(self) -> list[str]:
        """Lines that say how columns are read, such as ``age: number from 18 to 90, 17 bins``."""
        schema = self._checked_schema()
        return schema.described(numbers_of_bins(schema.columns, self._detail), SHOWN_VALUES)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the outputs, shape (n_outputs,), such as ``age`` and ``job_clerk``.

        Parameters
        ----------
        input_features : object
            Not used: the schema has the names.
        """
        units = self._output_units(self._checked_schema())
        return np.array([unit.name for unit in units], dtype=object)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest number of each output, two arrays of shape (n_outputs,)."""
        schema = self._checked_schema()
        scale = self._row_scale(schema)
        lowest = [
            column.lowest if output == 0 else 0.0
            for name, column in schema.columns.items()
            for output, _ in enumerate(column.outputs(name, self._detail))
        ]
        return np.array(lowest) * scale, np.full(len(lowest), scale)

    @property
    def are_bins(self) -> NDArray[np.bool_]:
        """Mask of outputs that are bins, months, weekdays or hours, shape (n_outputs,)."""
        return np.array([unit.beside for unit in self._output_units(self._checked_schema())])

    @property
    def max_norm(self) -> float:
        """Largest norm of an encoded row, by the schema: ``data_norm`` of diffprivlib."""
        if self.row_norm is None:
            return self._longest_row(self._checked_schema())
        return float(self.row_norm)

    def in_units(
        self, coefficients: ArrayLike, intercept: float = 0.0
    ) -> tuple[dict[str, float], float]:
        """Coefficients of a linear model in the units of the table's own values.

        Parameters
        ----------
        coefficients : array-like of shape (n_outputs,)
            Of a model trained on the output of ``transform``.
        intercept : float
            Of the same model.

        Returns
        -------
        dict of str to float
            Per unit of a number, per day of a date, and for each value of a list.
        float
            The intercept, if every range counts from 0 (dates from 1970-01-01) and no value is
            missing.
        """
        schema = self._checked_schema()
        units, scale = self._output_units(schema), self._row_scale(schema)
        array = np.asarray(coefficients, dtype=np.float64)
        _check_shape(array, (len(units),))
        weighted = zip(units, scale * array)
        weights = {unit.name: float(weight / unit.half) for unit, weight in weighted}
        return weights, float(intercept) - sum(weights[unit.name] * unit.middle for unit in units)

    def shapes(
        self,
        coefficients: ArrayLike,
        noise: ArrayLike | None = None,
        columns: Sequence[str] | None = None,
    ) -> dict[str, ColumnShape]:
        """Effects of the values of each column in a linear model, by its coefficients alone.

        Parameters
        ----------
        coefficients : array-like of shape (n_outputs,) or (n_curves, n_outputs)
            Of a model trained on the output of ``transform``.
        noise : array-like, optional
            Standard deviation of independent privacy noise in each coefficient; one number stands
            for all.
        columns : sequence of str, optional
            Columns of the schema; None: all.

        Returns
        -------
        dict of str to ColumnShape
            By column. The months, weekdays and hours of a date have shapes of their own:
            ``since_month`` …
        """
        schema = self._checked_schema()
        chosen = schema if columns is None else schema.only(*columns)
        array = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
        places, scale = self._output_places(schema), self._row_scale(schema)
        _check_shape(array, (len(array), len(self._output_units(schema))))
        spread = None
        if noise is not None:
            spread = np.broadcast_to(np.asarray(noise, dtype=np.float64), array.shape) * scale
        effects = {}
        for name, column in chosen.columns.items():
            weights = array[:, places[name]] * scale
            errors = None if spread is None else spread[:, places[name]]
            for points in column.curves(name, self._detail):
                effects[points.name] = shape_of(points, weights, errors)
        return effects

    def _output_places(self, schema: Schema) -> dict[str, slice]:
        """Places of each column's outputs."""
        columns = schema.columns.items()
        widths = [sum(1 for _ in column.outputs(name, self._detail)) for name, column in columns]
        ends = itertools.accumulate(widths)
        return {name: slice(end - width, end) for name, width, end in zip(schema, widths, ends)}

    def _checked_schema(self) -> Schema:
        """Schema, after a check of all parameters."""
        self._validate_params()
        return Schema.of(self.schema)

    def _output_units(self, schema: Schema) -> list[Unit]:
        """Units of all outputs, with different names.

        Repeated names are numbered, such as that of a value "unknown".
        """
        units: dict[str, Unit] = {}
        for column_name, column in schema.columns.items():
            for unit in column.outputs(column_name, self._detail):
                numbered = (f"{unit.name}_{number}" for number in itertools.count(2))
                names = itertools.chain([unit.name], numbered)
                name = next(name for name in names if name not in units)
                units[name] = unit._replace(name=name)
        return list(units.values())

    def _row_scale(self, schema: Schema) -> float:
        """Constant factor that keeps rows within ``row_norm``."""
        if self.row_norm is None:
            return 1.0
        return math.nextafter(float(self.row_norm) / self._longest_row(schema), 0.0)

    def _longest_row(self, schema: Schema) -> float:
        """Largest norm of a row before scaling."""
        columns = schema.columns.values()
        return math.sqrt(sum(column.squared_norm(self._detail) for column in columns))

    @property
    def _detail(self) -> Detail:
        """Options of the encoder for its columns."""
        return Detail(indicators=bool(self.indicators), bins=self.bins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _check_shape(coefficients: Array, needed: tuple[int, ...]) -> None:
    """Raise unless there is a coefficient for each output."""
    if coefficients.shape != needed:
        raise ValueError(
            f"Found coefficients of shape {coefficients.shape}; shape {needed} is needed, one for "
            "each output. Of several classes in_units takes one row."
        )
