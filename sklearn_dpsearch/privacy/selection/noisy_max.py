r"""Guarantee of report noisy max: only the index of the largest noisy utility is released.

u_1 … u_n are the candidates' utilities, Δ the largest change of any utility by one record (in either direction,
without assuming monotonicity). Candidate i wins if its noise exceeds a threshold given by the others, and between
neighbours that threshold moves by at most 2Δ. So, with q_min the lower edge of the testing region of one noisy number
that moves by 2Δ,

    P'[i wins] ≥ q_min(P[i wins])   for every i.

**Top share.** Hence δ(ε) ≤ n·max over s ≤ 1/n of (s − e^ε·q_min(s)): the noise's own pair given that its likelihood
ratio is among the highest 1/n. It implies KRW24 Theorem 3.2, δ(ε) ≤ n·δ_noise(ε), and is never above 1.

Proofs: docs/theory/noisy_max.md. KRW24 is Koskela, Redberg & Wang (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...errors import PrivacyError
from .._checks import require
from .._types import Array, Neighboring
from ..guarantees.base import Guarantee
from ..guarantees.composition import compose
from ..guarantees.pure import BoundedRangeDP, PureDP
from ..guarantees.tightest import SmallestOf
from ..guarantees.values import ProfileDP
from ..mechanisms.report_noisy_max import ExponentialNoise, GaussianNoise, GumbelNoise, LaplaceNoise, MaxNoise
from ..numerics.basic_mechanisms import LARGEST_LOSS
from ..numerics.exact_numbers import float_above, positive_fraction
from ..numerics.loss_distribution import ROUNDING, LossDistribution, symmetric

#: Standard deviations that a table of the discrete Gaussian covers; beyond, exp(−z²/2) is below 1e-313.
REACH = 38.0
#: Most entries of a table of a distribution on the integers.
LARGEST_TABLE = 10**6
#: Most candidates for which releasing all noisy utilities is tried as a bound.
FEW = 8

Bounds = dict[str, Guarantee]


# --- from one noisy number to the largest of many -----------------------------------------------------------------


def top_share(noise: LossDistribution, n_candidates: int) -> LossDistribution:
    """The noise's loss distribution given that its loss is among the highest 1/n.

    ``noise`` is that of one noisy number that moves by 2Δ. The result dominates report noisy max at every real ε.
    """
    above = noise.infinity + noise.from_above[0][1:]
    masses = np.clip(1.0 / n_candidates - above, 0.0, noise.masses) * n_candidates * (1.0 + ROUNDING)
    kept = masses > 0
    return LossDistribution(noise.losses[kept], masses[kept], min(1.0, noise.infinity * n_candidates))


def top_share_bound(noise: LossDistribution, n_candidates: int, neighboring: Neighboring) -> Guarantee:
    """``top_share`` as a guarantee."""
    return ProfileDP.from_pair(symmetric(top_share(noise, n_candidates)), neighboring)


@dataclass(frozen=True)
class TimesCandidates:
    """n·δ_noise(ε), at most 1."""

    noise: LossDistribution
    n_candidates: int

    def __call__(self, epsilon: Array) -> Array:
        return np.minimum(self.n_candidates * self.noise.delta_at(epsilon), 1.0)


def times_candidates(noise: LossDistribution, n_candidates: int, neighboring: Neighboring) -> Guarantee:
    """δ(ε) ≤ n·δ_noise(ε), δ_noise the profile of one noisy number that moves by 2Δ. KRW24 Theorem 3.2."""
    return ProfileDP(profile=TimesCandidates(noise, n_candidates), neighboring=neighboring)


# --- one noisy number on the integers -----------------------------------------------------------------------------


def moved_laplace(rate: float, steps: int) -> LossDistribution:
    """Loss of discrete Laplace noise P[k] ∝ e^{−rate·|k|} against the same noise moved down by ``steps``.

    The loss of k is rate·(|k + steps| − |k|): ±rate·steps outside of −steps … 0 and rate·(2k + steps) inside.
    """
    inside = np.arange(-steps + 1, 0)
    whole = -np.expm1(-rate)  # P[k ≥ 0] = 1/(1 + e^{−rate}), P[k] = whole/(1 + e^{−rate})·e^{−rate·|k|}
    masses = np.concatenate([[np.exp(-rate * steps)], whole * np.exp(rate * inside), [1.0]]) / (1.0 + np.exp(-rate))
    losses = rate * np.concatenate([[-steps], 2 * inside + steps, [steps]])
    return LossDistribution(np.asarray(losses, dtype=float), masses, 0.0, 0.0)


def moved_gaussian(variance: float, steps: int) -> LossDistribution:
    """Loss of discrete Gaussian noise P[k] ∝ e^{−k²/(2σ²)} against the same noise moved down by ``steps``.

    The loss of k is steps·(2k + steps)/(2σ²).
    """
    if steps > LARGEST_TABLE:  # all losses are beyond the numeric infinity
        return LossDistribution(np.array([0.0]), np.array([0.0]), 1.0)
    reach = int(np.ceil(REACH * np.sqrt(variance))) + 1
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k.astype(float) ** 2) / (2.0 * variance))
    kept = weights > 1e-300
    k, masses = k[kept], weights[kept] / weights.sum()
    losses = np.asarray(steps * (2.0 * k + steps) / (2.0 * variance), dtype=float)
    return LossDistribution(losses, np.asarray(masses, dtype=float), 1e-299)


# --- bounds of each noise -----------------------------------------------------------------------------------------


def gumbel_bounds(n_candidates: int, sensitivity: Fraction, noise: GumbelNoise, neighboring: Neighboring) -> Bounds:
    """Bounded range 2Δ/b: log P[i]/P'[i] = (u_i − u'_i)/b + log(Z'/Z), where only the first term depends on i."""
    epsilon = float_above(2 * sensitivity / noise.scale)
    return {"bounded range": BoundedRangeDP(epsilon=epsilon, neighboring=neighboring)}


def exponential_bounds(
    n_candidates: int, sensitivity: Fraction, noise: ExponentialNoise, neighboring: Neighboring
) -> Bounds:
    """Pure 2Δ/b (McKenna & Sheldon 2020, Theorem 1)."""
    return {"pure": PureDP(epsilon=float_above(2 * sensitivity / noise.scale), neighboring=neighboring)}


def laplace_bounds(n_candidates: int, sensitivity: Fraction, noise: LaplaceNoise, neighboring: Neighboring) -> Bounds:
    """Pure 2Δ/b: P[noise ≥ t + 2Δ] ≥ e^{−2Δ/b}·P[noise ≥ t]; and KRW24 Theorem 3.2, never below it for n ≥ 2."""
    steps = 2 * noise.moved(sensitivity)
    epsilon = float_above(steps * noise.grid / noise.scale)
    bounds: Bounds = {"pure": PureDP(epsilon=epsilon, neighboring=neighboring)}
    if epsilon <= LARGEST_LOSS and steps <= LARGEST_TABLE:
        pld = moved_laplace(epsilon / steps, steps)
        bounds["KRW24 Theorem 3.2"] = times_candidates(pld, n_candidates, neighboring)
    return bounds


def gaussian_bounds(n_candidates: int, sensitivity: Fraction, noise: GaussianNoise, neighboring: Neighboring) -> Bounds:
    """The top share of the noise, KRW24 Theorem 3.2, and for few candidates the release of all noisy utilities."""
    deviation = float(noise.scale / noise.grid)
    require(
        2 * REACH * deviation <= LARGEST_TABLE,
        f"a grid of at least scale/{LARGEST_TABLE / (2 * REACH):.0f}",
        grid=noise.grid,
        scale=noise.scale,
    )
    steps = noise.moved(sensitivity)
    pld = moved_gaussian(deviation**2, 2 * steps)
    bounds: Bounds = {
        "top share": top_share_bound(pld, n_candidates, neighboring),
        "KRW24 Theorem 3.2": times_candidates(pld, n_candidates, neighboring),
    }
    if n_candidates <= FEW:
        single = ProfileDP.from_pair(symmetric(moved_gaussian(deviation**2, steps)), neighboring)
        bounds["Gaussian mechanism"] = compose(*[single] * n_candidates)
    return bounds


#: Guarantee by each noise's exact type: a subclass may draw differently.
BOUNDS: dict[type, Callable[[int, Fraction, Any, Neighboring], Bounds]] = {
    GumbelNoise: gumbel_bounds,
    ExponentialNoise: exponential_bounds,
    LaplaceNoise: laplace_bounds,
    GaussianNoise: gaussian_bounds,
}


@dataclass(frozen=True, kw_only=True)
class NoisyMax(SmallestOf):
    """Report noisy max: at each ε the smallest bound for its noise.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, chosen independently of the data.
    sensitivity : Fraction
        Largest change of any candidate's utility by one record.
    noise : MaxNoise
        Its distribution.
    """

    n_candidates: int
    sensitivity: Fraction
    noise: MaxNoise

    def _check(self) -> None:
        whole = float(self.n_candidates).is_integer()
        require(whole and self.n_candidates >= 1, "an integer n_candidates >= 1", n_candidates=self.n_candidates)
        object.__setattr__(self, "sensitivity", positive_fraction(self.sensitivity, "sensitivity"))
        if type(self.noise) not in BOUNDS:
            known = ", ".join(kind.__name__ for kind in BOUNDS)
            raise PrivacyError(f"Nothing is known about the noise {self.noise!r}. Use one of {known}.")

    def _bounds(self) -> Bounds:
        return BOUNDS[type(self.noise)](int(self.n_candidates), self.sensitivity, self.noise, self.neighboring)


def noisy_max(
    n_candidates: int, sensitivity: Fraction | int, noise: MaxNoise, *, neighboring: Neighboring = "add_remove"
) -> Guarantee:
    """Guarantee of releasing only the index of the candidate with the largest noisy utility.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, chosen independently of the data.
    sensitivity : Fraction or int
        Largest change of any candidate's utility by one record, under the relation ``neighboring``. Exact, because the
        float nearest to 1/49 is smaller than 1/49.
    noise : MaxNoise
        ``GumbelNoise``, ``ExponentialNoise``, ``LaplaceNoise`` or ``GaussianNoise``.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The relation under which the utilities have their sensitivity.

    Returns
    -------
    Guarantee
        With ``bounds`` (all that apply) and ``tightest(delta)`` (the name of the one reported).

    Examples
    --------
    >>> choice = noisy_max(100, Fraction(1, 50), GumbelNoise(scale=Fraction(1, 25)))
    >>> choice.epsilon_at(0.0), round(choice.delta_at(0.5), 3)
    (1.0, 0.077)
    >>> noisy_max(100, Fraction(1, 50), GaussianNoise(scale=Fraction(1, 5), grid=Fraction(1, 400))).tightest(1e-6)
    'top share'
    """
    exact = positive_fraction(sensitivity, "sensitivity")
    choice = NoisyMax(n_candidates=n_candidates, sensitivity=exact, noise=noise, neighboring=neighboring)
    return choice if n_candidates > 1 else PureDP(epsilon=0.0, neighboring=neighboring)
