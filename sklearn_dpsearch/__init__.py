"""Hyperparameter searches for scikit-learn that are differentially private as a whole."""

from .privacy.errors import PrivacyError
from .privacy.spent import PrivacySpent
from .search import DPRandomSearchCV, NoModelError

__version__ = "0.1.0"

__all__ = ["DPRandomSearchCV", "NoModelError", "PrivacyError", "PrivacySpent", "__version__"]
