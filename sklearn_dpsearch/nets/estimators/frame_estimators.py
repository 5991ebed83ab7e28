"""Ready-made nets for data frames: a schema encodes the columns inside of the estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...preprocessing import Schema
from . import frame_records
from .docstrings import documented
from .hidden_layers import HiddenLayerSizes
from .table_targets import TableClassifier, TableRegressor

SCHEMA = """
schema : Schema or dict
    Columns by name, as ``TableEncoder`` takes them: ranges, lists of all values, dictionaries with options. It is
    public knowledge. Other columns of a data frame are left out.
target : str, optional
    Column of the schema that is predicted, and no feature. The schema then states ``classes``, or ``bounds_y``.
hidden_layer_sizes : tuple of int or "auto", default="auto"
    Outputs of each hidden layer on the columns without their bins. ``()``: none, an additive model. "auto":
    (32,) for classes from n·μ = 10,000 on, and (32,), or (128, 64, 32) from 10,000 records on, for numbers from n·μ
    = 1,000 on; else none. n is the number of records, and μ = sample_rate·√steps ÷ noise multiplier.
activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
    Activation of the hidden layers, by scikit-learn's names.
bins : int, "auto" or None, default="auto"
    Equal bins of each range without bins in the schema, for the linear part. "auto": 16, or one for each whole
    number if there are fewer.
indicators : bool, default=True
    Whether missing or unknown values have inputs of their own."""


@documented(SCHEMA)
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularClassifier(TableClassifier):
    """Classifier of data frames, trained with DP-SGD: a linear part and a perceptron, added up.

    The linear part sees every column of the encoded table, bins included; the perceptron sees it without bins (wide and
    deep: Cheng et al. 2016). Without hidden layers the model is additive.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.

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

    schema: Schema | Mapping[str, Any] = field(kw_only=False)
    target: str | None = None
    hidden_layer_sizes: HiddenLayerSizes = "auto"
    activation: str = "relu"
    bins: int | str | None = "auto"
    indicators: bool = True

    records_of = frame_records.FrameRecords
    public_facts = property(frame_records.public_facts)
    columns_read, made_up, shapes = frame_records.columns_read, frame_records.made_up, frame_records.shapes


@documented(SCHEMA)
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class DPTabularRegressor(TableRegressor):
    """Regressor of data frames, trained with DP-SGD: a linear part and a perceptron, added up.

    The linear part sees every column of the encoded table, bins included; the perceptron sees it without bins (wide and
    deep: Cheng et al. 2016). Without hidden layers the model is additive.

    Parameters
    ----------
    max_epochs : float, default=60
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.

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

    schema: Schema | Mapping[str, Any] = field(kw_only=False)
    target: str | None = None
    hidden_layer_sizes: HiddenLayerSizes = "auto"
    activation: str = "relu"
    bins: int | str | None = "auto"
    indicators: bool = True
    max_epochs: float = 60

    records_of = frame_records.FrameRecords
    public_facts = property(frame_records.public_facts)
    columns_read, made_up, shapes = frame_records.columns_read, frame_records.made_up, frame_records.shapes
