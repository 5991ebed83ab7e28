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
from .score_by_epsilon import NeededEpsilon, needed_epsilon

__all__ = [
    "Comparison",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "NeededEpsilon",
    "PrivacyProfileDisplay",
    "SchemaReport",
    "ShapeDisplay",
    "TradeOffDisplay",
    "needed_epsilon",
    "plan",
    "schema_report",
]
