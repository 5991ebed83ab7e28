"""Arrays of lists: a list has no declared type, so each entry is read by itself, and none decides about the others.

``np.asarray`` chooses the type of a list by all of its entries: one fraction would round whole numbers above 2⁵³, and
one text would make text of all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_list(values: Any) -> bool:
    """Return whether values come in a list, or a tuple."""
    return isinstance(values, (list, tuple))


def objects_in(values: Sequence[Any], name: str) -> NDArray[np.object_]:
    """Array of the entries as they are.

    Raises
    ------
    ValueError
        For rows of different lengths.
    """
    try:
        found = np.asarray([_alone(value) for value in values], dtype=object)
        if not any(isinstance(entry, (list, tuple, np.ndarray)) for entry in found.flat):
            return found
    except ValueError:
        pass
    raise _unlike(name)


def numbers_in(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Array in double precision; entries that are no numbers become nan."""
    if values and all(isinstance(row, np.ndarray) and row.dtype.kind in "biuf" for row in values):
        if len({row.shape for row in values}) > 1:
            raise _unlike(name)
        with np.errstate(over="ignore"):  # a warning would tell of a long double beyond all doubles
            return np.stack([row.astype(np.float64) for row in values])  # what entry by entry gives, but fast
    found = objects_in(values, name)
    return np.fromiter(map(_number, found.flat), np.float64, found.size).reshape(found.shape)


def labels_in(values: Sequence[Any], classes: Collection[Any] | None, name: str = "y") -> NDArray[Any]:
    """Array of labels, one for each record.

    Its type follows from the classes alone. A label that is no class becomes one and the same label outside of them.
    Without classes the type follows from the set of labels, in which equal numbers are one: 1, 1.0 and True.

    Raises
    ------
    ValueError
        For several labels of a record.
    """
    labels = [_alone(value) for value in values]
    if any(isinstance(label, (list, tuple, np.ndarray)) for label in labels):
        raise ValueError(
            f"Found {name} as a list of lists, which may differ in length; one label for each record, or an array of "
            "shape (n_samples, n_labels), is needed."
        )
    if classes is None:
        return np.asarray([_plain(label) for label in labels])
    known = [_alone(label) for label in classes]
    places, kinds = {label: place for place, label in enumerate(known)}, np.asarray([*known, _outside(known)])
    return kinds[np.fromiter((_place(label, places) for label in labels), np.intp, len(labels))]


def _alone(value: Any) -> Any:
    """Python's own form of a single value of NumPy or PyTorch; others as they are."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _unlike(name: str) -> ValueError:
    return ValueError(f"Found {name} whose entries differ in length; rows of one length are needed.")


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, (complex, np.complexfloating)) else float(value)
    except Exception:  # any failure means no number: an error would tell of the entry
        return math.nan


def _plain(label: Any) -> Any:
    whole = isinstance(label, bool) or (isinstance(label, float) and label.is_integer())
    return int(label) if whole else label


def _place(label: Any, places: dict[Any, int]) -> int:
    try:
        return places.get(label, -1)
    except Exception:  # not hashable, or not comparable
        return -1


def _outside(known: list[Any]) -> Any:
    """A label of the same kind that is no class."""
    others = itertools.count()
    if any(isinstance(label, str) for label in known):
        return next(text for text in map("no class {}".format, others) if text not in known)
    return next(number for number in others if number not in known)
