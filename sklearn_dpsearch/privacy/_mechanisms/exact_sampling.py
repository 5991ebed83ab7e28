"""Exact noise: integers drawn from distributions on the integers, in integer arithmetic only.

Noise drawn in floating point differs in its last bits from the distribution that its proof assumes,
and an attacker can read those bits. Here every probability is a ratio of integers or exp(−ratio of
integers), and every draw is made of fair integers below n.

Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential Privacy", Algorithms 1–3.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from math import isqrt
from typing import Protocol

from .._checks import require
from .._numerics.arithmetic import exact_fraction, positive_fraction


class IntegerSource(Protocol):
    """Source of fair integers, such as ``secrets.SystemRandom()`` or a seeded ``random.Random``."""

    def randrange(self, start: int, /) -> int:
        """An integer uniform on 0 … start − 1."""
        ...


SYSTEM_RANDOMNESS: IntegerSource = secrets.SystemRandom()
ONE = Fraction(1)
HALF = Fraction(1, 2)


def bernoulli(p: Fraction, rng: IntegerSource = SYSTEM_RANDOMNESS) -> bool:
    """Draw a coin that is True with exactly probability p.

    Parameters
    ----------
    p : Fraction or int
        0 ≤ p ≤ 1.
    rng : IntegerSource
        Source of fair integers; by default the operating system.
    """
    p = exact_fraction(p, "p")
    require(0 <= p <= 1, "0 <= p <= 1", p=p)
    return rng.randrange(p.denominator) < p.numerator


def bernoulli_exp(gamma: Fraction, rng: IntegerSource = SYSTEM_RANDOMNESS) -> bool:
    """Draw a coin that is True with exactly probability exp(−γ).

    Algorithm 1. The whole part of γ is a row of exp(−1) coins, all of which must succeed; the rest
    is the parity of the first failure in a row of coins with probabilities γ, γ/2, γ/3, …: the
    series of exp(−γ).

    Parameters
    ----------
    gamma : Fraction or int
        γ ≥ 0.
    rng : IntegerSource
        Source of fair integers; by default the operating system.
    """
    gamma = exact_fraction(gamma, "gamma")
    require(gamma >= 0, "gamma >= 0", gamma=gamma)
    integer_part = gamma.numerator // gamma.denominator
    for _ in range(integer_part):
        if not _bernoulli_exp_below_one(ONE, rng):
            return False
    return _bernoulli_exp_below_one(gamma - integer_part, rng)


def _bernoulli_exp_below_one(gamma: Fraction, rng: IntegerSource) -> bool:
    """Draw a coin with probability exp(−γ), for γ ≤ 1."""
    first_failure = 1
    while bernoulli(gamma / first_failure, rng):
        first_failure += 1
    return first_failure % 2 == 1


def geometric_exp(rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
    """Draw the number of successes of exp(−1) coins before a failure.

    Its distribution is P[v] = (1 − 1/e)·e^{−v}.
    """
    successes = 0
    while bernoulli_exp(ONE, rng):
        successes += 1
    return successes


def discrete_laplace(scale: Fraction, rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
    """Draw an integer k with probability ∝ exp(−|k|/scale), exactly.

    This is Algorithm 2. The expected number of coins does not grow with the scale.

    Parameters
    ----------
    scale : Fraction or int
        Scale > 0.
    rng : IntegerSource
        Source of fair integers; by default the operating system.

    Examples
    --------
    >>> import random
    >>> discrete_laplace(Fraction(10), random.Random(0))
    6
    """
    scale = positive_fraction(scale, "scale")
    while True:
        drawn = _try_discrete_laplace(scale, rng)
        if drawn is not None:
            return drawn


def _try_discrete_laplace(scale: Fraction, rng: IntegerSource) -> int | None:
    """Draw one round of the discrete Laplace algorithm, or None."""
    remainder = rng.randrange(scale.numerator)
    if not bernoulli_exp(Fraction(remainder, scale.numerator), rng):
        return None
    magnitude = (remainder + scale.numerator * geometric_exp(rng)) // scale.denominator
    negative = bernoulli(HALF, rng)
    if negative and magnitude == 0:  # zero has one sign only
        return None
    return -magnitude if negative else magnitude


def discrete_gaussian(sigma_squared: Fraction, rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
    """Draw an integer k with probability ∝ exp(−k²/(2σ²)), exactly.

    This is Algorithm 3: a discrete Laplace draw of scale ⌊σ⌋ + 1, accepted with the ratio of both
    probabilities.

    Parameters
    ----------
    sigma_squared : Fraction or int
        σ² > 0.
    rng : IntegerSource
        Source of fair integers; by default the operating system.

    Examples
    --------
    >>> import random
    >>> discrete_gaussian(Fraction(100), random.Random(0))
    6
    """
    sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
    scale = isqrt(sigma_squared.numerator // sigma_squared.denominator) + 1
    while True:
        drawn = discrete_laplace(Fraction(scale), rng)
        excess = abs(drawn) - sigma_squared / scale
        if bernoulli_exp(excess * excess / (2 * sigma_squared), rng):
            return drawn
