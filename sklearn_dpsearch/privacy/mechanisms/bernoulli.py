"""Exact Bernoulli draws for many records at once, from random bytes alone.

A uniform double is a multiple of 2⁻⁵³, so comparing it with a probability of 1e-17 succeeds eleven times too often.
Here the binary digits of a uniform number are compared with those of the probability, 64 at a time, until they differ.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import require
from ..numerics.exact_numbers import Number, fraction

#: Number of bytes ↦ secret random bytes.
RandomBytes = Callable[[int], bytes]
#: Draws at once.
BLOCK = 2**16


def bernoulli(n: int, probability: Number, random_bytes: RandomBytes) -> npt.NDArray[np.bool_]:
    """Draw n independent values, each True with exactly this probability; shape (n,).

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
    require(0 <= exact <= 1, "0 <= probability <= 1", probability=probability)
    return _in_blocks(n, np.bool_, lambda number: _bernoulli(number, exact, random_bytes))


def _bernoulli(n: int, rest: Fraction, random_bytes: RandomBytes) -> npt.NDArray[np.bool_]:
    success, undecided = np.full(n, rest == 1), np.arange(n)
    while 0 < rest < 1 and undecided.size:
        digits, rest = divmod(rest * 2**64, 1)
        drawn = words(undecided.size, random_bytes)
        success[undecided] = drawn < np.uint64(digits)
        undecided = undecided[drawn == np.uint64(digits)]  # without digits left, equal is not below
    return success


def uniform_integers(n: int, below: int, random_bytes: RandomBytes) -> npt.NDArray[np.integer[Any]]:
    """n independent integers, exactly uniform on 0 … below − 1; shape (n,), of the smallest type that holds them."""
    require(0 < below <= 2**62, "0 < below <= 2**62", below=below)
    smallest = np.min_scalar_type(-below)  # signed
    return _in_blocks(n, smallest, lambda number: _integers(number, below, random_bytes))


def _integers(n: int, below: int, random_bytes: RandomBytes) -> npt.NDArray[np.int64]:
    limit = np.uint64((2**63 // below) * below)
    found = words(n, random_bytes) >> np.uint64(1)
    while (again := np.flatnonzero(found >= limit)).size:
        found[again] = words(again.size, random_bytes) >> np.uint64(1)
    return (found % np.uint64(below)).astype(np.int64)


def _in_blocks(n: int, kind: npt.DTypeLike, drawn: Callable[[int], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Draw n values in blocks, so that few 64-bit words are in memory at once."""
    found = np.empty(n, kind)
    for start in range(0, n, BLOCK):
        found[start : start + BLOCK] = drawn(min(BLOCK, n - start))
    return found


def words(n: int, random_bytes: RandomBytes) -> npt.NDArray[np.uint64]:
    """n random words of 64 bits."""
    return np.frombuffer(random_bytes(8 * n), dtype="<u8").astype(np.uint64)
