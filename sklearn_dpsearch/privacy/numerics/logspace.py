"""Helpers that stay accurate where probabilities are tiny or nearly one."""

from __future__ import annotations

import numpy as np
from scipy import special

from .._types import Array, ArrayLike

LARGEST_EXPONENT = 700.0  # exp of more overflows a double


def safe_exp(x: ArrayLike) -> Array:
    """exp(x), with large arguments cut at ``LARGEST_EXPONENT`` instead of overflowing."""
    return np.exp(np.minimum(x, LARGEST_EXPONENT))


def log_expm1(x: ArrayLike) -> Array:
    """log(exp(x) − 1) for x > 0, accurate for tiny and for huge x."""
    x = np.asarray(x, dtype=float)
    small = np.minimum(x, 1.0)
    return np.where(
        x < 1.0, np.log(np.expm1(np.where(small > 0, small, 1.0))), x + np.log1p(-np.exp(-np.maximum(x, 1.0)))
    )


def log_mills_ratio(x: ArrayLike) -> Array:
    """log of (1 − Φ(x)) / φ(x), the Mills ratio of the standard normal distribution."""
    x = np.asarray(x, dtype=float)
    right = np.log(special.erfcx(np.maximum(x, -5.0) / np.sqrt(2.0))) + 0.5 * np.log(np.pi / 2.0)
    left = special.log_ndtr(-x) + 0.5 * x**2 + 0.5 * np.log(2.0 * np.pi)
    log_ratio: Array = np.where(x > -5.0, right, left)
    return log_ratio
