"""Records that are read when a batch needs them: one by one, each by its number."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from .._process import generators_kept
from ..errors import TrainingError
from .named_tensors import Inputs, NamedTensors, each, joined, tensors_of
from .randomness import Seed, reading_coins
from .task import Records

#: Assumption about the code that reads.
ALONE = "what it returns for a number depends on that record alone."
#: Reader: record number ↦ input and target, the target in the user's form.
Read = Callable[[int], tuple[Inputs, Any]]


@dataclass(frozen=True, kw_only=True)
class ReadRecords(Records):
    """Records of a source, each read by its number alone, and no more at once than a batch needs.

    Each net is trained alone on such records: the random draws of a source belong to one training.

    Parameters
    ----------
    read : callable
        Number ↦ input and target of one record.
    encode : callable
        Targets of several records ↦ tensor, as the loss wants them.
    number : int
        Number of records.
    owners : tuple of object
        Objects that read the records.
    inputs, targets : Tensor or NamedTensors
        One row of zeros: the shape and kind of a record, with nothing of one in it.
    coins : Generator, optional
        For random draws while reading: each record is read with freshly seeded generators of its own, so that the draws
        and seeds of one record never affect another.
    """

    read: Read
    encode: Callable[[list[Any]], torch.Tensor]
    number: int
    owners: tuple[object, ...]
    inputs: Inputs
    targets: torch.Tensor
    coins: np.random.Generator | None = None
    stacks = False

    def on(self, device: torch.device) -> ReadRecords:
        """Records for training on a device."""
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))

    @contextlib.contextmanager
    def opened(self, seed: Seed) -> Iterator[ReadRecords]:
        """Open for one training."""
        with generators_kept():
            yield replace(self, coins=reading_coins(seed))

    def __len__(self) -> int:
        return self.number

    def take(self, places: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
        flat = places.reshape(-1)
        there = flat < self.number
        inputs, targets = (
            each(lambda row: _rows_of_zeros(row, len(flat)), kind) for kind in (self.inputs, self.targets)
        )
        read = self.read_each(flat[there].tolist())
        if read:
            _write(inputs, there, joined([_like(self.inputs, row) for row, _ in read], torch.stack))
            _write(targets, there, self.encode([target for _, target in read]))
        shape = tuple(places.shape)
        inputs, targets = (each(lambda rows: rows.view(*shape, *rows.shape[1:]), found) for found in (inputs, targets))
        assert isinstance(targets, torch.Tensor)
        return inputs, targets

    def read_each(self, numbers: Sequence[int]) -> list[tuple[Inputs, Any]]:
        """Some records, each read alone."""
        assert self.coins is not None  # opened
        found = []
        # The generators of dropout are set aside: reading may seed them.
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            for number, words in zip(numbers, self.coins.integers(2**32, size=(len(numbers), 4), dtype=np.uint32)):
                _seed_all(words)
                found.append(self.read(number))
        return found

    def assumptions(self) -> tuple[str, ...]:
        names = " and ".join(type(owner).__name__ for owner in self.owners)
        return (f"{names}: {ALONE}",)


def _seed_all(words: np.ndarray) -> None:
    """Seed all global generators: NumPy's and Python's with 128 bits, as other threads may draw from them too."""
    np.random.seed(words)
    random.seed(int.from_bytes(words.tobytes(), "little"))
    seed = int(words[0])  # all that PyTorch's takes
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def _rows_of_zeros(row: torch.Tensor, number: int) -> torch.Tensor:
    return torch.zeros((number, *row.shape[1:]), dtype=row.dtype, device=row.device)


def _write(rows: Inputs, there: torch.Tensor, found: Inputs) -> None:
    for mine, theirs in zip(tensors_of(rows), tensors_of(found)):
        mine[there] = theirs.to(mine)


def _like(kind: Inputs, row: Inputs) -> Inputs:
    """Return a record, checked to have the shapes and kinds of all.

    Raises
    ------
    ValueError
        The message tells nothing of the record.
    """
    names: Sequence[str] = kind.names if isinstance(kind, NamedTensors) else ()
    same = sorted(names) == sorted(row.names if isinstance(row, NamedTensors) else ())
    ordered = NamedTensors({name: row[name] for name in names}) if same and names else row
    if not same or not all(map(_fits, tensors_of(kind), tensors_of(ordered))):
        raise TrainingError(
            "Found a record of another shape or kind, or with other inputs, than the first of the Dataset, which has "
            f"{_shown(kind)}. All records need the same: crop, fill up and convert them in __getitem__."
        )
    return ordered


def _fits(kind: torch.Tensor, row: torch.Tensor) -> bool:
    return kind.shape[1:] == row.shape and (kind.is_floating_point() or not row.is_floating_point())


def _shown(kind: Inputs) -> str:
    if isinstance(kind, NamedTensors):
        return ", ".join(f"{name!r} of shape {tuple(tensor.shape[1:])}" for name, tensor in kind.tensors.items())
    return f"shape {tuple(kind.shape[1:])}"
