"""The private searches."""

from ._base import BasePrivateSearch, NoModelError
from .grid_search import DPGridSearchCV
from .random_search import DPRandomSearchCV
from .subset_search import DPSubsetSearchCV
from .threshold_search import DPThresholdSearchCV

__all__ = [
    "BasePrivateSearch",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DPSubsetSearchCV",
    "DPThresholdSearchCV",
    "NoModelError",
]
