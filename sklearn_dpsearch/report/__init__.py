"""Searches compared before any data."""

from .comparison import Comparison, Row
from .planning import plan

__all__ = ["Comparison", "Row", "plan"]
