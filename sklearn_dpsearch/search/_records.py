"""Records and targets for estimators of others, and helpers for estimators of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from ..adapters.adapter import is_ours
from ..data.columns import frame_of, is_data_set, is_frame, library_of, read_column, refused
from ..data.labels import targets_like
from ..data.lists import numbers_in, objects_in
from ..data.rows import ChosenRows

#: Libraries with columns that are no arrays.
SERIES = ("pandas", "polars", "pyarrow")
#: Hints at skorch's wrappers for records that cannot be split as they are, by name of the class.
WRAPPERS = {
    "dict": " Of a dict of arrays give skorch.helper.SliceDict(**X).",
    "DataLoader": " Of a DataLoader give its data set: skorch.helper.SliceDataset(loader.dataset), and y.",
    "Dataset": " Of a torch Dataset give skorch.helper.SliceDataset(dataset), and y.",
}

# --- estimators -------------------------------------------------------------------------------------------------------


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Set parameters and return the estimator. Without parameters, ``set_params`` of a foreign class is not called."""
    if parameters:
        estimator.set_params(**parameters)
    return estimator


def steps_of(estimator: Any) -> list[Any]:
    """Active steps of a pipeline, at any depth; for other estimators the estimator alone."""
    if type(estimator) is not Pipeline:
        return [estimator]
    found = [inner for _, step in estimator.steps if hasattr(step, "fit") for inner in steps_of(step)]
    return found or [estimator]


def parameter(estimator: Any, name: str) -> Any:
    """Value of an estimator's parameter, or what its schema states instead; None if the parameter does not exist."""
    given = estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None
    return getattr(estimator, "public_facts", {}).get(name) if given is None else given


def columns_read(estimator: Any) -> list[str]:
    """One line for each column of each schema in an estimator; none without a schema.

    Parameters
    ----------
    estimator : estimator
        Not fitted; models with a schema have a method of this name.
    """
    parts = [estimator, *estimator.get_params(deep=True).values()]
    readers = [part for part in parts if not isinstance(part, type) and callable(getattr(part, "columns_read", None))]
    return list(dict.fromkeys(line for reader in readers for line in reader.columns_read()))


def reads_any_record(model: Any) -> bool:
    """Return whether no record can make a training fail.

    All steps are of this library, run no module of a user, and know the classes (a schema has those of its target):
    else one label could be a class of its own.
    """
    *_, last = steps = steps_of(model)
    given = last.get_params(deep=False)
    known = not is_classifier(last) or any(given.get(name) is not None for name in ("classes", "target"))
    return known and all(is_ours(type(step)) for step in steps) and getattr(last, "takes_groups", False) is True


# --- the door ---------------------------------------------------------------------------------------------------------


def records_for(X: Any, models: Sequence[Any]) -> Any:
    """Records in a container for estimators of others: an array, or a data frame of pandas with NumPy's types.

    A list becomes an array of objects where a step reads text or tables, else of numbers.

    Raises
    ------
    TypeError
        For a container that is not known.
    """
    library = library_of(X)
    if is_frame(X):
        return frame_of(X, [name for model in models for name in exact_columns(model)])
    if library == "builtins":
        return (objects_in if any(map(_reads_objects, models)) else numbers_in)(X, "X")
    if library in SERIES:
        return read_column(X).values
    if library is None and not (issparse(X) or is_data_set(X)):
        raise TypeError(f"{refused(X)}{how_to_wrap(X)}")
    return X


def declared_classes(models: Sequence[Any]) -> list[Any]:
    """Classes that each model declares, or its schema; None where they are not declared."""
    return [parameter(steps_of(model)[-1], "classes") for model in models]


def targets_for(y: Any, models: Sequence[Any], declared: Sequence[Any]) -> Any:
    """Targets in an array: labels for a classifier, else numbers.

    Parameters
    ----------
    y : array-like
    models : sequence of estimators
    declared : sequence
        Their ``declared_classes``.
    """
    if y is None or is_data_set(y):
        return y
    known = [label for classes in declared if len(np.shape(classes)) == 1 for label in classes]
    return targets_like(y, list(dict.fromkeys(known)) or None, not any(map(is_classifier, models)))


def param_for(value: Any) -> Any:
    """Parameter of ``fit``: a column of another library in NumPy's form, others as they are."""
    return read_column(value).values if library_of(value) in SERIES and not is_frame(value) else value


def kind_of(dtype: Any) -> str:
    """NumPy's letter for a type of values; empty for objects, and where the type is unknown."""
    if str(dtype).lower().startswith("str"):  # of pandas and polars; NumPy would see any objects
        return "U"
    found = getattr(dtype, "kind", "")
    return "" if found == "O" else str(found)


def how_to_wrap(records: Any) -> str:
    """Hint for records that cannot be split as they are."""
    names = [kind.__name__ for kind in type(records).__mro__]
    return next(filter(None, map(WRAPPERS.get, names)), "")


def exact_columns(model: Any) -> list[str]:
    """Columns whose numbers must not be rounded, by the schemas of the steps."""
    schemas = [parameter(step, "schema") for step in steps_of(model)]
    entries = [entry for schema in schemas if isinstance(schema, Mapping) for entry in schema.items()]
    return [
        name for name, entry in entries if isinstance(entry, list) or (isinstance(entry, Mapping) and "values" in entry)
    ]


def _reads_objects(estimator: Any) -> bool:
    """Return whether a step, or a part of one, takes other entries than numbers: it reads each of them by itself."""
    for step in steps_of(estimator):
        tags, parts = get_tags(step).input_tags, step.transformer_list if type(step) is FeatureUnion else ()
        reads = type(step) is ColumnTransformer or tags.categorical or tags.string or tags.dict
        if reads or parameter(step, "schema") is not None:
            return True
        if any(_reads_objects(part) for _, part in parts if hasattr(part, "fit")):
            return True
    return False


# --- behind it --------------------------------------------------------------------------------------------------------


def n_records(X: Any) -> int:
    """Number of records, without reading any."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(data: Any, indices: np.ndarray) -> Any:
    """Copy the chosen records. The indices have eight bytes: containers multiply indices, and four may wrap around."""
    return None if data is None else _safe_indexing(data, np.asarray(indices, np.intp))


def rows_of(data: Any, indices: np.ndarray) -> Any:
    """Choose records without a copy where the container allows it."""
    return ChosenRows(data, indices) if type(data) in (np.ndarray, np.memmap) else take(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Take the chosen records' entries of a parameter with one entry per record; leave other parameters as they are."""
    per_record = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == n_records(X)
    return take(value, indices) if per_record else value
