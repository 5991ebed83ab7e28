"""The private searches."""

from ._base import BasePrivateSearch
from ._doubling import Doubling
from ._execution.job import NoModelError
from ._grid_search import DPGridSearchCV
from ._planning.space import search_space
from ._random_search import DPRandomSearchCV
from ._subset_search import DPSubsetSearchCV
from ._threshold_search import DPThresholdSearchCV

__all__ = [
    "BasePrivateSearch", "DPGridSearchCV", "DPRandomSearchCV", "DPSubsetSearchCV",
    "DPThresholdSearchCV", "Doubling", "NoModelError", "search_space",
]  # fmt: skip
