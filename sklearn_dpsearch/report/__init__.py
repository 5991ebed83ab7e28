"""Comparison of searches before any data, displays of their cost, and a report on the fit of a schema."""

from .comparison import Comparison
from .displays import (
    CostPartsDisplay,
    CountDistributionDisplay,
    PrivacyProfileDisplay,
    ShapeDisplay,
    TradeOffDisplay,
)
from .planning import plan
from .schema_fit import SchemaReport, schema_report

__all__ = [
    "Comparison",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "PrivacyProfileDisplay",
    "SchemaReport",
    "ShapeDisplay",
    "TradeOffDisplay",
    "plan",
    "schema_report",
]
