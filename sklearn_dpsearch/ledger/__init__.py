"""Privacy cost on one data set, across fits and processes: knows guarantees, and no searches."""

from .budget import Forecast
from .entry import Entry
from .privacy_ledger import PrivacyLedger

__all__ = ["Entry", "Forecast", "PrivacyLedger"]
