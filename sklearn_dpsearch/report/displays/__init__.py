"""Displays: each class computes first (``from_…``), and then draws (``plot``)."""

from .budget import BudgetDisplay
from .cost_parts import CostPartsDisplay
from .count_distribution import CountDistributionDisplay
from .ledger import LedgerDisplay
from .plan import PlanDisplay
from .profile import PrivacyProfileDisplay
from .shape import ShapeDisplay
from .trade_off import TradeOffDisplay

__all__ = [
    "BudgetDisplay",
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "LedgerDisplay",
    "PlanDisplay",
    "PrivacyProfileDisplay",
    "ShapeDisplay",
    "TradeOffDisplay",
]
