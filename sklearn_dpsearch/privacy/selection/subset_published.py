r"""Published bounds for tuning on a random subset and training afterwards, the smallest for weak Rényi curves.

KK23: Koskela & Kulkarni, NeurIPS 2023. ZW19: Zhu & Wang, ICML 2019. λ is an integer Rényi order, q the probability with
which a record is in the subset, ρ_t and ρ_b the Rényi curves of tuning and of training. All sums are over moments

    M(k) = e^{(k−1)·ρ(k)} ≥ E X^k,   M(0) = M(1) = 1,

with X a likelihood ratio under its denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special

from .._types import Array
from ..guarantees.base import Guarantee
from ..guarantees.values import RenyiDP
from ..numerics.loss_distribution import ROUNDING
from .best_of_published import need

#: Integer Rényi orders at which the sums are evaluated.
INTEGER_ORDERS: Array = np.unique(np.append(np.arange(2.0, 65.0), np.round(np.geomspace(65.0, 1024.0, 48))))


def renyi_rest(tune: Guarantee, train: Guarantee, fraction: float, orders: Array = INTEGER_ORDERS) -> Guarantee:
    r"""max(ρ₁, ρ₂), training on the rest:

    e^{(λ−1)ρ₁} = Σ_{j=0}^{λ} C(λ, j)·q^j(1−q)^{λ−j}·M_t(j)·M_b(λ−j),
    e^{(λ−1)ρ₂} = Σ_{j=0}^{λ−1} C(λ−1, j)·q^j(1−q)^{λ−1−j}·M_t(j+1)·M_b(λ−j).

    KK23 Theorem 1, for a record more (ρ₁) and a record less (ρ₂).
    """
    tuning, training = _log_moments(tune, train, orders)
    bounds = []
    for order in orders.astype(int):
        j = np.arange(order + 1)
        more = _log_sum(_log_binomial(order, fraction) + tuning[j] + training[order - j])
        j = np.arange(order)
        less = _log_sum(_log_binomial(order - 1, fraction) + tuning[j + 1] + training[order - j])
        bounds.append(_above(max(more, less)) / (order - 1))
    return RenyiDP(orders=orders, epsilons=bounds, neighboring=train.neighboring)


def renyi_all(tune: Guarantee, train: Guarantee, fraction: float, orders: Array = INTEGER_ORDERS) -> Guarantee:
    r"""ρ'_t + ρ_b, training on all records, with the amplified curve of tuning

    e^{(λ−1)ρ'_t} = Σ_{j=0}^{λ} w_j·C(λ, j)·q^j(1−q)^{λ−j}·M_t(j),   w_j = 1 for j ≤ 2, else 3.

    ZW19 (KK23 Theorem 4; its first term is that of j = 0 and j = 1), composed with the training run.
    """
    tuning, _ = _log_moments(tune, train, orders)
    bounds = []
    for order in orders.astype(int):
        terms = _log_binomial(order, fraction) + tuning[: order + 1]
        terms[3:] += np.log(3.0)
        bounds.append(_above(_log_sum(terms)) / (order - 1))
    return RenyiDP(orders=orders, epsilons=np.array(bounds) + train.renyi(orders), neighboring=train.neighboring)


def _log_sum(terms: Array) -> float:
    """log Σ e^term, of infinite terms too, of which SciPy before 1.16 warns."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(special.logsumexp(terms))


def _log_moments(tune: Guarantee, train: Guarantee, orders: Array) -> tuple[Array, Array]:
    """log M(k) of both parts for k = 0 … the largest order."""
    need(tune.has_renyi and train.has_renyi, "Rényi curves of both parts")
    need(train.neighboring != "replace_one", "neighbours that differ by one record more or less")
    k = np.arange(2.0, orders.max() + 1.0)
    with_curve = [np.append([0.0, 0.0], (k - 1.0) * part.renyi(k)) for part in (tune, train)]
    return with_curve[0], with_curve[1]


def _above(log_moment: float) -> float:
    """At least 0, raised by what the logarithms of factorials and the sum may be wrong."""
    return max(float(log_moment), 0.0) * (1.0 + ROUNDING) + ROUNDING


def _log_binomial(n: int, p: float) -> Array:
    """log of C(n, j)·p^j·(1−p)^{n−j} for j = 0 … n, 0 < p < 1."""
    j = np.arange(n + 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1)
    values: Array = log_choose + j * np.log(p) + (n - j) * np.log1p(-p)
    return values


#: The published bounds of each variant by the name under which they are reported.
THEOREMS: dict[str, dict[str, Callable[[Guarantee, Guarantee, float], Guarantee]]] = {
    "rest": {"KK23 Theorem 1": renyi_rest},
    "all": {"ZW19, composed": renyi_all},
}


def published_subset(
    tune: Guarantee, train: Guarantee, fraction: float, train_on: str
) -> Iterator[tuple[str, Guarantee]]:
    """Name and guarantee of each published bound that applies."""
    if tune.has_renyi and train.has_renyi and train.neighboring != "replace_one":
        for name, theorem in THEOREMS[train_on].items():
            yield name, theorem(tune, train, fraction)
