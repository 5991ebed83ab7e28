"""Displays: each class computes first (``from_…``), and then draws (``plot``)."""

from .cost_parts import CostPartsDisplay
from .count_distribution import CountDistributionDisplay
from .profile import PrivacyProfileDisplay
from .shape import ShapeDisplay
from .trade_off import TradeOffDisplay

__all__ = [
    "CostPartsDisplay",
    "CountDistributionDisplay",
    "PrivacyProfileDisplay",
    "ShapeDisplay",
    "TradeOffDisplay",
]
