"""Hyperparameter searches for scikit-learn that are differentially private as a whole."""

from .privacy.errors import PrivacyError
from .privacy.spent import PrivacySpent
from .report import plan
from .search import (
    Doubling,
    DPGridSearchCV,
    DPRandomSearchCV,
    DPSubsetSearchCV,
    DPThresholdSearchCV,
    NoModelError,
    search_space,
)

__version__ = "0.1.0"

__all__ = [
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DPSubsetSearchCV",
    "DPThresholdSearchCV",
    "Doubling",
    "NoModelError",
    "PrivacyError",
    "PrivacySpent",
    "__version__",
    "plan",
    "search_space",
]
