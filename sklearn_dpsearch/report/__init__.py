"""Comparison of searches before any data, and displays of their cost."""

from .comparison import Comparison
from .displays import (
    BudgetDisplay,
    CostPartsDisplay,
    CountDistributionDisplay,
    LedgerDisplay,
    PrivacyProfileDisplay,
    ShapeDisplay,
    TradeOffDisplay,
)
from .planning import plan

__all__ = [
    "BudgetDisplay",
    "Comparison",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "LedgerDisplay",
    "PrivacyProfileDisplay",
    "ShapeDisplay",
    "TradeOffDisplay",
    "plan",
]
