"""Models of diffprivlib whose predictions stay within the public bounds of the target: post-processing, and free.

It is imported only where a model of diffprivlib is at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression


class ClippedLinearRegression(LinearRegression):
    """diffprivlib's ``LinearRegression``, predicting within its public ``bounds_y``: no target lies outside."""

    def predict(self, X: Any) -> Any:
        """Predictions, moved to the nearer end of ``bounds_y`` where they are outside."""
        lower, upper = self.bounds_y
        return np.clip(super().predict(X), lower, upper)
