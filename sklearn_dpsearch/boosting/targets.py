"""Labels as positions among declared classes, and numbers as shares of their bounds."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from .._lists import is_list, numbers_in, objects_in
from ..privacy import PrivacyError
from .features import BLOCK
from .losses import Array

#: Public constants: label ↦ weight of the loss of its records; labels that are left out have weight 1.
ClassWeights: TypeAlias = Mapping[Any, float] | None


def positions(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.integer]:
    """Position of each label among the declared ones, as small integers: there is one for each record.

    Raises
    ------
    ValueError
        For a label that was not declared.
    """
    places = {label: place for place, label in enumerate(classes.tolist())}
    try:
        blocks = (y[start : start + BLOCK].tolist() for start in range(0, len(y), BLOCK))
        labels = itertools.chain.from_iterable(blocks)
        return np.fromiter((places[label] for label in labels), np.min_scalar_type(len(places)), len(y))
    except (KeyError, TypeError):
        pass
    # outside of the handler: a chained error would quote a record
    raise ValueError(
        f"Found labels in y that are not among the declared classes={classes.tolist()}. Declare every label that a "
        "record could have."
    )


def targets_in(y: Any, numeric: bool) -> NDArray[Any]:
    """Targets without missing ones, shape (n_samples,): in double precision if they have to be numbers.

    Labels in a list become objects, which are looked up one by one.

    Raises
    ------
    ValueError
        For others. No text quotes a number that is none.
    """
    if is_list(y):
        y = numbers_in(y, "y") if numeric else objects_in(y, "y")
    found = np.asarray(y)
    if found.dtype.kind == "c":
        raise ValueError("Complex data not supported: y has a complex dtype. Give real numbers, or labels.")
    if numeric:
        y = _doubles(found)
    targets: NDArray[Any] = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
    return targets


def _doubles(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind not in "biufOUT":
        raise ValueError(f"Found y of type {y.dtype}; numbers are needed.")
    try:
        with np.errstate(over="ignore"):  # a warning would tell of a long double beyond all doubles
            return y.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    # outside of the handler: a chained error would quote a record
    raise ValueError("Found a target in y that is no number; numbers are needed.")


def log_weights(given: ClassWeights, classes: NDArray[Any]) -> Array:
    """Logarithm of each class's weight, shape (n_classes,).

    Raises
    ------
    PrivacyError, ValueError
        For weights that are not public constants above 0, or of labels outside of the classes.
    """
    if isinstance(given, str):
        raise PrivacyError(
            f"Found class_weight={given!r}, which counts the labels in y: each record would change the weights of all "
            "others. Give constants that are known without the data, e.g. class_weight={0: 1.0, 1: 5.0}."
        )
    labels = classes.tolist()
    known = {} if given is None else given
    if not isinstance(known, Mapping) or not all(
        label in labels and _is_weight(weight) for label, weight in known.items()
    ):
        raise ValueError(
            f"Found class_weight={given!r}; a dict of labels among {labels} and finite weights > 0 is needed, e.g. "
            f"{{{labels[0]!r}: 5.0}}."
        )
    return np.log([float(known.get(label, 1.0)) for label in labels])


def _is_weight(weight: object) -> bool:
    known = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
    return known and 0 < float(weight) < np.inf  # type: ignore[arg-type]


def bounds_of(given: Any) -> tuple[float, float]:
    """Public bounds of numbers.

    Raises
    ------
    ValueError
        Unless there are two finite numbers in order.
    """
    if isinstance(given, Sequence) and len(given) == 2 and all(isinstance(end, numbers.Real) for end in given):
        lower, upper = float(given[0]), float(given[1])
        if -np.inf < lower < upper < np.inf:
            return lower, upper
    raise ValueError(
        f"Found bounds_y={given!r}; two finite numbers, lower < upper, that y lies between are needed, as bounds_y or "
        "from a target in the schema."
    )
