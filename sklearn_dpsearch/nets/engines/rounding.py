"""Rounding in clipped sums: kept below a bound that holds in whatever order they are added, and paid for by noise.

Neighbours' batches may be added in quite different orders: one record more moves the others to other lanes and blocks,
and into ranges where single-precision numbers are spaced more widely. Added naively, 5000 records that are chosen for
it let one more move a sum by 1.36 clipping norms instead of 1.

**Bound.** With u = 2⁻²⁴ every operation errs by at most u of its result: an addition by at most u times the sum of the
absolute terms below it. In any tree of additions a sum of b vectors of norm at most C, each of rounded products,
therefore errs by at most u·C·(depths of the b leaves + b) ≤ u·C·(b² + 3b)/2. Sums of at most b records are taken in
single precision and added in double: B records err by at most u·C·B·(b + 3)/2, and two neighbours by twice that.

**Parts.** That grows with B. So the records of a large batch are dealt to parts by labels: each record in each step
gets one of its own, uniform, whatever the data. A part goes through the net, and is added up, by itself. Given the
labels, neighbours differ in one part alone: the others are the same numbers in the same order, and give the same sums,
bit by bit. The bound holds with the size of one part in place of B. (`docs/theory/rounding.md` has the proof.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

#: Half the spacing of single-precision, and of double-precision numbers at 1.
SINGLE, DOUBLE = 2.0**-24, 2.0**-53
#: A record's own contribution is at most so much longer than the clipping norm: its norm is rounded 270 times or less.
OWN = 2.0**-15
#: Of so many numbers the norm is taken in single precision; norms of more are put together in double.
LONG = 128
#: What single precision may add to the noise.
LOSS = 2.0**-8
#: Most records that a part of a batch has on average: more would leave pieces too short to be fast.
PART = 512
#: More than the norm of a vector of up to 1e9 numbers whose squares vanish in single precision.
TINY = 1e-18


def parts(expected: float) -> int:
    """How many parts a batch of this expected size is dealt to."""
    return max(1, math.ceil(expected / PART))


def most_records(expected: float) -> float:
    """Largest part that is added in single precision: six standard deviations above the expected one.

    Larger parts hardly occur, and are added in double precision, in which batches of up to 3e5 records err by less than
    what ``OWN`` leaves over.
    """
    return _high(expected / parts(expected))


def piece(expected: float) -> int:
    """How many records are added in single precision before the sum goes to double."""
    most = most_records(expected)
    return math.floor(min(LOSS / (SINGLE * most) - 3.0, most))


def noise_factor(expected: float) -> float:
    """What to multiply the noise by, so that it covers all rounding in a clipped sum."""
    single = SINGLE * most_records(expected) * (piece(expected) + 3.0)
    return 1.0 + OWN + single + DOUBLE * _high(expected) ** 2


def _high(expected: float) -> float:
    return expected + 6.0 * math.sqrt(expected) + 8.0


def single_is_single() -> bool:
    """Whether products of single-precision matrices are not rounded to fewer bits (TF32, bfloat16) on the way."""
    try:
        return bool(torch.get_float32_matmul_precision() == "highest")
    except RuntimeError:  # settings of the older and the newer kind contradict each other
        return False


def norms_of(tables: Iterable[torch.Tensor]) -> torch.Tensor:
    """Norms over the last axis of each table, as one tensor in double precision, and a little more.

    Squares below 1e-45 vanish in single precision, and of very many numbers the sum loses too much.
    """
    return torch.stack([_norm(table) for table in tables]).add_(TINY)


def _norm(table: torch.Tensor) -> torch.Tensor:
    """Blocks in single precision, put together in double: ten times faster than double precision throughout."""
    size = table.shape[-1]
    if size <= LONG:
        return torch.linalg.vector_norm(table, dim=-1).double()
    whole = size - size % LONG
    blocks = torch.linalg.vector_norm(table[..., :whole].unflatten(-1, (-1, LONG)), dim=-1)
    joined = torch.linalg.vector_norm(blocks.double(), dim=-1)
    return joined if whole == size else torch.hypot(joined, _norm(table[..., whole:]))


def root_of_sum(squares: torch.Tensor) -> torch.Tensor:
    """Norms in single precision from the squared norms of their parts; infinite where they would be beyond 1e19."""
    return squares.sum(0).float().sqrt_().add_(TINY)


def add_products(sums: torch.Tensor, left: torch.Tensor, right: torch.Tensor, piece: int) -> None:
    """Add the sum over records of left⊗right to ``sums`` in double precision, ``piece`` records at a time.

    Parameters
    ----------
    sums : tensor of shape (M, p, q)
    left, right : tensors of shape (M, B, p) and (M, B, q)
    piece : int
        0: every product and sum in double precision.
    """
    if not piece:
        sums.baddbmm_(left.double().mT, right.double())
        return
    for start in range(0, left.shape[1], piece):
        part = slice(start, start + piece)
        sums.add_(torch.bmm(left[:, part].mT, right[:, part]))
