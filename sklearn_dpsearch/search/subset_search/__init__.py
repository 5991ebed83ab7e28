"""Tune on a random subset, then train once on more records (Theorems 2 and 4)."""

from .search import DPSubsetSearchCV

__all__ = ["DPSubsetSearchCV"]
