"""Arrays of lists, of which each entry is read by itself.

A list has no declared type, and no entry decides about the others. ``np.asarray`` chooses the type
of a list by all of its entries: one fraction would round whole numbers above 2⁵³, and one text
would make text of all.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLAGS = {"true": True, "false": False}
#: Whole numbers from it on have no text here: Python writes at most some thousand digits.
LARGEST_WHOLE = 2**64
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*")
#: Depth from which lists in lists are missing values: one may hold itself.
MAX_DEPTH = 5


def objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Array of Python objects, as they are."""
    # which asks no value for its length
    return np.fromiter(values, dtype=object, count=len(values))


def doubles(values: NDArray[Any]) -> NDArray[np.float64]:
    """Array in double precision; a long double beyond all doubles is infinite."""
    with np.errstate(over="ignore"):  # a warning would tell of it
        return values.astype(np.float64)


def objects_in(
    values: Sequence[Any], name: str, row_shape: tuple[int, ...] | None = None
) -> NDArray[np.object_]:
    """Array of the entries of a list of rows, each row read by itself.

    Parameters
    ----------
    values : list of rows
    name : str
    row_shape : tuple of int, optional
        Declared shape of a row. A row of another shape is missing, and so is a list in place of a
        value. Without it the shape is that of all rows.

    Raises
    ------
    ValueError
        For rows of different shapes, where none is declared.
    """
    rows = [_nested_lists(value) for value in values]
    shape = _common_shape(map(_nested_shape, rows), name) if row_shape is None else row_shape
    cells = itertools.chain.from_iterable(_cells(row, shape) for row in rows)
    return objects(list(cells)).reshape(len(rows), *shape)


def numbers_in(
    values: Sequence[Any], name: str, row_shape: tuple[int, ...] | None = None
) -> NDArray[np.float64]:
    """Array of doubles from a list of rows; nan for what is no number. See ``objects_in``."""
    shape = _common_shape(map(_row_shape, values), name) if row_shape is None else row_shape
    numbers = np.full((len(values), *shape), np.nan)
    for place, row in enumerate(values):
        numbers[place] = _numbers_of_row(row, shape)
    return numbers


def labels_in(
    values: Sequence[Any], classes: Collection[Any] | None, name: str = "y"
) -> NDArray[Any]:
    """Array of labels from a list, one for each record.

    Its type follows from the classes alone. A label that is no class becomes one and the same label
    outside of them. Without classes the type follows from the set of labels, in which equal numbers
    are one: 1, 1.0 and True.

    Raises
    ------
    ValueError
        For several labels of a record.
    """
    labels = [_python_scalar(value) for value in values]
    lists = [isinstance(label, (list, tuple, np.ndarray)) for label in labels]
    # else a list is none of the classes
    if lists and (any(lists) if classes is None else all(lists)):
        raise ValueError(
            f"Found {name} as a list of lists, which may differ in length; one label for each "
            "record, or an array of shape (n_samples, n_labels), is needed."
        )
    if classes is None:
        is_int = (
            isinstance(label, (bool, float)) and float(label).is_integer() for label in labels
        )
        pairs = zip(labels, is_int)
        return np.asarray([int(label) if integer else label for label, integer in pairs])
    declared = [_python_scalar(label) for label in classes]
    places = {label: place for place, label in enumerate(declared)}
    new_labels: Iterator[Any] = itertools.count()
    if any(isinstance(label, str) for label in declared):
        new_labels = map("no class {}".format, new_labels)
    outside = next(label for label in new_labels if label not in declared)
    return np.asarray([*declared, outside])[places_of(labels, places, -1)]


def _python_scalar(value: Any) -> Any:
    """Python's own form of a NumPy or PyTorch scalar.

    Others are returned as they are.
    """
    try:
        if type(value).__module__ == "torch":
            return value.detach().tolist()
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
            return value.item()
        return value
    except Exception:  # an error would tell of the entry
        return None


def _nested_lists(value: Any, depth: int = 0) -> Any:
    """Nested lists of Python's scalars, of a row of a list."""
    value = value.tolist() if isinstance(value, np.ndarray) else _python_scalar(value)
    if not isinstance(value, (list, tuple)):
        return value
    return [_nested_lists(part, depth + 1) for part in value] if depth < MAX_DEPTH else None


def _nested_shape(nested: Any) -> tuple[int, ...] | None:
    """Shape of a row as nested lists; None if its parts differ in shape."""
    if not isinstance(nested, list):
        return ()
    shapes = {_nested_shape(part) for part in nested} or {()}
    shape = shapes.pop()
    return None if shapes or shape is None else (len(nested), *shape)


def _row_shape(row: Any) -> tuple[int, ...] | None:
    return row.shape if type(row) is np.ndarray else _nested_shape(_nested_lists(row))


def _common_shape(shapes: Iterable[tuple[int, ...] | None], name: str) -> tuple[int, ...]:
    """Shape of all rows of a list, or an error that tells nothing of them."""
    different = set(shapes) or {()}
    shape = different.pop()
    if different or shape is None:
        raise ValueError(
            f"Found {name} as a list of rows that differ in shape; lists must be rectangular where "
            f"no width is declared. Fill them up, or give {name} as an array."
        )
    return shape


def _cells(row: Any, shape: tuple[int, ...]) -> list[Any]:
    """Entries of a row of a declared shape.

    They are None for a row of another shape, and for a list in place of a value.
    """
    if not shape:
        return [None if isinstance(row, list) else row]
    if not isinstance(row, list) or len(row) != shape[0]:
        return [None] * math.prod(shape)
    return [cell for part in row for cell in _cells(part, shape[1:])]


def _numbers_of_row(row: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Numbers of a row of a declared shape; nan for a row of another."""
    if type(row) is np.ndarray and row.dtype.kind in "biuf":
        return doubles(row) if row.shape == shape else np.full(shape, np.nan)
    cells = _cells(_nested_lists(row), shape)
    return np.fromiter(map(number_of, cells), np.float64, len(cells)).reshape(shape)


def places_of(values: Sequence[Any], places: dict[Any, int], unknown: int) -> NDArray[np.intp]:
    """Position of each value in a dictionary, or of its number.

    It is ``unknown`` for others, also if they cannot be looked up.
    """
    n = len(values)
    try:
        positions = np.fromiter(map(places.get, values, itertools.repeat(unknown)), np.intp, n)
    except Exception:  # not hashable, or not comparable
        looked_up = (_place_or_unknown(value, places, unknown) for value in values)
        positions = np.fromiter(looked_up, np.intp, n)
    for place in np.flatnonzero(positions == unknown).tolist():
        positions[place] = _place_or_unknown(_in_other_form(values[place]), places, unknown)
    return positions


def _in_other_form(value: Any) -> Any:
    """Number that a text says, or text of a whole number.

    Readers of CSV mix them, see ``said_by``.
    """
    if isinstance(value, str):
        return said_by(value)
    is_integer = type(value) in (int, float) and abs(value) < LARGEST_WHOLE and value == int(value)
    return str(int(value)) if is_integer else value


def _place_or_unknown(value: Any, places: dict[Any, int], unknown: int) -> int:
    """Position of one value, ``unknown`` if it cannot be looked up."""
    try:
        return places.get(value, unknown)
    except Exception:
        return unknown


def number_of(value: Any) -> float:
    """Number that a value or a text is; nan for others."""
    try:
        # a warning would tell of the entry
        if isinstance(value, (complex, np.complexfloating, np.ndarray)):
            return math.nan
        if isinstance(value, str):
            return float(FLAGS.get(value.strip().lower(), value))
        return float(_python_scalar(value))
    except Exception:  # any failure means no number: an error would reveal the entry
        return math.nan


def said_by(text: str) -> Any:
    """Flag or number that a text says, else the text.

    A whole number is exact.

    Readers of CSV make text of some entries of a column, and numbers of others, if one entry is no
    number.
    """
    flag = FLAGS.get(text.strip().lower())
    if flag is not None:
        return flag
    try:
        return int(text.partition(".")[0]) if WHOLE_NUMBER.fullmatch(text) else float(text)
    except ValueError:
        return text
