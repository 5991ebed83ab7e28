"""Comparison of searches before any data, displays of their cost, and a report on the fit of a schema."""

from .comparison import Comparison
from .displays import (
    BudgetDisplay,
    CostPartsDisplay,
    CountDistributionDisplay,
    LedgerDisplay,
    PlanDisplay,
    PrivacyProfileDisplay,
    ShapeDisplay,
    TradeOffDisplay,
)
from .planning import plan
from .schema_fit import SchemaReport, schema_report

__all__ = [
    "BudgetDisplay",
    "Comparison",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "LedgerDisplay",
    "PlanDisplay",
    "PrivacyProfileDisplay",
    "SchemaReport",
    "ShapeDisplay",
    "TradeOffDisplay",
    "plan",
    "schema_report",
]
