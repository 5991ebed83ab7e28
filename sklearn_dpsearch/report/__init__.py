"""Comparison of searches before any data, displays of their cost, and a report on the fit of a schema."""

from .cost_parts import CostPartsDisplay
from .count_distribution import CountDistributionDisplay
from .mlflow_run import log_to_mlflow
from .planning import Comparison, plan
from .profile import PrivacyProfileDisplay
from .schema_fit import SchemaReport, schema_report
from .score_by_epsilon import NeededEpsilon, needed_epsilon
from .shape import ShapeDisplay
from .trade_off import TradeOffDisplay

__all__ = [
    "Comparison",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "NeededEpsilon",
    "PrivacyProfileDisplay",
    "SchemaReport",
    "ShapeDisplay",
    "TradeOffDisplay",
    "log_to_mlflow",
    "needed_epsilon",
    "plan",
    "schema_report",
]
