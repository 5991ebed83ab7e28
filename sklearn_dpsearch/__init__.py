"""Hyperparameter searches for scikit-learn that are differentially private as a whole.

Names are loaded when they are first used: ``import sklearn_dpsearch.privacy`` loads the accountant
alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .errors import BudgetExceededError, PrivacyError
    from .ledger import PrivacyLedger
    from .privacy._spent import PrivacySpent
    from .report import needed_epsilon, plan
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
    "BudgetExceededError", "DPGridSearchCV", "DPRandomSearchCV", "DPSubsetSearchCV",
    "DPThresholdSearchCV", "Doubling", "NoModelError", "PrivacyError", "PrivacyLedger",
    "PrivacySpent", "__version__", "needed_epsilon", "plan", "search_space",
]  # fmt: skip

#: Name ↦ module that has it; every other public name is a search's.
_MODULES = {
    "BudgetExceededError": "errors",
    "PrivacyError": "errors",
    "PrivacyLedger": "ledger",
    "PrivacySpent": "privacy._spent",
    "needed_epsilon": "report",
    "plan": "report",
}
#: Parts of the package that need nothing beyond scikit-learn.
_PARTS = (
    "adapters", "data", "errors", "ledger", "preprocessing", "privacy", "report", "scoring",
    "search",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = globals()[name] = getattr(
        import_module(f".{_MODULES.get(name, 'search')}", __name__), name
    )
    return public


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
