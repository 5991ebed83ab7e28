"""Labels as positions among declared classes."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from ...data.columns import array_of
from ...data.labels import as_array, declared_positions
from ...privacy import PrivacyError

#: Public constants: label ↦ weight of the loss of its records; labels that are left out have weight 1.
ClassWeight: TypeAlias = Mapping[Any, float] | None


def encode(y: Any, classes: np.ndarray) -> torch.Tensor:
    """Position of each label among the declared ones.

    Raises
    ------
    ValueError
        For a label that was not declared.
    """
    labels = as_array(y)
    if labels.ndim != 1:
        raise ValueError(f"Expected y with one label per record, shape (n_samples,), got shape {labels.shape}.")
    return torch.from_numpy(declared_positions(labels, classes).astype(np.int64))


def indicators(y: Any) -> torch.Tensor:
    """Indicators of the labels of each record, shape (n, labels).

    Raises
    ------
    ValueError
        For values other than 0 and 1, or y without columns.
    """
    found = array_of(y, "y")
    if found.ndim != 2:
        raise ValueError(f"Expected y with a column for each label, shape (n_samples, n_labels), got {found.shape}.")
    if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise ValueError("Expected y of 0 and 1: whether a record has each label (sklearn's MultiLabelBinarizer).")
    return torch.from_numpy(found.astype(np.float32))


def check_class_weight(given: Any) -> None:
    """Raise for weights that are not public constants.

    Raises
    ------
    PrivacyError, ValueError
    """
    if isinstance(given, str):
        raise PrivacyError(
            f"Found class_weight={given!r}, which counts the labels in y: each record would change the weights of all "
            "others. Give constants that are known without the data, e.g. class_weight={0: 1.0, 1: 5.0}."
        )
    if given is None:
        return
    if not isinstance(given, Mapping) or not all(_is_weight(weight) for weight in given.values()):
        raise ValueError(
            f"Found class_weight={given!r}; a dict of labels and finite weights >= 0 is needed, e.g. "
            "{0: 1.0, 1: 5.0}."
        )


def _is_weight(weight: object) -> bool:
    known = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
    return known and bool(np.isfinite(float(weight))) and float(weight) >= 0  # type: ignore[arg-type]


def weights_of(given: ClassWeight, classes: np.ndarray) -> torch.Tensor | None:
    """One weight per class.

    Raises
    ------
    ValueError
        For a label outside of the classes.
    """
    if given is None:
        return None
    labels = classes.tolist()
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(f"Found class_weight of {unknown}, and classes={labels}. Give weights of those alone.")
    return torch.tensor([float(given.get(label, 1.0)) for label in labels])
