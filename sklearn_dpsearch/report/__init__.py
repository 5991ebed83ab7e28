"""Comparison of searches, displays of trade-offs and shapes, and a report on a schema's fit.

The comparison is made before any data.
"""

from typing import Any

from ..errors import missing_name
from ._mlflow_run import log_to_mlflow
from ._planning import Comparison, plan
from ._schema_fit import SchemaReport, schema_report
from ._score_by_epsilon import NeededEpsilon, needed_epsilon
from ._shape import ShapeDisplay
from ._trade_off import TradeOffDisplay

__all__ = [
    "Comparison", "NeededEpsilon", "SchemaReport", "ShapeDisplay", "TradeOffDisplay",
    "log_to_mlflow", "needed_epsilon", "plan", "schema_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name)
