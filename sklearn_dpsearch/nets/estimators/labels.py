"""Labels as positions among declared classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def encode(y: Any, classes: np.ndarray) -> torch.Tensor:
    """Position of each label among the declared ones.

    Raises
    ------
    ValueError
        For a label that was not declared.
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"Expected y with one label per record, shape (n_samples,), got shape {labels.shape}.")
    places = {label: i for i, label in enumerate(classes.tolist())}
    try:
        return torch.tensor([places[label] for label in labels.tolist()], dtype=torch.long)
    except (KeyError, TypeError):  # not from it: the error would quote a record
        raise ValueError(
            f"Found labels in y that are not among the declared classes={classes.tolist()}. Declare every label that a "
            "record could have."
        ) from None


def indicators(y: Any) -> torch.Tensor:
    """Which labels each record has, shape (n, labels).

    Raises
    ------
    ValueError
        For anything but 0 and 1 in columns.
    """
    found = np.asarray(y)
    if found.ndim != 2:
        raise ValueError(f"Expected y with a column for each label, shape (n_samples, n_labels), got {found.shape}.")
    if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise ValueError("Expected y of 0 and 1: whether a record has each label (sklearn's MultiLabelBinarizer).")
    return torch.from_numpy(found.astype(np.float32))
