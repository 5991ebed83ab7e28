"""Privacy cost on one data set, across fits and processes: knows guarantees, and no searches."""

from .blocks import counted, is_counted, ledger_here, own_block
from .budget import Forecast
from .entry import Entry
from .privacy_ledger import PrivacyLedger, Step

__all__ = ["Entry", "Forecast", "PrivacyLedger", "Step", "counted", "is_counted", "ledger_here", "own_block"]
