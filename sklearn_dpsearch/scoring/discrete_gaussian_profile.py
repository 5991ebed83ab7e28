r"""The privacy profile of discrete Gaussian noise, P[k] ∝ exp(−k²/(2σ²)), from its tails."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from ..privacy._types import Array, ArrayLike

#: Relative error that a tail may have; both ways of computing it below stay under a fifth of it.
TAIL_ERROR = 1e-12
#: σ up to which a tail is summed. For larger σ it is an integral with the Euler–Maclaurin correction.
LARGEST_SUM = 1000.0
#: Standard deviations beyond which exp(−z²/2) is below 1e-300.
REACH = 38.6


def shifted_profile(variance: float, shift: int, epsilon: ArrayLike) -> Array:
    r"""δ(ε) = P[X > εσ²/Δ − Δ/2] − e^ε·P[X > εσ²/Δ + Δ/2], rounded up.

    The hockey-stick divergence of the discrete Gaussian and its shift by Δ (Canonne, Kamath &
    Steinke 2020, Theorem 7). The likelihood ratio grows with k, so the best event is a tail. The tails that
    begin one integer earlier and one later are tried too, because rounding may have moved its first integer by one.

    Parameters
    ----------
    variance : float
        σ² > 0.
    shift : int
        Δ ≥ 1.
    epsilon : array-like
        ε ≥ 0.

    Returns
    -------
    ndarray
        In [0, 1], of the shape of ``epsilon``.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    first = np.floor(epsilon * (variance / shift) - 0.5 * shift) + 1.0
    odds = np.exp(np.minimum(epsilon, 700.0))
    events = [
        upper_tail(variance, first + step) * (1 + TAIL_ERROR)
        + 1e-300
        - odds * upper_tail(variance, first + step + shift) * (1 - TAIL_ERROR)
        for step in (-1.0, 0.0, 1.0)
    ]
    profile: Array = np.clip(np.max(events, axis=0), 0.0, 1.0)
    return profile


def upper_tail(variance: float, first: ArrayLike) -> Array:
    """P[X ≥ first] for integers ``first``, with a relative error below ``TAIL_ERROR``."""
    first = np.asarray(first, dtype=float)
    beyond_zero = np.where(first > 0, first, 1.0 - first)
    sigma = float(np.sqrt(variance))
    tail = _summed(variance, beyond_zero) if sigma <= LARGEST_SUM else _integrated(sigma, beyond_zero)
    return np.asarray(np.where(first > 0, tail, 1.0 - tail))


def _summed(variance: float, first: Array) -> Array:
    table = _tail_table(variance)
    return np.asarray(table[np.minimum(first, table.size - 1.0).astype(np.int64)])


@lru_cache(maxsize=32)
def _tail_table(variance: float) -> Array:
    """P[X ≥ k] for k = 0, 1, … until it vanishes, summed from the far end."""
    k = np.arange(int(np.ceil(REACH * np.sqrt(variance))) + 3)
    weights = np.exp(-(k.astype(float) ** 2) / (2.0 * variance))
    weights[-1] = 0.0
    above = np.cumsum(weights[::-1])[::-1]
    return np.asarray(above / (2.0 * above[0] - 1.0))


def _integrated(sigma: float, first: Array) -> Array:
    r"""Σ_{k ≥ m} f(k) = ∫_m^∞ f + f(m)/2 − f'(m)/12 + f'''(m)/720 − f⁗'(m)/30240, f(x) = exp(−x²/(2σ²)).

    The error is at most ∫|f⁽⁶⁾|/30240, some z⁶/(30240·σ⁶) of the sum for z = m/σ: below 2e-13 where f
    does not vanish. The sum over all integers is σ√(2π) up to a factor 1 + 2·exp(−2π²σ²).
    """
    z = first / sigma
    third, fifth = z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z
    boundary = 0.5 + z / (12 * sigma) - third / (720 * sigma**3) + fifth / (30240 * sigma**5)
    tail = special.ndtr(-z) + np.exp(-0.5 * z**2) * boundary / (sigma * np.sqrt(2 * np.pi))
    return np.asarray(np.where(z < REACH, tail, 0.0))
