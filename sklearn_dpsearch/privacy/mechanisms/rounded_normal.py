"""Exact noise for sums of integers: normal deviates, rounded to whole numbers.

For an integer S and a real Z, S + round(Z) = round(S + Z): a function of the Gaussian mechanism's output, so it has the
Gaussian mechanism's own guarantee, μ-GDP. The discrete Gaussian has only that guarantee's zCDP.

A deviate is the quantile of a uniform real number, whose bits are drawn as they are needed. Nearly always the first 64
bits decide to which integer the deviate is rounded, and double precision is enough to see it. Otherwise more bits are
drawn, and the quantile is computed to as many digits.
"""

from __future__ import annotations

import secrets
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._checks import require
from .bernoulli import RandomBytes, words

#: Bound on |error of ``ndtri``| ÷ (1 + |quantile|): fifty times the largest error that tests find.
ACCURACY = 2.0**-46
#: √(π/2) / 2, rounded up: half of Mills' ratio (tail ÷ density) at 0, its largest value at z ≥ 0.
HALF_OF_MILLS = 0.63
#: Bits of a word.
WORD = 64
#: Largest standard deviation; far beyond it, double precision would leave most draws in doubt.
LARGEST_SCALE = 2**40


def rounded_normals(scale: int, size: int, random_bytes: RandomBytes = secrets.token_bytes) -> NDArray[np.int64]:
    """round(Z) of independent Z ~ N(0, scale²), shape (size,).

    Parameters
    ----------
    scale : int
        Standard deviation, from 1 to 2⁴⁰: a whole number of the unit of the sums.
    size : int
    random_bytes : callable
        Number of bytes ↦ random bytes; by default the operating system's.

    Returns
    -------
    ndarray of int64, shape (size,)

    Notes
    -----
    A word is a sign and 63 bits m of a tail probability q, m ≤ 2⁶⁴·q < m + 1. Between the middle of this interval and
    q the quantile z moves by at most Mills' ratio times the difference of their logarithms, 1/(2·m).

    Examples
    --------
    >>> rounded_normals(1000, 3, np.random.RandomState(0).bytes)
    array([ 535, -196, -179])
    """
    require(1 <= scale <= LARGEST_SCALE, "1 <= scale <= 2**40", scale=scale)
    drawn = words(size, random_bytes)
    tails = drawn >> np.uint64(1)
    counts = tails.astype(np.float64)
    quantiles = -ndtri((counts + 0.5) * 2.0**-WORD)
    values = scale * quantiles
    with np.errstate(divide="ignore"):  # a tail of zero bits is in doubt
        errors = scale * (ACCURACY * (1.0 + quantiles) + HALF_OF_MILLS / counts)
    rounded = np.floor(values + 0.5)
    for place in np.flatnonzero(np.abs(values - np.floor(values) - 0.5) <= errors):
        rounded[place] = _refined(scale, int(tails[place]), random_bytes)
    return np.asarray(np.where(drawn & np.uint64(1), -rounded, rounded), np.int64)


def _refined(scale: int, tail: int, random_bytes: RandomBytes) -> int:
    """Round the deviate of a tail probability in [tail, tail + 1]·2⁻⁶⁴ with as many further bits as it takes."""
    bits = WORD
    while True:
        tail, bits = tail << WORD | int(words(1, random_bytes)[0]), bits + WORD
        with mpmath.workprec(3 * bits):
            slack = mpmath.ldexp(scale, -bits)  # far above the rounding of three times as many bits
            least, most = _deviate(scale, tail + 1, bits) - slack, _deviate(scale, tail, bits) + slack
            below, above = (int(mpmath.floor(end + mpmath.mpf(0.5))) for end in (least, most))
        if below == above:
            return below


def _deviate(scale: int, tail: int, bits: int) -> Any:
    """``scale`` × the quantile with the upper tail tail·2^(-bits)."""
    if tail == 0:
        return mpmath.mpf(2) ** 60  # with all bits zero there is no upper end
    return scale * mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.ldexp(tail, 1 - bits))
