"""Exact draws for many records from random bytes: coins, integers, rounded normals.

A uniform double is a multiple of 2⁻⁵³, so comparing it with a probability of 1e-17 succeeds eleven
times too often. Here the binary digits of a uniform number are compared with those of the
probability, 64 at a time, until they differ.

Noise for sums of integers: for an integer S and a real Z, S + round(Z) = round(S + Z), a function
of the Gaussian mechanism's output, so it has the Gaussian mechanism's own guarantee, μ-GDP. The
discrete Gaussian has only that guarantee's zCDP. A deviate is the quantile of a uniform real
number, whose bits are drawn as they are needed. Nearly always the first 64 bits decide to which
integer the deviate is rounded, and double precision is enough to see it. Otherwise more bits are
drawn, and the quantile is computed to as many digits.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import ndtri

from .._checks import require, require_in
from .._numerics.arithmetic import Number, fraction

#: Number of bytes ↦ secret random bytes.
RandomBytes = Callable[[int], bytes]
#: Values drawn at once.
BLOCK = 2**16


def bernoulli(n: int, probability: Number, random_bytes: RandomBytes) -> npt.NDArray[np.bool_]:
    """Draw n independent coins, each True with exactly this probability.

    Parameters
    ----------
    n : int
        Number of draws.
    probability : Fraction, int or float
        In [0, 1]. A float counts for exactly what it is.
    random_bytes : callable
        Secret randomness: 8 bytes for each draw, and 8 more for each that 64 digits do not decide.
    """
    exact = fraction(probability)
    require_in("[0, 1]", probability=probability)
    return _draw_in_blocks(n, np.bool_, lambda size: _bernoulli_block(size, exact, random_bytes))


def _bernoulli_block(
    n: int, remaining: Fraction, random_bytes: RandomBytes
) -> npt.NDArray[np.bool_]:
    """Draw one block of exact coins."""
    success, undecided = np.full(n, remaining == 1), np.arange(n)
    while 0 < remaining < 1 and undecided.size:
        digits, remaining = divmod(remaining * 2**64, 1)
        drawn = random_words(undecided.size, random_bytes)
        success[undecided] = drawn < np.uint64(digits)
        undecided = undecided[drawn == np.uint64(digits)]  # without digits left, equal is not below
    return success


def uniform_integers(n: int, below: int, random_bytes: RandomBytes) -> npt.NDArray[np.integer[Any]]:
    """Draw n integers, exactly uniform on 0 … below − 1.

    The array has shape (n,) and the smallest type that holds them.
    """
    require(0 < below <= 2**62, "0 < below <= 2**62", below=below)
    smallest = np.min_scalar_type(-below)  # signed
    return _draw_in_blocks(n, smallest, lambda number: _uniform_block(number, below, random_bytes))


def _uniform_block(n: int, below: int, random_bytes: RandomBytes) -> npt.NDArray[np.int64]:
    """Draw one block of exactly uniform integers."""
    limit = np.uint64((2**63 // below) * below)
    numbers = random_words(n, random_bytes) >> np.uint64(1)
    while (again := np.flatnonzero(numbers >= limit)).size:
        numbers[again] = random_words(again.size, random_bytes) >> np.uint64(1)
    return (numbers % np.uint64(below)).astype(np.int64)


def _draw_in_blocks(
    n: int, kind: npt.DTypeLike, drawn: Callable[[int], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Draw n values block by block, to save memory."""
    values = np.empty(n, kind)
    for start in range(0, n, BLOCK):
        values[start : start + BLOCK] = drawn(min(BLOCK, n - start))
    return values


def random_words(n: int, random_bytes: RandomBytes) -> npt.NDArray[np.uint64]:
    """Draw n random words of 64 bits."""
    return np.frombuffer(random_bytes(8 * n), dtype="<u8").astype(np.uint64)


#: Bound on |error of ``ndtri``| ÷ (1 + |quantile|): fifty times the largest error that tests find.
ACCURACY = 2.0**-46
#: √(π/2) / 2, rounded up: half of Mills' ratio (tail ÷ density) at 0, its largest value at z ≥ 0.
HALF_OF_MILLS = 0.63
#: Bits of a word.
WORD = 64
#: Largest standard deviation; far beyond it, double precision would leave most draws in doubt.
LARGEST_SCALE = 2**40


def rounded_normals(
    scale: int, size: int, random_bytes: RandomBytes = secrets.token_bytes
) -> NDArray[np.int64]:
    """Draw round(Z) of independent Z ~ N(0, scale²), exactly.

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
    A word is a sign and 63 bits m of a tail probability q, m ≤ 2⁶⁴·q < m + 1. Between the middle of
    this interval and q the quantile z moves by at most Mills' ratio times the difference of their
    logarithms, 1/(2·m).

    Examples
    --------
    >>> rounded_normals(1000, 3, np.random.RandomState(0).bytes)
    array([ 535, -196, -179])
    """
    require(1 <= scale <= LARGEST_SCALE, "1 <= scale <= 2**40", scale=scale)
    drawn = random_words(size, random_bytes)
    tails = drawn >> np.uint64(1)
    counts = tails.astype(np.float64)
    quantiles = -ndtri((counts + 0.5) * 2.0**-WORD)
    values = scale * quantiles
    with np.errstate(divide="ignore"):  # a tail of zero bits is in doubt
        errors = scale * (ACCURACY * (1.0 + quantiles) + HALF_OF_MILLS / counts)
    rounded = np.floor(values + 0.5)
    for place in np.flatnonzero(np.abs(values - np.floor(values) - 0.5) <= errors):
        rounded[place] = _round_with_more_bits(scale, int(tails[place]), random_bytes)
    return np.asarray(np.where(drawn & np.uint64(1), -rounded, rounded), np.int64)


def _round_with_more_bits(scale: int, tail: int, random_bytes: RandomBytes) -> int:
    """Rounded normal deviate of a tail in [tail, tail + 1]·2⁻⁶⁴, with further bits."""
    bits = WORD
    while True:
        tail, bits = tail << WORD | int(random_words(1, random_bytes)[0]), bits + WORD
        with mpmath.workprec(3 * bits):
            slack = mpmath.ldexp(scale, -bits)  # far above the rounding of three times as many bits
            low = _normal_deviate(scale, tail + 1, bits) - slack
            high = _normal_deviate(scale, tail, bits) + slack
            below, above = (int(mpmath.floor(end + mpmath.mpf(0.5))) for end in (low, high))
        if below == above:
            return below


def _normal_deviate(scale: int, tail: int, bits: int) -> Any:
    """Normal deviate with a given upper tail, in many digits."""
    if tail == 0:
        return mpmath.mpf(2) ** 60  # with all bits zero there is no upper end
    return scale * mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.ldexp(tail, 1 - bits))
