"""Ready-made nets for data frames: a schema encodes the columns inside of the estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from ...preprocessing import Schema
from ...privacy._types import Neighboring
from ..randomness import Seed
from . import docstrings, scaling
from .frame_records import FrameRecords
from .hidden_layers import HiddenLayers, HiddenLayerSizes
from .labels import ClassWeight
from .settings import MaxGradNorm
from .step_size import Decay, StepSize
from .table_base import Solver, TableNet
from .table_targets import TableClassifier, TableRegressor

_SCHEMA = """
    schema : Schema or dict
        Columns by name, as ``TableEncoder`` takes them: ranges, lists of all values, dictionaries with options. It is
        public knowledge. Other columns of a data frame are left out.
    target : str, optional
        Column of the schema that is predicted, and no feature. The schema then states {stated}.
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Outputs of each hidden layer on the columns without their bins. ``()``: none, an additive model. "auto":
        (32,) for classes from n·μ = 10,000 on, and (32,), or (128, 64, 32) from 10,000 records on, for numbers from n·μ
        = 1,000 on; else none. n is the number of records, and μ = sample_rate·√steps ÷ noise multiplier.
    activation : {{"relu", "tanh", "logistic", "identity"}}, default="relu"
        Activation of the hidden layers, by scikit-learn's names.
    bins : int, "auto" or None, default="auto"
        Equal bins of each range without bins in the schema, for the linear part. "auto": 16, or one for each whole
        number if there are fewer.
    indicators : bool, default=True
        Whether missing or unknown values have inputs of their own."""

_OF_NUMBERS = docstrings.OPTIMIZATION.replace("default=30", "default=60")


class DPTabularClassifier(HiddenLayers, FrameRecords, TableClassifier, TableNet):
    __doc__ = f"""Classifier of data frames, trained with DP-SGD: a linear part and a perceptron, added up.

    The linear part sees every column of the encoded table, bins included; the perceptron sees it without bins (wide and
    deep: Cheng et al. 2016). Without hidden layers the model is additive.

    Parameters
    ----------{_SCHEMA.format(stated="``classes``")}{docstrings.CLASSES}{docstrings.OPTIMIZATION}{docstrings.TRAINING}
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.{docstrings.WIDTHS}
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({{"age": np.arange(1000) % 60 + 20, "job": ["clerk", "nurse"] * 500}})
    >>> table["pay"] = np.where((table["age"] > 40) & (table["age"] < 60), "high", "low")
    >>> schema = {{"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"]}}
    >>> net = DPTabularClassifier(schema, target="pay", target_epsilon=3.0, target_delta=1e-5)
    >>> bool(net.fit(table, table["pay"]).score(table, table["pay"]) > 0.8)
    True
    """

    def __init__(
        self, schema: Schema | Mapping[str, Any], *, target: str | None = None,
        hidden_layer_sizes: HiddenLayerSizes = "auto", activation: str = "relu", bins: int | str | None = "auto",
        indicators: bool = True, classes: ArrayLike | None = None, class_weight: ClassWeight = None,
        noise_multiplier: float | None = None,
        target_epsilon: float | None = None, target_delta: float | None = None, target_mu: float | None = None,
        max_grad_norm: MaxGradNorm = "rule", sample_rate: float | None = None, batch_size: float | None = None,
        neighboring: Neighboring = "zero_out", max_epochs: float = 30,
        max_steps: float | None = None, solver: Solver = "sgd", learning_rate: Decay = "linear",
        learning_rate_init: StepSize = "auto", learning_rate_factor: float = 1.0, momentum: float = 0.0,
        alpha: float = 0.0, average: float = 0.0, warm_start: bool = False, device: Any = "cpu",
        max_physical_batch: int = 16384, random_state: Seed = None, noise_seed: Seed = None,
        checkpoint: str | os.PathLike[str] | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._keep(locals())


class DPTabularRegressor(HiddenLayers, FrameRecords, TableRegressor, TableNet):
    __doc__ = f"""Regressor of data frames, trained with DP-SGD: a linear part and a perceptron, added up.

    The linear part sees every column of the encoded table, bins included; the perceptron sees it without bins (wide and
    deep: Cheng et al. 2016). Without hidden layers the model is additive.

    Parameters
    ----------{_SCHEMA.format(stated="``bounds_y``")}{docstrings.BOUNDS_Y}{_OF_NUMBERS}{docstrings.TRAINING}
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.{docstrings.WIDTHS}

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({{"rooms": np.arange(1000) % 9 + 1, "city": ["Ur", "Uruk"] * 500}})
    >>> table["price"] = 10.0 * table["rooms"]
    >>> net = DPTabularRegressor(
    ...     {{"rooms": (1, 9), "city": ["Ur", "Uruk"], "price": (0, 100)}},
    ...     target="price", target_epsilon=3.0, target_delta=1e-5,
    ... )
    >>> bool(net.fit(table, table["price"]).score(table, table["price"]) > 0.8)
    True
    """

    def __init__(
        self, schema: Schema | Mapping[str, Any], *, target: str | None = None,
        hidden_layer_sizes: HiddenLayerSizes = "auto", activation: str = "relu", bins: int | str | None = "auto",
        indicators: bool = True, bounds_y: scaling.Given | None = None,
        noise_multiplier: float | None = None,
        target_epsilon: float | None = None, target_delta: float | None = None, target_mu: float | None = None,
        max_grad_norm: MaxGradNorm = "rule", sample_rate: float | None = None, batch_size: float | None = None,
        neighboring: Neighboring = "zero_out", max_epochs: float = 60,
        max_steps: float | None = None, solver: Solver = "sgd", learning_rate: Decay = "linear",
        learning_rate_init: StepSize = "auto", learning_rate_factor: float = 1.0, momentum: float = 0.0,
        alpha: float = 0.0, average: float = 0.0, warm_start: bool = False, device: Any = "cpu",
        max_physical_batch: int = 16384, random_state: Seed = None, noise_seed: Seed = None,
        checkpoint: str | os.PathLike[str] | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._keep(locals())
