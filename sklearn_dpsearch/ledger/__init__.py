"""Privacy cost on one data set, across fits and processes: knows guarantees, and no searches."""

from ._entry import Entry
from ._privacy_ledger import PrivacyLedger

__all__ = ["Entry", "PrivacyLedger"]
