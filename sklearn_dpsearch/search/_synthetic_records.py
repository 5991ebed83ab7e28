"""Records made up from public facts: bounds, norms, classes, categories and schemas, and the columns of given data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from ..data.columns import is_frame
from ..privacy import PrivacyError
from ._types import Scorer
from .planning.container_facts import ContainerFacts
from .planning.first_look import BOUNDS, KEEP_WIDTH, parameter, steps_of

#: Number of made-up records, and of features where none is declared.
RECORDS, FEATURES = 200, 4
#: For records like given data: most numbers in all of them together, and fewest records.
MOST_NUMBERS, FEWEST_RECORDS = 10**6, 20

Draw = Callable[[np.random.Generator, int], np.ndarray]


class NothingKnownError(PrivacyError):
    """Error for records that cannot be made up: estimator and data declare too little about them."""


def made_up_records(estimator: Any, scorer: Scorer) -> tuple[Any, np.ndarray | None]:
    """Records and targets of the declared kinds, from a public seed.

    Returns
    -------
    X : ndarray of shape (RECORDS, n_features), or data frame where columns are chosen by name
    y : ndarray of shape (RECORDS,) or None

    Raises
    ------
    NothingKnownError
        If the estimator does not declare its records.
    """
    rng, steps = np.random.default_rng(0), steps_of(estimator)
    drawn = _declared_columns(steps, None)
    return _within_norm(steps, _assembled(drawn, rng)), _targets(steps[-1], scorer, rng, RECORDS)


def made_up_like(estimator: Any, scorer: Scorer, X: ContainerFacts, y: ContainerFacts | None) -> tuple[Any, Any]:
    """Records and targets with the columns, shape and types of given data, from a public seed.

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
    n = max(FEWEST_RECORDS, min(RECORDS, MOST_NUMBERS // max(1, math.prod(X.shape[1:]))))
    records = _within_norm(steps, _records_like(X, steps, rng, n))
    return records, None if y is None else _targets_like(y, steps[-1], scorer, rng, n)


# --- draws of columns --------------------------------------------------------------------------------------


def _declared_columns(steps: Sequence[Any], width: int | None) -> dict[Any, Draw]:
    """Draws by name or position, as declared by the first step that declares anything about the records."""
    first = steps[0]
    if hasattr(first, "made_up"):  # it knows its table from a schema
        return _by_schema(first)
    if type(first) is ColumnTransformer:
        return _chosen_columns(first, any_choice=width is not None)
    features = FEATURES if width is None else width
    for step in steps:
        declared = _declared(step, features)
        if declared is not None:
            return dict(enumerate(declared))
        silent = isinstance(step, FunctionTransformer) or (width is None and hasattr(step, "module"))
        if silent:
            raise NothingKnownError(
                f"Found {type(step).__name__}, which does not say what its records look like, so none can be made up. "
                "Give X_example and y_example: a few public or made-up records."
            )
        if type(step).__name__ not in KEEP_WIDTH:
            break
    lowest = 0.0 if get_tags(first).input_tags.positive_only else -1.0
    return dict(enumerate([_uniform(lowest, 1.0)] * features))


def _declared(step: Any, features: int) -> list[Draw] | None:
    categories = parameter(step, "categories")
    if categories is not None and not isinstance(categories, str):
        return [_among(values) for values in categories]
    for name in BOUNDS:
        bounds = parameter(step, name)
        if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
            width = max(np.size(bounds[0]), np.size(bounds[1]))
            ends = np.broadcast_arrays(*bounds, np.zeros(width if width > 1 else features))[:2]
            return [_uniform(float(low), float(high)) for low, high in zip(*ends)]
    return None


def _chosen_columns(columns: ColumnTransformer, *, any_choice: bool) -> dict[Any, Draw]:
    """Draws of the columns chosen by name or position; other choices are an error, or left out with ``any_choice``."""
    drawn: dict[Any, Draw] = {}
    for name, part, chosen in columns.transformers:
        places = [chosen] if isinstance(chosen, (str, int)) else chosen
        if not isinstance(places, (list, tuple, np.ndarray)) or not all(isinstance(p, (str, int)) for p in places):
            if any_choice:
                continue
            raise NothingKnownError(
                f"Found columns of {name!r} chosen as {chosen!r}: these columns are unknown without a table, so "
                "no records can be made up. Give X_example and y_example: a few public or made-up records."
            )
        first = steps_of(part)[0] if hasattr(part, "get_params") else None
        declared = None if first is None else _declared(first, FEATURES)
        known = _by_schema(first) if hasattr(first, "made_up") else {}
        for i, place in enumerate(places):
            otherwise = declared[min(i, len(declared) - 1)] if declared else _uniform(-1.0, 1.0)
            drawn.setdefault(place, known.get(place, otherwise))
    return drawn


def _by_schema(step: Any) -> dict[Any, Draw]:
    """Draws by the names of a step that knows its table from a schema."""
    table = step.made_up(RECORDS)
    if not hasattr(table, "columns"):  # without pandas: an array of objects
        return {place: _resized(table[:, place]) for place in range(table.shape[1])}
    return {name: _resized(table[name].to_numpy()) for name in table.columns}


def _assembled(drawn: Mapping[Any, Draw], rng: np.random.Generator) -> Any:
    """Records of these columns: a data frame where columns have names."""
    if any(isinstance(place, str) for place in drawn):
        import pandas as pd

        return pd.DataFrame({place: draw(rng, RECORDS) for place, draw in drawn.items()})
    width = max(drawn, default=-1) + 1
    return np.column_stack([drawn.get(place, _uniform(-1.0, 1.0))(rng, RECORDS) for place in range(width)])


def _within_norm(steps: Sequence[Any], X: Any) -> Any:
    """Scale records to at most a declared norm."""
    norm = next((found for step in steps if (found := parameter(step, "data_norm")) is not None), None)
    if norm is None or getattr(getattr(X, "dtype", None), "kind", "") != "f":
        return X
    return X * (norm / max(np.linalg.norm(X, axis=1).max(), norm))


# --- as given data are ------------------------------------------------------------------------------------------------


def _records_like(X: ContainerFacts, steps: Sequence[Any], rng: np.random.Generator, n: int) -> Any:
    if is_frame(X.empty):
        return _table_like(X.empty, _declared_columns(steps, X.width), rng, n)
    if X.is_sparse:
        dense = rng.uniform(size=(n, X.shape[1])) * (rng.uniform(size=(n, X.shape[1])) < 0.1)
        return X.type(dense.astype(X.dtype)).tocsr()
    if not isinstance(X.empty, np.ndarray) or X.dtype.kind not in "biufO" or len(X.shape) < 2:
        raise NothingKnownError(
            f"Found X of type {X.type.__name__}, from which no records can be made up: only arrays and data "
            "frames show their columns. Give an array of shape (n_samples, n_features) or a data frame."
        )
    width = math.prod(X.shape[1:])
    declared = list(_declared_columns(steps, width).values())  # a schema's columns stand in its order
    made = np.empty((n, width), X.dtype)
    if X.dtype.kind in "iu" and (tokens := _tokens(steps[-1])) is not None:
        return rng.integers(0, tokens, (n, *X.shape[1:])).astype(X.dtype)
    for place in range(width):
        values = (declared[place] if place < len(declared) else _uniform(-1.0, 1.0))(rng, n)
        made[:, place] = _of_type(values, X.dtype, _uniform(-1.0, 1.0)(rng, n))
    return made.reshape(n, *X.shape[1:])


def _tokens(net: Any) -> int | None:
    """Number of tokens that all embeddings of a net know; None without embeddings, or if the net cannot be made."""
    try:
        return net.n_tokens() if hasattr(net, "n_tokens") else None
    except Exception:  # the rehearsal itself shows it
        return None


def _table_like(X: Any, declared: Mapping[Any, Draw], rng: np.random.Generator, n: int) -> Any:
    """Data frame with the same columns and types, filled from declared draws."""
    import pandas as pd

    columns = []
    for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes)):
        plain, draw = pd.Series(_of_kind(dtype, rng, n)), declared.get(place, declared.get(name))
        columns.append(_of_type(plain if draw is None else pd.Series(draw(rng, n)), dtype, plain))
    return pd.concat(columns, axis=1, keys=X.columns)


def _of_kind(dtype: Any, rng: np.random.Generator, n: int) -> np.ndarray:
    """Values for a column of which only the type is known."""
    kind = dtype.kind
    if kind in "iub":
        return rng.integers(0, 2, n)
    if kind == "f":
        return rng.uniform(-1.0, 1.0, n)
    days = rng.integers(0, 10_000, n)
    return days.astype("datetime64[D]").astype("datetime64[us]") if kind == "M" else np.resize(["a", "b"], n)


def _of_type(values: Any, dtype: Any, otherwise: Any) -> Any:
    """Values in a column's type; else ``otherwise`` in this type; else the values as they are."""
    if dtype.kind in "iu" and values.dtype.kind == "f":
        values = values.round()
    for found in (values, otherwise):
        with contextlib.suppress(ValueError, TypeError, OverflowError), np.errstate(invalid="ignore"):
            return found.astype(dtype)
    return values


# --- targets ----------------------------------------------------------------------------------------------------------


def _targets(
    last: Any, scorer: Scorer, rng: np.random.Generator, n: int, of: ContainerFacts | None = None
) -> np.ndarray | None:
    if is_regressor(last):
        bounds = parameter(last, "bounds_y")
        low, high = bounds if isinstance(bounds, (tuple, list)) else (-1.0, 1.0)
        return rng.uniform(np.min(low), np.max(high), n)
    if is_classifier(last) or of is not None:
        return np.resize(np.asarray(_labels(last, scorer, of)), n)
    return None


def _targets_like(y: ContainerFacts, last: Any, scorer: Scorer, rng: np.random.Generator, n: int) -> Any:
    """Targets of the shape and type of given ones."""
    shape, dtype = y.shape[1:], np.dtype(y.dtype or object)
    if any(width > 1 for width in shape):  # several numbers or labels of each record
        values = rng.uniform(-1.0, 1.0, (n, *shape)) if is_regressor(last) else rng.integers(0, 2, (n, *shape))
        return _of_type(values, dtype, values)
    found = _targets(last, scorer, rng, n, y)
    assert found is not None
    return _of_type(found, dtype, found).reshape(n, *shape)


def _labels(last: Any, scorer: Scorer, of: ContainerFacts | None = None) -> Sequence[Any]:
    """Labels as declared, as the scorer names them, or as the type of given targets has them."""
    declared, options = parameter(last, "classes"), getattr(scorer, "_kwargs", {})
    named = getattr(scorer, "pos_label", options.get("pos_label"))
    if declared is not None:
        return list(declared)
    if (classes := getattr(scorer, "classes", options.get("labels"))) is not None and len(classes):
        return list(classes)
    if named is not None:
        return [named, "another" if isinstance(named, str) else 1 - bool(named)]
    return ["a", "b"] if getattr(getattr(of, "dtype", None), "kind", "") in tuple("OUST") else [0, 1]


def _uniform(low: float, high: float) -> Draw:
    return lambda rng, n: rng.uniform(low, high, n)


def _among(values: Any) -> Draw:
    """Every value at least once, as far as there are records."""
    return lambda rng, n: rng.permutation(np.resize(np.asarray(values), n))


def _resized(values: np.ndarray) -> Draw:
    return lambda rng, n: np.resize(values, n)
