"""Models of diffprivlib whose predictions stay within the public bounds of the target: free post-processing.

Imported only together with a model of diffprivlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression


class ClippedLinearRegression(LinearRegression):
    """diffprivlib's ``LinearRegression``, predicting within its public ``bounds_y``: no target lies outside."""

    def predict(self, X: Any) -> Any:
        """Predictions, clipped to ``bounds_y``."""
        lower, upper = self.bounds_y
        return np.clip(super().predict(X), lower, upper)
