"""Tasks of training: one net with everything that is fixed before the data is touched, and the records."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from ..privacy._cached_property import cached_property
from .engines import rounding
from .named_tensors import Inputs, NamedTensors, each
from .optimizers import Memory, Table, UpdateRule
from .randomness import Seed
from .sampling import most_rows

#: Records at once whose norms are computed: few enough for a cache.
BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """One net to train: everything that is fixed before the data is touched.

    Parameters
    ----------
    module : Module
        Trained in place.
    criterion : Module
        (outputs, targets) ↦ sum of the records' losses.
    optimizer : UpdateRule
    sample_rate : float
        Probability of each record to be in each batch.
    steps : int
    noise_multiplier : float
        Standard deviation of the noise ÷ ``max_grad_norm``; 0 only in tests and benchmarks.
    max_grad_norm : float
        Largest norm of a record's gradient in the sums.
    expected_batch_size : float
        Divisor of the noisy sum; public.
    places : int or None
        Public number of places from which batches are drawn, at least the number of records; those without a record
        are blank. None: the number of records, which is then public.
    schedule : mapping of str to sequence
        The hyperparameters that change from step to step, with their values, computed without data.
    engine : {"auto", "opacus"}
        Source of per-sample gradients.
    seed : None, int, RandomState or SeedSequence
        For batches and noise; None: the operating system. A seed is for tests.
    memory : dict
        Optimizer memory of an earlier training of this net; filled by training.
    notes : list of str
        Assumptions, filled by training.
    """

    module: nn.Module
    criterion: nn.Module
    optimizer: UpdateRule
    sample_rate: float
    steps: int
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    places: int | None = None
    schedule: Table = field(default_factory=dict)
    engine: str = "auto"
    seed: Seed = None
    memory: Memory = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rows(self, n: int) -> int:
        """Number of rows of each batch in a training on ``n`` records."""
        return most_rows(self.sample_rate, self.places or n)


class Records(ABC):
    """Records for training; the number of records itself stands for "no record", a row of zeros.

    Attributes
    ----------
    inputs : Tensor or NamedTensors
    targets : Tensor
        Of the shape and kind of records, on the device.
    stacks : bool
        Whether several nets can train on them at once: every reading of a record is equal.
    """

    inputs: Inputs
    targets: torch.Tensor
    stacks: bool

    @staticmethod
    def of(inputs: Inputs, targets: torch.Tensor, device: torch.device) -> HeldRecords:
        """Copy to the device: shapes (n, ...) become (n + 1, ...)."""
        return HeldRecords(each(lambda rows: with_empty_row(rows, device), inputs), with_empty_row(targets, device))

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, places: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
        """Inputs and targets of some records, shapes (*places.shape, ...)."""

    @property
    def norms(self) -> torch.Tensor | None:
        """Norms of the inputs, if known: a factor of every gradient of a first linear layer."""
        return None

    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about the source of the records, as plain sentences."""
        return ()

    @contextlib.contextmanager
    def opened(self, seed: Seed) -> Iterator[Records]:
        """Open for one training."""
        yield self


@dataclass(frozen=True)
class HeldRecords(Records):
    """Records on the device, with one more row of zeros."""

    inputs: Inputs
    targets: torch.Tensor
    stacks = True

    def __len__(self) -> int:
        return len(self.targets) - 1

    @cached_property
    def norms(self) -> torch.Tensor | None:
        if isinstance(self.inputs, NamedTensors):
            return None
        return torch.cat([rounding.norms_of([rows.flatten(1)])[0] for rows in self.inputs.split(BLOCK)])

    def take(self, places: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
        if isinstance(self.inputs, NamedTensors):
            return self.inputs.each(lambda rows: rows_at(rows, places)), rows_at(self.targets, places)
        return rows_at(self.inputs, places), rows_at(self.targets, places)


def rows_at(rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Rows of a tensor, shape (*places.shape, ...)."""
    found = rows.index_select(0, places.reshape(-1))
    return found.view(*places.shape, *rows.shape[1:])


def with_room(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Empty tensor for records that ``Records`` uses without another copy."""
    # NumPy asks for large pages: filling 200 MB takes a sixth of the time.
    room = torch.from_numpy(np.empty((shape[0] + 1, *shape[1:]), np.dtype(str(dtype).removeprefix("torch."))))
    room[-1] = 0
    rows = room[:-1]
    rows.room = room
    return rows


def with_empty_row(rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return rows with an empty one appended: without a copy if the rows were made with room for it."""
    room: torch.Tensor = getattr(rows, "room", None)
    if room is not None and room.device == torch.empty(0, device=device).device:
        return room
    if device.type == "cpu":
        room = with_room(rows.shape, rows.dtype).room
    else:
        room = torch.zeros((len(rows) + 1, *rows.shape[1:]), dtype=rows.dtype, device=device)
    room[:-1] = rows
    return room
