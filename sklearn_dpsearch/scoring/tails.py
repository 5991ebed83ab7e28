r"""Tails of the discrete Gaussian law P[k] ∝ exp(−k²/(2σ²)), and the privacy profile that they give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

#: Relative error that a tail may have; both routes below stay under a fifth of it.
TAIL_ERROR = 1e-12
#: σ up to which tails are sums. Beyond, sums are integrals with Euler's and Maclaurin's correction.
LARGEST_SUM = 1000.0
#: Standard deviations beyond which exp(−z²/2) is below 1e-300.
REACH = 38.6


def shifted_profile(variance: float, shift: int, epsilon: Any) -> np.ndarray:
    r"""δ(ε) = P[X > εσ²/Δ − Δ/2] − e^ε·P[X > εσ²/Δ + Δ/2], rounded up.

    The hockey-stick divergence of the discrete Gaussian law and the same law moved by Δ (Canonne, Kamath &
    Steinke 2020, Theorem 7). The likelihood ratio grows with k, so the best event is a tail; its neighbours
    are tried too, in case rounding has misplaced its first integer.

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
    return np.clip(np.max(events, axis=0), 0.0, 1.0)


def upper_tail(variance: float, first: Any) -> np.ndarray:
    """P[X ≥ first] for integers ``first``, with a relative error below ``TAIL_ERROR``."""
    first = np.asarray(first, dtype=float)
    beyond_zero = np.where(first > 0, first, 1.0 - first)
    sigma = float(np.sqrt(variance))
    tail = _summed(variance, beyond_zero) if sigma <= LARGEST_SUM else _integrated(sigma, beyond_zero)
    return np.where(first > 0, tail, 1.0 - tail)


def _summed(variance: float, first: np.ndarray) -> np.ndarray:
    table = _tail_table(variance)
    return table[np.minimum(first, table.size - 1.0).astype(np.int64)]


@lru_cache(maxsize=32)
def _tail_table(variance: float) -> np.ndarray:
    """P[X ≥ k] for k = 0, 1, … until it vanishes, summed from the far end."""
    k = np.arange(int(np.ceil(REACH * np.sqrt(variance))) + 3)
    weights = np.exp(-(k.astype(float) ** 2) / (2.0 * variance))
    weights[-1] = 0.0
    above = np.cumsum(weights[::-1])[::-1]
    return above / (2.0 * above[0] - 1.0)


def _integrated(sigma: float, first: np.ndarray) -> np.ndarray:
    r"""Σ_{k ≥ m} f(k) = ∫_m^∞ f + f(m)/2 − f'(m)/12 + f'''(m)/720 − f⁗'(m)/30240, f(x) = exp(−x²/(2σ²)).

    What is left out is at most ∫|f⁽⁶⁾|/30240, some z⁶/(30240·σ⁶) of the sum for z = m/σ: below 2e-13 where f
    does not vanish. The sum over all integers is σ√(2π) up to a factor 1 + 2·exp(−2π²σ²).
    """
    z = first / sigma
    third, fifth = z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z
    boundary = 0.5 + z / (12 * sigma) - third / (720 * sigma**3) + fifth / (30240 * sigma**5)
    return np.where(z < REACH, special.ndtr(-z) + np.exp(-0.5 * z**2) * boundary / (sigma * np.sqrt(2 * np.pi)), 0.0)
