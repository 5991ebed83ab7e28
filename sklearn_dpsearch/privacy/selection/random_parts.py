r"""Theorems 2 and 4 in numbers: the likelihood ratios of a record that joins one part of a search at random.

Tuning returns t. X(t) is its ratio if the record trains the candidates, V(t) if it validates them: functions of one
output, with an unknown joint distribution. Of all couplings with the same marginals the comonotone one (both are large
together) has the largest E (a·X + b·V·Y − c)₊ and the largest E (1 − c·(a·X + b·V·Y))₊ (docs/theory/subset_rest.md).
For two discrete ratios that is a merge of their quantile functions: exact, with as many pieces as there are atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._types import Array
from ..numerics.arithmetic import safe_exp
from ..numerics.loss_distribution import ROUNDING, LossDistribution, coarser

#: Losses beyond it count as infinite, which only raises a curve: products of their ratios would overflow.
LARGEST_LOSS = 300.0


def thinned(pld: LossDistribution, most: int) -> LossDistribution:
    """Atoms spread over an even grid with about ``most`` points, if there are more: the curve only rises."""
    return pld if pld.losses.size <= most else coarser(pld, float(np.ptp(pld.losses)) / most)


def log_mean_exp(a: float, b: float, weight: float) -> float:
    """log(w·e^a + (1−w)·e^b) of a, b ≥ 0, rounded up."""
    if max(a, b) < 30.0:
        mean = np.log1p(weight * np.expm1(a) + (1.0 - weight) * np.expm1(b))
    else:
        with np.errstate(divide="ignore"):
            mean = np.logaddexp(np.log(weight) + a, np.log1p(-weight) + b)
    return float(mean * (1.0 + ROUNDING))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Finitely many values of a random line Y ↦ e^a + e^b·Y, under the distribution without the record.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Probabilities of the values, of which ``above`` counts those up to and with each, from the far end on.
    above : ndarray of shape (n,)
    a, b : ndarrays of shape (n,)
        Logarithms, −∞ for 0.
    infinity : float
        Probability, under the distribution with the record, of outcomes that are impossible without it at every Y.
    """

    weights: Array
    above: Array
    a: Array
    b: Array
    infinity: float


def coupled(
    tune: LossDistribution, validate: LossDistribution, fraction: float, share: float, train_on: str, index: int
) -> Pieces:
    """The line of Theorem 4: Z = q·X + (1−q)(1−v+v·V)·Y on the rest, and (q·X + (1−q)(1−v+v·V))·Y on all.

    Parameters
    ----------
    tune, validate : LossDistribution
        Normalized, and both in the direction ``index``: the record removed (0) or added (1).
    fraction, share : float
        q: probability of joining the subset; v: probability of validating otherwise.
    train_on : {"rest", "all"}
    index : {0, 1}
    """
    x, v = (_quantiles(pld, index) for pld in (tune, validate))
    ends = np.unique(np.concatenate([x.ends, v.ends, [1.0]]))
    with np.errstate(divide="ignore"):
        log_x = np.log(fraction) + x.at(ends)
        log_v = np.log1p(-fraction) + np.logaddexp(np.log1p(-share), np.log(share) + v.at(ends))
    a, b = (log_x, log_v) if train_on == "rest" else (np.full_like(log_x, -np.inf), np.logaddexp(log_x, log_v))
    infinity = fraction * x.infinity + (1.0 - fraction) * share * v.infinity
    return Pieces(np.diff(ends, prepend=0.0), ends, a, b, infinity)


@dataclass(frozen=True, eq=False)
class _Quantiles:
    """log X as a step function of the probability, without the record, of what is at least as far out.

    For the record removed the far end is that of the largest X, for the record added that of X = 0.
    """

    ends: Array
    log_ratios: Array
    infinity: float

    def at(self, ends: Array) -> Array:
        """The values of the steps that end there; 0 beyond the last (where rounding left something: never too low)."""
        steps: npt.NDArray[np.intp] = np.searchsorted(self.ends, ends, side="left")
        return np.append(self.log_ratios, -np.inf)[steps]


def _quantiles(pld: LossDistribution, index: int) -> _Quantiles:
    losses, masses = pld.losses[::-1], pld.masses[::-1]
    far = losses > LARGEST_LOSS
    infinity = pld.infinity + float(masses[far].sum())
    losses, masses = losses[~far], masses[~far]
    if index:  # losses are −log X, and masses probabilities without the record
        ends = np.cumsum(np.append(infinity, masses))
        return _Quantiles(ends, np.append(-np.inf, -losses), 0.0)
    return _Quantiles(np.cumsum(masses * safe_exp(-losses)), losses, infinity)


def delta_in_direction(index: int, pieces: Pieces, train: LossDistribution, epsilon: Array) -> Array:
    """δ(ε) for a record removed (0) or added (1), rounded up."""
    curve = delta_added if index else delta_removed
    rows = [curve(pieces, train, float(one)) for one in np.ravel(epsilon)]
    return np.minimum(np.reshape(rows, np.shape(epsilon)) * (1.0 + ROUNDING), 1.0)


def delta_removed(pieces: Pieces, train: LossDistribution, epsilon: float) -> float:
    """E (Z − c)₊, c = e^ε: e^b·H_k with k = (c − e^a)/e^b, and e^a + e^b − c where k ≤ 0; and the mass at infinity."""
    share = safe_exp(pieces.a - epsilon) * (1.0 + ROUNDING)  # e^a/c, up: k is rounded down
    inside = (share < 1.0) & (pieces.b > -np.inf)
    k = epsilon + np.log1p(-share[inside]) - pieces.b[inside] - ROUNDING
    values = np.zeros_like(share)
    values[inside] = np.exp(pieces.b[inside]) * train.delta_at(k)
    beyond = share >= 1.0
    values[beyond] = np.exp(epsilon) * (share[beyond] - 1.0) + np.exp(pieces.b[beyond])
    return pieces.infinity + _expected(pieces, values)


def delta_added(pieces: Pieces, train: LossDistribution, epsilon: float) -> float:
    """E (1 − c·Z)₊, c = e^ε: r·H_{c·e^b/r} with r = (1 − c·e^a)₊; the pair of training (without, with)."""
    left = -np.expm1(np.minimum(epsilon + pieces.a, 0.0)) * (1.0 + ROUNDING)
    inside = left > 0.0
    k = epsilon + pieces.b[inside] - np.log(left[inside]) - ROUNDING
    values = np.zeros_like(left)
    values[inside] = left[inside] * train.delta_at(k)
    return _expected(pieces, values)


def _expected(pieces: Pieces, values: Array) -> float:
    """The mean of values ≥ 0 that fall from the far end on, and what the sums behind the weights may have got wrong."""
    lost = np.finfo(float).eps * float(pieces.above @ values)
    return float(pieces.weights @ values) * (1.0 + ROUNDING) + lost
