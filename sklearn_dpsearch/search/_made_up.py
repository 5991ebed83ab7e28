"""Records made up from what an estimator declares in public: bounds, norms, classes, categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer

from ..privacy import PrivacyError
from ._types import Scorer
from .planning.first_look import BOUNDS, KEEP_WIDTH, parameter, steps_of

#: Records, and features where nothing says how many there are.
RECORDS, FEATURES = 200, 4

Draw = Callable[[np.random.Generator, int], np.ndarray]


def made_up_records(estimator: Any, scorer: Scorer) -> tuple[Any, np.ndarray | None]:
    """Records and targets of the declared kinds, from a public seed.

    Returns
    -------
    X : ndarray of shape (RECORDS, n_features), or data frame where columns are chosen by name
    y : ndarray of shape (RECORDS,) or None

    Raises
    ------
    PrivacyError
        If the estimator does not say what its records look like.
    """
    rng, steps = np.random.default_rng(0), steps_of(estimator)
    return _features(steps, rng), _targets(steps[-1], scorer, rng)


def _features(steps: Sequence[Any], rng: np.random.Generator) -> Any:
    first = steps[0]
    if hasattr(first, "made_up"):  # it knows its table from a schema
        return first.made_up(RECORDS)
    if type(first) is ColumnTransformer:
        return _table(first, rng)
    columns = _columns(steps)
    X = np.column_stack([draw(rng, RECORDS) for draw in columns])
    norm = next((found for step in steps if (found := parameter(step, "data_norm")) is not None), None)
    return X if norm is None or X.dtype.kind != "f" else X * (norm / max(np.linalg.norm(X, axis=1).max(), norm))


def _columns(steps: Sequence[Any]) -> list[Draw]:
    """What each column is drawn from, as the first step that says something about the records says it."""
    for step in steps:
        declared = _declared(step)
        if declared is not None:
            return declared
        if isinstance(step, FunctionTransformer) or hasattr(step, "module"):
            raise PrivacyError(
                f"Found {type(step).__name__}, which does not say what its records look like, so none can be made up. "
                "Give X_example and y_example: a few public or made-up records."
            )
        if type(step).__name__ not in KEEP_WIDTH:
            break
    return [_uniform(-1.0, 1.0)] * FEATURES


def _declared(step: Any) -> list[Draw] | None:
    categories = parameter(step, "categories")
    if categories is not None and not isinstance(categories, str):
        return [_among(values) for values in categories]
    for name in BOUNDS:
        bounds = parameter(step, name)
        if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
            width = max(np.size(bounds[0]), np.size(bounds[1]))
            ends = np.broadcast_arrays(*bounds, np.zeros(width if width > 1 else FEATURES))[:2]
            return [_uniform(float(low), float(high)) for low, high in zip(*ends)]
    return None


def _table(columns: ColumnTransformer, rng: np.random.Generator) -> Any:
    """Every column that is chosen by its name or its position."""
    drawn: dict[Any, Draw] = {}
    for name, part, chosen in columns.transformers:
        places = [chosen] if isinstance(chosen, (str, int)) else chosen
        if not isinstance(places, (list, tuple, np.ndarray)) or not all(isinstance(p, (str, int)) for p in places):
            raise PrivacyError(
                f"Found columns of {name!r} chosen as {chosen!r}: which there are is not known without a table, so "
                "no records can be made up. Give X_example and y_example: a few public or made-up records."
            )
        declared = _declared(steps_of(part)[0]) if hasattr(part, "get_params") else None
        known = _by_schema(steps_of(part)[0]) if hasattr(part, "get_params") else {}
        for i, place in enumerate(places):
            otherwise = declared[min(i, len(declared) - 1)] if declared else _uniform(-1.0, 1.0)
            drawn.setdefault(place, known.get(place, otherwise))
    if any(isinstance(place, str) for place in drawn):
        import pandas as pd

        return pd.DataFrame({place: draw(rng, RECORDS) for place, draw in drawn.items()})
    width = max(drawn, default=-1) + 1
    return np.column_stack([drawn.get(place, _uniform(-1.0, 1.0))(rng, RECORDS) for place in range(width)])


def _by_schema(step: Any) -> dict[str, Draw]:
    """What each column of a table is drawn from, where a step knows them from a schema."""
    if not hasattr(step, "made_up"):
        return {}
    table = step.made_up(RECORDS)
    return {name: lambda rng, n, name=name: np.resize(table[name].to_numpy(), n) for name in table}  # type: ignore[misc]


def _targets(last: Any, scorer: Scorer, rng: np.random.Generator) -> np.ndarray | None:
    if is_classifier(last):
        return np.resize(np.asarray(_labels(last, scorer)), RECORDS)
    if is_regressor(last):
        bounds = parameter(last, "bounds_y")
        low, high = bounds if isinstance(bounds, (tuple, list)) else (-1.0, 1.0)
        return rng.uniform(np.min(low), np.max(high), RECORDS)
    return None


def _labels(last: Any, scorer: Scorer) -> Sequence[Any]:
    declared, named = parameter(last, "classes"), getattr(scorer, "pos_label", None)
    if declared is not None:
        return list(declared)
    if classes := getattr(scorer, "classes", None):
        return list(classes)
    return [0, 1] if named is None else [named, "another" if isinstance(named, str) else 1 - bool(named)]


def _uniform(low: float, high: float) -> Draw:
    return lambda rng, n: rng.uniform(low, high, n)


def _among(values: Any) -> Draw:
    """Every value at least once, as far as there are records."""
    return lambda rng, n: rng.permutation(np.resize(np.asarray(values), n))
