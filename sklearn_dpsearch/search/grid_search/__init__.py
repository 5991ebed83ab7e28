"""Every candidate, one private choice by report noisy max, one private training."""

from .search import DPGridSearchCV

__all__ = ["DPGridSearchCV"]
