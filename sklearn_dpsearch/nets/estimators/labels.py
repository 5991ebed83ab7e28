"""Labels as positions among declared classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...data.columns import array_of
from ...data.labels import as_array, declared_positions


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
