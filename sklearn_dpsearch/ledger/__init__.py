"""Privacy cost on one data set, across fits and processes: knows guarantees, and no searches."""

from .entry import Entry
from .privacy_ledger import PrivacyLedger

__all__ = ["Entry", "PrivacyLedger"]
