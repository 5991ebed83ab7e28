r"""Published bound for stopping at a threshold, as printed: PS22, appendix C.

Papernot & Steinke (ICLR 2022) condition a run Q on a set S of good outcomes. Here Q is the run with the coin in front
of it (their footnote 11), so Q(S) is at least the stop probability p, and D_λ is that of a run that is only sometimes
reached: exp((λ−1)·D_λ) = p + (1−p)·exp((λ−1)·ε(λ)). λ is a Rényi order, ε(λ) the curve of one run.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..guarantees.base import Guarantee
from ..guarantees.values import ORDERS, RenyiDP
from .best_of_published import need

#: 1/q and 1/r of Proposition 15 that are tried, of which 1/p + 1/q + 1/r = 1.
INVERSES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])


class LogMoments:
    """(λ − 1)·D_λ of one run behind the coin, at any order ≥ 1.

    The curve is convex in λ and 0 at λ = 1, so between two orders it is below the chord; beyond the last order it is
    unknown.
    """

    def __init__(self, one_run: Guarantee, stop_probability: float) -> None:
        with np.errstate(divide="ignore"):
            moments = np.logaddexp(
                np.log(stop_probability), np.log1p(-stop_probability) + (ORDERS - 1) * one_run.renyi(ORDERS)
            )
        known = np.isfinite(moments)
        self.orders = np.append(1.0, ORDERS[known])
        self.values = np.append(0.0, moments[known])

    def __call__(self, order: Array) -> Array:
        """(λ − 1)·D_λ, infinite where unknown."""
        values: Array = np.interp(order, self.orders, self.values, right=np.inf)
        return values


def renyi_threshold(one_run: Guarantee, stop_probability: float) -> Guarantee:
    r"""(λ−1)·D'_λ = (1/r)(λ₁−1)·D_{λ₁} + (λ₀−1)·D_{λ₀} + (1 + 1/r)·log(1/p), λ₁ = r(λ − 1/p̂), λ₀ = λ + 1/q − 1 ≥ 1.

    PS22 Proposition 15, for every 1/p̂ + 1/q + 1/r = 1 with r < ∞ on a grid, the best at each order. Corollary 16 is its
    case r = 1, q = ∞.
    """
    need(one_run.has_renyi, "a Rényi curve")
    moments = LogMoments(one_run, stop_probability)
    best = np.full(ORDERS.shape, np.inf)
    for over_q in INVERSES:
        for over_r in INVERSES[INVERSES > 0]:
            if over_q + over_r <= 1:
                over_p = 1.0 - over_q - over_r
                total = over_r * moments((ORDERS - over_p) / over_r) - (1 + over_r) * np.log(stop_probability)
                second = ORDERS + over_q - 1
                with np.errstate(invalid="ignore"):
                    total = np.where(second >= 1, total + moments(np.maximum(second, 1.0)), np.inf)
                best = np.fmin(best, total)
    return RenyiDP(orders=ORDERS, epsilons=np.maximum(best / (ORDERS - 1), 0.0), neighboring=one_run.neighboring)
