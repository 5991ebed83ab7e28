"""Hyperparameter searches for scikit-learn that are differentially private as a whole."""

from ._version import __version__
from .errors import BudgetExceededError, PrivacyError
from .ledger import PrivacyLedger
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

__all__ = [
    "BudgetExceededError",
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
