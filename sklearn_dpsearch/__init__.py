"""Hyperparameter searches for scikit-learn that are differentially private as a whole."""

from .ledger import PrivacyLedger
from .privacy.errors import BudgetExceededError, PrivacyError
from .privacy.spent import PrivacySpent
from .report import plan
from .search import (
    Checkpoint,
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
    "BudgetExceededError",
    "Checkpoint",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DPSubsetSearchCV",
    "DPThresholdSearchCV",
    "Doubling",
    "NoModelError",
    "PrivacyError",
    "PrivacyLedger",
    "PrivacySpent",
    "__version__",
    "plan",
    "search_space",
]
