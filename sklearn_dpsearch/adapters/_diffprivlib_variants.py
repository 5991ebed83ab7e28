"""Models of diffprivlib that train in double precision, or predict within public bounds.

Imported only together with a model of diffprivlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import DecisionTreeClassifier, GaussianNB, LinearRegression


class ClippedLinearRegression(LinearRegression):
    """diffprivlib's ``LinearRegression``, predicting within its public ``bounds_y``.

    No target lies outside.
    """

    def predict(self, X: Any) -> Any:
        """Predictions, clipped to ``bounds_y``."""
        lower, upper = self.bounds_y
        return np.clip(super().predict(X), lower, upper)


class _InDoubles:
    """Mixin that converts features to double precision.

    diffprivlib writes clipped values back into X, and so truncates those of whole numbers.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Convert X to double precision, then train as the model does."""
        X = X.astype(np.float64) if hasattr(X, "astype") else np.asarray(X, dtype=np.float64)
        return super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]


class DecisionTreeClassifierInDoubles(_InDoubles, DecisionTreeClassifier):
    """diffprivlib's ``DecisionTreeClassifier``, trained in double precision."""


class GaussianNBInDoubles(_InDoubles, GaussianNB):
    """diffprivlib's ``GaussianNB``, trained in double precision."""


class LinearRegressionInDoubles(_InDoubles, LinearRegression):
    """diffprivlib's ``LinearRegression``, trained in double precision.

    diffprivlib converts the targets to the type of X.
    """


#: Name in diffprivlib ↦ the type that trains, and the type that is released.
VARIANTS: dict[str, tuple[type, type]] = {
    "DecisionTreeClassifier": (DecisionTreeClassifierInDoubles, DecisionTreeClassifier),
    "GaussianNB": (GaussianNBInDoubles, GaussianNB),
    "LinearRegression": (LinearRegressionInDoubles, ClippedLinearRegression),
}
