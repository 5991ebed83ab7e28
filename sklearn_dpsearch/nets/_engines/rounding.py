"""Rounding in clipped sums: bounded for every order of addition, and covered by extra noise.

One record more moves partial sums into ranges where single-precision numbers are spaced more
widely. Added naively, 5000 chosen records let one record move a sum by 1.36 clipping norms instead
of 1.

**Bound.** With u = 2⁻²⁴ every operation errs by at most u of its result: an addition by at most u
times the sum of the absolute terms below it. In any tree of additions, a sum of b vectors of
rounded products, each of norm at most C, therefore errs by at most u·C·(depths of the b leaves + b)
≤ u·C·(b² + 3b)/2. Sums of at most b records are taken in single precision and added in double: B
records err by at most u·C·B·(b + 3)/2, and two neighbours by twice that.

**Chunks.** The bound grows with B. So a batch goes through the net in chunks of a fixed number of
rows, whose sums are added in double precision. Neighbours differ in one row, and so in one chunk:
the others hold the same numbers in the same rows, and give the same sums, bit by bit. The bound
holds with the size of one chunk in place of B. (Proof: `docs/theory/clipped_sums.md`.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

#: Half the spacing of single-precision, and of double-precision numbers at 1.
SINGLE_ROUNDING, DOUBLE_ROUNDING = 2.0**-24, 2.0**-53
#: Relative excess of a record's contribution over the clipping norm, at most: its norm is rounded
#: at most 270 times.
NORM_EXCESS = 2.0**-15
#: Most numbers whose norm is taken in single precision; norms of longer vectors are combined in
#: double.
NORM_BLOCK = 128
#: Share of the noise that single precision may add.
LOSS = 2.0**-8
#: Most rows of a chunk: more would make pieces too short to be fast, and on a CPU not fit into its
#: caches.
CHUNK = 640
#: Above the norm of every vector of up to 1e9 numbers whose squares vanish in single precision.
TINY_NORM = 1e-18


def records_per_piece(rows: int) -> int:
    """Number of records added in single precision before double takes over."""
    chunk = max(1, min(rows, CHUNK))
    return math.floor(min(LOSS / (SINGLE_ROUNDING * chunk) - 3.0, chunk))


def noise_factor(rows: int) -> float:
    """Factor on the noise that covers all rounding in a clipped sum."""
    single = SINGLE_ROUNDING * min(rows, CHUNK) * (records_per_piece(rows) + 3.0)
    return 1.0 + NORM_EXCESS + single + DOUBLE_ROUNDING * float(rows) ** 2


def row_norms(tables: Iterable[Tensor]) -> Tensor:
    """Norms over the last axis of tensors, in double precision, plus ``TINY_NORM``.

    Squares below 1e-45 vanish in single precision, and long sums lose too much.
    """
    return torch.stack([_blockwise_norm(table) for table in tables]).add_(TINY_NORM)


def _blockwise_norm(table: Tensor) -> Tensor:
    """Norm from blocks in single precision that are combined in double.

    This is ten times faster than double precision throughout.
    """
    size = table.shape[-1]
    if size <= NORM_BLOCK:
        return torch.linalg.vector_norm(table, dim=-1).double()
    multiple = size - size % NORM_BLOCK
    blocks = torch.linalg.vector_norm(table[..., :multiple].unflatten(-1, (-1, NORM_BLOCK)), dim=-1)
    joined = torch.linalg.vector_norm(blocks.double(), dim=-1)
    if multiple == size:
        return joined
    return torch.hypot(joined, _blockwise_norm(table[..., multiple:]))


def norms_from_squares(squares: Tensor) -> Tensor:
    """Gradient norms from the squared norms of their parts.

    They are in single precision, and infinite beyond 1e19.
    """
    return squares.sum(0).float().sqrt_().add_(TINY_NORM)


def add_products(sums: Tensor, first: Tensor, second: Tensor, piece: int) -> None:
    """Add the sum of outer products over records in double precision.

    Products of ``piece`` records at a time are summed in single precision.

    Parameters
    ----------
    sums : tensor of shape (M, p, q)
    first, second : tensors of shape (M, B, p) and (M, B, q)
    """
    for start in range(0, first.shape[1], piece):
        part = slice(start, start + piece)
        sums.add_(torch.bmm(first[:, part].mT, second[:, part]))
