"""Between our loss distributions and those of ``dp_accounting`` (0.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

from .guarantees.base import Guarantee, Statement, as_guarantee
from .numerics.loss_distribution import DominatingPair, LossDistribution, on_grid


def pair_from_pld(pld: Any) -> DominatingPair:
    """Loss distributions of a pessimistic ``PrivacyLossDistribution``."""
    removed = _from_pmf(pld._pmf_remove)
    return DominatingPair(removed, removed if pld._symmetric else _from_pmf(pld._pmf_add))


def _from_pmf(pmf: Any) -> LossDistribution:
    dense = pmf.to_dense_pmf()
    if not dense._pessimistic_estimate:
        raise ValueError(
            "Expected a pessimistic privacy loss distribution, got an optimistic one: its epsilon is no bound."
        )
    masses = np.asarray(dense._probs, dtype=float)
    kept = masses > 0
    losses = (dense._lower_loss + np.arange(masses.size)) * dense._discretization
    return LossDistribution(losses[kept], masses[kept], float(dense._infinity_mass))


def to_pld(
    guarantee: Guarantee | Statement, interval: float = 1e-4
) -> privacy_loss_distribution.PrivacyLossDistribution:
    """A guarantee as a ``dp_accounting`` privacy loss distribution, rounded up to multiples of ``interval``."""
    pair = as_guarantee(guarantee).pair
    removed = _to_pmf(pair.removed, interval)
    if pair.removed is pair.added:
        return privacy_loss_distribution.PrivacyLossDistribution(removed)
    return privacy_loss_distribution.PrivacyLossDistribution(removed, _to_pmf(pair.added, interval))


def _to_pmf(pld: LossDistribution, interval: float) -> pld_pmf.PLDPmf:
    first, masses = on_grid(pld, interval)
    return pld_pmf.DensePLDPmf(interval, first, masses, pld.infinity, True)
