"""Guarantees for other accountants; from them come ``ProfileDP.from_pld`` and ``RenyiDP``."""

from __future__ import annotations

from typing import Any

from .guarantees.base import Guarantee, Statement, as_guarantee
from .numerics.pld import pld_from_pair


def to_pld(guarantee: Guarantee | Statement, interval: float = 1e-4) -> Any:
    """A guarantee as a ``dp_accounting`` privacy loss distribution.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
    interval : float
        Losses are rounded up to multiples of it.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic estimate.
    """
    return pld_from_pair(as_guarantee(guarantee).pair, interval)
