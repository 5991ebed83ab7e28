"""The private searches."""

from ._base import BasePrivateSearch
from .doubling import Doubling
from .execution.job import NoModelError
from .grid_search import DPGridSearchCV
from .planning.space import search_space
from .random_search import DPRandomSearchCV
from .subset_search import DPSubsetSearchCV
from .threshold_search import DPThresholdSearchCV

__all__ = [
    "BasePrivateSearch",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DPSubsetSearchCV",
    "DPThresholdSearchCV",
    "Doubling",
    "NoModelError",
    "search_space",
]
