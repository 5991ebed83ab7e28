"""The private searches."""

from ._base import BasePrivateSearch, NoModelError
from .random_search import DPRandomSearchCV

__all__ = ["BasePrivateSearch", "DPRandomSearchCV", "NoModelError"]
