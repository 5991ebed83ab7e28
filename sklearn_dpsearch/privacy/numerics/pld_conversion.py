"""Between our loss distributions and those of ``dp_accounting`` (0.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .loss_distribution import DominatingPair, LossDistribution, on_grid


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


def pld_from_pair(pair: DominatingPair, interval: float) -> Any:
    """A ``PrivacyLossDistribution``, rounded up to multiples of ``interval``."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    removed = _to_pmf(pair.removed, interval)
    if pair.removed is pair.added:
        return PrivacyLossDistribution(removed)
    return PrivacyLossDistribution(removed, _to_pmf(pair.added, interval))


def _to_pmf(pld: LossDistribution, interval: float) -> Any:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    first, masses = on_grid(pld, interval)
    return DensePLDPmf(interval, first, masses, pld.infinity, True)
