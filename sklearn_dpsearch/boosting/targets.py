"""Weights of classes, and bounds of numbers: public facts about targets."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..privacy import PrivacyError
from .losses import Array

#: Public constants: label ↦ weight of the loss of its records; labels that are left out have weight 1.
ClassWeights: TypeAlias = Mapping[Any, float] | None


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
