"""Rounding in clipped sums: bounded for every order of addition, and covered by extra noise.

Batches of neighbouring data sets may be added in quite different orders: one more record moves the others to other
lanes and blocks, and into ranges where single-precision numbers are spaced more widely. Added naively, 5000 chosen
records let one more record move a sum by 1.36 clipping norms instead of 1.

**Bound.** With u = 2⁻²⁴ every operation errs by at most u of its result: an addition by at most u times the sum of the
absolute terms below it. In any tree of additions, a sum of b vectors of rounded products, each of norm at most C,
therefore errs by at most u·C·(depths of the b leaves + b) ≤ u·C·(b² + 3b)/2. Sums of at most b records are taken in
single precision and added in double: B records err by at most u·C·B·(b + 3)/2, and two neighbours by twice that.

**Parts.** The bound grows with B. So labels deal the records of a large batch to parts: each record in each step gets
its own label, uniform and independent of the data. Each part goes through the net, and is summed, by itself. Given the
labels, neighbours differ in one part only: the other parts hold the same numbers in the same order, and give the same
sums, bit by bit. The bound holds with the size of one part in place of B. (Proof: `docs/theory/clipped_sums.md`.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

#: Half the spacing of single-precision, and of double-precision numbers at 1.
SINGLE, DOUBLE = 2.0**-24, 2.0**-53
#: Relative excess of a record's contribution over the clipping norm, at most: its norm is rounded at most 270 times.
OWN = 2.0**-15
#: Most numbers whose norm is taken in single precision; norms of longer vectors are combined in double.
LONG = 128
#: Share of the noise that single precision may add.
LOSS = 2.0**-8
#: Most expected records in a part of a batch: more would make pieces too short to be fast.
PART = 512
#: Above the norm of every vector of up to 1e9 numbers whose squares vanish in single precision.
TINY = 1e-18


def parts(expected: float) -> int:
    """Number of parts that a batch of this expected size is dealt to."""
    return max(1, math.ceil(expected / PART))


def most_records(expected: float) -> float:
    """Largest part that is added in single precision: six standard deviations above the expected one.

    Larger parts are rare, and are added in double precision, where batches of up to 3e5 records err by less than
    ``OWN`` leaves over.
    """
    return _high(expected / parts(expected))


def piece(expected: float) -> int:
    """Number of records added in single precision before the sum goes to double."""
    most = most_records(expected)
    return math.floor(min(LOSS / (SINGLE * most) - 3.0, most))


def noise_factor(expected: float) -> float:
    """Factor on the noise that covers all rounding in a clipped sum."""
    single = SINGLE * most_records(expected) * (piece(expected) + 3.0)
    return 1.0 + OWN + single + DOUBLE * _high(expected) ** 2


def _high(expected: float) -> float:
    return expected + 6.0 * math.sqrt(expected) + 8.0


def single_is_single() -> bool:
    """Return whether single-precision matrix products keep all bits (no TF32, no bfloat16)."""
    try:
        return bool(torch.get_float32_matmul_precision() == "highest")
    except RuntimeError:  # settings of the older and the newer kind contradict each other
        return False


def norms_of(tables: Iterable[torch.Tensor]) -> torch.Tensor:
    """Norms over the last axis of each table, as one tensor in double precision, plus ``TINY``.

    Squares below 1e-45 vanish in single precision, and long sums lose too much.
    """
    return torch.stack([_norm(table) for table in tables]).add_(TINY)


def _norm(table: torch.Tensor) -> torch.Tensor:
    """Norm from blocks in single precision, combined in double: ten times faster than double precision throughout."""
    size = table.shape[-1]
    if size <= LONG:
        return torch.linalg.vector_norm(table, dim=-1).double()
    whole = size - size % LONG
    blocks = torch.linalg.vector_norm(table[..., :whole].unflatten(-1, (-1, LONG)), dim=-1)
    joined = torch.linalg.vector_norm(blocks.double(), dim=-1)
    return joined if whole == size else torch.hypot(joined, _norm(table[..., whole:]))


def root_of_sum(squares: torch.Tensor) -> torch.Tensor:
    """Norms in single precision from the squared norms of their parts; infinite beyond 1e19."""
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
