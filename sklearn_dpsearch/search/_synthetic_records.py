"""Records made up from public facts.

The facts are bounds, classes, categories and schemas, and the columns of given data.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from ..data._columns import is_frame
from ..privacy import PrivacyError
from ._records import Scorer, parameter, steps_of

#: Number of made-up records, and of features where none is declared.
RECORDS, FEATURES = 200, 4
#: For records like given data: most numbers in all of them together, and fewest records.
MOST_NUMBERS, FEWEST_RECORDS = 10**6, 20
#: Parameters that hold one pair of bounds for all features, or one for each.
BOUNDS = ("bounds", "bounds_X")
#: Steps that keep the number of features.
EQUAL_WIDTH_STEPS = ("Binarizer", "Normalizer", "OrdinalEncoder", "SimpleImputer", "StandardScaler")

#: Errors of values that a type does not hold.
UNFIT_ERRORS = (ValueError, TypeError, OverflowError)
Draw = Callable[[np.random.Generator, int], np.ndarray]


class NothingKnownError(PrivacyError):
    """Error for records that cannot be made up.

    Estimator and data declare too little about them.
    """


def made_up(estimator: Any, scorer: Scorer, like: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """Records and targets of the declared kinds, from a public seed.

    Parameters
    ----------
    estimator : estimator
    scorer : Scorer
    like : (X, y), optional
        Containers without records, whose columns, shapes and types are made up; else those that the
        estimator declares.

    Returns
    -------
    X : ndarray, sparse array or data frame
        At most ``RECORDS`` records.
    y : ndarray or None

    Raises
    ------
    NothingKnownError
        If the container, or the first step of the estimator, does not declare the records.
    """
    rng, steps = np.random.default_rng(0), steps_of(estimator)
    if like is None:
        drawn = _declared_columns(steps, None)
        return _assembled(drawn, rng), _targets(steps[-1], scorer, rng, RECORDS)
    X, y = like
    of_texts = isinstance(X, np.ndarray) and X.dtype.kind not in "biufO"
    if X is None or len(X.shape) < 2 or of_texts:
        raise NothingKnownError(
            "Found X from which no records can be made up: only arrays and data frames show their "
            "columns. Give an array of shape (n_samples, n_features) or a data frame."
        )
    n = max(FEWEST_RECORDS, min(RECORDS, MOST_NUMBERS // max(1, math.prod(X.shape[1:]))))
    records = _records_like(X, steps, rng, n)
    if y is None:
        return records, None
    shape = y.shape[1:]
    if not any(width > 1 for width in shape):
        targets = _targets(steps[-1], scorer, rng, n, y.dtype.kind)
    elif is_regressor(steps[-1]):  # several numbers or labels of each record
        targets = rng.uniform(-1.0, 1.0, (n, *shape))
    else:
        targets = rng.integers(0, 2, (n, *shape))
    return records, _of_type(targets, y.dtype, targets).reshape(n, *shape)


# --- records --------------------------------------------------------------------------------------


def _declared_columns(steps: Sequence[Any], width: int | None) -> dict[Any, Draw]:
    """Draws by name or position, as declared by the first step."""
    first = steps[0]
    if hasattr(first, "made_up"):  # it knows its table from a schema
        table = first.made_up(RECORDS)
        if not is_frame(table):  # without pandas: an array of objects
            return {place: _resized(table[:, place]) for place in range(table.shape[1])}
        return {name: _resized(table[name].array) for name in table.columns}
    features = FEATURES if width is None else width
    for step in steps:
        declared = _declared(step, features)
        if declared is not None:
            return dict(enumerate(declared))
        silent = hasattr(step, "transformers") or hasattr(step, "module")
        if isinstance(step, FunctionTransformer) or (width is None and silent):
            raise NothingKnownError(
                f"Found {type(step).__name__}, which does not say what its records look like, so "
                "none can be made up. Give X_example and y_example: a few public or made-up "
                "records."
            )
        if type(step).__name__ not in EQUAL_WIDTH_STEPS:
            break
    lowest = 0.0 if get_tags(first).input_tags.positive_only else -1.0
    return dict(enumerate([_uniform(lowest, 1.0)] * features))


def _declared(step: Any, features: int) -> list[Draw] | None:
    """Draws of columns by the step's categories or bounds; None if it declares neither."""
    categories = parameter(step, "categories")
    if categories is not None and not isinstance(categories, str):
        return [_among(values) for values in categories]
    bounds = next((pair for name in BOUNDS if (pair := parameter(step, name)) is not None), None)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        return None
    width = max(np.size(bounds[0]), np.size(bounds[1]))
    lows, highs = np.broadcast_arrays(*bounds, np.zeros(width if width > 1 else features))[:2]
    return [_uniform(float(low), float(high)) for low, high in zip(lows, highs)]


def _assembled(drawn: Mapping[Any, Draw], rng: np.random.Generator) -> Any:
    """Records of these columns: a data frame where columns have names."""
    columns = {place: draw(rng, RECORDS) for place, draw in drawn.items()}
    if any(isinstance(place, str) for place in drawn):
        import pandas as pd

        return pd.DataFrame(columns)
    return np.column_stack(list(columns.values()))


def _records_like(X: Any, steps: Sequence[Any], rng: np.random.Generator, n: int) -> Any:
    width = math.prod(X.shape[1:])
    if issparse(X):
        dense = rng.uniform(size=(n, width)) * (rng.uniform(size=(n, width)) < 0.1)
        return type(X)(dense.astype(X.dtype)).tocsr()
    declared = _declared_columns(steps, width)
    if is_frame(X):
        import pandas as pd

        columns = []
        for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes)):
            plain = pd.Series(_of_kind(dtype.kind, rng, n))
            draw = declared.get(place, declared.get(name))
            column = plain if draw is None else pd.Series(draw(rng, n))
            columns.append(_of_type(column, dtype, plain))
        return pd.concat(columns, axis=1, keys=X.columns)
    draws = list(declared.values())  # a schema's columns stand in its order
    records = np.empty((n, width), X.dtype)
    if X.dtype.kind in "iu" and (tokens := _tokens(steps[-1])) is not None:
        return rng.integers(0, tokens, (n, *X.shape[1:])).astype(X.dtype)
    for place in range(width):
        values = (draws[place] if place < len(draws) else _uniform(-1.0, 1.0))(rng, n)
        records[:, place] = _of_type(values, X.dtype, _uniform(-1.0, 1.0)(rng, n))
    return records.reshape(n, *X.shape[1:])


def _tokens(net: Any) -> int | None:
    """Number of tokens that all embeddings of a net know.

    It is None without embeddings, or if the net cannot be made.
    """
    try:
        return net.n_tokens() if hasattr(net, "n_tokens") else None
    except Exception:  # the rehearsal itself shows it
        return None


def _of_kind(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Values for a column of which only the type is known."""
    if kind in "iub":
        return rng.integers(0, 2, n)
    if kind == "f":
        return rng.uniform(-1.0, 1.0, n)
    if kind == "M":
        return rng.integers(0, 10_000, n).astype("datetime64[D]").astype("datetime64[us]")
    return np.resize(["a", "b"], n)


def _of_type(values: Any, dtype: Any, otherwise: Any) -> Any:
    """Values in a column's type; else ``otherwise`` in this type; else the values as they are."""
    if dtype.kind in "iu" and values.dtype.kind == "f":
        values = values.round()
    for column in (values, otherwise):
        with contextlib.suppress(*UNFIT_ERRORS), np.errstate(invalid="ignore"):
            return column.astype(dtype)
    return values


# --- targets --------------------------------------------------------------------------------------


def _targets(
    last: Any, scorer: Scorer, rng: np.random.Generator, n: int, kind: str | None = None
) -> Any:
    if is_regressor(last):
        bounds = parameter(last, "bounds_y")
        low, high = bounds if isinstance(bounds, (tuple, list)) else (-1.0, 1.0)
        return rng.uniform(np.min(low), np.max(high), n)
    if is_classifier(last) or kind is not None:
        return np.resize(np.asarray(_labels(last, scorer, kind)), n)
    return None


def _labels(last: Any, scorer: Scorer, kind: str | None) -> Sequence[Any]:
    """Labels as declared, as the scorer names them, or as the type of given targets has them."""
    options = getattr(scorer, "_kwargs", {})
    named = getattr(scorer, "pos_label", options.get("pos_label"))
    for declared in (parameter(last, "classes"), getattr(scorer, "classes", options.get("labels"))):
        if declared is not None and len(declared):
            return list(declared)
    if named is not None:
        return [named, "another" if isinstance(named, str) else 1 - bool(named)]
    return ["a", "b"] if kind is not None and kind in "OUST" else [0, 1]


def _uniform(low: float, high: float) -> Draw:
    return lambda rng, n: rng.uniform(low, high, n)


def _among(values: Any) -> Draw:
    """Every value at least once, as far as there are records."""
    return lambda rng, n: rng.permutation(np.resize(np.asarray(values), n))


def _resized(values: Any) -> Draw:
    return lambda rng, n: np.resize(np.asarray(values), n)
