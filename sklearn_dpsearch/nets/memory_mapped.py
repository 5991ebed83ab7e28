"""Records in an array file that may be larger than memory: rows are read when a batch needs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.rows import ChosenRows
from .task import Records, rows_at, with_empty_row, with_room

#: Least bytes of an array in a file whose rows stay there. A smaller array is read once, which makes training faster:
#: on a CPU by up to a quarter (``examples/benchmarks/large_data.py --speed``), elsewhere by more.
LARGE = {"cpu": 2**27}
ELSEWHERE = 2**33
#: Records checked at once before the training.
CHECKED = 2**14


def stays_in_file(X: Any, device: Any) -> bool:
    """Return whether records are (rows of) a large array in a file: ``np.memmap``, ``np.load(…, mmap_mode="r")``."""
    data = X.data if isinstance(X, ChosenRows) else X
    return isinstance(data, np.memmap) and data.nbytes >= LARGE.get(torch.device(device).type, ELSEWHERE)


def converted(
    rows: ChosenRows,
    how: Hashable,
    dtype: torch.dtype,
    convert: Callable[[NDArray[Any], torch.Tensor], object],
    size: int,
) -> torch.Tensor:
    """Copy of rows in another form, made in blocks, with room for one more, and kept beside them for the next net.

    Parameters
    ----------
    rows : ChosenRows
    how : hashable
        Equal for equal conversions.
    dtype : torch.dtype
    convert : callable
        (Rows of the array, tensor) ↦ inputs in the tensor, each row by itself.
    size : int
        Rows in a block.
    """
    if how not in rows.converted:
        found = with_room(rows.shape, dtype)
        for places, block in rows.blocks(size):
            convert(block, found[places])
        rows.converted[how] = found
    kept: torch.Tensor = rows.converted[how]
    return kept


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedRecords(Records):
    """Records in a file, with one batch at a time in memory. Results equal those of records in memory.

    Norms are not kept (``norms`` is None): after a change of the file they would belong to other records, and the new
    records would not be clipped.

    Parameters
    ----------
    rows : ChosenRows
    convert : callable
        Rows of the file, shape (m, ...) ↦ tensor of inputs, each row by itself.
    how : hashable
        Equal for equal conversions.
    inputs : Tensor
        One row of zeros: the shape and kind of a record.
    targets : Tensor of shape (n, ...)
        Targets of all records.
    """

    rows: ChosenRows
    convert: Callable[[NDArray[Any]], torch.Tensor]
    how: Hashable
    inputs: torch.Tensor
    targets: torch.Tensor
    stacks = True

    def on(self, device: torch.device) -> MappedRecords:
        """Records for training on a device, with an empty row of targets."""
        return replace(self, inputs=self.inputs.to(device), targets=with_empty_row(self.targets, device))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        flat = places.reshape(-1).cpu().numpy()
        there = flat < len(self)
        found = torch.zeros((len(flat), *self.inputs.shape[1:]), dtype=self.inputs.dtype)
        found[torch.from_numpy(there)] = self.convert(self.rows[flat[there]])
        inputs = found.to(self.inputs.device).view(*places.shape, *self.inputs.shape[1:])
        return inputs, rows_at(self.targets, places)

    def are(self, other: object) -> bool:
        """Return whether another net's records, not yet placed on a device, have equal rows, conversion and targets."""
        if not isinstance(other, MappedRecords) or (self.rows is not other.rows) or self.how != other.how:
            return False
        mine, theirs = self.targets, other.targets[: len(other)]
        return mine.dtype == theirs.dtype and mine.shape == theirs.shape and bool(torch.equal(mine.to(theirs), theirs))
