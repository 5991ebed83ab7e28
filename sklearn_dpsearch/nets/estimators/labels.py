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
