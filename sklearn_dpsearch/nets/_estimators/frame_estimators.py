"""Ready-made nets for data frames: a schema encodes the columns inside of the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._documentation import documented
from ...preprocessing import ColumnShape, Schema
from ...preprocessing._schema import SHOWN_VALUES
from .._estimators import layers
from .layers import HiddenLayerSizes
from .table_base import TableClassifier, TableNet, TableRegressor
from .table_records import FrameRecords


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class FrameNet(TableNet):
    """Net for data frames: a linear part and a perceptron, added up.

    Parameters
    ----------
    schema : Schema or dict
        Columns by name, as ``TableEncoder`` takes them: ranges, lists of all values, dictionaries
        with options. It is public knowledge. Other columns of a data frame are left out.
    target : str, optional
        Column of the schema that is predicted, and no feature. The schema then states ``classes``,
        or ``bounds_y``.
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Outputs of each hidden layer on the columns without their bins. ``()``: none, an additive
        model. "auto": (32,) for classes from n·μ = 10,000 on, and (32,), or (128, 64, 32) from
        10,000 records on, for numbers from n·μ = 1,000 on; else none. n is the number of records,
        and μ = sample_rate·√steps ÷ noise multiplier.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        Activation of the hidden layers, by scikit-learn's names.
    bins : int, "auto" or None, default="auto"
        Equal bins of each range without bins in the schema, for the linear part. "auto": 16, or one
        for each whole number if there are fewer.
    indicators : bool, default=True
        Whether missing or unknown values have inputs of their own.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.
    """

    records_of = FrameRecords

    schema: Schema | Mapping[str, Any] = field(kw_only=False)
    target: str | None = None
    hidden_layer_sizes: HiddenLayerSizes = "auto"
    activation: str = "relu"
    bins: int | str | None = "auto"
    indicators: bool = True

    @property
    def public_facts(self) -> dict[str, Any]:
        """Facts about the target from the schema, by parameter: ``classes`` or ``bounds_y``."""
        return FrameRecords(self).stated

    def columns_read(self) -> list[str]:
        """One line for each column, as the schema is understood.

        For example ``age: number from 18 to 90, 17 bins``.
        """
        form = FrameRecords(self)
        target = (
            [] if self.target is None else form.table.only(self.target).described({}, SHOWN_VALUES)
        )
        return [*form.encoder.columns_read(), *(f"{line} (the target)" for line in target)]

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run.

        They hold nothing about real records.

        Parameters
        ----------
        n_samples : int
            Number of records.
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
            Of pandas; without it an array of objects.
        """
        return FrameRecords(self).encoder.made_up(n_samples, random_state)

    def shapes(self, columns: Sequence[str] | None = None) -> dict[str, ColumnShape]:
        """Effects of each column's values in the linear part of the model.

        Without hidden layers the linear part is the whole model. The effects follow from the
        schema and the released weights: no record is needed, and they cost no privacy.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the schema; None: all.

        Returns
        -------
        dict of str to ColumnShape
            By column, with a curve for the log odds of the second of two classes, for each of more
            classes (the log of its probability, less the mean over classes), or for a number in its
            unit. The months, weekdays and hours of a date have shapes of their own: ``since_month``
            … The noise is that of ``weight_noise_``.
        """
        check_is_fitted(self, "module_")
        records, module = FrameRecords(self), self.module_
        layer = module.wide if isinstance(module, layers.WideAndDeep) else module[0]
        contrasts = self._curves_of_outputs()
        weights = np.empty(layer.weight.shape)
        weights[:, records.order] = layer.weight.detach().cpu().numpy()
        noise = None
        if self.weight_noise_ is not None:
            noise = self.weight_noise_ * np.linalg.norm(contrasts, axis=1, keepdims=True)
        return records.encoder.shapes(contrasts @ weights, noise, columns)


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularClassifier(FrameNet, TableClassifier):
    """Classifier of data frames, trained with DP-SGD.

    A linear part sees every column of the encoded table, bins included; a perceptron, which is
    added to it, sees the table without bins (wide and deep: Cheng et al. 2016). Without hidden
    layers the model is additive.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"age": np.arange(1000) % 60 + 20, "job": ["clerk", "nurse"] * 500})
    >>> table["pay"] = np.where((table["age"] > 40) & (table["age"] < 60), "high", "low")
    >>> schema = {"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"]}
    >>> net = DPTabularClassifier(schema, target="pay", target_epsilon=3.0, target_delta=1e-5)
    >>> bool(net.fit(table, table["pay"]).score(table, table["pay"]) > 0.8)
    True
    """


@documented
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularRegressor(FrameNet, TableRegressor):
    """Regressor of data frames, trained with DP-SGD.

    A linear part sees every column of the encoded table, bins included; a perceptron, which is
    added to it, sees the table without bins (wide and deep: Cheng et al. 2016). Without hidden
    layers the model is additive.

    Parameters
    ----------
    max_epochs : float, default=60
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"rooms": np.arange(1000) % 9 + 1, "city": ["Ur", "Uruk"] * 500})
    >>> table["price"] = 10.0 * table["rooms"]
    >>> net = DPTabularRegressor(
    ...     {"rooms": (1, 9), "city": ["Ur", "Uruk"], "price": (0, 100)},
    ...     target="price", target_epsilon=3.0, target_delta=1e-5,
    ... )
    >>> bool(net.fit(table, table["price"]).score(table, table["price"]) > 0.8)
    True
    """

    max_epochs: float = 60
