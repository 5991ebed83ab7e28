"""Records behind the door.

They are all that a search, its processes and estimators of others get of what a user gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ._columns import array_of, frame_of, is_data_set, is_frame, library_of, read_column, refused
from ._labels import as_array, label_kind, targets_like
from ._lists import numbers_in, objects_in
from ._plain_values import plain_objects
from ._rows import ChosenRows

#: Hints at skorch's wrappers for records that cannot be split as they are, by name of the class.
WRAPPERS = {
    "dict": " Of a dict of arrays give skorch.helper.SliceDict(**X).",
    "DataLoader": (
        " Of a DataLoader give its data set: skorch.helper.SliceDataset(loader.dataset), and y."
    ),
    "Dataset": " Of a torch Dataset give skorch.helper.SliceDataset(dataset), and y.",
}
#: Data sets of which records can be chosen.
SLICED_DATASETS = ("SliceDataset", "SliceDict")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Public facts by which containers without types are read.

    Parameters
    ----------
    exact : tuple of str
        Columns whose numbers must not be rounded.
    of_objects : bool
        Whether a list of rows becomes an array of objects, as for text and tables, or of numbers.
    row_shape : tuple of int or None
        Shape of a row of a list; None: that of all rows.
    classes : tuple or None
        Labels.
    numeric : bool
        Whether targets have to be numbers.
    """

    exact: tuple[str, ...] = ()
    of_objects: bool = False
    row_shape: tuple[int, ...] | None = None
    classes: tuple[Any, ...] | None = None
    numeric: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """Records in plain containers: no other code can read one of them by what another holds.

    Parameters
    ----------
    X : ndarray, sparse matrix, data frame of pandas with NumPy's types, or data set
    y : ndarray or None
    n : int
        Number of records.
    kind, label_kind : str
        NumPy's letters for the declared types of X and y; empty for lists, objects and tables.
    headers : (container, container)
        X and y without their records, with columns and types; None where they have none.
    """

    X: Any
    y: Any
    n: int
    kind: str = ""
    label_kind: str = ""
    headers: tuple[Any, Any] = (None, None)


def _header(values: Any) -> Any:
    plain = isinstance(values, np.ndarray) or is_frame(values) or issparse(values)
    return values[:0] if plain else None


def read_records(
    X: Any, y: Any, declared: Declared, names: tuple[str, str] = ("X", "y")
) -> Records:
    """Records of a fit, or public ones, from the user's containers.

    Errors call the containers by ``names``.

    Raises
    ------
    TypeError
        For containers that are not known.
    ValueError
        For a list of rows of several shapes, and another number of targets than of records.
    """
    features = _of_several(read_features(X, declared, names[0]), names[0])
    targets = None if y is None else _of_several(read_targets(y, declared, names[1]), names[1])
    n = number_of_records(features)
    if targets is not None:
        check_same_number(n, number_of_records(targets))
    return Records(
        X=features,
        y=targets,
        n=n,
        kind=_kind_of(X, features),
        label_kind=_kind_of(y, targets),
        headers=(_header(features), _header(targets)),
    )


def _of_several(values: Any, name: str) -> Any:
    if getattr(values, "shape", None) == ():
        raise TypeError(
            f"Found {name} of type {type(values).__name__} with a single value; an array, a data "
            "frame or a list of records is needed."
        )
    return values


def read_features(X: Any, declared: Declared, name: str = "X") -> Any:
    """Features in a plain container: an array, or a data frame of pandas with NumPy's types.

    Raises
    ------
    TypeError
        For a container that is not known.
    """
    library = library_of(X)
    if is_frame(X):
        return frame_of(X, declared.exact)
    if type(X) is ChosenRows:
        return X[:]
    if library == "builtins":
        read = objects_in if declared.of_objects else numbers_in
        return read(X, name, declared.row_shape)
    if is_data_set(X) and type(X).__name__ in SLICED_DATASETS:
        if type(X).__name__ != "SliceDict":
            return X
        return type(X)(**{name: _plain_array(as_array(part)) for name, part in X.items()})
    if issparse(X) and type(X).__module__.startswith("scipy.sparse."):
        return X.tocsr()  # of which rows can be chosen, as in scikit-learn
    if library is None:
        raise TypeError(f"{refused(X, name)}{how_to_wrap(X)}")
    return _plain_array(
        as_array(X) if library == "torch" else X if library == "numpy" else read_column(X).values
    )


def read_targets(y: Any, declared: Declared, name: str = "y") -> Any:
    """Targets in an array: labels of a classifier, else numbers."""
    if is_data_set(y):
        return y
    if library_of(y) is None:
        raise refused(y, name)
    return targets_like(y, declared.classes, declared.numeric)


def read_parameter(name: str, value: Any) -> Any:
    """Parameter of ``fit``: an array for a container, and frames and other values as they are.

    The same holds for containers inside of a tuple or a list.

    Raises
    ------
    TypeError
        For a container that is not known, which would be read by other code.
    """
    is_sequence = type(value) in (list, tuple)
    # as in eval_set=(X, y); rows of numbers are lists
    if is_sequence and any(library_of(part) for part in value if not isinstance(part, list)):
        return type(value)(read_parameter(name, part) for part in value)
    if library_of(value) is not None:
        return value if is_frame(value) else _plain_array(as_array(value))
    if value is None or isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__"):
        return value
    raise refused(value, name)


def dense_numbers(X: Any) -> np.ndarray:
    """Array of numbers, also of a sparse matrix."""
    return np.asarray(X.toarray()) if issparse(X) else array_of(X)


def number_of_records(values: Any) -> int:
    """Number of records in a container that the door knows."""
    return int(values.shape[0]) if issparse(values) else len(values)


def check_same_number(*numbers: int) -> None:
    """Raise for different numbers of records, targets, or persons."""
    if len(set(numbers)) > 1:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {list(numbers)}. Give "
            "one target for each record."
        )


def how_to_wrap(records: Any) -> str:
    """Hint for records that cannot be split as they are."""
    names = [kind.__name__ for kind in type(records).__mro__]
    return next(filter(None, map(WRAPPERS.get, names)), "")


def read_table(X: Any) -> Any:
    """Table in a plain container, for predictions of a released model, which declares no more."""
    return frame_of(X) if is_frame(X) else X


def _plain_array(values: np.ndarray) -> np.ndarray:
    """Array whose texts and objects are plain values, and do not tell the longest text."""
    return plain_objects(values.astype(object)) if values.dtype.kind in "OUS" else values


def _kind_of(declared: Any, values: Any) -> str:
    """NumPy's letter for a declared type; empty for lists, objects, tables and data sets."""
    if declared is None or library_of(values) != "numpy":
        return ""
    kind = label_kind(declared) or values.dtype.kind
    return "" if kind == "O" else kind
